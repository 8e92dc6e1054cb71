"""Slots: the counters of the row and the word that the sequencer presents in each cycle of a run.

A form has one of two orders. *By flit*: all rows for the first flit of each block, then all rows
for the second flit, and so on. *By row*: all words of a row, then a pause, then the next row.

By row, a row consists of *segments*: one for each block, and one for the pause if there is one. The
counter `word` is the distance of an address from the first address of the row. Blocks are N
addresses apart, where N is the greatest number of flits of a block::

    row:   | block 0 | block 1   | pause |
    word:    0 1 2 3   N N+1 ..      -

One counter counts the cycles of a segment (by row) or the flits of a block (by flit). "Last cycle
of a segment", "last block of a row" and "last row" are computed one cycle early and registered.
Why: the end of a row enables every counter. Computed on time it would lie behind the row counter, a
look-up table and two comparators, on the critical path.

If the length is fixed, the blocks of a row follow one another without a gap and form one segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Const, Module, Mux, Signal, Value

from ...program.fields import Order
from ...topology import IntArray
from ..memories import constant_at, look_up
from .rows import Rows

__all__ = ["FormAndLength", "SlotCounters"]


class FormAndLength(NamedTuple):
    """The form of a run and the length of its blocks: the choices on which the counters depend.

    Parameters
    ----------
    form : Value
        The number of the form in the program.
    last : Value or None
        The number of the last flit of a block, from 0, if runs choose it.
    """

    form: Value
    last: Value | None


class _Segment(NamedTuple):
    """The values with which the counters begin a row: those of its first segment.

    A row consists of segments: one for each block, and one for the pause, in which no word moves.

    Parameters
    ----------
    pauses : Value
        High if no word moves in the row, so that its first segment is the pause.
    left : Value
        Cycles of the first segment minus 1.
    last : Value
        High if the first segment has one cycle.
    """

    pauses: Value
    left: Value
    last: Value


@dataclass(frozen=True)
class _BlockLengths:
    """The lengths of the blocks and of the pauses of a run, in registers.

    Parameters
    ----------
    left : Value
        Flits of a block minus 1.
    single : Value
        High if blocks have one flit.
    skip : Value
        The distance from the address of the last flit of a block to the first of the next block.
    rest : Value or None
        Cycles of the pause after the words of a row. None if the length is fixed, or if no form has
        rows with a minimum duration.
    """

    left: Value
    single: Value
    skip: Value
    rest: Value | None


class SlotCounters:
    """The counters of rows and words, which step through the program in a run.

    A *slot* is a cycle in which the sequencer presents a row and a word. The counters are one cycle
    ahead, because they address ROMs.

    Parameters
    ----------
    rows : Rows
        The rows of all forms.
    form : Value
        The form of the run under way.
    any_length : bool
        True if runs choose their length.

    Attributes
    ----------
    row : Signal
        The number of the row.
    word : Signal
        The distance of the address of the word from the first address of the row.
    running : Signal
        High from the second slot of a run to the last.
    pausing : Signal
        High in the pause of a row.
    """

    def __init__(self, rows: Rows, form: Value, *, any_length: bool) -> None:
        self._rows, self._form, self._any = rows, form, any_length
        loops = rows.loops
        self._words_of_row = rows.concatenate_forms([loop.blocks * loop.flits for loop in loops])
        self._pause_of_row = rows.concatenate_forms(
            [np.where(loop.blocks > 0, loop.pause, np.maximum(loop.pause, loop.least))
             for loop in loops]
        )  # fmt: skip
        if not any_length:
            self._pause_of_row = rows.concatenate_forms(
                [loop.row_cycles(loop.flits) - loop.blocks * loop.flits for loop in loops]
            )
        self._least = [loop.least for loop in loops]
        for loop in loops:
            assert loop.least == 1 or not any_length or (loop.blocks <= 1).all()
        orders = {loop.order for loop in loops}
        self._orders = orders
        most = max(loop.flits for loop in loops)
        if Order.ROW in orders:
            by_row = [loop.order is Order.ROW for loop in loops]
            moves = rows.concatenate_forms([np.full(loop.n_rows, is_row)
                               for loop, is_row in zip(loops, by_row, strict=True)])  # fmt: skip
            most = max(most, int((self._pause_of_row * moves).max()), *self._least)
            if not any_length:
                most = max(most, int((self._words_of_row * moves).max()))
        self.row = Signal(range(max(rows.n_rows, 2)), name="row")
        self.word = Signal(range(max(rows.max_word_offset((1,) * len(loops)) + 1, 2)), name="word")
        first = self._reset_segment()
        self.running = Signal(name="running")
        self.pausing = Signal(name="pausing", init=first.pauses)
        self._left = Signal(range(max(most, 2)), name="left", init=first.left)
        self._last = Signal(name="last_of_segment", init=first.last)
        self._last_row = Signal(name="last_row", init=int(loops[0].n_rows == 1))
        blocks = int(rows.blocks.max()) if any_length else 1
        self._several_blocks = blocks > 1
        self._blocks_left = Signal(range(max(blocks, 2)), name="blocks_left")
        self._last_block = Signal(name="last_block") if self._several_blocks else Const(1, 1)
        self._facts: list[tuple[Signal, Value, Value]] = []

    class _ResetSegment(NamedTuple):
        """The reset values of the counters, from the first segment of the first row of form 0.

        A segment is a part of a row: one block, or the pause, in which no word moves. `pauses` is 1
        if the segment is the pause, `left` is its number of cycles minus 1, and `last` is 1 if it
        has a single cycle. If runs choose their length, `left` and `last` are 0, because the
        counters are loaded before a run.
        """

        pauses: int
        left: int
        last: int

    def _reset_segment(self) -> SlotCounters._ResetSegment:
        """Return the reset values of the counters: their values at the start of row 0 of form 0."""
        loop = self._rows.loops[0]
        if loop.order is Order.FLIT:
            cycles, pauses = loop.flits, 0
        else:
            pauses = int(loop.blocks[0] == 0)
            cycles = int(self._pause_of_row[0] if pauses else self._words_of_row[0])
        if self._any:
            return self._ResetSegment(pauses, 0, 0)
        return self._ResetSegment(pauses, cycles - 1, int(cycles == 1))

    # Properties of rows

    def _value_of_next_row(self, values: IntArray) -> Value:
        """Return the signal ``values[row]`` for the row that follows the current one.

        After the last row of a form comes the first row of the form.
        """
        after = np.arange(self._rows.n_rows) + 1
        for start, stop in zip(self._rows.starts, self._rows.stops, strict=True):
            after[stop - 1] = start
        values = values.astype(int)
        if (values == values[0]).all():
            return Const(int(values[0]), max(int(values[0]).bit_length(), 1))
        return look_up(values[after].tolist(), self.row)

    def _value_of_first_row(self, values: IntArray, form: Value) -> Value:
        """Return the signal ``values[row]`` for the first row of the form `form`.

        `values` has an entry for each row of all forms.
        """
        return constant_at(values.astype(int)[self._rows.starts].tolist(), form)

    def _row_register(self, name: str, values: IntArray, form: Value) -> Value:
        """Return a register, called `name`, that holds ``values[row]`` of the current row.

        If all entries are equal, the result is a constant instead. A run begins with the first row
        of `form`.
        """
        values = values.astype(int)
        width = max(int(values.max()).bit_length(), 1)
        if (values == values[0]).all():
            return Const(int(values[0]), width)
        register = Signal(width, name=name, init=int(values[0]))
        following = self._value_of_next_row(values), self._value_of_first_row(values, form)
        self._facts.append((register, *following))
        return register

    def _value_of_form(self, values: Sequence[int], form: Value) -> Value:
        """Return the signal ``values[form]``; `values` has a number for each form."""
        return constant_at([int(value) for value in values], form)

    # The run

    def add_counters(self, m: Module, go: Value, load: Value, chosen: FormAndLength) -> None:
        """Add the counters, and the logic that advances them, to the module of the sequencer.

        Parameters
        ----------
        m : Module
            The module of the sequencer.
        go : Value
            High in the cycle before the first slot, the cycle in which the first row is presented.
        load : Value
            High in an earlier cycle, in which the counters load the form and the length of the run.
        chosen : FormAndLength
            The form and the length, valid while `load` is high.
        """
        rows, loops = self._rows, self._rows.loops
        lengths = self._add_lengths(m, load, chosen)
        by_flit = self._value_of_form(rows.by_flit(), self._form)
        pause = self._row_register("pause_left", (self._pause_of_row - 1).clip(0), chosen.form)
        no_pause = self._row_register("no_pause", self._pause_of_row == 0, chosen.form)
        short_pause = self._row_register("short_pause", self._pause_of_row == 1, chosen.form)
        if lengths.rest is not None:
            rests = self._value_of_form([least > 1 for least in self._least], self._form)
            pause = Mux(rests, (lengths.rest - 1)[: len(lengths.rest)], pause)
            no_pause = Mux(rests, lengths.rest == 0, no_pause)
            short_pause = Mux(rests, lengths.rest == 1, short_pause)
        first_row = self._value_of_form(rows.starts.tolist(), self._form)
        before_last = [
            start if loop.n_rows == 1 else start + loop.n_rows - 2
            for start, loop in zip(rows.starts.tolist(), loops, strict=True)
        ]
        only = self._value_of_form([loop.n_rows == 1 for loop in loops], self._form)
        next_row = Mux(self._last_row, first_row, self.row + 1)
        next_last = Mux(
            self._last_row, only, self.row == self._value_of_form(before_last, self._form)
        )
        ends_words = ~self.pausing & self._last_block
        ends_row = Signal(name="ends_row")
        if Order.ROW in self._orders:
            m.d.comb += ends_row.eq(self._last & (self.pausing | (self._last_block & no_pause)))
        with m.If(go | self.running):
            if Order.FLIT in self._orders:
                with m.If(by_flit):
                    self._advance_row(m, lengths, next_row, next_last)
            if Order.ROW in self._orders:
                with m.If(~by_flit):
                    m.d.sync += [self._left.eq(self._left - 1), self._last.eq(self._left == 1)]
                    m.d.sync += self.word.eq(self.word + 1)
                    with m.If(self._last):
                        self._begin_block(m, lengths)
                        with m.If(ends_words):
                            m.d.sync += [self.pausing.eq(1), self._left.eq(pause)]
                            m.d.sync += self._last.eq(short_pause)
                    with m.If(ends_row):
                        m.d.sync += self.running.eq(~self._last_row)
                        m.d.sync += [self.row.eq(next_row), self._last_row.eq(next_last)]
                        m.d.sync += self.word.eq(0)
                        m.d.sync += [fact.eq(following) for fact, following, _ in self._facts]
                        self._begin_row(
                            m, self._next_segment(lengths), self._value_of_next_row(rows.blocks)
                        )
                    with m.Else():
                        m.d.sync += self.running.eq(1)
        if chosen.last is not None or rows.has_several_forms:
            self._load_counters(m, load, chosen)

    def _load_counters(self, m: Module, load: Value, chosen: FormAndLength) -> None:
        """Add the logic that sets the counters for a run, in a cycle in which `load` is high.

        The counters begin with the first row of the form ``chosen.form``; ``chosen.last`` is the
        number of the last flit of a block.
        """
        rows, loops, form = self._rows, self._rows.loops, chosen.form
        with m.If(load):
            m.d.sync += [
                self.row.eq(self._value_of_form(rows.starts.tolist(), form)),
                self._last_row.eq(self._value_of_form([loop.n_rows == 1 for loop in loops], form)),
            ]
            m.d.sync += [fact.eq(first) for fact, _, first in self._facts]
            left = self._words_left(chosen)
            pauses = [loop.order is Order.ROW and loop.blocks[0] == 0 for loop in loops]
            if any(pauses):
                pause = self._value_of_first_row((self._pause_of_row - 1).clip(0), form)
                left = Mux(self._value_of_form(pauses, form), pause, left)
            segment = _Segment(self._value_of_form(pauses, form), left, left == 0)
            self._begin_row(m, segment, self._value_of_first_row(rows.blocks, form))

    def _words_left(self, chosen: FormAndLength) -> Value:
        """Return the number of cycles, minus 1, that the first block of a run takes.

        With a fixed length, the blocks of a row follow one another without a gap; then the result
        counts all blocks of the first row. Some forms have blocks of one fixed length, whatever
        length a run chooses; for these, the result is that of the fixed length.
        """
        loops = self._rows.loops
        if chosen.last is None:
            first = [loop.flits if loop.order is Order.FLIT else int(loop.blocks[0]) * loop.flits
                     for loop in loops]  # fmt: skip
            return self._value_of_form([max(words - 1, 0) for words in first], chosen.form)
        padded = [loop.padded for loop in loops]
        if not any(padded):
            return chosen.last
        fixed = self._value_of_form([loop.flits - 1 for loop in loops], chosen.form)
        return Mux(self._value_of_form(padded, chosen.form), fixed, chosen.last)

    def _add_lengths(self, m: Module, load: Value, chosen: FormAndLength) -> _BlockLengths:
        """Add registers for the lengths of the blocks and pauses of a run, and return them.

        In a cycle in which `load` is high, the registers take the values for the form
        ``chosen.form``, with ``chosen.last`` as the number of the last flit of a block.
        """
        loops = self._rows.loops
        if chosen.last is None:
            # By row, the words of a row are one segment.
            flits = self._value_of_form([loop.flits for loop in loops], self._form)
            fixed = self._value_of_form([loop.flits - 1 for loop in loops], self._form)
            return _BlockLengths(fixed, flits == 1, Const(1), None)
        last = self._words_left(chosen)
        most = max(loop.flits for loop in loops)
        left = Signal(range(max(most, 2)), name="block_left", reset_less=True)
        single = Signal(name="single_flit", reset_less=True)
        skip = Signal(range(most + 1), name="skip", reset_less=True)
        apart = self._value_of_form([loop.flits for loop in loops], chosen.form)
        with m.If(load):
            m.d.sync += [left.eq(last), single.eq(last == 0), skip.eq(apart - last)]
        if max(self._least) == 1:
            return _BlockLengths(left, single, skip, None)
        least = self._value_of_form([least - 1 for least in self._least], chosen.form)
        pauses = [int(loop.pause[loop.blocks > 0].max(initial=0)) for loop in loops]
        for loop in loops:
            assert loop.least == 1 or len(np.unique(loop.pause[loop.blocks > 0])) < 2
        pause = self._value_of_form(pauses, chosen.form)
        rest = Signal(range(max(*self._least, *pauses) + 1), name="rest", reset_less=True)
        short = (least - last).as_signed()
        with m.If(load):
            m.d.sync += rest.eq(Mux(last + pause < least, short, pause))
        return _BlockLengths(left, single, skip, rest)

    def _advance_row(
        self, m: Module, lengths: _BlockLengths, next_row: Value, next_last: Value
    ) -> None:
        """Add the logic of one step in a form by flit.

        Such a form executes all rows for the first flit of each block, then all rows for the second
        flit, and so on. In a step the row becomes `next_row`; `next_last` is high if `next_row` is
        the last row. After the last row, the count of flits advances. With a fixed length, `word`
        counts the flits, and no other counter is needed. `lengths` has the lengths of the blocks.
        """
        m.d.sync += [self.row.eq(next_row), self._last_row.eq(next_last), self.running.eq(1)]
        with m.If(self._last_row):
            most = max(loop.flits for loop in self._rows.loops)
            if not self._any and most == 1:
                m.d.sync += self.running.eq(0)
                return
            m.d.sync += self.word.eq(self.word + 1)
            if self._any:
                m.d.sync += [self._left.eq(self._left - 1), self._last.eq(self._left == 1)]
            else:
                m.d.sync += self._last.eq(self.word == most - 2)
            with m.If(self._last):
                m.d.sync += [self.running.eq(0), self.word.eq(0), self._last.eq(lengths.single)]
                if self._any:
                    m.d.sync += self._left.eq(lengths.left)

    def _begin_block(self, m: Module, lengths: _BlockLengths) -> None:
        """Add the logic that sets the counters for the next block of a row, if there is one.

        `lengths` has the lengths of the blocks of the run.
        """
        if not self._several_blocks:
            return
        with m.If(~self.pausing & ~self._last_block):
            m.d.sync += [self._left.eq(lengths.left), self._last.eq(lengths.single)]
            m.d.sync += self.word.eq(self.word + lengths.skip)
            m.d.sync += [self._blocks_left.eq(self._blocks_left - 1),
                         self._last_block.eq(self._blocks_left == 1)]  # fmt: skip

    def _next_segment(self, lengths: _BlockLengths) -> _Segment:
        """Return the values with which the counters begin the row after the current one.

        A row begins with a block, or with a pause if no word moves in the row. `lengths` has the
        lengths of the blocks of the run.
        """
        rows = self._rows
        idle, words = rows.blocks == 0, self._words_of_row
        if self._any:
            left, last = lengths.left, lengths.single
        else:
            left, last = (
                self._value_of_next_row((words - 1).clip(0)),
                self._value_of_next_row(words == 1),
            )
        if not idle.any():
            return _Segment(Const(0, 1), left, last)
        pauses = self._value_of_next_row(idle)
        return _Segment(
            pauses,
            Mux(pauses, self._value_of_next_row((self._pause_of_row - 1).clip(0)), left),
            Mux(pauses, self._value_of_next_row(self._pause_of_row == 1), last),
        )

    def _begin_row(self, m: Module, segment: _Segment, blocks: Value) -> None:
        """Add the logic that sets the counters for a new row of `blocks` blocks.

        `segment` has the values with which the counters begin the row.
        """
        m.d.sync += [self.pausing.eq(segment.pauses), self._left.eq(segment.left)]
        m.d.sync += self._last.eq(segment.last)
        if self._several_blocks:
            m.d.sync += [self._blocks_left.eq(blocks - 1), self._last_block.eq(blocks <= 1)]
