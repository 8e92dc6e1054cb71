# amaranth: UnusedElaboratable=no
"""Crossings: the streams of a node in a clock domain of its own, through asynchronous queues."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, ResetSignal
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

from ..leaf import Leaf
from ..netlist import Part, Parts, Role
from .ports import stream_ports

if TYPE_CHECKING:
    from ..fabric_builder import FabricBuilder
    from .plan import StreamPlan

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


def add_crossings(build: FabricBuilder, streams: StreamPlan) -> None:
    """Add the ports of all streams, in domains of the nodes, and their ways into the fabric."""
    ports = stream_ports(build.program, build.width, streams.clocks)
    for node in range(build.nodes):
        clock: dict[str, Parts] = {
            f"node_{name}": build.add_input(name, node=node) for name in ("clk", "rst")
        }
        for side in ("s_axis", "m_axis"):
            prefix = f"{side}_{node}_"
            widths = {
                port.name.removeprefix(prefix): port.width
                for port in ports
                if port.name.startswith(prefix)
            }
            _add_crossing(build, node, side, widths, clock)


def _add_crossing(
    build: FabricBuilder, node: int, side: str, widths: dict[str, int], clock: dict[str, Parts]
) -> None:
    """Add a stream of a node, and its way between the domains."""
    inward = side == "s_axis"
    fields = {name: bits for name, bits in widths.items() if name not in ("tvalid", "tready")}
    module = f"{side}_crossing"
    build.add_module(module, partial(Crossing, fields, inward=inward), role=Role.STREAM)
    inputs, outputs = dict(clock), {}
    for name, bits in widths.items():
        # Whether the node gives it, and not the fabric.
        given = inward == (name != "tready")
        port, here = f"{side}_{node}_{name}", f"{side}_{node}_{name}_here"
        comes, goes = ("in_", "out_") if name != "tready" else ("out_", "in_")
        if given:
            inputs[comes + name] = build.add_input(f"{side}_{{}}_{name}", bits, node=node)
            outputs[goes + name] = here, bits
        else:
            build.add_output(f"{side}_{{}}_{name}", bits, node=node)
            inputs[comes + name] = (Part(here, 0, bits),)
            outputs[goes + name] = port, bits
    build.add(f"{module}_{node}", module, inputs=inputs, outputs=outputs, node=node)
