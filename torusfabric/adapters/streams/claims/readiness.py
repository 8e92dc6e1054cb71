"""Claims about the readiness tree and the crossings, and a model of the nodes for the control.

The *readiness tree* combines the states of all nodes for the *control*, which starts runs; a
*crossing* is a queue between two clocks. A *harness* is Verilog around one module, with the claims
about it. A *free* signal may have any value in each cycle.

The model of the nodes (`add_nodes`) is for `torusfabric.adapters.streams.claims.control`. It has
one node with free outputs, which stands for any node, and one free signal for all others together.
The only assumption is that the node stays ready until a run begins at the node. The tree is a delay
of `levels` cycles. A run begins at the nodes one cycle later than at the control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder, earlier_value, vector_field
from ....rtl.run_choices import RunError

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design

__all__ = ["add_nodes", "claim_facts", "crossing_harness", "tree_harness"]


def add_nodes(model: HarnessBuilder, levels: int) -> None:
    """Add a model of all nodes to the proof harness of the control, which starts runs.

    One node has outputs that the solver chooses, and stands for any node. One further signal stands
    for all others together. The readiness tree between nodes and control is a delay of `levels`
    cycles.
    """
    model.add_register("arrives", "run_begins")
    model.add_free_value("node_ready")
    model.add_free_value("others_ready")
    model.drive_input("ready", earlier_value("node_ready && others_ready", levels))
    for name, bits in (("bad", 2), ("last", model.port_width("last"))):
        if bits:
            model.add_free_value(f"node_{name}", bits)
            model.add_free_value(f"others_{name}", bits)
    # A node is reset one cycle after the control; its outputs are arbitrary before.
    model.add_wire("stays_ready", "steady && $past(steady && !rst && node_ready && !arrives)")
    model.assume("!stays_ready || node_ready")
    model.assume("!stays_ready || node_bad == $past(node_bad)")
    bad = "node_bad | others_bad"
    if model.has_name("last"):
        model.add_constant_value("node_sends")
        model.assume("!stays_ready || node_last == $past(node_last)")
        bad += " | (node_sends && node_last != others_last)"
        model.drive_input("last", earlier_value("others_last", levels))
    shown = earlier_value(bad, levels)
    model.drive_input("bad", shown)
    model.drive_input("good", f"{shown} == 0")


def _stays_in_others(sections: Iterable[int], stays: Callable[[str], str]) -> str:
    """Return a Verilog condition: a run that begins changes nothing in the sections of other runs.

    A section is one of some equal parts of each memory, used by runs in turn. `stays` returns, for
    the number of a section, a condition that its value is unchanged. `sections` has the numbers of
    all sections.
    """
    kept = (f"($past(section) == {k} || {stays(str(k))})" for k in sections)
    return f"!steady || ({' && '.join(kept)})"


def claim_facts(model: HarnessBuilder) -> None:
    """Claim that the control reports each run rightly, by `error`, `run_empty` and `run_last`.

    From one cycle after the begin of a run, these outputs say why it was dropped, if it was
    dropped, and the number of the last flit of its packets. `run_empty` and `run_last` have a field
    for each section of the memories, which keeps its value until the next run in this section
    begins. `model` is the proof harness to which the claims are added.
    """
    sections, bits = range(model.port_width("run_empty")), model.port_width("last")
    destination, packets = RunError.DESTINATION, RunError.PACKETS
    kind = f"(bad[1] ? {int(destination)} : {int(packets)})"
    model.add_wire("error_of_run", f"wrong ? {kind} : 0", 4)
    begins = "steady && $past(run_begins)"
    model.claim_all({
        "reports_the_right_error":
            "!steady || error == $past(run_begins ? error_of_run : error)",
        "says_what_is_empty": f"!({begins}) || run_empty[$past(section)] == $past(wrong)",
        "keeps_what_was_empty":
            _stays_in_others(sections, lambda k: f"run_empty[{k}] == $past(run_empty[{k}])"),
        "keeps_the_last": "!steady || $past(run_begins) || run_empty == $past(run_empty)",
        "drops_what_a_node_calls_bad": f"!({begins}) || $past(wrong) || node_bad == 0",
    })  # fmt: skip
    if model.has_name("last"):
        model.claim_all({
            "all_packets_have_the_length":
                f"!({begins}) || $past(wrong) || !node_sends || "
                f"{vector_field('run_last', '$past(section)', bits)} == node_last",
            "keeps_the_lengths":
                _stays_in_others(sections, lambda k: f"{vector_field('run_last', k, bits)} == "
                                               f"$past({vector_field('run_last', k, bits)})"),
            "keeps_the_last_length": "!steady || $past(run_begins) || run_last == $past(run_last)",
        })  # fmt: skip


def tree_harness(design: Design, name: str) -> Harness:
    """Return the proof harness of one module of the readiness tree, which combines states of nodes.

    The claims say that its outputs are the combination of its inputs, one cycle later.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    name : str
        Name of the module, such as ``readiness_8``.
    """
    model = HarnessBuilder(design, name)
    inputs, bits = model.port_width("bad") // 2, model.port_width("any_length")
    if model.has_name("good"):
        for k in range(inputs):
            model.assume(f"{model.port_word('good', k, 1)} == (bad[{2 * k + 1}:{2 * k}] == 0)")
    sends = [model.port_word("sends", k, 1, ago=1) if model.has_name("sends") else "1'b1"
             for k in range(inputs)]  # fmt: skip
    lengths = [model.port_word("length", k, bits, ago=1) for k in range(inputs if bits else 0)]
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
        if model.has_name("sends"):
            model.claim("shows_who_sends", f"!steady || any_sends == ({' || '.join(sends)})")
    model.claim_all({
        "ready_if_all_are": "all_ready == &$past(ready)",
        "shows_that_none_is_bad": "!steady || none_bad == (any_bad == 0)",
        "shows_bad_lengths": f"!steady || any_bad[0] == ({wrong[0]})",
        "shows_bad_destinations": f"!steady || any_bad[1] == ({wrong[1]})",
    })  # fmt: skip
    return model.make_harness(
        "the output combines the reports of all nodes below, one cycle later", cycles=2
    )


#: Counters of a queue.
POINTERS = ("written", "fetched")

#: Resets of the two sides of a queue.
RESETS = ("node_reset_node_resets", "sync_reset_sync_resets")


def crossing_harness(design: Design, name: str) -> Harness:
    """Return the proof harness of a queue between two clocks, with claims about its counters.

    The claims say that a counter which the other clock reads changes one bit at a time.

    The proof has one clock for all registers. This suffices, because each counter is in one clock
    domain, and the inputs that move it are free.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    name : str
        Name of the module, such as ``s_axis_crossing``.

    Examples
    --------
    There are two claims for each of the two counters of the queue.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2", "allgather"))
    >>> fabric = tf.Fabric(program, width=2, top="stream", clocks="per-node")
    >>> crossing_harness(tf.emit(fabric), "s_axis_crossing").properties
    4
    """
    model = HarnessBuilder(design, name)
    model.drive_input("node_clk", "clk")
    model.drive_input("node_rst", "rst")
    for each in POINTERS:
        bits = model.port_width(each)
        changed = model.add_wire(f"{each}_changed", f"{each}_gray ^ $past({each}_gray)", bits)
        model.claim(f"{each}_is_in_gray_code", f"{each}_gray == ({each} ^ ({each} >> 1))")
        one = f"$past({' || '.join(['rst', *RESETS])}) || !({changed} & ({changed} - 1'd1))"
        model.claim(f"one_bit_of_{each}_changes", one)
    return model.make_harness(
        "counters that the other clock reads change one bit at a time", cycles=2
    )
