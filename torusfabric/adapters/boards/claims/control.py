"""Proof of the control of boards: the barrier at a start, and the agreement after a run.

The model is one board with a free number, so it is any board of the tree. The board may be reset in
any cycle. Messages from its neighbours are free inputs, because neighbours, too, may be reset in
any cycle, withdraw their starts, or be in a run without this board. Each claim therefore states
which messages the board must have heard before it acts, and that its own messages are true. By
induction over the tree, from the leaves up to board 0 and down again, the claims hold for all
boards together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ....proof.model import Model, by_value, within
from ....rtl.run_choices import RunError
from ..hardware.control import Verdict

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..hardware import LinkPlan

__all__ = ["agreement_harness", "barrier_harness"]

GOOD, BAD, MISSING = int(Verdict.GOOD), int(Verdict.BAD), int(Verdict.MISSING)


class _Board:
    """The model of a board, and expressions for the fields of messages."""

    def __init__(self, plan: LinkPlan, design: Design) -> None:
        self.plan, self.links = plan, plan.links
        self.model = Model(design, "board_control", constants=["board"])
        self.model.assume(f"board < {plan.boards.number}")
        link_bits = plan.fields["link"].width
        for name, field in plan.fields:
            if name != "link":
                bits = f"message[{field.offset - link_bits} +: {field.width}]"
                self.model.wire(f"says_{name}", bits, field.width)
        parts = [
            f"({{{plan.message_bits}{{above[{k}]}}}} & {self._word(k)})" for k in range(self.links)
        ]
        self.model.wire("from_above", " | ".join(parts), plan.message_bits)
        self.model.wire("hears_above", "(above & heard) != 0")
        self.model.wire("is_root", "above == 0")

    def _word(self, link: int) -> str:
        return f"said[{link * self.plan.message_bits} +: {self.plan.message_bits}]"

    def said(self, link: int, name: str) -> str:
        """Return a field of the message from a link."""
        field = self.plan.fields[name]
        return f"said[{link * self.plan.message_bits + field.offset} +: {field.width}]"

    def heard_below(self, name: str, while_: str, says: Callable[[int], str], *, last: bool) -> str:
        """Add a register with one bit for each link, high if the board below has sent a statement.

        Parameters
        ----------
        name : str
            Name of the register.
        while_ : str
            Condition under which messages count; the register is cleared while the condition fails.
        says : function of (int) -> str
            Expression for the statement in a message from a link.
        last : bool
            True if only the last message counts, False if any message since then counts.

        Returns
        -------
        str
            Name of the register. Its value covers messages up to the previous cycle.
        """
        bits = []
        for link in range(self.links):
            heard, old = f"heard[{link}] && below[{link}]", f"{name}[{link}]"
            kept = (
                f"({heard}) ? ({says(link)}) : {old}"
                if last
                else (f"{old} || ({heard} && {says(link)})")
            )
            bits.append(f"({while_}) && ({kept})")
        return self.model.register(name, f"{{{', '.join(reversed(bits))}}}", self.links)

    def above(self, name: str) -> str:
        """Return a field of the message from the board above."""
        field = self.plan.fields[name]
        return f"from_above[{field.offset} +: {field.width}]"


def barrier_harness(plan: LinkPlan, design: Design) -> Harness:
    """Return the proof that a board begins a run only with all boards, and with equal choices.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions and timing of the links.
    design : Design
        Verilog of all boards.
    """
    board = _Board(plan, design)
    model = board.model
    _arrivals(board)
    _choices(board)
    _limits(board)
    counted, bits = board.above("count"), plan.fields["count"].width
    model.wire("is_told", f"hears_above && broken == 0 && {counted} > {plan.joins}")
    model.wire("told_count", f"is_told ? {counted} - {plan.heard} : 0", bits)
    begins = "steady && $past(waiting && !goes && count == 0)"
    model.register("frozen_for", f"!frozen ? 0 : frozen_for >= {plan.settle_time} ? "
                   f"{plan.settle_time} : frozen_for + 1", 8)  # fmt: skip
    _tree(board)
    model.claims({
        "hears_nobody_of_a_run_that_is_over": "recent == 0 || arrived == 0 || $past(recent) == 0",
        "ignores_messages_of_a_run_that_is_over":
            "!(steady && ($past(dropped) || $past(waiting && !run_start) && !waiting)) || "
            f"recent == {plan.patience}",
        "goes_on_ignoring_them": "!(steady && !$past(dropped) && $past(recent) != 0) || "
                                 "recent == $past(recent) - 1",
        "begins_only_if_it_waits": "!goes || waiting",
        "counts_while_it_waits": "!steady || $past(waiting) || count == 0",
        "begins_as_counted": "goes == (steady && $past(waiting) && $past(count) == 1)",
        "counts_down":
            "!(steady && $past(waiting && count > 1)) || count == $past(count) - 1",
        "says_what_it_counts": "says_count == (waiting ? count : 0)",
        "begins_counting_when_all_have_arrived":
            f"!({begins} && $past(is_root)) || "
            f"count == ($past(all_arrived) ? {plan.countdown} : 0)",
        "counts_as_it_is_told":
            f"!({begins} && $past(!is_root)) || count == $past(told_count)",
        "starts_the_run_or_refuses_it": "run_start == (again || (goes && !refused))",
        "is_frozen_before_it_begins":
            f"!(run_start && goes) || frozen_for >= {plan.settle_time}",
        "is_frozen_while_it_counts": "count == 0 || frozen",
        "ends_counting_when_it_begins": "!goes || count == 0",
        "has_frozen_since": f"!waiting || count == 0 || count >= {plan.settle_time} || "
                            f"frozen_for + count >= {plan.settle_time}",
    })  # fmt: skip
    if plan.hold:
        # While a board waits it is busy, see `agreement_harness`, and so takes no words.
        closed = f"!waiting ? 0 : closed_for >= {plan.hold} ? {plan.hold} : closed_for + 1"
        model.register("closed_for", closed, 8)
        model.claims({
            "will_have_been_closed":
                f"!waiting || count == 0 || closed_for + count >= {plan.hold}",
            "begins_when_written_words_are_there":
                f"!goes || closed_for >= {plan.hold - 1}",
        })  # fmt: skip
    says = (
        "a board begins a run only if it waits for one, in the cycle that the board above it has "
        f"announced; board 0 starts {plan.countdown} cycles after all others have reported that "
        "they wait"
    )
    if plan.start_timeout:
        says += f"; a start waits {plan.start_timeout} cycles at most"
    return replace(model.harness(says), name="barrier")


def _arrivals(board: _Board) -> None:
    """Claim that a board reports its arrival only after all boards below, since its own start."""
    heard = board.heard_below(
        "have_arrived", "waiting", lambda link: f"{board.said(link, 'arrived')} == 1", last=False
    )
    board.model.claims({
        "knows_who_has_arrived": f"(arrived & below & ~{heard}) == 0",
        "says_that_it_waits_when_all_below_do":
            f"!says_arrived || (waiting && (below & ~{heard}) == 0 && broken == 0)",
        "board_0_counts_only_if_all_wait":
            f"!is_root || !waiting || (count == 0 && !goes) || (below & ~{heard}) == 0",
    })  # fmt: skip


def _choices(board: _Board) -> None:
    """Claim that no board begins a run with other choices than the board above it."""
    model, choices = board.model, [*board.plan.choices]
    same_below = board.heard_below(
        "same_below", "waiting && recent == 0", lambda link: _agrees(board, link), last=True
    )
    same_above = " && ".join(
        [f"{board.above('differs')} == 0"]
        + [f"{board.above(name)} == run_{name}" for name in choices]
    )
    model.register("same_above", f"waiting && (count == 0 ? is_told && {same_above} : same_above)")
    known = f"(below & ~{same_below}) == 0"
    model.register("board_0_knew", f"waiting && (count == 0 ? {known} : board_0_knew)")
    model.claims({
        "knows_who_differs": f"!waiting || (arrived & below & ~differing & ~{same_below}) == 0",
        "says_that_none_differs_only_if_none_does":
            f"!(says_arrived && count == 0 && !says_differs) || {known}",
        "begins_only_with_the_choices_of_the_board_above":
            "is_root || !waiting || (count == 0 && !goes) || refused || same_above",
        "board_0_begins_only_if_none_differs":
            "!is_root || !waiting || (count == 0 && !goes) || refused || board_0_knew",
        "says_whether_it_refuses": "count == 0 || says_differs == refused",
    } | {f"says_its_{name}": f"says_{name} == run_{name}" for name in choices})  # fmt: skip


def _agrees(board: _Board, link: int) -> str:
    """Return the condition that a message from below reports arrival with equal choices."""
    same = [f"{board.said(link, name)} == run_{name}" for name in board.plan.choices]
    same += [f"{board.said(link, 'arrived')} == 1", f"{board.said(link, 'differs')} == 0"]
    return " && ".join(same)


def _limits(board: _Board) -> None:
    """Claim that a start ends in time and with a reason, and leaves the board idle."""
    model, plan = board.model, board.plan
    waited = model.register("waited", "start && !busy ? 0 : waited + 1", plan.timer_bits)
    board.heard_below(
        "those_below_are_unfit", "1", lambda link: f"{board.said(link, 'unfit')} == 1", last=True
    )
    for link in range(board.links):
        says = f"{board.said(link, 'waits')} == 1"
        model.register(f"has_waited_{link}", f"waiting && recent == 0 && (heard[{link}] ? {says} : "
                       f"has_waited_{link})")  # fmt: skip
    links = [*reversed(range(board.links))]
    model.wire(
        "have_waited", f"{{{', '.join(f'has_waited_{link}' for link in links)}}}", board.links
    )
    no_more = [f"heard[{k}] && has_waited_{k} && {board.said(k, 'waits')} == 0" for k in links]
    model.wire("no_more", f"{{{', '.join(no_more)}}}", board.links)
    model.register("told_to_halt", f"hears_above ? {board.above('halt')} : told_to_halt")
    stopped = "steady && $past(waiting && !goes) && !waiting"
    withdrawn = "$past(withdraw)" if model.has("withdraw") else "0"
    late = f"$past(timer) == {plan.start_timeout - 1}" if plan.start_timeout else "0"
    model.claims({
        "knows_how_long_it_waits": f"timer == {waited}",
        "gives_a_start_up_only_with_reason":
            f"!({stopped}) || $past((unfit || halt) && timer >= {plan.patience}) || "
            f"{late} || {withdrawn} || $past(no_more != 0)",
        "knows_who_waits": "waits == have_waited",
        "gives_a_start_up_with_its_neighbours":
            "!(steady && $past(waiting && !goes && count == 0 && no_more != 0)) || !waiting || "
            "$past(start)",
        "says_that_it_waits": "says_waits == (waiting || (after != 0 && !known))",
        "says_that_it_has_given_up":
            f"!({stopped}) || (!busy && done && fault != {int(RunError.NONE)})",
        "says_why_it_has_given_up":
            f"!({stopped} && $past(!start)) || "
            f"fault == ($past(failing) ? {int(RunError.LINK)} : {int(RunError.TIMEOUT)})",
        "knows_where_links_have_failed": "(unfit_below & below) == those_below_are_unfit",
        "halts_if_board_0_does": "says_halt == (is_root ? says_unfit : told_to_halt)",
        "says_that_links_have_failed":
            "says_unfit == (broken != 0 || those_below_are_unfit != 0 || "
            "(known && after != 0 && lost_in_run != 0))",
    })  # fmt: skip
    if plan.start_timeout:
        model.claim("waits_no_longer",
                    f"!waiting || count != 0 || goes || timer < {plan.start_timeout}")  # fmt: skip


def _tree(board: _Board) -> None:
    """Claim that a board knows the links above and below it, and the peer of each link."""
    model, boards, links = board.model, board.plan.boards, board.plan.fields["link"].width
    bits = links + board.plan.fields["board"].width
    above = [1 << link if link >= 0 else 0 for link in boards.above]
    below = [sum(1 << link for link in found) for found in boards.below]
    model.claim("knows_who_is_above", f"above == {by_value(above, 'board')}")
    model.claim("knows_who_is_below", f"below == {by_value(below, 'board')}")
    for link in range(board.links):
        ends = [ends[link].link + (ends[link].board << links) for ends in boards.ends]
        model.claim(f"knows_who_is_at_link_{link}",
                    f"{within('peers', str(link), bits)} == {by_value(ends, 'board')}")  # fmt: skip


def agreement_harness(plan: LinkPlan, design: Design) -> Harness:
    """Return the proof that a board accepts or repeats a run only by agreement with all boards.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions and timing of the links.
    design : Design
        Verilog of all boards.
    """
    board = _Board(plan, design)
    model = board.model
    # Assumption about the sequencer: it becomes busy only by a start, in the next cycle.
    model.assume("!run_busy || (steady && ($past(run_busy) || $past(run_start)))")
    _timing(board)
    _good_boards(board)
    retries = f"attempts <= {plan.retries}"
    model.register("was_asked", "start && !busy ? 1 : busy && was_asked")
    model.register(
        "must_say",
        f"ends ? verdict != {GOOD} && !(verdict == {BAD} && {retries}) : start && !busy ? 0 : "
        "must_say",
    )
    model.claims({
        "knows_what_its_links_lost": f"!(steady && $past(after) == {plan.checked}) || "
                                     "(known && lost_in_run == $past(lost))",
        "knows_nothing_of_a_run_under_way":
            "!known || !(run_busy || was_busy || tried || "
            f"(after != 0 && after <= {plan.checked}))",
        "says_good_only_if_it_is": f"says_settled != {GOOD} || "
                                   "(known && lost_in_run == 0 && those_below_are_good)",
        "knows_what_others_lost":
            "!known || (settled_below & below & ~bad_below & ~good_below) == 0",
        "who_is_good_has_said_so": "(good_below & ~have_been_good) == 0",
        "takes_for_good_only_what_is": f"!known || verdict != {GOOD} || (lost_in_run == 0 && "
                                       "those_below_were_good && (is_root || told_good))",
        "takes_for_bad_only_what_it_is_told":
            f"is_root || !known || verdict != {BAD} || told_bad",
        "a_verdict_stays": "!(steady && $past(known) && known && $past(verdict) != 0) || "
                           "verdict == $past(verdict)",
        "says_its_verdict":
            f"says_verdict == verdict || (verdict == 0 && says_verdict == {MISSING})",
        "repeats_only_what_is_bad":
            f"again == (steady && $past(ends) && $past({retries}) && $past(verdict) == {BAD})",
        "is_busy_until_the_end":
            "!(run_busy || was_busy || after != 0 || again || tried || finish || waiting) || busy",
        "is_busy_only_after_a_start": "!busy || was_asked",
        "does_one_thing_at_a_time":
            "waiting + again + finish + (tried || run_busy || was_busy) + (after != 0) <= 1 "
            "&& !(tried && was_busy) && (!goes || (waiting && count == 0))",
        "ends_what_it_does_not_repeat": "finish == (steady && $past(ends) && !again)",
        "a_run_that_is_not_good_says_so": "!must_say || fault != 0",
    })  # fmt: skip
    says = (
        "a board ends a run without an error only if its links lost nothing and all other boards "
        "report the same; it repeats a run only if board 0 knows of an error"
    )
    return replace(model.harness(says), name="agreement")


def _good_boards(board: _Board) -> None:
    """Add registers for the reports and verdicts heard since the end of a run."""
    model = board.model
    says = lambda link: f"{board.said(link, 'settled')} == {GOOD}"
    good = board.heard_below("have_been_good", "known", says, last=False)
    told = lambda link: f"{board.said(link, 'settled')} == 0 ? good_below[{link}] : {says(link)}"
    board.heard_below("good_below", "known", told, last=True)
    model.wire("those_below_are_good", "(below & ~good_below) == 0")
    model.wire("those_below_were_good", f"(below & ~{good}) == 0")
    verdict = board.above("verdict")
    for name, value in (("told_good", GOOD), ("told_bad", BAD)):
        model.register(name, f"known && ({name} || (hears_above && {verdict} == {value}))")


def _timing(board: _Board) -> None:
    """Claim the cycles in which words are due, and in which boards have agreed."""
    model, plan = board.model, board.plan
    agreed = plan.agreed
    model.register(
        "since_end",
        "steady && $past(run_busy) && !run_busy ? 1 : "
        f"since_end == 0 || since_end == {agreed} ? 0 : since_end + 1",
        model.width("after"),
    )
    model.claim("knows_that_a_run_has_ended", "was_busy == (steady && $past(run_busy))")
    model.claim("agrees_in_time", f"ends == (since_end == {agreed})")
    model.claim("counts_the_cycles_after_a_run", "after == since_end")
    for name, what in (("due", "running"), ("check_due", "summing")):
        value = what
        for number in range(1, max(plan.latencies) - 1):
            value = model.register(f"{what}_{number}", value)
            if number + 2 in plan.latencies:
                model.claim(f"{name}_of_{number + 2}_in_time", f"{name}_{number + 2} == {value}")
