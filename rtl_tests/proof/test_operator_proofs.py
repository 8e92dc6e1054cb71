"""Operators with registers, and those whose order matters, are proved; planted faults are not.

Whole runs take an operator as an unknown function, in the order of the program. The operator itself
is compared with its formula, or with its function on many pairs.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from amaranth.hdl import Module, Signal, Value
from helpers import few

import torusfabric as tf
from torusfabric.collective import Operator
from torusfabric.proof import prove
from torusfabric.rtl.core import store
from torusfabric.rtl.modules import delay_value
from torusfabric.toolchain import tools

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")

BF16, SATURATED = tf.Operator.parse("add:bf16"), tf.Operator.parse("add:saturating:signed")

CASES = [
    ("2x2", "allreduce", {"operators": "add:bf16"}, {}),
    ("3x3", "allreduce:matching", {"operators": "add:fp16,max:fp16,add"}, {}),
    ("3x3", "reduce:max-flow", {"operators": "add:bf16", "root": "any"}, {}),
    ("3x3", "reduce-scatter:hamiltonian", {"operators": "add:fp32"}, {"width": 32}),
    ("mesh:2x3", "allreduce", {"operators": "add:saturating:signed"}, {"width": 6}),
    ("2x2", "allreduce,allgather", {"operators": "add:fp16"}, {"top": "stream"}),
    ("2x2", "allreduce", {"operators": "add:bf16"}, {"beat": 2}),
    ("2x2", "allreduce", {"operators": "add:bf16"}, {"bus": "axi-lite"}),
]


def fabric_of(topology: str, names: str, compiled: dict, options: dict) -> tf.Fabric:
    reduction = {"operators": compiled["operators"]}
    plans = [
        tf.plan(topology, name, **(reduction if "reduce" in name else {}))
        for name in names.split(",")
    ]
    program = tf.compile(plans if len(plans) > 1 else plans[0], max_flits=4, **compiled)
    return tf.Fabric(program, **({"width": 16} | options))


@pytest.mark.parametrize("number", few(3, [*range(len(CASES))]))
def test_fabrics_are_proved(number: int) -> None:
    case = CASES[number]
    found = prove(fabric_of(*case))
    assert found.proved, found.counterexample
    assert "in the order of the program" in found.modules[-1].says
    formulas = all(tf.Operator.parse(each).proof for each in case[2]["operators"].split(","))
    assert any("pairs are compared" in each for each in found.assumptions) == (not formulas)


def built_with(operator: Operator, **changes) -> tuple[tf.Fabric, tf.Fabric]:
    """Return a fabric with an operator, and the same fabric with a changed operator."""
    plan = tf.plan("2x2", "allreduce", algorithm="spanning-tree")
    return tuple(
        tf.Fabric(tf.compile(plan, flits=4, operators=each), width=16)
        for each in (operator, replace(operator, name="changed", **changes))
    )


def hardware_of(change: Callable[[Module, Value], Value]) -> Callable:
    def hardware(m: Module, a: Value, b: Value) -> Value:
        return change(m, BF16.hardware(m, a, b))

    return hardware


def with_history(m: Module, result: Value) -> Value:
    """Flip the result of the call if an earlier result had all bits set: hardly ever."""
    seen = Signal()
    m.d.sync += seen.eq(seen | result.all())
    return result ^ seen


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, result: delay_value(m, result, 1), "Result must come 5 cycles after the words"),
        (lambda m, result: result ^ delay_value(m, result, 1), "must combine words of one cycle"),
        (with_history, "must not depend on themselves"),
        (lambda m, result: result ^ (result == 0x7F81), "must make"),
        (lambda m, result: result & ~(result == 0x8000).replicate(16), "must make"),
    ],
)
def test_faults_of_an_operator_are_found(change: Callable, message: str) -> None:
    _, wrong = built_with(BF16, hardware=hardware_of(change))
    found = prove(wrong)
    assert not found.proved
    assert message in found.counterexample.message


def test_an_operator_with_a_formula_and_registers_is_proved_by_it() -> None:
    """The result is the formula of the words `latency` cycles earlier, for all words."""

    def hardware(m: Module, a: Value, b: Value) -> Value:
        return delay_value(m, SATURATED.hardware(m, a, b), 2)

    _, slow = built_with(SATURATED, hardware=hardware, latency=2)
    assert prove(slow).proved
    _, wrong = built_with(
        SATURATED, hardware=lambda m, a, b: hardware(m, a, b) ^ ((a + b) == 77), latency=2
    )
    found = prove(wrong)
    assert not found.proved
    assert "result_is_changed" in found.counterexample.message


def test_hardware_that_combines_in_another_order_is_refuted(monkeypatch) -> None:
    """A node that combines five words in a chain, not in a tree, gives other sums."""
    star = tf.Graph([arc for leaf in range(1, 6) for arc in ((0, leaf), (leaf, 0))])
    program = tf.compile(
        tf.plan(star, "reduce", algorithm="max-flow"), flits=2, operators="add:saturating:signed"
    )
    fabric = tf.Fabric(program, width=6)
    assert prove(fabric).proved

    def combine_in_chain(words, combine, wait):
        first, *others = words
        for word in others:
            first = combine(first, word)
        return first

    monkeypatch.setattr(store, "combine_in_tree", combine_in_chain)
    found = prove(fabric, design=tf.emit(tf.Fabric(program, width=6)))
    assert not found.proved
    assert "received word" in found.counterexample.signal


def test_a_program_that_leaves_out_a_word_is_refuted() -> None:
    """The words of each sum are compared with the definition of the collective, too."""
    program = tf.compile(tf.plan("3", "reduce"), flits=1, operators="add:bf16")
    (form,) = program.forms
    fields = [
        replace(field, values=field.values * 0 - 1)
        if field.point.action.name == "OPERAND"
        else field
        for field in form.loop.fields
    ]
    wrong = replace(form, loop=replace(form.loop, fields=tuple(fields)))
    found = prove(tf.Fabric(replace(program, forms=(wrong,)), width=16))
    assert not found.proved
    assert "must combine words" in found.counterexample.message
