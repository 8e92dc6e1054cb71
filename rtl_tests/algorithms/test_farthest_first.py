"""Scatter and gather that serve the farthest node first: steps, trees and cycles."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from helpers import few, plan

import torusfabric as tf
from torusfabric.algorithms import Options, find_algorithm
from torusfabric.analysis.volume import least_time
from torusfabric.collective import parse_collective
from torusfabric.program.fields import Order
from torusfabric.schedule import Listed
from torusfabric.topology import Torus

SIDES = [
    *((n,) for n in range(2, 9)),
    *product(range(2, 7), repeat=2),
    *product((2, 3, 4), repeat=3),
    *product((2, 3), repeat=4),
]

#: On these tori no choice of trees lets all blocks arrive in time.
A_STEP_MORE = {(3, 3), (2, 3, 3), (3, 2, 3), (3, 3, 2)}


def planned(sides, kind="scatter", chunks=None, root=0):
    torus = Torus(sides)
    collective = replace(parse_collective(kind), root=root)
    return find_algorithm("farthest-first")(torus, collective, Options(chunks=chunks))


@pytest.mark.parametrize("sides", few(38, [*SIDES], tuples=True), ids=str)
def test_steps(sides):
    """A schedule takes the steps that the root's ports and the diameter demand, for any root.

    On the tori in `A_STEP_MORE`, one chunk takes one step more.
    """
    torus = Torus(sides)
    for chunks in sorted({1, 2, torus.ports}):
        schedule = planned(sides, chunks=chunks, root=torus.nodes - 1)
        tf.check(schedule)
        least = max(-(-chunks * (torus.nodes - 1) // torus.ports), torus.diameter)
        more = chunks == 1 and sides in A_STEP_MORE
        assert schedule.round_count == least + more
        gather = planned(sides, "gather", chunks, torus.nodes - 1)
        tf.check(gather)
        assert gather.round_count == schedule.round_count


@pytest.mark.parametrize("sides", SIDES[::3], ids=str)
def test_what_a_router_selects_never_changes(sides):
    """In a scatter each out-port outside the root always selects the same in-port."""
    program = tf.compile(planned(sides))
    others = program.loop.selected_sources[:, np.delete(program.variant_of, 0)]
    assert ((others < 0) | (others == others.max(axis=0))).all()


@pytest.mark.parametrize("kind", ["scatter", "gather"])
@pytest.mark.parametrize("sides", SIDES[::8], ids=str)
def test_cycles(sides, kind):
    """A program takes one cycle per step and flit, and five more.

    Every word arrives, at any length.
    """
    torus = Torus(sides)
    for chunks in sorted({1, 2, torus.ports}):
        schedule = planned(sides, kind, chunks)
        program = tf.compile(schedule, max_flits=9)
        assert program.loop.order is Order.FLIT
        for length in (1, 7):
            shape = torus.nodes, program.layout.send_words(length)
            words = np.random.default_rng(1).integers(0, 2**63, shape, np.uint64)
            wanted, receives = program.delivered(words, length=length)
            found = program.execute(words, length=length)
            assert (found[receives] == wanted[receives]).all()
        fixed = tf.compile(schedule, flits=7)
        slots = schedule.round_count * -(-7 // chunks)
        assert fixed.cycles() <= slots + 5


@pytest.mark.parametrize("name", few(2, ["4x4", "5x7", "6x4", "3x4x2", "9"], tuples=True))
@pytest.mark.parametrize("kind", ["scatter", "gather"])
@pytest.mark.parametrize("flits", [1, 4, 16, 64, 256])
def test_near_the_limit(name, kind, flits):
    """Cycles are at most 1.05 times the volume at the root, the diameter, and 12 more."""
    torus = tf.parse_topology(name)
    schedule = tf.plan(torus, kind, flits=flits)
    volume = float(least_time(torus, parse_collective(kind))) * flits
    assert tf.compile(schedule, flits=flits).cycles() <= 1.05 * volume + torus.diameter + 12


@pytest.mark.parametrize(
    "name",
    few(
        1,
        [
            "2",
            "2x3",
            *(pytest.param(name, marks=pytest.mark.long) for name in ("3", "4x4", "2x2x2")),
        ],
        tuples=True,
    ),
)
@pytest.mark.parametrize("kind", ["scatter", "gather"])
@pytest.mark.parametrize("parts", [1, None])
def test_hardware(name, kind, parts):
    """The hardware agrees with the program for fixed lengths, for any length and for any root."""
    ports = tf.parse_topology(name).ports
    schedule = plan(name, kind, "farthest-first", chunks=parts or ports)
    assert tf.simulate(tf.Fabric(tf.compile(schedule, flits=3), width=8)).passed
    jobs = [tf.Job(length=length) for length in (1, 5, 4)]
    assert tf.simulate(tf.Fabric(tf.compile(schedule, max_flits=5), width=8), jobs=jobs).passed
    program = tf.compile(schedule, max_flits=5, root="any")
    jobs = [tf.Job(length=length, root=length % 2) for length in (5, 1, 4)]
    assert tf.simulate(tf.Fabric(program, width=8), jobs=jobs).passed


@pytest.mark.long
def test_among_others():
    """In an engine with other modes each scatter and gather still delivers every word."""
    names = ("scatter", "alltoall", "gather", "reduce", "broadcast")
    schedules = [
        plan("3x3", name, "farthest-first" if name in ("scatter", "gather") else None)
        for name in names
    ]
    program = tf.compile(schedules, max_flits=4)
    jobs = [tf.Job(mode=mode, length=length) for length in (1, 4, 3) for mode in range(5)]
    assert tf.simulate(tf.Fabric(program, width=8), jobs=jobs).passed


def test_what_rests_is_passed_row_by_row():
    """A schedule in which blocks wait, or messages have several blocks, runs row by row."""
    schedule = planned((2, 4))
    assert tf.compile(schedule).loop.order is Order.FLIT
    first, *others = schedule.transfers
    empty = replace(first, source=first.source[:0], hops=first.hops[:0],
                    payload=Listed.single(first.listed.ids[:0]))  # fmt: skip
    late = replace(schedule, transfers=(first, empty, *others))
    tf.check(late)
    assert tf.compile(late).loop.order is Order.ROW
    assert tf.compile(plan("8x8", "broadcast", "max-flow")).loop.order is Order.ROW
