"""Where each bit of a value lies: a constant, a column of the sequencer, or a table at the node.

This is the one way in which a core finds a value. A *column* is a bit that the sequencer sends to
all nodes; it serves where all nodes that know the value agree. A *table* of a node is a ROM, or a
RAM that is loaded, addressed by the row and, with any root, by the choice of the node. Nodes of one
*family* share a module: a bit is a constant only if it is the same at all of them, and what differs
between them is the contents of their tables.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...topology import IntArray
from .rows import Delays, Rows, later

__all__ = ["AddressColumn", "Bit", "BitPlacer", "Columns", "MemberDelays", "NodeTable", "Place"]


class MemberDelays(NamedTuple):
    """The delays of a value at each kind of a family.

    Parameters
    ----------
    distinct : tuple of Delays
        Different delays, each once.
    which : ndarray of int, shape (members,)
        The number of the delays of each kind among these.
    """

    distinct: tuple[Delays, ...]
    which: IntArray

    @classmethod
    def alike(cls, delays: Delays, members: int) -> MemberDelays:
        """Return delays that all kinds have."""
        return cls((delays,), np.zeros(members, int))

    @classmethod
    def from_numbers(cls, numbers: IntArray, delays: Callable[[int], Delays]) -> MemberDelays:
        """Return the delays that a function gives for the number of each kind."""
        distinct, which = np.unique(numbers, return_inverse=True)
        return cls(tuple(map(delays, distinct.tolist())), np.asarray(which).ravel())

    def later(self, cycles: int) -> MemberDelays:
        """Return delays that are some cycles longer."""
        return MemberDelays(tuple(later(each, cycles) for each in self.distinct), self.which)

    @property
    def key(self) -> object:
        """A value that is equal for equal delays."""
        return self.distinct, self.which.tobytes()


class Place(enum.Enum):
    """The place of a bit."""

    CONSTANT = "constant"
    COLUMN = "column"
    TABLE = "table"


class Bit(NamedTuple):
    """A bit of a value.

    Parameters
    ----------
    number : int
        The constant itself, the slot of the column, or the bit of the table.
    table : int
        Among those of the module, if the bit is in one.
    held : int
        Cycles by which the table shows the bit too early.
    """

    place: Place
    number: int
    table: int = 0
    held: int = 0


class BitColumn(NamedTuple):
    """A bit by row, -1 where it does not matter, and its delays."""

    values: IntArray
    delays: Delays


def _compatible(a: IntArray, b: IntArray) -> bool:
    """Return True if two arrays agree wherever both are known."""
    return bool(((a == b) | (a < 0) | (b < 0)).all())


class AddressColumn(NamedTuple):
    """An address that the sequencer sends to all nodes.

    Parameters
    ----------
    first : ndarray of int, shape (rows,)
        The first address of each row, -1 where it does not matter.
    delays, pitch : tuple of int
        For each form.
    bits : int
        Of an address of the largest memory that is given it.
    """

    first: IntArray
    delays: Delays
    pitch: Delays
    bits: int


class Columns:
    """Everything that the sequencer sends to all nodes.

    Attributes
    ----------
    bits : list of BitColumn
        Single bits, such as select bits.
    addresses : list of AddressColumn
    words : list of (Delays, Delays)
        Word counters: their delays, and the pitch by which they count.
    rows : list of Delays
        The number of the row, for tables of nodes.
    valids : list of Delays
        High while words of a row are under way.
    asked : set of int
        Addresses by which a shared memory port reads while no run is under way.
    address_bits, word_bits : list of int
        Bits of each address and word counter, once they are settled.

    Parameters
    ----------
    by_setting : bool
        True if nodes have a loaded table for each purpose, see `room`.
    shared : bool
        True if one memory port serves all nodes, so that it may read by addresses that these have.
    """

    def __init__(self, *, by_setting: bool = False, shared: bool = False) -> None:
        self.by_setting, self.shared = by_setting, shared
        self.bits: list[BitColumn] = []
        self.addresses: list[AddressColumn] = []
        self.words: list[tuple[Delays, Delays]] = []
        self.rows: list[Delays] = []
        self.valids: list[Delays] = []
        self.asked: set[int] = set()
        self.address_bits: list[int] = []
        self.word_bits: list[int] = []

    def settle(self, rows: Rows, placers: Sequence[BitPlacer]) -> None:
        """Find the bits of addresses and word counters, once all are known.

        Columns of which a module takes one or another, by the node, are of one width, and the
        memory port reads by all of them or by none.
        """
        slots = [{*np.unique(each).tolist()} for placer in placers for each in placer.address_slots]
        while mixed := [each for each in slots if each & self.asked and not each <= self.asked]:
            self.asked |= set[int]().union(*mixed)
        for number, address in enumerate(self.addresses):
            most = max(int(address.first.max()), 0) + rows.most_word(address.pitch)
            bits = address.bits if number in self.asked else min(most.bit_length(), address.bits)
            self.address_bits.append(max(bits, 1))
        for numbers in slots * (len(self.addresses) - 1):
            widest = max(self.address_bits[number] for number in numbers)
            for number in numbers:
                self.address_bits[number] = widest
        self.word_bits = [max(rows.most_word(pitch).bit_length(), 1) for _, pitch in self.words]

    def add_bit(self, values: IntArray, delays: Delays) -> int:
        """Return the number of a column for a bit; a column serves all bits that agree with it."""
        for number, known in enumerate(self.bits):
            if known.delays == delays and _compatible(known.values, values):
                self.bits[number] = BitColumn(np.maximum(known.values, values), delays)
                return number
        self.bits.append(BitColumn(values, delays))
        return len(self.bits) - 1

    def add_address(self, first: IntArray, delays: Delays, pitch: Delays, bits: int) -> int:
        """Return the number of a column of addresses."""
        for number, known in enumerate(self.addresses):
            if (known.delays, known.pitch) == (delays, pitch) and _compatible(known.first, first):
                both = np.maximum(known.first, first)
                self.addresses[number] = AddressColumn(both, delays, pitch, max(known.bits, bits))
                return number
        self.addresses.append(AddressColumn(first, delays, pitch, bits))
        return len(self.addresses) - 1

    def address_name(self, numbers: Iterable[int], index: int) -> str:
        """Return the name of an address, given the columns that it may come from."""
        return f"{'read' if {*numbers} <= self.asked else 'address'}_{index}"

    def add_word(self, delays: Delays, pitch: Delays) -> int:
        """Return the number of a word counter."""
        return _add(self.words, (delays, pitch))

    def add_row(self, delays: Delays) -> int:
        """Return the number of a row signal."""
        return _add(self.rows, delays)

    def add_valid(self, delays: Delays) -> int:
        """Return the number of a strobe."""
        return _add(self.valids, delays)


def _add(known: list, value: object) -> int:  # type: ignore[type-arg]
    """Return the index of a value in a list, which it is added to if it is new."""
    if value not in known:
        known.append(value)
    return known.index(value)


@dataclass
class NodeTable:
    """A table at each node of a family.

    Parameters
    ----------
    delays : MemberDelays
        From the slot of a row to the cycle in which the table shows it.
    by_row, by_choice : bool
        True if its contents depend on the row, and on the choice of the node.
    name : str
        The purpose of a loaded table, see `room.SettingTable`.
    columns : list of ndarray of int, shape (members, rows, choices)
        Its bits, -1 where they do not matter; one row, or choice, where these do not count.
    """

    delays: MemberDelays
    by_row: bool
    by_choice: bool
    name: str = ""
    columns: list[IntArray] = field(default_factory=list)

    def add(self, values: IntArray) -> int:
        """Return the number of a bit; one serves all bits that agree with it."""
        for number, known in enumerate(self.columns):
            if _compatible(known, values):
                self.columns[number] = np.maximum(known, values)
                return number
        self.columns.append(values)
        return len(self.columns) - 1

    def contents(self, row_bits: int) -> tuple[list[tuple[int, ...]], IntArray]:
        """Return the different contents, choice after choice, and which each member has."""
        whole, which = np.unique(
            np.maximum(np.stack(self.columns, axis=-1), 0).astype(np.int8),
            axis=0,
            return_inverse=True,
        )
        if self.by_row and self.by_choice:
            missing = (1 << row_bits) - whole.shape[1]
            whole = np.pad(whole, ((0, 0), (0, missing), (0, 0), (0, 0)))
        shifts = 1 << np.arange(len(self.columns), dtype=object)
        words = (whole.astype(object) * shifts).sum(axis=-1)
        return [tuple(map(int, each.T.ravel())) for each in words], np.asarray(which).ravel()


class BitPlacer:
    """Finds the places of the bits that a module of a family is given.

    A signal of the sequencer is a *slot* of the module: where the module has one address, say, it
    may come from another column of the sequencer, with other delays, at each kind of the family.

    Parameters
    ----------
    many : bool
        True if the family has at least as many nodes as there are groups of nodes, so that a column
        of the sequencer costs less than tables.

    Attributes
    ----------
    bit_slots, address_slots, word_slots, valid_slots : list of ndarray of int, shape (members,)
        The number of the column of each kind.
    tables : list of NodeTable
    """

    def __init__(self, columns: Columns, *, many: bool) -> None:
        self.columns, self._many = columns, many
        self.tables: list[NodeTable] = []
        self.bit_slots: list[IntArray] = []
        self.address_slots: list[IntArray] = []
        self.word_slots: list[IntArray] = []
        self.valid_slots: list[IntArray] = []

    def common(self, values: IntArray, delays: MemberDelays) -> list[IntArray] | None:
        """Return the values by row of the kinds with each delays, if all of these agree.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows, choices)
        """
        found = []
        for number in range(len(delays.distinct)):
            here = values[delays.which == number] if len(delays.distinct) > 1 else values
            most = here.max(axis=(0, 2))
            if not _compatible(here, most[None, :, None]):
                return None
            found.append(most)
        return found

    def address(
        self, values: IntArray, delays: MemberDelays, pitch: Delays, bits: int, *, alike: bool
    ) -> int | None:
        """Return the slot of an address that the sequencer sends, None if it had better not."""
        common = self.common(values, delays)
        if common is None or not (alike or self._many):
            return None
        each = zip(common, delays.distinct, strict=True)
        numbers = [self.columns.add_address(first, delay, pitch, bits) for first, delay in each]
        return _add_slot(self.address_slots, numbers, delays)

    def ask(self, slot: int) -> None:
        """Let a shared memory port read by an address."""
        if self.columns.shared:
            self.columns.asked |= {*self.address_slots[slot].tolist()}

    def word(self, delays: MemberDelays, pitch: Delays) -> int:
        """Return the slot of a word counter."""
        numbers = [self.columns.add_word(each, pitch) for each in delays.distinct]
        return _add_slot(self.word_slots, numbers, delays)

    def valid(self, delays: MemberDelays) -> int:
        """Return the slot of a strobe."""
        numbers = list(map(self.columns.add_valid, delays.distinct))
        return _add_slot(self.valid_slots, numbers, delays)

    def bit(
        self,
        values: IntArray,
        delays: MemberDelays,
        *,
        alike: bool = False,
        early: bool = False,
        table: str = "",
    ) -> Bit:
        """Return the place of a bit.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows, choices)
            -1 where it does not matter.
        alike : bool
            True if all nodes that know the value agree, those of other families included.
        early : bool
            True if a register behind the place holds it, so that a table shows it a cycle earlier.
        table : str
            The purpose of the table, if tables are loaded.
        """
        known = np.unique(values[values >= 0])
        if len(known) < 2:
            return Bit(Place.CONSTANT, int(known[0]) if len(known) else 0)
        common = self.common(values, delays)
        if common is not None and (alike or self._many):
            each = zip(common, delays.distinct, strict=True)
            numbers = [self.columns.add_bit(of_row, delay) for of_row, delay in each]
            return Bit(Place.COLUMN, _add_slot(self.bit_slots, numbers, delays))
        by_row = by_choice = self.columns.by_setting
        if not by_row:
            # One after the other: a value may depend on either of the two, but not on both.
            by_choice = _depends(values, 2)
            values = values if by_choice else values.max(axis=2, keepdims=True)
            by_row = _depends(values, 1)
            values = values if by_row else values.max(axis=1, keepdims=True)
        name = table if self.columns.by_setting else ""
        shown = delays.later(-int(early))
        number = self._table(NodeTable(shown, by_row, by_choice, name))
        held = 0
        if name:
            first = self.tables[number].delays
            held = shown.distinct[0][0] - first.distinct[0][0]
        return Bit(Place.TABLE, self.tables[number].add(values), number, held)

    def _table(self, wanted: NodeTable) -> int:
        """Return the number of a table with the same address; it is added if there is none."""
        for number, table in enumerate(self.tables):
            same = (table.by_row, table.by_choice) == (wanted.by_row, wanted.by_choice) and (
                not table.by_row or table.delays.key == wanted.delays.key
            )
            if table.name == wanted.name and (same or wanted.name):
                return number
        self.tables.append(wanted)
        for delays in wanted.delays.distinct if wanted.by_row and not wanted.name else ():
            self.columns.add_row(delays)
        return len(self.tables) - 1

    def number(
        self,
        values: IntArray,
        bits: int,
        delays: MemberDelays,
        *,
        early: bool = False,
        table: str = "",
    ) -> tuple[Bit, ...]:
        """Return the places of the bits of a number, least significant bit first."""
        each = [np.where(values >= 0, values >> k & 1, -1) for k in range(bits)]
        return tuple(self.bit(bit, delays, early=early, table=table) for bit in each)

    def code(
        self,
        index: IntArray,
        codes: Sequence[Sequence[int]],
        delays: MemberDelays,
        *,
        alike: bool,
        table: str = "",
    ) -> tuple[Bit, ...]:
        """Return the places of select bits, which a register behind them holds.

        Parameters
        ----------
        index : ndarray of int, shape (members, rows, choices)
            The number of the input that passes, -1 where it does not matter.
        codes : sequence of (sequence of int)
            The select bits of each input.
        """
        columns = np.array([*codes, [-1] * len(codes[0])], int)
        return tuple(
            self.bit(columns[index, k], delays, alike=alike, early=True, table=table)
            for k in range(len(codes[0]))
        )


def _add_slot(slots: list[IntArray], numbers: Sequence[int], delays: MemberDelays) -> int:
    """Return the number of a slot, given the column of the kinds with each delays."""
    wanted = np.array(numbers)[delays.which]
    for slot, known in enumerate(slots):
        if np.array_equal(known, wanted):
            return slot
    slots.append(wanted)
    return len(slots) - 1


def _depends(values: IntArray, axis: int) -> bool:
    """Return True if known values differ along an axis."""
    most = values.max(axis=axis, keepdims=True)
    return not bool(((values == most) | (values < 0)).all())
