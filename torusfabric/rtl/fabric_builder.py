"""Building the netlist of a fabric: what its builders share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..program import RouteMap
from ..program.fields import Order
from ..schedule.model import Choice
from ..topology import cayley
from .distribution import Distribution
from .endpoint import Endpoint, EndpointSettings
from .memories import address_width
from .netlist import NetlistBuilder, Part
from .run_choices import RunChoices

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..program import Program
    from ..program.fields import Loop, Sources
    from ..topology import Groups, Topology
    from ..topology.boards import Boards
    from .endpoint_shape import EndpointShape
    from .endpoint_wires import EndpointWires
    from .operator_unit import OperatorUnit
    from .place import RowTables
    from .placement import Placement

__all__ = ["FabricBuilder", "Top", "is_direct"]

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


class FabricBuilder(NetlistBuilder):
    """Takes the parts of the netlist of a fabric, and knows what they are parts of.

    Parameters
    ----------
    width : int
        Bits of a flit.
    boards : Boards, optional
        Those that the nodes lie on, of which one is built.
    board : int
        Its number.
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
        self._offset_roms: dict[object, Rows] = {}

    @property
    def endpoint(self) -> Callable[[EndpointShape, EndpointSettings], Endpoint]:
        """What endpoints are."""
        return Endpoint

    @property
    def operator_unit(self) -> OperatorUnit | None:
        """What combines words, where anything does."""
        if not self.program.operators:
            return None
        from .operator_unit import OperatorUnit

        return OperatorUnit(self.program.operators)

    @cached_property
    def choices(self) -> RunChoices:
        """What is chosen at the start of a run."""
        return RunChoices.of(self.program, by_form=self.top is Top.STREAM)

    @property
    def loop(self) -> Loop:
        """The rows of the program."""
        return self.program.loop

    @property
    def sources(self) -> Sources:
        """What out-ports, operators and memories select from."""
        return self.program.loop.sources

    @property
    def topology(self) -> Topology:
        """The topology."""
        return self.program.topology

    @property
    def groups(self) -> Groups:
        """The groups of nodes that carry out the program."""
        return self.program.groups

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.here)

    @property
    def ports(self) -> int:
        """Ports of a node."""
        return self.program.topology.ports

    @cached_property
    def address_bits(self) -> int:
        """Bits of the address of a memory."""
        return address_width(int(self.program.depth.max()))

    @cached_property
    def variant_of(self) -> list[int]:
        """The variant of each node; with any root, that of the node at each offset from it."""
        return [int(variant) for variant in self.program.variant_of[self.here]]

    @cached_property
    def _senders(self) -> list[list[tuple[int, int]]]:
        """The node and the out-port from which words come by each in-port of each node.

        Of an in-port that another board sends to, they are -1 and the number of the link port.
        """
        ends = np.stack(self.topology.upstream, axis=2)[self.here].tolist()
        number = {node: k for k, node in enumerate(self.here)}
        senders = [[(number.get(there, -1), port) for there, port in row] for row in ends]
        for link, (node, port) in enumerate(self.boards.links if self.boards else ()):
            senders[node][port] = -1, link
        return senders

    def arriving(self, node: int, what: str = "tx", width: int | None = None) -> tuple[Part, ...]:
        """The words at a node's in-ports, or whatever else its neighbours send: slices of that."""
        if what == "tx":
            return self._arriving[node]
        sent = self._senders[node]
        bits = width or self.width
        return tuple(Part(f"{what}_{there}", port * bits, bits) for there, port in sent)

    @cached_property
    def _arriving(self) -> list[tuple[Part, ...]]:
        """The words at the in-ports of each node."""
        return [tuple(self.link_end(*sender) for sender in row) for row in self._senders]

    def link_end(self, node: int, port: int) -> Part:
        """The word that comes out of the link behind an out-port, or comes from another board."""
        if node < 0:
            return Part(f"received_{port}", 0, self.width)
        if self.topology.cycles_of_arc[node, port] == 1:
            return Part(f"tx_{node}", port * self.width, self.width)
        return Part(f"arrived_{port}_{node}", 0, self.width)

    def endpoint_wires(self, node: int) -> EndpointWires:
        """Which points of a node stand at the places of the module of its endpoint."""
        return self.placement.endpoints.wires[self.variant_of[node]]

    def incoming(self, node: int, chosen: Sequence[int]) -> tuple[Part, ...]:
        """Words that a node stores: at its in-ports, or their results."""
        arriving, results = self.arriving(node), self.sources.first_result
        return tuple(
            arriving[source]
            if source < self.ports
            else Part(f"result_{node}", (source - results) * self.width, self.width)
            for source in chosen
        )

    def injected(self, node: int, chosen: tuple[int, ...]) -> tuple[Part, ...]:
        """The words of injection ports of a node."""
        if not self.streaming:
            chosen = tuple(map(self.endpoint_wires(node).injections.index, chosen))
        return tuple(Part(f"inject_{node}", k * self.width, self.width) for k in chosen)

    @property
    def streaming(self) -> bool:
        """Whether nodes have ports for what they send and receive, in place of endpoints."""
        return self.top is Top.CORE and is_direct(self.program)

    def read_net(self, node: int) -> str:
        """The net of the word read at a node."""
        alone = self.nodes == 1 and self.top is Top.HOST
        return "host_rdata" if alone else f"read_data_{node}"

    def offset(self, node: int) -> tuple[Part, ...]:
        """The offset of a node from the root of its group: one coordinate after the other."""
        groups = self.program.root_groups
        position = groups.position[[self.here[node]]]
        coordinates = cayley(groups.torus).coordinates(position)[:, 0].tolist()
        names = [f"offset_{axis}_{coordinate}" for axis, coordinate in enumerate(coordinates)]
        return tuple(Part(name, 0, self.nets[name]) for name in names)

    def add_row_rom(self, net: str, node: int, row: str, bits: int, tables: RowTables) -> None:
        """A ROM of a node that the sequencer steps through.

        Where any form is by offset, it has room for all offsets, and shows what is for that of the
        node.

        Parameters
        ----------
        net : str
            That shows what is read.
        row : str
            The net of the row, of which the node has a ROM.
        """
        address, variant = self.distribution.near(row, node), self.variant_of[node]
        rows = tables.contents[variant]
        if self.program.by_offset:
            key = row, sum(part.width for part in address), variant * self._mixed
            if key not in self._offset_roms:
                self._offset_roms[key] = self._by_offset(tables, *key[1:])
            rows, address = self._offset_roms[key], address + self.offset(node)
        self.add_rom(f"rom_{net}", rows=rows, width=bits, address=address, output=net, node=node)

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
