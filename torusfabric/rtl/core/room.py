"""Room: programs that a writable core can carry out, and the bus that loads their tables.

With `room` a core has RAMs in place of ROMs. Nothing of its structure follows from the contents of
one program: each multiplexer has the inputs that any program of the room selects at any node, each
memory the words that any of them needs, and no two bits share a place.

A word of the load bus goes to a piece of a row of a table::

    table number = owner << kind bits | kind     owner: a node, or, behind the last, the sequencer
    row          = | .. | piece 1 | piece 0 |    a piece has the bits of a word of the bus
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import In, Member, Out

from ...errors import InputError
from ...program import Program
from ...program.fields import IDLE, Action
from ...topology import IntArray
from ..memories import address_width, fitting
from ..modules import Leaf
from .kinds import NodeKinds
from .rows import RowField, Rows

__all__ = ["LoadBus", "LoadWord", "RamColumns", "RoomKinds", "RoomRows", "TableRam"]

#: Bits of a word of the load bus.
WORD = 32


class LoadWord(NamedTuple):
    """A word for the load bus."""

    table: int
    row: int
    piece: int
    word: int


@dataclass(frozen=True)
class LoadBus:
    """The load bus of a writable core.

    Parameters
    ----------
    owners : int
        Nodes, and the sequencer behind them.
    kinds : int
        Tables of the owner that has most.
    rows : int
        Rows of the longest table.
    bits : int
        Bits of the widest row.

    Examples
    --------
    >>> bus = LoadBus(owners=10, kinds=3, rows=5, bits=40)
    >>> bus.inputs
    {'load_valid': 1, 'load_every': 1, 'load_table': 6, 'load_row': 3, 'load_piece': 1, \
'load_word': 32}
    >>> bus.number(owner=2, kind=1)
    9
    """

    owners: int
    kinds: int
    rows: int
    bits: int

    @property
    def kind_bits(self) -> int:
        """Bits of the number of a table among those of its owner."""
        return address_width(self.kinds)

    def number(self, owner: int, kind: int) -> int:
        """Return the number of a table."""
        return owner << self.kind_bits | kind

    @property
    def inputs(self) -> dict[str, int]:
        """The inputs of the bus, each with its width."""
        return {
            "load_valid": 1,
            "load_every": 1,
            "load_table": address_width(self.owners) + self.kind_bits,
            "load_row": address_width(self.rows),
            "load_piece": address_width(-(-self.bits // WORD)),
            "load_word": WORD,
        }

    def words(self, table: int, rows: Iterable[int], bits: int) -> Iterator[LoadWord]:
        """Yield the words that load a table."""
        for row, value in enumerate(rows):
            for piece in range(-(-bits // WORD)):
                yield LoadWord(table, row, piece, value >> WORD * piece & (1 << WORD) - 1)


class TableShape(NamedTuple):
    """A table that the load bus writes.

    Parameters
    ----------
    rows : sequence of int
        The rows that are there at first; 0 for those that follow.
    """

    name: str
    rows: Sequence[int]
    depth: int
    bits: int


def add_ram(
    m: Module, shape: TableShape, *, address: Value, chosen: Value, load: dict[str, Value]
) -> Value:
    """Add a table that the load bus writes; return the row, a cycle after its address.

    Parameters
    ----------
    chosen : Value
        High while the bus has a word for this table.
    load : dict of str to Value
        The signals of the bus.
    """
    pieces = -(-shape.bits // WORD)
    ram = memory.Memory(shape=pieces * WORD, depth=max(shape.depth, 2), init=[*shape.rows])
    ram.data.name = shape.name
    m.submodules[shape.name] = ram
    read, write = ram.read_port(), ram.write_port(granularity=WORD)
    enables = [chosen & (load["load_piece"] == piece) for piece in range(pieces)]
    m.d.comb += [
        read.addr.eq(fitting(address, len(read.addr))),
        write.addr.eq(fitting(load["load_row"], len(write.addr))),
        write.data.eq(load["load_word"].replicate(pieces)),
        write.en.eq(Cat(*enables)),
    ]
    return read.data[: shape.bits]


class TableRam(Leaf):
    """A table of a node that the load bus writes.

    Members
    -------
    number : In
        The number of the table.
    address : In
    load_valid, load_every, load_table, load_row, load_piece, load_word : In
        The load bus.
    data : Out(bits)
        The row, a cycle after its address.
    """

    def __init__(self, bus: LoadBus, rows: int, bits: int) -> None:
        self._bus, self._rows, self._bits = bus, rows, bits
        members: dict[str, Member] = {name: In(width) for name, width in bus.inputs.items()}
        members |= {"number": In(bus.inputs["load_table"]), "address": In(address_width(rows))}
        super().__init__(members | {"data": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        """Build the table."""
        m, kind = Module(), self._bus.kind_bits
        load = {name: self.value(name) for name in self._bus.inputs}
        table, number = load["load_table"], self.value("number")
        mine = (table[:kind] == number[:kind]) & (
            load["load_every"] | (table[kind:] == number[kind:])
        )
        row = add_ram(
            m,
            TableShape("rows", (), self._rows, self._bits),
            address=self.value("address"),
            chosen=load["load_valid"] & mine,
            load=load,
        )
        m.d.comb += self.data.eq(row)
        return m


class RamColumns:
    """Columns of the sequencer in a table that the load bus writes.

    Parameters
    ----------
    address : Value
        The row.
    """

    def __init__(self, address: Value) -> None:
        self._address = address
        self.columns: list[tuple[IntArray, Signal]] = []

    def read(self, values: IntArray, bits: int = 1) -> Value:
        """Return a value a cycle after its row."""
        signal = Signal(bits, name=f"column_{len(self.columns)}")
        self.columns.append((values, signal))
        return signal

    @property
    def bits(self) -> int:
        """Bits of a row."""
        return sum(len(signal) for _, signal in self.columns)

    @property
    def rows(self) -> list[int]:
        """The rows of the program that is there at first."""
        shift, found = 0, [0] * len(self.columns[0][0])
        for values, signal in self.columns:
            found = [row | int(value) << shift for row, value in zip(found, values, strict=True)]
            shift += len(signal)
        return found

    def build(self, m: Module, name: str, *, chosen: Value, load: dict[str, Value]) -> None:
        """Add the table."""
        rows = self.rows
        shape = TableShape(name, rows, len(rows), self.bits)
        row = add_ram(m, shape, address=self._address, chosen=chosen, load=load)
        m.d.comb += Cat(*(signal for _, signal in self.columns)).eq(row)


class RoomRows(Rows):
    """The rows of the programs of a room: their variants side by side.

    All programs have the same forms, rows, blocks, pauses, memories and sources.

    Parameters
    ----------
    programs : sequence of Program
        The first is there before anything is loaded.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        super().__init__(programs[0])
        self.each = [Rows(program) for program in programs]
        for rows in self.each[1:]:
            self._check(rows)
        self.depth = np.concatenate([rows.depth for rows in self.each])
        counts = [len(rows.used) for rows in self.each]
        self.firsts = np.cumsum(counts) - counts

    def _check(self, rows: Rows) -> None:
        """Refuse a program that does not fit."""
        for mine, theirs in zip(self.loops, rows.loops, strict=True):
            same = mine.order is theirs.order and mine.sources == theirs.sources
            same = same and (mine.flits, mine.least, mine.padded, mine.pitch) == (
                theirs.flits, theirs.least, theirs.padded, theirs.pitch
            )  # fmt: skip
            same = same and np.array_equal(mine.blocks, theirs.blocks)
            if not (same and np.array_equal(mine.pause, theirs.pause)):
                raise InputError("Programs of a room must have equal rows, blocks and sources")
        if rows.memories != self.memories:
            raise InputError("Programs of a room must have equal memories")

    def _joined(self, action: Action, number: int) -> RowField | None:
        """Return the values of a control point in all variants of all programs."""
        fields = [rows.field(action, number) for rows in self.each]
        delays = {field.delays for field in fields if field is not None}
        if not delays:
            return None
        if len(delays) > 1:
            raise InputError("Programs of a room must have equal delays")
        values = [
            np.full((self.count, len(rows.used)), IDLE) if field is None else field.values
            for field, rows in zip(fields, self.each, strict=True)
        ]
        return RowField(np.concatenate(values, axis=1), delays.pop())


class RoomKinds(NodeKinds):
    """The one kind of nodes of a writable core: each may carry out any variant of the room."""

    def __init__(self, rows: RoomRows) -> None:
        super().__init__(rows)
        self._room = rows
        nodes = rows.program.topology.nodes
        self.kind_of = np.zeros(nodes, int)
        variants = np.arange(len(rows.depth))
        self.variants = np.broadcast_to(variants, (1, rows.count, len(variants)))
        received = [NodeKinds(each).received for each in rows.each]
        self.__dict__["received"] = (
            frozenset[int]().union(*(kind for each in received for kind in each)),
        )

    def choice(self, program: int, nodes: IntArray) -> IntArray:
        """Return the choice that each node has to be loaded with for a program of the room."""
        rows = self._room.each[program]
        found: IntArray = self._room.firsts[program] + np.searchsorted(
            rows.used, rows.program.variant_of[nodes]
        )
        return found
