"""What is claimed of the control of streams, of the tree that tells it of nodes, and of queues.

A node is any node: what it says of itself is free, but it stays ready until a run begins there. All
other nodes are one free signal. The tree is so many registers deep, and a run begins at the nodes
a cycle later than at the control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ....proof.model import Model, earlier, within
from ....rtl.run_choices import RunError

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design

__all__ = ["add_nodes", "claim_facts", "control_harness", "crossing_harness", "tree_harness"]


def control_harness(design: Design, *, levels: int) -> Harness:
    """The harness around the control of streams, so many registers above the nodes."""
    model = Model(design, "stream_control")
    add_nodes(model, levels)
    _add_sequencer(model)
    model.register("begun", "begun + run_begins", 2)
    model.register("ended", "ended + run_ends", 2)
    model.wire("under_way", "begun != ended")
    _claim_runs(model)
    claim_facts(model)
    if model.has("length"):
        length = f"length == {model.width('length')}'(last + 1)"
        model.claim("length_is_that_of_packets", length)
    return model.harness(
        "a run begins only when every node has a good message and room, ends once, and says of "
        "what length it is, or what was wrong",
        cycles=levels + 4,
    )


def add_nodes(model: Model, levels: int) -> None:
    """Add a node, the others, and the tree."""
    model.register("arrives", "run_begins")
    model.free("node_ready")
    model.free("others_ready")
    model.drive("ready", earlier("node_ready && others_ready", levels))
    for name, bits in (("bad", 2), ("last", model.width("last"))):
        if bits:
            model.free(f"node_{name}", bits)
            model.free(f"others_{name}", bits)
    # A node is reset a cycle after the control, and may say anything before.
    model.wire("stays_ready", "steady && $past(steady && !rst && node_ready && !arrives)")
    model.assume("!stays_ready || node_ready")
    model.assume("!stays_ready || node_bad == $past(node_bad)")
    bad = "node_bad | others_bad"
    if model.has("last"):
        model.fixed("node_sends")
        model.assume("!stays_ready || node_last == $past(node_last)")
        bad += " | (node_sends && node_last != others_last)"
        model.drive("last", earlier("others_last", levels))
    shown = earlier(bad, levels)
    model.drive("bad", shown)
    model.drive("good", f"{shown} == 0")


def _add_sequencer(model: Model) -> None:
    """The sequencer tells the end of a run that it carries out once, and is idle only then."""
    model.free("told")
    model.wire("accepted", "start && rests")
    model.register("rests", "(rests || ending) && !accepted")
    model.drive("idle", "rests")
    model.register("carried_out", "accepted || (carried_out && !told)")
    model.assume("!told || carried_out")
    model.assume("!(rests || ending) || !carried_out || told")
    model.wire("run_ends", "told || over")


def _claim_runs(model: Model) -> None:
    """When runs begin and end."""
    wrong = "bad != 0"
    if model.has("wanted") and model.has("last"):
        wrong += " || (wanted != 0 && wanted != length)"
    model.wire("wrong", wrong)
    model.wire("only_waits", "barrier" if model.has("barrier") else "1'b0")
    model.wire("allowed", "may_begin" if model.has("may_begin") else "1'b1")
    model.assume("!told || !(steady && $past(run_begins))")
    model.claims({
        "begins_when_every_node_is_ready": "!run_begins || (ready && idle && allowed)",
        "finds_the_node_ready": "!arrives || node_ready",
        "runs_what_is_good": "accepted == (run_begins && !wrong && !only_waits)",
        "drops_what_is_not_run": "drops == (steady && $past(run_begins && (wrong || only_waits)))",
        "ends_what_is_not_run": "over == (steady && $past(drops))",
        "begins_after_the_run_before": "!run_begins || !under_way || run_ends",
        "ends_no_run_at_once": "!steady || !$past(run_begins) || !run_ends",
        "is_under_way_until_its_end": "under_way == (carried_out || drops || over)",
        "begins_once": "!steady || !$past(run_begins) || !run_begins",
        "counts_runs": f"section == begun[{model.width('section') - 1}:0] && "
                       "2'(begun - ended) < 2",
    })  # fmt: skip


def _in_others(sections: Iterable[int], stays: Callable[[str], str]) -> str:
    """That something stays of each section but that of the run before this cycle."""
    kept = (f"($past(section) == {k} || {stays(str(k))})" for k in sections)
    return f"!steady || ({' && '.join(kept)})"


def claim_facts(model: Model) -> None:
    """Claim what is said of a run that has begun, until the next one in its section."""
    sections, bits = range(model.width("run_empty")), model.width("last")
    destination, packets = RunError.DESTINATION, RunError.PACKETS
    kind = f"(bad[1] ? {int(destination)} : {int(packets)})"
    model.wire("error_of_run", f"wrong ? {kind} : 0", 4)
    begins = "steady && $past(run_begins)"
    model.claims({
        "reports_the_right_error":
            "!steady || error == $past(run_begins ? error_of_run : error)",
        "says_what_is_empty": f"!({begins}) || run_empty[$past(section)] == $past(wrong)",
        "keeps_what_was_empty":
            _in_others(sections, lambda k: f"run_empty[{k}] == $past(run_empty[{k}])"),
        "keeps_the_last": "!steady || $past(run_begins) || run_empty == $past(run_empty)",
        "drops_what_a_node_calls_bad": f"!({begins}) || $past(wrong) || node_bad == 0",
    })  # fmt: skip
    if model.has("last"):
        model.claims({
            "all_packets_have_the_length":
                f"!({begins}) || $past(wrong) || !node_sends || "
                f"{within('run_last', '$past(section)', bits)} == node_last",
            "keeps_the_lengths":
                _in_others(sections, lambda k: f"{within('run_last', k, bits)} == "
                                               f"$past({within('run_last', k, bits)})"),
            "keeps_the_last_length": "!steady || $past(run_begins) || run_last == $past(run_last)",
        })  # fmt: skip


def tree_harness(design: Design, name: str) -> Harness:
    """The harness around a node of the tree: it shows a cycle later what all below say together."""
    model = Model(design, name)
    inputs, bits = model.width("bad") // 2, model.width("any_length")
    if model.has("good"):
        for k in range(inputs):
            model.assume(f"{model.word('good', k, 1)} == (bad[{2 * k + 1}:{2 * k}] == 0)")
    sends = [model.word("sends", k, 1, ago=1) if model.has("sends") else "1'b1"
             for k in range(inputs)]  # fmt: skip
    lengths = [model.word("length", k, bits, ago=1) for k in range(inputs if bits else 0)]
    wrong = ["|".join(f"$past(bad)[{2 * k + bit}]" for k in range(inputs)) for bit in (0, 1)]
    if bits:
        differs = [
            f"({sends[a]} && {sends[b]} && {lengths[a]} != {lengths[b]})"
            for a in range(inputs)
            for b in range(a)
        ]
        wrong[0] = " || ".join([wrong[0], *differs])
        for k in range(inputs):
            model.claim(
                f"shows_the_length_of_{k}",
                f"!steady || any_bad[0] || !{sends[k]} || any_length == {lengths[k]}",
            )
        if model.has("sends"):
            model.claim("shows_who_sends", f"!steady || any_sends == ({' || '.join(sends)})")
    model.claims({
        "ready_if_all_are": "all_ready == &$past(ready)",
        "shows_that_none_is_bad": "!steady || none_bad == (any_bad == 0)",
        "shows_bad_lengths": f"!steady || any_bad[0] == ({wrong[0]})",
        "shows_bad_destinations": f"!steady || any_bad[1] == ({wrong[1]})",
    })  # fmt: skip
    return model.harness("it shows a cycle later what all below say together", cycles=2)


#: The counters of a queue.
POINTERS = ("written", "fetched")

#: The resets of its two sides, which set the counters back.
RESETS = ("node_reset_node_resets", "sync_reset_sync_resets")


def crossing_harness(design: Design, name: str) -> Harness:
    """Of the counters that another clock reads one bit changes at a time, if any.

    Every counter is in one clock, and the two inputs that move it may do anything. So it does not
    matter that a proof has one clock for all registers.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2", "allgather"))
    >>> fabric = tf.Fabric(program, width=2, top="stream", clocks="per-node")
    >>> crossing_harness(tf.emit(fabric), "s_axis_crossing").properties
    4
    """
    model = Model(design, name)
    model.drive("node_clk", "clk")
    model.drive("node_rst", "rst")
    for each in POINTERS:
        bits = model.width(each)
        changed = model.wire(f"{each}_changed", f"{each}_gray ^ $past({each}_gray)", bits)
        model.claim(f"{each}_is_in_gray_code", f"{each}_gray == ({each} ^ ({each} >> 1))")
        one = f"$past({' || '.join(['rst', *RESETS])}) || !({changed} & ({changed} - 1'd1))"
        model.claim(f"one_bit_of_{each}_changes", one)
    return model.harness("of the counters that the other clock reads, one bit changes at a time",
                         cycles=2)  # fmt: skip
