"""Slots: what the sequencer presents in each cycle, row by row and flit by flit.

Of messages of any length, the flits of blocks, the blocks of rows, and pauses are counted here; of
those of a fixed length see `torusfabric.rtl.sequencer`. Whether a flit, or a block, is the last is
found out with the one before: what ends a row decides on all counters, and would else come after
the row, its look-up and two comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Const, Module, Mux, Signal, Value

from ..program.fields import Order
from ..topology import IntArray
from .memories import Columns, look_up
from .modules import delayed
from .place import Loops
from .run_length import RunLength

__all__ = ["Slot", "open_slot"]


class Slot(NamedTuple):
    """What the sequencer presents in a cycle.

    Counters are a cycle ahead of their slot, for they address the ROM, whose output is the slot's
    row.

    Parameters
    ----------
    row : Signal
        The row, a cycle ahead of its slot.
    goes_on : Value
        Whether the counters show a slot that is yet to come.
    word : Value
        Where its word lies from the first address of the row.
    streams : Value
        Whether its word is one of the row, which pauses after its words.
    begins : Value
        Whether it is the first of its row.
    ends_block : Value
        Whether its word is the last of its block; in loops by rows of any length.
    counters : list of Signal
        What is as after a reset when a run begins.
    """

    row: Signal
    goes_on: Value
    rom: Columns
    word: Value
    streams: Value
    begins: Value
    ends_block: Value
    counters: list[Signal]


class _Known(NamedTuple):
    """A register, what it is in the next row, and what at rest."""

    register: Signal
    next_row: Value
    at_rest: Value


@dataclass(frozen=True, eq=False)
class RowFacts:
    """Registers of what is known of a row: nothing in it has to wait for a look-up.

    Parameters
    ----------
    row : Value
        The row under way.
    run : RunLength
        Whose form says which row is the first.
    known : list of _Known
        The registers so far.
    """

    loops: Loops
    row: Value
    run: RunLength
    known: list[_Known] = field(default_factory=list)

    def register(self, name: str, values: IntArray, *, changes: bool = False) -> Value:
        """What is known of each row, at its begin if that changes; else a constant may be.

        Parameters
        ----------
        values : ndarray of int
            Of each row.
        changes : bool
            Whether something else is loaded within a row.
        """
        values = values.astype(int)
        width = max(int(values.max()).bit_length(), 1)
        if (values == values[0]).all() and not changes:
            return Const(int(values[0]), width)
        register = Signal(width, name=name, init=int(values[0]))
        self.known.append(_Known(register, *self.ahead(values)))
        return register

    def ahead(self, values: IntArray) -> tuple[Value, Value]:
        """What is known of the next row, and of the first of the form, given that of each row."""
        values, following = values.astype(int), np.arange(self.loops.rows) + 1
        for span in self.loops.spans:
            following[span.stop - 1] = span.start
        next_row = look_up(values[following].tolist(), self.row)
        return next_row, self.run.constant(values[[*self.loops.starts]].tolist())

    def follow(self, m: Module) -> None:
        """The row changes to the next."""
        m.d.sync += [known.register.eq(known.next_row) for known in self.known]

    def rest(self, m: Module) -> None:
        """The row is the first of the form."""
        m.d.sync += [known.register.eq(known.at_rest) for known in self.known]


class _Idle(NamedTuple):
    """Whether nothing moves in a row, and for how many cycles."""

    idle: Value
    cycles: Value


class BlockCounter:
    """Counts the words of messages whose length is known when a run starts.

    Attributes
    ----------
    word : Signal
        Where the word lies from the first address of the row.
    last_flit : Signal
        Whether the flit is the last of its block.
    end_of_row : Value
        In loops by rows, whether the cycle is the last of its row.
    """

    def __init__(self, facts: RowFacts) -> None:
        self._run, loops = facts.run, facts.loops
        by_row = [loop for loop in loops.loops if loop.order is Order.ROW]
        most = max((int(loop.blocks.max()) for loop in by_row), default=1)
        flits = max(loop.flits for loop in loops.loops)
        self.word = Signal(range(max(most * flits, 2)), name="word")
        self._block = Signal(range(max(most, 2)), name="block")
        self._begins = Signal(name="begins_row", init=1)
        self._pausing = Signal(name="pausing")
        self.last_flit = Signal(name="last_flit")
        self._first_flit = Signal(name="first_flit", init=1)
        self._flits_left = Signal(range(max(flits, 2)), name="flits_left")
        blocks = loops.joined([loop.blocks for loop in loops.loops])
        self._last_block = facts.register("last_block", blocks == 1, changes=most > 1)
        self._before_last = facts.register("block_before_last", (blocks - 2).clip(0))
        self._ends_block = ~self._pausing & self.last_flit
        self._ends_words = self._ends_block & self._last_block
        self._count_pause(facts)

    def _count_pause(self, facts: RowFacts) -> None:
        """Find out whether a row ends: with its words, or with the pause that follows."""
        loops, run = facts.loops.loops, self._run
        pauses = facts.loops.joined([loop.pause for loop in loops])
        longest = max(int(pauses.max()), *(loop.least for loop in loops))
        self._left = Signal(range(longest + 1), name="pause_left")
        self._last_pause = Signal(name="last_of_pause")
        self._pause = facts.register("pause", pauses)
        none = facts.register("no_pause", pauses == 0)
        resting = [int(loop.least > 1) for loop in loops]
        if any(resting):
            rests = run.constant(resting)
            self._pause = Mux(rests, run.idle, self._pause)
            none = Mux(rests, run.never_idle, none)
        self.end_of_row = Mux(self._pausing, self._last_pause, self._ends_words & none)
        least = facts.loops.joined([np.full(loop.rows, loop.least) for loop in loops])
        self._next_row, self._first_row = _idle_rows(facts, np.maximum(least, pauses))

    @property
    def counters(self) -> list[Signal]:
        """What is as after a reset when a run begins, and not loaded at rest."""
        return [self.word, self._block, self._begins, self._first_flit, self._pausing]

    def rest(self, m: Module) -> None:
        """No run is under way: the first flit of the next may be the last of its block."""
        m.d.sync += self.last_flit.eq(self._run.next_single)
        self._begin(m, self._first_row)

    def _begin(self, m: Module, row: _Idle | None) -> None:
        """A row in which nothing moves pauses from its begin."""
        if row is None:
            return
        m.d.sync += self._pausing.eq(row.idle)
        with m.If(row.idle):
            m.d.sync += [self._left.eq(row.cycles), self._last_pause.eq(row.cycles == 1)]

    def _pass_flit(self, m: Module, last: Value) -> None:
        """A flit, maybe the last of its block; none follows that if all rows have passed it."""
        left = Mux(self._first_flit, self._run.last, self._flits_left)
        m.d.sync += [
            self._first_flit.eq(last),
            self._flits_left.eq(left - 1),
            self.last_flit.eq(left == 1),
        ]

    def count_by_flit(self, m: Module, end_of_rows: Value) -> None:
        """A cycle of a loop that passes all rows for each flit."""
        with m.If(end_of_rows):
            m.d.sync += self.word.eq(Mux(self.last_flit, 0, self.word + 1))
            self._pass_flit(m, self.last_flit)

    def count_by_row(self, m: Module) -> None:
        """A cycle of a loop that passes all flits for each row."""
        last = self.last_flit | self._pausing
        self._pass_flit(m, last)
        with m.If(last):
            m.d.sync += self.last_flit.eq(self._run.single)
        m.d.sync += self._begins.eq(self.end_of_row)
        with m.If(self._ends_words):
            m.d.sync += self._pausing.eq(1)
            m.d.sync += [self._left.eq(self._pause), self._last_pause.eq(self._pause == 1)]
        with m.Elif(self._pausing):
            m.d.sync += [self._left.eq(self._left - 1), self._last_pause.eq(self._left == 2)]
        with m.Elif(self._ends_block):
            m.d.sync += self.word.eq(self.word + self._run.skip)
            if isinstance(self._last_block, Signal):
                m.d.sync += self._block.eq(self._block + 1)
                m.d.sync += self._last_block.eq(self._block == self._before_last)
        with m.Else():
            m.d.sync += self.word.eq(self.word + 1)
        with m.If(self.end_of_row):
            m.d.sync += [self.word.eq(0), self._block.eq(0), self._pausing.eq(0)]
            self._begin(m, self._next_row)

    def shown(self, m: Module) -> dict[str, Value]:
        """What the slot is, a cycle later, by the names of `Slot`."""
        found = {"streams": ~self._pausing, "word": self.word, "begins": self._begins,
                 "ends_block": self._ends_block}  # fmt: skip
        return {name: delayed(m, value, 1, name) for name, value in found.items()}


def _idle_rows(facts: RowFacts, cycles: IntArray) -> tuple[_Idle | None, _Idle | None]:
    """What is known of the next row, and of the first; None if something moves in all."""
    idle = facts.loops.joined([loop.blocks for loop in facts.loops.loops]) == 0
    if not idle.any():
        return None, None
    following, first = zip(facts.ahead(idle), facts.ahead(cycles), strict=True)
    return _Idle(*following), _Idle(*first)


def open_slot(m: Module, loops: Loops, go: Value, run: RunLength) -> Slot:
    """Count the slots of loops, of which a run goes through one; its length is known at its start.

    Parameters
    ----------
    go : Value
        High in the cycle before the first slot.
    """
    row, running = Signal(range(max(loops.rows, 2)), name="row"), Signal(name="running")
    orders = {loop.order for loop in loops.loops}
    facts = RowFacts(loops, row, run)
    counter = BlockCounter(facts)
    first, end_of_rows = run.constant(loops.starts), Signal(name="end_of_rows")
    only_row, next_is_last = _ends(loops, row, run)
    next_row = Mux(end_of_rows, first, row + 1)
    next_ends = Mux(end_of_rows, only_row, next_is_last)
    with m.If(~(go | running)):
        # At rest the ROM shows the first row of the form that was chosen last.
        m.d.sync += [row.eq(first), end_of_rows.eq(only_row)]
        facts.rest(m)
        counter.rest(m)
    if Order.FLIT in orders:
        by_flit = run.constant([int(loop.order is Order.FLIT) for loop in loops.loops])
        with m.Elif(by_flit):
            m.d.sync += [row.eq(next_row), end_of_rows.eq(next_ends)]
            m.d.sync += running.eq(~(end_of_rows & counter.last_flit))
            counter.count_by_flit(m, end_of_rows)
    if Order.ROW in orders:
        with m.Else():
            m.d.sync += running.eq(~(counter.end_of_row & end_of_rows))
            counter.count_by_row(m)
            with m.If(counter.end_of_row):
                m.d.sync += [row.eq(next_row), end_of_rows.eq(next_ends)]
                facts.follow(m)
    # The row follows at rest.
    counters = [running, *counter.counters]
    return Slot(row, go | running, Columns(row), **counter.shown(m), counters=counters)


def _ends(loops: Loops, row: Value, run: RunLength) -> tuple[Value, Value]:
    """Whether the form has one row only, and whether the next row is its last."""
    only = [loop.rows == 1 for loop in loops.loops]
    before = [
        start if single else start + loop.rows - 2
        for start, single, loop in zip(loops.starts, only, loops.loops, strict=True)
    ]
    return run.constant(list(map(int, only))), row == run.constant(before)
