"""The order of operands: trees of additions, the words of each tree, and the error bound."""

import re
from fractions import Fraction

import numpy as np
import pytest
from helpers import few, run_json

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.collective.floats import FORMATS
from torusfabric.simulation.jobs import random_job_messages


def value_of_tree(tree: str, words: dict[int, np.ndarray]) -> np.ndarray:
    """Return the words that a tree such as ``((0 1) 2)`` makes of the words of nodes."""
    stack: list[np.ndarray] = []
    for token in re.findall(r"\d+|\)", tree):
        stack.append(stack.pop() + stack.pop() if token == ")" else words[int(token)])
    (result,) = stack
    return result


CASES = [
    ("4x4", "allreduce", "spanning-tree", {"flits": 8}),
    ("3x3", "allreduce", "matching", {"max_flits": 9}),
    ("3x3", "reduce", "max-flow", {"flits": 4}),
    ("2x3", "reduce-scatter", "matching", {"flits": 3}),
    ("3x3", "reduce-scatter", "hamiltonian", {"max_flits": 4}),
    ("mesh:2x3", "reduce", None, {"max_flits": 5}),
    ("3x3", "allreduce@1", None, {"flits": 3}),
]


def float_program(topology, collective, algorithm, lengths) -> tf.Program:
    named = {"algorithm": algorithm} if algorithm else {}
    plan = tf.plan(topology, collective, **named, operators="add:fp32")
    if "flits" in lengths:
        lengths = {"flits": lengths["flits"] * plan.chunks}
    return tf.compile(plan, operators="add:fp32", **lengths)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, case[:3])))
def test_words_are_those_of_the_trees(case) -> None:
    """The bits are those of numpy, which adds binary32 numbers in the order of each tree; and the
    error stays below the bound.
    """
    program = float_program(*case)
    orders, nodes = program.operand_orders(), program.topology.nodes
    numbers = np.random.default_rng(1).normal(size=(nodes, program.send_words)).astype(np.float32)
    words = numbers.view(np.uint32).astype(np.uint64)
    received = program.execute(words, width=32)
    tree, column = orders.tree_of_word, np.arange(received.shape[1])
    for node in range(nodes):
        for number in np.unique(tree[node][tree[node] >= 0]).tolist():
            at = column[tree[node] == number]
            group = [int(leaf) for leaf in re.findall(r"\d+", orders.trees[number])]
            # In a reduce-scatter, a node receives its share of the sums.
            personal = program.layout.blocks.collective.personal
            sent = at + personal * program.layout.blocks.groups.position_of_node[node] * len(column)
            total = value_of_tree(orders.trees[number], {k: numbers[k, sent] for k in group})
            assert (total.view(np.uint32) == received[node, at]).all()
            for k, one in zip(sent.tolist(), total.tolist(), strict=True):
                parts = [Fraction(float(numbers[leaf, k])) for leaf in group]
                most = Fraction(orders.error_bound) * sum(map(abs, parts))
                assert abs(Fraction(one) - sum(parts)) <= most


def test_the_depth_of_a_tree_bounds_the_error() -> None:
    program = float_program("4x4", "allreduce", "spanning-tree", {"flits": 1})
    orders = program.operand_orders()
    assert orders.depth == 5
    assert orders.error_bound == pytest.approx(5 * 2**-24, rel=1e-6)
    exact = tf.compile(tf.plan("4x4", "allreduce"), operators="add").operand_orders()
    assert exact.error_bound == 0


def test_an_order_needs_a_reduction() -> None:
    with pytest.raises(tf.InputError, match=r"^Operands have an order in a reduction .*allgather$"):
        tf.compile(tf.plan("3", "allgather")).operand_orders()


@pytest.mark.parametrize("operator", ["add:bf16", "add:saturating:signed"])
def test_simulate_reports_the_order(capsys, operator: str) -> None:
    """The trees are in the JSON if the order matters; two jobs are two runs more."""
    words = ("simulate", "2x2", "allreduce", "--width", "16", "--jobs", "2")
    found = run_json(capsys, *words, "--op", operator)
    (orders,) = found["operand_orders"]
    assert orders["tree_count"] == len(orders["trees"])
    assert (orders["error_bound"] > 0) == (operator == "add:bf16")
    assert found["words_checked"] == 3 * 4 * found["flits"]
    assert "operand_orders" not in run_json(capsys, *words, "--op", "add")


@pytest.mark.parametrize("top", few(1, ["host", "stream"]))
def test_tops_add_floats(top: str) -> None:
    program = tf.compile(
        tf.plan("2x2", "allreduce", operators="add:fp16"), max_flits=4,
        operators="add:fp16,max:fp16,add",
    )  # fmt: skip
    assert tf.simulate(tf.Fabric(program, width=16, top=top), jobs=6).passed


def test_typical_operands_depend_on_the_order() -> None:
    """Words of random runs are such that another order of additions changes many sums."""
    fabric = tf.Fabric(float_program("3", "reduce", None, {"flits": 64}), width=32)
    a, b, c = random_job_messages(fabric, tf.Job(), seed=1)
    add = tf.Operator.parse("add:fp32").combine
    changed = add(add(a, b, 32), c, 32) != add(a, add(b, c, 32), 32)
    assert changed.mean() > 0.1
    assert not FORMATS["fp32"].is_nan(a[:7]).any()


@pytest.mark.parametrize("command", ["plan", "check"])
def test_commands_plan_for_operators(capsys, command: str) -> None:
    """The latency of an operator changes the cycles of a plan, and its order the algorithms."""
    words = (command, "4x4", "allreduce", "--flits", "16")
    reasons = [
        run_json(capsys, *words, *more)["why"]
        for more in ((), ("--op", "add:fp32"), ("--op", "max"))
    ]
    assert "ring-exchange" in reasons[0]
    assert "ring-exchange" not in reasons[1]
    assert reasons[2] == reasons[0]
    cycles = [int(reason.split()[0]) for reason in reasons]
    assert cycles[1] > cycles[0] + 3 * tf.Operator.parse("add:fp32").latency
    ring = (*words, "--algorithm", "ring-exchange")
    assert run_json(capsys, *ring, "--op", "max")["checked"]
    assert main([*ring, "--op", "add:fp32"]) == 1
    assert "needs an associative operator, not add:fp32" in capsys.readouterr().err
    assert main([command, "4x4", "allgather", "--op", "add"]) == 1
    assert "--op is for reductions" in capsys.readouterr().err
