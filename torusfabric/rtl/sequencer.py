"""The sequencer: the one controller that steps a whole fabric through its program."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program.timing import ADDRESS, DISTRIBUTION, Timing
from ..program.values import Order
from .columns import Columns
from .control import Control
from .delays import delayed
from .endpoint_columns import StoreColumn
from .memories import address_width, choose
from .netlist import Leaf

__all__ = ["Sequencer"]


class Sequencer(Leaf):
    """Steps through the rows and flits of a program, and counts the cycles.

    A row and a flit are presented in each *slot*, one a cycle; a ROM with the columns of the
    program is read ahead, so that its first row is there when a run starts. What nodes are given
    takes `DISTRIBUTION` cycles to them, and so leaves here that much before the cycle that `Timing`
    gives for it.

    Parameters
    ----------
    timing : Timing
    control : Control
    address_bits : int
        Bits of an address.

    Members
    -------
    start : In(1)
        Starts a run, unless one is under way.
    idle_address : In
        What `read_k` is while no run is under way.
    busy, done : Out(1)
        Busy from the edge after the start until done; done stays until the next start.
    cycles : Out(32)
        Clock edges from the start pulse to done; counts while busy.
    select : Out
        The select bits that are equal at all nodes, if any.
    row, setting_row : Out
        The row, for the ROMs of endpoints and routers; if any have ROMs.
    phase : Out
        For each window, bit k: whether a flit within it was read k cycles ago; if there are any.
    read_k : Out
        Addresses of readers.
    write_k, store_k : Out
        Where, and whether, to store what arrives.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.rtl.control import plan_control
    >>> program = tf.compile(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"))
    >>> sequencer = Sequencer(program.timing, plan_control(program), address_bits=4)
    >>> len(sequencer.read_0), len(sequencer.cycles)
    (4, 32)
    """

    def __init__(self, timing: Timing, control: Control, *, address_bits: int) -> None:
        self._timing, self._loop, self._control = timing, timing.loop, control
        self._bits = address_bits
        endpoints, row_bits = control.endpoints, address_width(self._loop.rows)
        windows = control.windows
        rows = any(shape.row_bits for shape in endpoints.shapes)
        optional = {
            "select": len(control.selects),
            "row": row_bits if rows else 0,
            "setting_row": row_bits if control.router_rows else 0,
            "phase": windows.count * windows.phases if endpoints.uses_phases else 0,
        }
        super().__init__(
            {
                "start": In(1),
                "idle_address": In(address_bits),
                "busy": Out(1),
                "done": Out(1),
                "cycles": Out(32),
            }
            | {name: Out(bits) for name, bits in optional.items() if bits}
            | {f"read_{k}": Out(address_bits) for k in range(len(endpoints.reads))}
            | {f"write_{k}": Out(address_bits) for k in range(len(endpoints.stores))}
            | {f"store_{k}": Out(1) for k in range(len(endpoints.stores))}
        )
        self._has = {name for name, bits in optional.items() if bits}

    def elaborate(self, platform: object) -> Module:
        """Build the pipeline of a slot.

        The counters are a cycle ahead of their slot, for they address the ROM, whose output is the
        slot's row. From then on everything is delayed to the cycle that `Timing` gives.
        """
        m = Module()
        last = Signal()
        go = self._go(m, self._run(m, last))
        row, flit, running = self._counters(m, go)
        drain = self._loop.drain
        # A slot is under way in stage 0; the run ends when the last one has left the last stage.
        stages = Signal(drain)
        ended = Signal()
        m.d.sync += Cat(stages, ended).eq(Cat(go | running, stages))
        m.d.comb += last.eq(ended & ~stages[-1])
        rom = Columns(row)
        slot = _Slot(rom, delayed(m, row == 0, 1), flit, stages[0])
        self._selects(m, slot)
        self._rows(m, row)
        self._phases(m, slot)
        self._addresses(m, slot)
        rom.build(m, "table")
        return m

    def _run(self, m: Module, last: Value) -> Value:
        """Keep `busy`, `done` and `cycles`; `last` is high in the last cycle of a run.

        Returns
        -------
        Value
            High in the cycle in which a start is accepted.
        """
        begin = self.value("start") & ~self.busy
        with m.If(begin):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), self.cycles.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += self.cycles.eq(self.cycles + 1)
            with m.If(last):
                m.d.sync += [self.busy.eq(0), self.done.eq(1)]
        return begin

    def _go(self, m: Module, begin: Value) -> Value:
        """High in the cycle before the first slot."""
        wait = self._timing.wait
        if not wait:
            return begin
        left = Signal(range(wait + 1))
        with m.If(begin):
            m.d.sync += left.eq(wait)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return left == 1

    def _counters(self, m: Module, go: Value) -> tuple[Signal, Signal, Signal]:
        """Count rows and flits, a cycle ahead of their slots.

        Returns
        -------
        row : Signal
            A cycle ahead of its slot.
        flit : Signal
            In its slot.
        running : Signal
            Whether the counters show a slot that is yet to come, after the first.
        """
        loop = self._loop
        duration = loop.duration(loop.flits)
        longest = loop.flits if loop.order is Order.FLIT else int(duration.max())
        running = Signal()
        row, flit = Signal(range(max(loop.rows, 2))), Signal(range(max(longest, 2)))
        end_of_rows = row == loop.rows - 1
        if loop.order is Order.FLIT:
            inner, wrap, outer, end = row, end_of_rows, flit, flit == loop.flits - 1
        else:
            end_of_row = flit == self._per_row((duration - 1).tolist(), row)
            inner, wrap, outer, end = flit, end_of_row, row, end_of_rows
        with m.If(go | running):
            m.d.sync += [inner.eq(inner + 1), running.eq(~(wrap & end))]
            with m.If(wrap):
                m.d.sync += [inner.eq(0), outer.eq(Mux(end, 0, outer + 1))]
        return row, delayed(m, flit, 1), running

    @staticmethod
    def _per_row(values: list[int], row: Value) -> Value:
        """A value that depends on the row."""
        if len(set(values)) == 1:
            return Const(values[0])
        return choose([Const(v, max(values).bit_length()) for v in values], row)

    def _selects(self, m: Module, slot: _Slot) -> None:
        """Select bits."""
        for k, column in enumerate(self._control.selects):
            value = slot.column(column.values)
            early = delayed(m, value, column.delay - DISTRIBUTION - 1)
            m.d.sync += self.select[k].eq(early)

    def _rows(self, m: Module, row: Value) -> None:
        """The row for the ROMs of nodes: what routers read is wanted a cycle later."""
        here = delayed(m, row, 1)
        if "row" in self._has:
            m.d.comb += self.row.eq(here)
        if "setting_row" in self._has:
            m.d.sync += self.setting_row.eq(here)

    def _phases(self, m: Module, slot: _Slot) -> None:
        """Whether flits within each window are read, and were read."""
        if "phase" not in self._has:
            return
        windows = self._control.windows
        bits = windows.phases
        for number in range(windows.count):
            column = windows.column(number)
            # Where a row has no such window nobody looks, so that any other length will do.
            lengths = np.array([length or max(column) for length in column]) * self._loop.flits
            inside = slot.valid & (slot.flit < slot.rom.read(lengths))
            phase = self.phase[number * bits :][:bits]
            # A row ends with the write of its last flit: nothing of it shows in the next.
            m.d.sync += phase.eq(Cat(inside, Mux(slot.flit == 0, 0, phase)))

    def _addresses(self, m: Module, slot: _Slot) -> None:
        """Addresses of what is read and stored, and whether anything is stored."""
        for k, column in enumerate(self._control.endpoints.reads):
            address = slot.address(column.base, 1)[: self._bits]
            read = delayed(m, address, ADDRESS - DISTRIBUTION + column.skew)
            chosen = Mux(self.busy, read, self.value("idle_address"))
            m.d.comb += getattr(self, f"read_{k}").eq(chosen)
        for k, store in enumerate(self._control.endpoints.stores):
            delay = self._timing.store_delay(store.hops, store.skew) - DISTRIBUTION
            address = self._store_address(m, slot, store)
            m.d.comb += getattr(self, f"write_{k}").eq(delayed(m, address, delay))
            inside = slot.valid & slot.rom.read((store.base >= 0).astype(int))
            length, loop = store.blocks * self._loop.flits, self._loop
            if loop.order is Order.ROW and int(loop.duration(loop.flits).max()) > length:
                inside = inside & (slot.flit < length)
            m.d.comb += getattr(self, f"store_{k}").eq(delayed(m, inside, delay))

    def _store_address(self, m: Module, slot: _Slot, store: StoreColumn) -> Value:
        """Where what is read in a slot will be stored."""
        rows = self._loop.rows
        if self._loop.order is Order.FLIT and store.pitch == rows:
            assert (store.base == np.arange(rows)).all(), "a pitch of all rows takes them in order"
            # Bases and pitches make a plain counter.
            counter = Signal(self._bits)
            m.d.sync += counter.eq(Mux(slot.valid, counter + 1, 0))
            return counter
        return slot.address(store.base, 1)[: self._bits]


class _Slot:
    """What a slot presents.

    Parameters
    ----------
    rom : Columns
    first : Value
        Whether the row is the first.
    flit : Value
    valid : Value
        Whether there is a slot.
    """

    def __init__(self, rom: Columns, first: Value, flit: Value, valid: Value) -> None:
        self.rom, self.first, self.flit, self.valid = rom, first, flit, valid

    def column(self, values: np.ndarray) -> Value:
        """A bit of each row; one that is high, or low, in the first row only needs no ROM."""
        if (values[1:] != values[0]).all():
            return self.first if values[0] else ~self.first
        return self.rom.read(values)

    def address(self, base: np.ndarray, pitch: int) -> Value:
        """First addresses of rows, plus the flit."""
        bits = len(self.flit)
        base = np.maximum(base, 0)
        if (base == 0).all():
            return self.flit
        if not (base & ((1 << bits) - 1)).any():
            return Cat(self.flit, self.rom.read(base >> bits))
        return self.rom.read(base) + self.flit
