"""The watch: names a node for which all others have waited too long."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from ..memories import address_width
from ..modules import Leaf
from ..netlist import Part, Role
from ..tops import add_single

if TYPE_CHECKING:
    from ..fabric_builder import FabricBuilder

__all__ = ["Watch", "add_watch", "shown"]


def shown(nodes: int) -> dict[str, int]:
    """What is shown, and its bits."""
    return {"stalled": 1, "stalled_node": address_width(nodes), "stalled_sends": 1}


class Watch(Leaf):
    """Counts the cycles in which no run is under way though messages wait, or are not taken.

    After so many of them it looks for a node that is not ready, one in each cycle, and shows it
    until a run begins or nothing waits any more.

    Parameters
    ----------
    timeout : int
        The most cycles without a report.

    Members
    -------
    loaded, free : In
        Of each node, whether it has a message, and room for what a run brings.
    busy, run_begins : In(1)
    stalled : Out(1)
        Whether a node is shown.
    stalled_node : Out
        Its number.
    stalled_sends : Out(1)
        Whether it has not sent its message; else it has not taken what it has received.
    """

    def __init__(self, nodes: int, timeout: int) -> None:
        self._nodes, self._timeout = nodes, timeout
        given = {"loaded": nodes, "free": nodes, "busy": 1, "run_begins": 1}
        super().__init__(
            {name: In(bits) for name, bits in given.items()}
            | {name: Out(bits) for name, bits in shown(nodes).items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the count, and the search."""
        m = Module()
        # The wires from all nodes end here.
        loaded = Signal(self._nodes, name="loaded_here", reset_less=True)
        free = Signal(self._nodes, name="free_here", reset_less=True)
        m.d.sync += [loaded.eq(self.value("loaded")), free.eq(self.value("free"))]
        count, number = Signal(range(self._timeout + 1), name="count"), self.stalled_node
        waits, late = Signal(name="waits"), Signal(name="late")
        sent, taken = (each.bit_select(number, 1) for each in (loaded, free))
        moves = self.value("busy") | self.value("run_begins")
        m.d.sync += waits.eq((loaded.any() | ~free.all()) & ~moves)
        m.d.comb += late.eq(count == self._timeout)
        with m.If(~waits):
            m.d.sync += [count.eq(0), number.eq(0), self.stalled.eq(0)]
        with m.Elif(~late):
            m.d.sync += count.eq(count + 1)
        with m.Elif(~sent | ~taken):
            m.d.sync += [self.stalled.eq(1), self.stalled_sends.eq(~sent)]
        with m.Else():
            m.d.sync += [self.stalled.eq(0), number.eq(number + 1)]
            with m.If(number == self._nodes - 1):
                m.d.sync += number.eq(0)
        return m


def add_watch(build: FabricBuilder, timeout: int) -> None:
    """Add the watch, and what it shows."""
    inputs = {
        name: tuple(Part(f"{name}_{node}", 0, 1) for node in range(build.nodes))
        for name in ("loaded", "free")
    } | {name: build.whole(name) for name in ("busy", "run_begins")}
    add_single(build, "watch", Role.STREAM, partial(Watch, build.nodes, timeout), inputs)
    for name, bits in shown(build.nodes).items():
        build.add_output(name, bits)
