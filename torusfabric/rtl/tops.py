# amaranth: UnusedElaboratable=no
"""The inside of a fabric that is not made of a core: nodes, links, and the root unit.

The tops around it are in `torusfabric.rtl.streams.nodes` and in `torusfabric.rtl.loaded.top`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from amaranth.hdl import Const, Module, Signal
from amaranth.lib.wiring import In, Out

from ..topology import CayleyGraph, cayley
from .fabric_builder import FabricBuilder
from .memories import address_width, choose
from .netlist import Leaf, Role, add_single
from .node_parts import add_combiners, add_routers

__all__ = ["RootUnit", "add_inside"]


def add_root_unit(build: FabricBuilder) -> None:
    """Add what takes the root and gives every node its offset from it."""
    program = build.program
    shown, offsets = any(form.part_is_root for form in program.forms), program.by_offset
    make = lambda: RootUnit(cayley(program.root_groups.torus), shown=shown, offsets=offsets)
    add_single(build, "root_unit", Role.ROOT_UNIT, make)


class RootUnit(Leaf):
    """Samples the root at the start, and gives every node its offset from it.

    Parameters
    ----------
    shown, offsets : bool
        Whether the root itself is wanted, and offsets from it.

    Members
    -------
    accepted : In(1)
        The root is sampled with a start that is accepted.
    root : In
        The number of a node.
    sampled_root : Out
        The root of the last run, if it is wanted.
    offset_k_x : Out
        Coordinate k of the offset of nodes whose coordinate k is x, if wanted.
    """

    def __init__(self, topology: CayleyGraph, *, shown: bool = False, offsets: bool = True) -> None:
        self._topology, self._shown, self._offsets = topology, shown, offsets
        bits = address_width(topology.nodes)
        super().__init__(
            {"accepted": In(1), "root": In(bits), "sampled_root": Out(bits * shown)}
            | {
                f"offset_{axis}_{at}": Out(address_width(side))
                for axis, side in enumerate(topology.moduli if offsets else ())
                for at in range(side)
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build a lookup of coordinates, and a register for each offset."""
        m = Module()
        topology, root = self._topology, self.value("root")
        if self._shown:
            with m.If(self.value("accepted")):
                m.d.sync += self.sampled_root.eq(root)
        coordinates = topology.coordinates(np.arange(topology.nodes))
        for axis, side in enumerate(topology.moduli if self._offsets else ()):
            bits = address_width(side)
            at = Signal(bits, name=f"root_{axis}")
            table = [Const(coordinate, bits) for coordinate in coordinates[axis].tolist()]
            m.d.comb += at.eq(choose(table, root))
            for coordinate in range(side):
                offsets = [Const((coordinate - k) % side, bits) for k in range(side)]
                with m.If(self.value("accepted")):
                    m.d.sync += getattr(self, f"offset_{axis}_{coordinate}").eq(choose(offsets, at))
        return m


def add_inside(
    build: FabricBuilder, add_nodes: Callable[[FabricBuilder], None]
) -> list[tuple[str, int]]:
    """Add nodes, links and the root unit once the sequencer is there; return the router modules."""
    program = build.program
    if program.by_offset or any(form.part_is_root for form in program.forms):
        add_root_unit(build)
    add_nodes(build)
    if build.sources.results:
        add_combiners(build)
    routers = add_routers(build)
    if (build.topology.cycles_of_arc > 1).any():
        from .links import add_links

        add_links(build)
    build.distribution.add()
    return routers
