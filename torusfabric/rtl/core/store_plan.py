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

Banks whose runs touch at most one flit of a row in a cycle waste most of the bits that their block
RAMs could move. They share memories as a *pool*, see `store_shape.Pool`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...program.fields import IDENTITY_MEMORY, Action
from ...program.timing import ADDRESS, DISTRIBUTION, SETTING
from ...topology import BoolArray, IntArray
from ..flit_rows import FlitRows
from ..multiplexer import lut_count
from .families import (
    ModuleFamily,
    find_multiplexer_sources,
    group_kinds,
    pad_rows,
    positions_in_groups,
)
from .memory_port import MemoryPort
from .node_module import IDENTITY_WORD, LocalWord, NodeMultiplexer, plan_multiplexer
from .places import Bit, BitPlacer, MemberDelays, SequencerSignals
from .rows import Delays, NodeKinds, RowField, Rows, lengthen_delays
from .store_guests import BLOCK_WORDS, Guest, find_hosts, guest_base
from .store_shape import (
    AddressSource,
    Bank,
    BankArrivals,
    BankCopy,
    Pool,
    PoolAccess,
    Reader,
    StoreShape,
)

__all__ = ["StorePlan", "plan_stores"]

#: Cycles from a start until a table that is addressed by the choice of the node shows a row: the
#: register of the group of nodes, the ROM of choices, and the table itself take one each.
CHOICE_DELAY = DISTRIBUTION + 1

#: Bits of a word of a block RAM, as most devices have them.
BLOCK_BITS = 36

#: Rows of a section from which on a memory is better made of block RAM than of LUTs.
LEAST_BLOCK_ROWS = 16

assert SETTING == ADDRESS + 1, "a word is there a cycle after its address"


class StorePlan(NamedTuple):
    """The store (memories and readers) of a family of nodes: its structure and its control inputs.

    Parameters
    ----------
    family : ModuleFamily
        The nodes that share the module.
    shape : StoreShape
        The structure of the module.
    placer : BitPlacer
        The source of each address bit and select bit: constant, sequencer or table.
    injection_places : ndarray of int, shape (kinds, injections)
        The position of the word of each injection port in the output `inject`; -1 if the nodes of
        the kind do not use the port. Nodes of a kind have equal values in all rows of the program.
    turns : ndarray of int, shape (kinds, readers)
        For each reader of the program, the number by which it rotates the flits of a row.
    """

    family: ModuleFamily
    shape: StoreShape
    placer: BitPlacer
    injection_places: IntArray
    turns: IntArray


class _CopyPlan(NamedTuple):
    """The reads from one copy of a memory, before it is decided who computes the address.

    In the shape (members, rows, choices), a member is a kind of nodes that share the module, and a
    choice is one of the behaviours that a node selects by the root of the run.

    Parameters
    ----------
    values : ndarray of int, shape (members, rows, choices)
        The first address that is read in each row, -1 where it does not matter.
    delays : MemberDelays
        Cycles from the slot of a row (the cycle in which the sequencer presents it) to the address.
    alike : bool
        True if all nodes, including those of other modules, have the same first addresses.
    lag : ndarray of int, shape (members, rows, choices), or None
        The cycles by which the address follows the word counter.
    """

    values: IntArray
    delays: MemberDelays
    alike: bool
    lag: IntArray | None = None

    def add_guest(self, guest: _CopyPlan, base: int, forms: Collection[int]) -> _CopyPlan:
        """Return the plan of the copy with the reads of a guest, which begins at address `base`.

        `forms` are the forms that read the guest; no other form reads it, and they do not read the
        memory of this copy.
        """
        values = np.where(guest.values >= 0, guest.values + base, self.values)
        chosen = zip(self.delays.of_members, guest.delays.of_members, strict=True)
        delays = [choose_by_form(*each, forms) for each in chosen]
        return _CopyPlan(values, MemberDelays.from_members(delays), self.alike and guest.alike)

    def merge(self, other: _CopyPlan) -> _CopyPlan | None:
        """Return the plan of one copy that serves the reads from this copy and from `other`.

        The result is None if one copy cannot serve them: in some row they have different addresses,
        or their delays differ, or one of the two has lags.
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


class _SentPool(NamedTuple):
    """A pool of sent words, before it is decided who computes the addresses; see `Pool`.

    Parameters
    ----------
    readers : list of int
        The positions of the readers in the module.
    memories : list of int
        The numbers of the memories that they read, the largest first.
    accesses : list of (list of int, list of int)
        For each access, the readers that use it, and the memories that they read by it.
    rotates : bool
        True if each reader has an access of its own, so that it rotates rows.
    """

    readers: list[int]
    memories: list[int]
    accesses: list[tuple[list[int], list[int]]]
    rotates: bool


class _ReaderFields(NamedTuple):
    """The reads of one reader of a module, at all kinds of nodes that share the module.

    Readers have numbers in the program and positions in the module. Position k of the module can be
    reader 1 of the program at one kind of nodes, and reader 3 at another kind.

    Parameters
    ----------
    memory : ndarray of int, shape (members, rows, choices)
        The memory to read, -1 where nothing is read. A member is one of the kinds of nodes.
    first : ndarray of int, shape (members, rows, choices)
        The first address, -1 where it does not matter.
    lag : ndarray of int, shape (members, rows, choices), or None
        The cycles by which the address follows the word counter.
    delays : MemberDelays
        Cycles from the slot of a row (the cycle in which the sequencer presents it) to the address.
    fields : tuple of (ndarray of int, ndarray of int), shape (rows, variants)
        For each reader of the program that occurs here, the memory and the first address at all
        nodes of the core. Nodes with equal behaviour are one variant.
    """

    memory: IntArray
    first: IntArray
    lag: IntArray | None
    delays: MemberDelays
    fields: tuple[tuple[IntArray, IntArray], ...]


def choose_by_form(host: Delays, guest: Delays, forms: Collection[int]) -> Delays:
    """Return the entries of `guest` for some forms, and those of `host` for all others."""
    each = enumerate(zip(host, guest, strict=True))
    return tuple(of_guest if form in forms else of_host for form, (of_host, of_guest) in each)


def _nodes_agree(values: Iterable[IntArray]) -> bool:
    """Return True if, in each array, every row has one value at all nodes, apart from values of -1.

    An array has the shape (rows, variants); nodes with equal behaviour are one variant.
    """
    return all(RowField(each, ()).is_equal_at_all_nodes for each in values)


class StoreKinds:
    """The readers, injection ports and stored words of each kind of nodes.

    A kind are nodes with equal values in all rows of the program. Kinds whose stores (memories and
    readers) have the same structure can share a module.

    Attributes
    ----------
    hosts : ndarray of int, shape (kinds, memories)
        The memory in which each memory is a guest, or -1; see `find_hosts`.
    readers : ndarray of int, shape (kinds, readers)
        The numbers of the readers that each kind uses, padded with -1. They are sorted by the
        memories that they read, so that equal structures have equal orders.
    injected : ndarray of int, shape (kinds, injections)
        For each injection port, its position among the ports that the kind uses; -1 if it does not
        use the port.
    links : dict of int to (ndarray of int), shape (kinds, lengths)
        Memory number -> the different lengths, in cycles, of the links from which each kind stores
        words in this memory, padded with -1.
    uses : MultiplexerSources
        The words that each memory can store.
    """

    def __init__(self, rows: Rows, kinds: NodeKinds, hosts: IntArray) -> None:
        self.rows, self.kinds, self.hosts = rows, kinds, hosts
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
        """Return the memory, and the first address, that a reader reads in each row.

        The result is a pair of `RowField`, whose values have the shape (rows, variants): a column
        for each behaviour of a node. A memory of -1 means that the reader reads nothing in the row.
        The result is None if the reader reads nothing in any form.
        """
        memory, first = (self.rows.field(act, reader) for act in (Action.MEMORY, Action.READ))
        if memory is None or first is None:
            return None
        counts = (first.values >= 0) | (memory.values == IDENTITY_MEMORY)
        return RowField(np.where(counts, memory.values, -1), first.delays), first

    @cached_property
    def storing_memories(self) -> list[int]:
        """The numbers of the memories that store arriving words at one node or more."""
        found = []
        for number, depth in enumerate(self.rows.depth.max(axis=0).tolist()):
            write = self.rows.field(Action.WRITE, number)
            if depth and write and (write.values >= 0).any():
                found.append(number)
        return found

    def writes_of_memory(self, number: int) -> tuple[RowField, IntArray]:
        """Return the write address of a memory in each row, and the length of the words' links.

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
        """Return the number of the source whose words memory `number` stores in each row.

        The shape is (rows, variants); a variant is one behaviour of a node. A source is a component
        whose words can be stored, such as an in-port; `Sources` has its number, which for an
        in-port is the number of the in-port. The result is -1 in rows in which the memory stores
        nothing.
        """
        write, source = (self.rows.field(act, number) for act in (Action.WRITE, Action.SOURCE))
        assert write is not None
        assert source is not None
        return np.where(write.values >= 0, source.values, -1)

    def _find_readers(self) -> None:
        """Set `readers`: the readers of each kind of nodes, sorted by the memories that they read.

        Also set `_sets`, an array with a number for each kind and each of its readers. Readers with
        equal numbers read the same set of memories in the course of the program. So the readers of
        two kinds have the same structure if their rows of `_sets` are equal.
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
        """Set `injected`: the positions of the injection ports that each kind of nodes uses.

        The ports of a kind are sorted by the readers that feed them. Also set `_codes`, an array
        with a number for each kind and port: equal numbers mean that readers at the same positions
        feed the port. So the injection ports of two kinds have the same structure if their rows of
        `_codes` are equal.
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
        """Return the lengths of the links from which a memory stores words, at each kind of nodes.

        The memory is `number`. The result has the shape (kinds, lengths): the different lengths in
        cycles, in increasing order, padded with -1.
        """
        write, tap = self.writes_of_memory(number)
        at = self.kinds.values_at_kinds(np.where(write.values >= 0, tap, -1), self._every)
        kind, row, choice = np.nonzero(at >= 0)
        step = int(at.max(initial=0)) + 1
        kind, links = np.divmod(np.unique(kind * step + at[kind, row, choice]), step)
        return pad_rows(kind, links, self.kinds.n_kinds)

    def group_by_structure(self) -> list[IntArray]:
        """Return sets of kinds that can share a module, as an array of kinds for each set.

        A kind are nodes that behave alike. The stores (memories and readers) of the kinds in a set
        have the same structure.
        """
        depth, received = np.maximum(self.kinds.memory_depths, 0), self.kinds.received_memories
        sets = {each: number for number, each in enumerate(dict.fromkeys(received))}
        sizes = np.ceil(np.log2(np.maximum(depth, 1))).astype(int)
        lengths = [(each >= 0).sum(axis=1) for each in self.links.values()]
        columns = [np.where(depth > 0, sizes, -1), np.array([sets[each] for each in received])]
        return group_kinds(
            [*columns, self.hosts, self._sets, self._codes, *lengths, self.uses.signature]
        )


class _StorePlanner:
    """Planner of the memories and readers of one family: the nodes that share a module.

    It collects the reads and writes of these nodes. For each address and select bit it decides
    between a constant, a signal of the sequencer and a table at the node.
    """

    def __init__(
        self,
        all_kinds: StoreKinds,
        columns: SequencerSignals,
        members: IntArray,
        *,
        idles: bool,
        port: MemoryPort | None,
        beat: int,
    ) -> None:
        self._beat, self._port = beat, port
        self._all, self._rows, self._kinds = all_kinds, all_kinds.rows, all_kinds.kinds
        self._columns, self._members = columns, members
        self._idles, self._concurrent = idles, port is not None and port.concurrent
        self.placer = BitPlacer(columns, many=self._kinds.outnumber_groups(members))
        self._depth = self._kinds.memory_depths[members].max(axis=0)
        received = self._kinds.received_memories[members[0]]
        self._received = tuple(sorted(k for k in received if self._depth[k]))
        self._copy_of: dict[tuple[int, int], int] = {}
        self._pitch = [self._rows.pitch_of(number) for number in range(len(self._depth))]
        #: Host -> its guest.
        self._guests: dict[int, Guest] = {}
        #: The pool of each memory that is in one.
        self._pool_of: dict[int, _SentPool] = {}
        self._readers = all_kinds.readers[members]
        places = range(int((self._readers[0] >= 0).sum()))
        self._reads = [self._find_reads(place) for place in places]

    def _values_at_members(self, values: IntArray) -> IntArray:
        """Return the values at the nodes of the family, shape (members, rows, choices).

        `values` has the shape (rows, variants): a column for each different behaviour of a node. A
        member is a kind of nodes, and a choice one of the variants that a node selects by the root
        of a run.
        """
        return self._kinds.values_at_kinds(values, self._members)

    def plan_received(self) -> bool:
        """Plan the memories of received words; return True if all of them are in pools."""
        self._copies = self._plan_copies()
        self._place_guests(self._copies)
        self._port_reader = self._find_port_reader()
        self._formed = self._form_banks(self._copies)
        self._banks = {
            place: self._plan_bank(members, self._copies)
            for place, members in enumerate(self._formed)
            if not self._rows.memories[members[0]].own
        }
        self._received_pools = [*self._plan_received_pools(self._banks)]
        return len(self._banks) == sum(len(each.banks) for each in self._received_pools)

    def plan(self, *, rotates: bool) -> StoreShape:
        """Return the structure of the store, and find the source of each address and select bit.

        A store consists of the memories and readers of a node. A source is a constant, a signal of
        the sequencer, or a table at the node. The signals and tables are collected in `placer`.
        `plan_received` must have been called before. If `rotates` is true, readers can rotate rows.
        """
        self._rotates, copies, banks = rotates and self._can_rotate, self._copies, self._banks
        first = self._readers[0].tolist()
        injections = self._all.sources.injections
        pools = self._find_sent_pools(copies)
        self._pool_of = {number: pool for pool in pools for number in pool.memories}
        copies |= {number: [] for pool in pools for number in pool.memories}
        for place, members in enumerate(self._formed):
            if place not in banks:
                banks[place] = self._plan_bank(members, copies)
        sent = [self._plan_sent_pool(banks, pool) for pool in pools]
        return StoreShape(
            tuple(banks[place] for place in range(len(banks))),
            tuple(self._plan_reader(place) for place in range(len(self._reads))),
            tuple(
                tuple(first.index(reader) for reader in injections[port] if reader in first)
                for port in self._all.ports[self._members[0]].tolist()
                if port >= 0
            ),
            self._received,
            self._all.sources.injection_delay,
            self._port_reader,
            (*sent, *self._received_pools),
        )

    def _find_reads(self, place: int) -> _ReaderFields:
        """Return the memories and addresses that one reader reads, at all nodes of the family.

        A reader passes, in each row of the program, a word of one memory to an injection port of
        the node. `place` is the position of the reader in the module.
        """
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
        """Return the copies of each memory: memory number -> plans of its copies.

        A copy has the same words as the memory, and a read port of its own. Readers share a copy if
        one address serves them in each row of the program; otherwise they get copies of their own.
        The number of the copy that each reader uses is recorded in `_copy_of`, under (position of
        the reader, memory number).
        """
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

    def _place_guests(self, copies: dict[int, list[_CopyPlan]]) -> None:
        """Join the copies, depths and pitches of guests with those of their hosts.

        `copies` has the copies of each memory; those of guests are removed.
        """
        hosts = self._all.hosts[self._members[0]]
        for number in np.flatnonzero(hosts >= 0).tolist():
            host, layout = int(hosts[number]), self._rows.memories[number].layout
            base = int(guest_base(self._depth[host], self._depth[number]))
            every = enumerate(self._rows.program.forms)
            forms = {form for form, each in every if each.layout == layout}
            (one,), (other,) = copies[host], copies.pop(number)
            copies[host] = [one.add_guest(other, base, forms)]
            self._pitch[host] = choose_by_form(self._pitch[host], self._pitch[number], forms)
            self._guests[host] = Guest(number, base)
            self._depth[host] = base + self._depth[number]

    def _reader_memories(self, place: int) -> tuple[list[int], bool]:
        """Return the memories that a reader reads, and True if it also passes the identity word.

        ``([0, 2], True)`` are memories 0 and 2, and the identity word, which leaves the result of
        an operator unchanged. A reader passes the identity word in rows of the program in which the
        operator behind the reader must not combine a word from memory. `place` is the position of
        the reader in the module.
        """
        values = self._reads[place].memory
        last = len(self._depth)
        used = np.bincount(
            np.where(values == IDENTITY_MEMORY, last, values)[values != -1], minlength=last + 1
        )
        return np.flatnonzero(used[:last]).tolist(), bool(used[last])

    def _find_port_reader(self) -> int | None:
        """Return the position of a reader that the memory port can use between runs, or None.

        The memory port reads the received words of the node from outside. If some reader reads all
        memories that hold such words, its multiplexer also serves the port, which then needs no
        multiplexer of its own. The result is None if there is no such reader, or at most one such
        memory. It is also None if the port works during runs, or reads several flits in a cycle,
        because a reader passes single flits.
        """
        if self._concurrent or self._beat > 1 or len(self._received) < 2:
            return None
        wanted = {*self._received}
        for reader in range(len(self._reads)):
            if wanted <= {*self._reader_memories(reader)[0]}:
                return reader
        return None

    def _bank_key(self, number: int, copies: list[_CopyPlan]) -> object:
        """Return a key that is equal for two memories that can have common addresses.

        Such memories can be stored side by side, as one bank. The key includes the size, the write
        addresses, and the delays of writes and reads. `number` is the number of the memory, and
        `copies` lists its copies.
        """
        writes = [self._rows.field(action, number) for action in (Action.WRITE, Action.TAP)]
        memory = self._rows.memories[number]
        return (
            memory.own and (memory.layout,),
            self._guests.get(number),
            self._rounded_size(number),
            self._pitch[number],
            [each.delays.comparison_key for each in copies],
            number in self._received,
            [
                each and (self._values_at_members(each.values).tobytes(), each.delays)
                for each in writes
            ],
        )

    def _rounded_size(self, number: int) -> int:
        """Return the number of words of memory `number`, rounded up to a power of two."""
        return 1 << (int(self._depth[number]) - 1).bit_length()

    def _form_banks(self, copies: dict[int, list[_CopyPlan]]) -> list[list[int]]:
        """Group memories into banks, and return the numbers of the memories of each bank.

        ``[[0, 1], [2]]`` are two banks. The memories of a bank are written and read at the same
        addresses. `copies` has the copies of each memory, and is changed: afterwards the copies of
        the first memory of a bank also serve the readers of the other memories.
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
        """Return the plan of the bank of the memories `members`.

        A bank is a set of memories with common addresses. `copies` has the copies of each memory by
        its number; the copies of the first of `members` serve all of them.
        """
        number = members[0]
        guests = tuple(self._guests[member] for member in members if member in self._guests)
        shown_guest = bool({guest.memory for guest in guests} & {*self._received})
        shown = shown_guest or bool({*members} & {*self._received})
        pitch, size = self._pitch[number], self._rounded_size(number)
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
            if address and address.column is not None and not shown_guest:
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
            guests,
        )

    def _find_sent_pools(self, copies: Mapping[int, Sequence[_CopyPlan]]) -> list[_SentPool]:
        """Return the pools of sent words, with at most R accesses each.

        Memories that a reader has in common are together in a pool if possible. `copies` has the
        copies of each memory without pools.
        """
        alike: dict[object, list[_SentPool]] = {}
        for part in self._find_parts():
            if (key := self._pool_key(part, copies)) is None:
                continue
            pools = alike.setdefault(key, [])
            if pools and len(self._join_pools(pools[-1], part).accesses) <= self._beat:
                part = self._join_pools(pools.pop(), part)
            pools.append(part)
        rows = FlitRows(self._beat)
        return [
            pool
            for pools in alike.values()
            for pool in pools
            if self._saves_blocks(
                [(rows.n_rows(self._rounded_size(k)), len(copies[k])) for k in pool.memories]
            )
        ]

    def _find_parts(self) -> list[_SentPool]:
        """Return the smallest pools that are possible; each memory is in one.

        If readers can rotate rows, a pool has all memories of its readers.
        """
        connected: list[tuple[list[int], list[int]]] = []
        for place in range(len(self._reads)):
            readers, memories = [place], self._reader_memories(place)[0]
            for other in [each for each in connected if {*each[1]} & {*memories}]:
                connected.remove(other)
                readers, memories = other[0] + readers, [*{*other[1], *memories}]
            connected.append((readers, memories))
        found = []
        for readers, memories in connected:
            memories.sort(key=self._rounded_size, reverse=True)
            if self._rotates and len(readers) <= self._beat:
                accesses = [([place], memories) for place in readers]
                found.append(_SentPool(readers, memories, accesses, rotates=True))
                continue
            for number in memories:
                of_memory = [k for k in readers if number in self._reader_memories(k)[0]]
                found.append(_SentPool(of_memory, [number], [(of_memory, [number])], rotates=False))
        return found

    def _join_pools(self, a: _SentPool, b: _SentPool) -> _SentPool:
        """Return one pool in place of two.

        If readers do not rotate rows, memories that no run reads together share an access.
        """
        readers = list(dict.fromkeys(a.readers + b.readers))
        memories = sorted(a.memories + b.memories, key=self._rounded_size, reverse=True)
        if a.rotates:
            accesses = [([place], memories) for place in readers]
            return _SentPool(readers, memories, accesses, rotates=True)
        shared: list[tuple[list[int], set[int]]] = []
        for number in memories:
            read = [(self._reads[place].memory == number).any(axis=(0, 2)) for place in readers]
            forms = {*self._rows.form_of_row[np.logical_or.reduce(read)].tolist()}
            for known, busy in shared:
                if not forms & busy:
                    known.append(number)
                    busy |= forms
                    break
            else:
                shared.append(([number], forms))
        accesses = [(readers, known) for known, _ in shared]
        return _SentPool(readers, memories, accesses, rotates=False)

    def _pool_key(self, pool: _SentPool, copies: Mapping[int, Sequence[_CopyPlan]]) -> object:
        """Return a key that is equal for pools that can be joined; None for an impossible pool.

        In a pool, a run only reads words that the node sends. All rows of the program begin at the
        first flit of a row of the memory. `copies` has the copies of each memory.
        """
        memories = pool.memories
        if not (self._can_pool and memories and all(self._rows.memories[k].own for k in memories)):
            return None
        if not pool.rotates and any(len(copies[number]) != 1 for number in memories):
            return None
        reads = [self._reads[place] for place in pool.readers]
        first = [each.first[np.isin(each.memory, memories)] for each in reads]
        if any((each[each >= 0] % self._beat).any() for each in first):
            return None
        keys = {each.delays.comparison_key for each in reads}
        pitches = {self._rows.pitch_of(number) for number in memories}
        if len(keys) > 1 or len(pitches) > 1:
            return None
        return pool.rotates, keys.pop(), pitches.pop()

    @property
    def _can_pool(self) -> bool:
        """True if runs access one flit of a row of the memory port, which works at any time."""
        return self._beat > 1 and self._concurrent and not self._columns.by_setting

    @property
    def _can_rotate(self) -> bool:
        """True if the flits of a row may arrive in another order.

        Nodes combine words flit by flit, and so no flits may change places. The last row of a block
        must be full.
        """
        if not self._can_pool:
            return False
        program = self._rows.program
        full = all(form.block_unit_flits % self._beat == 0 for form in program.forms)
        return not program.operators and (full or not program.any_length)

    def _plan_sent_pool(self, banks: Mapping[int, Bank], pool: _SentPool) -> Pool:
        """Return the plan of a pool of sent words."""
        place_of = {bank.members[0]: place for place, bank in banks.items()}
        pitch = self._rows.pitch_of(pool.memories[0])
        sizes = [banks[place_of[number]].n_rows for number in pool.memories]
        bases = np.cumsum([0, *sizes[:-1]])
        base_of, delays = np.full(len(self._depth), -1), self._reads[pool.readers[0]].delays
        base_of[pool.memories] = bases
        found, turns = [], dict.fromkeys(pool.memories, 0)
        for number, (readers, memories) in enumerate(pool.accesses):
            shape = self._reads[pool.readers[0]].memory.shape
            first, base, alike = np.full(shape, -1), np.full(shape, -1), True
            for reads in (self._reads[place] for place in readers):
                here = np.isin(reads.memory, memories)
                first = np.maximum(first, np.where(here, reads.first, -1))
                base = np.maximum(base, np.where(here, base_of[reads.memory], -1))
                alike &= _nodes_agree(np.where(np.isin(memory, memories), address, -1)
                                      for memory, address in reads.fields)  # fmt: skip
            size = self._rounded_size(memories[0])
            address = self._place_address(first, delays, pitch, size, alike=alike)
            source = self.placer.place_number(base, int(bases[-1]).bit_length(), delays)
            found.append(PoolAccess(place_of[memories[0]], address, source))
            if not pool.rotates:
                turns |= dict.fromkeys(memories, number)
        counter = self.placer.place_word_counter(delays, pitch)
        places = [place_of[number] for number in pool.memories]
        return _lay_out_pool(banks, places, [*turns.values()], counter, found)

    def _plan_received_pools(self, banks: Mapping[int, Bank]) -> Iterator[Pool]:
        """Yield the pools of received words: up to R of `banks` each, which share memories."""
        alike: dict[object, tuple[MemberDelays, list[int]]] = {}
        for place, bank in banks.items():
            if (delays := self._stored_delays(bank)) is not None:
                pitch = self._rows.pitch_of(bank.members[0])
                key = bank.rows, pitch, delays.comparison_key
                alike.setdefault(key, (delays, []))[1].append(place)
        for delays, places in alike.values():
            places.sort(key=lambda place: banks[place].n_rows, reverse=True)
            for at in range(0, len(places), self._beat):
                pooled = places[at : at + self._beat]
                if not self._saves_blocks([(banks[place].n_rows, 1) for place in pooled]):
                    continue
                pitch = self._rows.pitch_of(banks[pooled[0]].members[0])
                counter = self.placer.place_word_counter(delays, pitch)
                yield _lay_out_pool(banks, pooled, range(len(pooled)), counter)

    def _saves_blocks(self, memories: Sequence[tuple[int, int]]) -> bool:
        """Return True if a pool takes at most half the block RAMs of single memories.

        Why half: the multiplexers of a pool take some LUTs. Each of `memories` has a number of rows
        in a section, and a number of copies. Memories of few rows are not counted.
        """
        assert self._port is not None
        width, sections = self._port.width, self._port.sections
        deep = [(rows * sections, n) for rows, n in memories if rows >= LEAST_BLOCK_ROWS]
        blocks = lambda bits, words: -(-bits // BLOCK_BITS) * -(-words // BLOCK_WORDS)
        single: int = sum(n * blocks(width, words) for words, n in deep)
        pooled: int = self._beat * blocks(width // self._beat, sum(words for words, _ in deep))
        return 0 < 2 * pooled <= single

    def _stored_delays(self, bank: Bank) -> MemberDelays | None:
        """Return the delays with which runs write a bank, or None if a pool cannot serve it.

        In a pool, a run does not read received words. All rows of the program begin at the first
        flit of a row of the memory.
        """
        if not self._can_pool or bank.own or len(bank.arrivals) != 1:
            return None
        if len(bank.copies) != 1 or bank.copies[0].address is not None:
            return None
        number = bank.members[0]
        write, _ = self._all.writes_of_memory(number)
        first = self._values_at_members(write.values)
        links = self._all.links[number][self._members][:, 0]
        delays = MemberDelays.from_numbers(links, lambda each: lengthen_delays(write.delays, each))
        _, flit = bank.rows.split_address(first)
        return delays if (flit[first >= 0] == 0).all() else None

    @property
    def reader_turns(self) -> IntArray:
        """The number by which each reader rotates the flits of a row, shape (kinds, readers)."""
        found = np.zeros((len(self._members), self._all.sources.n_readers), int)
        for pool in self._pool_of.values():
            for turn, place in enumerate(pool.readers if pool.rotates else ()):
                found[np.arange(len(found)), self._readers[:, place]] = turn
        return found

    def _place_address(
        self, values: IntArray, delays: MemberDelays, pitch: Delays, size: int, *, alike: bool
    ) -> AddressSource:
        """Decide who computes an address of a memory: the sequencer, or the node itself.

        The sequencer computes it if one signal can serve the nodes that share the module, see
        `BitPlacer.place_address`.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows, choices)
            The first address in each row, -1 where it does not matter. A member is a kind of nodes.
        delays : MemberDelays
            Cycles from the slot of a row (the cycle in which the sequencer presents it) to the
            address.
        pitch : tuple of int
            For each form, the distance between the addresses of successive flits of a block.
        size : int
            Words of the memory.
        alike : bool
            True if all nodes have the same first addresses.

        Returns
        -------
        AddressSource
            The address, with the source of each of its bits.
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
        """Return `address`, extended by a lag if the reads of `copy` have one.

        A lag is the number of cycles by which the address follows the word counter. The nodes have
        a writable table of lags.
        """
        if copy.lag is None:
            return address
        bits = int(copy.lag.max()).bit_length()
        lag = self.placer.place_number(copy.lag, bits, copy.delays, early=True, table="read")
        return replace(address, lag=lag)

    def _plan_arrivals(
        self, members: list[int], codes: list[list[list[int]]], pitch: Delays, size: int
    ) -> list[BankArrivals]:
        """Return the plan by which a bank stores arriving words, one entry for each link latency.

        A bank consists of the memories `members`, which are written at the same addresses. Each has
        a multiplexer that selects the word to store. Words from links of a larger latency arrive
        later in the row of the program, so each latency has its own write enable, address and
        select bits. The method finds a source for each of them: a constant, a signal that the
        sequencer sends to all nodes, or a table at the node.

        Parameters
        ----------
        members : list of int
            The numbers of the memories of the bank, such as ``[2, 3]``.
        codes : list of (list of (list of int))
            ``codes[k][i]`` has the select bits by which the multiplexer of memory ``members[k]``
            passes its input i, such as ``[1, 0]``, the least significant bit first.
        pitch : tuple of int
            For each form, the distance between the addresses of successive flits of a block.
        size : int
            Number of words of each memory of the bank, a power of two.
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
        """Return the plan by which a bank stores words, in a core with writable tables: one entry.

        For each row of the program, a table of the node has the number of cycles that the arriving
        words spend on links, or 0 to store nothing. This number selects the write enable from
        several strobes of the sequencer, each a cycle later than the strobe before it.

        `members` has the number of the only memory of the bank, and `size` is the number of its
        words. `codes` is ``[[[]]]``, no select bits, because the memory stores the words of one
        source. `pitch` is the distance between the addresses of successive flits of a block, for
        each form.
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
        """Return the plan of a reader: its inputs, and the sources of its select bits.

        A reader has a multiplexer, which passes in each row of the program the word of one memory.
        The source of a select bit is a constant, the sequencer or a table at the node. `reader` is
        the position of the reader in the module.
        """
        reads = self._reads[reader]
        memories, waits = self._reader_memories(reader)
        # The first memory of a merged pool stands for all of its memories.
        lead_of = np.arange(len(self._depth))
        for pool in self._pool_of.values():
            if self._is_merged(pool):
                lead_of[pool.memories] = pool.memories[0]
        read = np.where(reads.memory >= 0, lead_of[reads.memory], reads.memory)
        known = np.unique(lead_of[memories]).tolist()
        words = [LocalWord(k) for k in range(len(known))]
        if waits:
            words.append(IDENTITY_WORD)
        given, codes = plan_multiplexer(words, idles=self._idles, branched=False)
        index = np.full(reads.memory.shape, -1)
        for number, each in enumerate([*known, IDENTITY_MEMORY]):
            index[read == each] = number
        # The word is available one cycle after its address.
        delays = reads.delays.lengthen(SETTING - ADDRESS)
        plain = (
            np.where(memory == IDENTITY_MEMORY, len(lead_of), np.append(lead_of, -1)[memory])
            for memory, _ in reads.fields
        )
        bits = self.placer.place_select_bits(
            index, codes, delays, alike=_nodes_agree(plain), table="read"
        )
        inputs = tuple((number, self._copy_of.get((reader, number), 0)) for number in known)
        accesses = tuple(self._place_access(reader, read == number, number) for number in known)
        return Reader(inputs, NodeMultiplexer(given, bits, branched=False), accesses)

    def _is_merged(self, pool: _SentPool) -> bool:
        """Return True if each reader of a pool has one selector of columns, for all of its banks.

        Otherwise each bank has a selector, and readers select among the banks. The choice is the
        one with fewer LUTs.
        """
        read = [len({*pool.memories} & {*self._reader_memories(k)[0]}) for k in pool.readers]
        banks, of_column = len(pool.memories), lut_count(self._beat)
        apart = banks * of_column + sum(map(lut_count, read))
        return pool.rotates or len(read) * of_column <= apart

    def _place_access(self, reader: int, reads: BoolArray, number: int) -> tuple[Bit, ...]:
        """Return the sources of the bits of the access by which a reader reads a pool.

        `number` is the memory that stands for the pool, and `reads` is True where the reader reads
        it. The result is empty for a memory that is in no pool.
        """
        if number not in self._pool_of:
            return ()
        memory = self._reads[reader].memory
        access = np.full(memory.shape, -1)
        for k, (readers, memories) in enumerate(self._pool_of[number].accesses):
            access[reads & np.isin(memory, memories) & (reader in readers)] = k
        bits = (self._beat - 1).bit_length()
        return self.placer.place_number(access, bits, self._reads[reader].delays)


def plan_stores(
    rows: Rows,
    kinds: NodeKinds,
    columns: SequencerSignals,
    *,
    idles: bool,
    port: MemoryPort | None,
    beat: int,
) -> list[StorePlan]:
    """Plan the memories and readers of all nodes, one plan for each module.

    Nodes share a module if their memories and readers have the same structure.

    Parameters
    ----------
    rows, kinds : Rows, NodeKinds
        The values of the program in each row, and the kinds of nodes: sets of nodes with equal
        values.
    columns : SequencerSignals
        The signals of the sequencer, to which the plan adds those that it needs.
    idles : bool
        True if the identity word, which leaves the result of an operator unchanged, is 0. A
        multiplexer then needs no input for it.
    port : MemoryPort or None
        The memory port; None for a port that works only between runs.
    beat : int
        Flits that the memory port moves in a cycle.
    """
    hosts = np.full((kinds.n_kinds, len(rows.memories)), -1)
    if port is not None and beat == 1 and not columns.by_setting:
        hosts = find_hosts(kinds, port)
    all_kinds, found = StoreKinds(rows, kinds, hosts), list[StorePlan]()
    groups = all_kinds.group_by_structure()
    planners = [_StorePlanner(all_kinds, columns, members, idles=idles, port=port, beat=beat)
                for members in groups]  # fmt: skip
    # Rows that arrive rotated cost nothing if the memory port selects among rotated rows anyway.
    rotates = sum(planner.plan_received() for planner in planners) == len(planners)
    for planner, members in zip(planners, groups, strict=True):
        family, shape = all_kinds.uses.make_family(members), planner.plan(rotates=rotates)
        places = all_kinds.injected[members]
        found.append(StorePlan(family, shape, planner.placer, places, planner.reader_turns))
    turns = 1 + max((int(each.turns.max(initial=0)) for each in found), default=0)
    return [each._replace(shape=replace(each.shape, turns=turns)) for each in found]


def _lay_out_pool(
    banks: Mapping[int, Bank],
    places: Sequence[int],
    turns: Sequence[int],
    counter: int,
    accesses: Sequence[PoolAccess] = (),
) -> Pool:
    """Return the pool of the banks with the indices `places`, the largest first.

    The other parameters are those of `Pool`.
    """
    *bases, end = np.cumsum([0, *(banks[place].n_rows for place in places)]).tolist()
    last = banks[places[-1]]
    depth = bases[-1] + last.rows.n_rows(last.depth)
    size = 1 << (end - 1).bit_length()
    return Pool(tuple(places), tuple(bases), tuple(turns), size, depth, counter, tuple(accesses))
