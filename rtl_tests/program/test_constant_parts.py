"""The constant cycles of a run: their parts add up for every collective."""

import json
import re

import pytest
from helpers import program_of

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.program.timing import SETTING

COLLECTIVES = ("broadcast", "allgather", "scatter", "gather", "alltoall", "reduce",
               "reduce-scatter", "allreduce")  # fmt: skip


def parts_of(program):
    """Return the parts of the constant, checked to be all cycles that the formula omits."""
    cost, timing = program.form.cost, program.timing
    assert sum(timing.drain_cycles_by_purpose.values()) == timing.drain_cycles
    assert min(cycles for name, cycles in cost.constant_parts.items() if name != "waits") >= 0
    assert sum(cost.constant_parts.values()) == cost.constant_cycles
    assert cost.constant_cycles + program.form.moving.cycles == program.cycles()
    return cost.constant_parts


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("topology", ["4x4", "3x3", "2x3", "5"])
def test_parts_are_all_cycles(topology, collective):
    """The parts add up for fixed lengths, for any length, and in an engine."""
    for flits in (1, 5, 60):
        plan = tf.plan(topology, collective)
        program = tf.compile(plan, flits=flits)
        parts = parts_of(program)
        assert plan.collective.reducing or not parts["operators"] + parts["waits"]
        step = not program.form.moving.hop_cycles
        assert (parts["hop"], parts["write"]) == (int(step), int(step))
        assert (parts["sequencer"], parts["distribution"]) == (1, 2)
        open_ended = tf.compile(plan, max_flits=flits)
        assert parts_of(open_ended)["start"] >= 1
        several = tf.compile([plan, tf.plan(topology, "allgather")], max_flits=flits)
        assert parts_of(several.alone(0))["start"] >= 2


@pytest.mark.parametrize("options", [{"latency": 3}, {"latency": "auto"}, {}])
@pytest.mark.parametrize("topology", ["3x3", "4x4"])
def test_waiting_for_operators(topology, options):
    """A reduce-scatter takes its steps, the path of the hardware and the time of its operators."""
    for flits in (1, 3, 64):
        program = tf.compile(tf.plan(topology, "reduce-scatter", **options), flits=flits)
        parts = parts_of(program)
        added = parts["operators"] + parts["waits"]
        assert options or added > 0
        others = SETTING + 1 + parts["start"]
        assert program.cycles() == program.form.moving.flits + others + added


@pytest.mark.parametrize("name", ["broadcast", "scatter", "gather", "reduce", "reduce@1"])
def test_any_root(name):
    """Programs with a root per run have constant parts that add up, too."""
    parts_of(tf.compile(tf.plan("3x4", name), flits=4, root="any"))


def test_reading_is_not_counted_twice():
    """The read of a flit is not counted again in the path from a slot to the stored word."""
    assert parts_of(program_of("4x4", "allgather", "hamiltonian")) == {
        "start": 0, "sequencer": 1, "distribution": 2, "hop": 1, "write": 1, "operators": 0,
        "waits": 0,
    }  # fmt: skip


def test_simulate_says_it_of_several(capsys):
    """`simulate` reports formula and constant of each of several modes, for the longest message."""
    command = ["simulate", "2x2", "allgather,allreduce", "--max-flits", "8", "--width", "4"]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    costs, modes = facts["mode_costs"], facts["modes"]
    plans = [tf.plan_forms("2x2", mode["collective"], max_flits=8) for mode in modes]
    program = tf.compile(plans, max_flits=8)
    alone = [program.alone(mode.form_of(8)) for mode in program.modes]
    assert [cost["constant_parts"] for cost in costs] == list(map(parts_of, alone))
    assert main(command) == 0
    lines = dict(re.split("  +", line) for line in capsys.readouterr().out.splitlines())
    for number, cost in enumerate(costs):
        cycles = program.cycles(mode=number, length=8)
        assert cost["cost_formula"].endswith(f" = {cycles} cycles")
        parts = ", ".join(f"{name} {n}" for name, n in cost["constant_parts"].items() if n)
        assert lines[f"mode {number} formula"] == cost["cost_formula"]
        assert lines[f"mode {number} constant"] == f"{cost['constant_cycles']} cycles: {parts}"


def test_simulate_says_it(capsys):
    """`simulate` reports the parts of the constant as a line and as a key."""
    command = ["simulate", "3x3", "allreduce", "--algorithm", "matching", "--flits", "9"]
    command += ["--width", "8"]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sum(facts["constant_parts"].values()) == facts["constant_cycles"]
    assert facts["constant_parts"]["waits"] > 0
    assert main(command) == 0
    parts = ", ".join(f"{name} {n}" for name, n in facts["constant_parts"].items() if n)
    assert f"{facts['constant_cycles']} cycles: {parts}\n" in capsys.readouterr().out
