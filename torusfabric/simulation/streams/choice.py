"""Which engine runs a fabric with streams."""

from collections.abc import Mapping
from typing import NamedTuple

from ...errors import InputError
from ...rtl.fabric import Fabric
from ...rtl.streams import Clocks
from ...toolchain import cxx
from ..engines.choice import BUILD, PER_MODULE
from ..engines.waves import check_wave
from .amaranth_streams import AmaranthStreams
from .compiled_streams import CompiledStreams
from .engine import StreamEngine

__all__ = ["StreamChoice", "choose_stream_engine"]

#: By their names.
ENGINES: Mapping[str, type[StreamEngine]] = {
    engine.name: engine for engine in (AmaranthStreams, CompiledStreams)
}

#: Seconds that Amaranth's simulator takes for a node in a cycle, on a common machine.
PER_NODE_CYCLE = 1e-3


class StreamChoice(NamedTuple):
    """An engine, and why this one."""

    engine: StreamEngine
    reason: str


def choose_stream_engine(
    fabric: Fabric, name: str = "auto", *, wave: str | None = None, runs: int = 1
) -> StreamChoice:
    """Make an engine for a fabric with streams.

    Parameters
    ----------
    fabric : Fabric
    name : str
        Of an engine, or ``auto``: Amaranth's simulator where that takes less time than building,
        else the compiled engine if there is a C++ compiler.
    wave : str, optional
        File for the waves.
    runs : int

    Raises
    ------
    InputError
        If there is no such engine, or it cannot write such a file.
    MissingTool
        If the engine needs a tool that is not installed.
    """
    check_wave(wave)
    if name != "auto":
        if name not in ENGINES:
            known = ", ".join(ENGINES)
            raise InputError(f"Engine of streams must be auto, {known}, not {name}")
        return StreamChoice(ENGINES[name](fabric, wave=wave), "as asked")
    if fabric.clocks is not Clocks.ONE:
        return StreamChoice(AmaranthStreams(fabric, wave=wave), "nodes have clocks of their own")
    words = max(layout.send_words + layout.recv_words for layout in fabric.layouts)
    slow = runs * (fabric.predicted_cycles + words) * fabric.nodes * PER_NODE_CYCLE
    if slow <= BUILD + len(fabric.netlist.modules) * PER_MODULE:
        reason = "small enough that nothing need be built"
        return StreamChoice(AmaranthStreams(fabric, wave=wave), reason)
    if not cxx.have_compiler():
        reason = f"no C++ compiler for the compiled engine: {cxx.INSTALL}"
        return StreamChoice(AmaranthStreams(fabric, wave=wave), reason)
    reason = f"Amaranth's simulator would take some {slow:.0f} s"
    return StreamChoice(CompiledStreams(fabric, wave=wave), reason)
