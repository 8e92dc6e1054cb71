"""The sequencer: the one controller that steps a whole fabric through its program."""

from __future__ import annotations

import enum
from typing import TypeGuard

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program.timing import ADDRESS, DISTRIBUTION, Timing
from ..program.values import Order
from .control import Control
from .delays import delayed
from .endpoint_columns import StoreColumn
from .memories import address_width, choose
from .netlist import Leaf
from .operator_unit import OperatorUnit
from .run_length import Lengths, RunLength
from .slots import FixedSlots, OpenSlots, Slots

__all__ = ["ERROR_BITS", "RunError", "Sequencer"]

#: Bits of `error`.
ERROR_BITS = 4


class RunError(enum.IntEnum):
    """Why a start was not carried out."""

    NONE = 0
    ROOT = 2
    LENGTH = 3
    OPERATION = 4
    BUSY = 5


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
    lengths : Lengths, optional
        Those that a run can have, if its length is known no earlier than at its start.
    roots : int, optional
        Nodes of which each can be the root, if it is known no earlier than at the start of a run.
    operators : OperatorUnit, optional
        Those among which a run chooses.

    Members
    -------
    start : In(1)
        Starts a run, unless one is under way.
    length : In
        Flits of the messages of a run, sampled with its start; if there is a choice.
    root : In
        The root of a run; if there is a choice, and it has values that are no node.
    operation : In
        The number of an operator, sampled with the start; if there is a choice.
    idle_address : In
        What `read_k` is while no run is under way.
    busy, done : Out(1)
        Busy from the edge after the start until done; done stays until the next start.
    cycles : Out(32)
        Clock edges from the start pulse to done; counts while busy.
    error : Out(4)
        Why the last start was not carried out, a `RunError`; if anything can be chosen.
    accepted : Out(1)
        High in the cycle in which a start is accepted; if roots can be chosen.
    operator_code : Out
        The control bits of the operator of a run; if operators can be chosen.
    round : Out
        The row under way; if lengths can be chosen.
    skip : Out
        From the address of the last flit of a block to that of the first of the next, if blocks of
        any length follow one another.
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

    def __init__(
        self,
        timing: Timing,
        control: Control,
        *,
        address_bits: int,
        lengths: Lengths | None = None,
        roots: int | None = None,
        operators: OperatorUnit | None = None,
    ) -> None:
        self._timing, self._loop, self._control = timing, timing.loop, control
        self._bits, self._lengths, self._roots = address_bits, lengths, roots
        self._operators = operators
        endpoints, row_bits = control.endpoints, address_width(self._loop.rows)
        windows = control.windows
        rows = any(shape.row_bits for shape in endpoints.shapes)
        optional = {
            "select": len(control.selects),
            "row": row_bits if rows else 0,
            "setting_row": row_bits if control.router_rows else 0,
            "phase": windows.chains * windows.phases if endpoints.uses_phases else 0,
            "error": ERROR_BITS if lengths or roots or operators else 0,
            "accepted": 1 if roots else 0,
            "operator_code": operators.bits if operators else 0,
            "round": row_bits if lengths else 0,
            "skip": windows.skip_bits if endpoints.uses_phases else 0,
        }
        super().__init__(
            {
                "start": In(1),
                "idle_address": In(address_bits),
                "busy": Out(1),
                "done": Out(1),
                "cycles": Out(32),
            }
            | ({"length": In(lengths.bits)} if lengths else {})
            | ({"root": In(address_width(roots))} if _has_gaps(roots) else {})
            | ({"operation": In(operators.choice_bits)} if operators else {})
            | {name: Out(bits) for name, bits in optional.items() if bits}
            | {f"read_{k}": Out(address_bits) for k in range(len(endpoints.reads))}
            | {f"write_{k}": Out(address_bits) for k in range(len(endpoints.stores))}
            | {f"store_{k}": Out(1) for k in range(len(endpoints.stores))}
        )
        self._has = {name for name, bits in optional.items() if bits}

    def elaborate(self, platform: object) -> Module:
        """Build the pipeline of a slot.

        The counters are a cycle ahead of their slot. From then on everything is delayed to the
        cycle that `Timing` gives.
        """
        m = Module()
        last = Signal()
        begin = self._run(m, last)
        go = self._go(m, begin)
        slots = self._slots(m, begin, go)
        drain = self._loop.drain
        # A slot is under way in stage 0; the run ends when the last one has left the last stage.
        stages = Signal(drain)
        ended = Signal()
        m.d.sync += Cat(stages, ended).eq(Cat(go | slots.running, stages))
        m.d.comb += last.eq(ended & ~stages[-1])
        slots.valid = stages[0]
        self._selects(m, slots)
        self._rows(m, slots.row)
        self._phases(m, slots)
        self._addresses(m, slots)
        slots.rom.build(m, "table")
        return m

    def _run(self, m: Module, last: Value) -> Value:
        """Keep `busy`, `done` and `cycles`; `last` is high in the last cycle of a run.

        Returns
        -------
        Value
            High in the cycle in which a start is accepted.
        """
        start, begin = self.value("start"), self.value("start") & ~self.busy
        if "error" in self._has:
            wrong = self._wrong()
            with m.If(start):
                m.d.sync += self.error.eq(Mux(self.busy, RunError.BUSY, wrong))
            begin = begin & (wrong == RunError.NONE)
        if "accepted" in self._has:
            m.d.comb += self.accepted.eq(begin)
        self._sample_operator(m, begin)
        with m.If(begin):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), self.cycles.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += self.cycles.eq(self.cycles + 1)
            with m.If(last):
                m.d.sync += [self.busy.eq(0), self.done.eq(1)]
        return begin

    def _wrong(self) -> Value:
        """Why what is chosen cannot be carried out, a `RunError`."""
        wrong: Value = Const(RunError.NONE, ERROR_BITS)
        if self._operators:
            fits = self.value("operation") < len(self._operators.operators)
            wrong = Mux(fits, wrong, RunError.OPERATION)
        if self._lengths:
            length = self.value("length")
            fits = (length != 0) & (length <= self._lengths.most)
            wrong = Mux(fits, wrong, RunError.LENGTH)
        if _has_gaps(self._roots):
            wrong = Mux(self.value("root") < self._roots, wrong, RunError.ROOT)
        return wrong

    def _sample_operator(self, m: Module, begin: Value) -> None:
        """Keep what the operator of a run is told."""
        if self._operators:
            codes = [Const(code, self._operators.bits) for code in self._operators.codes]
            with m.If(begin):
                m.d.sync += self.operator_code.eq(choose(codes, self.value("operation")))

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

    def _slots(self, m: Module, begin: Value, go: Value) -> Slots:
        """What counts the slots."""
        if self._lengths is None:
            return FixedSlots(m, self._loop, go)
        run = RunLength(m, self._lengths, self._loop, self.value("length"), begin)
        slots = OpenSlots(m, self._loop, go, run)
        m.d.comb += self.round.eq(delayed(m, slots.row, 1))
        if "skip" in self._has:
            m.d.comb += self.skip.eq(run.skip)
        return slots

    def _selects(self, m: Module, slots: Slots) -> None:
        """Select bits."""
        for k, column in enumerate(self._control.selects):
            value = slots.column(column.values)
            early = delayed(m, value, column.delay - DISTRIBUTION - 1)
            m.d.sync += self.select[k].eq(early)

    def _rows(self, m: Module, row: Value) -> None:
        """The row for the ROMs of nodes: what routers read is wanted a cycle later."""
        here = delayed(m, row, 1)
        if "row" in self._has:
            m.d.comb += self.row.eq(here)
        if "setting_row" in self._has:
            m.d.sync += self.setting_row.eq(here)

    def _phases(self, m: Module, slots: Slots) -> None:
        """Whether flits within each window, and those that end blocks, are and were read."""
        if "phase" not in self._has:
            return
        windows = self._control.windows
        bits = windows.phases
        now = []
        for number in range(windows.count):
            column = windows.column(number)
            # Where a row has no such window nobody looks, so that any other length will do.
            blocks = np.array([length or max(column) for length in column])
            now.append(slots.valid & slots.within(blocks))
        if isinstance(slots, OpenSlots):
            now.append(slots.ends_block)
        for number, value in enumerate(now):
            phase = self.phase[number * bits :][:bits]
            # A row ends with the write of its last flit: nothing of it shows in the next.
            m.d.sync += phase.eq(Cat(value, Mux(slots.begins, 0, phase)))

    def _addresses(self, m: Module, slots: Slots) -> None:
        """Addresses of what is read and stored, and whether anything is stored."""
        for k, column in enumerate(self._control.endpoints.reads):
            address = slots.address(column.base)[: self._bits]
            read = delayed(m, address, ADDRESS - DISTRIBUTION + column.skew)
            chosen = Mux(self.busy, read, self.value("idle_address"))
            m.d.comb += getattr(self, f"read_{k}").eq(chosen)
        for k, store in enumerate(self._control.endpoints.stores):
            delay = self._timing.store_delay(store.hops, store.skew) - DISTRIBUTION
            address = self._store_address(m, slots, store)
            m.d.comb += getattr(self, f"write_{k}").eq(delayed(m, address, delay))
            inside = slots.valid & slots.rom.read((store.base >= 0).astype(int))
            inside = inside & slots.within(np.full(self._loop.rows, store.blocks))
            m.d.comb += getattr(self, f"store_{k}").eq(delayed(m, inside, delay))

    def _store_address(self, m: Module, slots: Slots, store: StoreColumn) -> Value:
        """Where what is read in a slot will be stored."""
        rows = self._loop.rows
        if self._loop.order is Order.FLIT and store.pitch == rows:
            assert (store.base == np.arange(rows)).all(), "a pitch of all rows takes them in order"
            # Bases and pitches make a plain counter.
            counter = Signal(self._bits)
            m.d.sync += counter.eq(Mux(slots.valid, counter + 1, 0))
            return counter
        return slots.address(store.base)[: self._bits]


def _has_gaps(roots: int | None) -> TypeGuard[int]:
    """Whether there are roots to be chosen, and numbers of as many bits that are none."""
    return bool(roots and roots & (roots - 1))
