"""Proof of the control of boards: the barrier at a start, and the agreement after a run.

The model is one board with a free number, so it is any board of the tree. The board may be reset in
any cycle. Messages from its neighbours are free inputs, because neighbours, too, may be reset in
any cycle, withdraw their starts, or be in a run without this board. A claim about an action of the
board therefore says which messages the board must have heard before. Other claims say that its own
messages are true. By induction over the tree, from the leaves up to board 0 and down again, the
claims hold for all boards together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder, select_by_value, vector_field
from ....rtl.run_choices import RunError
from ..hardware.control import RunVerdict

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..hardware import LinkPlan

__all__ = ["agreement_harness", "barrier_harness"]

GOOD, BAD, MISSING = int(RunVerdict.GOOD), int(RunVerdict.BAD), int(RunVerdict.MISSING)


class _BoardModel:
    """The model of one board control in a proof, and Verilog for the fields of its messages.

    The messages are those that boards exchange between runs, to start together and to agree on the
    result.
    """

    def __init__(self, plan: LinkPlan, design: Design) -> None:
        self.plan, self.links = plan, plan.n_links
        self.model = HarnessBuilder(design, "board_control", constants=["board"])
        self.model.assume(f"board < {plan.boards.n_boards}")
        link_bits = plan.message_layout["link"].width
        for name, field in plan.message_layout:
            if name != "link":
                bits = f"message[{field.offset - link_bits} +: {field.width}]"
                self.model.add_wire(f"says_{name}", bits, field.width)
        parts = [
            f"({{{plan.message_bits}{{above[{k}]}}}} & {self._message_slice(k)})"
            for k in range(self.links)
        ]
        self.model.add_wire("from_above", " | ".join(parts), plan.message_bits)
        self.model.add_wire("hears_above", "(above & heard) != 0")
        self.model.add_wire("is_root", "above == 0")

    def _message_slice(self, link: int) -> str:
        return f"said[{link * self.plan.message_bits} +: {self.plan.message_bits}]"

    def message_field(self, link: int, name: str) -> str:
        """Return Verilog for the field `name` of the control message received at link port `link`.

        A control message is one that boards exchange between runs; see `LinkPlan.message_layout`.
        """
        field = self.plan.message_layout[name]
        return f"said[{link * self.plan.message_bits + field.offset} +: {field.width}]"

    def add_child_statements(
        self, name: str, while_: str, says: Callable[[int], str], *, last: bool
    ) -> str:
        """Add a register that records which boards below have made a statement.

        The boards below are the children of this board in the tree of boards. The register has one
        bit for each link: high if the board at the link has sent the statement in a message, for
        example that it waits for a run.

        Parameters
        ----------
        name : str
            Name of the register.
        while_ : str
            Condition, in Verilog, under which messages count. The register is 0 while the condition
            fails.
        says : function of (int) -> str
            Verilog for the statement in the message from a link port, given its number. It is 1 if
            the message makes the statement.
        last : bool
            True if only the last message counts; False if any message counts that has come since
            `while_` became true.

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
        return self.model.add_register(name, f"{{{', '.join(reversed(bits))}}}", self.links)

    def field_from_parent(self, name: str) -> str:
        """Return Verilog for the field `name` of the control message from the parent of the board.

        The boards form a tree with board 0 as its root. They exchange control messages between
        runs; see `LinkPlan.message_layout`.
        """
        field = self.plan.message_layout[name]
        return f"from_above[{field.offset} +: {field.width}]"


def barrier_harness(plan: LinkPlan, design: Design) -> Harness:
    """Return the proof that a board begins a run only with all boards, and with equal choices.

    The choices are mode, length, root and operator. The result is a harness: Verilog around the
    board control, with the claims about it.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions and timing of the links.
    design : Design
        Verilog of all boards.
    """
    board = _BoardModel(plan, design)
    model = board.model
    _claim_arrivals(board)
    _claim_choices(board)
    _claim_start_limits(board)
    counted, bits = board.field_from_parent("count"), plan.message_layout["count"].width
    model.add_wire("is_told", f"hears_above && broken == 0 && {counted} > {plan.too_late_count}")
    model.add_wire("told_count", f"is_told ? {counted} - {plan.message_delay} : 0", bits)
    begins = "steady && $past(waiting && !goes && count == 0)"
    model.add_register(
        "frozen_for",
        f"!frozen ? 0 : frozen_for >= {plan.settle_cycles} ? {plan.settle_cycles} : frozen_for + 1",
        8,
    )
    _claim_tree(board)
    model.claim_all({
        "hears_nobody_of_a_run_that_is_over": "recent == 0 || arrived == 0 || $past(recent) == 0",
        "ignores_messages_of_a_run_that_is_over":
            "!(steady && ($past(dropped) || $past(waiting && !run_start) && !waiting)) || "
            f"recent == {plan.stale_message_cycles}",
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
            f"count == ($past(all_arrived) ? {plan.countdown_cycles} : 0)",
        "counts_as_it_is_told":
            f"!({begins} && $past(!is_root)) || count == $past(told_count)",
        "starts_the_run_or_refuses_it": "run_start == (again || (goes && !refused))",
        "is_frozen_before_it_begins":
            f"!(run_start && goes) || frozen_for >= {plan.settle_cycles}",
        "is_frozen_while_it_counts": "count == 0 || frozen",
        "ends_counting_when_it_begins": "!goes || count == 0",
        "has_frozen_since": f"!waiting || count == 0 || count >= {plan.settle_cycles} || "
                            f"frozen_for + count >= {plan.settle_cycles}",
    })  # fmt: skip
    if plan.hold:
        # While a board waits it is busy, see `agreement_harness`, and so takes no words.
        closed = f"!waiting ? 0 : closed_for >= {plan.hold} ? {plan.hold} : closed_for + 1"
        model.add_register("closed_for", closed, 8)
        model.claim_all({
            "will_have_been_closed":
                f"!waiting || count == 0 || closed_for + count >= {plan.hold}",
            "begins_when_written_words_are_there":
                f"!goes || closed_for >= {plan.hold - 1}",
        })  # fmt: skip
    says = (
        "a board begins a run only if it waits for one, in the cycle that the board above it has "
        f"announced; board 0 starts {plan.countdown_cycles} cycles after all others have "
        "reported that "
        "they wait"
    )
    if plan.start_timeout:
        says += f"; a start waits {plan.start_timeout} cycles at most"
    return replace(model.make_harness(says), name="barrier")


def _claim_arrivals(board: _BoardModel) -> None:
    """Claim that a board reports that it waits only if all boards below have reported the same.

    The boards below are its children in the tree of boards. Reports that the board received before
    its own start do not count.
    """
    heard = board.add_child_statements(
        "have_arrived",
        "waiting",
        lambda link: f"{board.message_field(link, 'arrived')} == 1",
        last=False,
    )
    board.model.claim_all({
        "knows_who_has_arrived": f"(arrived & below & ~{heard}) == 0",
        "says_that_it_waits_when_all_below_do":
            f"!says_arrived || (waiting && (below & ~{heard}) == 0 && broken == 0)",
        "board_0_counts_only_if_all_wait":
            f"!is_root || !waiting || (count == 0 && !goes) || (below & ~{heard}) == 0",
    })  # fmt: skip


def _claim_choices(board: _BoardModel) -> None:
    """Claim that no board begins a run with other choices than its parent in the tree of boards.

    The choices are mode, length, root and operator.
    """
    model, choices = board.model, [*board.plan.choices]
    same_below = board.add_child_statements(
        "same_below",
        "waiting && recent == 0",
        lambda link: _has_equal_choices(board, link),
        last=True,
    )
    same_above = " && ".join(
        [f"{board.field_from_parent('differs')} == 0"]
        + [f"{board.field_from_parent(name)} == run_{name}" for name in choices]
    )
    model.add_register(
        "same_above", f"waiting && (count == 0 ? is_told && {same_above} : same_above)"
    )
    known = f"(below & ~{same_below}) == 0"
    model.add_register("board_0_knew", f"waiting && (count == 0 ? {known} : board_0_knew)")
    model.claim_all({
        "knows_who_differs": f"!waiting || (arrived & below & ~differing & ~{same_below}) == 0",
        "says_that_none_differs_only_if_none_does":
            f"!(says_arrived && count == 0 && !says_differs) || {known}",
        "begins_only_with_the_choices_of_the_board_above":
            "is_root || !waiting || (count == 0 && !goes) || refused || same_above",
        "board_0_begins_only_if_none_differs":
            "!is_root || !waiting || (count == 0 && !goes) || refused || board_0_knew",
        "says_whether_it_refuses": "count == 0 || says_differs == refused",
    } | {f"says_its_{name}": f"says_{name} == run_{name}" for name in choices})  # fmt: skip


def _has_equal_choices(board: _BoardModel, link: int) -> str:
    """Return a condition, in Verilog: the message at link port `link` agrees to the start.

    Such a message says that its sender, and all boards below the sender, wait for a run with the
    same choices (mode, length, ..) as the board in the model.
    """
    same = [f"{board.message_field(link, name)} == run_{name}" for name in board.plan.choices]
    same += [
        f"{board.message_field(link, 'arrived')} == 1",
        f"{board.message_field(link, 'differs')} == 0",
    ]
    return " && ".join(same)


def _claim_start_limits(board: _BoardModel) -> None:
    """Claim that a board gives up a start only for certain reasons, and in time.

    To give up a start is to stop waiting for the other boards. The reasons are a failed link, a
    neighbour that no longer waits, a timeout, or a request of the host. The board is then idle, and
    reports the reason.
    """
    model, plan = board.model, board.plan
    waited = model.add_register("waited", "start && !busy ? 0 : waited + 1", plan.timer_bits)
    board.add_child_statements(
        "those_below_are_unfit",
        "1",
        lambda link: f"{board.message_field(link, 'unfit')} == 1",
        last=True,
    )
    for link in range(board.links):
        says = f"{board.message_field(link, 'waits')} == 1"
        model.add_register(
            f"has_waited_{link}",
            f"waiting && recent == 0 && (heard[{link}] ? {says} : has_waited_{link})",
        )
    links = [*reversed(range(board.links))]
    model.add_wire(
        "have_waited", f"{{{', '.join(f'has_waited_{link}' for link in links)}}}", board.links
    )
    no_more = [
        f"heard[{k}] && has_waited_{k} && {board.message_field(k, 'waits')} == 0" for k in links
    ]
    model.add_wire("no_more", f"{{{', '.join(no_more)}}}", board.links)
    model.add_register(
        "told_to_halt", f"hears_above ? {board.field_from_parent('halt')} : told_to_halt"
    )
    stopped = "steady && $past(waiting && !goes) && !waiting"
    withdrawn = "$past(withdraw)" if model.has_name("withdraw") else "0"
    late = f"$past(timer) == {plan.start_timeout - 1}" if plan.start_timeout else "0"
    model.claim_all({
        "knows_how_long_it_waits": f"timer == {waited}",
        "gives_a_start_up_only_with_reason":
            f"!({stopped}) || $past((unfit || halt) && timer >= {plan.stale_message_cycles}) || "
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


def _claim_tree(board: _BoardModel) -> None:
    """Claim that a board knows which links lead to its parent and its children.

    All boards form a tree with board 0 as its root. The board also knows the board and link port
    that should be at the other end of each link.
    """
    model, boards, links = board.model, board.plan.boards, board.plan.message_layout["link"].width
    bits = links + board.plan.message_layout["board"].width
    above = [1 << link if link >= 0 else 0 for link in boards.parent_links]
    below = [sum(1 << link for link in found) for found in boards.child_links]
    model.claim("knows_who_is_above", f"above == {select_by_value(above, 'board')}")
    model.claim("knows_who_is_below", f"below == {select_by_value(below, 'board')}")
    for link in range(board.links):
        ends = [ends[link].link + (ends[link].board << links) for ends in boards.far_ends]
        model.claim(
            f"knows_who_is_at_link_{link}",
            f"{vector_field('peers', str(link), bits)} == {select_by_value(ends, 'board')}",
        )


def agreement_harness(plan: LinkPlan, design: Design) -> Harness:
    """Return the proof that a board accepts or repeats a run only by agreement with all boards.

    The result is a harness: Verilog around the board control, with the claims about it.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions and timing of the links.
    design : Design
        Verilog of all boards.
    """
    board = _BoardModel(plan, design)
    model = board.model
    # Assumption about the sequencer: it becomes busy only by a start, in the next cycle.
    model.assume("!run_busy || (steady && ($past(run_busy) || $past(run_start)))")
    _claim_timing(board)
    _add_good_boards(board)
    retries = f"attempts <= {plan.retries}"
    model.add_register("was_asked", "start && !busy ? 1 : busy && was_asked")
    model.add_register(
        "must_say",
        f"ends ? verdict != {GOOD} && !(verdict == {BAD} && {retries}) : start && !busy ? 0 : "
        "must_say",
    )
    model.claim_all({
        "knows_what_its_links_lost": f"!(steady && $past(after) == {plan.loss_check_cycles}) || "
                                     "(known && lost_in_run == $past(lost))",
        "knows_nothing_of_a_run_under_way":
            "!known || !(run_busy || was_busy || tried || "
            f"(after != 0 && after <= {plan.loss_check_cycles}))",
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
    return replace(model.make_harness(says), name="agreement")


def _add_good_boards(board: _BoardModel) -> None:
    """Add registers for the results of a run that the board has heard from other boards.

    - ``have_been_good`` has a bit for each child in the tree of boards: 1 if it has ever reported
      `GOOD`, that is, no link lost a word.
    - ``good_below`` has the same bits for the last report of each child alone.
    - ``told_good`` and ``told_bad`` are high if the parent has sent the verdict about all boards:
      no word was lost, or some word was lost.
    """
    model = board.model
    says = lambda link: f"{board.message_field(link, 'settled')} == {GOOD}"
    good = board.add_child_statements("have_been_good", "known", says, last=False)
    told = lambda link: (
        f"{board.message_field(link, 'settled')} == 0 ? good_below[{link}] : {says(link)}"
    )
    board.add_child_statements("good_below", "known", told, last=True)
    model.add_wire("those_below_are_good", "(below & ~good_below) == 0")
    model.add_wire("those_below_were_good", f"(below & ~{good}) == 0")
    verdict = board.field_from_parent("verdict")
    for name, value in (("told_good", GOOD), ("told_bad", BAD)):
        model.add_register(name, f"known && ({name} || (hears_above && {verdict} == {value}))")


def _claim_timing(board: _BoardModel) -> None:
    """Claim that receivers take words in the right cycles, and that boards agree in time.

    They agree, some cycles after the end of a run, on whether any link lost a word.
    """
    model, plan = board.model, board.plan
    agreed = plan.agreement_cycles
    model.add_register(
        "since_end",
        "steady && $past(run_busy) && !run_busy ? 1 : "
        f"since_end == 0 || since_end == {agreed} ? 0 : since_end + 1",
        model.port_width("after"),
    )
    model.claim("knows_that_a_run_has_ended", "was_busy == (steady && $past(run_busy))")
    model.claim("agrees_in_time", f"ends == (since_end == {agreed})")
    model.claim("counts_the_cycles_after_a_run", "after == since_end")
    for name, what in (("due", "running"), ("check_due", "summing")):
        value = what
        for number in range(1, max(plan.latencies) - 1):
            value = model.add_register(f"{what}_{number}", value)
            if number + 2 in plan.latencies:
                model.claim(f"{name}_of_{number + 2}_in_time", f"{name}_{number + 2} == {value}")
