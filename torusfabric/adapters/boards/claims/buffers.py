"""Proof of elastic buffers: each word of a run is taken in its cycle, for all admissible clocks.

The write side and the read side have different clocks, so each side is proved in its own clock.
The model of the read side represents the sender's clock by a free input ``more``: the number of
words written in a cycle of the receiver, 0 to 2. The register ``apart`` is the number of words of
the run that have been written, minus the cycles of the run that have passed at the receiver. An
assumption bounds ``apart`` by the skew and the drift of the link plan. The model contains only such
differences, so the proof holds for runs of any length. A *harness* is Verilog around one module,
with the model and the claims about it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder
from ....rtl.memories import address_width
from ..hardware.link_plan import CABLE_CYCLES, SPARE_WORDS
from ..hardware.links import SKIP_LEVEL, WordType

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..hardware import LinkPlan

__all__ = ["buffer_harness", "receiver_harness"]

#: Cycles after which the initial contents of the synchronizer have no effect any more.
SETTLE_CYCLES = 7

#: Least cycles from a word at an out-port to its write into the buffer at the other end.
LEAST_WRITE_CYCLES = 1.5


def buffer_harness(plan: LinkPlan, latency: int, design: Design) -> Harness:
    """Return the proof of the write side of an elastic buffer: it stores and counts every word.

    An elastic buffer is a queue between the clocks of two boards. One word arrives in each cycle.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions of the links.
    latency : int
        Latency of the link, in cycles.
    design : Design
        Verilog of all boards.
    """
    model = HarnessBuilder(design, f"buffer_{latency}", resets=False)
    bits = address_width(plan.buffer_depth(latency))
    resets, there = "rst || $past(rst)", f"$past(written[{bits - 1}:0])"
    model.claim_all({
        "one_more_in_each_cycle": f"{resets} || written == {bits + 1}'($past(written) + 1)",
        "count_is_its_gray_code": f"{resets} || count == (written ^ (written >> 1))",
        "the_word_is_where_it_was_counted":
            f"{resets} || at != {there} || head == $past({{rx_frame, rx_word}})",
        "others_stay": f"{resets} || at != $past(at) || at == {there} || head == $past(head)",
    })  # fmt: skip
    return model.make_harness(
        "the elastic buffer writes every arriving word behind the one before, and counts it"
    )


def receiver_harness(plan: LinkPlan, latency: int, design: Design) -> Harness:
    """Return the proof of a receiver: it takes each word of a run in the right cycle.

    The receiver is the read side of an elastic buffer, a queue between the clocks of two boards.
    The proof holds for all clocks within the limits of the plan.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions of the links.
    latency : int
        Latency of the link, in cycles.
    design : Design
        Verilog of all boards.
    """
    model = HarnessBuilder(design, f"receiver_{latency}")
    bits, depth = address_width(plan.buffer_depth(latency)) + 1, plan.buffer_depth(latency)
    apart = plan.start_skew + plan.drift_words
    least = 1 - (math.ceil(LEAST_WRITE_CYCLES + CABLE_CYCLES + plan.phy.most + apart) - 1)
    most = 1 + math.ceil(apart - LEAST_WRITE_CYCLES - plan.phy.least)
    far = 1 << max(plan.settle_cycles + 2, depth + latency).bit_length()
    _add_clocks(model, bits, least, most, far)
    frozen = f"(cycle >= {-plan.settle_cycles})"
    model.assume(f"!{frozen} || frozen")
    model.assume("!(steady && $past(frozen) && !$past(ends)) || frozen")
    model.assume(f"frozen == 0 || (cycle != {-far} && settled == {SETTLE_CYCLES})")
    model.assume(f"!ends || cycle == {far}")
    due = f"(cycle >= {latency - 2})"
    model.drive_input("due", due)
    model.drive_input("check_due", "1'b0")
    # `held`: words in the buffer. `next`: index in the run of the next word, negative before it.
    held = model.add_wire("held", f"{bits}'(written - taken)", bits)
    model.add_wire("ahead", f"apart - $signed({{1'b0, {held}}})", NUMBER_BITS, signed=True)
    model.add_wire("next", "cycle + ahead", NUMBER_BITS, signed=True)
    run = f"(next >= 0 ? {int(WordType.RUN)} : {int(WordType.MESSAGE)})"
    model.drive_input("head", f"{{2'({run}), word}}")
    model.add_free_value("word", plan.width)
    known = f"settled != {SETTLE_CYCLES} || "
    model.claim_all(
        {
            "cycles_are_counted_that_far": f"since <= {2 * far}",
            "never_more_than_its_room": f"{known} held <= {depth}",
            "never_too_full": f"{known} fill <= {depth - SPARE_WORDS}",
            "few_between_runs": f"{known} frozen || fill <= {SKIP_LEVEL}",
            "not_late": f"{known} {due} || next >= 0 || ahead >= {least - 4}",
            "no_other_word_waits": f"{known} next >= 0 || take == (fill != 0)",
            "a_word_of_a_run_waits": f"{known} !frozen || {due} || next <= 0",
            "never_empty_when_due": f"{known} !{due} || fill != 0",
            "the_word_that_is_due_is_next": f"{known} !{due} || ahead == {2 - latency}",
            "nothing_is_lost": f"{known} !frozen || !lost_now",
        }
    )
    was_due = f"$past(!rst && settled == {SETTLE_CYCLES} && {due})"
    model.claim("what_is_taken_is_of_the_run", f"!{was_due} || frame == {int(WordType.RUN)}")
    says = (
        f"for clocks within {plan.ppm:g} ppm the elastic buffer never runs empty or full, and "
        f"each word of a run is read in its cycle ({least} to {most} words ahead of the run)"
    )
    return replace(model.make_harness(says, cycles=5), name=f"elastic buffer of {latency} cycles")


#: Bits of numbers in the model.
NUMBER_BITS = 12


def _add_clocks(model: HarnessBuilder, bits: int, least: int, most: int, far: int) -> None:
    """Add the clock of the sending board to the proof model of a receiver.

    The model advances with the receiver's clock. The number of words that arrive in one of its
    cycles, 0 to 2, is a free input, as it depends on the sender's clock. `model` is the harness
    that gets:

    - ``cycle``: number of the receiver's cycle, from -`far` to `far`; a run begins at 0.
    - ``apart``: words of the run that have arrived, less the cycles of the run. It is assumed to
      lie between `least` and `most`.
    - ``ends``: free input that ends the run; ``apart`` then gets any new value.

    `bits` is the width of the count of arrived words.
    """
    more = model.add_free_value("more", 2)
    begins, ends = model.add_free_value("begins_soon"), model.add_free_value("ends")
    model.add_free_value("anew", NUMBER_BITS)
    model.assume(f"{more} != 3")
    model.add_register("written", f"written + {more}", bits)
    model.add_wire("gray", "written ^ (written >> 1)", bits)
    model.drive_input("count", "gray")
    model.add_register(
        "since",
        f"{ends} || (since == 0 && !{begins}) ? 0 : since == {2 * far} ? since : since + 1",
        NUMBER_BITS,
    )
    model.add_wire("cycle", f"$signed(since) - {far}", NUMBER_BITS, signed=True)
    model.add_register("apart", f"{ends} ? $signed(anew) : apart + $signed({{1'b0, {more}}}) - 1",
                   NUMBER_BITS, signed=True)  # fmt: skip
    model.assume(f"apart >= {least} && apart <= {most}")
    model.add_register(
        "settled", f"{ends} ? 0 : settled == {SETTLE_CYCLES} ? settled : settled + 1", 3
    )
