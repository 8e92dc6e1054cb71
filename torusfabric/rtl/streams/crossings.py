# amaranth: UnusedElaboratable=no
"""The crossings of a fabric whose nodes have clocks of their own, in the netlist."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..netlist import Part, Parts, Role
from .crossing import Crossing
from .ports import stream_ports

if TYPE_CHECKING:
    from ..fabric_builder import FabricBuilder
    from .plan import StreamPlan

__all__ = ["add_crossings"]


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
