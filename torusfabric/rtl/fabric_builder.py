"""The netlist of a fabric that is not made of a core, as it is built."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import zip_longest
from typing import TypeAlias

import numpy as np

from ..program import Program
from ..topology import IntArray, cayley
from .arrays import OneOf, Slice
from .distribution import Distribution, Words
from .memories import address_width
from .netlist import NetlistBuilder, Part
from .operator_unit import OperatorUnit
from .place import RowTables
from .placement import Placement
from .run_choices import RunChoices
from .top import Top

__all__ = ["AddRows", "FabricBuilder", "add_row_roms"]

#: What adds tables of rows at nodes, as `add_row_roms`.
AddRows: TypeAlias = "Callable[[FabricBuilder, str, IntArray, str, int, RowTables], None]"


def add_row_roms(
    build: FabricBuilder, name: str, nodes: IntArray, row: str, bits: int, tables: RowTables
) -> None:
    """A ROM of each of some nodes that the sequencer steps through.

    Where any form is by offset, it has room for all offsets, and shows what is for that of the
    node.

    Parameters
    ----------
    name : str
        Of the nets that show what is read, without the number of the node.
    row : str
        The net of the row, of which each node has a ROM.
    """
    address: tuple[Slice, ...] = (build.distribution.near_each(row, nodes),)
    different, which = np.unique(build.variant_of[nodes], return_inverse=True)
    rows = [tables.contents[variant] for variant in different.tolist()]
    if build.program.by_offset:
        kept = different if _mixed(build.program) else [0] * len(different)
        known = {variant: contents_by_offset(build.program, tables, address[0].width, variant)
                 for variant in {*map(int, kept)}}  # fmt: skip
        rows = [known[int(variant)] for variant in kept]
        address += build.offset(nodes)
    contents = {each: number for number, each in enumerate(dict.fromkeys(rows))}
    build.add_roms(
        f"rom_{name}_{{}}",
        nodes,
        contents=[*contents],
        which=np.array([contents[each] for each in rows])[which.ravel()],
        width=bits,
        address=address,
        output=f"{name}_{{}}",
    )


def _mixed(program: Program) -> bool:
    """Whether what a node does depends on its offset from the root in some forms only."""
    return len({form.by_offset for form in program.forms}) > 1


def contents_by_offset(
    program: Program, tables: RowTables, bits: int, variant: int
) -> tuple[int, ...]:
    """Contents for all offsets, addressed by so many bits and then by coordinates."""
    groups = program.root_groups
    torus = cayley(groups.torus)
    coordinates = torus.coordinates(np.arange(groups.size))
    key, shift = np.zeros(groups.size, int), bits
    for coordinate, side in zip(coordinates, torus.moduli, strict=True):
        key |= coordinate << shift
        shift += address_width(side)
    by_offset = [program.forms[form].by_offset for form in tables.forms]
    table = [0] * (int(key.max()) + (1 << bits))
    for offset, start in enumerate(key.tolist()):
        rows = tables.contents[int(program.variant_at[groups.members[0, offset]])]
        if _mixed(program):
            rows = tuple(
                chosen if here else fixed
                for chosen, fixed, here in zip_longest(
                    rows, tables.contents[variant], by_offset, fillvalue=0
                )
            )
        table[start : start + len(rows)] = rows
    return tuple(table)


class FabricBuilder(NetlistBuilder):
    """Takes the parts of the netlist of a fabric, and knows what they are parts of.

    Parameters
    ----------
    width : int
        Bits of a flit.
    resets : bool
        Whether an input ends runs early.
    add_rows : function
        What adds a table of rows at each of some nodes, as `add_row_roms`.

    Attributes
    ----------
    variant_of : ndarray of int, shape (nodes,)
        With any root, that of the node at each offset from it.
    beat, word : int
        Flits that nodes are given, and show, at a time; bits of as many.
    sequenced : dict of str to tuple of Part
        What the sequencer gives, by the name of its output, once it is there.
    from_host : list of str
        What the host port gives to all nodes, once it is there.
    distribution : Distribution
        The registers between what there is once and the nodes.
    """

    def __init__(
        self,
        program: Program,
        placement: Placement,
        width: int,
        top: Top,
        *,
        resets: bool = False,
        add_rows: AddRows = add_row_roms,
    ) -> None:
        super().__init__()
        self.program, self.placement, self.width, self.top = program, placement, width, top
        self.resets, self.add_rows = resets, partial(add_rows, self)
        self.topology, self.sources = program.topology, program.loop.sources
        self.ports = self.topology.ports
        self.nodes, self.variant_of = self.topology.nodes, program.variant_of
        self.beat = placement.endpoints.shapes[0].beat
        self.word = self.beat * width
        self.address_bits = address_width(int(program.depth.max()))
        self.sequenced: dict[str, tuple[Part, ...]] = {}
        self.from_host: list[str] = []
        #: The net of the word read at each node.
        self.read_net = "read_data_{}"
        self.distribution = Distribution(self, self.nodes)

    @property
    def operator_unit(self) -> OperatorUnit | None:
        """What combines words, where anything does."""
        # Anything may be combined, whatever is loaded.
        frame = self.placement.frame
        operators = frame.parsed_operators() if frame else self.program.operators
        return OperatorUnit(operators) if operators else None

    @property
    def answer(self) -> int:
        """Cycles from a read at the inputs of a node to its word."""
        return self.placement.endpoints.answer

    @cached_property
    def choices(self) -> RunChoices:
        """What is chosen at the start of a run."""
        if self.placement.frame:
            return RunChoices.of_frame(self.placement.frame)
        return RunChoices.of(self.program, by_form=self.top is Top.STREAM)

    @cached_property
    def senders(self) -> IntArray:
        """The node and the out-port from which words come by each in-port of each node.

        Returns
        -------
        ndarray of int, shape (nodes, ports, 2)
        """
        return np.stack(self.topology.upstream, axis=2)

    @cached_property
    def _arriving(self) -> Words:
        """The words at the in-ports of each node: what comes out of links."""
        there, port = np.moveaxis(self.senders, 2, 0)
        nets = ["tx_{}", *(f"arrived_{k}_{{}}" for k in range(self.ports))]
        which = np.where(self.topology.cycles_of_arc[there, port] > 1, 1 + port, 0)
        return Words(nets, which, there, np.where(which == 0, port * self.width, 0))

    def arriving(self, nodes: IntArray) -> list[Slice | OneOf]:
        """The words at the in-ports of some nodes."""
        return self.words(nodes, np.tile(np.arange(self.ports), (len(nodes), 1)))

    def words(self, nodes: IntArray, chosen: IntArray) -> list[Slice | OneOf]:
        """Words of some nodes: at in-ports, results, what operators make, or what is injected.

        Parameters
        ----------
        chosen : ndarray of int, shape (nodes, words)
            The sources of each node.
        """
        came, sources = self._arriving, self.sources
        first = np.array([0, sources.first_result, sources.first_made, sources.first_injection])
        stage = np.searchsorted(first, chosen, side="right") - 1
        number = chosen - first[stage]
        injected = chosen >= sources.first_injection
        if injected.any():
            different, which = np.unique(self.variant_of[nodes], return_inverse=True)
            place = np.zeros((len(different), len(sources.injections)), int)
            for row, variant in enumerate(different.tolist()):
                ports = self.placement.endpoints.wires[variant].injections
                place[row, [*ports]] = np.arange(len(ports))
            at = place[which.ravel()[:, None], np.where(injected, number, 0)]
            number = np.where(injected, at, number)
        port = np.where(stage == 0, chosen, 0)
        own = stage > 0
        which, index, start = (
            np.where(own, mine, np.take_along_axis(each[nodes], port, 1))
            for mine, each in zip(
                (len(came.nets) - 1 + stage, nodes[:, None], number * self.width),
                came[1:],
                strict=True,
            )
        )
        nets = [*came.nets, "result_{}", "made_{}", "inject_{}"]
        return Words(nets, which, index, start).slices(self.width)

    @cached_property
    def columns(self) -> dict[str, list[int]]:
        """The columns of the sequencer by which nodes read and store, by their names."""
        endpoints = self.placement.endpoints
        every = [endpoints.wires[variant] for variant in np.unique(self.variant_of).tolist()]
        store = {column for wires in every for column in wires.strobes}
        ends = {endpoints.ends[column] for column in store} if endpoints.ends else set[int]()
        read = {column for wires in every for column in wires.reads}
        return {"read": sorted(read), "store": sorted(store), "ends": sorted(ends)}

    def offset(self, nodes: IntArray) -> tuple[Slice, ...]:
        """The offset of each node from the root of its group: one coordinate after the other."""
        groups = self.program.root_groups
        coordinates = cayley(groups.torus).coordinates(groups.position[nodes])
        return tuple(
            Slice(f"offset_{axis}_{{}}", at, 0, self.nets[f"offset_{axis}_0"])
            for axis, at in enumerate(coordinates)
        )
