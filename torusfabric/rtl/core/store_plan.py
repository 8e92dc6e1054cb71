"""The plan of a store: the memories and readers of the nodes of a family.

Readers whose addresses agree share a *copy* of a memory. Memories that are written at the same
addresses, and read at the same addresses, are members of one *bank*, a wide memory::

    bank of two members, one copy

    address  | word of member 1 | word of member 0 |
    0        |                  |                  |
    1        |                  |                  |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from ...program.fields import NEUTRAL, Action
from ...program.timing import ADDRESS, DISTRIBUTION, SETTING
from ...topology import IntArray
from .crossbar import (
    Family,
    SourceWords,
    input_numbers,
    local_word,
    used_sources,
    used_words,
)
from .kinds import NodeKinds, Patterns
from .part import NEUTRAL_WORD, Choice, LocalWord, plan_choice
from .places import Bit, BitPlacer, Columns, EachDelays
from .rows import Delays, RowField, Rows, later
from .split import SplitRows

__all__ = ["Address", "Arrival", "Bank", "Copy", "Reader", "Store", "StoreShape", "plan_stores"]

#: Cycles from a start to the row of a table that is addressed by the choice of the node: the
#: registers on the way to the node, the table of choices, and the table itself.
CHOICE_DELAY = DISTRIBUTION + 1

assert SETTING == ADDRESS + 1, "a word is there a cycle after its address"


#: For each kind of nodes, the readers that read anything: the memories and the number of each.
_ActiveReaders: TypeAlias = list[list[tuple[tuple[int, ...], int]]]


@dataclass(frozen=True)
class Address:
    """An address of a memory during a run.

    Parameters
    ----------
    column : int or None
        The address column of the sequencer; else the address is a first address plus a counter.
    first : tuple of Bit
        The first address of the row.
    counter : int or None
        The word counter of the sequencer; None if rows have one word.
    early : bool
        True if a register of the node holds the sum of both.
    """

    column: int | None = None
    first: tuple[Bit, ...] = ()
    counter: int | None = None
    early: bool = True


@dataclass(frozen=True)
class Copy:
    """A copy of a bank.

    Parameters
    ----------
    address : Address or None
        The address that readers give it; None if no reader does.
    shown : bool
        True if the memory port reads it.
    """

    address: Address | None
    shown: bool


@dataclass(frozen=True)
class Arrival:
    """Words that a bank stores in a run, as late as one length of links makes them.

    Parameters
    ----------
    enable : Bit
        High in rows with such words.
    strobe : int
        The strobe of the sequencer.
    codes : tuple of (tuple of Bit)
        For each member of the bank, the select bits of its word.
    """

    enable: Bit
    strobe: int
    address: Address | None
    codes: tuple[tuple[Bit, ...], ...]


@dataclass(frozen=True)
class Bank:
    """Memories side by side.

    Parameters
    ----------
    members : tuple of int
        Memory numbers.
    size : int
        Words of each section: a power of two.
    own : bool
        True if the memory port writes it.
    words : tuple of Choice
        The words that each member stores, without select bits.
    """

    members: tuple[int, ...]
    size: int
    own: bool
    copies: tuple[Copy, ...]
    words: tuple[Choice, ...]
    arrivals: tuple[Arrival, ...]


@dataclass(frozen=True)
class Reader:
    """A reader: the words among which it chooses.

    Parameters
    ----------
    inputs : tuple of (int, int)
        Memory and copy of each word, before the word that changes nothing.
    choice : Choice
        Its words are those of `inputs`, by position.
    """

    inputs: tuple[tuple[int, int], ...]
    choice: Choice


@dataclass(frozen=True)
class StoreShape:
    """The structure of a store.

    Parameters
    ----------
    injections : tuple of (tuple of int)
        The readers of each injection port.
    received : tuple of int
        The memories that the memory port reads.
    injection_delay : int
        Cycles by which words of injection ports come later.
    port_reader : int or None
        The reader whose multiplexer also passes the words that the memory port asks for.
    """

    banks: tuple[Bank, ...]
    readers: tuple[Reader, ...]
    injections: tuple[tuple[int, ...], ...]
    received: tuple[int, ...]
    injection_delay: int
    port_reader: int | None = None


class Store(NamedTuple):
    """The plan of the stores of a family.

    Parameters
    ----------
    injection_places : ndarray of int, shape (kinds, injections)
        The place of each injection port in the module, -1 for none.
    """

    family: Family
    shape: StoreShape
    placer: BitPlacer
    injection_places: IntArray


@dataclass
class _CopyPlan:
    """A copy in the making.

    Parameters
    ----------
    values : ndarray of int, shape (members, rows, choices)
        First addresses at the nodes of the family.
    agrees : bool
        True if all nodes, those of other families included, have the same first addresses.
    readers : list of int
        The readers that use the copy, by their places among those of a node.
    """

    values: IntArray
    agrees: bool
    delays: EachDelays
    readers: list[int] = field(default_factory=list)

    def merge(self, other: _CopyPlan) -> _CopyPlan | None:
        """Return a copy that serves both, or None."""
        if self.delays != other.delays or not _compatible(self.values, other.values):
            return None
        values = np.maximum(self.values, other.values)
        agrees = self.agrees and other.agrees
        return _CopyPlan(values, agrees, self.delays, self.readers + other.readers)


def _compatible(a: IntArray, b: IntArray) -> bool:
    """Return True if two arrays agree wherever both are known."""
    return bool(((a == b) | (a < 0) | (b < 0)).all())


class _Reads(NamedTuple):
    """What the readers at a place among those of a node read.

    Parameters
    ----------
    memory, first : ndarray of int, shape (members, rows, choices)
    delays : tuple of Delays
        For each pattern.
    memory_agrees : bool
        True if all nodes read the same memories.
    fields : tuple of (RowField, RowField)
        Memory and first address, for each pattern.
    """

    memory: IntArray
    first: IntArray
    delays: EachDelays
    memory_agrees: bool
    fields: tuple[tuple[RowField, RowField], ...]


class _Arriving(NamedTuple):
    """The words that a memory stores.

    Parameters
    ----------
    source : ndarray of int, shape (rows, variants)
        -1 where it stores nothing.
    numbers : ndarray of int, shape (members, sources + 1)
        The input that each source is at each member.
    inputs : tuple of LocalWord
    codes : list of (list of int)
        The select bits of each input.
    """

    source: IntArray
    numbers: IntArray
    inputs: tuple[LocalWord, ...]
    codes: list[list[int]]


class _StoreKinds(NamedTuple):
    """The kinds of a family.

    Parameters
    ----------
    members, pattern : ndarray of int, shape (kinds,)
        The number of each kind, and its pattern in the family.
    first : ndarray of int, shape (patterns,)
        A kind of each pattern.
    readers : list of (list of int)
        The readers that read anything, for each pattern.
    """

    members: IntArray
    pattern: IntArray
    first: IntArray
    readers: list[list[int]]


class _StorePlanner:
    """Plans the stores of a family."""

    def __init__(
        self,
        rows: Rows,
        kinds: NodeKinds,
        columns: Columns,
        family: _StoreKinds,
        *,
        idles: bool,
        concurrent: bool,
    ) -> None:
        self._rows, self._kinds, self._columns = rows, kinds, columns
        self._members, self._pattern, self._first, self._readers = family
        self._idles, self._concurrent = idles, concurrent
        splits = rows.splits if isinstance(rows, SplitRows) else ()
        self._words = SourceWords(rows.loops[0].sources)
        self.placer = BitPlacer(columns, family.pattern, many=kinds.are_many(family.members))
        self._depth = kinds.depth[family.members].max(axis=0)
        received = kinds.received[family.members[0]]
        split = {each.received for each in splits if each.memory in received}
        self._received = tuple(sorted(k for k in received | split if self._depth[k]))
        self._copy_of: dict[tuple[int, int], int] = {}
        self.used = self._used_words()

    def _used_words(self) -> list[tuple[int, ...]]:
        """Return the words that arrive in memories, for each pattern of the family."""
        found = []
        for kind in self._first:
            sources: list[int] = []
            for number in self._stored():
                source = self._rows.field(Action.SOURCE, number)
                assert source is not None
                sources += used_sources(self._words, self._at(self._source(number), [kind]))
            found.append(_given_words(self._words, sources))
        return found

    def _source(self, number: int) -> IntArray:
        """Return the source of the words of a memory, -1 in rows in which it stores nothing."""
        write, source = (
            self._rows.field(action, number) for action in (Action.WRITE, Action.SOURCE)
        )
        assert write is not None
        assert source is not None
        return np.where(write.values >= 0, source.values, -1)

    def _at(self, values: IntArray, kinds: Sequence[int] | None = None) -> IntArray:
        """Return values at the members of the family, or at some kinds, given them by variant."""
        return self._kinds.values(values, self._members if kinds is None else np.array(kinds))

    def _stored(self) -> list[int]:
        """Return the memories that store arriving words at any member."""
        found = []
        for number in range(len(self._depth)):
            write = self._rows.field(Action.WRITE, number)
            if self._depth[number] and write and (self._at(write.values) >= 0).any():
                found.append(number)
        return found

    def plan(self) -> StoreShape:
        """Return the structure of the stores."""
        sources = self._rows.loops[0].sources
        copies = self._plan_copies()
        self._port_reader = self._find_port_reader()
        banks = tuple(self._bank(members, copies) for members in self._wide_banks(copies))
        readers = tuple(self._reader(place) for place in range(len(self._readers[0])))
        return StoreShape(
            banks,
            readers,
            tuple(sorted(_injections(self._rows, self._readers[0]).values())),
            self._received,
            sources.injection_delay,
            self._port_reader,
        )

    @property
    def injection_places(self) -> IntArray:
        """The place of each injection port in the module, -1 for none, for each pattern."""
        injections = self._rows.loops[0].sources.injections
        found = np.full((len(self._readers), len(injections)), -1)
        for pattern, readers in enumerate(self._readers):
            places = _injections(self._rows, readers)
            for place, number in enumerate(sorted(places, key=lambda k: places[k])):
                found[pattern, number] = place
        return found

    def _field_reads(self, reader: int) -> tuple[RowField, RowField] | None:
        """Return the memory of a reader, -1 where it reads nothing, and the first address."""
        memory = self._rows.field(Action.MEMORY, reader)
        first = self._rows.field(Action.READ, reader)
        if memory is None or first is None:
            return None
        counts = (first.values >= 0) | (memory.values == NEUTRAL)
        return RowField(np.where(counts, memory.values, -1), memory.delays), first

    def _reads(self, place: int) -> _Reads:
        """Return what the readers at a place among those of a node read."""
        memory = np.full((len(self._members), self._rows.count, self._kinds.choices), -1)
        first, agrees, delays = memory.copy(), [], []
        same_memory = []
        for pattern, readers in enumerate(self._readers):
            reads = self._field_reads(readers[place])
            assert reads is not None
            of_memory, of_first = reads
            here = np.flatnonzero(self._pattern == pattern)
            memory[here] = self._kinds.values(of_memory.values, self._members[here])
            first[here] = self._kinds.values(of_first.values, self._members[here])
            delays.append(of_first.delays)
            plain = np.where(of_memory.values == NEUTRAL, len(self._depth), of_memory.values)
            same_memory.append(RowField(plain, of_first.delays).agrees)
            agrees.append(reads)
        return _Reads(memory, first, tuple(delays), all(same_memory), tuple(agrees))

    def _plan_copies(self) -> dict[int, list[_CopyPlan]]:
        """Return the copies of each memory: readers whose addresses agree share one."""
        copies: dict[int, list[_CopyPlan]] = {
            number: [] for number, depth in enumerate(self._depth.tolist()) if depth
        }
        for place in range(len(self._readers[0])):
            reads = self._reads(place)
            for number in np.unique(reads.memory[reads.memory >= 0]).tolist():
                values = np.where(reads.memory == number, reads.first, -1)
                agrees = all(
                    RowField(np.where(memory.values == number, first.values, -1), ()).agrees
                    for memory, first in reads.fields
                )
                wanted = _CopyPlan(values, agrees, reads.delays, [place])
                if self._columns.writable:
                    self._copy_of[place, number] = len(copies[number])
                    copies[number].append(wanted)
                else:
                    self._copy_of[place, number] = _add_copy(copies[number], wanted)
        return copies

    def _known(self, reader: int) -> tuple[list[int], bool]:
        """Return the memories of a reader, and whether it reads the word that changes nothing."""
        values = self._reads(reader).memory
        return np.unique(values[values >= 0]).tolist(), bool((values == NEUTRAL).any())

    def _find_port_reader(self) -> int | None:
        """Return a reader that reads all memories of received words.

        While no run is under way its multiplexer passes the word that the memory port asks for, so
        that the port needs none of its own.
        """
        if self._concurrent or len(self._received) < 2:
            return None
        wanted = {*self._received}
        for reader in range(len(self._readers[0])):
            if wanted <= {*self._known(reader)[0]}:
                return reader
        return None

    def _key(self, number: int, copies: list[_CopyPlan]) -> object:
        """Return a value that is equal for memories that can be members of one bank."""
        writes = [self._rows.field(action, number) for action in (Action.WRITE, Action.TAP)]
        memory = self._rows.memories[number]
        return (
            memory.own and (memory.layout,),
            self._size(number),
            self._rows.pitch(number),
            [each.delays for each in copies],
            number in self._received,
            [each and (self._at(each.values).tobytes(), each.delays) for each in writes],
        )

    def _size(self, number: int) -> int:
        """Return the words of a memory, a power of two."""
        return 1 << (int(self._depth[number]) - 1).bit_length()

    def _wide_banks(self, copies: dict[int, list[_CopyPlan]]) -> list[list[int]]:
        """Return the members of each bank; copies of members become those of the first."""
        banks: list[list[int]] = []
        for number, own in copies.items():
            for members in banks:
                first = copies[members[0]]
                if self._columns.writable:
                    continue
                if len(own) < 2 and self._key(number, own) == self._key(members[0], first):
                    both = [a.merge(b) for a, b in zip(first, own, strict=True)]
                    if all(both):
                        copies[members[0]] = [each for each in both if each]
                        members.append(number)
                        break
            else:
                banks.append([number])
        return banks

    def _bank(self, members: list[int], copies: dict[int, list[_CopyPlan]]) -> Bank:
        """Return a bank."""
        number = members[0]
        shown = bool({*members} & {*self._received})
        pitch, size = self._rows.pitch(number), self._size(number)
        of_bank = [
            Copy(
                self._address(each.values, each.delays, pitch, size, agrees=each.agrees),
                shown=False,
            )
            for each in copies[number]
        ]
        if shown and (self._concurrent or not of_bank):
            of_bank.append(Copy(None, shown=True))
        elif shown:
            copy = 0
            if len(members) == 1 and self._port_reader is not None:
                copy = self._copy_of.get((self._port_reader, number), 0)
            of_bank[copy] = replace(of_bank[copy], shown=True)
            address = of_bank[copy].address
            if address is not None and address.column is not None:
                self.placer.ask(address.column)
        own = self._rows.memories[number].own
        if number not in self._stored():
            return Bank(tuple(members), size, own, tuple(of_bank), (), ())
        words = [self._arriving(member) for member in members]
        return Bank(
            tuple(members),
            size,
            own,
            tuple(of_bank),
            tuple(Choice(each.inputs) for each in words),
            tuple(self._arrivals(members, words, pitch, size)),
        )

    def _address(
        self, values: IntArray, delays: EachDelays, pitch: Delays, size: int, *, agrees: bool
    ) -> Address | None:
        """Return where an address comes from, given first addresses.

        Parameters
        ----------
        size : int
            Words of the memory.
        agrees : bool
            True if all nodes have the same first addresses.
        """
        if size == 1:
            return None
        bits, most = (size - 1).bit_length(), self._rows.most_word(pitch)
        if agrees and not _depends_on_member(values):
            return Address(column=self.placer.address(values, delays, pitch, bits))
        most_first = (1 << bits) - 1 if self._columns.writable else max(int(values.max()), 0)
        # A node knows its choice three cycles after the start.
        setup = self._rows.program.form.timing.run_setup
        least = min(min(each) for each in delays)
        early = self._kinds.choices == 1 or least + setup > CHOICE_DELAY
        first = self.placer.number(
            values, most_first.bit_length(), delays, alike=False, early=early
        )
        if not most:
            return Address(first=first, early=early)
        counter = self.placer.word(delays, pitch)
        return Address(first=first, counter=counter, early=early)

    def _arriving(self, number: int) -> _Arriving:
        """Return the words that a memory stores."""
        source = self._source(number)
        inputs = [used_sources(self._words, self._at(source, [kind])) for kind in self._first]
        places = self.injection_places[0]
        local = [_local(self._words, self.used[0], each, places) for each in inputs[0]]
        given, codes = plan_choice(local, idles=self._idles, branched=False)
        return _Arriving(source, input_numbers(self._words, inputs)[self._pattern], given, codes)

    def _arrivals(
        self, members: list[int], words: list[_Arriving], pitch: Delays, size: int
    ) -> list[Arrival]:
        """Return what a bank stores: for each length of links the words that arrive by it."""
        write, tap = (self._rows.field(action, members[0]) for action in (Action.WRITE, Action.TAP))
        assert write is not None
        assert tap is not None
        stores, at_tap = self._at(write.values) >= 0, self._at(tap.values)
        firsts, sources = self._at(write.values), [self._at(each.source) for each in words]
        links_of = [
            np.unique(at_tap[self._pattern == pattern][stores[self._pattern == pattern]])
            for pattern in range(len(self._first))
        ]
        found = []
        for place in range(len(links_of[0])):
            links = np.array([each[place] for each in links_of])
            acts = stores & (at_tap == links[self._pattern][:, None, None])
            delays = tuple(later(write.delays, each) for each in links.tolist())
            everywhere = [(write.values >= 0) & (tap.values == each) for each in np.unique(links)]
            moves = self._rows.blocks[:, None] > 0
            enable = self.placer.bit(
                np.where(moves[None], acts, -1),
                delays,
                alike=_all_agree(np.where(moves, each, -1) for each in everywhere),
                early=True,
            )
            strobe = self.placer.valid(delays)
            same = _all_agree(np.where(each, write.values, -1) for each in everywhere)
            first = np.where(acts, firsts, -1)
            address = self._address(first, delays, pitch, size, agrees=same)
            codes = []
            for each, source in zip(words, sources, strict=True):
                values = np.where(acts, source, -1)
                index = each.numbers[np.arange(len(values))[:, None, None], values]
                alike = _all_agree(np.where(act, each.source, -1) for act in everywhere)
                codes.append(self.placer.code(index, each.codes, delays, alike=alike))
            found.append(Arrival(enable, strobe, address, tuple(codes)))
        return found

    def _reader(self, reader: int) -> Reader:
        """Return the memories of a reader, and where its select bits lie."""
        reads = self._reads(reader)
        known, waits = self._known(reader)
        words = [LocalWord(k) for k in range(len(known))]
        if waits:
            words.append(NEUTRAL_WORD)
        given, codes = plan_choice(words, idles=self._idles, branched=False)
        index = np.full(reads.memory.shape, -1)
        for number, each in enumerate([*known, NEUTRAL]):
            index[reads.memory == each] = number
        # The word is there a cycle after its address.
        delays = tuple(later(each, SETTING - ADDRESS) for each in reads.delays)
        bits = self.placer.code(index, codes, delays, alike=reads.memory_agrees)
        inputs = tuple((number, self._copy_of[reader, number]) for number in known)
        return Reader(inputs, Choice(given, bits, branched=False))


def _all_agree(values: Iterable[IntArray]) -> bool:
    """Return True if all nodes agree on each of some values by row and variant."""
    return all(RowField(each, ()).agrees for each in values)


def _depends_on_member(values: IntArray) -> bool:
    """Return True if known values of a row differ between members or choices."""
    most = values.max(axis=(0, 2), keepdims=True)
    return not bool(((values == most) | (values < 0)).all())


def _add_copy(copies: list[_CopyPlan], wanted: _CopyPlan) -> int:
    """Return the number of the copy that serves a reader; one is added if none does."""
    for number, known in enumerate(copies):
        both = known.merge(wanted)
        if both is not None:
            copies[number] = both
            return number
    copies.append(wanted)
    return len(copies) - 1


def plan_stores(
    rows: Rows, kinds: NodeKinds, columns: Columns, *, idles: bool, concurrent: bool
) -> list[Store]:
    """Plan the stores of all kinds of nodes.

    Parameters
    ----------
    idles : bool
        True if the word that changes nothing is 0.
    concurrent : bool
        True if the memory port reads and writes during runs.
    """
    patterns = _patterns(rows, kinds)
    found = []
    active = _active_readers(rows, kinds)
    signatures = [_signature(rows, kinds, kind, active[kind]) for kind in patterns.first.tolist()]
    for members in patterns.join(signatures):
        here, pattern = np.unique(patterns.of_kind[members], return_inverse=True)
        first = patterns.first[here]
        readers = [[reader for _, reader in active[kind]] for kind in first.tolist()]
        family = _StoreKinds(members, np.asarray(pattern).ravel(), first, readers)
        planner = _StorePlanner(rows, kinds, columns, family, idles=idles, concurrent=concurrent)
        shape = planner.plan()
        sources = np.array(planner.used, int)[pattern]
        places = planner.injection_places[pattern]
        found.append(
            Store(Family(members, sources, sources.shape[1]), shape, planner.placer, places)
        )
    return found


def _patterns(rows: Rows, kinds: NodeKinds) -> Patterns:
    """Return the patterns of kinds that use the same memories and words."""
    sets = {each: number for number, each in enumerate(dict.fromkeys(kinds.received))}
    depth = np.maximum(kinds.depth, 0)
    sizes = np.ceil(np.log2(np.maximum(depth, 1))).astype(int)
    columns = [np.where(depth > 0, sizes, -1), np.array([sets[each] for each in kinds.received])]
    for reader in range(rows.loops[0].sources.readers):
        memory, first = (rows.field(action, reader) for action in (Action.MEMORY, Action.READ))
        if memory is not None and first is not None:
            columns += [
                kinds.used(np.where(first.values >= 0, memory.values, -1)),
                kinds.used(np.where(memory.values == NEUTRAL, 0, -1)),
            ]
    for number in range(len(rows.memories)):
        write, tap, source = (
            rows.field(action, number) for action in (Action.WRITE, Action.TAP, Action.SOURCE)
        )
        if write is None or tap is None or source is None:
            continue
        stores = write.values >= 0
        for links in np.unique(tap.values[stores]).tolist():
            columns.append(kinds.used(np.where(stores & (tap.values == links), source.values, -1)))
    return Patterns.from_columns(columns, kinds.count)


def _active_readers(rows: Rows, kinds: NodeKinds) -> _ActiveReaders:
    """Return the readers that read anything at each kind, by the memories that they read.

    Each comes with the numbers of its memories.
    """
    found: _ActiveReaders = [[] for _ in range(kinds.count)]
    memories = len(rows.memories)
    for reader in range(rows.loops[0].sources.readers):
        memory, first = (rows.field(action, reader) for action in (Action.MEMORY, Action.READ))
        if memory is None or first is None:
            continue
        # The last number stands for the word that changes nothing.
        plain = np.where(memory.values == NEUTRAL, memories, memory.values)
        counts = (first.values >= 0) | (memory.values == NEUTRAL)
        used = kinds.used(np.where(counts, plain, -1))[:, :-1]
        different, which = np.unique(used, axis=0, return_inverse=True)
        sets = [tuple(np.flatnonzero(each).tolist()) for each in different]
        for kind, number in enumerate(np.asarray(which).ravel().tolist()):
            if sets[number]:
                found[kind].append((sets[number], reader))
    for readers in found:
        readers.sort()
    return found


def _signature(
    rows: Rows, kinds: NodeKinds, kind: int, active: list[tuple[tuple[int, ...], int]]
) -> object:
    """Return what kinds of nodes must have in common for a store of one structure."""
    words, one = SourceWords(rows.loops[0].sources), np.array([kind])
    depth = kinds.depth[kind].tolist()
    found: list[object] = [tuple((d - 1).bit_length() if d else -1 for d in depth)]
    found.append(tuple(sorted(kinds.received[kind])))
    found += [memories for memories, _ in active]
    readers = [reader for _, reader in active]
    ports = _injections(rows, readers)
    places = {number: place for place, number in enumerate(sorted(ports, key=lambda k: ports[k]))}
    found.append(tuple(sorted(ports.values())))
    sources: list[tuple[int, ...]] = []
    for number, words_held in enumerate(depth):
        write, tap, source = (
            rows.field(action, number) for action in (Action.WRITE, Action.TAP, Action.SOURCE)
        )
        if not words_held or write is None or tap is None or source is None:
            continue
        stores = kinds.values(write.values, one) >= 0
        taps = kinds.values(tap.values, one)
        of_rows = kinds.values(source.values, one)
        for place, links in enumerate(np.unique(taps[stores]).tolist()):
            found.append((number, place))
            sources.append(used_sources(words, np.where(stores & (taps == links), of_rows, -1)))
    used = _given_words(words, [source for each in sources for source in each])
    found += [tuple(_local(words, used, source, places) for source in each) for each in sources]
    return tuple(found)


def _injections(rows: Rows, readers: list[int]) -> dict[int, tuple[int, ...]]:
    """Return the readers of each injection port that has any, by their places."""
    return {
        number: tuple(readers.index(reader) for reader in each if reader in readers)
        for number, each in enumerate(rows.loops[0].sources.injections)
        if {*each} & {*readers}
    }


def _given_words(words: SourceWords, sources: Sequence[int]) -> tuple[int, ...]:
    """Return the words that a store is given for some sources: it has those that it injects."""
    return used_words(words, [each for each in sources if words.injection(each) is None])


def _local(
    words: SourceWords, used: Sequence[int], source: int, places: Mapping[int, int] | IntArray
) -> LocalWord:
    """Return a source as a word of a store, given the places of injection ports."""
    number = words.injection(source)
    if number is not None:
        return LocalWord(int(places[number]), injected=True)
    return local_word(words, used, source)
