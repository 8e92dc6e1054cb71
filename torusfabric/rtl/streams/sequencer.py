"""The sequencer of a fabric with streams: a run may begin in the last cycle of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...program.timing import DISTRIBUTION, Timing
from ..control import Control
from ..run_choices import RunChoices
from ..sequencer import Sequencer

__all__ = ["SOON", "StreamSequencer"]

#: Cycles before the last one of a run in which nodes have to be told of its end, to unload the
#: first word as soon as the last has been stored: those on the way to them, and two in the unloader
#: of which one follows the run.
SOON = DISTRIBUTION + 1

#: What it has besides.
MEMBERS: Mapping[str, Member] = {"over": In(1), "idle": Out(1), "run_ends": Out(1)}


class StreamSequencer(Sequencer):
    """Accepts a start in the last cycle of a run, too.

    Then `busy` is low, and `done` is high, for the one cycle in which `cycles` are those of the run
    that has ended.

    Parameters
    ----------
    timings : sequence of Timing
        Of each mode.
    control : Control
    choices : RunChoices
    address_bits : int
        Bits of an address.

    Members
    -------
    over : In(1)
        High for a cycle when a run has ended in which nodes do nothing.
    idle : Out(1)
        Whether a start is accepted: no run is under way, or it is the last cycle of one.
    run_ends : Out(1)
        High for a cycle when such a run has ended, and `SOON` cycles before the last of another.
    """

    def __init__(
        self,
        timings: Sequence[Timing],
        control: Control,
        choices: RunChoices,
        *,
        address_bits: int,
    ) -> None:
        super().__init__(
            timings, control, choices, address_bits=address_bits, members=dict(MEMBERS)
        )
        self.idle = Signal(init=1)
        self._begins = Signal(name="begins")

    def _free(self) -> Value:
        """Whether a start is accepted."""
        return self.idle

    def _end(self, m: Module, last: Signal, stages: Value) -> None:
        """Find out the last cycle of a run, and those before in which it is known."""
        super()._end(m, last, stages)
        m.d.comb += self.run_ends.eq(self._ended(stages, SOON) | self.value("over"))
        with m.If(self._begins):
            m.d.sync += self.idle.eq(0)
        with m.Elif(self._ended(stages, 1)):
            m.d.sync += self.idle.eq(1)

    def _show_run(self, m: Module, begin: Value, last: Value) -> None:
        """Show whether a run is under way, and its cycles."""
        follows = Signal(name="follows")
        m.d.comb += self._begins.eq(begin)
        m.d.sync += follows.eq(begin & self.busy)
        with m.If(follows):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), self._count.eq(1)]
        with m.Else():
            # A run that follows at once is shown a cycle later.
            super()._show_run(m, begin & ~self.busy, last)
