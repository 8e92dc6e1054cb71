"""What is proved of what goes over a link: words, and a sum behind them, which `crc` compares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...rtl.boards.link_plan import CRC_BITS
from ...rtl.boards.symbols import Frame
from ..model import Model

if TYPE_CHECKING:
    from ...rtl.boards import LinkPlan
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["received_sum_harness", "sent_sum_harness"]


def sent_sum_harness(plan: LinkPlan, design: Design) -> Harness:
    """What a transmitter sends: the words, and behind them their CRC-32."""
    model = Model(design, "transmitter", shows=("crc", "word", "rest"), resets=False)
    width = plan.width
    low, bits, told = min(width, CRC_BITS), plan.message_words * width, "{message, link}"
    rest = f"($past(begins) ? {bits}'($past({told})) : $past(rest))"
    frame = (
        f"($past(checking) ? {int(Frame.CHECK)} : $past(running) ? {int(Frame.RUN)} : "
        f"{int(Frame.MESSAGE)})"
    )
    model.claims({
        "sends_words_and_then_their_sum":
            f"tx_word == ($past(checking) ? $past(crc[{low - 1}:0]) : $past(word))",
        "sends_the_word_of_the_run": "!running || word == sent",
        "keeps_the_rest_of_a_message": f"rest == {rest} >> {width}",
        "sends_the_words_of_a_message":
            f"running || word == {width}'(begins ? {bits}'({told}) : rest)",
        "says_what_it_sends": f"$past(rst) || tx_frame == {frame}",
    })  # fmt: skip
    return model.harness("words of a run, or of a message, go out, and behind them their sum")


def received_sum_harness(plan: LinkPlan, latency: int, design: Design) -> Harness:
    """What a receiver makes of what has been sent: it notices where the sum is another."""
    shows = ("crc", "fresh", "frame", "held", "wrong", "was_wrong", "checks_left", "lost_now",
             "was_due", "was_check_due", "of_message", "take")  # fmt: skip
    model, width = Model(design, f"receiver_{latency}", shows=shows), plan.width
    low = min(width, CRC_BITS)
    check = f"(frame == {int(Frame.CHECK)})"
    bad = (f"$past((was_due && frame != {int(Frame.RUN)}) || "
           f"(was_check_due && (!{check} || wrong)))")  # fmt: skip
    unequal = f"received{f'[{low - 1}:0]' if width > 1 else ''} != crc[{low - 1}:0]"
    bits, peer = plan.message_words * width, model.width("peer")
    if not model.has("held"):  # where a message is all that it holds
        model.wire("held", "said", bits)
    model.claims({
        "holds_the_words_of_a_message":
            f"!steady || held == ($past(fresh && !{check}) ? "
            f"{bits}'({{$past(received), $past(held)}} >> {width}) : $past(held))",
        "says_what_it_holds": f"said == held[{plan.message_bits - 1}:0]",
        "sees_that_a_word_of_it_is_another": f"wrong == (was_wrong || {unequal})",
        "remembers_that_one_was": "!(steady && $past(fresh)) || was_wrong == "
                                  f"$past({check} && wrong)",
        "hears_nothing_with_another_sum":
            f"!(heard || strange) || ({check} && !wrong && of_message && checks_left == 0)",
        "hears_when_the_last_word_is_taken": "!steady || !(heard || strange) || $past(take)",
        "hears_its_peer_alone": f"!(heard && strange) && (!heard || said[{peer - 1}:0] == peer)",
        "knows_what_was_due":
            "!steady || (was_due == $past(due) && was_check_due == $past(check_due))",
        "says_what_is_lost": "!steady || lost == "
                             f"($past(frozen) && ($past(lost || lost_now) || {bad}))",
    })  # fmt: skip
    says = "a packet counts only if the sum behind it is that of its words; else it is lost"
    return replace(model.harness(says), name=f"sums of receiver_{latency}")
