"""The sequencer of a fabric with streams: a run may begin in the last cycle of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...program.timing import DISTRIBUTION, Timing
from ..placement import Placement
from ..registers import pulsed
from ..run_choices import RunChoices
from ..sequencer import Sequencer

__all__ = ["SOON", "StreamSequencer"]

#: Cycles before the last one of a run in which nodes have to be told of its end, to unload the
#: first word as soon as the last has been stored: those on the way to them, and two in the unloader
#: of which one follows the run.
SOON = DISTRIBUTION + 1

#: What it has besides.
MEMBERS: Mapping[str, Member] = {
    "over": In(1), "idle": Out(1), "ending": Out(1), "run_ends": Out(1)
}  # fmt: skip


class StreamSequencer(Sequencer):
    """Accepts a start in the last cycle of a run, too.

    Then `busy` is low, and `done` is high, for the one cycle in which `cycles` are those of the run
    that has ended: `busy` rises a cycle after a run has begun.

    Parameters
    ----------
    timings : sequence of Timing
        Of each mode.
    placement : Placement
    choices : RunChoices
    address_bits : int
        Bits of an address.

    Members
    -------
    over : In(1)
        High for a cycle when a run has ended in which nodes do nothing.
    idle : Out(1)
        Whether a start is accepted: no run is under way, or it is the last cycle of one.
    ending : Out(1)
        High in the cycle before the last one of a run.
    run_ends : Out(1)
        High for a cycle when such a run has ended, and `SOON` cycles before the last of another.
    """

    def __init__(
        self,
        timings: Sequence[Timing],
        placement: Placement,
        choices: RunChoices,
        *,
        address_bits: int,
    ) -> None:
        super().__init__(
            timings, placement, choices, address_bits=address_bits, members=dict(MEMBERS)
        )
        self.idle = Signal(init=1, name="idle")
        self._begins = Signal(name="begins")

    def _free(self) -> Value:
        """Whether a start is accepted."""
        return self.idle

    def _end(self, m: Module, last: Signal, stages: Value) -> None:
        """Find out the last cycle of a run, and those before in which it is known."""
        super()._end(m, last, stages)
        m.d.comb += self.run_ends.eq(self._ended(stages, SOON) | self.value("over"))
        m.d.sync += [
            self.ending.eq(self._ended(stages, 2)),
            self.idle.eq((self.idle | self.ending) & ~self._begins),
        ]

    def _show_run(self, m: Module, begin: Value, last: Value) -> None:
        """Show whether a run is under way, and its cycles, from a cycle after its begin.

        Until then those of the run before are shown, which may have ended in the cycle of that.
        """
        m.d.comb += self._begins.eq(begin)
        self._count_cycles(m, pulsed(m, begin, 1, name="begun"), last, counted=1)
