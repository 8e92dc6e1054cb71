"""Windows: which rows of a round nodes store in, where they differ.

What a row sends arrives while the rows after it are under way, up to the pause that ends the round.
So nodes are told nothing by rows but by *windows*: window k says in which rows of each round those
nodes store that have it. The sequencer signals to all, cycle by cycle, whether a flit within a
window was read, and how many cycles ago: a *phase*. Those of a window have numbers in a row.

In a loop by flits all rows are one window, and nodes look up by rows whether they store. They do so
while a later row is looked up: what is said of that is done with the word. Where none follows any
more, at the end of a run, the row has a window of its own in place of the look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..program.fields import Action, Loop, Order
from ..program.timing import TOLD
from .loops import Loops

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..topology import BoolArray, IntArray

__all__ = ["OwnStores", "Windows"]


class OwnStores(NamedTuple):
    """What nodes store into a memory in a form, at addresses of their own.

    What is said of a row is what is done in its round, be it in that row or another; in a loop by
    flits, what is done while the row is looked up.

    Parameters
    ----------
    phase : ndarray of int, shape (rows, variants)
        The phase in which words are stored; -1 where none is in the round.
    source : ndarray of int, shape (rows, variants)
        Of these words.
    """

    phase: IntArray
    source: IntArray


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of all loops.

    Parameters
    ----------
    columns : ndarray of bool, shape (windows, rows of all loops)
        Which rows count.
    begins : ndarray of int, shape (rows of all loops,)
        Whether each row is the first of a round; of loops without windows, of no matter.
    phases : int
        Of each window.
    skip_bits : int
        Where the flits of a block are known no earlier than at the start of a run: bits of the
        distance from the last address of a block to the first of the next. Else 0.
    """

    loops: Loops
    columns: IntArray
    begins: IntArray
    phases: int
    skip_bits: int = 0

    @classmethod
    def of(cls, loops: Loops, own: Sequence[tuple[int, int]], *, any_length: bool) -> Windows:
        """Those of memories in which nodes store on their own, in a form: (form, memory)."""
        wanted: dict[tuple[int, int], dict[bytes, int]] = {}
        ago, skip_bits = -1, 0
        for form, memory in own:
            loop = loops.loops[form]
            stores = loop.values(Action.WRITE, memory) >= 0
            ago = max(ago, int(_ago(loop, memory)[stores].max(initial=-1)))
            if loop.order is Order.FLIT:
                every = np.ones(loop.rows, bool)
                late = _units(loop, _late(loop, memory))
                wanted[form, 0] = {each.tobytes(): int(each.sum()) for each in (every, *late)}
                continue
            for number, rows in enumerate(_rounds(loop)):
                found = wanted.setdefault((form, number), {})
                found |= {pattern.tobytes(): int(pattern.sum()) for pattern in stores[rows].T}
            if any_length and loop.order is Order.ROW:
                skip_bits = max(skip_bits, loop.flits.bit_length())
        windows: dict[tuple[int, int], list[bytes]] = {
            # The one with most rows first: mostly it is all of them.
            place: sorted((p for p, n in found.items() if n), key=found.__getitem__, reverse=True)
            for place, found in wanted.items()
        }
        columns = np.ones((max(map(len, windows.values()), default=0), loops.rows), bool)
        for (form, number), patterns in windows.items():
            rows = _rounds(loops.loops[form])[number]
            for window, pattern in enumerate(patterns):
                here = slice(loops.starts[form] + rows.start, loops.starts[form] + rows.stop)
                columns[window, here] = np.frombuffer(pattern, bool)
        begins = np.ones(loops.rows, int)
        for form in {form for form, _ in own}:
            loop, start = loops.loops[form], loops.starts[form]
            first = np.diff(loop.rounds, prepend=-1)
            # Words of the last rows arrive while the first pass again.
            begins[start : start + loop.rows] = 0 if loop.order is Order.FLIT else first
        return cls(loops, columns, begins, ago + 1, skip_bits)

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.columns)

    @property
    def inputs(self) -> dict[str, int]:
        """What endpoints are given of them, and its bits.

        `phase` has the phases of each window, and, where the ends of blocks are not fixed, those of
        these.
        """
        chains = self.count + (self.skip_bits > 0)
        return {"phase": chains * self.phases, "skip": self.skip_bits}

    def stores(self, form: int, memory: int) -> OwnStores:
        """What nodes store into a memory on their own, in a form."""
        loop, start = self.loops.loops[form], self.loops.starts[form]
        stores = loop.values(Action.WRITE, memory) >= 0
        if loop.order is Order.FLIT:
            return self._looked_up(form, memory, stores)
        window = np.full(stores.shape, -1)
        for rows in _rounds(loop):
            columns = self.columns[:, start + rows.start : start + rows.stop]
            same = (columns[:, :, None] == stores[rows]).all(axis=1)
            window[rows] = np.where(stores[rows].any(axis=0), same.argmax(axis=0), -1)
        facts = _ago(loop, memory), loop.values(Action.SOURCE, memory)
        ago, source = (_of_rounds(loop, np.where(stores, values, -1)) for values in facts)
        assert ((ago == facts[0]) | ~stores).all(), "a round is stored as it comes"
        assert ((source == facts[1]) | ~stores).all(), "a round is stored as it comes"
        return OwnStores(np.where(window >= 0, window * self.phases + ago, -1), source)

    def ends(self, phase: int) -> int:
        """The phase in which the last flit of a block was read, if a flit was in another."""
        return self.count * self.phases + phase % self.phases

    def _looked_up(self, form: int, memory: int, stores: BoolArray) -> OwnStores:
        """What nodes store in a loop by flits, by the rows that they look up meanwhile."""
        loop, start = self.loops.loops[form], self.loops.starts[form]
        columns = self.columns[:, start : start + loop.rows]
        phase, source = np.full((2, *stores.shape), -1)
        late = _late(loop, memory)
        for row, variant in np.argwhere(stores).tolist():
            ago, window = int(_ago(loop, memory)[row, variant]), 0
            looked_up: int | slice = row + ago
            if row in late:
                (one,) = _units(loop, range(row, row + 1))
                window, looked_up = int((columns == one).all(axis=1).argmax()), slice(None)
            phase[looked_up, variant] = window * self.phases + ago
            source[looked_up, variant] = loop.values(Action.SOURCE, memory)[row, variant]
        return OwnStores(phase, source)


def _ago(loop: Loop, memory: int) -> IntArray:
    """How many cycles before what it stores a flit was read, as nodes are told; by row and variant.

    They are told a cycle after the sequencer is, less the registers on the way, and keep what they
    are told for a cycle.
    """
    field = loop.field(Action.WRITE, memory)
    late = 0 if field is None else field.delay
    ago: IntArray = late - TOLD + loop.values(Action.TAP, memory)
    return ago


def _late(loop: Loop, memory: int) -> range:
    """The rows of a loop by flits whose words are stored when no row is looked up any more."""
    ago = _ago(loop, memory)[loop.values(Action.WRITE, memory) >= 0]
    return range(max(loop.rows - int(ago.max()), 0), loop.rows)


def _units(loop: Loop, rows: range) -> Iterator[BoolArray]:
    """For each of some rows a window of it alone."""
    return (np.arange(loop.rows) == row for row in rows)


def _rounds(loop: Loop) -> list[slice]:
    """The rows of each round."""
    starts = np.flatnonzero(np.diff(loop.rounds, prepend=-1)).tolist()
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], loop.rows], strict=True)]


def _of_rounds(loop: Loop, values: IntArray) -> IntArray:
    """The greatest value of the round of each row."""
    starts = [rows.start for rows in _rounds(loop)]
    most: IntArray = np.maximum.reduceat(values, starts, axis=0)[loop.rounds]
    return most
