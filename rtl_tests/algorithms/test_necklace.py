"""Collectives from necklaces: examples and formulas of the paper, and cases that it leaves open."""

import subprocess
import sys
from collections import Counter
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planners import planner
from waiting import shortest_wait

from torusfabric.algorithms.table.necklace.plan import NECKLACE
from torusfabric.algorithms.table.necklace.trees import Necklaces
from torusfabric.analysis.check import check, check_rounds
from torusfabric.topology import Torus

plan = planner(NECKLACE)

#: Axes and side of the cubes that are planned with each collective, and larger cubes for tables.
CUBES = [(1, 2), (1, 3), (1, 4), (1, 7), (2, 2), (2, 3), (2, 4), (2, 5), (2, 6), (3, 2), (3, 3),
         (3, 4), (4, 2), (4, 3), (5, 2)]  # fmt: skip
LARGER = [(2, 8), (2, 9), (3, 5), (3, 6), (4, 4), (5, 3), (6, 2), (7, 2)]


def cube(axes, side):
    return Torus((side,) * axes)


def label(topology, node):
    return "".join(str(int(digit)) for digit in topology.coordinates(node))


def node(topology, text):
    return int(topology.node([int(digit) for digit in text]))


def hops(axes, side):
    """Return the sum of the distances of all nodes from one node (Lemma 8)."""
    return axes * side ** (axes - 1) * (side * side // 4)


def test_rotations_of_the_paper():
    """Rotations and periods are those of the examples in section 2, with Definition 2."""
    torus = cube(3, 4)
    necklaces = Necklaces(torus)
    for before, after in [("321", "332"), ("012", "201")]:
        assert label(torus, necklaces.rotated_node[node(torus, before)]) == after
    assert necklaces.necklace_period[node(torus, "131")] == 2
    six = cube(6, 4)
    assert Necklaces(six).necklace_period[node(six, "311331")] == 4


def test_rotated_arcs_of_the_paper():
    """Rotated arcs are those below Lemma 3: 01 -> 31, 30 -> 33, 03 -> 13, 10 -> 11."""
    torus = cube(2, 4)
    heads, ports = Necklaces(torus).rotated_arcs(node(torus, "31"), torus.port("-0"))
    assert [label(torus, head) for head in heads] == ["31", "33", "13", "11"]
    assert [torus.port_names[port] for port in ports] == ["-0", "-1", "+0", "+1"]
    tails = torus.neighbours[heads, torus.opposite[ports]]
    assert [label(torus, tail) for tail in tails] == ["01", "30", "03", "10"]


def test_necklaces_of_table_2():
    """The necklaces of two cubes are those of table 2."""
    torus = cube(3, 3)
    necklaces = Necklaces(torus)
    written = {
        tuple(label(torus, image) for image in necklaces.rotated_arcs(generator, 0)[0][:period])
        for generator in necklaces.generators
        for period in [necklaces.necklace_period[generator]]
    }
    assert written == {
        ("200", "020", "002", "100", "010", "001"),
        ("220", "022", "102", "110", "011", "201"),
        ("210", "021", "202", "120", "012", "101"),
        ("222", "122", "112", "111", "211", "221"),
        ("212", "121"),
    }
    four = cube(3, 4)
    generators = {label(four, generator) for generator in Necklaces(four).generators}
    assert generators == {"300", "330", "310", "200", "333", "320", "230", "313", "233", "231",
                          "220", "223", "222"}  # fmt: skip


@pytest.mark.parametrize(
    ("axes", "side", "nonfull", "count", "least", "most"),
    [(4, 3, 1, 11, 10, 10), (4, 4, 16, 36, 30, 35), (4, 6, 16, 166, 160, 165),
     (5, 4, 34, 108, 99, 107), (6, 3, 9, 63, 60, 62), (6, 4, 76, 352, 335, 351),
     (5, 7, 7, 1684, 1680, 1683), (9, 3, 27, 1098, 1092, 1097)],
)  # fmt: skip
def test_table_4(axes, side, nonfull, count, least, most):
    """The counts of necklaces and subtrees are those of table 4."""
    necklaces = Necklaces(cube(axes, side))
    assert (necklaces.necklace_period < 2 * axes).sum() == nonfull
    assert len(necklaces.generators) + 1 == count
    subtrees = np.bincount(necklaces.displacement[1:], minlength=2 * axes)
    assert (subtrees.min(), subtrees.max()) == (least, most)


def test_tables_of_the_paper_are_recomputed():
    """The script recomputes the paper's tables and marks the entries that differ."""
    script = Path(__file__).parents[2] / "sim" / "necklace_tables.py"
    run = subprocess.run(
        [sys.executable, script, "--limit", "1000", "--largest", "30"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    marked = [line.split() for line in run.stdout.splitlines() if "*" in line[30:]]
    built_and_counted = Counter(line.split()[-1] for line in run.stdout.splitlines() if line)
    assert built_and_counted["built"] == 5
    assert built_and_counted["counted"] == 24
    ratios = {(row[0], row[1], row[8]) for row in marked if row[-1] in ("built", "counted")}
    assert ratios == {("4", "6", "1.02*"), ("5", "4", "1.05*"), ("5", "5", "1.01*"),
                      ("7", "3", "1.01*")}  # fmt: skip


@pytest.mark.parametrize(("axes", "side"), CUBES + LARGER)
def test_trees(axes, side):
    """Each tree spans its nodes by shortest paths, and its rotations cover the other ports."""
    torus = cube(axes, side)
    necklaces = Necklaces(torus)
    parent, port = necklaces.tree_parents
    distances = torus.distances
    for generator in necklaces.generators:
        tail = parent[generator]
        assert torus.neighbours[tail, port[generator]] == generator
        assert distances[tail] == distances[generator] - 1
        assert tail == 0 or (
            necklaces.displacement[tail] == 0
            and necklaces.necklace_period[tail] == necklaces.n_ports_used
        )
        _, ports = necklaces.rotated_arcs(generator, port[generator])
        assert len(set(ports)) == necklaces.n_ports_used
    tails, ports = necklaces.spanning_tree
    assert tails[0] == -1
    others = np.arange(1, torus.nodes)
    assert (torus.neighbours[tails[1:], ports[1:]] == others).all()
    inner = tails[1:] != 0
    same = necklaces.displacement[tails[1:]] == necklaces.displacement[others]
    assert same[inner].all()


@pytest.mark.parametrize(("axes", "side"), [(2, 4), (3, 4), (2, 6), (4, 4)])
def test_printed_parent_rule_leaves_the_subtree(axes, side):
    """The parent rule as printed in the paper leads out of the subtree on some cubes."""
    # Definition 8 changes the lowest digit that is not 0. Here this step leaves subtree 0.
    torus = cube(axes, side)
    necklaces = Necklaces(torus)
    broken = 0
    for generator in necklaces.generators:
        digits = torus.coordinates(generator)
        lowest = np.nonzero(digits)[0][-1]
        digits[lowest] += -1 if 2 * digits[lowest] <= side else 1
        before = torus.node(digits)
        broken += necklaces.displacement[before] != 0
    assert broken


def test_even_chunks():
    """The smallest number of chunks that loads all ports evenly follows the formula."""
    for side in range(2, 9):
        for axes in range(1, 8):
            if side**axes <= 5000:
                odd_part = axes // (axes & -axes)
                needed = axes if side == 2 else odd_part if side % 2 else 2 * axes
                assert Necklaces(cube(axes, side)).even_chunks == needed, (axes, side)


@pytest.mark.parametrize(
    ("axes", "side", "chunks", "gather", "exchange"),
    [(2, 3, 1, 2, 3), (2, 4, 4, 15, 32), (2, 5, 1, 6, 15), (2, 8, 4, 63, 256), (3, 3, 3, 13, 27),
     (3, 4, 6, 63, 192), (3, 5, 3, 62, 225), (4, 3, 1, 10, 27), (4, 4, 8, 255, 1024)],
)  # fmt: skip
def test_table_1_examples(axes, side, chunks, gather, exchange):
    """The examples of table 1 take the stated chunks and steps."""
    torus = cube(axes, side)
    for kind, steps in [("allgather", gather), ("scatter", gather), ("alltoall", exchange)]:
        schedule = plan(torus, kind)
        assert (schedule.chunks, schedule.round_count) == (chunks, steps)
        check(schedule)


@pytest.mark.parametrize(("axes", "side"), CUBES)
@pytest.mark.parametrize("chunks", [1, 2, 7])
def test_broadcast_and_reduce(axes, side, chunks):
    """Broadcast and reduce of M chunks take M - 1 steps more than the diameter."""
    torus = cube(axes, side)
    for kind in ("broadcast", "reduce"):
        schedule = plan(torus, kind, root=torus.nodes - 1, chunks=chunks)
        assert schedule.round_count == chunks + axes * (side // 2) - 1
        assert check(schedule).transfers == chunks * (torus.nodes - 1)


@pytest.mark.parametrize(("axes", "side"), CUBES + LARGER)
@pytest.mark.parametrize("factor", [1, 2])
def test_tables_meet_the_formulas(axes, side, factor):
    """All-gather and all-to-all meet the formulas if the chunks load all ports evenly."""
    torus = cube(axes, side)
    necklaces = Necklaces(torus)
    chunks, ports = factor * necklaces.even_chunks, necklaces.n_ports_used
    schedule = plan(torus, "allgather", chunks=chunks)
    assert schedule.round_count * ports == chunks * (torus.nodes - 1)
    assert check(schedule).transfers == chunks * (torus.nodes - 1) * torus.nodes
    schedule = plan(torus, "alltoall", chunks=chunks)
    assert schedule.round_count * ports == chunks * hops(axes, side)
    assert check(schedule).transfers == chunks * hops(axes, side) * torus.nodes


@pytest.mark.parametrize(("axes", "side"), CUBES)
@pytest.mark.parametrize("kind", ["scatter", "gather"])
def test_scatter_and_gather(axes, side, kind):
    """Scatter and gather meet the formula for steps, over shortest paths."""
    torus = cube(axes, side)
    necklaces = Necklaces(torus)
    chunks, ports = necklaces.even_chunks, necklaces.n_ports_used
    schedule = plan(torus, kind, root=torus.nodes // 2)
    assert schedule.round_count * ports == chunks * (torus.nodes - 1)
    assert check(schedule).transfers == chunks * hops(axes, side)


@pytest.mark.parametrize(("axes", "side"), CUBES)
@pytest.mark.parametrize("kind", ["reduce-scatter", "allreduce"])
def test_reductions_add_every_contribution_once(axes, side, kind):
    """Reductions add each contribution exactly once."""
    torus = cube(axes, side)
    schedule = plan(torus, kind)
    chunks, halves = Necklaces(torus).even_chunks, 2 if kind == "allreduce" else 1
    assert schedule.round_count == halves * plan(torus, "allgather").round_count
    assert schedule.chunks == chunks * (torus.nodes if kind == "allreduce" else 1)
    for prove in (check, check_rounds) if torus.nodes <= 32 else (check,):
        assert prove(schedule).transfers == halves * chunks * torus.nodes * (torus.nodes - 1)


def test_only_plus_ports_on_a_hypercube():
    """On a hypercube a plan uses only the plus ports."""
    schedule = plan(cube(3, 2), "allgather")
    assert schedule.ports == 3
    assert (schedule.offset[:, 1::2] == -1).all()
    assert (schedule.offset[:, ::2] >= 0).all()


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.sampled_from([dims for dims in CUBES if dims[1] ** dims[0] <= 36]),
    st.integers(1, 9),
    st.sampled_from([kind for kind in NECKLACE.collectives if kind != "allreduce"]),
)
def test_any_number_of_chunks(dims, chunks, kind):
    """With any number of chunks, uneven shares cost at most one idle slot per necklace."""
    torus = cube(*dims)
    necklaces = Necklaces(torus)
    root = 1 if kind in ("broadcast", "scatter", "gather", "reduce") else None
    schedule = plan(torus, kind, root=root, chunks=chunks)
    check(schedule)
    if kind in ("allgather", "reduce-scatter"):
        slots = [
            ceil(chunks * necklaces.necklace_period[v] / necklaces.n_ports_used)
            for v in necklaces.generators
        ]
        assert schedule.round_count == sum(slots)


@pytest.mark.parametrize("kind", NECKLACE.collectives)
@pytest.mark.parametrize("latency", [1, 2, 5])
def test_latency_is_waited_for(kind, latency):
    """A received block is sent on only after the latency."""
    for dims in [(1, 5), (2, 4), (3, 2), (3, 3)]:
        schedule = plan(cube(*dims), kind, latency=latency)
        check(schedule)
        assert shortest_wait(schedule) >= latency
