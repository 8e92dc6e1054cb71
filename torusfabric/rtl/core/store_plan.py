"""The plan of a store: the memories and readers of a node, for all nodes of a family.

`plan_stores` finds, for each family, the structure of the module (`StoreShape`) and the places of
its addresses and select bits. `torusfabric.rtl.core.store.StoreModule` builds the module.

- The *store* of a node consists of its memories, its readers, and its side of the memory port.
- A *section* is one of several equal parts of a memory, of which each run uses one.
- A *reader* reads a memory in each row of the program. Its words go to an injection port.
- A *copy* of a memory has the same words and a read port of its own. Readers whose addresses agree
  share a copy.
- A *bank* is a wide memory. Memories that are written at the same addresses, and read at the same
  addresses, are the *members* of a bank::

    bank of two members, one copy

    address  | word of member 1 | word of member 0 |
    0        |                  |                  |
    1        |                  |                  |

- An *arrival* is the set of words that reach a bank by links of one length, and are stored at the
  same delay.

Arrays of shape (members, rows, choices) belong to the family instead: there a member is a kind of
nodes, as in `torusfabric.rtl.core.places`.

If the memory port moves several flits in a cycle (a *beat*), each bank has one member. Copies that
the port writes or reads then have rows of several flits, see `torusfabric.rtl.flit_rows`. Copies
that only runs read have rows of one flit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...program.fields import IDENTITY_MEMORY, Action
from ...program.timing import ADDRESS, DISTRIBUTION, SETTING
from ...topology import IntArray
from ..flit_rows import FlitRows
from .families import (
    ModuleFamily,
    find_multiplexer_sources,
    group_kinds,
    pad_rows,
    positions_in_groups,
)
from .node_module import IDENTITY_WORD, LocalWord, NodeMultiplexer, plan_multiplexer
from .places import Bit, BitPlacer, MemberDelays, SequencerSignals
from .rows import Delays, NodeKinds, RowField, Rows, lengthen_delays

__all__ = ["AddressSource", "BankArrivals", "Bank", "BankCopy", "Reader", "StorePlan", "StoreShape",
           "plan_stores"]  # fmt: skip

#: Cycles from a start until a table that is addressed by the choice of the node shows a row: the
#: register of the group of nodes, the ROM of choices, and the table itself take one each.
CHOICE_DELAY = DISTRIBUTION + 1

assert SETTING == ADDRESS + 1, "a word is there a cycle after its address"


@dataclass(frozen=True)
class AddressSource:
    """The source of an address of a memory during a run.

    The address is either a column of the sequencer, or a first address plus a word counter.

    Parameters
    ----------
    column : int or None
        The slot of the address column, if the sequencer sends the address.
    first : tuple of Bit
        The places of the bits of the first address; no bits for a memory of one word.
    counter : int or None
        The slot of the word counter; None if rows have one word.
    early : bool
        True if the node registers the sum of both. False if the address must act in the cycle in
        which the table shows it.
    lag : tuple of Bit
        The places of the number of cycles by which the address follows the counter, in a core with
        writable tables.
    """

    column: int | None = None
    first: tuple[Bit, ...] = ()
    counter: int | None = None
    early: bool = True
    lag: tuple[Bit, ...] = ()


@dataclass(frozen=True)
class BankCopy:
    """One of several memories with the words of a bank, and the address by which it is read.

    Parameters
    ----------
    address : AddressSource or None
        The address of the readers; None if no reader uses the copy.
    shown : bool
        True if the memory port reads the copy.
    """

    address: AddressSource | None
    shown: bool


@dataclass(frozen=True)
class BankArrivals:
    """The words that a bank stores in a run from links of one length.

    Parameters
    ----------
    late : tuple of Bit
        The places of the bits of a number, which selects the strobe that enables the write in a
        row. It is 1 for the first strobe, and 0 in rows in which the bank stores no such words.
    strobes : tuple of int
        The inputs (slots) of the module for strobes of the sequencer. There is one, except in a
        core with writable tables: there a table selects the strobe in each row, by the cycles that
        words spend on their path.
    address : AddressSource
        The write address.
    codes : tuple of (tuple of Bit)
        The select bits of the word of each member of the bank.
    exact : bool
        True if the node subtracts `late` from the address.
    """

    late: tuple[Bit, ...]
    strobes: tuple[int, ...]
    address: AddressSource
    codes: tuple[tuple[Bit, ...], ...]
    exact: bool = False


@dataclass(frozen=True)
class Bank:
    """Memories side by side, with common addresses.

    Parameters
    ----------
    members : tuple of int
        The numbers of the memories.
    size : int
        Words of each section, rounded up to a power of two.
    depth : int
        Words of each section that are used.
    own : bool
        True if the memory port writes the bank.
    copies : tuple of BankCopy
        Memories with equal words, each with a read port of its own. The memory port reads at most
        one of them.
    words : tuple of NodeMultiplexer
        The multiplexer of the words that each member stores, without select bits.
    arrivals : tuple of BankArrivals
        The words that the bank stores in a run, for each length of links.
    rows : FlitRows
        The row layout of copies that the memory port writes or reads.
    """

    members: tuple[int, ...]
    size: int
    depth: int
    own: bool
    copies: tuple[BankCopy, ...]
    words: tuple[NodeMultiplexer, ...]
    arrivals: tuple[BankArrivals, ...]
    rows: FlitRows

    def rows_of(self, copy: int) -> FlitRows:
        """Return the row layout of a copy: one flit, if only runs read the copy."""
        return self.rows if self.own or self.copies[copy].shown else FlitRows()


@dataclass(frozen=True)
class Reader:
    """A reader: a multiplexer of the words of several memories.

    Parameters
    ----------
    inputs : tuple of (int, int)
        The memory and copy of each word, without the identity word.
    choice : NodeMultiplexer
        The multiplexer. The positions of its words are indices into `inputs`.
    """

    inputs: tuple[tuple[int, int], ...]
    choice: NodeMultiplexer


@dataclass(frozen=True)
class StoreShape:
    """The structure of a store: banks, readers and injection ports, equal at all its nodes.

    Parameters
    ----------
    banks : tuple of Bank
        The memories.
    readers : tuple of Reader
        The readers in front of injection ports.
    injections : tuple of (tuple of int)
        The readers whose words are combined for each injection port, as indices into `readers`.
    received : tuple of int
        The memories that the memory port reads.
    injection_delay : int
        Cycles by which the words of injection ports are delayed, for operators on their path.
    port_reader : int or None
        The reader whose multiplexer also serves the memory port between runs.
    """

    banks: tuple[Bank, ...]
    readers: tuple[Reader, ...]
    injections: tuple[tuple[int, ...], ...]
    received: tuple[int, ...]
    injection_delay: int
    port_reader: int | None = None


class StorePlan(NamedTuple):
    """The store of a family of nodes: its structure, and the places of its control values.

    Parameters
    ----------
    family : ModuleFamily
        The nodes that share the module.
    shape : StoreShape
        The structure of the module.
    placer : BitPlacer
        The places of all addresses and select bits.
    injection_places : ndarray of int, shape (kinds, injections)
        The position of the word of each injection port in the output `inject`, -1 if the nodes do
        not use the port.
    """

    family: ModuleFamily
    shape: StoreShape
    placer: BitPlacer
    injection_places: IntArray


class _CopyPlan(NamedTuple):
    """A copy of a memory, before the source of its address is decided.

    Parameters
    ----------
    values : ndarray of int, shape (members, rows, choices)
        First addresses at the nodes of the family, -1 where they do not matter.
    delays : MemberDelays
        Cycles from the slot of a row to the address.
    alike : bool
        True if all nodes, including those of other families, have the same first addresses.
    lag : ndarray of int, shape (members, rows, choices), or None
        The cycles by which the address follows the word counter.
    """

    values: IntArray
    delays: MemberDelays
    alike: bool
    lag: IntArray | None = None

    def merge(self, other: _CopyPlan) -> _CopyPlan | None:
        """Return a copy that serves the readers of this one and of `other`.

        The result is None if their addresses differ.
        """
        a, b = self.values, other.values
        if (
            self.delays.comparison_key != other.delays.comparison_key
            or not ((a == b) | (a < 0) | (b < 0)).all()
        ):
            return None
        if self.lag is not None or other.lag is not None:
            return None
        return _CopyPlan(np.maximum(a, b), self.delays, self.alike and other.alike)


class _ReaderFields(NamedTuple):
    """The reads of one reader of the module, at all nodes of the family.

    Reader k of the module may be a different reader of the program at each member.

    Parameters
    ----------
    memory : ndarray of int, shape (members, rows, choices)
        The memory to read, -1 where nothing is read.
    first : ndarray of int, shape (members, rows, choices)
        The first address, -1 where it does not matter.
    lag : ndarray of int, shape (members, rows, choices), or None
        The cycles by which the address follows the word counter.
    delays : MemberDelays
        Cycles from the slot of a row to the address.
    fields : tuple of (ndarray of int, ndarray of int), shape (rows, variants)
        For each of these readers of the program, memory and first address at all variants.
    """

    memory: IntArray
    first: IntArray
    lag: IntArray | None
    delays: MemberDelays
    fields: tuple[tuple[IntArray, IntArray], ...]


def _nodes_agree(values: Iterable[IntArray]) -> bool:
    """Return True if all nodes have equal values, in each of several arrays (rows, variants)."""
    return all(RowField(each, ()).is_equal_at_all_nodes for each in values)


class StoreKinds:
    """Properties of the stores of all kinds of nodes.

    Attributes
    ----------
    readers : ndarray of int, shape (kinds, readers)
        The active readers of each kind, sorted by the memories that they read, padded with -1.
    injected : ndarray of int, shape (kinds, injections)
        The position of each injection port among the active ones of the node, -1 if inactive.
    links : dict of int to (ndarray of int), shape (kinds, lengths)
        For each memory, the different lengths of links from which it stores words, in cycles,
        padded with -1.
    uses : MultiplexerSources
        The words that memories store.
    """

    def __init__(self, rows: Rows, kinds: NodeKinds) -> None:
        self.rows, self.kinds = rows, kinds
        self.sources = rows.sources
        self._every = np.arange(kinds.n_kinds)
        self._find_readers()
        self._find_injections()
        self.links = {number: self._link_lengths(number) for number in self.storing_memories}
        self.uses = find_multiplexer_sources(
            self.sources,
            kinds,
            ((k, self.word_source(k)) for k in self.storing_memories),
            self.injected,
        )

    def reads_of_reader(self, reader: int) -> tuple[RowField, RowField] | None:
        """Return the memory that a reader reads (-1 for none), and the first address.

        The result is None if the reader does nothing in any form.
        """
        memory, first = (self.rows.field(act, reader) for act in (Action.MEMORY, Action.READ))
        if memory is None or first is None:
            return None
        counts = (first.values >= 0) | (memory.values == IDENTITY_MEMORY)
        return RowField(np.where(counts, memory.values, -1), first.delays), first

    @cached_property
    def storing_memories(self) -> list[int]:
        """The memories that store arriving words at one node or more."""
        found = []
        for number, depth in enumerate(self.rows.depth.max(axis=0).tolist()):
            write = self.rows.field(Action.WRITE, number)
            if depth and write and (write.values >= 0).any():
                found.append(number)
        return found

    def writes_of_memory(self, number: int) -> tuple[RowField, IntArray]:
        """Return the first write address of a memory, and the length of the links in cycles.

        Parameters
        ----------
        number : int
            The number of the memory.

        Returns
        -------
        write : RowField
            The first address that the memory writes in each row.
        links : ndarray of int, shape (rows, variants)
            Cycles of the links by which the words of each row arrive.
        """
        write, tap = (self.rows.field(act, number) for act in (Action.WRITE, Action.TAP))
        assert write is not None
        assert tap is not None
        return write, tap.values

    def word_source(self, number: int) -> IntArray:
        """Return the number of the source that a memory stores, shape (rows, variants).

        It is -1 in rows in which the memory stores nothing.
        """
        write, source = (self.rows.field(act, number) for act in (Action.WRITE, Action.SOURCE))
        assert write is not None
        assert source is not None
        return np.where(write.values >= 0, source.values, -1)

    def _find_readers(self) -> None:
        """Find the active readers of each kind, sorted by the sets of memories that they read.

        A set of memories is a number with a bit for each memory. The number of a set in `_sets` is
        its rank among all sets, for comparisons between kinds.
        """
        last = len(self.rows.memories)
        found = []
        for reader in range(self.sources.n_readers):
            fields = self.reads_of_reader(reader)
            if fields is None:
                continue
            memory = fields[0].values.astype(np.int64)
            # The last bit stands for the identity word.
            bits = np.where(memory == -1, 0, 1 << np.where(memory == IDENTITY_MEMORY, last, memory))
            mask = np.bitwise_or.reduce(self.kinds.values_at_kinds(bits, self._every), axis=(1, 2))
            kind = np.flatnonzero(mask)
            found.append(np.stack([kind, mask[kind], np.full_like(kind, reader)]))
        kind, mask, reader = np.concatenate([np.zeros((3, 0), int), *found], axis=1)
        sets, which = np.unique(mask, return_inverse=True)
        listed = [[k for k in range(last + 1) if each >> k & 1] for each in sets.tolist()]
        rank = np.argsort(sorted(range(len(sets)), key=listed.__getitem__))[which.ravel()]
        order = np.lexsort((reader, rank, kind))
        kind = kind[order]
        self.readers = pad_rows(kind, reader[order], self.kinds.n_kinds)
        self._sets = pad_rows(kind, rank[order], self.kinds.n_kinds)

    def _find_injections(self) -> None:
        """Find the active injection ports of each kind, sorted by the positions of their readers.

        The positions of the readers of a port are the digits of a number in `_codes`.
        """
        count, places = self.kinds.n_kinds, self.readers.shape[1] + 1
        place_of = np.zeros((count, self.sources.n_readers + 1), np.int8)
        kind, place = np.nonzero(self.readers >= 0)
        place_of[kind, self.readers[kind, place]] = place + 1
        longest = max(map(len, self.sources.injections), default=0)
        found = [np.zeros((3, 0), int)]
        for number, readers in enumerate(self.sources.injections):
            code, left = np.zeros(count, int), np.full(count, longest)
            for reader in readers:
                here = place_of[:, reader] > 0
                code = np.where(here, code * places + place_of[:, reader], code)
                left -= here
            active = np.flatnonzero(code)
            code = code[active] * places ** left[active]
            found.append(np.stack([active, code, np.full_like(active, number)]))
        kind, code, number = np.concatenate(found, axis=1)
        order = np.lexsort((number, code, kind))
        kind, number = kind[order], number[order]
        self.ports = pad_rows(kind, number, count)
        self._codes = pad_rows(kind, code[order], count)
        self.injected = np.full((count, len(self.sources.injections)), -1, np.int16)
        self.injected[kind, number] = positions_in_groups(kind)

    def _link_lengths(self, number: int) -> IntArray:
        """Return, for each kind of nodes, the cycles of the links by which words reach a memory.

        `number` is that of the memory.
        """
        write, tap = self.writes_of_memory(number)
        at = self.kinds.values_at_kinds(np.where(write.values >= 0, tap, -1), self._every)
        kind, row, choice = np.nonzero(at >= 0)
        step = int(at.max(initial=0)) + 1
        kind, links = np.divmod(np.unique(kind * step + at[kind, row, choice]), step)
        return pad_rows(kind, links, self.kinds.n_kinds)

    def group_by_structure(self) -> list[IntArray]:
        """Return the kinds of each family: kinds whose stores have the same structure."""
        depth, received = np.maximum(self.kinds.memory_depths, 0), self.kinds.received_memories
        sets = {each: number for number, each in enumerate(dict.fromkeys(received))}
        sizes = np.ceil(np.log2(np.maximum(depth, 1))).astype(int)
        lengths = [(each >= 0).sum(axis=1) for each in self.links.values()]
        columns = [np.where(depth > 0, sizes, -1), np.array([sets[each] for each in received])]
        return group_kinds([*columns, self._sets, self._codes, *lengths, self.uses.signature])


class _StorePlanner:
    """Planner of the store of one family.

    It collects the reads and writes of the nodes, and finds places for their control values.
    """

    def __init__(
        self,
        all_kinds: StoreKinds,
        columns: SequencerSignals,
        members: IntArray,
        *,
        idles: bool,
        concurrent: bool,
        beat: int,
    ) -> None:
        self._beat = beat
        self._all, self._rows, self._kinds = all_kinds, all_kinds.rows, all_kinds.kinds
        self._columns, self._members = columns, members
        self._idles, self._concurrent = idles, concurrent
        self.placer = BitPlacer(columns, many=self._kinds.outnumber_groups(members))
        self._depth = self._kinds.memory_depths[members].max(axis=0)
        received = self._kinds.received_memories[members[0]]
        self._received = tuple(sorted(k for k in received if self._depth[k]))
        self._copy_of: dict[tuple[int, int], int] = {}
        self._readers = all_kinds.readers[members]
        places = range(int((self._readers[0] >= 0).sum()))
        self._reads = [self._find_reads(place) for place in places]

    def _values_at_members(self, values: IntArray) -> IntArray:
        """Return values at the members of the family, given an array of shape (rows, variants)."""
        return self._kinds.values_at_kinds(values, self._members)

    def plan(self) -> StoreShape:
        """Return the structure of the store, and place all its addresses and select bits."""
        copies = self._plan_copies()
        self._port_reader = self._find_port_reader()
        first = self._readers[0].tolist()
        injections = self._all.sources.injections
        return StoreShape(
            tuple(self._plan_bank(members, copies) for members in self._form_banks(copies)),
            tuple(self._plan_reader(place) for place in range(len(self._reads))),
            tuple(
                tuple(first.index(reader) for reader in injections[port] if reader in first)
                for port in self._all.ports[self._members[0]].tolist()
                if port >= 0
            ),
            self._received,
            self._all.sources.injection_delay,
            self._port_reader,
        )

    def _find_reads(self, place: int) -> _ReaderFields:
        """Return the reads of the reader at the position `place` in the module."""
        shape = len(self._members), self._rows.n_rows, self._kinds.n_choices
        memory, first = np.full(shape, -1), np.full(shape, -1)
        numbers, fields = self._readers[:, place], {}
        for reader in np.unique(numbers).tolist():
            found = self._all.reads_of_reader(reader)
            assert found is not None
            fields[reader] = found
            here = np.flatnonzero(numbers == reader)
            memory[here] = self._kinds.values_at_kinds(found[0].values, self._members[here])
            first[here] = self._kinds.values_at_kinds(found[1].values, self._members[here])
        delays = MemberDelays.from_numbers(numbers, lambda reader: fields[reader][1].delays)
        values = tuple((memory.values, first.values) for memory, first in fields.values())
        # Only a core with writable tables has lags, and all its nodes have the same readers.
        lag = self._rows.field(Action.LAG, int(numbers[0]))
        lags = None if lag is None else self._kinds.values_at_kinds(lag.values, self._members)
        return _ReaderFields(memory, first, lags, delays, values)

    def _plan_copies(self) -> dict[int, list[_CopyPlan]]:
        """Return the copies of each memory: readers whose addresses agree share one."""
        copies: dict[int, list[_CopyPlan]] = {
            number: [] for number, depth in enumerate(self._depth.tolist()) if depth
        }
        for place, reads in enumerate(self._reads):
            for number in self._reader_memories(place)[0]:
                values = np.where(reads.memory == number, reads.first, -1)
                alike = _nodes_agree(np.where(memory == number, first, -1)
                               for memory, first in reads.fields)  # fmt: skip
                lag = reads.lag if self._rows.memories[number].own else None
                wanted, known = _CopyPlan(values, reads.delays, alike, lag), copies[number]
                for copy, each in enumerate(known):
                    if (both := each.merge(wanted)) is not None:
                        known[copy] = both
                        break
                else:
                    copy = len(known)
                    known.append(wanted)
                self._copy_of[place, number] = copy
        return copies

    def _reader_memories(self, place: int) -> tuple[list[int], bool]:
        """Return the memories of a reader, and True if the reader also passes the identity word.

        `place` is the position of the reader in the module.
        """
        values = self._reads[place].memory
        last = len(self._depth)
        used = np.bincount(
            np.where(values == IDENTITY_MEMORY, last, values)[values != -1], minlength=last + 1
        )
        return np.flatnonzero(used[:last]).tolist(), bool(used[last])

    def _find_port_reader(self) -> int | None:
        """Return a reader that reads all memories of received words.

        Between runs, the multiplexer of this reader serves the memory port, which then needs no
        multiplexer of its own. Readers pass single flits, so none can serve a port that reads rows
        of several flits. The result is None if there is no such reader.
        """
        if self._concurrent or self._beat > 1 or len(self._received) < 2:
            return None
        wanted = {*self._received}
        for reader in range(len(self._reads)):
            if wanted <= {*self._reader_memories(reader)[0]}:
                return reader
        return None

    def _bank_key(self, number: int, copies: list[_CopyPlan]) -> object:
        """Return a key that is equal for memories that may be members of one bank.

        The key is that of the memory `number`, whose copies are `copies`.
        """
        writes = [self._rows.field(action, number) for action in (Action.WRITE, Action.TAP)]
        memory = self._rows.memories[number]
        return (
            memory.own and (memory.layout,),
            self._rounded_size(number),
            self._rows.pitch_of(number),
            [each.delays.comparison_key for each in copies],
            number in self._received,
            [
                each and (self._values_at_members(each.values).tobytes(), each.delays)
                for each in writes
            ],
        )

    def _rounded_size(self, number: int) -> int:
        """Return the number of words of a memory, rounded up to a power of two."""
        return 1 << (int(self._depth[number]) - 1).bit_length()

    def _form_banks(self, copies: dict[int, list[_CopyPlan]]) -> list[list[int]]:
        """Return the members of each bank.

        In `copies`, the copies of the first member of a bank then serve the readers of all members.
        """
        if self._beat > 1:
            return [[number] for number in copies]
        banks: list[list[int]] = []
        for number, own in copies.items():
            for members in banks:
                first = copies[members[0]]
                if len(own) < 2 and self._bank_key(number, own) == self._bank_key(
                    members[0], first
                ):
                    both = [a.merge(b) for a, b in zip(first, own, strict=True)]
                    if all(both):
                        copies[members[0]] = [each for each in both if each]
                        members.append(number)
                        break
            else:
                banks.append([number])
        return banks

    def _plan_bank(self, members: list[int], copies: dict[int, list[_CopyPlan]]) -> Bank:
        """Return the plan of a bank, given its members and the copies of each memory."""
        number = members[0]
        shown = bool({*members} & {*self._received})
        pitch, size = self._rows.pitch_of(number), self._rounded_size(number)
        of_bank = [
            BankCopy(
                self._add_lag(
                    self._place_address(each.values, each.delays, pitch, size, alike=each.alike),
                    each,
                ),
                shown=False,
            )
            for each in copies[number]
        ]
        if shown and (self._concurrent or not of_bank):
            of_bank.append(BankCopy(None, shown=True))
        elif shown:
            copy = 0
            if len(members) == 1 and self._port_reader is not None:
                copy = self._copy_of.get((self._port_reader, number), 0)
            of_bank[copy] = replace(of_bank[copy], shown=True)
            address = of_bank[copy].address
            if address and address.column is not None:
                self.placer.allow_port_reads(address.column)
        own = self._rows.memories[number].own
        kind, uses = int(self._members[0]), self._all.uses
        words = [uses.input_words(kind, member) for member in members]
        depth = int(self._depth[members].max())
        arrivals = self._plan_timed_arrivals if self._columns.by_setting else self._plan_arrivals
        plans = [
            plan_multiplexer(each, idles=self._idles, branched=False) for each in words if each
        ]
        codes = [code for _, code in plans]
        return Bank(
            tuple(members),
            size,
            depth,
            own,
            tuple(of_bank),
            tuple(NodeMultiplexer(inputs) for inputs, _ in plans),
            tuple(arrivals(members, codes, pitch, size) if plans else ()),
            FlitRows(self._beat, 1 if own else max(pitch)),
        )

    def _place_address(
        self, values: IntArray, delays: MemberDelays, pitch: Delays, size: int, *, alike: bool
    ) -> AddressSource:
        """Return the source of an address, and place its bits.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows, choices)
            First addresses, -1 where they do not matter.
        delays : MemberDelays
            Cycles from the slot of a row to the address.
        pitch : tuple of int
            The distance of the addresses of successive flits of a block, for each form.
        size : int
            Words of the memory.
        alike : bool
            True if all nodes have the same first addresses.
        """
        if size == 1:
            return AddressSource(early=False)
        bits, most = (size - 1).bit_length(), self._rows.max_word_offset(pitch)
        column = self.placer.place_address(values, delays, pitch, bits, alike=alike)
        if column is not None:
            return AddressSource(column=column)
        most_first = max(int(values.max()), 0)
        # A table that is addressed by the choice shows a row `CHOICE_DELAY` cycles after the start.
        # An address that is needed in that cycle cannot pass a register of the node.
        setup = self._rows.run_setup
        least = min(min(each) for each in delays.distinct)
        early = self._kinds.n_choices == 1 or least + setup > CHOICE_DELAY
        every, low = most_first.bit_length(), min(self._rows.low_bits, most_first.bit_length())
        first = self.placer.place_number(values, low, delays, early=early, table="read")
        high = np.where(values >= 0, values >> low, -1)
        first += self.placer.place_number(high, every - low, delays, early=early, table="address")
        if not most:
            return AddressSource(first=first, early=early)
        counter = self.placer.place_word_counter(delays, pitch)
        return AddressSource(first=first, counter=counter, early=early)

    def _add_lag(self, address: AddressSource, copy: _CopyPlan) -> AddressSource:
        """Return `address`, with the places of the lag if the readers of the copy have one.

        A lag is the number of cycles by which the address follows the word counter.
        """
        if copy.lag is None:
            return address
        bits = int(copy.lag.max()).bit_length()
        lag = self.placer.place_number(copy.lag, bits, copy.delays, early=True, table="read")
        return replace(address, lag=lag)

    def _plan_arrivals(
        self, members: list[int], codes: list[list[list[int]]], pitch: Delays, size: int
    ) -> list[BankArrivals]:
        """Return the arrivals of a bank, one for each length of links, and place their bits.

        Parameters
        ----------
        members : list of int
            The memories of the bank.
        codes : list of (list of (list of int))
            For each member, the select bits of each input of its multiplexer of words.
        pitch : tuple of int
            The distance of the addresses of successive flits of a block, for each form.
        size : int
            Words of a memory of the bank.
        """
        write, tap = self._all.writes_of_memory(members[0])
        firsts, at_tap = self._values_at_members(write.values), self._values_at_members(tap)
        moves, links_at = self._rows.blocks[:, None] > 0, self._all.links[members[0]][self._members]
        sources = [self._all.word_source(member) for member in members]
        found = []
        for place in range(int((links_at[0] >= 0).sum())):
            links = links_at[:, place]
            acts = (firsts >= 0) & (at_tap == links[:, None, None])
            delays = MemberDelays.from_numbers(
                links, lambda each: lengthen_delays(write.delays, each)
            )
            everywhere = [(write.values >= 0) & (tap == each) for each in np.unique(links)]
            enable = self.placer.place_bit(
                np.where(moves[None], acts, -1),
                delays,
                alike=_nodes_agree(np.where(moves, each, -1) for each in everywhere),
                early=True,
            )
            strobe = self.placer.place_strobe(delays)
            same = _nodes_agree(np.where(each, write.values, -1) for each in everywhere)
            address = self._place_address(
                np.where(acts, firsts, -1), delays, pitch, size, alike=same
            )
            bits = []
            for member, source, of_member in zip(members, sources, codes, strict=True):
                values = np.where(acts, self._values_at_members(source), -1)
                index = self._all.uses.find_inputs(member, self._members, values)
                alike = _nodes_agree(np.where(act, source, -1) for act in everywhere)
                bits.append(self.placer.place_select_bits(index, of_member, delays, alike=alike))
            found.append(BankArrivals((enable,), (strobe,), address, tuple(bits)))
        return found

    def _plan_timed_arrivals(
        self, members: list[int], codes: list[list[list[int]]], pitch: Delays, size: int
    ) -> list[BankArrivals]:
        """Return the arrivals of a bank in a core with writable tables.

        A table has, for each row, the cycles that words spend on their path, from 1. The parameters
        `members`, `codes`, `pitch` and `size` are those of `_plan_arrivals`.
        """
        write, tap = self._all.writes_of_memory(members[0])
        firsts, late = self._values_at_members(write.values), self._values_at_members(tap)
        most, first = (
            int(tap.max()),
            MemberDelays.from_common_delays(lengthen_delays(write.delays, 1), len(late)),
        )
        strobes = [self.placer.place_strobe(first.lengthen(cycles)) for cycles in range(most)]
        number = self.placer.place_number(late, most.bit_length(), first, early=True, table="store")
        address = self._place_address(firsts, first, pitch, size, alike=True)
        assert codes == [[[]]], "a memory stores the words of one source"
        # The word counter advances during the lateness. With `stores_exactly` the node subtracts
        # the lateness; otherwise all words of one lateness lie higher in the memory by it.
        exact = self._rows.stores_exactly
        return [BankArrivals(number, tuple(strobes), address, ((),), exact)]

    def _plan_reader(self, reader: int) -> Reader:
        """Return the plan of a reader, and place its select bits."""
        reads = self._reads[reader]
        known, waits = self._reader_memories(reader)
        words = [LocalWord(k) for k in range(len(known))]
        if waits:
            words.append(IDENTITY_WORD)
        given, codes = plan_multiplexer(words, idles=self._idles, branched=False)
        index = np.full(reads.memory.shape, -1)
        for number, each in enumerate([*known, IDENTITY_MEMORY]):
            index[reads.memory == each] = number
        # The word is available one cycle after its address.
        delays = reads.delays.lengthen(SETTING - ADDRESS)
        plain = (
            np.where(memory == IDENTITY_MEMORY, len(self._depth), memory)
            for memory, _ in reads.fields
        )
        bits = self.placer.place_select_bits(
            index, codes, delays, alike=_nodes_agree(plain), table="read"
        )
        inputs = tuple((number, self._copy_of[reader, number]) for number in known)
        return Reader(inputs, NodeMultiplexer(given, bits, branched=False))


def plan_stores(
    rows: Rows,
    kinds: NodeKinds,
    columns: SequencerSignals,
    *,
    idles: bool,
    concurrent: bool,
    beat: int,
) -> list[StorePlan]:
    """Plan the stores of all kinds of nodes: one store for each family.

    Parameters
    ----------
    rows, kinds : Rows, NodeKinds
        The values of all control points, and the kinds of nodes.
    columns : SequencerSignals
        The signals of the sequencer, to which the plan adds those that it needs.
    idles : bool
        True if the identity word is 0.
    concurrent : bool
        True if the memory port reads and writes during runs.
    beat : int
        Flits that the memory port moves in a cycle.
    """
    all_kinds, found = StoreKinds(rows, kinds), []
    for members in all_kinds.group_by_structure():
        planner = _StorePlanner(
            all_kinds, columns, members, idles=idles, concurrent=concurrent, beat=beat
        )
        family, shape = all_kinds.uses.make_family(members), planner.plan()
        found.append(StorePlan(family, shape, planner.placer, all_kinds.injected[members]))
    return found
