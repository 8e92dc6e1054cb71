"""Gather and reduce as a broadcast, or a scatter, that runs backwards."""

from dataclasses import replace

import numpy as np
import pytest

from torusfabric.algorithms import Options, find_algorithm
from torusfabric.algorithms.reversal import reverse_schedule
from torusfabric.analysis.check import check
from torusfabric.collective import Collective, parse_collective
from torusfabric.schedule import ALL, Grouped, Listed, Rounds, Switching, Transfers
from torusfabric.topology import Torus, parse_topology


def forward(topology, kind, algorithm, **options):
    topology = parse_topology(topology)
    collective = parse_collective(kind, root=1, topology=topology)
    return find_algorithm(algorithm)(topology, collective, Options(**options))


def ring_broadcast(payloads, chunks):
    """Return a broadcast from node 0 of a ring of three nodes, with one transfer in each round."""
    hops = [(0, 0), (0, 1), (1, 0), (0, 0)]
    rounds = [
        Transfers(np.array([node]), np.array([[port]], np.int8), payload)
        for (node, port), payload in zip(hops, payloads, strict=True)
    ]
    return Rounds(
        topology=Torus([3]),
        collective=Collective("broadcast", 0),
        algorithm="by-hand",
        switching=Switching.STORE_AND_FORWARD,
        ports=2,
        chunks=chunks,
        transfers=tuple(rounds),
    )


@pytest.mark.parametrize("kind", ["gather", "reduce"])
@pytest.mark.parametrize(
    ("topology", "algorithm", "options"),
    [("5x7", "diagonal", {"ports": 3}), ("4x3x5", "max-flow", {}), ("25x25", "lee-code", {}),
     ("arrowhead:2", "wormhole-forest", {"ports": 6}),
     ("arrowhead:2", "spanning-tree", {"packets": 3})],
)  # fmt: skip
def test_broadcasts_run_backwards(topology, algorithm, options, kind):
    """A reversed broadcast has the same rounds, hops and arcs in reverse order."""
    schedule = forward(topology, "broadcast", algorithm, **options)
    report, back = check(schedule), check(reverse_schedule(schedule, kind))
    assert (back.rounds, back.round_hops) == (report.rounds, report.round_hops[::-1])
    assert (back.arcs_used, back.duplicates) == (report.arcs_used, 0)


def test_gather_brings_whole_subtrees():
    """A reversed broadcast gathers whole subtrees: 1, 7 and 49 messages at once."""
    schedule = reverse_schedule(forward("7x7x7", "broadcast", "lee-code"), "gather")
    assert check(schedule).round_blocks == (1, 7, 49)


def test_paths_go_back_over_opposite_arcs():
    """Reversed paths use the opposite arcs."""
    schedule = forward("5x5", "broadcast", "lee-code")
    there, back = list(schedule.rounds()), list(reverse_schedule(schedule, "reduce").rounds())
    for one, other in zip(there, back[::-1], strict=True):
        nodes, reached = one.walk(schedule.topology), other.walk(schedule.topology)
        for path, hops, way in zip(nodes, one.lengths, reached, strict=True):
            assert path[: hops + 1].tolist() == way[: hops + 1][::-1].tolist()


@pytest.mark.parametrize("kind", ["gather", "reduce"])
def test_what_arrives_twice_is_left_out(kind):
    """Repeated arrivals are left out: only the first arrival at each node is reversed."""
    back = reverse_schedule(ring_broadcast([ALL, ALL, ALL, ALL], 1), kind)
    assert [len(transfers) for transfers in back.rounds()] == [0, 0, 1, 1]
    assert check(back).duplicates == 0


@pytest.mark.parametrize("kind", ["gather", "reduce"])
def test_what_arrives_twice_at_once_is_left_out(kind):
    """If two arrivals happen in the same round, only one of them is reversed."""
    both = np.array([[0], [1]], np.int8)
    rounds = Transfers(np.array([0, 0]), both), Transfers(np.array([1, 3]), both)
    schedule = replace(ring_broadcast([ALL] * 4, 1), topology=Torus([4]), transfers=rounds)
    assert check(schedule).duplicates == 1
    back = reverse_schedule(schedule, kind)
    assert [len(transfers) for transfers in back.rounds()] == [1, 2]
    assert check(back).duplicates == 0


@pytest.mark.parametrize("kind", ["gather", "reduce"])
def test_each_chunk_has_its_own_tree(kind):
    """Each chunk is gathered along a tree of its own."""
    groups = [Grouped(np.array([0, 1]), np.array([group])) for group in (0, 1)]
    chunks = [Listed.single(np.array([chunk])) for chunk in (0, 1)]
    for payloads in (
        [groups[0], groups[1], ALL, groups[1]],
        [chunks[0], ALL, chunks[0], chunks[1]],
    ):
        schedule = ring_broadcast(payloads, 2)
        check(schedule)
        back = reverse_schedule(schedule, kind)
        check(back)
        carried = sum(len(transfers) for transfers in back.rounds())
        assert carried <= 4


def test_scatter_runs_backwards():
    """A reversed scatter is a gather of as many rounds."""
    schedule = forward("4x5", "scatter", "matching")
    back = reverse_schedule(schedule, "gather")
    report = check(back)
    assert report.rounds == schedule.round_count
    assert report.duplicates == 0
