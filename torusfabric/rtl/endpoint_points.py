"""What the readers and memories of endpoints do in the rows of all forms, by variants of nodes.

When nodes store what arrives, and where, are values that are placed like all others. Where all
nodes store the same in a form, as long after its row, the sequencer gives the address and says
when. Where they differ, nodes store on their own: each has a pointer, which starts at an address
and moves with every word, and looks up row by row which *strobe* of the sequencer counts.

What a row sends arrives while the rows after it are under way, up to the pause that ends the round.
So a strobe is of a *window*, that is rows of each round in which some nodes store, and of cycles:
it says whether a flit within the window was read so long ago.

In a loop by flits all rows are one window, and nodes look up by rows whether they store. They do so
while a later row is looked up: what is said of that is done with the word. Where none follows any
more, at the end of a run, the row has a window of its own in place of the look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from ..program import Program
from ..program.fields import IDLE, NEUTRAL, Action, Loop, Order, Point
from ..program.timing import ADDRESS
from ..topology import BoolArray, IntArray
from .place import Column, ColumnSet, Loops, Shown

__all__ = ["Points", "Reading", "Stores", "known", "of_each"]


Found = TypeVar("Found")

#: What a reader does: in each form, whether it adds a base of its own, or None where it does not
#: read; and the memories that it reads.
Reading: TypeAlias = tuple[tuple[bool | None, ...], frozenset[int]]


class Points:
    """What readers and memories do, in the rows of all forms.

    Attributes
    ----------
    columns : dict of str to ColumnSet
        Of the sequencer: ``read``, ``write``, ``store`` and ``ends``.
    given : list of (list of bool)
        Of each reader, of each form, whether all nodes that read begin at the same address, which a
        column gives; in other forms it counts words from the first.
    column_of : dict of int to int
        The column of each reader that reads any memory.
    words : ndarray of int, shape (rows,)
        Of each row, how many words are read from one first address.
    stores : list of Stores
        Of each memory.
    ends : tuple of int
        Of each strobe by which nodes store on their own, the column that says whether that flit was
        the last of its block; none where the flits of blocks are fixed.
    skip_bits : int
        Where they are known no earlier than at the start of a run: bits of the distance from the
        last address of a block to the first of the next. Else 0.
    """

    def __init__(self, program: Program) -> None:
        self.loops = Loops.of(program)
        self.columns = {name: ColumnSet() for name in ("read", "write", "store", "ends")}
        self.words = self.loops.joined([loop.blocks * loop.flits for loop in self.loops.loops])
        self.given: list[list[bool]] = []
        self.column_of: dict[int, int] = {}
        for reader in range(self.loops.first.sources.readers):
            self._add_reads(reader)
        self.stores = [_stored(self.loops, memory) for memory in range(len(program.memories))]
        self.ends: tuple[int, ...] = ()
        self.skip_bits = 0
        own = [
            (form, memory)
            for form, loop in enumerate(self.loops.loops)
            for memory, stores in enumerate(self.stores)
            if not stores.alike[form] and (loop.values(Action.WRITE, memory) >= 0).any()
        ]
        if own:
            self._add_strobes(own, any_length=program.any_length)

    def _add_strobes(self, own: list[tuple[int, int]], *, any_length: bool) -> None:
        """Find out what nodes store on their own, in some forms and memories; add the strobes."""
        loops, windows = self.loops, _Windows(self.loops, own)
        timed = {key: windows.timed(*key) for key in own}
        known = np.unique(np.concatenate([when[when >= 0] for when, _ in timed.values()]))
        for (form, memory), (when, source) in timed.items():
            stores, span = self.stores[memory], loops.spans[form]
            stores.source[span] = source
            stores.strobe[span] = np.where(when >= 0, np.searchsorted(known, when), IDLE)
            stores.start[span] = _first(loops.loops[form].values(Action.WRITE, memory))
            stores.late[form] = _late_rows(loops.loops[form], memory)
        forms = {form for form, _ in own}
        strobes = [windows.strobe(when, forms) for when in known.tolist()]
        numbers = [self.columns["store"].add(strobe) for strobe in strobes]
        assert numbers == [*range(len(strobes))], "strobes are the first columns, and all differ"
        # In loops by flits, and where the length is fixed, pointers skip nothing.
        by_row = [loops.loops[form] for form in forms if loops.loops[form].order is Order.ROW]
        if any_length and by_row:
            self.skip_bits = max(loop.flits.bit_length() for loop in by_row)
            ends = (replace(each, values=np.ones_like(each.values), shown=Shown.END)
                    for each in strobes)  # fmt: skip
            self.ends = tuple(map(self.columns["ends"].add, ends))

    def _add_reads(self, reader: int) -> None:
        """Find out what a column gives of the addresses of a reader."""
        point = Point(Action.READ, reader)
        read, memory = self.loops.values(point), self.loops.values(Point(Action.MEMORY, reader))
        reads, first = read >= 0, read.max(axis=1)
        alike = (~reads | (read == first[:, None])).all(axis=1) & (memory != NEUTRAL).all(axis=1)
        spans = self.loops.spans
        some = [bool(reads[span].any()) for span in spans]
        given = [
            not any_ or bool(alike[span].all()) for span, any_ in zip(spans, some, strict=True)
        ]
        self.given.append(given)
        if not (memory >= 0).any():
            return
        for span, whole in zip(spans, given, strict=True):
            first[span] *= whole
        delays = tuple(late if any_ else None for late, any_ in
                       zip(self.loops.delays(point), some, strict=True))  # fmt: skip
        pitches = tuple(1 if any_ else None for any_ in some)
        column = Column(first, delays, Shown.ADDRESS, pitches)
        self.column_of[reader] = self.columns["read"].add(column)

    def readings(self) -> Iterator[tuple[IntArray, list[Reading]]]:
        """The variants that have each reader, and what it does in these."""
        spans = self.loops.spans
        for reader, given in enumerate(self.given):
            memory = self.loops.values(Point(Action.MEMORY, reader))
            read = self.loops.values(Point(Action.READ, reader)) >= 0
            used = np.flatnonzero((memory != IDLE).any(axis=0))

            def reading(values: IntArray, given: Sequence[bool] = given) -> Reading:
                memories, reads = np.split(values, 2)
                based = tuple(
                    not whole if reads[span].any() else None
                    for whole, span in zip(given, spans, strict=True)
                )
                return based, frozenset(memories[memories != IDLE].tolist())

            both = np.concatenate([memory[:, used], read[:, used]])
            yield used, of_each(both, reading)


@dataclass(frozen=True, eq=False)
class Stores:
    """What nodes store into a memory, in the rows of all forms.

    What is said of a row is what is done in its round, be it in that row or another; in a loop by
    flits, what is done while the row is looked up.

    Parameters
    ----------
    alike : tuple of bool
        In which forms all nodes store the same.
    address, enable : Column
        Where, and whether, they do.
    source : ndarray of int, shape (rows, variants)
        Of all that is stored; -1 where nothing is.
    strobe, start : ndarray of int, shape (rows, variants)
        Of what nodes store on their own: by which strobe, and where the pointer starts in the form;
        -1 where they do not.
    late : ndarray of int, shape (forms, variants)
        How many cycles after a row is looked up what is said of it counts, for words of the row
        arrive while the next is looked up; -1 where nothing is said.
    """

    alike: tuple[bool, ...]
    address: Column
    enable: Column
    source: IntArray
    strobe: IntArray
    start: IntArray
    late: IntArray


def _stored(loops: Loops, memory: int) -> Stores:
    """What is stored into a memory, without what nodes store on their own."""
    write, source = (
        loops.values(Point(action, memory)) for action in (Action.WRITE, Action.SOURCE)
    )
    first, delays, pitches = write[:, 0].copy(), [], []
    for loop, span in zip(loops.loops, loops.spans, strict=True):
        tap, field = _common_tap(loop, memory), loop.field(Action.WRITE, memory)
        if field is None or tap is None:
            first[span] = IDLE
        delays.append(field.delay + tap if field is not None and tap is not None else None)
        pitches.append(loop.pitch_of(memory) if tap is not None else None)
    return Stores(
        tuple(delay is not None for delay in delays),
        Column(first, tuple(delays), Shown.ADDRESS, tuple(pitches)),
        Column((first >= 0).astype(int), tuple(delays), Shown.STROBE),
        np.where(write >= 0, source, IDLE),
        np.full_like(write, IDLE),
        np.full_like(write, IDLE),
        np.full((len(delays), write.shape[1]), IDLE),
    )


def _late_rows(loop: Loop, memory: int) -> IntArray:
    """Of each variant, how long after a row is looked up what is said of it counts; -1 for never.

    Where rounds pause, and in loops by flits, it is what is said now.
    """
    stores, ago = loop.values(Action.WRITE, memory) >= 0, _ago(loop, memory)
    found: IntArray = np.where(stores, ago if loop.rests else 0, IDLE).max(axis=0)
    assert not loop.rests or (~stores | (ago == found)).all(), "each comes over links as long"
    return found


def _common_tap(loop: Loop, memory: int) -> int | None:
    """The hops of all words, if all nodes store alike, and words of one source; else None."""
    write = loop.values(Action.WRITE, memory)
    if (write != write[:, :1]).any():
        return None
    sources, taps = (
        np.unique(loop.values(action, memory)[write >= 0]) for action in (Action.SOURCE, Action.TAP)
    )
    return int(taps[0]) if len(sources) == len(taps) == 1 else None


def _first(write: IntArray) -> IntArray:
    """Where each variant begins to store; -1 where it does not."""
    known = np.where(write >= 0, write, write.max())
    first: IntArray = np.where((write >= 0).any(axis=0), known.min(axis=0), IDLE)
    return first


class _Windows:
    """The windows of what nodes store on their own, and by which of them they do.

    Parameters
    ----------
    own : list of (int, int)
        The forms and memories.
    """

    def __init__(self, loops: Loops, own: list[tuple[int, int]]) -> None:
        self._loops, self._phases = loops, 1
        wanted: dict[tuple[int, bytes], None] = {}
        for form, memory in own:
            loop, start = loops.loops[form], loops.starts[form]
            stores = loop.values(Action.WRITE, memory) >= 0
            self._phases = max(self._phases, 1 + int(_ago(loop, memory)[stores].max()))
            every = np.ones(loop.rows, bool)
            if loop.rests:
                found = [(start, every)]
            elif loop.order is Order.FLIT:
                found = [(start, rows) for rows in (every, *_late(loop, memory).values())]
            else:
                found = [
                    (start + rows.start, pattern)
                    for rows in _rounds(loop)
                    for pattern in stores[rows].T
                    if pattern.any()
                ]
            wanted |= dict.fromkeys((first, pattern.tobytes()) for first, pattern in found)
        columns, never = ColumnSet(), (None,) * len(loops.loops)
        self._number: dict[tuple[int, bytes], int] = {}
        # The one with most rows first: mostly it is all of them.
        for first, pattern in sorted(wanted, key=lambda window: -sum(window[1])):
            values = np.full(loops.rows, IDLE)
            values[first : first + len(pattern)] = np.frombuffer(pattern, bool)
            self._number[first, pattern] = columns.add(Column(values, never, Shown.WINDOW))
        self._columns = columns.all

    def strobe(self, when: int, forms: set[int]) -> Column:
        """What the sequencer gives of a window, so many cycles after a flit was read, in forms."""
        window, ago = divmod(when, self._phases)
        delays = tuple(ADDRESS + ago if k in forms else None for k in range(len(self._loops.loops)))
        return replace(self._columns[window], delays=delays)

    def timed(self, form: int, memory: int) -> tuple[IntArray, IntArray]:
        """When a memory stores in each row of a form, and whose words; -1 where it does not."""
        loop, start = self._loops.loops[form], self._loops.starts[form]
        stores, ago = loop.values(Action.WRITE, memory) >= 0, _ago(loop, memory)
        source = loop.values(Action.SOURCE, memory)
        if loop.order is Order.FLIT:
            return self._by_flit(loop, memory, start)
        if loop.rests:
            window = self._number[start, np.ones(loop.rows, bool).tobytes()]
            when = np.where(stores, window * self._phases + ago, IDLE)
            return when, np.where(stores, source, IDLE)
        when = np.full_like(ago, IDLE)
        for rows in _rounds(loop):
            for variant in np.flatnonzero(stores[rows].any(axis=0)).tolist():
                window = self._number[start + rows.start, stores[rows, variant].tobytes()]
                when[rows, variant] = window * self._phases
        latest, chosen = (_of_rounds(loop, np.where(stores, each, IDLE)) for each in (ago, source))
        assert ((latest == ago) & (chosen == source) | ~stores).all(), (
            "a round is stored as it comes"
        )
        return np.where(when >= 0, when + latest, IDLE), chosen

    def _by_flit(self, loop: Loop, memory: int, start: int) -> tuple[IntArray, IntArray]:
        """The same of a loop by flits, by the rows that are looked up meanwhile."""
        write, ago = loop.values(Action.WRITE, memory), _ago(loop, memory)
        when, source = np.full((2, *write.shape), IDLE)
        late = _late(loop, memory)
        for row, variant in np.argwhere(write >= 0).tolist():
            window = self._number[start, late.get(row, np.ones(loop.rows, bool)).tobytes()]
            looked_up = slice(None) if row in late else row + int(ago[row, variant])
            when[looked_up, variant] = window * self._phases + int(ago[row, variant])
            source[looked_up, variant] = loop.values(Action.SOURCE, memory)[row, variant]
        return when, source


def _ago(loop: Loop, memory: int) -> IntArray:
    """How many cycles before its word is stored a flit was read, and its row looked up.

    By row and variant; in both a register of the node follows, as with addresses.
    """
    field = loop.field(Action.WRITE, memory)
    late = 0 if field is None else field.delay
    ago: IntArray = late - ADDRESS + loop.values(Action.TAP, memory)
    return ago


def _late(loop: Loop, memory: int) -> dict[int, BoolArray]:
    """The rows of a loop by flits whose words are stored when no row is looked up any more.

    Each with the window that it has to itself.
    """
    ago = _ago(loop, memory)[loop.values(Action.WRITE, memory) >= 0]
    late = range(max(loop.rows - int(ago.max()), 0), loop.rows)
    return {row: np.arange(loop.rows) == row for row in late}


def _rounds(loop: Loop) -> list[slice]:
    """The rows of each round."""
    starts = np.flatnonzero(np.diff(loop.rounds, prepend=-1)).tolist()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], loop.rows], strict=True)]


def _of_rounds(loop: Loop, values: IntArray) -> IntArray:
    """The greatest value of the round of each row."""
    starts = [rows.start for rows in _rounds(loop)]
    most: IntArray = np.maximum.reduceat(values, starts, axis=0)[loop.rounds]
    return most


def of_each(values: IntArray, what: Callable[[IntArray], Found]) -> list[Found]:
    """What is found of each column (last axis) of values, looked for once in those that are equal.

    Examples
    --------
    >>> of_each(np.array([[1, 0, 1], [2, 0, 2]]), lambda column: int(column.sum()))
    [3, 0, 3]
    """
    different, which = np.unique(values, axis=-1, return_inverse=True)
    found = [what(column) for column in np.moveaxis(different, -1, 0)]
    return [found[number] for number in which.ravel().tolist()]


def known(numbers: IntArray) -> tuple[int, ...]:
    """The different numbers that are none for nothing."""
    found = np.unique(numbers)
    return tuple(found[found >= 0].tolist())
