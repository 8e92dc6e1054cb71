"""The sequencer: the one controller that steps a whole fabric through its program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program.fields import Loop, Order
from ..program.timing import DISTRIBUTION, Timing
from ..topology import IntArray
from .memories import Columns, address_width, choose, look_up
from .modules import delayed, pulsed
from .netlist import Leaf
from .place import Column, Delays, Loops, Shown
from .placement import Placement
from .run_choices import ERROR_BITS, RunChoices
from .run_length import hold_length
from .slots import Slot, open_slot

__all__ = ["FOLLOWED", "Outputs", "Sequencer", "add_end", "window"]

#: The members for runs that may begin in the last cycle of others.
FOLLOWED = {"over": In(1), "idle": Out(1), "ending": Out(1), "run_ends": Out(1)}


def add_end(
    m: Module, leaf: Leaf, begin: Value, last: Signal, ended: Callable[[int], Value], soon: int
) -> None:
    """Add what says when a run ends, given what is high so many cycles before its last one.

    It is not before the last slot, of which nobody knows that it is the last.
    """
    m.d.comb += last.eq(ended(0))
    if soon:
        m.d.comb += leaf.run_ends.eq(ended(soon) | leaf.value("over"))
        m.d.sync += [
            leaf.ending.eq(ended(2)),
            leaf.idle.eq((leaf.idle | leaf.ending) & ~begin),
        ]


def window(m: Module, name: str, opens: Value, closes: Value, line: list[Value], most: int) -> None:
    """Add strobes to a line, one cycle later each, up to so many; none is left once it closes."""
    while len(line) < most:
        later = Signal(name=f"{name}_d{len(line) + 1}")
        m.d.sync += later.eq(Mux(closes, 0, line[-1]) if line else opens)
        line.append(later)


class Sequencer(Leaf):
    """Steps through the rows and flits of a program, and counts the cycles.

    A row and a flit are presented in each *slot*, one a cycle; a ROM with the columns of the
    program is read ahead, so that its first row is there when a run starts. What nodes are given
    takes `DISTRIBUTION` cycles to them, and so leaves here that much before the cycle that `Timing`
    gives for it.

    Parameters
    ----------
    timings : sequence of Timing
        Of each form.
    soon : int
        Cycles before the last one of a run in which its end is said.

    Members
    -------
    start : In(1)
        Starts a run, unless one is under way.
    mode, length, root, operation : In
        What is sampled with the start, if there is a choice; see `RunChoices`.
    idle_address : In
        What `read_k` is while no run is under way; if there are several forms, a cycle later.
    busy, done : Out(1)
        Busy from the edge after the start until done; done stays until the next start.
    cycles : Out(32)
        Clock edges from the begin of the run to done; counts while busy.
    error : Out(4)
        Why the last start was not carried out, a `RunError`; if anything can be chosen.
    accepted : Out(1)
        High in the cycle in which a start is accepted; if roots can be chosen.
    operator_code : Out
        The control bits of the operator of a run; if operators can be chosen.
    round : Out
        The row under way, from 0 in each form; if lengths can be chosen.
    run_form : Out
        The form of the run under way, or of the last; if there are several.
    skip : Out
        From the address of the last flit of a block to that of the first of the next, if blocks of
        any length follow one another.
    select : Out
        The select bits that are equal at all nodes, if any.
    row, setting_row : Out
        The row, for the ROMs of endpoints and routers; if any have ROMs.
    read_k : Out
        Addresses of readers.
    write_k, store_k, ends_k : Out
        Where, and whether, to store what arrives, and whether that is the last word of its block.
    over : In(1)
        High for a cycle when a run has ended in which nodes do nothing. A run may begin in the last
        cycle of another. In that cycle `busy` is low, and `done` is high; `cycles` are those of the
        run that has ended.
    idle : Out(1)
        Whether a start is accepted: no run is under way, or it is the last cycle of one.
    ending : Out(1)
        High in the cycle before the last one of a run.
    run_ends : Out(1)
        High for a cycle when such a run has ended, and `soon` cycles before the last of another.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.rtl.placement import place
    >>> from torusfabric.rtl.run_choices import RunChoices
    >>> program = tf.compile(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"))
    >>> choices = RunChoices.of(program)
    >>> sequencer = Sequencer([program.timing], place(program), choices, address_bits=4, soon=3)
    >>> len(sequencer.read_0), len(sequencer.cycles)
    (4, 32)
    """

    def __init__(
        self,
        timings: Sequence[Timing],
        placement: Placement,
        choices: RunChoices,
        *,
        address_bits: int,
        soon: int,
    ) -> None:
        self._timings, self._placement = tuple(timings), placement
        self._loops = Loops([timing.loop for timing in timings])
        self._bits, self._choices, self._soon = address_bits, choices, soon
        endpoints, lengths, operators = placement.endpoints, choices.lengths, choices.operators
        most = max(loop.rows for loop in self._loops.loops)
        optional = {
            "skip": endpoints.skip_bits,
            "select": len(placement.selects),
            "error": ERROR_BITS if choices.inputs else 0,
            "accepted": 1 if choices.nodes else 0,
            "operator_code": operators.bits if operators else 0,
            "round": address_width(most) if lengths else 0,
            "run_form": address_width(len(self._loops.loops)) if self._loops.several else 0,
        }
        super().__init__(
            {
                "start": In(1),
                "idle_address": In(address_bits),
                "busy": Out(1),
                "done": Out(1),
                "cycles": Out(32),
            }
            | {name: In(bits) for name, bits in choices.inputs.items()}
            | {name: Out(bits) for name, bits in optional.items()}
            | {
                name: Out(address_bits if column.shown is Shown.ADDRESS else column.bits)
                for name, column in placement.columns.items()
            }
            | FOLLOWED
        )
        self.idle = Signal(init=1, name="idle")

    def elaborate(self, platform: object) -> Module:
        """Build the pipeline of a slot.

        The counters are a cycle ahead of their slot. From then on everything is delayed to the
        cycle that `Timing` gives.
        """
        m = Module()
        last = Signal(name="last")
        most = max(timing.cycles for timing in self._timings)
        begin = self._choices.add_begin(m, self, last, soon=self._soon, most=most)
        (setup,) = {timing.run_setup for timing in self._timings}
        slot, form = self.slot(m, begin, pulsed(m, begin, setup, name="goes"))
        stages = self._stages(m, last, slot.goes_on)
        outputs = Outputs(m, self._loops, form, slot, stages, self.busy, self._bits)
        add_end(m, self, begin, last, partial(self._ended, outputs), self._soon)
        for k, column in enumerate(self._placement.selects):
            m.d.comb += self.select[k].eq(outputs.leaving(column, f"select_{k}"))
        for name, column in self._placement.columns.items():
            # At rest, readers pass on what the host asks for.
            idle = self.value("idle_address") if name.startswith("read_") else None
            m.d.comb += getattr(self, name).eq(outputs.leaving(column, name, idle))
        slot.rom.build(m, "table", alone=self.alone)
        return m

    def slot(self, m: Module, begin: Value, go: Value) -> tuple[Slot, Value]:
        """What the slot under way is, and the form of the run; `go` is high before the first."""
        loops, lengths = self._loops, self._choices.lengths
        if lengths is None:
            by_flit = loops.first.order is Order.FLIT
            return (_by_flit if by_flit else _by_row)(m, loops.first, go), Const(0, 1)
        form = self._choices.form(self.value) if loops.several else None
        run = hold_length(m, lengths, loops, self.value("length"), form, begin)
        slot = open_slot(m, loops, go, run)
        # Nothing waits for the number of a row, which is shown far away.
        m.d.sync += self.round.eq(slot.row - delayed(m, run.constant(loops.starts), 1))
        if loops.several:
            m.d.comb += self.run_form.eq(run.form)
        if "skip" in self.signature.members:
            m.d.comb += self.skip.eq(run.skip)
        return slot, run.form

    def _stages(self, m: Module, last: Value, goes_on: Value) -> Value:
        """Whether a slot follows, is under way, and was so many cycles ago."""
        most = max(timing.drain for timing in self._timings)
        if self._loops.several:
            # What slots make may leave for the nodes while others are under way.
            most = max([most, *(delay - DISTRIBUTION for delay in self._strobe_delays)])
        stages = Signal(most + 1, name="stages")
        m.d.sync += stages.eq(Cat(goes_on, stages))
        if self._loops.several:
            # Nothing stays in stages beyond the last one of the form.
            with m.If(last):
                m.d.sync += stages.eq(0)
        return Cat(goes_on, stages)

    @property
    def _strobe_delays(self) -> Iterator[int]:
        """Of all strobes, by how many cycles they are later."""
        for column in self._placement.columns.values():
            if column.shown in (Shown.STROBE, Shown.WINDOW):
                yield from (delay for delay in column.delays if delay is not None)

    def _ended(self, outputs: Outputs, early: int) -> Value:
        """High so many cycles before the last one of a run: its last slot leaves the last stage."""
        ages, stages = [t.drain - min(early, t.drain) for t in self._timings], outputs.stages
        ended = {age: stages[age + 1] & ~stages[age] for age in ages}
        return choose([ended[age] for age in ages], outputs.form)


def _counter(name: str, count: int) -> Signal:
    """A register that counts up to so many."""
    return Signal(range(max(count, 2)), name=name)


def _by_flit(m: Module, loop: Loop, go: Value) -> Slot:
    """Count all rows for the first flit of messages of a fixed length, then for the second, .."""
    row, flit = _counter("row", loop.rows), _counter("flit", loop.flits)
    running = Signal(name="running")
    goes_on, end_of_rows, end = go | running, row == loop.rows - 1, flit == loop.flits - 1
    with m.If(goes_on):
        m.d.sync += [row.eq(Mux(end_of_rows, 0, row + 1)), running.eq(~(end_of_rows & end))]
    # Unless it is the only row, the first, at which `go` comes late, is not the last.
    with m.If((running if loop.rows > 1 else goes_on) & end_of_rows):
        m.d.sync += flit.eq(Mux(end, 0, flit + 1))
    word, always = delayed(m, flit, 1), Const(1)
    return Slot(row, goes_on, Columns(row), word, always, always, Const(0), [row, running, flit])


def _by_row(m: Module, loop: Loop, go: Value) -> Slot:
    """Count the cycles of each row, with messages of a fixed length."""
    duration, words = loop.duration(loop.flits), loop.blocks * loop.flits
    row, cycle = _counter("row", loop.rows), _counter("cycle", int(duration.max()))
    running, rom, last = Signal(name="running"), Columns(row), (duration - 1).tolist()
    goes_on, end_of_rows = go | running, row == loop.rows - 1
    end_of_row = cycle == (look_up(last, row) if len({*last}) > 1 else Const(last[0]))
    with m.If(goes_on):
        m.d.sync += [cycle.eq(cycle + 1), running.eq(~(end_of_row & end_of_rows))]
        with m.If(end_of_row):
            m.d.sync += [cycle.eq(0), row.eq(Mux(end_of_rows, 0, row + 1))]
    word = delayed(m, cycle, 1)
    streams = Const(1) if (words >= duration).all() else word < rom.read(words)
    return Slot(row, goes_on, rom, word, streams, word == 0, Const(0), [row, running, cycle])


@dataclass(frozen=True, eq=False)
class Outputs:
    """What columns show, as late as it has to leave for the nodes.

    Parameters
    ----------
    form : Value
        That of the run.
    stages : Value
        Whether a slot follows, is under way, and was so many cycles ago.
    bits : int
        Of an address.
    windows : dict of bytes to (list of Value)
        Of each window so far, its strobes one cycle later, two, ..
    """

    m: Module
    loops: Loops
    form: Value
    slot: Slot
    stages: Value
    busy: Value
    bits: int
    windows: dict[bytes, list[Value]] = field(default_factory=dict)

    def leaving(self, column: Column, name: str, idle: Value | None = None) -> Value:
        """What a column shows, as late as it has to leave; `idle`, if given, while at rest."""
        if column.shown is Shown.WINDOW:
            return self._of_window(column)
        late = [None if delay is None else delay - DISTRIBUTION for delay in column.delays]
        # Of several forms, the last register comes behind the choice: nodes are far away.
        least = min((delay for delay in late if delay is not None), default=0)
        held = int(self.loops.several and least > 0)
        wanted = [None if delay is None else delay - held for delay in late]
        value = self._later(self._shown(column), wanted, name, strobe=column.shown is Shown.STROBE)
        if idle is not None:
            value = Mux(self.busy, value, idle)
        return delayed(self.m, value, held, f"{name}_next")

    def _shown(self, column: Column) -> Value:
        """What a column shows in a slot."""
        if column.shown is Shown.VALUE:
            return self._value(column.values)
        if column.shown is Shown.STROBE:
            return self._strobe(column.values)
        if column.shown is Shown.END:
            return self.slot.ends_block
        return self._address(column)

    def _value(self, values: IntArray) -> Value:
        """A value of each row; some that follow from its number need no ROM."""
        others = values[1:]
        if len(others) and (values == np.arange(len(values))).all():
            return delayed(self.m, self.slot.row, 1, "row")
        if len(others) and values.max() <= 1 and (others != values[0]).all():
            return self._first if values[0] else ~self._first
        return self.slot.rom.read(values)

    @cached_property
    def _first(self) -> Value:
        """Whether the row is the first."""
        return delayed(self.m, self.slot.row == 0, 1, "first")

    def _strobe(self, values: IntArray) -> Value:
        """High while words of some rows are under way."""
        return self.stages[1] & self.slot.streams & self.slot.rom.read(values)

    def _address(self, column: Column) -> Value:
        """First addresses of rows, plus the word."""
        counts = [
            pitch == loop.rows
            and loop.order is Order.FLIT
            and (column.values[span] == np.arange(loop.rows)).all()
            for pitch, loop, span in zip(
                column.pitches, self.loops.loops, self.loops.spans, strict=True
            )
        ]
        address: Value = Const(0)
        if any(pitch is not None and not counting
               for pitch, counting in zip(column.pitches, counts, strict=True)):  # fmt: skip
            address = self.slot.rom.address(column.values, self.slot.word)[: self.bits]
            if not any(counts):
                return address
        # Bases and pitches that take turns make a plain counter.
        plain = Signal(self.bits, name="counter")
        self.m.d.sync += plain.eq(Mux(self.stages[1], plain + 1, 0))
        return choose([plain if counting else address for counting in counts], self.form)

    def _later(
        self, value: Value, delays: Sequence[int | None], name: str, *, strobe: bool
    ) -> Value:
        """A value later by as many cycles as the form says; None where that does not matter.

        A strobe shows nothing of a run before, which may have been earlier.
        """
        known = next((delay for delay in delays if delay is not None), 0)
        wanted = [known if delay is None else delay for delay in delays]
        taps, at = {}, 0
        for delay in sorted(set(wanted)):
            value, at = delayed(self.m, value, delay - at, name), delay
            taps[delay] = value
            if strobe and delay > min(wanted):
                taps[delay] = value & self.stages[1 + delay]
        return choose([taps[delay] for delay in wanted], self.form)

    def _of_window(self, column: Column) -> Value:
        """A strobe of a window.

        A round ends with the write of its last flit: nothing of it shows in the next. Nor does
        anything of a run in one of another form, which may store later.
        """
        (delay,) = {delay - DISTRIBUTION for delay in column.delays if delay is not None}
        key = column.values.tobytes()
        line = self.windows.setdefault(key, [])
        name, strobe = f"window_{[*self.windows].index(key)}", self._strobe(column.values)
        begins = self.slot.begins & self.slot.rom.read(self._begins(column.delays))
        window(self.m, name, strobe, begins, line, delay)
        late = line[delay - 1]
        return late & self.stages[1 + delay] if self.loops.several else late

    def _begins(self, delays: Delays) -> IntArray:
        """Which rows begin a round, in forms in which that matters."""
        begins = []
        for loop, delay in zip(self.loops.loops, delays, strict=True):
            # Words of the last rows arrive while the first are shown again, unless rounds pause.
            first = np.diff(loop.rounds, prepend=-1) * (loop.order is Order.ROW and not loop.rests)
            begins.append(np.ones(loop.rows, int) if delay is None else first)
        return self.loops.joined(begins)
