"""What is proved of the control of boards: the barrier, and how they agree.

A board is any board of the tree. What others say is free, but for what they are proved to say
themselves: so what holds of each holds of all, from the boards that have none below them up to
board 0 and down again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...rtl.boards.control import Verdict
from ..model import Model, by_value, within

if TYPE_CHECKING:
    from ...rtl.boards import LinkPlan
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["agreement_harness", "barrier_harness"]

#: Registers that claims refer to.
SHOWN = ("above", "below", "all_arrived", "waiting", "count", "goes", "refused", "again", "after",
         "ends", "known", "was_busy", "verdict", "lost_in_run", "fault", "finish", "arrived",
         "differing", "settled_below", "bad_below", "tried", "summing", "recent",
         "dropped")  # fmt: skip

GOOD, BAD = int(Verdict.GOOD), int(Verdict.BAD)


class _Board:
    """The harness of a board in the making, and what other boards say to it."""

    def __init__(self, plan: LinkPlan, design: Design) -> None:
        self.plan, self.links = plan, plan.links
        self.model = Model(design, "board_control", shows=SHOWN, constants=["board"])
        self.model.assume(f"board < {plan.boards.number}")
        for name in ("settled", "verdict", "count", "arrived", "differs", *plan.choices):
            field = plan.fields[name]
            self.model.wire(f"says_{name}", f"message[{field.offset - plan.fields['link'].width} "
                            f"+: {field.width}]", field.width)  # fmt: skip
        parts = [
            f"({{{plan.message_bits}{{above[{k}]}}}} & {self._word(k)})" for k in range(self.links)
        ]
        self.model.wire("from_above", " | ".join(parts), plan.message_bits)
        self.model.wire("hears_above", "(above & heard) != 0")
        self.model.wire("is_root", "above == 0")

    def _word(self, link: int) -> str:
        return f"said[{link * self.plan.message_bits} +: {self.plan.message_bits}]"

    def said(self, link: int, name: str) -> str:
        """A field of what comes by a link."""
        field = self.plan.fields[name]
        return f"said[{link * self.plan.message_bits + field.offset} +: {field.width}]"

    def all_below(self, name: str) -> str:
        """That a flag is high for all links to boards below."""
        return f"({name} | ~below) == {{{self.links}{{1'b1}}}}"

    def above(self, name: str) -> str:
        """A field of what the board above says."""
        field = self.plan.fields[name]
        return f"from_above[{field.offset} +: {field.width}]"

    def stays(self, name: str, width: int, while_: str, how: str) -> None:
        """Something that is free, but as `how` says between two cycles in which something holds."""
        model = self.model
        model.free(name, width)
        model.assume(f"!(steady && $past({while_}) && {while_}) || {how}")


def barrier_harness(plan: LinkPlan, design: Design) -> Harness:
    """No board begins a run before all wait for it, and all begin it in one cycle of the links."""
    board = _Board(plan, design)
    model = board.model
    _waiting_boards(board)
    _choices(board)
    counted = board.above("count")
    model.assume(f"!(waiting && hears_above && {counted} != 0) || all_wait")
    model.wire("is_told", f"hears_above && {counted} > {plan.heard}")
    # No two messages in a row are lost that say when a run begins.
    model.assume(f"!is_told || count != 0 || {counted} >= {plan.heard + plan.settle_time}")
    bits = plan.fields["count"].width
    model.wire("told_count", f"is_told ? {counted} - {plan.heard} : 0", bits)
    begins = "steady && $past(waiting && !goes && count == 0)"
    model.register("frozen_for", f"!frozen ? 0 : frozen_for >= {plan.settle_time} ? "
                   f"{plan.settle_time} : frozen_for + 1", 8)  # fmt: skip
    _tree(board)
    model.claims({
        "says_that_it_waits_when_all_below_do": "!says_arrived || (waiting && those_below_wait)",
        "hears_nobody_of_a_run_that_is_over": "recent == 0 || arrived == 0 || $past(recent) == 0",
        "ignores_messages_of_a_run_that_is_over":
            "!(steady && ($past(dropped) || $past(waiting && !run_start) && !waiting)) || "
            f"recent == {plan.stale}",
        "goes_on_ignoring_them": "!(steady && !$past(dropped) && $past(recent) != 0) || "
                                 "recent == $past(recent) - 1",
        "knows_who_waits": "!waiting || (arrived & below & ~below_wait) == 0",
        "says_when_only_if_all_wait": "count == 0 || all_wait",
        "begins_only_if_all_wait": "!goes || (waiting && all_wait)",
        "counts_while_it_waits": "!steady || $past(waiting) || count == 0",
        "begins_as_counted": "goes == (steady && $past(waiting) && $past(count) == 1)",
        "counts_down":
            "!(steady && $past(waiting && count > 1)) || count == $past(count) - 1",
        "says_what_it_counts": "says_count == count",
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
    says = (
        "no board begins a run before all wait for it; each begins in the cycle that "
        f"board 0 counts to, {plan.countdown} after all have arrived"
    )
    return replace(model.harness(says), name="barrier")


def _waiting_boards(board: _Board) -> None:
    """Who waits for a run goes on to wait until it begins."""
    model = board.model
    board.stays("below_wait", board.links, "waiting", "($past(below_wait) & ~below_wait) == 0")
    board.stays("all_wait", 1, "(waiting || count != 0)", "!$past(all_wait) || all_wait")
    for link in range(board.links):
        told = f"waiting && heard[{link}] && below[{link}] && {board.said(link, 'arrived')} == 1"
        model.assume(f"!({told}) || below_wait[{link}]")
    model.wire("those_below_wait", board.all_below("below_wait"))
    model.assume("!(is_root && waiting && those_below_wait) || all_wait")


def _choices(board: _Board) -> None:
    """What boards have chosen: a run of which they chose different things is refused by all."""
    model, choices = board.model, [*board.plan.choices]
    board.stays("same_below", board.links, "(waiting || count != 0)",
                "$past(same_below) == same_below")  # fmt: skip
    board.stays("all_same", 1, "(waiting || count != 0)", "$past(all_same) == all_same")
    for link in range(board.links):
        same = [f"{board.said(link, name)} == run_{name}" for name in choices]
        same += [f"{board.said(link, what)} == {value}" for what, value in
                 (("arrived", 1), ("differs", 0))]  # fmt: skip
        told = " && ".join([f"waiting && heard[{link}] && below[{link}]", *same])
        model.assume(f"!({told}) || same_below[{link}]")
    model.wire("those_below_are_same", board.all_below("same_below"))
    model.assume("!(is_root && waiting && those_below_are_same) || all_same")
    told = f"waiting && hears_above && {board.above('count')} != 0"
    model.assume(f"!({told} && {board.above('differs')} == 0) || all_same")
    model.claims({
        "knows_who_differs":
            "!waiting || (arrived & below & ~differing & ~same_below) == 0",
        "says_that_none_differs_only_if_none_does":
            "!(says_arrived && count == 0 && !says_differs) || those_below_are_same",
        "begins_only_if_none_differs":
            "!(waiting && (count != 0 || goes) && !refused) || all_same",
        "says_whether_it_refuses": "count == 0 || says_differs == refused",
    } | {f"says_its_{name}": f"says_{name} == run_{name}" for name in choices})  # fmt: skip


def _tree(board: _Board) -> None:
    """Which boards are above and below, and who is at the other end of each link."""
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
    """All boards take a run for good, or none does; and they repeat it in the same cycle."""
    board = _Board(plan, design)
    model = board.model
    # Of the sequencer: it is busy from the start of a run on, and until its end.
    model.assume("!run_busy || (steady && ($past(run_busy) || $past(run_start)))")
    _timing(board)
    _good_boards(board)
    retries = f"attempts <= {plan.retries}"
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
        "board_0_takes_for_good_what_is": f"!is_root || !known || verdict != {GOOD} || "
                                          "(lost_in_run == 0 && those_below_are_good)",
        "others_take_what_they_are_told":
            f"is_root || !known || verdict == 0 || verdict == (all_good ? {GOOD} : {BAD})",
        "a_verdict_stays": "!(steady && $past(known) && known && $past(verdict) != 0) || "
                           "verdict == $past(verdict)",
        "says_its_verdict": "says_verdict == verdict",
        "repeats_only_what_is_bad":
            f"again == (steady && $past(ends) && $past({retries}) && $past(verdict) == {BAD})",
        "is_busy_until_the_end":
            "!(run_busy || was_busy || after != 0 || again || tried || finish || waiting) || busy",
        "does_one_thing_at_a_time":
            "waiting + again + finish + (tried || run_busy || was_busy) + (after != 0) <= 1 "
            "&& !(tried && was_busy) && (!goes || (waiting && count == 0))",
        "ends_what_it_does_not_repeat": "finish == (steady && $past(ends) && !again)",
        "a_run_that_is_not_good_says_so": "!must_say || fault != 0",
    })  # fmt: skip
    says = (
        "a board ends a run without an error only if all have found that no link lost "
        "anything, and repeats it only if board 0 has found that one did"
    )
    return replace(model.harness(says), name="agreement")


def _good_boards(board: _Board) -> None:
    """Which boards have found that no link lost anything; what is known of a run stays."""
    model = board.model
    board.stays("good_below", board.links, "known", "$past(good_below) == good_below")
    board.stays("all_good", 1, "known", "$past(all_good) == all_good")
    for link in range(board.links):
        settled, told = board.said(link, "settled"), f"known && heard[{link}] && below[{link}]"
        model.assume(f"!({told} && {settled} == {GOOD}) || good_below[{link}]")
    model.wire("those_below_are_good", board.all_below("good_below"))
    verdict = board.above("verdict")
    model.assume(
        f"!(known && hears_above && {verdict} != 0) || {verdict} == (all_good ? {GOOD} : {BAD})"
    )


def _timing(board: _Board) -> None:
    """When words of a run are due, and when boards have agreed."""
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
