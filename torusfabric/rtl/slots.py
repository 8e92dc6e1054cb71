"""Slots: what the sequencer presents in each cycle, row by row and flit by flit."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import Const, Module, Mux, Signal, Value

from ..program.fields import Loop, Order
from .memories import Columns, look_up
from .registers import delayed

__all__ = ["FixedSlots", "Slots"]


class Slots:
    """Counts rows and flits, and says what the slot under way is.

    Counters are a cycle ahead of their slot, for they address the ROM, whose output is the slot's
    row.

    Parameters
    ----------
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
    streams : Value
        Of the slot: whether its word is one of the row, which pauses after its words.
    begins : Value
        Of the slot: whether it is the first of its row.
    ends_block : Value
        Of the slot: whether its word is the last of its block; in loops by rows of any length.
    """

    word: Value
    streams: Value
    begins: Value
    ends_block: Value

    def __init__(self, rows: int, go: Value) -> None:
        self.go, self.valid = go, Value.cast(0)
        self.row = Signal(range(max(rows, 2)), name="row")
        self.running = Signal(name="running")
        self.rom = Columns(self.row)
        self._counters = [self.row, self.running]
        self._late: dict[str, Value] = {}

    def stop(self, m: Module) -> None:
        """Let no slot follow, and count the next run from its begin."""
        m.d.sync += [counter.eq(counter.init) for counter in self._counters]

    def column(self, m: Module, values: np.ndarray) -> Value:
        """A value of each row; some that follow from its number need no ROM."""
        others = values[1:]
        if len(others) and (values == np.arange(len(values))).all():
            return self._once(m, "row", self.row)
        if len(others) and values.max() <= 1 and (others != values[0]).all():
            first = self._once(m, "first", self.row == 0)
            return first if values[0] else ~first
        return self.rom.read(values)

    def _once(self, m: Module, name: str, value: Value) -> Value:
        """A value of the counters as late as the slot, in one register however often it is used."""
        if name not in self._late:
            self._late[name] = delayed(m, value, 1, name)
        return self._late[name]

    def address(self, base: np.ndarray) -> Value:
        """First addresses of rows, plus the word."""
        return self.rom.address(base, self.word)

    def _per_row(self, values: list[int]) -> Value:
        """A value that depends on the row, with the counters."""
        if len(set(values)) == 1:
            return Const(values[0])
        return look_up(values, self.row)


class FixedSlots(Slots):
    """The slots of a loop with messages of a fixed length."""

    def __init__(self, m: Module, loop: Loop, go: Value) -> None:
        super().__init__(loop.rows, go)
        self._end_of_rows = self.row == loop.rows - 1
        count = self._count_by_flit if loop.order is Order.FLIT else self._count_by_row
        count(m, loop)

    def _count_by_flit(self, m: Module, loop: Loop) -> None:
        """Count all rows for the first flit, then for the second, .."""
        flit = Signal(range(max(loop.flits, 2)), name="flit")
        self._counters.append(flit)
        end, moves = flit == loop.flits - 1, self.go | self.running
        with m.If(moves):
            m.d.sync += [
                self.row.eq(Mux(self._end_of_rows, 0, self.row + 1)),
                self.running.eq(~(self._end_of_rows & end)),
            ]
        # Unless it is the only row, the first, at which `go` comes late, is not the last.
        with m.If((self.running if loop.rows > 1 else moves) & self._end_of_rows):
            m.d.sync += flit.eq(Mux(end, 0, flit + 1))
        self.word = delayed(m, flit, 1)
        self.streams = self.begins = Const(1)

    def _count_by_row(self, m: Module, loop: Loop) -> None:
        """Count the cycles of each row."""
        duration, words = loop.duration(loop.flits), loop.blocks * loop.flits
        cycle = Signal(range(max(int(duration.max()), 2)), name="cycle")
        self._counters.append(cycle)
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
        self.streams = Const(1) if (words >= duration).all() else self.word < self.rom.read(words)
