# amaranth: UnusedElaboratable=no
"""Fabrics that are not made of a core, by their tops: the parts that there are once.

The top with streams is in `torusfabric.rtl.streams.nodes`, those of loaded tables are in
`torusfabric.rtl.loaded.top`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from amaranth.hdl import Const, Module, Signal
from amaranth.lib.wiring import In, Out

from ..topology import CayleyGraph, cayley
from .fabric_builder import FabricBuilder
from .finders import HostLayout
from .host import add_host
from .memories import address_width, choose
from .netlist import Fixed, Leaf, Parts, Role, add_single
from .node_parts import add_combiners, add_endpoints, add_routers
from .sequencer import Sequencer
from .top import Built

__all__ = ["RootUnit", "add_core_top", "add_host_top", "add_inside", "add_sequencer",
           "add_status"]  # fmt: skip


def add_sequencer(
    build: FabricBuilder,
    given: Mapping[str, Parts],
    *,
    soon: int = 0,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add the sequencer, given what drives inputs that depend on the top."""
    make = lambda: Sequencer(
        [form.timing for form in build.program.forms],
        build.placement,
        build.choices,
        address_bits=build.address_bits,
        soon=soon,
        resets=build.resets,
        holds=build.hold > 0,
    )
    starts = {name: build.low(name, bits) for name, bits in
              {"start": 1, **build.choices.inputs}.items()}  # fmt: skip
    inputs = {**starts, **given}
    build.sequenced.update(add_single(build, "sequencer", Role.SEQUENCER, make, inputs, renamed))


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


def add_host_top(build: FabricBuilder, layouts: Sequence[HostLayout], outside: str = "") -> Built:
    """One memory-mapped port serves all nodes; `outside` is that of `add_host`."""
    add_starts(build)
    latency, finders = add_host(build, layouts, outside)
    # Of several forms, the sequencer takes it a cycle early.
    idle = "next_read_address" if build.program.several else "read_address"
    add_sequencer(build, {"idle_address": build.low(idle, build.address_bits)})
    routers = add_inside(build, add_endpoints)
    add_status(build)
    return Built(routers, latency, finders)


def add_core_top(build: FabricBuilder) -> Built:
    """Every node has a port to its memories."""
    add_starts(build)
    add_sequencer(build, {"idle_address": (Fixed(0, build.address_bits),)})
    routers = add_inside(build, add_endpoints)
    add_status(build)
    return Built(routers, 1 + build.placement.endpoints.answer)


def add_inside(
    build: FabricBuilder, add_nodes: Callable[[FabricBuilder], None]
) -> list[tuple[str, int]]:
    """What all tops stand around, once the sequencer is there; the modules of routers."""
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


def add_starts(build: FabricBuilder) -> None:
    """The inputs that start a run, and say which."""
    for name, bits in {"start": 1, **build.choices.inputs}.items():
        build.add_input(name, bits)
    if build.resets:
        build.add_input("reset_run")


def add_status(build: FabricBuilder) -> None:
    """The outputs that say what became of it."""
    for name in ("busy", "done", "cycles", "error", "round"):
        if name in build.sequenced:
            build.add_output(name, build.nets[name])
