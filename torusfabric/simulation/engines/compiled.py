"""The compiled engine: the modules of a fabric as C++ loops over all nodes.

A module is compiled once, however large the torus. Each cycle runs only the loops whose inputs have
changed, and nodes that always hold equal values share one word. Both savings leave every word and
cycle as in the reference engine. The steps of a build are in `model`, the run of a model in
`session`.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ...contract.traffic import PortTraffic
from ...errors import InputError
from ...rtl.fabric import Fabric
from .base import Engine, Progress
from .compiled_cells import CompiledCells
from .edges import Access, run_access
from .model import SOURCE_FOLDER, build_model
from .session import Session
from .waves import open_wave_file

__all__ = ["CompiledEngine"]

_Result = TypeVar("_Result")


class CompiledEngine(Engine):
    """Engine that runs the whole fabric as compiled C++.

    Parameters
    ----------
    wave, through_port, repeat
        See `Engine`; the waveforms contain all nets between instances.
    threads : int, optional
        Threads among which the work of a cycle is divided if it is large; by default the number of
        idle processors, up to eight.

    Raises
    ------
    InputError
        If nodes have clocks of their own.
    MissingTool
        If there is no C++ compiler.
    """

    name = "compiled"

    def __init__(
        self,
        fabric: Fabric,
        *,
        wave: str | Path | None = None,
        through_port: bool = False,
        repeat: int = 1,
        threads: int | None = None,
    ) -> None:
        super().__init__(fabric, wave=wave, through_port=through_port, repeat=repeat)
        if fabric.own_clocks:
            raise InputError(
                "Engine must be amaranth for nodes with clocks of their own, not compiled"
            )
        self._threads = threads
        began = time.perf_counter()
        source = fabric.interface.kernel or SOURCE_FOLDER / "model.cc"
        self.model = build_model(
            fabric.netlist, word=fabric.width, node_cycles=self._work, source=source
        )
        self.build_seconds = time.perf_counter() - began

    def run_access(self, make: Callable[..., Access[_Result]]) -> _Result:
        """Execute work at the ports of the fabric, as `Engine.run_access` does."""
        with self._open_session() as session:
            access = make(cells=CompiledCells(session, self.fabric))
            return run_access(access, session.simulate_edges)

    def run_traffic(self, traffic: PortTraffic, progress: Progress | None = None) -> Any:
        """Send and receive all words of `traffic` through the streams of the nodes.

        The parameters `traffic` and `progress` are those of `Engine.run_traffic`.
        """
        with self._open_session() as session:
            return traffic.run_compiled(session, progress)

    @contextlib.contextmanager
    def _open_session(self) -> Iterator[Session]:
        """Open a session, with a waveform file if one is requested."""
        with (
            open_wave_file(self._wave, self.fabric, "fabric") as vcd,
            open(vcd, "w", encoding="utf-8") if vcd else contextlib.nullcontext() as file,
            Session(self.model, self.fabric, vcd=file, threads=self._threads) as session,
        ):
            yield session
