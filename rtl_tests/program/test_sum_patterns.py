"""Sums around Hamiltonian cycles: words, cycles, hardware, and the choices of a run."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Signal
from helpers import few

import torusfabric as tf
from torusfabric.program.timing import COMBINE, LINK

TOPOLOGIES = ["3", "4", "2x2", "3x3", "3x4", "5x3", "2x4", "2x3x3", "2x2x2x2"]


def plan(topology, kind, turns=2):
    torus = tf.parse_topology(topology)
    chunks = turns * torus.ports * (torus.nodes if kind == "allreduce" else 1)
    return tf.plan(torus, kind, algorithm="hamiltonian", chunks=chunks)


def drawn(program, length):
    shape = program.topology.nodes, program.layout.send_words(length)
    return np.random.default_rng(length).integers(0, 2**40, shape, np.uint64)


@pytest.mark.parametrize("turns", few(1, [2, 1, 5]))
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_words(topology, turns):
    """Every node holds its sums, for any length and operator."""
    for kind in ("reduce-scatter", "allreduce"):
        schedule = plan(topology, kind, turns)
        for flits in (1, 40):
            program = tf.compile(schedule, flits=flits)
            words = drawn(program, flits)
            assert (program.execute(words) == program.delivered(words)[0]).all()
        program = tf.compile(schedule, max_flits=23, operators=["add", "min"])
        for length, operation in ((1, 0), (11, 1)):
            words, chosen = drawn(program, length), {"length": length, "operation": operation}
            assert (program.execute(words, **chosen) == program.delivered(words, **chosen)[0]).all()


@pytest.mark.parametrize(("topology", "nodes", "ports"), [("4x4", 16, 4), ("8x8", 64, 4)])
def test_cycles(topology, nodes, ports):
    """With two chunks in turn, every link is busy in every cycle."""
    for flits in (16, 64):
        program = tf.compile(plan(topology, "reduce-scatter"), flits=flits)
        passing = nodes * flits // ports
        # The first word is on its link after one operator, and stored after the last one.
        assert program.cycles() == passing + LINK + COMBINE


@pytest.mark.parametrize("latency", [1, 3])
def test_operators_with_registers(latency):
    """More chunks in turn hide the latency of an operator with registers."""

    def slow_sum(m, a, b):
        word = (a + b)[: len(a)]
        for _ in range(latency):
            register = Signal(len(a))
            m.d.sync += register.eq(word)
            word = register
        return word

    slow = replace(tf.Operator.parse("add"), name="slow", hardware=slow_sum, latency=latency)
    cycles = {}
    for turns in (2, 2 + latency):
        program = tf.compile(plan("3x3", "reduce-scatter", turns), flits=60, operators=[slow])
        words = drawn(program, 60)
        assert (program.execute(words) == program.delivered(words)[0]).all()
        cycles[turns] = program.cycles()
    assert cycles[2 + latency] < cycles[2]
    program = tf.compile(plan("3", "allreduce"), max_flits=14, operators=[slow])
    assert tf.simulate(tf.Fabric(program, width=8), jobs=3).passed


@pytest.mark.parametrize(
    ("topology", "kind", "lengths"),
    few(
        2,
        [
            ("3x3", "reduce-scatter", {"flits": 9}),
            ("2x2", "reduce-scatter", {"max_flits": 9, "operators": ["add", "min"]}),
            ("3x4", "reduce-scatter@1", {"flits": 3}),
            ("4", "allreduce", {"max_flits": 20}),
        ],
    ),
)
@pytest.mark.parametrize("top", few(1, ["stream", "host"]))
def test_hardware(topology, kind, lengths, top):
    """The hardware delivers every word in the predicted cycles, by the host port and by streams."""
    schedule = tf.plan(topology, kind, algorithm="hamiltonian")
    fabric = tf.Fabric(tf.compile(schedule, **lengths), width=9, top=top)
    assert tf.simulate(fabric, engine="amaranth").passed


@pytest.mark.long
def test_with_others_in_an_engine():
    """An engine shares memories and readers of sums around cycles with other collectives."""
    kinds = ("reduce-scatter", "allgather", "allreduce", "reduce-scatter")
    algorithms = ("hamiltonian", "hamiltonian", "hamiltonian", "matching")
    plans = [tf.plan("3x3", kind, algorithm=by) for kind, by in zip(kinds, algorithms, strict=True)]
    program = tf.compile(plans, max_flits=10, operators=["add", "max"])
    jobs = [tf.Job(mode=mode, length=length, operation=mode % 2 if mode != 1 else None)
            for mode in range(4) for length in (1, 10)]  # fmt: skip
    assert tf.simulate(tf.Fabric(program, width=8), jobs=jobs).passed
