"""The sequencer of tables: one ROM that tells all nodes what to do."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .locator import Columns
from .offset_locator import block_address, block_base
from .sequencer import Sequencer

__all__ = ["TableSequencer"]


class Late(NamedTuple):
    """How many cycles later than usual everything is told.

    Parameters
    ----------
    select, reads, writes, stores : sequence of int
        Of each column.
    tail : int
        By how much the run ends later.
    """

    select: Sequence[int]
    reads: Sequence[int]
    writes: Sequence[int]
    stores: Sequence[int]
    tail: int


class TableSequencer(Sequencer):
    """Steps through a table.

    A run takes ``steps * period + tail + 3 + wait`` cycles, or by waves ``flits`` times as many
    steps. The ROM is read ahead, so that its first row
    is there when a run starts.

    Parameters
    ----------
    by_waves : bool
        Whether to run the whole table for each flit, rather than each step for all flits.
    steps, flits : int
    wait : int
        Cycles to wait at the start.
    select : ndarray of int, shape (steps, select registers)
        The select registers of all routers.
    reads, writes : list of ndarray of int, shape (steps,)
        Places in banks, counted in blocks.
    stores : list of ndarray of bool, shape (steps,)
        Whether to write.
    address_bits : int
    period : int
        Cycles from one row to the next.
    late : Late, optional

    Members
    -------
    idle_address : In
        What `read_k` is while no run is under way.
    select : Out
    read_k : Out
        Addresses for words that leave two cycles later.
    write_k, store_k : Out
        Addresses for words that arrive.
    """

    def __init__(self, *, by_waves, steps, flits, wait, select, reads, writes, stores,
                 address_bits, period, late=None):  # fmt: skip
        self._by_waves, self._steps, self._flits, self._wait = by_waves, steps, flits, wait
        self._select, self._reads, self._writes, self._stores = select, reads, writes, stores
        self._bits, self._period = address_bits, period
        # What the flits are counted up to.
        self._cycles = flits if by_waves else period
        none = [0] * max(select.shape[1], len(reads), len(writes), len(stores))
        self._late = late or Late(none, none, none, none, 0)
        super().__init__(
            {
                "idle_address": In(address_bits),
                "select": Out(max(select.shape[1], 1)),
            }
            | {f"read_{k}": Out(address_bits) for k in range(len(reads))}
            | {f"write_{k}": Out(address_bits) for k in range(len(writes))}
            | {f"store_{k}": Out(1) for k in range(len(stores))}
        )

    def elaborate(self, platform):
        m = Module()
        on_wire, last = Signal(), Signal()
        go = self._go(m, self.run(m, last))
        step, flit, running = self._counters(m, go)
        stages = Signal(3 + self._late.tail)
        m.d.sync += Cat(stages, on_wire).eq(Cat(go | running, stages))
        m.d.comb += last.eq(on_wire & ~stages[-1])
        valid = stages[0]  # whether the row is there of a step that is under way
        if not self._by_waves and self._period > self._flits:
            valid = valid & (flit < self._flits)
        rom, late = Columns(step), self._late
        for k, column in enumerate(self._select.T):
            m.d.sync += self.select[k].eq(self._later(m, rom.read(column), late.select[k]))
        for k, column in enumerate(self._reads):
            read = self._later(m, self._address(rom, column, flit), 1 + late.reads[k])
            chosen = Mux(self.busy, read, self.value("idle_address"))
            m.d.comb += getattr(self, f"read_{k}").eq(chosen)
        for k, column in enumerate(self._writes):
            write = self._later(m, self._address(rom, column, flit), 3 + late.writes[k])
            m.d.comb += getattr(self, f"write_{k}").eq(write)
        for k, column in enumerate(self._stores):
            store = self._later(m, rom.read(column.astype(int)) & valid, 3 + late.stores[k])
            m.d.comb += getattr(self, f"store_{k}").eq(store)
        rom.build(m, "table")
        return m

    def _go(self, m, begin):
        """High in the cycle in which the first step begins."""
        if not self._wait:
            return begin
        left = Signal(range(self._wait + 1))
        with m.If(begin):
            m.d.sync += left.eq(self._wait)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return left == 1

    def _counters(self, m, go):
        """Count steps and flits; returns the step, the flit of the row that is there, and whether
        the counters show a step that is yet to come.
        """
        running = Signal()
        step, flit = Signal(range(max(self._steps, 2))), Signal(range(max(self._cycles, 2)))
        counters = [(step, self._steps), (flit, self._cycles)]
        if not self._by_waves:
            counters.reverse()
        (inner, inner_end), (outer, outer_end) = counters
        wrap, end = inner == inner_end - 1, outer == outer_end - 1
        with m.If(go | running):
            m.d.sync += [inner.eq(inner + 1), running.eq(~(wrap & end))]
            with m.If(wrap):
                m.d.sync += [inner.eq(0), outer.eq(Mux(end, 0, outer + 1))]
        return step, self._later(m, flit, 1), running

    def _address(self, rom, column, flit):
        """The address of a flit of the block that a column tells."""
        base = block_base(np.asarray(column), self._flits)
        return block_address(rom.read(base), flit, self._flits)[: self._bits]

    @staticmethod
    def _later(m, value, cycles):
        """A value some cycles later."""
        if isinstance(value, Const):
            return value
        for _ in range(cycles):
            later = Signal(len(value), reset_less=True)
            m.d.sync += later.eq(value)
            value = later
        return value
