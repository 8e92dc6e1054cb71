"""The control of a board: common starts of all boards, repetition after a loss, and the result.

`BoardControl` stands between the host port and the sequencer of a board. The boards form a tree
with board 0 as its root. *Above* a board is its parent, *below* it are its children. The controls
exchange messages over the links between runs (`LinkPlan.message_layout`)::

    host: start     every board waits, and reports `arrived` upwards when all below have arrived
    board 0         all have arrived: sends `count`, the cycles until the start, down the tree
    count = 0       all boards start, within `LinkPlan.start_skew` cycles; links now carry the run
    end of run      a CRC follows on each link; then messages again
    agreement       `settled` goes up: losses of a board and all below; `verdict` comes down
    then            repeat the run after a loss, up to `retries` times, or report `done`

A start ends with an error if choices differ, a link has failed, or boards do not come in time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out

from ....rtl.memories import address_width, constant_at
from ....rtl.modules import Leaf, delay_pulse
from ....rtl.run_choices import ERROR_BITS, RunError
from .link_plan import SILENCE_CYCLES

if TYPE_CHECKING:
    from .link_plan import LinkPlan

__all__ = ["BoardControl", "RunVerdict"]


class RunVerdict(enum.IntEnum):
    """The result of a run on all boards: whether a link lost a word, as far as a board knows."""

    #: Not known yet.
    NONE = 0
    #: The links lost nothing.
    GOOD = 1
    #: A link lost a word.
    BAD = 2
    #: Only in messages: the sender has waited in vain for the verdict of the board above it.
    MISSING = 3


class BoardControl(Leaf):
    """The control of one board: starts runs when all boards wait, and repeats runs after a loss.

    Neighbours exchange control messages between runs. A message states the present situation of a
    board and contains no sequence number. Why: a board that is reset forgets all numbers, yet it
    must be in service again as soon as it hears its neighbours.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions and timing of the links.
    error : bool
        True if the sequencer reports why it refused a start.
    withdraws : bool
        True to add the input `withdraw`. A reset of the board also takes back a start.

    Members
    -------
    start, mode, length, root, operation : In
        Start of a run and its choices (mode, length, root, operator), from the host. The run begins
        when all boards have a start.
    withdraw : In(1)
        Takes back a start that still waits for other boards; only with `withdraws`.
    board : In
        Number of this board, constant.
    run_busy, run_error : In
        Status of the sequencer.
    said, heard, strange, alive, lost : In
        Outputs of all receivers, concatenated by link port; see `Receiver`.
    busy : Out(1)
        High from the edge after the start until the run is done.
    done : Out(1)
        High from the end of a run until the next start.
    cycles : Out(32)
        Clock edges from the common start to done, of all attempts.
    attempts : Out
        Number of times the last run was executed.
    error : Out
        A `RunError`: the reason why the last run was refused or has failed, or none.
    failed : Out
        One bit for each link port, valid with an error. The link lost a word, is silent, leads to a
        wrong board, or a report or an arrival over it is missing.
    run_start, run_mode, .. : Out
        Start and choices for the sequencer.
    message, running, begins, checking : Out
        Inputs of all transmitters; see `Transmitter`.
    frozen, due_K, check_due_K, peers : Out
        Inputs of the receivers; see `Receiver`. K is the latency of the link.
    """

    def __init__(self, plan: LinkPlan, *, error: bool, withdraws: bool = False) -> None:
        self._plan, self._refuses, self._withdraws = plan, error, withdraws
        links = plan.n_links
        super().__init__(
            {"start": In(1)}
            | {name: In(bits) for name, bits in plan.choices.items()}
            | ({"withdraw": In(1)} if withdraws else {})
            | {"board": In(plan.message_layout["board"].width), "run_busy": In(1)}
            | {"run_error": In(ERROR_BITS * error), "said": In(links * plan.message_bits)}
            | {name: In(links) for name in ("heard", "strange", "alive", "lost")}
            | {"busy": Out(1), "done": Out(1), "cycles": Out(32), "error": Out(ERROR_BITS)}
            | {"failed": Out(links), "attempts": Out(address_width(plan.retries + 2))}
            | {"run_start": Out(1)}
            | {f"run_{name}": Out(bits) for name, bits in plan.choices.items()}
            | {"message": Out(plan.message_bits - plan.message_layout["link"].width)}
            | {name: Out(1) for name in ("running", "begins", "checking", "frozen")}
            | {
                f"{name}_{latency}": Out(1)
                for latency in plan.latencies
                for name in ("due", "check_due")
            }
            | {"peers": Out(links * plan.sender_bits)}
        )
        # Signals between the parts of the control.
        flag: Callable[[str], Signal] = lambda name: Signal(name=name)
        # One bit for each link: the board there has reported `arrived`.
        self._arrived_by = Signal(links, name="arrived")
        # High from the host's start until the common start, or until the start ends in an error.
        self._waiting = flag("waiting")
        self._arrived, self._differs = flag("all_arrived"), flag("any_differs")
        # Cycles until the run begins or, if `refused`, until the start ends because choices differ.
        self._count = Signal(plan.message_layout["count"].width, name="count")
        self._refused = flag("refused")
        self._goes, self._again = flag("goes"), flag("again")
        # The start ends in this cycle although the run has not begun.
        self._dropped = flag("dropped")
        # The start ends in this cycle: a link has failed, or other boards did not come in time.
        self._failing, self._late = flag("failing"), flag("late")
        # Cycles since the end of a run, 0 once the boards have agreed on its result.
        self._after = Signal(range(plan.agreement_cycles + 1), name="after")
        self._ended, self._known = flag("ended"), flag("known")
        self._settled, self._verdict = Signal(2, name="settled"), Signal(2, name="verdict")
        self._ends = flag("ends")
        # Links of this board that have failed; a link failed here or below; a link failed on any
        # board, as far as this board knows.
        self._broken = Signal(links, name="broken")
        self._unfit, self._halt = flag("unfit"), flag("halt")
        # One bit for each link: the neighbour waits for a run; the neighbour has ceased to wait.
        self._waits, self._gone = Signal(links, name="waits"), Signal(links, name="gone")
        # Cycles since the last start, modulo a power of two.
        self._timer = Signal(plan.timer_bits, name="timer")
        # Link ports to the board above and to the boards below; the message from above, valid while
        # `hears` is high.
        self._above, self._below = Signal(links, name="above"), Signal(links, name="below")
        self._told, self._hears = Signal(plan.message_layout, name="told"), flag("hears")
        # CRC words of a run are being sent; links that lost a word in the last run.
        self._summing, self._failed = flag("summing"), Signal(links, name="lost_in_run")
        # Links to boards below whose report is overdue; the verdict from above is overdue; the
        # board above has reported that the verdict is missing.
        self._unsettled, self._unheard = Signal(links, name="unsettled"), flag("unheard")
        self._told_missing = flag("told_missing")

    def elaborate(self, platform: object) -> Module:
        """Build the barrier at a start, the timing of a run, and the agreement on its result."""
        m = Module()
        self._add_tree(m)
        self._add_failure_detection(m)
        self._add_barrier(m)
        self._add_timing(m)
        self._add_agreement(m)
        self._add_run_control(m)
        self._drive_transmitters(m)
        return m

    @property
    def _messages(self) -> list[View[StructLayout]]:
        """The control message that each link port receives from a neighbour, with its fields.

        The controls of the boards exchange these messages between runs; see
        `LinkPlan.message_layout`.
        """
        words = self.input_words("said", self._plan.message_bits)
        return [View(self._plan.message_layout, word) for word in words]

    def _value_of_board(self, values: Sequence[int]) -> Value:
        """Return the value for this board from `values`, which has one for each board.

        The hardware selects it by the input `board`, the number of this board.
        """
        return constant_at(values, self.input_value("board"))

    def _add_tree(self, m: Module) -> None:
        """Add signals that depend on the place of this board in the tree of all boards.

        The tree has board 0 as its root; its edges are links between boards. One signal has the
        link to the parent of this board, another the links to its children, one bit for each link.
        `peers` has, for each link, the board and link port that should be at the other end.
        """
        plan, boards = self._plan, self._plan.boards
        link_bits = plan.message_layout["link"].width
        peers = [
            sum(
                (end.link | end.board << link_bits) << plan.sender_bits * k
                for k, end in enumerate(ends)
            )
            for ends in boards.far_ends
        ]
        above = [0 if link < 0 else 1 << link for link in boards.parent_links]
        below = [sum(1 << link for link in found) for found in boards.child_links]
        m.d.comb += [
            self.peers.eq(self._value_of_board(peers)),
            self._above.eq(self._value_of_board(above)),
            self._below.eq(self._value_of_board(below)),
        ]
        chosen: Value = Const(0, plan.message_bits)
        for link, word in enumerate(self.input_words("said", plan.message_bits)):
            chosen = chosen | Mux(self._above[link], word, 0)
        m.d.comb += [
            self._told.eq(chosen),
            self._hears.eq((self._above & self.input_value("heard")).any()),
        ]

    def _add_barrier(self, m: Module) -> None:
        """Detect that all boards wait for a run, and count down to their common start.

        The boards form a tree. Board 0, its root, sets the count when all boards wait. Any other
        board takes the count from a message of its parent, less the `LinkPlan.message_delay` cycles
        that this message took.
        """
        plan = self._plan
        root = self._above == 0
        arrived = self._arrived_by
        differing = Signal(plan.n_links, name="differing")
        # After a dropped start, messages still in flight may report boards that waited for it:
        # ignore arrivals for `stale_message_cycles`.
        recent = Signal(range(plan.stale_message_cycles + 1), name="recent")
        with m.If(self._dropped):
            m.d.sync += recent.eq(plan.stale_message_cycles)
        with m.Elif(recent != 0):
            m.d.sync += recent.eq(recent - 1)
        for link, said in enumerate(self._messages):
            with m.If(~self._waiting | (recent != 0)):
                m.d.sync += [arrived[link].eq(0), differing[link].eq(0), self._waits[link].eq(0)]
            with m.Elif(self.input_value("heard")[link]):
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
            # If the start ends in the very cycle in which the count is set, no run may begin.
            m.d.sync += self._count.eq(0)
        with m.Elif(~idle):
            m.d.sync += self._count.eq(self._count - 1)
        with m.Elif(~self._goes & root & self._arrived):
            m.d.sync += [self._count.eq(plan.countdown_cycles), self._refused.eq(self._differs)]
        with m.Elif(
            ~self._goes & self._hears & (count > plan.too_late_count) & ~self._broken.any()
        ):
            m.d.sync += [
                self._count.eq(count - plan.message_delay),
                # The board above may count down for a start that this board had before a reset.
                self._refused.eq(self._told.differs | self._differs_from(self._told)),
            ]
        m.d.sync += self._goes.eq(self._waiting & (self._count == 1))
        m.d.comb += self.run_start.eq((self._goes & ~self._refused) | self._again)

    def _differs_from(self, said: View[StructLayout]) -> Value:
        """Return a bit that is 1 if a neighbour has other choices for the run than this board.

        The choices are mode, length, root and operator. `said` is the control message of the
        neighbour, with its choices.
        """
        names = [*self._plan.choices]
        if not names:
            return Const(0, 1)
        return Cat(said[name] for name in names) != Cat(
            self._choice_register(name) for name in names
        )

    def _choice_register(self, name: str) -> Value:
        """Return the register that holds the choice `name` of the last start, such as "mode"."""
        value: Value = getattr(self, f"run_{name}")
        return value

    def _add_timing(self, m: Module) -> None:
        """Add the signals that say when words of a run, and its CRC, are sent and received.


        ========= ============================================================================
        cycle     event, for a run in cycles 0 to E-1
        ========= ============================================================================
        0 .. E-1  `running`: transmitters send words of the run
        E ..      ``ended``; transmitters send the CRC for `crc_words` cycles (``summing``)
        K-2 ..    ``due_K``: receivers of links with latency K take the words of the run
        E+K-2 ..  ``check_due_K``: these receivers take the CRC
        ========= ============================================================================
        """
        plan = self._plan
        busy = self.input_value("run_busy")
        was_busy, summing = Signal(name="was_busy"), self._summing
        m.d.sync += was_busy.eq(busy)
        m.d.comb += [
            self._ended.eq(was_busy & ~busy),
            self.running.eq(self.run_start | busy),
            summing.eq(self._ended | ((self._after != 0) & (self._after < plan.crc_words))),
        ]
        with m.If(self._ended):
            m.d.sync += self._after.eq(1)
        with m.Elif(self._after == plan.agreement_cycles):
            m.d.sync += self._after.eq(0)
        with m.Elif(self._after != 0):
            m.d.sync += self._after.eq(self._after + 1)
        m.d.comb += self._ends.eq(self._after == plan.agreement_cycles)
        soon = (self._after != 0) & (
            (self._after <= plan.loss_check_cycles)
            | (self._after >= plan.agreement_cycles - plan.settle_cycles)
        )
        starting = (self._count != 0) | self._goes | self._again
        m.d.comb += self.frozen.eq(starting | self.running | self._ended | soon)
        due, check_due, at = self.running, summing, 0
        for latency in plan.latencies:
            due = delay_pulse(m, due, latency - 2 - at, name=f"due_{latency}_early")
            check_due = delay_pulse(
                m, check_due, latency - 2 - at, name=f"check_due_{latency}_early"
            )
            at = latency - 2
            m.d.comb += [
                getattr(self, f"due_{latency}").eq(due),
                getattr(self, f"check_due_{latency}").eq(check_due),
            ]

    def _add_agreement(self, m: Module) -> None:
        """Agree with all boards on whether any link lost a word in the run.

        The boards form a tree with board 0 as its root. Each board reports the result of its own
        links and of all boards below it to its parent, once it has the reports of its children
        (field `settled` of control messages). Board 0 derives the verdict for all boards, which
        passes down the tree.

        A board that was reset after the run reports nothing. Its neighbours notice this at the
        deadline of the report and blame their links to it. They send a bad report upwards or
        `MISSING` downwards, so that boards farther away blame no link.
        """
        plan = self._plan
        lost, failed, unsettled = self.input_value("lost"), self._failed, self._unsettled
        with m.If(self._after == plan.loss_check_cycles):
            m.d.sync += [self._known.eq(1), failed.eq(lost)]
        with m.Elif(self.run_start):
            m.d.sync += self._known.eq(0)
        below = Signal(plan.n_links, name="settled_below")
        bad = Signal(plan.n_links, name="bad_below")
        for link, said in enumerate(self._messages):
            with m.If(~self._known):
                m.d.sync += [below[link].eq(0), bad[link].eq(0)]
            with m.Elif(self.input_value("heard")[link] & (said["settled"] != RunVerdict.NONE)):
                m.d.sync += [below[link].eq(1), bad[link].eq(said["settled"] != RunVerdict.GOOD)]
        good = ~failed.any() & ~unsettled.any() & ~(bad & self._below).any()
        with m.If(self._known & ((below | ~self._below).all() | unsettled.any())):
            m.d.comb += self._settled.eq(Mux(good, RunVerdict.GOOD, RunVerdict.BAD))
        told = self._told.verdict
        with m.If(~self._known):
            m.d.sync += unsettled.eq(0)
        with m.Elif(self._after == self._value_of_board(plan.report_deadlines)):
            m.d.sync += unsettled.eq(self._below & ~below)
        if plan.tree_depth > 1:  # else no board passes a verdict on
            tells = self._hears & (told == RunVerdict.MISSING)
            with m.If(~self._known):
                m.d.sync += [self._unheard.eq(0), self._told_missing.eq(0)]
            with m.Else():
                late = self._after == self._value_of_board(plan.verdict_deadlines)
                m.d.sync += [
                    self._unheard.eq(self._unheard | late),
                    self._told_missing.eq(self._told_missing | tells),
                ]
        # A board above that was reset and missed this run may repeat the verdict of an earlier run:
        # believe "good" only if the own report is good.
        believed = self._hears & (
            (told == RunVerdict.BAD)
            | ((told == RunVerdict.GOOD) & (self._settled == RunVerdict.GOOD))
        )
        with m.If(~self._known):
            m.d.sync += self._verdict.eq(RunVerdict.NONE)
        with m.Elif(self._verdict == RunVerdict.NONE):
            with m.If(self._above != 0):
                m.d.sync += self._verdict.eq(Mux(believed, told, RunVerdict.NONE))
            with m.Elif(self._after == plan.root_report_deadline):
                m.d.sync += self._verdict.eq(Mux(self._settled == RunVerdict.GOOD, *GOOD_OR_BAD))
            with m.Else():
                m.d.sync += self._verdict.eq(self._settled)

    def _add_run_control(self, m: Module) -> None:
        """Start, repeat and end runs, count their cycles, and report errors to the host."""
        plan, start = self._plan, self.input_value("start")
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
            with m.If((self._verdict == RunVerdict.BAD) & (self.attempts <= plan.retries)):
                m.d.sync += [self._again.eq(1), self.attempts.eq(self.attempts + 1)]
            with m.Else():
                m.d.sync += finish.eq(1)
                with m.If(self._verdict != RunVerdict.GOOD):
                    blamed = (self._verdict == RunVerdict.NONE) & ~self._told_missing
                    found = self._failed | self._unsettled | Mux(blamed, self._above, 0)
                    m.d.sync += [fault.eq(RunError.LINK), self.failed.eq(found)]
        over = [self.busy.eq(0), self.done.eq(1)]
        with m.If(finish | (tried & ~self.input_value("run_busy"))):
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
                         self.failed.eq(self._missing_links)]  # fmt: skip
        with m.If(start & self.busy):
            m.d.sync += fault.eq(RunError.BUSY)
        with m.If(start & ~self.busy):
            m.d.sync += [self._waiting.eq(1), self.busy.eq(1), self.done.eq(0),
                         fault.eq(RunError.NONE), self.failed.eq(0), count.eq(0)]  # fmt: skip
            m.d.sync += [
                self._choice_register(name).eq(self.input_value(name)) for name in plan.choices
            ]
        refusal: Value = self.input_value("run_error") if self._refuses else Const(RunError.NONE)
        begun = (fault == RunError.NONE) & ~self._waiting
        m.d.comb += self.error.eq(Mux(begun, refusal, fault))

    def _add_failure_detection(self, m: Module) -> None:
        """Detect failed links, on this board and on others, and starts that wait too long.

        The boards form a tree with board 0 as its root; below a board are its children and their
        children. No board reports that it waits for a run (`arrived`) while one of its links, or a
        link of a board below it, has failed. A failed link ends a start, at the earliest
        `stale_message_cycles` after the start. Why: until then boards may still report on an
        earlier run that has failed, and cables may just have been plugged in. Reports of failed
        links go up the tree in the field `unfit` of control messages, and down in `halt`. Why two
        fields: with one, a report would come back to its sender and never end.

        A start also ends when a neighbour ceases to wait, because the neighbour was reset or its
        own start has ended. In this way the start ends on all waiting boards.
        """
        plan = self._plan
        links, timer = plan.n_links, self._timer
        start = self.input_value("start") & ~self.busy
        m.d.sync += timer.eq(Mux(start, 0, timer + 1))
        strange, heard = Signal(links, name="strange_since"), self.input_value("heard")
        m.d.sync += strange.eq((strange | self.input_value("strange")) & ~heard)
        m.d.comb += self._broken.eq(self._silent_links(m) | strange)
        below = Signal(links, name="unfit_below")
        told = Signal(name="told_to_halt")
        for link, said in enumerate(self._messages):
            with m.If(heard[link]):
                m.d.sync += below[link].eq(said["unfit"])
        with m.If(self._hears):
            m.d.sync += told.eq(self._told.halt)
        lost = self._known & (self._after != 0) & self._failed.any()
        m.d.comb += [
            self._unfit.eq(self._broken.any() | lost | (below & self._below).any()),
            self._halt.eq(Mux(self._above == 0, self._unfit, told)),
        ]
        known = (self._unfit | self._halt) & (timer >= plan.stale_message_cycles)
        unfit = Cat(said["unfit"] | said["halt"] for said in self._messages)
        waits = self._waiting & (self._count == 0)
        late: Value = self.input_value("withdraw") if self._withdraws else Const(0, 1)
        if plan.start_timeout:
            late = late | (timer == plan.start_timeout - 1)
        m.d.comb += [
            self._gone.eq(heard & self._waits & ~Cat(said["waits"] for said in self._messages)),
            self._failing.eq(waits & (known | (self._gone & unfit).any())),
            self._late.eq(waits & (late | self._gone.any())),
            self._dropped.eq(Mux(self._goes, self._refused, self._failing | self._late)),
        ]

    @property
    def _missing_links(self) -> Value:
        """A bit for each link: 1 if the board at its other end prevents a common start.

        The first of these sets that is not empty: links to neighbours that no longer wait for the
        run; links to children (in the tree of boards) that have not reported that they wait; the
        link to the parent.
        """
        below = self._below & ~self._arrived_by
        return Mux(self._gone.any(), self._gone, Mux(below.any(), below, self._above))

    def _silent_links(self, m: Module) -> Value:
        """Return one bit for each link: high if no word has come for at least `SILENCE_CYCLES`."""
        alive = Signal(self._plan.n_links, name="heard_of")
        silent = Signal(self._plan.n_links, name="silent")
        came = self.input_value("alive")
        m.d.sync += [alive.eq(alive | came), silent.eq(silent & ~came)]
        with m.If(self._timer[: SILENCE_CYCLES.bit_length() - 1].all()):
            m.d.sync += [alive.eq(0), silent.eq(~(alive | came))]
        return silent

    def _drive_transmitters(self, m: Module) -> None:
        """Drive the inputs of all transmitters: the fields of a control message, and strobes.

        The strobes say in which cycles a transmitter sends words of the run, a message, or a CRC.
        """
        plan = self._plan
        slot = Signal(range(plan.message_period), name="slot")
        of_run = self.running | self._summing
        m.d.sync += slot.eq(Mux(of_run | (slot == plan.message_period - 1), 0, slot + 1))
        m.d.comb += [
            self.checking.eq(self._summing | (~of_run & (slot >= plan.message_words))),
            self.begins.eq(self.run_start | (~of_run & (slot == 0))),
        ]
        values = {
            "board": self.input_value("board"),
            "arrived": self._arrived,
            "differs": Mux(self._count == 0, self._differs, self._refused),
            "settled": self._settled,
            "verdict": Mux(
                (self._verdict == RunVerdict.NONE) & (self._unheard | self._told_missing),
                RunVerdict.MISSING,
                self._verdict,
            ),
            "count": Mux(self._waiting, self._count, 0),
            # High after a run, too, until its losses are known and reported in `settled`.
            "waits": self._waiting | ((self._after != 0) & ~self._known),
            "unfit": self._unfit,
            "halt": self._halt,
        } | {name: self._choice_register(name) for name in plan.choices}
        m.d.comb += self.message.eq(
            Cat(values[name] for name, _ in plan.message_layout if name != "link")
        )


#: Verdicts of board 0 at the deadline, if the reports of all boards are good, and if not.
GOOD_OR_BAD = Const(RunVerdict.GOOD, 2), Const(RunVerdict.BAD, 2)
