"""Slots: what the sequencer presents in each cycle, row by row and flit by flit."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..program.values import Loop, Order
from .columns import Columns
from .delays import delayed
from .memories import choose
from .run_length import RunLength

__all__ = ["FixedSlots", "OpenSlots", "Slots"]


class Slots(ABC):
    """Counts rows and flits, and says what the slot under way is.

    Counters are a cycle ahead of their slot, for they address the ROM, whose output is the slot's
    row.

    Parameters
    ----------
    m : Module
    loop : Loop
    go : Value
        High in the cycle before the first slot.

    Attributes
    ----------
    row : Value
        The row, a cycle ahead of its slot.
    running : Value
        Whether the counters show a slot that is yet to come, after the first.
    rom : Columns
    word : Value
        Of the slot: where its word lies from the first address of the row.
    valid : Value
        Whether a slot is under way; set by the sequencer.
    begins : Value
        Of the slot: whether it is the first of its row.
    """

    word: Value
    begins: Value

    def __init__(self, m: Module, loop: Loop, go: Value) -> None:
        self.loop, self.go, self.valid = loop, go, Value.cast(0)
        self.row = Signal(range(max(loop.rows, 2)))
        self.running = Signal(name="running")
        self.rom = Columns(self.row)
        self._first = delayed(m, self.row == 0, 1)
        self._end_of_rows = self.row == loop.rows - 1

    @abstractmethod
    def within(self, blocks: np.ndarray) -> Value:
        """Whether the slot's word is one of so many blocks, given for each row."""

    def column(self, values: np.ndarray) -> Value:
        """A bit of each row; one that is high, or low, in the first row only needs no ROM."""
        if (values[1:] != values[0]).all():
            return self._first if values[0] else ~self._first
        return self.rom.read(values)

    def address(self, base: np.ndarray) -> Value:
        """First addresses of rows, plus the word."""
        bits = len(self.word)
        base = np.maximum(base, 0)
        if (base == 0).all():
            return self.word
        if not (base & ((1 << bits) - 1)).any():
            return Cat(self.word, self.rom.read(base >> bits))
        return self.rom.read(base) + self.word

    def _per_row(self, values: list[int]) -> Value:
        """A value that depends on the row, with the counters."""
        if len(set(values)) == 1:
            return Const(values[0])
        return choose([Const(v, max(values).bit_length()) for v in values], self.row)

    def _count_by_flit(self, m: Module, last: Value | int, most: int) -> None:
        """Count all rows for the first flit, then for the second, .."""
        flit = Signal(range(max(most, 2)))
        end = flit == last
        with m.If(self.go | self.running):
            m.d.sync += [
                self.row.eq(self.row + 1),
                self.running.eq(~(self._end_of_rows & end)),
            ]
            with m.If(self._end_of_rows):
                m.d.sync += [self.row.eq(0), flit.eq(Mux(end, 0, flit + 1))]
        self.word = delayed(m, flit, 1)
        self.begins = Const(1)


class FixedSlots(Slots):
    """The slots of messages of a fixed length."""

    def __init__(self, m: Module, loop: Loop, go: Value) -> None:
        super().__init__(m, loop, go)
        if loop.order is Order.FLIT:
            self._count_by_flit(m, loop.flits - 1, loop.flits)
        else:
            self._count_by_row(m)

    def _count_by_row(self, m: Module) -> None:
        """Count the cycles of each row."""
        duration = self.loop.duration(self.loop.flits)
        cycle = Signal(range(max(int(duration.max()), 2)))
        end_of_row = cycle == self._per_row((duration - 1).tolist())
        with m.If(self.go | self.running):
            m.d.sync += [
                cycle.eq(cycle + 1),
                self.running.eq(~(end_of_row & self._end_of_rows)),
            ]
            with m.If(end_of_row):
                m.d.sync += [
                    cycle.eq(0),
                    self.row.eq(Mux(self._end_of_rows, 0, self.row + 1)),
                ]
        self.word = delayed(m, cycle, 1)
        self.begins = self.word == 0

    def within(self, blocks: np.ndarray) -> Value:
        """Whether the slot's word is one of so many blocks, given for each row."""
        loop = self.loop
        words = blocks * loop.flits
        if loop.order is Order.FLIT or (words >= loop.duration(loop.flits)).all():
            return Const(1)
        return self.word < self.rom.read(words)


class OpenSlots(Slots):
    """The slots of messages whose length is known when a run starts.

    Parameters
    ----------
    m, loop, go
        As for all.
    run : RunLength

    Attributes
    ----------
    ends_block : Value
        Of the slot: whether its word is the last of its block; only in a loop by rows.
    """

    ends_block: Value

    def __init__(self, m: Module, loop: Loop, go: Value, run: RunLength) -> None:
        super().__init__(m, loop, go)
        if loop.order is Order.FLIT:
            self._count_by_flit(m, run.last, loop.flits)
        else:
            self._count_by_row(m, run)

    def _count_by_row(self, m: Module, run: RunLength) -> None:
        """Count the flits of each block, the blocks of each row, and the cycles of its pause."""
        loop = self.loop
        most = int(loop.blocks.max())
        flit, block = Signal(range(max(loop.flits, 2))), Signal(range(max(most, 2)))
        word = Signal(range(max(most * loop.flits, 2)))
        longest = max(int(loop.pause.max()), loop.least, 2)
        left, pausing = Signal(range(longest)), Signal()
        pause = run.idle if loop.least > 1 else self._per_row(loop.pause.tolist())
        ends_block = ~pausing & (flit == run.last)
        ends_words = ends_block & (block == self._per_row((loop.blocks - 1).tolist()))
        end_of_row = Mux(pausing, left == 0, ends_words & (pause == 0))
        with m.If(self.go | self.running):
            m.d.sync += self.running.eq(~(end_of_row & self._end_of_rows))
            with m.If(ends_words):
                m.d.sync += [pausing.eq(1), left.eq(pause - 1)]
            with m.Elif(pausing):
                m.d.sync += left.eq(left - 1)
            with m.Elif(ends_block):
                m.d.sync += [flit.eq(0), block.eq(block + 1), word.eq(word + run.skip)]
            with m.Else():
                m.d.sync += [flit.eq(flit + 1), word.eq(word + 1)]
            with m.If(end_of_row):
                m.d.sync += [flit.eq(0), block.eq(0), word.eq(0), pausing.eq(0)]
                m.d.sync += self.row.eq(Mux(self._end_of_rows, 0, self.row + 1))
        self._streams = delayed(m, ~pausing, 1)
        self._block = delayed(m, block, 1)
        self.word = delayed(m, word, 1)
        self.begins = delayed(m, ~pausing & (flit == 0) & (block == 0), 1)
        self.ends_block = delayed(m, ends_block, 1)

    def within(self, blocks: np.ndarray) -> Value:
        """Whether the slot's word is one of so many blocks, given for each row."""
        if self.loop.order is Order.FLIT:
            return Const(1)
        if (blocks >= self.loop.blocks).all():
            return self._streams
        return self._streams & (self._block < self.rom.read(blocks))
