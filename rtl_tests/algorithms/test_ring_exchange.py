"""The exchange along rings: an all-reduce whose cycles grow with the diameter."""

import itertools

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.analysis.check import check
from torusfabric.topology import Torus

#: Tori of one to four axes.
TORI = [
    *((side,) for side in range(2, 9)),
    *itertools.product((2, 3, 4, 5, 8), repeat=2),
    *itertools.product((2, 3, 4), repeat=3),
    (2, 2, 2, 2), (2, 3, 2, 4), (3, 3, 3, 3), (3, 4, 5, 2),
]  # fmt: skip


def exchange(sides, chunks=None, collective="allreduce"):
    return tf.plan(Torus(*sides), collective, algorithm="ring-exchange", chunks=chunks)


@pytest.mark.parametrize("sides", TORI, ids=str)
def test_steps(sides):
    """One chunk takes as many steps as the diameter.

    Chunks in rotated orders wait for the longest side.
    """
    nodes, axes = int(np.prod(sides)), len(sides)
    assert exchange(sides, 1).steps == Torus(*sides).diameter
    for chunks, turns in ((axes, 1), (2 * axes, 2), (5 * axes, 5)):
        if chunks > 1 and chunks % nodes:
            longest = axes * (max(sides) // 2)
            assert exchange(sides, chunks).steps in range(
                longest * turns - turns, longest * turns + 1
            )


@pytest.mark.parametrize("sides", [(4, 4), (8, 8), (5, 7), (3, 3), (2, 3), (2, 2, 2), (6,), (2,)])
def test_cycles(sides):
    """One flit takes at most 2 * diameter + 12 cycles.

    On equal sides 2 * axes flits in chunks do, too.
    """
    diameter, axes = Torus(*sides).diameter, len(sides)
    assert tf.compile(exchange(sides, 1), flits=1).cycles() <= 2 * diameter + 12
    if len(set(sides)) == 1:
        several = tf.compile(exchange(sides, 2 * axes), flits=2 * axes)
        assert several.cycles() <= 2 * diameter + 12


def test_usual_chunks():
    """The default chunks suit messages of a few flits, unless they make one flit slower."""
    usual = {"2": 2, "2x2": 4, "6": 2, "8x8": 4, "5x7": 4, "4x4x4": 6, "8x2": 1, "8x2x2": 1}
    for topology, chunks in usual.items():
        assert tf.plan(topology, "allreduce", algorithm="ring-exchange").chunks == chunks
    for topology in ("4x4", "8x8", "5x7", "6x4", "4x4x4", "7x7x7", "8x2"):
        schedule = tf.plan(topology, "allreduce", algorithm="ring-exchange")
        assert tf.compile(schedule, flits=1).cycles() <= 2 * schedule.topology.diameter + 12


@pytest.mark.parametrize("operator", ["add", "max", "xor"])
@pytest.mark.parametrize(
    "sides", few(4, [(2,), (5,), (6,), (2, 2), (2, 3), (4, 4), (5, 3), (2, 3, 4)], tuples=True)
)
def test_execution(sides, operator):
    """Programs with any number of chunks deliver the sum, for one length and for any."""
    nodes, axes = int(np.prod(sides)), len(sides)
    for chunks in {1, axes, 2 * axes, 3 * axes}:
        if chunks > 1 and chunks % nodes == 0:
            continue
        for most, length in ((1, 1), (5, 5), (7, 1), (7, 4)):
            fixed = most == length
            program = tf.compile(
                exchange(sides, chunks),
                operators=operator,
                flits=most if fixed else None,
                max_flits=None if fixed else most,
            )
            words = np.random.default_rng(most).integers(0, 1 << 30, (nodes, length), np.uint64)
            received = program.execute(words, length=length)
            assert (received == program.delivered(words, length=length)[0]).all()


@pytest.mark.parametrize("latency", [1, 2, 3])
@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_slow_operators(latency, chunks):
    """Operators with a latency deliver the sum; partial sums wait in memories if needed."""
    mask = lambda width: np.uint64((1 << width) - 1)
    slow = tf.Operator("slow", lambda a, b, width: a + b & mask(width), lambda width: 0,
                       lambda m, a, b: a + b, latency=latency)  # fmt: skip
    program = tf.compile(exchange((4, 6), chunks), flits=3, operators=[slow])
    words = np.random.default_rng(1).integers(0, 1 << 30, (24, 3), np.uint64)
    assert (program.execute(words) == words.sum(axis=0)).all()


@pytest.mark.parametrize("collective", few(1, ["allreduce@0+2", "allreduce@0", "allreduce@1"]))
def test_in_groups(collective):
    """An all-reduce in groups, along some of the axes, is right in hardware."""
    schedule = exchange((3, 4, 2), collective=collective)
    check(schedule)
    program = tf.compile(schedule, max_flits=3)
    words = np.random.default_rng(1).integers(0, 1 << 30, (24, 3), np.uint64)
    assert (program.execute(words) == program.delivered(words)[0]).all()
    assert tf.simulate(tf.Fabric(program, width=16)).passed


@pytest.mark.parametrize(
    ("sides", "chunks", "flits"),
    few(2, [((2,), 1, 1), ((4, 2), 2, 2), ((3, 3), 4, 5), ((2, 2, 3), 1, 2)]),
)
def test_hardware(sides, chunks, flits):
    """The hardware delivers the words, in the cycles of the program."""
    schedule = exchange(sides, chunks)
    for lengths in ({"flits": flits}, {"max_flits": flits}):
        fabric = tf.Fabric(tf.compile(schedule, operators="add,max", **lengths), width=8)
        assert tf.simulate(fabric, jobs=4).passed


def test_beside_others():
    """The exchange runs in a fabric with other collectives."""
    schedules = [
        exchange((2, 3), 4),
        tf.plan("2x3", "allgather"),
        tf.plan("2x3", "allreduce", algorithm="matching"),
    ]
    program = tf.compile(schedules, max_flits=4)
    assert tf.simulate(tf.Fabric(program, width=8), jobs=9).passed


def test_slow_hardware():
    """Hardware with a register in the operator delivers the sum."""

    def hardware(m, a, b):
        from amaranth.hdl import Signal

        total = Signal(len(a))
        m.d.sync += total.eq(a + b)
        return total

    def add(a, b, width):
        return a + b & np.uint64((1 << width) - 1)

    slow = tf.Operator("slow", add, lambda width: 0, hardware, latency=1)
    for chunks in (1, 4):
        program = tf.compile(exchange((4, 3), chunks), max_flits=5, operators=[slow])
        assert tf.simulate(tf.Fabric(program, width=8)).passed


def test_saved_and_loaded(tmp_path):
    """A file keeps the schedule, and grows with its transfers, not with the terms of its sums."""
    for sides, collective in [
        ((4, 4), "allreduce"),
        ((2, 3), "allreduce"),
        ((3, 2), "allreduce@0"),
    ]:
        schedule = exchange(sides, collective=collective)
        schedule.save(tmp_path / "plan.json", force=True)
        loaded = tf.load(tmp_path / "plan.json")
        assert loaded.digest == schedule.digest
        assert check(loaded) == check(schedule)
    exchange((16, 16)).save(tmp_path / "large.json")
    assert (tmp_path / "large.json").stat().st_size < 60 * check(exchange((16, 16))).transfers
