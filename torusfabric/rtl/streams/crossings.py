# amaranth: UnusedElaboratable=no
"""Crossings: the streams of a node in a clock domain of its own, through asynchronous queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, ResetSignal
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

from ..modules import Leaf
from ..netlist import Part, Parts, Role

if TYPE_CHECKING:
    from ..fabric_builder import FabricBuilder
    from .ports import StreamPort

__all__ = ["Crossing", "QUEUE", "add_crossings"]

#: Words of a queue: as many as distributed memory has, and enough to pass one in every cycle.
QUEUE = 16

#: The domain of the node.
NODE = "node"


class Crossing(Leaf):
    """Takes the beats of a stream from a clock domain to another, in their order.

    Parameters
    ----------
    fields : dict of str to int
        The signals of a beat, and their bits.
    inward : bool
        Whether they come from the node.

    Members
    -------
    node_clk, node_rst : In(1)
        The clock of the node, and its reset.
    in_NAME, in_tvalid : In
    in_tready : Out(1)
        The stream as it comes, each signal by its name.
    out_NAME, out_tvalid : Out
    out_tready : In(1)
        The stream as it goes on.
    """

    def __init__(self, fields: Mapping[str, int], *, inward: bool) -> None:
        self._fields, self._inward = dict(fields), inward
        super().__init__(
            {
                "node_clk": In(1),
                "node_rst": In(1),
                "in_tvalid": In(1),
                "in_tready": Out(1),
                "out_tvalid": Out(1),
                "out_tready": In(1),
            }
            | {f"in_{name}": In(bits) for name, bits in fields.items()}
            | {f"out_{name}": Out(bits) for name, bits in fields.items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the queue between the domains."""
        m = Module()
        m.domains += ClockDomain(NODE, local=True)
        m.d.comb += [
            ClockSignal(NODE).eq(self.value("node_clk")),
            ResetSignal(NODE).eq(self.value("node_rst")),
        ]
        into, out = (NODE, "sync") if self._inward else ("sync", NODE)
        m.submodules.queue = queue = AsyncFIFO(
            width=sum(self._fields.values()), depth=QUEUE, w_domain=into, r_domain=out
        )
        m.d.comb += [
            queue.w_data.eq(Cat(self.value(f"in_{name}") for name in self._fields)),
            queue.w_en.eq(self.value("in_tvalid")),
            self.in_tready.eq(queue.w_rdy),
            Cat(getattr(self, f"out_{name}") for name in self._fields).eq(queue.r_data),
            self.out_tvalid.eq(queue.r_rdy),
            queue.r_en.eq(self.value("out_tready")),
        ]
        return m


def add_crossings(build: FabricBuilder, ports: Iterable[StreamPort]) -> None:
    """Bring the streams of all nodes, in domains of their own, into the fabric.

    There the nets have the names of the ports, and `_here` behind.
    """
    widths = {port.name: port.width for port in ports}
    for node in range(build.nodes):
        clock = {f"node_{name}": build.whole(f"{name}_{node}") for name in ("clk", "rst")}
        for side in ("s_axis", "m_axis"):
            prefix = f"{side}_{node}_"
            found = {name.removeprefix(prefix): bits for name, bits in widths.items()
                     if name.startswith(prefix)}  # fmt: skip
            _add_crossing(build, side, node, found, clock)


def _add_crossing(
    build: FabricBuilder, side: str, node: int, widths: dict[str, int], clock: Mapping[str, Parts]
) -> None:
    """Add a stream of a node, and its way between the domains."""
    inward = side == "s_axis"
    fields = {name: bits for name, bits in widths.items() if name not in ("tvalid", "tready")}
    module = f"{side}_crossing"
    build.add_module(module, partial(Crossing, fields, inward=inward), role=Role.STREAM)
    inputs, outputs = dict(clock), {}
    for name, bits in widths.items():
        forth, port = name != "tready", f"{side}_{node}_{name}"
        here = f"{port}_here"
        source, target = (port, here) if inward == forth else (here, port)
        comes, goes = ("in", "out") if forth else ("out", "in")
        inputs[f"{comes}_{name}"] = (Part(source, 0, bits),)
        outputs[f"{goes}_{name}"] = target, bits
    build.add(f"{module}_{node}", module, inputs=inputs, outputs=outputs, node=node)
