"""Claims about the control: the conditions for begin and end of runs, and its outputs to the nodes.

The *control* is the module that starts runs when all nodes are ready. A *harness* is Verilog around
it, with a model of its surroundings and the *claims*: statements that are proved. The model has one
node, one free signal (which may have any value) for all other nodes, and the readiness tree; see
`torusfabric.adapters.streams.claims.readiness`. It also has a core, which may end a run at any
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder
from ..hardware import LEAD_CYCLES
from .engines import choose_by_form
from .readiness import add_nodes, claim_facts

if TYPE_CHECKING:
    from ....program import Program
    from ....proof.solver import Harness
    from ....verilog.design import Design

__all__ = ["control_harness"]


def control_harness(design: Design, program: Program | None, *, levels: int) -> Harness:
    """Return the proof harness of `StreamControl`, the module that starts runs.

    A harness is Verilog around the module, with the statements to prove about it. Here it also
    stands for the nodes and the core.

    Parameters
    ----------
    design : Design
        The emitted Verilog.
    program : Program or None
        The program, for the claim about the last flit of a block; None to leave out this claim.
    levels : int
        Registers of the readiness tree between nodes and control.
    """
    model = HarnessBuilder(design, "stream_control")
    add_nodes(model, levels)
    _add_core(model)
    _claim_runs(model, round_trip=levels + 1)
    claim_facts(model)
    if model.has_name("last") and program is not None:
        _claim_blocks(model, program)
    return model.make_harness(
        "a run begins only when every node has a good message and room for the result, ends "
        "once, and has the length of all packets; nodes are informed of both, and of dropped "
        "packets",
        cycles=levels + 4,
    )


def _add_core(model: HarnessBuilder) -> None:
    """Add a model of the core to the proof: a run ends `LEAD_CYCLES` after the output `ends`.

    The solver chooses the cycle of `ends`. If a run begins in the last cycle of another, `busy`
    rises one cycle later than usual. The proof of whole runs shows that the real core behaves so.
    """
    model.add_wire("accepted", "start && idle")
    model.add_register("carried_out", "accepted || (carried_out && !ends)")
    for cycle in range(1, LEAD_CYCLES + 1):
        model.add_register(f"ends_{cycle}", "ends" if cycle == 1 else f"ends_{cycle - 1}")
    model.add_register("core_runs", f"accepted || (core_runs && !ends_{LEAD_CYCLES})")
    model.add_register("followed", f"accepted && ends_{LEAD_CYCLES}")
    model.drive_input("busy", "core_runs && !followed")
    model.drive_input("ending", f"ends_{LEAD_CYCLES - 1}")
    model.drive_input("idle", f"!core_runs || ends_{LEAD_CYCLES}")
    stages = " + ".join(
        ["0", "carried_out", *(f"ends_{cycle}" for cycle in range(1, LEAD_CYCLES + 1))]
    )
    model.claim("follows_the_run_of_the_core", f"{stages} == core_runs")
    model.claim("shows_a_run_at_once", "!followed || carried_out")
    model.assume("!ends || carried_out")
    model.assume("!ends || !(steady && $past(run_begins))")


def _claim_runs(model: HarnessBuilder, *, round_trip: int) -> None:
    """Claim that the control begins a run if, and only if, all nodes are ready, and ends it once.

    The control is the module that starts runs. If messages have a fault, it must drop their run:
    report begin and end without starting the core. After the begin of a run, the control has to
    wait `round_trip` cycles, until it knows again which nodes are ready. `model` is the proof
    harness to which the claims are added.
    """
    wrong = "bad != 0"
    if model.has_name("wanted") and model.has_name("last"):
        bits = model.port_width("wanted") - 1
        wrong += f" || (wanted[{bits}] && wanted[{bits - 1}:0] != last)"
    model.add_wire("wrong", wrong)
    model.add_wire("only_waits", "barrier" if model.has_name("barrier") else "1'b0")
    model.add_wire("allowed", "may_begin" if model.has_name("may_begin") else "1'b1")
    heard = f"since == {round_trip}"
    model.add_register("since", f"run_begins ? 0 : {heard} ? since : since + 1", 6)
    model.add_register("begun", "begun + run_begins", 2)
    model.add_register("ended", "ended + run_ends", 2)
    model.add_wire("under_way", "begun != ended")
    claims = {
        "begins_when_every_node_is_ready": f"run_begins == (ready && {heard} && idle && allowed && "
            "((!wrong && !only_waits) || !busy))",
        "knows_when_nodes_are_heard": f"left_to_wait == {round_trip} - since && "
            f"is_open == (idle && {heard})",
        "finds_the_node_ready": "!arrives || node_ready",
        "runs_what_is_good": "accepted == (run_begins && !wrong && !only_waits)",
        "starts_no_other_run": "!start || accepted",
        "drops_what_is_not_run": "drops == (steady && $past(run_begins && (wrong || only_waits)))",
        "ends_what_is_not_run": "over == (steady && $past(drops))",
        "ends_a_run_with_the_core": "run_ends == (ends || over)",
        "begins_after_the_run_before": "!run_begins || !under_way || run_ends",
        "ends_no_run_at_once": "!steady || !$past(run_begins) || !run_ends",
        "is_under_way_until_its_end": "under_way == (carried_out || drops || over)",
        "begins_once": "!steady || !$past(run_begins) || !run_begins",
        "counts_runs": f"section == begun[{model.port_width('section') - 1}:0] && "
                       "2'(begun - ended) < 2",
        "clears_nodes_in_a_reset": "clear == rst",
    }  # fmt: skip
    if model.has_name("run_over"):
        # The claims about `Commands` assume the same.
        model.add_register("running", "running + run_begins - run_over", 2)
        claims |= {
            "ends_runs_that_have_begun": "!run_over || running != 0",
            "is_done_with_a_run_when_the_next_has_begun": "running != 2 || run_over",
            "ends_no_run_that_has_just_begun": "!(steady && $past(run_begins)) || "
            "running == 2 || !run_over",
            "counts_what_runs": "was_busy == (steady && $past(busy)) && "
            "running == core_runs + (was_busy && !busy) + drops + over",
        }
    model.claim_all(claims)


def _claim_blocks(model: HarnessBuilder, program: Program) -> None:
    """Claim that the output `last_flit` of the control is the number of the last flit of a block.

    The control is the module that starts runs. The flits of a packet belong to its blocks in turn,
    in units of `unit` flits. If `last` is the number of the last flit of the packet, and `chunks`
    the number of its blocks, the last flit b of the longest block satisfies ``(b + 1 - unit) *
    chunks <= last < (b + 1) * chunks``. `model` is the proof harness to which the claim is added.
    """
    form, last, sampled = "0", "last", "start"
    if len(program.forms) > 1:
        # The form is known a cycle after the start.
        form, last, sampled = "last_entry", "$past(last)", "(steady && $past(start))"
        model.assume(f"last_entry < {len(program.forms)}")
    following, ends = f"{model.port_width('last') + 10}'(last_flit + 1)", []
    for each in program.forms:
        chunks, unit = each.schedule.chunks, each.block_unit_flits
        end = (
            f"(({following} - {unit}) * {chunks} <= {last} && {following} * {chunks} > {last} && "
            f"(last_flit + 1) % {unit} == 0)"
        )
        ends.append("last_flit == 0" if each.loop.padded else end)
    right = f"!{sampled} || {last} >= {program.flits} || {choose_by_form(ends, form)}"
    model.claim("gives_the_core_the_last_flit_of_a_block", right)
