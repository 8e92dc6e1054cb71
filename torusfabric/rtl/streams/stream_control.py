"""The control of streams: starts a run as soon as every node is ready for it."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib.wiring import In, Out

from ..modules import Leaf
from ..run_choices import ERROR_BITS, RunError
from .loader import BAD_DESTINATION, BAD_LENGTH
from .sections import Sections

__all__ = ["StreamControl"]


class StreamControl(Leaf):
    """Starts runs, and drops messages that are none.

    Parameters
    ----------
    round_trip : int
        Cycles from the start of a run until nodes have said whether they are ready for the next.
    sections : Sections
        Of memories.
    length_bits, last_bits : int
        Bits of the length of a run, and of the number of the last word of a packet, where they are
        found out from packets; else 0.
    commanded, barrier : bool
        Whether runs need commands, and whether some of them are barriers.

    Members
    -------
    ready : In(1)
        Whether every node is.
    bad : In(2)
        What is wrong with any message.
    good : In(1)
        Whether that is nothing.
    last : In
        The number of the last word of their packets.
    busy : In(1)
        Whether a run is under way.
    idle, ending : In(1)
        Whether another may begin: also in the last cycle of one, and the cycle before that.
    may_begin : In(1)
        Whether a run may begin; with commands.
    wanted : In
        The length that the command of the next run says, 0 for any.
    barrier : In(1)
        Whether that is a barrier, which ends as soon as it begins; if there are any.
    start : Out(1)
    length : Out
        Of the run that is started.
    clear : Out(1)
        The reset, for nodes.
    run_begins : Out(1)
        High for a cycle when a run begins.
    over : Out(1)
        High for a cycle when a run has ended in which nodes do nothing: messages are dropped, or it
        is a barrier.
    run_over : Out(1)
        High for a cycle when any run has ended; with commands.
    run_empty : Out
        Of the last run in each section, whether it brings nothing.
    run_last : Out
        The number of the last word of its packets.
    error : Out
        Why the last run was not carried out, a `RunError`.
    """

    def __init__(
        self,
        round_trip: int,
        *,
        sections: Sections,
        length_bits: int = 0,
        last_bits: int = 0,
        commanded: bool = False,
        barrier: bool = False,
    ) -> None:
        self._round_trip, self._bits, self._sections = round_trip, last_bits, sections
        self._commanded, self._barrier = commanded, barrier
        super().__init__(
            {
                "ready": In(1),
                "bad": In(2),
                "good": In(1),
                "last": In(last_bits),
                "busy": In(1),
                "idle": In(1),
                "ending": In(1),
                "may_begin": In(int(commanded)),
                "wanted": In(length_bits if commanded else 0),
                "barrier": In(int(barrier)),
                "start": Out(1),
                "length": Out(length_bits),
                "clear": Out(1),
                "run_begins": Out(1),
                "over": Out(1),
                "run_over": Out(int(commanded)),
                "run_empty": Out(sections.count),
                "run_last": Out(sections.count * last_bits),
                "error": Out(ERROR_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the decision, and what nodes are told of runs."""
        m = Module()
        # Nodes are reset a cycle later, and what they say comes as late as after a run.
        bits = range(self._round_trip + 1)
        wait = Signal(bits, name="left_to_wait", init=self._round_trip)
        # Whether a run may begin but for what nodes and commands say, known a cycle before.
        is_open, section = Signal(name="is_open"), Signal(self._sections.bits, name="section")
        other, barrier = self._other_length(), self.value("barrier") if self._barrier else Const(0)
        told = self.value("bad")
        lengths, destinations = told[BAD_LENGTH] | other, told[BAD_DESTINATION]
        allowed = self.value("may_begin") if self._commanded else Const(1)
        may, fine, go = Signal(name="may"), Signal(name="fine"), Signal(name="go")
        m.d.comb += [
            may.eq(self.value("ready") & is_open & allowed),
            fine.eq(self.value("good") & ~other & ~barrier),
            self.start.eq(may & fine),
            # What is over at once waits until a run that is under way has ended.
            go.eq(may & (fine | ~self.value("busy"))),
            self.run_begins.eq(go),
            self.clear.eq(ResetSignal("sync", allow_reset_less=True)),
        ]
        # Nodes are told what has become of the run before they are told of its end.
        drops = Signal(name="drops")
        m.d.sync += [drops.eq(go & ~fine), self.over.eq(drops)]
        if self._commanded:
            was_busy = Signal(name="was_busy")
            m.d.sync += was_busy.eq(self.value("busy"))
            m.d.comb += self.run_over.eq((was_busy & ~self.value("busy")) | self.over)
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        idle_next = (self.value("idle") | self.value("ending")) & ~go
        m.d.sync += is_open.eq(idle_next & (wait <= 1))
        with m.If(go):
            wrong = Mux(destinations, RunError.DESTINATION, RunError.PACKETS)
            m.d.sync += [
                wait.eq(self._round_trip),
                section.eq(self._sections.following(section)),
                self.run_empty.bit_select(section, 1).eq(lengths | destinations),
                self.error.eq(Mux(lengths | destinations, wrong, RunError.NONE)),
            ]
            if self._bits:
                m.d.sync += self.run_last.word_select(section, self._bits).eq(self.value("last"))
        if self._bits:
            m.d.comb += self.length.eq(self.value("last") + Const(1))
        return m

    def _other_length(self) -> Value:
        """Whether the length is another than the command says."""
        if not (self._commanded and self._bits):
            return Const(0, 1)
        wanted = self.value("wanted")
        return (wanted != 0) & (wanted != self.length)
