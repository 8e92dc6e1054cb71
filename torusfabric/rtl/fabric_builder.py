"""Building the netlist of a fabric: what its builders share."""

from __future__ import annotations

from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..program import RouteMap
from ..program.fields import Order
from ..schedule.model import Choice
from ..topology import IntArray, cayley
from .arrays import OneOf, Slice
from .distribution import Distribution
from .memories import address_width
from .netlist import NetlistBuilder, Part
from .run_choices import RunChoices

if TYPE_CHECKING:
    from ..program import Program
    from ..program.fields import Sources
    from ..program.frame import Frame
    from ..topology import Topology
    from ..topology.boards import Boards
    from .operator_unit import OperatorUnit
    from .place import RowTables
    from .placement import Placement

__all__ = ["FabricBuilder", "Top", "Words", "is_direct"]

#: The rows of a ROM.
Rows: TypeAlias = tuple[int, ...]


class Top(Choice):
    """The interface of a fabric."""

    #: One memory-mapped port serves all nodes.
    HOST = "host"
    #: Every node has ports of its own.
    CORE = "core"
    #: Every node has a stream of what it sends, and one of what it receives.
    STREAM = "stream"


def is_direct(program: Program) -> bool:
    """Whether nodes of a core have ports for what they send and receive, in place of memories."""
    return isinstance(program.form.receive_map, RouteMap) and program.loop.order is Order.FLIT


class Words(NamedTuple):
    """Words of nodes, one column for each place in an input.

    Parameters
    ----------
    which, number, start : ndarray of int, shape (nodes, words)
        The net of each word, the number that stands in its name, and the lowest bit.
    """

    nets: list[str]
    which: IntArray
    number: IntArray
    start: IntArray

    def slices(self, width: int) -> list[Slice | OneOf]:
        """Each column as a slice, or one of several."""
        found: list[Slice | OneOf] = []
        for which, number, start in zip(self.which.T, self.number.T, self.start.T, strict=True):
            used, of_each = np.unique(which, return_inverse=True)
            slices = tuple(Slice.made(self.nets[k], number, start, width) for k in used.tolist())
            found.append(slices[0] if len(slices) == 1 else OneOf(slices, of_each.ravel()))
        return found


class FabricBuilder(NetlistBuilder):
    """Takes the parts of the netlist of a fabric, and knows what they are parts of.

    Parameters
    ----------
    width : int
        Bits of a flit.
    boards : Boards, optional
        Those that the nodes lie on, of which one is built.
    abort : bool
        Whether runs can be aborted.

    Attributes
    ----------
    here : list of int
        The nodes that are built. They are numbered anew, in this order: all other names and
        numbers of nodes are those on the board.
    sequenced : dict of str to tuple of Part
        What the sequencer gives, by the name of its output, once it is there.
    from_host : list of str
        What the host port gives to all nodes, once it is there.
    distribution : Distribution
        The registers between what there is once and the nodes.
    """

    #: What may be loaded, where tables are.
    frame: Frame | None = None

    def __init__(
        self,
        program: Program,
        placement: Placement,
        width: int,
        top: Top,
        boards: Boards | None = None,
        *,
        board: int = 0,
        abort: bool = False,
    ) -> None:
        super().__init__()
        self.abort = abort
        self.program, self.placement, self.width, self.top = program, placement, width, top
        self.boards = boards
        self.here = boards.nodes[board].tolist() if boards else [*range(program.topology.nodes)]
        self.sequenced: dict[str, tuple[Part, ...]] = {}
        self.from_host: list[str] = []
        self.distribution = Distribution(self, self.nodes)

    @property
    def operator_unit(self) -> OperatorUnit | None:
        """What combines words, where anything does."""
        # Anything may be combined, whatever is loaded.
        operators = self.frame.parsed_operators() if self.frame else self.program.operators
        if not operators:
            return None
        from .operator_unit import OperatorUnit

        return OperatorUnit(operators)

    @cached_property
    def choices(self) -> RunChoices:
        """What is chosen at the start of a run."""
        return RunChoices.of(self.program, by_form=self.top is Top.STREAM)

    @property
    def sources(self) -> Sources:
        """What out-ports, operators and memories select from."""
        return self.program.loop.sources

    @property
    def topology(self) -> Topology:
        """The topology."""
        return self.program.topology

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.here)

    @property
    def ports(self) -> int:
        """Ports of a node."""
        return self.program.topology.ports

    @property
    def beat(self) -> int:
        """Flits that nodes are given, and show, at a time."""
        return self.placement.endpoints.shapes[0].beat

    @property
    def word(self) -> int:
        """Bits of as many."""
        return self.beat * self.width

    @cached_property
    def address_bits(self) -> int:
        """Bits of the address of a memory."""
        return address_width(int(self.program.depth.max()))

    @cached_property
    def variant_of(self) -> IntArray:
        """The variant of each node; with any root, that of the node at each offset from it."""
        return self.program.variant_of[self.here]

    @cached_property
    def senders(self) -> IntArray:
        """The node and the out-port from which words come by each in-port of each node.

        Of an in-port that another board sends to, they are -1 and the number of the link port.

        Returns
        -------
        ndarray of int, shape (nodes, ports, 2)
        """
        ends: IntArray = np.stack(self.topology.upstream, axis=2)[self.here]
        number = np.full(self.topology.nodes + 1, -1)  # the last for where there is no node
        number[self.here] = np.arange(self.nodes)
        ends[..., 0] = number[ends[..., 0]]
        for link, (node, port) in enumerate(self.boards.links if self.boards else ()):
            ends[node, port] = -1, link
        return ends

    @cached_property
    def _arriving(self) -> Words:
        """The words at the in-ports of each node: what comes out of links."""
        there, port = np.moveaxis(self.senders, 2, 0)
        nets = ["tx_{}", "received_{}", *(f"arrived_{k}_{{}}" for k in range(self.ports))]
        cycles = self.topology.cycles_of_arc[there, np.where(there < 0, 0, port)]
        which = np.where(there < 0, 1, np.where(cycles > 1, 2 + port, 0))
        index = np.where(there < 0, port, there)
        return Words(nets, which, index, np.where(which == 0, port * self.width, 0))

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
        if injected.any() and not self.streaming:
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

    @property
    def streaming(self) -> bool:
        """Whether nodes have ports for what they send and receive, in place of endpoints."""
        return self.top is Top.CORE and is_direct(self.program)

    @cached_property
    def columns(self) -> dict[str, list[int]]:
        """The columns of the sequencer by which nodes read and store, by their names."""
        endpoints = self.placement.endpoints
        every = [endpoints.wires[variant] for variant in np.unique(self.variant_of).tolist()]
        store = {column for wires in every for column in wires.strobes}
        ends = {endpoints.ends[column] for column in store} if endpoints.ends else set[int]()
        read = {column for wires in every for column in wires.reads}
        return {"read": sorted(read), "store": sorted(store), "ends": sorted(ends)}

    @property
    def read_net(self) -> str:
        """The net of the word read at each node."""
        alone = self.nodes == 1 and self.top is Top.HOST
        return "host_rdata" if alone else "read_data_{}"

    def offset(self, nodes: IntArray) -> tuple[Slice, ...]:
        """The offset of each node from the root of its group: one coordinate after the other."""
        groups = self.program.root_groups
        coordinates = cayley(groups.torus).coordinates(groups.position[np.array(self.here)[nodes]])
        return tuple(
            Slice(f"offset_{axis}_{{}}", at, 0, self.nets[f"offset_{axis}_0"])
            for axis, at in enumerate(coordinates)
        )

    def add_row_roms(
        self, name: str, nodes: IntArray, row: str, bits: int, tables: RowTables
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
        address: tuple[Slice, ...] = (self.distribution.near_each(row, nodes),)
        different, which = np.unique(self.variant_of[nodes], return_inverse=True)
        rows = [tables.contents[variant] for variant in different.tolist()]
        if self.program.by_offset:
            kept = different if self._mixed else [0] * len(different)
            known = {variant: self._by_offset(tables, address[0].width, variant)
                     for variant in {*map(int, kept)}}  # fmt: skip
            rows = [known[int(variant)] for variant in kept]
            address += self.offset(nodes)
        contents = {each: number for number, each in enumerate(dict.fromkeys(rows))}
        self.add_roms(
            f"rom_{name}_{{}}",
            nodes,
            contents=[*contents],
            which=np.array([contents[each] for each in rows])[which.ravel()],
            width=bits,
            address=address,
            output=f"{name}_{{}}",
        )

    @property
    def _mixed(self) -> bool:
        """Whether what a node does depends on its offset from the root in some forms only."""
        return len({form.by_offset for form in self.program.forms}) > 1

    def _by_offset(self, tables: RowTables, bits: int, variant: int) -> Rows:
        """Contents for all offsets, addressed by so many bits and then by coordinates."""
        program, groups = self.program, self.program.root_groups
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
            if self._mixed:
                rows = tuple(
                    chosen if here else fixed
                    for chosen, fixed, here in zip_longest(
                        rows, tables.contents[variant], by_offset, fillvalue=0
                    )
                )
            table[start : start + len(rows)] = rows
        return tuple(table)
