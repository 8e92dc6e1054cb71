"""The control of streams: starts a run as soon as every node is ready for it."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..leaf import Leaf
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
    length_bits : int
        Bits of the length of a run, where that is found out from packets; else 0.
    last_bits : int
        Bits of the number of the last word of a packet.
    commanded, barrier : bool
        Whether runs need commands, and whether some of them are barriers.

    Members
    -------
    ready : In(1)
        Whether every node is.
    bad : In(2)
        What is wrong with any message.
    last : In
        The number of the last word of their packets.
    busy, idle : In(1)
        Whether a run is under way, and whether another may begin: also in the last cycle of one.
    may_begin : In(1)
        Whether a run may begin; with commands.
    wanted : In
        The length that the command of the next run says, 0 for any.
    barrier : In(1)
        Whether that is a barrier, which ends as soon as it begins; if there are any.
    start : Out(1)
    length : Out
        Of the run that is started.
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
        self._round_trip, self._bits = round_trip, last_bits if length_bits else 0
        self._commanded, self._barrier, self._sections = commanded, barrier, sections
        of_command = {"may_begin": In(1), "wanted": In(length_bits), "run_over": Out(1)}
        of_command = of_command if commanded else {}
        of_length = {"last": In(last_bits), "length": Out(length_bits),
                     "run_last": Out(sections.count * last_bits)}  # fmt: skip
        super().__init__(
            {
                "ready": In(1),
                "bad": In(2),
                "busy": In(1),
                "idle": In(1),
                "start": Out(1),
                "run_begins": Out(1),
                "over": Out(1),
                "run_empty": Out(sections.count),
                "error": Out(ERROR_BITS),
            }
            | (of_length if length_bits else {})
            | {name: member for name, member in of_command.items() if member.shape}
            | ({"barrier": In(1)} if barrier else {})
        )

    def elaborate(self, platform: object) -> Module:
        """Build the decision, and what nodes are told of runs."""
        m = Module()
        wait = Signal(range(self._round_trip + 1), name="left_to_wait")
        section = Signal(self._sections.bits, name="section")
        bad = self._bad()
        may, fine, go = Signal(), Signal(), Signal()
        m.d.comb += [
            may.eq(self.value("ready") & (wait == 0) & self._allowed()),
            fine.eq((bad == 0) & ~(self.value("barrier") if self._barrier else Const(0))),
            self.start.eq(may & fine),
            # What is over at once waits until a run that is under way has ended.
            go.eq(may & self.value("idle") & (fine | ~self.value("busy"))),
            self.run_begins.eq(go),
        ]
        m.d.sync += self.over.eq(go & ~fine)
        if self._commanded:
            was_busy, late = Signal(name="was_busy"), Signal(name="was_over")
            m.d.sync += [was_busy.eq(self.value("busy")), late.eq(self.over)]
            m.d.comb += self.run_over.eq((was_busy & ~self.value("busy")) | late)
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.If(go):
            wrong = Mux(bad[BAD_DESTINATION], RunError.DESTINATION, RunError.PACKETS)
            m.d.sync += [
                wait.eq(self._round_trip),
                section.eq(self._sections.following(section)),
                self.run_empty.bit_select(section, 1).eq(bad != 0),
                self.error.eq(Mux(bad == 0, RunError.NONE, wrong)),
            ]
            if self._bits:
                m.d.sync += self.run_last.word_select(section, self._bits).eq(self.value("last"))
        if self._bits:
            m.d.comb += self.length.eq(self.value("last") + Const(1))
        return m

    def _allowed(self) -> Value:
        """Whether a command lets a run begin."""
        return self.value("may_begin") if self._commanded else Const(1)

    def _bad(self) -> Value:
        """What is wrong with any message; a length may be another than its command says."""
        bad = self.value("bad")
        if not (self._commanded and self._bits):
            return bad
        wanted = self.value("wanted")
        other = (wanted != 0) & (wanted != self.length)
        return Cat(bad[BAD_LENGTH] | other, bad[BAD_DESTINATION])
