"""The sequencer of a fabric that repeats its collective by itself."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.wiring import Member, Out

from ..program.periods import Periods
from ..program.timing import ADDRESS, DISTRIBUTION, Timing
from .control import Control
from .delays import pulsed
from .run_choices import RunChoices
from .sequencer import Sequencer
from .slots import FixedSlots, Slots

__all__ = ["PeriodicSequencer"]

#: What it has besides.
MEMBERS: Mapping[str, Member] = {
    "period": Out(32),
    "awake": Out(1),
    "swap": Out(1),
    "read_half": Out(1),
    "store_half": Out(1),
}


class PeriodicSequencer(Sequencer):
    """Begins again, as long as `start` stays high, with the slot after the last of a period.

    Reads and stores have halves of the memories of their own, for the first reads of a period come
    before the last stores of the one before: each half changes as much later than the slots as what
    it belongs to.

    Parameters
    ----------
    timing : Timing
    control : Control
    choices : RunChoices
    address_bits : int
        Bits of an address.
    periods : Periods
    answer : int
        Cycles from a read of the host, as it leaves the host port, to its word there.

    Members
    -------
    period : Out(32)
        How many periods are complete, when the word that the host reads is of the last of them.
    awake : Out(1)
        What nodes take for `busy`: low before each period if they begin programs of their own anew.
    swap : Out(1)
        High in the cycle before the first read of a period.
    read_half, store_half : Out(1)
        In which half nodes read what they forward, and store what arrives; the host reads the
        other.
    """

    def __init__(
        self,
        timing: Timing,
        control: Control,
        choices: RunChoices,
        *,
        address_bits: int,
        periods: Periods,
        answer: int,
    ) -> None:
        super().__init__(
            [timing], control, choices, address_bits=address_bits, members=dict(MEMBERS)
        )
        self._periods = periods
        self.store_half = Signal(init=1, name="store_half")
        # Of cycles from the first slot: nothing is stored any more, and the host sees that.
        self._settled = max(periods.last_store + 1 - DISTRIBUTION, periods.slots)
        self._shown = self._settled + answer
        self._ends = Signal(name="ends")
        assert self._shown >= periods.cycles, "a period is counted after the next one may begin"

    @property
    def shown(self) -> int:
        """Cycles from the first slot of a period to its being counted."""
        return self._shown

    def elaborate(self, platform: object) -> Module:
        """Build what begins periods, and the pipeline of a slot."""
        m = Module()
        last = Signal(name="last")
        begin = self._run(m, last)
        go = Signal(name="go")
        under_way, ends_slots = self._repeat(m, self._go(m, begin), go)
        slots = FixedSlots(m, self._loops.first, go)
        slots.valid = pulsed(m, go | slots.running, 1)
        m.d.comb += self._ends.eq(pulsed(m, ends_slots, 1))
        settled = pulsed(m, ends_slots, self._settled - self._periods.slots + 1)
        shown = pulsed(m, settled, self._shown - self._settled)
        self._halves(m, go, settled)
        with m.If(shown):
            m.d.sync += self.period.eq(self.period + 1)
        # The last cycle under way comes two before the first slot of a period that does not follow.
        late = self._shown + 1 - self._periods.cycles
        before = pulsed(m, under_way, late - 1)
        m.d.comb += last.eq(pulsed(m, before, 1) & ~before)
        m.d.comb += self.awake.eq(self.busy & ~go if self._periods.rests else self.busy)
        self._show(m, slots)
        return m

    @property
    def _count_bits(self) -> int:
        """All bits: periods follow one another without an end."""
        return len(self.cycles)

    def _repeat(self, m: Module, first: Value, go: Signal) -> tuple[Value, Value]:
        """Count the cycles of a period, and begin the next one.

        Returns
        -------
        under_way : Value
            Whether a period is, from the cycle before its first slot on.
        ends_slots : Value
            High in the cycle before its last slot.
        """
        cycles, slots = self._periods.cycles, self._periods.slots
        count = Signal(range(max(cycles, 2)), name="count")
        counts, again = Signal(name="counts"), Signal(name="again")
        under_way = Signal(name="under_way")
        ends = under_way & (count == cycles - 1)
        m.d.comb += [go.eq(first | again), under_way.eq(go | counts)]
        m.d.sync += [again.eq(ends & self.value("start")), counts.eq(under_way & ~ends)]
        with m.If(ends):
            m.d.sync += count.eq(0)
        with m.Elif(under_way):
            m.d.sync += count.eq(count + 1)
        return under_way, under_way & (count == slots - 1)

    def _halves(self, m: Module, go: Value, settled: Value) -> None:
        """Change halves: for reads before the first one, for stores after the last one."""
        m.d.comb += self.swap.eq(pulsed(m, go, 1 + self._periods.first_read - ADDRESS))
        with m.If(self.swap):
            m.d.sync += self.read_half.eq(~self.read_half)
        with m.If(settled):
            m.d.sync += self.store_half.eq(~self.store_half)

    def _continues(self, slots: Slots) -> Value:
        """Whether the slot is one of a period, and not its last."""
        return slots.valid & ~self._ends
