"""The compiled engine: the emitted Verilog as C++, every module built once however large the torus.

While words go through the host port, only the nodes that are addressed get a clock, and of the rest
only what has changed is evaluated, which makes no difference to any word or cycle.
"""

import ctypes
import errno
import os
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...rtl.fabric import Fabric
from ...verilog import module_texts
from .base import Engine, EngineRun, Job, Messages, Progress, longest_job, words_moved
from .host_port import CTask, PortRuns, measure_tasks
from .model import Model, build_model
from .model_objects import INPUTS, CDesign, CNet, CompiledCells, CWatch, Lists, Objects, Watches
from .wave_lines import WaveLine, wave_lines
from .waves import recording
from .words import Words

__all__ = ["OUTPUTS", "CompiledEngine", "Session"]

OUTPUTS = ("busy", "done", "cycles", "host_rdata")


class CompiledEngine(Engine):
    """Runs the whole fabric as compiled C++.

    Parameters
    ----------
    wave : str or Path, optional
        File that the changes of all nets between instances are written to.
    through_port : bool
        Whether all words go through the host port; see `Engine`.
    gated : bool, optional
        Whether to leave nodes still that are not concerned. By default yes, unless a file is
        written.
    optimize : int
        How hard the compiler tries, 0 to 3.

    Raises
    ------
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
        gated: bool | None = None,
        optimize: int = 2,
    ) -> None:
        super().__init__(fabric, wave=wave, through_port=through_port)
        self._gated = wave is None if gated is None else gated
        began = time.perf_counter()
        self.model = build_model(fabric.netlist, module_texts(fabric.netlist), optimize=optimize)
        self.build_seconds = time.perf_counter() - began

    def run_many(
        self,
        batches: Iterable[Messages],
        *,
        jobs: Sequence[Job] = (),
        progress: Progress | None = None,
    ) -> list[EngineRun]:
        """Run several collectives one after another; see `Engine.run_many`."""
        batches, each = list(batches), words_moved(self.fabric)
        jobs = list(jobs) or [longest_job(self.fabric)] * len(batches)
        with (
            recording(self._wave, self.fabric) as vcd,
            Session(self.model, self.fabric, gated=self._gated, vcd=vcd) as session,
        ):
            cells = None if self._through_port else session.cells()
            port = PortRuns(session.run, self.fabric, cells=cells, progress=progress,
                            total=len(batches) * each)  # fmt: skip
            runs = []
            for messages, job in zip(batches, jobs, strict=True):
                session.choose(job)
                words = Words(self.fabric, messages, job, through_port=self._through_port)
                runs.append(port.run(words, job))
            return runs

    def measure(self, runs: int) -> tuple[int, float]:
        """Run collectives on whatever is in memory; see `Engine.measure`."""
        with Session(self.model, self.fabric, gated=self._gated, vcd=None) as session:
            session.choose(longest_job(self.fabric))
            return measure_tasks(session.run, self.fabric, runs)


class Session:
    """Objects of a model, linked, from their initial state on.

    Parameters
    ----------
    vcd : str or None
        File for the waves.

    Attributes
    ----------
    inputs : dict of str to ndarray of uint32
        The inputs of the whole, in chunks of 32 bits.
    """

    def __init__(self, model: Model, fabric: Fabric, *, gated: bool, vcd: str | None) -> None:
        self._fabric = fabric
        self._objects = objects = Objects(model)
        self._library, self.inputs = objects.library, objects.inputs
        self._readers = _Readers(model, objects)
        address, keep = objects.address, objects.keep
        # Of a top without a host port there are none.
        inputs = [objects.address.get(name, 0) for name in INPUTS]
        lines = [] if vcd is None else wave_lines(fabric)
        self._nets = nets = (CNet * len(lines))(*(_net(objects, line) for line in lines))
        self._design = CDesign(
            groups=ctypes.addressof(objects.groups), group_count=len(objects.groups),
            nodes=fabric.nodes, of_node=self._readers.of_node(fabric.nodes),
            at_once=self._readers.of_outputs(registered=False),
            next_time=self._readers.of_outputs(registered=True),
            of_input=self._readers.of_inputs(), inputs=keep(np.array(inputs, np.uintp)),
            settle=not all(model.registered(net) for net in OUTPUTS), gated=gated,
            nets=ctypes.addressof(nets), net_count=len(nets),
            wave=None if vcd is None else os.fsencode(vcd),
            **{name: address.get(name, 0) for name in OUTPUTS},
        )  # fmt: skip
        self._library.model_open.restype = ctypes.c_void_p
        self._library.model_open.argtypes = [ctypes.POINTER(CDesign)]
        self._library.model_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(CTask)]
        self._library.model_run_streams.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._library.model_close.argtypes = [ctypes.c_void_p]
        self._handle = self._library.model_open(self._design)
        if not self._handle:
            self._objects.close()
            raise OSError(errno.EIO, "it cannot be opened")

    def choose(self, job: Job) -> None:
        """Choose what runs do from now on; whoever takes it reads it when the start comes."""
        for name, value in job.inputs.items():
            self.inputs[name][0] = value

    def run(self, task: CTask) -> int:
        """Carry a task out."""
        return self._library.model_run(self._handle, task)

    def cells(self) -> "CompiledCells":
        """The words of the memories of endpoints."""
        return CompiledCells(self._objects, self._fabric)

    def run_streams(self, task: ctypes.Structure) -> int:
        """Send into streams, and receive; the task is a `StreamTask` of ``streams.h``."""
        return self._library.model_run_streams(self._handle, ctypes.byref(task))

    def address(self, net: str) -> int:
        """Where a net lies."""
        return self._objects.address[net]

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self._library.model_close(self._handle)
        self._objects.close()


class _Readers:
    """Which instances of no node, the common ones, read what: those are evaluated on demand."""

    def __init__(self, model: Model, objects: Objects) -> None:
        self._model, self._objects = model, objects
        self._watches: list[Any] = []
        self._number, self._keep = objects.number, objects.keep
        self._instances = model.netlist.instances
        self._of_net: dict[str, set[int]] = {}
        for k, (instance, sources) in enumerate(zip(self._instances, model.sources, strict=True)):
            if instance.node is None:
                for pieces in sources.values():
                    for piece in pieces:
                        self._of_net.setdefault(piece.net, set()).add(int(self._number[k]))

    def _lists(self, lists: Sequence[Collection[int]]) -> Lists:
        start = np.cumsum([0, *map(len, lists)]).astype(np.uint32)
        items = np.array([number for found in lists for number in sorted(found)], np.uint32)
        return Lists(self._keep(start), self._keep(items))

    def of_inputs(self) -> Lists:
        """The readers of each input of the whole."""
        return self._lists([self._of_net.get(name, ()) for name in INPUTS])

    def of_outputs(self, *, registered: bool) -> Watches:
        """The readers of each instance's outputs of one kind."""
        found: list[list[str]] = [[] for _ in self._instances]
        for k, instance in enumerate(self._instances):
            ports = self._model.class_of(k).ports
            for port, net in instance.outputs.items():
                if port in ports and ports[port].registered == registered and net in self._of_net:
                    found[self._number[k]].append(net)
        nets = [net for group in found for net in group]
        readers = self._lists([self._of_net[net] for net in nets])
        first = np.cumsum([0, *(len(self._of_net[net]) for net in nets)]).tolist()
        watches = (CWatch * len(nets))()
        for k, net in enumerate(nets):
            chunks = -(-self._model.netlist.nets[net] // 32)
            old = self._keep(np.zeros(chunks, np.uint32))
            watches[k] = CWatch(self._objects.address[net], old, chunks, first[k], first[k + 1])
        self._watches.append(watches)
        start = self._keep(np.cumsum([0, *map(len, found)]).astype(np.uint32))
        return Watches(start, ctypes.addressof(watches), readers.items)

    def of_node(self, nodes: int) -> Lists:
        """The instances of each node."""
        lists: list[list[int]] = [[] for _ in range(nodes)]
        for k, instance in enumerate(self._instances):
            if instance.node is not None:
                lists[instance.node].append(int(self._number[k]))
        return self._lists(lists)


def _net(objects: Objects, line: WaveLine) -> CNet:
    """Where a line lies in memory."""
    scope, name, part = line.scope.encode(), line.name.encode(), line.part
    return CNet(scope, name, objects.address[part.net] + part.start // 32 * 4, part.start % 32,
                part.width)  # fmt: skip
