"""The control of a board: it starts runs together with all others, and agrees on how they ended."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out

from ....rtl.memories import address_width, constant_at
from ....rtl.modules import Leaf, pulsed
from ....rtl.run_choices import ERROR_BITS, RunError
from .link_plan import SILENCE

if TYPE_CHECKING:
    from .link_plan import LinkPlan

__all__ = ["BoardControl", "Verdict"]


class Verdict(enum.IntEnum):
    """What is known of a run."""

    NONE = 0
    GOOD = 1
    BAD = 2
    #: Only in messages: the verdict has not come from the board above.
    MISSING = 3


class BoardControl(Leaf):
    """Starts runs when all boards wait for one, and repeats those of which a link lost something.

    Arrivals go up a tree of boards, to board 0, in the messages between runs; the cycles until the
    start come down. After a run, the state of all links goes the same ways.

    Messages say how things are, and count nothing. Why: a board that is reset forgets all counts,
    and must be in service again as soon as it hears its neighbours.

    Parameters
    ----------
    error : bool
        Whether the sequencer says why it did not carry out a start.
    withdraws : bool
        Whether there is an input that takes back a start; a reset does so, too.

    Members
    -------
    start, mode, length, root, operation : In
        As of the fabric; a run begins when all boards have had a start.
    withdraw : In(1)
        Takes back a start that still waits for other boards; only with `withdraws`.
    board : In
        The number of this board; it does not change.
    run_busy, run_done, run_error : In
        Of the sequencer.
    said, heard, strange, alive, lost : In
        Of the receivers.
    busy, done : Out(1)
        Busy from the edge after the start until done.
    cycles, attempts : Out
        Clock edges from the common start to done, and how often the run was carried out.
    error, failed : Out
        Why the last run was not carried out, or has failed; and a bit for each link port: what
        came by it is not what was sent, or from elsewhere, or a report by it is missing.
    run_start, run_mode, .. : Out
        For the sequencer.
    message, running, begins, checking : Out
        For transmitters.
    frozen, due_K, check_due_K, peers : Out
        For receivers, some for those with a latency of K.
    """

    def __init__(self, plan: LinkPlan, *, error: bool, withdraws: bool = False) -> None:
        self._plan, self._refuses, self._withdraws = plan, error, withdraws
        links = plan.links
        super().__init__(
            {"start": In(1)}
            | {name: In(bits) for name, bits in plan.choices.items()}
            | ({"withdraw": In(1)} if withdraws else {})
            | {"board": In(plan.fields["board"].width), "run_busy": In(1)}
            | {"run_error": In(ERROR_BITS * error), "said": In(links * plan.message_bits)}
            | {name: In(links) for name in ("heard", "strange", "alive", "lost")}
            | {"busy": Out(1), "done": Out(1), "cycles": Out(32), "error": Out(ERROR_BITS)}
            | {"failed": Out(links), "attempts": Out(address_width(plan.retries + 2))}
            | {"run_start": Out(1)}
            | {f"run_{name}": Out(bits) for name, bits in plan.choices.items()}
            | {"message": Out(plan.message_bits - plan.fields["link"].width)}
            | {name: Out(1) for name in ("running", "begins", "checking", "frozen")}
            | {
                f"{name}_{latency}": Out(1)
                for latency in plan.latencies
                for name in ("due", "check_due")
            }
            | {"peers": Out(links * plan.end_bits)}
        )
        # What its parts give each other.
        flag: Callable[[str], Signal] = lambda name: Signal(name=name)
        # The links by which boards below say that they wait.
        self._arrived_by = Signal(links, name="arrived")
        # A start was given; the others have not arrived yet.
        self._waiting = flag("waiting")
        self._arrived, self._differs = flag("all_arrived"), flag("any_differs")
        # In so many cycles the run begins, or is refused as boards were told different things.
        self._count = Signal(plan.fields["count"].width, name="count")
        self._refused = flag("refused")
        self._goes, self._again = flag("goes"), flag("again")
        # The run that was waited for is over without having begun.
        self._dropped = flag("dropped")
        # The start waits, is not counting, and ends: for other boards have failed, or do not come.
        self._failing, self._late = flag("failing"), flag("late")
        # Cycles since the end of a run.
        self._after = Signal(range(plan.agreed + 1), name="after")
        self._ended, self._known = flag("ended"), flag("known")
        self._settled, self._verdict = Signal(2, name="settled"), Signal(2, name="verdict")
        self._ends = flag("ends")
        # Links that have failed; whether one has here or below, and anywhere as far as is known.
        self._broken = Signal(links, name="broken")
        self._unfit, self._halt = flag("unfit"), flag("halt")
        # Links by which neighbours say that they wait, and those of whom one does no more.
        self._waits, self._gone = Signal(links, name="waits"), Signal(links, name="gone")
        # Cycles since the last start.
        self._timer = Signal(plan.timer_bits, name="timer")
        # The link ports to the board above, and to those below; what that one says, if it does now.
        self._above, self._below = Signal(links, name="above"), Signal(links, name="below")
        self._told, self._hears = Signal(plan.fields, name="told"), flag("hears")
        # Words of sums are sent; what links have lost in a run.
        self._summing, self._failed = flag("summing"), Signal(links, name="lost_in_run")
        # Links to boards below that have not said in time how the run was; and that above, if it
        # has not said the verdict, unless it misses that itself.
        self._unsettled, self._unheard = Signal(links, name="unsettled"), flag("unheard")
        self._told_missing = flag("told_missing")

    def elaborate(self, platform: object) -> Module:
        """Build the barrier, what times a run and what is after it, and the agreement."""
        m = Module()
        self._tree(m)
        self._watch(m)
        self._barrier(m)
        self._time(m)
        self._agreement(m)
        self._run(m)
        self._send(m)
        return m

    @property
    def _said(self) -> list[View[StructLayout]]:
        """What comes by each link port."""
        words = self.words("said", self._plan.message_bits)
        return [View(self._plan.fields, word) for word in words]

    def _by_board(self, values: Sequence[int]) -> Value:
        """A constant of this board."""
        return constant_at(values, self.value("board"))

    def _tree(self, m: Module) -> None:
        """Where the boards above and below are, and who should be at each link port."""
        plan, boards = self._plan, self._plan.boards
        link_bits = plan.fields["link"].width
        peers = [
            sum(
                (end.link | end.board << link_bits) << plan.end_bits * k
                for k, end in enumerate(ends)
            )
            for ends in boards.ends
        ]
        above = [0 if link < 0 else 1 << link for link in boards.above]
        below = [sum(1 << link for link in found) for found in boards.below]
        m.d.comb += [
            self.peers.eq(self._by_board(peers)),
            self._above.eq(self._by_board(above)),
            self._below.eq(self._by_board(below)),
        ]
        chosen: Value = Const(0, plan.message_bits)
        for link, word in enumerate(self.words("said", plan.message_bits)):
            chosen = chosen | Mux(self._above[link], word, 0)
        m.d.comb += [
            self._told.eq(chosen),
            self._hears.eq((self._above & self.value("heard")).any()),
        ]

    def _barrier(self, m: Module) -> None:
        """Find out when all boards below have arrived, and when the run begins."""
        plan = self._plan
        root = self._above == 0
        arrived = self._arrived_by
        differing = Signal(plan.links, name="differing")
        # Messages may still be on their way that say who waited for a run that was not carried out.
        recent = Signal(range(plan.patience + 1), name="recent")
        with m.If(self._dropped):
            m.d.sync += recent.eq(plan.patience)
        with m.Elif(recent != 0):
            m.d.sync += recent.eq(recent - 1)
        for link, said in enumerate(self._said):
            with m.If(~self._waiting | (recent != 0)):
                m.d.sync += [arrived[link].eq(0), differing[link].eq(0), self._waits[link].eq(0)]
            with m.Elif(self.value("heard")[link]):
                differs = said["differs"] | self._differs_from(said)
                m.d.sync += [
                    self._waits[link].eq(said["waits"]),
                    arrived[link].eq(said["arrived"]),
                    differing[link].eq(said["arrived"] & differs),
                ]
        m.d.comb += [
            self._arrived.eq(self._waiting & (arrived | ~self._below).all() & ~self._unfit),
            self._differs.eq((differing & self._below).any()),
        ]
        count, idle = self._told.count, self._count == 0
        with m.If(~self._waiting):
            # A run that ends in the cycle in which it is known when it begins: it does not begin.
            m.d.sync += self._count.eq(0)
        with m.Elif(~idle):
            m.d.sync += self._count.eq(self._count - 1)
        with m.Elif(~self._goes & root & self._arrived):
            m.d.sync += [self._count.eq(plan.countdown), self._refused.eq(self._differs)]
        with m.Elif(~self._goes & self._hears & (count > plan.joins) & ~self._broken.any()):
            m.d.sync += [
                self._count.eq(count - plan.heard),
                # The board above may count for a start that this board had before a reset.
                self._refused.eq(self._told.differs | self._differs_from(self._told)),
            ]
        m.d.sync += self._goes.eq(self._waiting & (self._count == 1))
        m.d.comb += self.run_start.eq((self._goes & ~self._refused) | self._again)

    def _differs_from(self, said: View[StructLayout]) -> Value:
        """True if the sender of a message has other choices than this board."""
        names = [*self._plan.choices]
        if not names:
            return Const(0, 1)
        return Cat(said[name] for name in names) != Cat(self._chosen(name) for name in names)

    def _chosen(self, name: str) -> Value:
        """What was chosen with the start."""
        value: Value = getattr(self, f"run_{name}")
        return value

    def _time(self, m: Module) -> None:
        """Say when words of a run are sent, and when they are due; count the cycles after it."""
        plan = self._plan
        busy = self.value("run_busy")
        was_busy, summing = Signal(name="was_busy"), self._summing
        m.d.sync += was_busy.eq(busy)
        m.d.comb += [
            self._ended.eq(was_busy & ~busy),
            self.running.eq(self.run_start | busy),
            summing.eq(self._ended | ((self._after != 0) & (self._after < plan.check_words))),
        ]
        with m.If(self._ended):
            m.d.sync += self._after.eq(1)
        with m.Elif(self._after == plan.agreed):
            m.d.sync += self._after.eq(0)
        with m.Elif(self._after != 0):
            m.d.sync += self._after.eq(self._after + 1)
        m.d.comb += self._ends.eq(self._after == plan.agreed)
        soon = (self._after != 0) & (
            (self._after <= plan.checked) | (self._after >= plan.agreed - plan.settle_time)
        )
        starting = (self._count != 0) | self._goes | self._again
        m.d.comb += self.frozen.eq(starting | self.running | self._ended | soon)
        due, check_due, at = self.running, summing, 0
        for latency in plan.latencies:
            due = pulsed(m, due, latency - 2 - at, name=f"due_{latency}_early")
            check_due = pulsed(m, check_due, latency - 2 - at, name=f"check_due_{latency}_early")
            at = latency - 2
            m.d.comb += [
                getattr(self, f"due_{latency}").eq(due),
                getattr(self, f"check_due_{latency}").eq(check_due),
            ]

    def _agreement(self, m: Module) -> None:
        """Find out whether all links of all boards have lost nothing.

        A board that was reset after a run says nothing about it. The boards beside it notice when
        its report is due, and tell all others that they have, so that these blame none.
        """
        plan = self._plan
        lost, failed, unsettled = self.value("lost"), self._failed, self._unsettled
        with m.If(self._after == plan.checked):
            m.d.sync += [self._known.eq(1), failed.eq(lost)]
        with m.Elif(self.run_start):
            m.d.sync += self._known.eq(0)
        below = Signal(plan.links, name="settled_below")
        bad = Signal(plan.links, name="bad_below")
        for link, said in enumerate(self._said):
            with m.If(~self._known):
                m.d.sync += [below[link].eq(0), bad[link].eq(0)]
            with m.Elif(self.value("heard")[link] & (said["settled"] != Verdict.NONE)):
                m.d.sync += [below[link].eq(1), bad[link].eq(said["settled"] != Verdict.GOOD)]
        good = ~failed.any() & ~unsettled.any() & ~(bad & self._below).any()
        with m.If(self._known & ((below | ~self._below).all() | unsettled.any())):
            m.d.comb += self._settled.eq(Mux(good, Verdict.GOOD, Verdict.BAD))
        told = self._told.verdict
        with m.If(~self._known):
            m.d.sync += unsettled.eq(0)
        with m.Elif(self._after == self._by_board(plan.settles_by)):
            m.d.sync += unsettled.eq(self._below & ~below)
        if plan.levels > 1:  # else no board passes a verdict on
            tells = self._hears & (told == Verdict.MISSING)
            with m.If(~self._known):
                m.d.sync += [self._unheard.eq(0), self._told_missing.eq(0)]
            with m.Else():
                late = self._after == self._by_board(plan.judged_by)
                m.d.sync += [
                    self._unheard.eq(self._unheard | late),
                    self._told_missing.eq(self._told_missing | tells),
                ]
        # A board above that was not in this run still says how an earlier run was.
        believed = self._hears & (
            (told == Verdict.BAD) | ((told == Verdict.GOOD) & (self._settled == Verdict.GOOD))
        )
        with m.If(~self._known):
            m.d.sync += self._verdict.eq(Verdict.NONE)
        with m.Elif(self._verdict == Verdict.NONE):
            with m.If(self._above != 0):
                m.d.sync += self._verdict.eq(Mux(believed, told, Verdict.NONE))
            with m.Elif(self._after == plan.deadline):
                m.d.sync += self._verdict.eq(Mux(self._settled == Verdict.GOOD, *GOOD_OR_BAD))
            with m.Else():
                m.d.sync += self._verdict.eq(self._settled)

    def _run(self, m: Module) -> None:
        """Begin and end runs, and say what became of them."""
        plan, start = self._plan, self.value("start")
        fault, count = Signal(ERROR_BITS, name="fault"), Signal(32, name="count_of_cycles")
        counting = Signal(name="counting")
        m.d.comb += self.cycles.eq(count)
        with m.If(counting):
            m.d.sync += count.eq(count + 1)
        with m.If(self.run_start & ~self._again):
            m.d.sync += [counting.eq(1), count.eq(0), self.attempts.eq(1)]
        m.d.sync += self._again.eq(0)
        tried = Signal(name="tried")
        m.d.sync += tried.eq(self.run_start)
        finish = Signal(name="finish")
        m.d.sync += finish.eq(0)
        with m.If(self._ends):
            with m.If((self._verdict == Verdict.BAD) & (self.attempts <= plan.retries)):
                m.d.sync += [self._again.eq(1), self.attempts.eq(self.attempts + 1)]
            with m.Else():
                m.d.sync += finish.eq(1)
                with m.If(self._verdict != Verdict.GOOD):
                    blamed = (self._verdict == Verdict.NONE) & ~self._told_missing
                    found = self._failed | self._unsettled | Mux(blamed, self._above, 0)
                    m.d.sync += [fault.eq(RunError.LINK), self.failed.eq(found)]
        over = [self.busy.eq(0), self.done.eq(1)]
        with m.If(finish | (tried & ~self.value("run_busy"))):
            m.d.sync += [*over, counting.eq(0)]
        with m.If(self._goes):
            m.d.sync += self._waiting.eq(0)
            with m.If(self._refused):
                m.d.sync += [*over, fault.eq(RunError.UNEQUAL_CHOICES)]
        with m.Elif(self._failing):
            m.d.sync += [*over, self._waiting.eq(0), fault.eq(RunError.LINK),
                         self.failed.eq(self._broken)]  # fmt: skip
        with m.Elif(self._late):
            m.d.sync += [*over, self._waiting.eq(0), fault.eq(RunError.TIMEOUT),
                         self.failed.eq(self._missing)]  # fmt: skip
        with m.If(start & self.busy):
            m.d.sync += fault.eq(RunError.BUSY)
        with m.If(start & ~self.busy):
            m.d.sync += [self._waiting.eq(1), self.busy.eq(1), self.done.eq(0),
                         fault.eq(RunError.NONE), self.failed.eq(0), count.eq(0)]  # fmt: skip
            m.d.sync += [self._chosen(name).eq(self.value(name)) for name in plan.choices]
        refusal: Value = self.value("run_error") if self._refuses else Const(RunError.NONE)
        begun = (fault == RunError.NONE) & ~self._waiting
        m.d.comb += self.error.eq(Mux(begun, refusal, fault))

    def _watch(self, m: Module) -> None:
        """Find links that have failed, here and on other boards, and starts that wait too long.

        No board arrives while a link has failed, here or below. A start fails for that `patience`
        cycles after it at the earliest. Why: before, boards may still speak of a run that has
        failed and is over, and cables may just have been plugged in. Reports go up the tree by
        `unfit` and down by `halt`, so that none comes back to where it was made.

        A start ends, too, when a neighbour that waited does so no more: it was reset, or has given
        its own start up. So it ends on all boards that wait.
        """
        plan = self._plan
        links, timer = plan.links, self._timer
        start = self.value("start") & ~self.busy
        m.d.sync += timer.eq(Mux(start, 0, timer + 1))
        strange, heard = Signal(links, name="strange_since"), self.value("heard")
        m.d.sync += strange.eq((strange | self.value("strange")) & ~heard)
        m.d.comb += self._broken.eq(self._silent(m) | strange)
        below = Signal(links, name="unfit_below")
        told = Signal(name="told_to_halt")
        for link, said in enumerate(self._said):
            with m.If(heard[link]):
                m.d.sync += below[link].eq(said["unfit"])
        with m.If(self._hears):
            m.d.sync += told.eq(self._told.halt)
        lost = self._known & (self._after != 0) & self._failed.any()
        m.d.comb += [
            self._unfit.eq(self._broken.any() | lost | (below & self._below).any()),
            self._halt.eq(Mux(self._above == 0, self._unfit, told)),
        ]
        known = (self._unfit | self._halt) & (timer >= plan.patience)
        unfit = Cat(said["unfit"] | said["halt"] for said in self._said)
        waits = self._waiting & (self._count == 0)
        late: Value = self.value("withdraw") if self._withdraws else Const(0, 1)
        if plan.start_timeout:
            late = late | (timer == plan.start_timeout - 1)
        m.d.comb += [
            self._gone.eq(heard & self._waits & ~Cat(said["waits"] for said in self._said)),
            self._failing.eq(waits & (known | (self._gone & unfit).any())),
            self._late.eq(waits & (late | self._gone.any())),
            self._dropped.eq(Mux(self._goes, self._refused, self._failing | self._late)),
        ]

    @property
    def _missing(self) -> Value:
        """Links to boards for which a start has waited.

        They are those that wait no more, else those below that have not arrived, else those beyond
        the board above.
        """
        below = self._below & ~self._arrived_by
        return Mux(self._gone.any(), self._gone, Mux(below.any(), below, self._above))

    def _silent(self, m: Module) -> Value:
        """Bits of links by which nothing has come for long."""
        alive = Signal(self._plan.links, name="heard_of")
        silent = Signal(self._plan.links, name="silent")
        came = self.value("alive")
        m.d.sync += [alive.eq(alive | came), silent.eq(silent & ~came)]
        with m.If(self._timer[: SILENCE.bit_length() - 1].all()):
            m.d.sync += [alive.eq(0), silent.eq(~(alive | came))]
        return silent

    def _send(self, m: Module) -> None:
        """Say what transmitters send."""
        plan = self._plan
        slot = Signal(range(plan.period), name="slot")
        of_run = self.running | self._summing
        m.d.sync += slot.eq(Mux(of_run | (slot == plan.period - 1), 0, slot + 1))
        m.d.comb += [
            self.checking.eq(self._summing | (~of_run & (slot >= plan.message_words))),
            self.begins.eq(self.run_start | (~of_run & (slot == 0))),
        ]
        values = {
            "board": self.value("board"),
            "arrived": self._arrived,
            "differs": Mux(self._count == 0, self._differs, self._refused),
            "settled": self._settled,
            "verdict": Mux(
                (self._verdict == Verdict.NONE) & (self._unheard | self._told_missing),
                Verdict.MISSING,
                self._verdict,
            ),
            "count": Mux(self._waiting, self._count, 0),
            # After a run, too, until it is known whether it lost something: then that is said.
            "waits": self._waiting | ((self._after != 0) & ~self._known),
            "unfit": self._unfit,
            "halt": self._halt,
        } | {name: self._chosen(name) for name in plan.choices}
        m.d.comb += self.message.eq(Cat(values[name] for name, _ in plan.fields if name != "link"))


#: What is made of what is known at the deadline.
GOOD_OR_BAD = Const(Verdict.GOOD, 2), Const(Verdict.BAD, 2)
