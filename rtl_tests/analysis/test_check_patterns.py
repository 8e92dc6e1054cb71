"""Patterns, which the checker judges without following each block."""

from dataclasses import replace

import numpy as np
import pytest
from check_model import END, SMALL, collective, faulty_round, first_fault, hamiltonian_pattern, ring
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.analysis.check import check, check_rounds
from torusfabric.collective import Collective, parse_collective
from torusfabric.errors import InputError, ScheduleError
from torusfabric.schedule import Duplex, Pattern, Switching
from torusfabric.topology import Torus


@pytest.mark.parametrize("sides", [(2, 2), (2, 6), (4, 4), (6, 4), (8, 8)])
@pytest.mark.parametrize("prove", [check, check_rounds])
def test_hamiltonian_cycles_take_half_the_nodes(sides, prove):
    """Hamiltonian cycles take N / 2 steps.

    A pattern with one step fewer leaves a node without a block.
    """
    schedule = hamiltonian_pattern(*sides)
    nodes = schedule.topology.nodes
    traffic = prove(schedule)
    assert traffic.rounds == nodes // 2
    assert traffic.transfers == traffic.arcs_used == 4 * nodes * (nodes // 2)
    assert traffic.duplicates == 2 * nodes, "both ways meet at the opposite node"
    shorter = replace(schedule, steps=nodes // 2 - 1)
    with pytest.raises(
        ScheduleError, match=rf"^After {nodes // 2 - 1} steps?: node 0 .* ends without b"
    ):
        prove(shorter)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    st.sampled_from(SMALL),
    st.sampled_from(["allgather", "broadcast", "gather"]),
    st.integers(1, 2),
    st.integers(1, 12),
    st.sampled_from(["full", "half"]),
    st.randoms(use_true_random=False),
)
def test_random_patterns(sides, kind, chunks, steps, duplex, random):
    """The check of a pattern and the check step by step give the same verdict."""
    topology = Torus(sides)
    shape = topology.nodes, topology.ports
    feed = np.array([random.randint(-1, topology.ports - 1) for _ in range(np.prod(shape))])
    inject = np.array([random.randint(-1, chunks - 1) for _ in range(np.prod(shape))])
    full = random.random() < 0.7
    root = random.randrange(topology.nodes)
    feed, inject = feed.reshape(shape), inject.reshape(shape)
    if random.random() < 0.5:
        feed = np.maximum(feed, 0)
    if kind == "broadcast" and random.random() < 0.9:
        inject[np.arange(topology.nodes) != root] = -1
    pattern = Pattern(
        topology=topology, collective=collective(kind, root), algorithm="random", chunks=chunks,
        switching=Switching.STORE_AND_FORWARD, steps=steps,
        duplex=duplex if not full else Duplex.FULL,
        ports=topology.ports if full else random.randint(1, topology.ports),
        feed=feed, inject=inject,
    )  # fmt: skip
    assert faulty_round(pattern) == faulty_round(pattern, check_rounds) == first_fault(pattern)
    if faulty_round(pattern) is None:
        assert check(pattern) == check_rounds(pattern)


@pytest.mark.parametrize("kind", ["allgather", "broadcast"])
@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 6, 7, 31, 64])
@pytest.mark.parametrize("extra", [-1, 0, 1, 50])
def test_rings(kind, nodes, extra):
    """A ring of N nodes needs floor(N / 2) steps; further steps only add duplicates."""
    pattern = ring(nodes, nodes // 2 + extra, kind=kind)
    if extra < 0:
        assert faulty_round(pattern) == faulty_round(pattern, check_rounds) == END
        return
    traffic = check(pattern)
    assert traffic == check_rounds(pattern)
    senders = nodes if kind == "allgather" else 1
    assert traffic.transfers == 2 * senders * (nodes // 2 + extra)
    assert traffic.duplicates == traffic.transfers - senders * (nodes - 1)


@pytest.mark.parametrize("prove", [check, check_rounds])
def test_patterns_keep_ports_and_links(prove):
    """Too many ports, and both directions of a link in half duplex, are refused."""
    with pytest.raises(ScheduleError, match=r"^Round 1: node 0 .* sends message 2 of at most 1"):
        prove(replace(ring(5, 2), ports=1))
    with pytest.raises(ScheduleError, match=r"^Round 1: node \d .* carries two .* \(half duplex"):
        prove(replace(ring(5, 2), duplex="half"))
    alone = replace(ring(3, 1, kind="broadcast"), ports=1, feed=np.full((3, 2), -1))
    with pytest.raises(ScheduleError, match=r"^Round 1: node 0 .* sends message 2 of at most 1"):
        prove(alone)
    inject = np.array([[-1, -1], [-1, 0], [0, -1]])
    inward = replace(alone, collective=collective("gather"), inject=inject)
    with pytest.raises(ScheduleError, match=r"^Round 1: node 0 .* receives message 2 of at most 1"):
        prove(inward)
    one_way = replace(
        ring(5, 4), feed=np.tile([1, -1], (5, 1)), inject=np.tile([0, -1], (5, 1)), ports=1,
        duplex="half",
    )  # fmt: skip
    assert prove(one_way).duplicates == 0


@pytest.mark.parametrize("prove", [check, check_rounds])
def test_patterns_may_use_ports_in_turn(prove):
    """A pattern may use more ports than allowed in all, if no step uses too many."""
    around_and_back = replace(
        ring(3, 4, kind="broadcast"), ports=1, feed=np.array([[-1, 1], [1, -1], [1, -1]]),
        inject=np.array([[0, -1], [-1, -1], [-1, -1]]),
    )  # fmt: skip
    traffic = prove(around_and_back)
    assert (traffic.transfers, traffic.duplicates) == (4, 2)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.sampled_from([(2, 2), (4, 2), (4, 4), (6, 4)]), st.data())
def test_stolen_feeds_are_found(sides, data):
    """Any change of a correct pattern gets the same verdict from all three checkers."""
    pattern = hamiltonian_pattern(*sides)
    feed, inject = pattern.feed.copy(), pattern.inject.copy()
    node = data.draw(st.integers(0, len(feed) - 1))
    port = data.draw(st.integers(0, 3))
    if data.draw(st.booleans()):
        feed[node, port] = data.draw(st.integers(-1, 3))
    else:
        inject[node, port] = data.draw(st.integers(-1, 1))
    broken = replace(pattern, feed=feed, inject=inject)
    assert faulty_round(broken) == faulty_round(broken, check_rounds) == first_fault(broken)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"feed": np.full((4, 2), 2)},
         r"Round 1: node 0 \(0\) port \+0 is fed by a port that is none"),
        ({"inject": np.full((4, 2), 2)}, "Round 1: node 0 .* sends a block that does not exist"),
        ({"feed": np.zeros((3, 2), int)}, "The tables of a pattern must have shape"),
        ({"collective": Collective("scatter", 0)},
         "A pattern cannot address the blocks of scatter"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("prove", [check, check_rounds])
def test_malformed_patterns(fields, message, prove):
    """Invalid entries and shapes are refused."""
    with pytest.raises(ScheduleError, match=f"^{message}"):
        prove(replace(ring(4, 2), **fields))


def test_steps_are_a_number():
    """A negative number of steps is refused."""
    with pytest.raises(InputError, match=r"^Steps must be a non-negative integer, not -1$"):
        replace(ring(4, 2), steps=-1)


@pytest.mark.long
def test_large_pattern():
    """Both checks agree on Hamiltonian cycles on 64x64."""
    schedule = hamiltonian_pattern(64, 64)
    assert check(schedule) == check_rounds(schedule)


@pytest.mark.parametrize("prove", [check, check_rounds])
def test_patterns_of_a_halo(prove):
    """A pattern of a halo is complete when each neighbour holds the block."""
    torus = Torus(4, 4)
    pattern = Pattern(
        topology=torus, collective=parse_collective("halo", topology=torus), steps=1,
        feed=np.full((16, 4), -1), inject=np.zeros((16, 4), int),
    )  # fmt: skip
    assert prove(pattern).transfers == 64
    lacking = replace(pattern, inject=np.tile([0, 0, 0, -1], (16, 1)))
    with pytest.raises(ScheduleError, match=r"^After 1 step: node 0 \(0,0\) ends without .*1, 0"):
        prove(lacking)


@pytest.mark.parametrize("prove", [check, check_rounds])
def test_patterns_are_of_one_group(prove):
    """A pattern of a collective in groups is refused.

    Such a schedule must be lifted from one group.
    """
    torus = Torus(4, 4)
    pattern = Pattern(
        topology=torus, collective=parse_collective("allgather@1", topology=torus), steps=2,
        ports=2, feed=np.tile([-1, -1, 3, 2], (16, 1)), inject=np.tile([-1, -1, 0, 0], (16, 1)),
    )  # fmt: skip
    with pytest.raises(ScheduleError, match=r"^A pattern is of one group: what several do is Lift"):
        prove(pattern)
