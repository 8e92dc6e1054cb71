"""The choice of forms for a range of lengths, and of plans for any root."""

import json

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.planning import (
    make_selection,
    plan_any_root,
    plan_selection,
    resolve,
    resolve_forms,
)
from torusfabric.planning.forms import ONE_FORM, SEVERAL_FORMS, choose_forms_greedily
from torusfabric.program.counts import estimate_joint_luts, estimate_luts, estimate_parts
from torusfabric.schedule import Lifted


def chosen(network, collective, most, root=None):
    """Return the algorithm and the number of chunks of each form."""
    forms = resolve_forms(make_selection(network, collective), most, root=root)
    return [(form.algorithm.name, form.planned.chunks) for form in forms]


def test_a_form_pays_for_its_tables():
    """A form is built if each percent of saved cycles costs at most 20 percent more tables."""

    def forms(saved, more):
        cycles = {(0,): 1.0, (1,): 2.0, (0, 1): 1 - saved}
        luts = {(0,): 1000, (1,): 1000, (0, 1): round(1000 * (1 + more))}
        return choose_forms_greedily(
            lambda each: cycles[tuple(each)], lambda each: luts[tuple(each)], 2
        )

    assert forms(0.02, 0.3) == [0, 1]
    assert forms(0.02, 0.6) == [0]
    assert forms(0.0, 0.0) == [0]
    assert SEVERAL_FORMS.rate == 20
    assert ONE_FORM.rate == 1


def test_small_gains_are_left_out():
    """Forms that save cycles for a few lengths only, or delay every run, are left out."""
    assert chosen("8x8", "reduce", 64, root="any") == [("matching", 64)]
    assert chosen("8x8", "allreduce", 64) == [("spanning-tree", 2)]
    assert chosen("4x4", "allgather", 64) == [("bufferless", 1), ("matching", 4)]
    assert chosen("9", "broadcast", 64) == [("spanning-tree", 1), ("spanning-tree", 2)]


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "broadcast", "reduce-scatter"])
@pytest.mark.parametrize("most", [64, 200])
def test_mean_cycles_are_near_those_of_all_forms(collective, most):
    """The mean over all lengths is less than 5 % above the mean of a program with all forms."""

    def cycles(forms):
        plans = tf.plan_forms("4x4", collective, max_flits=most, forms=forms, check=False)
        program = tf.compile([plans], max_flits=most)
        return [program.cycles(flits) for flits in range(1, most + 1)]

    ratios = [one / other for one, other in zip(cycles("auto"), cycles("all"), strict=True)]
    assert sum(ratios) / most < 1.05


def test_there_is_no_cliff():
    """One flit more raises the estimated number of LUTs by at most 20 %."""

    def luts(most):
        plans = tf.plan_forms("8x8", "allreduce", max_flits=most, check=False)
        return estimate_luts(tf.compile([plans], max_flits=most))

    assert luts(64) <= 1.2 * luts(63)


def test_forms_share_memories_and_pay_for_their_choice():
    """Forms of one program share memories; the estimate adds the LUTs that select a form."""
    plans = [tf.plan("4x4", "allgather", algorithm=name) for name in ("matching", "bufferless")]
    programs = [tf.compile(plan, max_flits=64) for plan in plans]
    parts = [estimate_parts(program) for program in programs]
    assert [estimate_joint_luts([part]) for part in parts] == [*map(estimate_luts, programs)]
    assert max(map(estimate_luts, programs)) < estimate_joint_luts(parts)
    assert estimate_joint_luts(parts) < sum(map(estimate_luts, programs))


def test_the_choice_is_said(capsys, tmp_path):
    """The report names the chosen forms, their gain, the forms left out, and `--forms all`."""
    for collective, words in {
        "allgather": ["bufferless in 1 chunk and matching in 4 chunks", "saves", "% more LUTs"],
        "reduce-scatter": ["without necklace", "of the cycles for", "--forms all builds more"],
    }.items():
        command = ["verilog", "4x4", collective, "--max-flits", "64", "--json"]
        assert main([*command, "-o", str(tmp_path / collective)]) == 0
        why = json.loads(capsys.readouterr().out)["why"]
        assert all(word in why for word in words), why


def test_synthesis_says_the_choice_first(capsys, monkeypatch):
    """`synth` prints the choice of forms before it starts synthesis."""

    def stop(*_, **__):
        raise tf.InputError("stopped")

    monkeypatch.setattr("torusfabric.fpga.synthesis.synthesize.synthesize", stop)
    command = ["synth", "3x3", "reduce-scatter", "--width", "8", "--max-flits", "64"]
    assert main([*command, "--target", "ecp5-25k"]) == 1
    assert "Forms of reduce-scatter: matching in 1 chunk, " in capsys.readouterr().err


def form(schedule):
    """Return the form of a schedule, or of the part that a lifted schedule repeats."""
    return schedule.part.form if isinstance(schedule, Lifted) else schedule.form


@pytest.mark.parametrize("flits", [1, 16])
@pytest.mark.parametrize(
    "collective", few(2, ["scatter", "gather", "reduce", "reduce@1"], tuples=True)
)
@pytest.mark.parametrize("topology", ["2x3", "4x4"])
def test_the_quicker_is_chosen(topology, collective, flits):
    """A plan for any root is no slower than the plan for one root, and no larger at equal speed."""

    def price(schedule):
        program = tf.compile(schedule, flits=flits, root="any")
        return program.cycles(), estimate_luts(program)

    selection, schedule = plan_any_root(make_selection(topology, collective), flits=flits)
    assert schedule.algorithm == selection.algorithm.name
    assert schedule.collective == selection.collective
    tf.check(schedule)
    chosen = resolve(make_selection(topology, collective), flits=flits, root="any")
    rooted = plan_selection(chosen)
    assert price(schedule) <= price(rooted)
    if form(schedule) != "masked":
        assert schedule.digest == rooted.digest


def test_both_are_chosen():
    """Each form of plan is chosen somewhere: masked, rounds and pattern."""
    assert form(plan_any_root(make_selection("4x4", "reduce@0"), flits=16)[1]) == "masked"
    assert form(plan_any_root(make_selection("4x4", "reduce"), flits=1)[1]) == "rounds"
    assert form(plan_any_root(make_selection("4x4", "broadcast"))[1]) == "pattern"


def test_a_named_algorithm_is_kept():
    """A named algorithm restricts the choice, and the chosen selection has its name."""
    by_flow = make_selection("4x4", "reduce", algorithm="max-flow")
    assert plan_any_root(by_flow, flits=16)[1].algorithm == "max-flow"
    by_table = make_selection("4x4", "reduce", algorithm="matching")
    assert form(plan_any_root(by_table, flits=1)[1]) == "masked"
    with pytest.raises(tf.InputError, match=r"^Algorithm bufferless"):
        plan_any_root(make_selection("4x4", "scatter", algorithm="bufferless"))
