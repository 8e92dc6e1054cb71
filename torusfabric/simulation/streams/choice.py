"""Which engine runs a fabric with streams."""

from collections.abc import Mapping
from typing import NamedTuple

from ...rtl.fabric import Fabric
from ...rtl.streams import Clocks
from ..engines.choice import build_time, pick
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
    """Make an engine for a fabric with streams, as `choose_engine` does for others.

    Nodes with clocks of their own need Amaranth's simulator.

    Parameters
    ----------
    fabric, name, wave
        As there.
    runs : int
        How many it is to carry out.
    """
    check_wave(wave)
    if name == "auto" and fabric.clocks is not Clocks.ONE:
        return StreamChoice(AmaranthStreams(fabric, wave=wave), "nodes have clocks of their own")
    engine, reason = pick(ENGINES, name, lambda: estimate(fabric, runs), what="Engine of streams")
    return StreamChoice(engine(fabric, wave=wave, runs=runs), reason)


def estimate(fabric: Fabric, runs: int) -> tuple[float, float]:
    """Seconds that Amaranth's simulator, and building the compiled engine, would take."""
    words = max(layout.send_words + layout.recv_words for layout in fabric.layouts)
    cycles = runs * (fabric.predicted_cycles + words)
    return cycles * fabric.nodes * PER_NODE_CYCLE, build_time(fabric)
