"""Placement of control values in hardware, bit by bit.

Each bit of a control value, such as a select bit, comes from one of three places (sources):

========== =====================================================================================
constant   the bit is the same in all rows, at all nodes of the family
column     the sequencer sends the bit of the current row to all nodes; possible if all nodes
           at which the value matters agree
table      a ROM (or writable RAM) at the node, addressed by the row and by the node's choice
========== =====================================================================================

`BitPlacer` finds the place of each bit of a module, `SequencerSignals` collects all signals of the
sequencer, and `NodeTable` is a table of a module. The nodes of a *family* share a module. They
differ only in the contents of their tables, and in the columns that they are connected to. A *kind*
of nodes are nodes with the same values at all control points (selectors, addresses and enables). If
the actions of a node depend on the root of the run, a *choice* is one of the behaviours between
which it selects. The *slot* of a row is the cycle in which the sequencer presents the row. *Delays*
are the cycles from this slot to the cycle in which a signal acts, with an entry for each form.

Below, a *member* is a kind of nodes in the family. Values have the shape (members, rows, choices),
and -1 means that a value does not matter.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...program.fields import number_by_value
from ...topology import IntArray
from .rows import Delays, Rows, lengthen_delays

__all__ = ["AddressColumn", "Bit", "BitPlacer", "SequencerSignals", "MemberDelays", "NodeTable",
           "BitPlace"]  # fmt: skip


class MemberDelays(NamedTuple):
    """The delays of a control value at the members of a family.

    A delay is the number of cycles from the slot of a row (the cycle in which the sequencer
    presents it) to the cycle in which the value acts. `Delays` has one delay for each form, and a
    member is a kind of nodes that share the module.

    Parameters
    ----------
    distinct : tuple of Delays
        The different delays, each listed once: ``((3,), (4,))`` for 3 and 4 cycles in the only
        form.
    which : ndarray of int, shape (members,)
        For each member, the index of its delays in `distinct`.
    """

    distinct: tuple[Delays, ...]
    which: IntArray

    @classmethod
    def from_common_delays(cls, delays: Delays, members: int) -> MemberDelays:
        """Return the delays of a control value that are equal, `delays`, at all kinds of nodes.

        `members` is the number of these kinds.
        """
        return cls((delays,), np.zeros(members, int))

    @classmethod
    def from_numbers(cls, numbers: IntArray, delays: Callable[[int], Delays]) -> MemberDelays:
        """Return the delays of all members, computed from one number per member.

        A member is a kind of nodes that share the module.

        Parameters
        ----------
        numbers : ndarray of int, shape (members,)
            A number of each member, such as that of its reader.
        delays : function of int -> Delays
            The function that returns the delays, one for each form, for such a number.
        """
        distinct, which = np.unique(numbers, return_inverse=True)
        return cls(tuple(map(delays, distinct.tolist())), np.asarray(which).ravel())

    @classmethod
    def from_members(cls, delays: Sequence[Delays]) -> MemberDelays:
        """Return the delays of all members, given those of each."""
        numbers, first = number_by_value(delays)
        return cls(tuple(delays[member] for member in first.tolist()), numbers)

    @property
    def of_members(self) -> list[Delays]:
        """The delays of each member, one after another."""
        return [self.distinct[number] for number in self.which.tolist()]

    def lengthen(self, cycles: int) -> MemberDelays:
        """Return delays that are all longer by `cycles`."""
        return MemberDelays(
            tuple(lengthen_delays(each, cycles) for each in self.distinct), self.which
        )

    @property
    def comparison_key(self) -> object:
        """A value that is equal for two `MemberDelays` with equal delays at each member."""
        return self.distinct, self.which.tobytes()


class BitPlace(enum.Enum):
    """The three sources of a control bit: constant, column, or table at the node.

    A column is a bit of the sequencer with a value for each row of the program. It goes to all
    nodes.
    """

    CONSTANT = "constant"
    COLUMN = "column"
    TABLE = "table"


class Bit(NamedTuple):
    """The source of a control bit in the module of a node.

    Parameters
    ----------
    place : BitPlace
        The kind of source: a constant, a bit of the sequencer, or a table of the node.
    number : int
        The constant itself, the index in the input ``columns`` of the module, or the position in a
        row of the table.
    table : int
        K, if the source is a table: its row is the input ``table_K`` of the module.
    held : int
        Cycles by which the module must delay the bit, because the table shows it before it acts.
    """

    place: BitPlace
    number: int
    table: int = 0
    held: int = 0


class BitColumn(NamedTuple):
    """A control bit that the sequencer sends to the nodes: a value for each row of the program.

    Parameters
    ----------
    values : ndarray of int, shape (rows,)
        0, 1, or -1 where the bit does not matter.
    delays : tuple of int
        For each form, cycles from the slot of a row (the cycle in which the sequencer presents it)
        to the cycle in which the bit acts.
    """

    values: IntArray
    delays: Delays


def _are_compatible(a: IntArray, b: IntArray) -> bool:
    """Return True if `a` and `b` are equal wherever neither is -1, which does not matter."""
    return bool(((a == b) | (a < 0) | (b < 0)).all())


class AddressColumn(NamedTuple):
    """An address of a memory that the sequencer sends to the nodes.

    Parameters
    ----------
    first : ndarray of int, shape (rows,)
        The first address in each row, -1 where it does not matter.
    delays : tuple of int
        For each form, cycles from the slot of a row (the cycle in which the sequencer presents it)
        to the address.
    pitch : tuple of int
        For each form, the distance between the addresses of successive flits of a block.
    bits : int
        Address bits of the largest memory that uses the address.
    """

    first: IntArray
    delays: Delays
    pitch: Delays
    bits: int


class SequencerSignals:
    """All signals that the sequencer sends to the nodes.

    The planner of each module requests signals by the `add_..` methods. Requests that agree share
    one signal. At the end `fix_widths` sets the widths. `Delays` has, for each form, the cycles
    from the slot of a row (in which the sequencer presents it) to the cycle in which the signal
    acts.

    Parameters
    ----------
    by_setting : bool
        True if the nodes have writable tables, one for each purpose, such as the select bits of
        out-ports.
    shared : bool
        True if one memory port serves all nodes. Between runs it then reads through the addresses
        that the sequencer sends.

    Attributes
    ----------
    bits : list of BitColumn
        Single bits, such as select bits.
    addresses : list of AddressColumn
        Addresses of memories.
    words : list of (Delays, Delays)
        Word counters: the delays of each, and the number by which it counts up, for each form.
    rows : list of Delays
        Row signals: the number of the current row, by which a node addresses its tables.
    valids : list of Delays
        Strobes: high in the cycles in which words of a row move.
    asked : set of int
        Indices into `addresses`: the addresses through which a shared memory port reads.
    address_bits, word_bits : list of int
        Bits of each address and of each word counter, set by `fix_widths`.
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

    def fix_widths(self, rows: Rows, placers: Sequence[BitPlacer]) -> None:
        """Fix the widths of addresses and word counters; call it after all other methods.

        An input of a module can be connected to different addresses at different nodes. All of
        these addresses get the same width. If a shared memory port reads through one of them, it
        reads through all of them.

        Parameters
        ----------
        rows : Rows
            The rows of the core.
        placers : sequence of BitPlacer
            The plans of the inputs of all modules.
        """
        slots = [{*np.unique(each).tolist()} for placer in placers for each in placer.address_slots]
        while mixed := [each for each in slots if each & self.asked and not each <= self.asked]:
            self.asked |= set[int]().union(*mixed)
        for number, address in enumerate(self.addresses):
            most = max(int(address.first.max()), 0) + rows.max_word_offset(address.pitch)
            bits = address.bits if number in self.asked else min(most.bit_length(), address.bits)
            self.address_bits.append(max(bits, 1))
        for numbers in slots * (len(self.addresses) - 1):
            widest = max(self.address_bits[number] for number in numbers)
            for number in numbers:
                self.address_bits[number] = widest
        self.word_bits = [
            max(rows.max_word_offset(pitch).bit_length(), 1) for _, pitch in self.words
        ]

    def add_bit(self, values: IntArray, delays: Delays) -> int:
        """Return the number of a control bit of the sequencer with the given values and delays.

        A bit that is in `bits` already serves if it has these delays, and these values in all rows
        in which neither value is -1. Otherwise a new bit is added.

        Parameters
        ----------
        values : ndarray of int, shape (rows,)
            The bit in each row, -1 where it does not matter.
        delays : Delays
            For each form, cycles from the slot of a row (the cycle in which the sequencer presents
            it) to the cycle in which the bit acts.
        """
        for number, known in enumerate(self.bits):
            if known.delays == delays and _are_compatible(known.values, values):
                self.bits[number] = BitColumn(np.maximum(known.values, values), delays)
                return number
        self.bits.append(BitColumn(values, delays))
        return len(self.bits) - 1

    def add_address(self, first: IntArray, delays: Delays, pitch: Delays, bits: int) -> int:
        """Return the number of an address of the sequencer, as an index into `addresses`.

        An address that is listed already serves if it has this pitch and these delays, and these
        first addresses in all rows in which neither is -1. Otherwise a new address is added.

        Parameters
        ----------
        first : ndarray of int, shape (rows,)
            The first address of each row, -1 where it does not matter.
        delays : Delays
            For each form, cycles from the slot of a row (the cycle in which the sequencer presents
            it) to the address.
        pitch : Delays
            For each form, the distance between the addresses of successive flits of a block.
        bits : int
            Bits of an address of the memory. If the program uses low addresses only, the signal has
            fewer.
        """
        for number, known in enumerate(self.addresses):
            if (known.delays, known.pitch) == (delays, pitch) and _are_compatible(
                known.first, first
            ):
                both = np.maximum(known.first, first)
                self.addresses[number] = AddressColumn(both, delays, pitch, max(known.bits, bits))
                return number
        self.addresses.append(AddressColumn(first, delays, pitch, bits))
        return len(self.addresses) - 1

    def address_name(self, numbers: Iterable[int], index: int) -> str:
        """Return the name of an address input: ``read_K`` or ``address_K``.

        The name is ``read_K`` if a shared memory port reads through the address between runs.

        Parameters
        ----------
        numbers : iterable of int
            The addresses that the input is connected to, at different nodes.
        index : int
            The number K in the name.
        """
        return f"{'read' if {*numbers} <= self.asked else 'address'}_{index}"

    def add_word_counter(self, delays: Delays, pitch: Delays) -> int:
        """Request a word counter of the sequencer, and return its number.

        Equal requests share a counter. It counts the words of a row.

        Parameters
        ----------
        delays : Delays
            Cycles from the slot of a row (the cycle in which the sequencer presents it) to the
            count.
        pitch : Delays
            The number by which the counter counts, for each form.
        """
        return _find_or_append(self.words, (delays, pitch))

    def add_row_signal(self, delays: Delays) -> int:
        """Request the number of the current row as a signal, and return the index of the signal.

        Equal requests share a signal. Nodes address their tables by it.

        Parameters
        ----------
        delays : Delays
            Cycles from the slot of a row (the cycle in which the sequencer presents it) to the row
            signal.
        """
        return _find_or_append(self.rows, delays)

    def add_strobe(self, delays: Delays) -> int:
        """Request a strobe, and return its index in `valids`; equal requests share a strobe.

        A strobe is high in the cycles in which words of a row move.

        Parameters
        ----------
        delays : Delays
            Cycles from the slot of a row (the cycle in which the sequencer presents it) to the
            strobe.
        """
        return _find_or_append(self.valids, delays)


def _find_or_append(known: list, value: object) -> int:  # type: ignore[type-arg]
    """Return the index of `value` in the list `known`; append the value if it is new."""
    if value not in known:
        known.append(value)
    return known.index(value)


@dataclass
class NodeTable:
    """A table of a module: a ROM or a writable RAM with different contents at different nodes.

    Parameters
    ----------
    delays : MemberDelays
        Cycles from the slot of a row (the cycle in which the sequencer presents it) to the output
        of the table.
    by_row : bool
        True if the contents depend on the row.
    by_choice : bool
        True if the contents depend on the choice of the node, the behaviour that it selects by the
        root of the run.
    name : str
        The purpose of a writable table, such as ``"select"``, see `room.SettingTable`; empty for a
        ROM.
    columns : list of ndarray of int, shape (members, rows, choices)
        One array for each bit of the table: 0, 1, or -1 where the bit does not matter. A member is
        a kind of nodes. The second axis has length 1 if `by_row` is False, the third if `by_choice`
        is False.
    """

    delays: MemberDelays
    by_row: bool
    by_choice: bool
    name: str = ""
    columns: list[IntArray] = field(default_factory=list)

    def add_bit(self, values: IntArray) -> int:
        """Return the position in the table of a bit with the values `values`.

        A bit that the table has already serves if it has these values wherever neither value is -1.
        Otherwise a bit is added. `values` has the shape of the arrays in `columns`.
        """
        for number, known in enumerate(self.columns):
            if _are_compatible(known, values):
                self.columns[number] = np.maximum(known, values)
                return number
        self.columns.append(values)
        return len(self.columns) - 1

    def distinct_contents(self, row_bits: int) -> tuple[list[tuple[int, ...]], IntArray]:
        """Return the different contents of the table, and the index of the contents of each member.

        Contents are a tuple of words in the order of addresses: the low address bits are the row,
        the high ones the choice (the behaviour that the node selects by the root). A member is a
        kind of nodes. For three members, ``[(1, 0), (1, 1)]`` and ``[0, 1, 0]`` mean that the first
        and the last have the contents (1, 0).

        Parameters
        ----------
        row_bits : int
            Address bits that select a row.
        """
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
    """The control inputs of one module: it finds a source for each control bit and address.

    A *slot* is an input of the module for a signal of the sequencer. Different members (kinds of
    nodes that share the module) can connect a slot to different signals, such as the same address
    with a different delay.

    Parameters
    ----------
    columns : SequencerSignals
        The signals of the sequencer, to which the placer adds those that it needs.
    many : bool
        True if the module has so many nodes that a signal of the sequencer, with its registers,
        costs less than a table at each node.

    Attributes
    ----------
    bit_slots, address_slots, word_slots, valid_slots : list of ndarray of int, shape (members,)
        For each slot, the number of the signal in `columns` that each member connects to it.
    tables : list of NodeTable
        The tables of the module.
    """

    def __init__(self, columns: SequencerSignals, *, many: bool) -> None:
        self.columns, self._many = columns, many
        self.tables: list[NodeTable] = []
        self.bit_slots: list[IntArray] = []
        self.address_slots: list[IntArray] = []
        self.word_slots: list[IntArray] = []
        self.valid_slots: list[IntArray] = []

    def common_values(self, values: IntArray, delays: MemberDelays) -> list[IntArray] | None:
        """Return the common values of members with equal delays, or None if they differ.

        A member is a kind of nodes that share the module. The result is a list with an array of
        shape (rows,) for each entry of ``delays.distinct``: the value in each row at all members
        with these delays. Members with different delays need not agree.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows, choices)
            The values, -1 where they do not matter.
        delays : MemberDelays
            The delays of each member.
        """
        found = []
        for number in range(len(delays.distinct)):
            here = values[delays.which == number] if len(delays.distinct) > 1 else values
            most = here.max(axis=(0, 2))
            if not _are_compatible(here, most[None, :, None]):
                return None
            found.append(most)
        return found

    def place_address(
        self, values: IntArray, delays: MemberDelays, pitch: Delays, bits: int, *, alike: bool
    ) -> int | None:
        """Return the slot of an address that the sequencer sends, or None if the node needs a
        table.

        A slot is an input of the module, given by its index in `address_slots`. The sequencer sends
        an address if all kinds of nodes that share the module have the same address in each row. In
        addition all nodes of the core must agree (`alike`), or the module must have many nodes.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows, choices)
            The first addresses, -1 where they do not matter.
        delays : MemberDelays
            Cycles from the slot of a row (the cycle in which the sequencer presents it) to the
            address.
        pitch : tuple of int
            For each form, the distance between the addresses of successive flits.
        bits : int
            Bits of the address.
        alike : bool
            True if the nodes of all modules agree.
        """
        common = self.common_values(values, delays)
        if common is None or not (alike or self._many):
            return None
        each = zip(common, delays.distinct, strict=True)
        numbers = [self.columns.add_address(first, delay, pitch, bits) for first, delay in each]
        return _add_slot(self.address_slots, numbers, delays)

    def allow_port_reads(self, slot: int) -> None:
        """Let the memory port read through an address of the sequencer between runs.

        It has an effect only if one memory port serves all nodes.

        Parameters
        ----------
        slot : int
            The input of the module, as an index into `address_slots`.
        """
        if self.columns.shared:
            self.columns.asked |= {*self.address_slots[slot].tolist()}

    def place_word_counter(self, delays: MemberDelays, pitch: Delays) -> int:
        """Return the slot (input of the module) of a word counter, as an index into `word_slots`.

        Parameters
        ----------
        delays : MemberDelays
            Cycles from the slot of a row (the cycle in which the sequencer presents it) to the
            count.
        pitch : Delays
            For each form, the number by which the counter counts up.
        """
        numbers = [self.columns.add_word_counter(each, pitch) for each in delays.distinct]
        return _add_slot(self.word_slots, numbers, delays)

    def place_strobe(self, delays: MemberDelays) -> int:
        """Return the slot (input of the module) of a strobe, as an index into `valid_slots`.

        The strobe is high in the cycles in which words of a row move, later by `delays`.
        """
        numbers = list(map(self.columns.add_strobe, delays.distinct))
        return _add_slot(self.valid_slots, numbers, delays)

    def place_bit(
        self,
        values: IntArray,
        delays: MemberDelays,
        *,
        alike: bool = False,
        early: bool = False,
        table: str = "",
    ) -> Bit:
        """Return the source of a control bit: a constant, or else the sequencer, or else a table.

        The sequencer sends the bit if the kinds of nodes that share the module (*members*) agree in
        each row. In addition all nodes of the core must agree (`alike`), or the module must have
        many nodes.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows, choices)
            The bit, -1 where it does not matter.
        delays : MemberDelays
            Cycles from the slot of a row (the cycle in which the sequencer presents it) to the
            cycle in which the bit acts.
        alike : bool
            True if all nodes at which the value matters agree, including other families.
        early : bool
            True if the module registers the bit, so that a table must show it one cycle earlier.
        table : str
            The purpose of the table, if tables are writable.
        """
        known = np.unique(values[values >= 0])
        if len(known) < 2:
            return Bit(BitPlace.CONSTANT, int(known[0]) if len(known) else 0)
        common = self.common_values(values, delays)
        if common is not None and (alike or self._many):
            each = zip(common, delays.distinct, strict=True)
            numbers = [self.columns.add_bit(of_row, delay) for of_row, delay in each]
            return Bit(BitPlace.COLUMN, _add_slot(self.bit_slots, numbers, delays))
        by_row = by_choice = self.columns.by_setting
        if not by_row:
            # Choices first, then rows with the reduced values. Why: with both tested on values that
            # have entries of -1, a bit that needs one of the two could seem to need neither.
            by_choice = _varies_along(values, 2)
            values = values if by_choice else values.max(axis=2, keepdims=True)
            by_row = _varies_along(values, 1)
            values = values if by_row else values.max(axis=1, keepdims=True)
        name = table if self.columns.by_setting else ""
        shown = delays.lengthen(-int(early))
        number = self._find_table(NodeTable(shown, by_row, by_choice, name))
        held = 0
        if name:
            first = self.tables[number].delays
            held = shown.distinct[0][0] - first.distinct[0][0]
        return Bit(BitPlace.TABLE, self.tables[number].add_bit(values), number, held)

    def _find_table(self, wanted: NodeTable) -> int:
        """Return the number of a table with the same purpose and address as `wanted`.

        If there is none, `wanted` is added to `tables`. The sequencer then has to send the number
        of the current row, with the delay of this table, as its address.
        """
        for number, table in enumerate(self.tables):
            same = (table.by_row, table.by_choice) == (wanted.by_row, wanted.by_choice) and (
                not table.by_row or table.delays.comparison_key == wanted.delays.comparison_key
            )
            if table.name == wanted.name and (same or wanted.name):
                return number
        self.tables.append(wanted)
        for delays in wanted.delays.distinct if wanted.by_row and not wanted.name else ():
            self.columns.add_row_signal(delays)
        return len(self.tables) - 1

    def place_number(
        self,
        values: IntArray,
        bits: int,
        delays: MemberDelays,
        *,
        early: bool = False,
        table: str = "",
    ) -> tuple[Bit, ...]:
        """Return the sources of the bits of a number, least significant bit first.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows, choices)
            The number, -1 where it does not matter. A member is a kind of nodes.
        bits : int
            Width of the number, and length of the result.
        delays, early, table
            The same as in `place_bit`.
        """
        each = [np.where(values >= 0, values >> k & 1, -1) for k in range(bits)]
        return tuple(self.place_bit(bit, delays, early=early, table=table) for bit in each)

    def place_select_bits(
        self,
        index: IntArray,
        codes: Sequence[Sequence[int]],
        delays: MemberDelays,
        *,
        alike: bool,
        table: str = "",
    ) -> tuple[Bit, ...]:
        """Return the sources of the select bits of a multiplexer.

        The multiplexer registers its select bits, so each comes a cycle before it acts.

        Parameters
        ----------
        index : ndarray of int, shape (members, rows, choices)
            The number of the input that passes, -1 where it does not matter.
        codes : sequence of (sequence of int)
            For each input of the multiplexer, its select bits: ``[[0], [1]]`` for two inputs.
        delays, alike, table
            The same as in `place_bit`.
        """
        columns = np.array([*codes, [-1] * len(codes[0])], int)
        return tuple(
            self.place_bit(columns[index, k], delays, alike=alike, early=True, table=table)
            for k in range(len(codes[0]))
        )


def _add_slot(slots: list[IntArray], numbers: Sequence[int], delays: MemberDelays) -> int:
    """Return the index of an input that connects each member to the signal for its delays.

    A member whose delays are ``delays.distinct[k]`` is connected to signal ``numbers[k]``. If
    `slots` has no such input, it is appended.
    """
    wanted = np.array(numbers)[delays.which]
    for slot, known in enumerate(slots):
        if np.array_equal(known, wanted):
            return slot
    slots.append(wanted)
    return len(slots) - 1


def _varies_along(values: IntArray, axis: int) -> bool:
    """Return True if values that are not -1 change along an axis, with all other indices equal.

    With `axis` 1, for example, a value depends on the row.
    """
    most = values.max(axis=axis, keepdims=True)
    return not bool(((values == most) | (values < 0)).all())
