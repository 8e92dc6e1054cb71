"""Fabrics whose runs choose an operator: the hardware equals the executed program."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Signal, Value
from helpers import few, simulated
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.collective import (
    OPERATORS,
    SIGNED,
    Operator,
)
from torusfabric.proof import prove
from torusfabric.rtl.modules import delay_value
from torusfabric.rtl.operator_unit import OperatorUnit
from torusfabric.simulation.jobs import default_jobs, random_jobs

EVERY = (*OPERATORS, *SIGNED)

CASES = [
    ("3", "allreduce", "matching"),
    ("2x2", "reduce-scatter", "matching"),
    ("2x3", "reduce", "max-flow"),
    ("2x3", "allreduce", "matching"),
    ("3x3", "reduce", "diagonal"),
    ("3", "reduce", "necklace"),
    ("2x3", "allreduce@1", "matching"),
]


def fabric_with(operators, selection=CASES[0], *, width=5, **lengths):
    """A fabric with several operators."""
    topology, collective, algorithm = selection
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    return tf.Fabric(tf.compile(schedule, operators=operators, **lengths), width=width)


#: On a ring of four: nodes 1 and 3 add a word of node 2 to one of their chunks, and none to the
#: other, so that an adder gets the neutral word.
UNEVEN = [
    [([2, 1], [[2, 0]]), ([2, 3], [[2, 1]])],
    [([1, 0], [[1, 0], [2, 0]]), ([3, 0], [[2, 1], [3, 1]])],
    [([1, 0], [[1, 1]]), ([3, 0], [[3, 0]])],
]


def uneven_fabric(folder, operators):
    """A fabric in rounds whose nodes send sums of two words and single words."""
    content = {
        "format": "torusfabric-schedule",
        "version": 1,
        "topology": {"kind": "torus", "sides": [4]},
        "collective": {"kind": "reduce", "root": 0},
        "algorithm": "by hand",
        "switching": "circuit",
        "ports": 2,
        "chunks": 2,
        "rounds": [
            [{"path": path, "blocks": blocks} for path, blocks in transfers] for transfers in UNEVEN
        ],
    }
    (folder / "plan.json").write_text(json.dumps(content))
    schedule = tf.load(folder / "plan.json")
    return tf.Fabric(tf.compile(schedule, operators=operators), width=5)


def unit_results(unit, width, code, pairs):
    """Return the results of an operator unit for pairs of words, and its neutral word."""
    m = Module()
    a, b, result, identity = (Signal(width, name=name) for name in ("a", "b", "result", "identity"))
    given_code = Const(code, unit.n_control_bits)
    m.d.comb += result.eq(unit.combine(m, a, b, given_code, width))
    m.d.comb += identity.eq(unit.identity_word(given_code, width))
    results = []

    async def testbench(ctx):
        for first, second in pairs:
            ctx.set(a, first)
            ctx.set(b, second)
            results.append(ctx.get(result))
        results.append(ctx.get(identity))

    simulated(m, testbench)
    return results[:-1], results[-1]


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.lists(st.sampled_from(EVERY), min_size=2, unique=True), st.integers(1, 3))
def test_units(names, width):
    """Operators that share a unit combine all pairs of words as each does alone."""
    operators = tuple(map(Operator.parse, names))
    unit = OperatorUnit(operators)
    assert len({*unit.operator_codes}) == len(operators)
    pairs = [(a, b) for a in range(1 << width) for b in range(1 << width)]
    a, b = np.array(pairs, np.uint64).T
    for operator, code in zip(operators, unit.operator_codes, strict=True):
        results, identity = unit_results(unit, width, code, pairs)
        assert results == operator.combine(a, b, width).tolist(), (names, operator)
        assert identity == operator.identity(width)


def test_control_bits_are_few():
    """Operators are encoded in few control bits; a single operator needs none."""
    for names, bits in ((("add", "max"), 1), (("min", "max"), 1), (("add",), 0), (EVERY, 6)):
        assert OperatorUnit(tuple(map(Operator.parse, names))).n_control_bits <= bits


def test_one_operator_is_no_choice():
    """A fabric with one operator has no input for it, and no logic to choose."""
    fabric = fabric_with(["max:signed"], max_flits=2)
    assert "operation" not in fabric.netlist.inputs
    assert not any("operator_code" in instance.inputs for instance in fabric.netlist.instances)


def test_nothing_to_add(tmp_path):
    """Fabrics in rounds use the neutral word of the operator of the run."""
    jobs = [tf.Job(operation=k) for k in range(len(EVERY))]
    assert tf.simulate(uneven_fabric(tmp_path, EVERY), jobs=jobs).passed


# Jobs and options of users


def test_jobs():
    """Every operator is tried, random jobs choose among operators, and reports name them."""
    fabric = fabric_with(["add", "max"], max_flits=3)
    assert {job.operation for job in default_jobs(fabric.program)} == {0, 1}
    assert {job.operation for job in random_jobs(fabric, 20)} == {0, 1}
    report = tf.simulate(fabric, jobs=[tf.Job(length=2, operation=1), tf.Job(length=1)])
    assert report.passed
    assert [job.operation for job in report.jobs] == [1, 0]
    assert report.operator == "add, max"
    fixed = tf.simulate(fabric_with(["add", "max"]))
    assert [(job.length, job.operation) for job in fixed.jobs] == [(3, 0), (3, 1)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fabric_with(["add", "min", "add"]), "Operators must be different, not add more"),
        (lambda: fabric_with(["add", "sum"]), "Operator must be one of add, min, .*, not 'sum'"),
        (lambda: tf.compile(tf.plan("3", "allgather")).execute(np.zeros((3, 1)), operation=0),
         "Operation must be left out where nothing is combined, not 0"),
        (lambda: tf.Fabric(fabric_with(["or", "and"]).program, top="core"),
         "Top must be host or stream for several operators, not core"),
    ],
)  # fmt: skip
def test_what_does_not_fit(make, message):
    with pytest.raises(tf.InputError, match=f"^{message}"):
        make()


def slow_sum(cycles: int) -> Operator:
    """A sum whose hardware takes `cycles` cycles."""

    def hardware(m: Module, a: Value, b: Value) -> Value:
        return delay_value(m, (a + b)[: len(a)], cycles)

    add = Operator.parse("add")
    return Operator(f"slow{cycles}", add.function, add.identity, hardware, latency=cycles)


SLOW = {cycles: slow_sum(cycles) for cycles in (1, 3)}

LARGER = [("3x3", "reduce-scatter", "necklace"), ("2x2x2", "allreduce", "matching")]


@pytest.mark.parametrize(
    "selection",
    few(4, [*CASES[2:], *CASES[:2], *LARGER], tuples=True),
    ids=" ".join,
)
@pytest.mark.parametrize(
    "operators",
    [
        pytest.param([SLOW[3]], id="one", marks=pytest.mark.long),
        pytest.param(["max", SLOW[1], "xor"], id="three"),
    ],
)
def test_operators_of_several_cycles(selection: tuple[str, str, str], operators: list) -> None:
    """Slow operators, alone and beside quick ones, give the predicted words and cycles."""
    schedule = tf.plan(selection[0], selection[1], algorithm=selection[2])
    most = 2 * schedule.chunks
    fixed = tf.compile(schedule, flits=most, operators=operators)
    assert fixed.cycles() > tf.compile(schedule, flits=most).cycles()
    for program in (fixed, tf.compile(schedule, max_flits=most, operators=operators)):
        fabric = tf.Fabric(program, width=5)
        jobs = random_jobs(fabric, 2) if program.any_length else None
        assert tf.simulate(fabric, jobs=jobs, engine="amaranth").passed


def test_steps_beside_slow_rounds_are_refused() -> None:
    """Modes in steps cannot be combined with rounds that have slow operators."""
    plans = [tf.plan("2x3", "allgather"), tf.plan("2x3", "reduce", algorithm="max-flow")]
    tf.compile(plans, max_flits=2, operators="add")
    with pytest.raises(tf.InputError, match=r"cannot wait the 3 cycles of operator slow3 in a fab"):
        tf.compile(plans, max_flits=2, operators=[SLOW[3]])


def test_slow_operators_are_proved_and_run() -> None:
    """An operator with registers is proved; a simulated board runs it."""
    fabric = tf.Fabric(tf.compile(tf.plan("3", "allreduce"), operators=[SLOW[1]]), width=8)
    assert prove(fabric).proved
    assert tf.connect("sim", fabric).run().passed


def test_a_wrong_latency_is_found() -> None:
    """An operator that states a wrong latency gives wrong results in simulation."""
    lying = replace(SLOW[3], name="lying", latency=2)
    for algorithm in ("matching", "necklace"):
        schedule = tf.plan("3x3", "allreduce", algorithm=algorithm)
        fabric = tf.Fabric(tf.compile(schedule, operators=lying), width=8)
        assert not tf.simulate(fabric).passed


def test_nodes_that_add_in_different_orders_are_refused(tmp_path: Path) -> None:
    """An operator that is not associative is refused if nodes add in different orders, and accepted
    if one node adds for all.
    """
    unlike = replace(Operator.parse("add"), name="unlike", associative=False)
    tf.compile(tf.plan("2x3", "allreduce", algorithm="matching"), operators=unlike)
    steps = [[([0, 1], [[0, 0]]), ([1, 2], [[1, 0]]), ([2, 0], [[2, 0]])]]
    steps += [[([0, 1], [[2, 0]]), ([1, 2], [[0, 0]]), ([2, 0], [[1, 0]])]]
    content = {
        "format": "torusfabric-schedule",
        "version": 1,
        "topology": {"kind": "torus", "sides": [3]},
        "collective": {"kind": "allreduce"},
        "algorithm": "by hand",
        "switching": "circuit",
        "ports": 2,
        "chunks": 1,
        "rounds": [[{"path": p, "blocks": b} for p, b in transfers] for transfers in steps],
    }
    (tmp_path / "plan.json").write_text(json.dumps(content))
    schedule = tf.load(tmp_path / "plan.json")
    tf.compile(schedule)
    message = "^allreduce by by hand needs an associative operator, not unlike"
    with pytest.raises(tf.InputError, match=message):
        tf.compile(schedule, operators=unlike)


def test_operators_take_words_of_their_widths() -> None:
    """A width that an operator does not support is refused."""
    only = replace(Operator.parse("add"), name="only", widths=(16, 32))
    program = tf.compile(tf.plan("3", "allreduce"), operators=only)
    with pytest.raises(tf.InputError, match=r"^Width must be 16 or 32 for operator only, not 8$"):
        tf.Fabric(program, width=8)
