"""The sequencer: the one controller that steps a whole fabric through its program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..program.fields import Order
from ..program.timing import DISTRIBUTION, Timing
from ..topology import IntArray
from .memories import address_width, choose
from .modules import delayed, pulsed
from .netlist import Leaf
from .place import Column, Delays, Loops, Shown
from .placement import Placement
from .run_choices import ERROR_BITS, RunChoices, RunError
from .run_length import RunLength
from .slots import FixedSlots, OpenSlots, Slots

__all__ = ["FOLLOWED", "Sequencer", "add_begin", "add_end", "window"]

#: The members for runs that may begin in the last cycle of others.
FOLLOWED = {"over": In(1), "idle": Out(1), "ending": Out(1), "run_ends": Out(1)}

#: The members for runs that can be aborted.
ABORTED = {"abort": In(1), "aborted": Out(1)}


def add_begin(
    m: Module, leaf: Leaf, choices: RunChoices, last: Value, *, soon: int, most: int,
    refusals: Sequence[tuple[RunError, Value]] = (),
) -> Signal:  # fmt: skip
    """Add what begins runs, and shows whether one is under way, and its cycles.

    The leaf has those members of `Sequencer` that this takes; `last` is high in the last cycle of a
    run, and the longest takes `most`; `refusals` are besides those of choices. What is returned is
    high in the cycle in which a start is accepted.
    """
    members, free = leaf.signature.members, leaf.idle if soon else ~leaf.busy
    error = leaf.error if "error" in members else None
    begin = choices.accepted(m, leaf.value, [*refusals, (RunError.BUSY, ~free)], error)
    if "accepted" in members:
        m.d.comb += leaf.accepted.eq(begin)
    if choices.operators:
        choices.keep_operator(m, leaf.value, begin, leaf.operator_code)
    # Where one run follows another it is shown a cycle later. A longer chain of carries than is
    # needed would limit the clock.
    late, count = int(soon > 0), leaf.cycles[: most.bit_length()]
    with m.If(pulsed(m, begin, late, name="begun")):
        m.d.sync += [leaf.busy.eq(1), leaf.done.eq(0), count.eq(late)]
    with m.Elif(leaf.busy):
        m.d.sync += count.eq(count + 1)
        with m.If(last):
            m.d.sync += [leaf.busy.eq(0), leaf.done.eq(1)]
    return begin


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
        Where a run may begin in the last cycle of another: the cycles before that one in which its
        end is said; else 0.
    abort : bool
        Whether runs can be aborted.

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
        Clock edges from the start pulse to done; counts while busy.
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
        High for a cycle when a run has ended in which nodes do nothing. This and the following are
        there if runs may begin in the last cycle of another. In that cycle `busy` is low, and
        `done` is high; `cycles` are those of the run that has ended.
    idle : Out(1)
        Whether a start is accepted: no run is under way, or it is the last cycle of one.
    ending : Out(1)
        High in the cycle before the last one of a run.
    run_ends : Out(1)
        High for a cycle when such a run has ended, and `soon` cycles before the last of another.

    abort : In(1)
        Ends the run that is under way: no slot follows, and it is done once what is on its way has
        come. This and the next are there if runs can be aborted.
    aborted : Out(1)
        Whether the run under way, or the last one, was.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.rtl.placement import place
    >>> from torusfabric.rtl.run_choices import RunChoices
    >>> program = tf.compile(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"))
    >>> choices = RunChoices.of(program)
    >>> sequencer = Sequencer([program.timing], place(program), choices, address_bits=4)
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
        soon: int = 0,
        abort: bool = False,
    ) -> None:
        self._aborts = abort
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
            | (FOLLOWED if soon else {})
            | (ABORTED if abort else {})
        )
        if soon:
            self.idle = Signal(init=1, name="idle")
        self._run_form: Value = Const(0, 1)

    def elaborate(self, platform: object) -> Module:
        """Build the pipeline of a slot.

        The counters are a cycle ahead of their slot. From then on everything is delayed to the
        cycle that `Timing` gives.
        """
        m = Module()
        last = Signal(name="last")
        most = max(timing.cycles for timing in self._timings)
        begin = add_begin(m, self, self._choices, last, soon=self._soon, most=most)
        go = self._go(m, begin)
        slots = self._slots(m, begin, go)
        stages = self._stages(m, last, go | slots.running)
        add_end(m, self, begin, last, partial(self._ended, stages), self._soon)
        if self._aborts:
            self._abort(m, begin, last, slots)
        slots.valid = stages[1]
        for k, column in enumerate(self._placement.selects):
            shown = self._shown(m, slots, column)
            leaving = self._leaving(m, column, shown, f"select_{k}", stages)
            m.d.comb += self.select[k].eq(leaving)
        windows: dict[bytes, list[Value]] = {}
        for name, column in self._placement.columns.items():
            if column.shown is Shown.WINDOW:
                strobe = self._of_window(m, slots, column, windows, stages)
                m.d.comb += getattr(self, name).eq(strobe)
                continue
            # At rest, readers pass on what the host asks for.
            idle = self.value("idle_address") if name.startswith("read_") else None
            value = self._leaving(m, column, self._shown(m, slots, column), name, stages, idle)
            m.d.comb += getattr(self, name).eq(value)
        slots.rom.build(m, "table", alone=self.alone)
        return m

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

    def _abort(self, m: Module, begin: Value, last: Value, slots: Slots) -> None:
        """Let no slot follow: the run ends as any other, once what is under way has come.

        One that has not come to its first slot has that one.
        """
        stopping = Signal(name="stopping")
        with m.If(self.value("abort") & self.busy & ~last):
            m.d.sync += [stopping.eq(1), self.aborted.eq(1)]
        with m.Elif(last):
            m.d.sync += stopping.eq(0)
        with m.If(begin):
            m.d.sync += self.aborted.eq(0)
        with m.If(stopping):
            slots.stop(m)

    def _ended(self, stages: Value, early: int) -> Value:
        """High so many cycles before the last one of a run: its last slot leaves the last stage."""
        ages = [timing.drain - min(early, timing.drain) for timing in self._timings]
        return self._of_form(ages, [stages[age + 1] & ~stages[age] for age in ages])

    def _of_form(self, keys: Sequence[object], values: Sequence[Value]) -> Value:
        """The value of the form of the run; those with equal keys are the same."""
        if len(set(keys)) == 1:
            return values[0]
        return choose(values, self._run_form)

    def _later(
        self,
        m: Module,
        value: Value,
        delays: Sequence[int | None],
        name: str,
        stages: Value | None = None,
    ) -> Value:
        """A value later by as many cycles as the form says; None where that does not matter.

        With `stages` it is a strobe: it shows nothing of a run before, which may have been earlier.
        """
        known = next((delay for delay in delays if delay is not None), 0)
        wanted = [known if delay is None else delay for delay in delays]
        taps, at = {}, 0
        for delay in sorted(set(wanted)):
            value, at = delayed(m, value, delay - at, name), delay
            taps[delay] = value
            if stages is not None and delay > min(wanted):
                taps[delay] = value & stages[1 + delay]
        return self._of_form(wanted, [taps[delay] for delay in wanted])

    def _go(self, m: Module, begin: Value) -> Value:
        """High in the cycle before the first slot."""
        (wait,) = {timing.wait for timing in self._timings}
        return pulsed(m, begin, wait, name="goes")

    def _slots(self, m: Module, begin: Value, go: Value) -> Slots:
        """What counts the slots."""
        loops = self._loops
        lengths = self._choices.lengths
        if lengths is None:
            return FixedSlots(m, loops.first, go)

        form = self._choices.form(self.value) if loops.several else None
        run = RunLength(m, lengths, loops, self.value("length"), form, begin)
        self._run_form = run.form
        slots = OpenSlots(m, loops, go, run)
        # Nothing waits for the number of a row, which is shown far away.
        m.d.sync += self.round.eq(slots.row - delayed(m, run.constant(loops.starts), 1))
        if loops.several:
            m.d.comb += self.run_form.eq(run.form)
        if "skip" in self.signature.members:
            m.d.comb += self.skip.eq(run.skip)
        return slots

    def _shown(self, m: Module, slots: Slots, column: Column) -> Value:
        """What a column shows in a slot."""
        if column.shown is Shown.VALUE:
            return slots.column(m, column.values)
        if column.shown is Shown.STROBE:
            return slots.valid & slots.streams & slots.rom.read(column.values)
        if column.shown is Shown.END:
            return slots.ends_block
        counts = [
            pitch == loop.rows
            and loop.order is Order.FLIT
            and (column.values[span] == np.arange(loop.rows)).all()
            for pitch, loop, span in zip(
                column.pitches, self._loops.loops, self._loops.spans, strict=True
            )
        ]
        given = [
            pitch is not None and not counting
            for pitch, counting in zip(column.pitches, counts, strict=True)
        ]
        address = slots.address(column.values)[: self._bits] if any(given) else None
        if not any(counts):
            assert address is not None
            return address
        # Bases and pitches that take turns make a plain counter.
        counter = Signal(self._bits, name="counter")
        m.d.sync += counter.eq(Mux(slots.valid, counter + 1, 0))
        if address is None:
            return counter
        return self._of_form(counts, [counter if counting else address for counting in counts])

    def _leaving(
        self,
        m: Module,
        column: Column,
        value: Value,
        name: str,
        stages: Value,
        idle: Value | None = None,
    ) -> Value:
        """What a column shows, as late as it has to leave for the nodes; while at rest `idle`."""
        late = [None if delay is None else delay - DISTRIBUTION for delay in column.delays]
        # Of several forms, the last register comes behind the choice: nodes are far away.
        least = min((delay for delay in late if delay is not None), default=0)
        held = int(self._loops.several and least > 0)
        wanted = [None if delay is None else delay - held for delay in late]
        strobe = stages if column.shown is Shown.STROBE else None
        value = self._later(m, value, wanted, name, strobe)
        if idle is not None:
            value = Mux(self.busy, value, idle)
        return delayed(m, value, held, f"{name}_next")

    def _of_window(
        self,
        m: Module,
        slots: Slots,
        column: Column,
        lines: dict[bytes, list[Value]],
        stages: Value,
    ) -> Value:
        """A strobe of a window, as late as it has to leave for the nodes.

        A round ends with the write of its last flit: nothing of it shows in the next. Nor does
        anything of a run in one of another form, which may store later. Of each window so far, its
        strobes one cycle later, two, .. are in `lines`.
        """
        (delay,) = {delay for delay in column.delays if delay is not None}
        key = column.values.tobytes()
        line = lines.setdefault(key, [])
        name = f"window_{[*lines].index(key)}"
        strobe = slots.valid & slots.streams & slots.rom.read(column.values)
        begins = slots.begins & slots.rom.read(self._begins(column.delays))
        window(m, name, strobe, begins, line, delay - DISTRIBUTION)
        strobe = line[delay - DISTRIBUTION - 1]
        return strobe & stages[1 + delay - DISTRIBUTION] if self._loops.several else strobe

    def _begins(self, delays: Delays) -> IntArray:
        """Which rows begin a round, in forms in which that matters."""
        begins = []
        for loop, delay in zip(self._loops.loops, delays, strict=True):
            # Words of the last rows arrive while the first are shown again, unless rounds pause.
            first = np.diff(loop.rounds, prepend=-1) * (loop.order is Order.ROW and not loop.rests)
            begins.append(np.ones(loop.rows, int) if delay is None else first)
        return self._loops.joined(begins)
