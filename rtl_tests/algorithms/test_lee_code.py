"""Circuit-switched collectives by perfect Lee codes, and the check of a quotient schedule."""

from dataclasses import replace

import numpy as np
import pytest
from paper_costs import tau_large, tau_short
from planners import planner

from torusfabric.algorithms.circuit.circuits import ceil_log
from torusfabric.algorithms.circuit.lee_code import (
    LEE_CODE,
    lee_code_quotient,
)
from torusfabric.analysis.check import check, check_rounds
from torusfabric.analysis.cost import schedule_cost
from torusfabric.collective import Collective
from torusfabric.errors import ScheduleError
from torusfabric.schedule import Rounds
from torusfabric.schedule.quotient import Quotient
from torusfabric.topology import Torus

plan = planner(LEE_CODE)

#: Each round for i = 1: transfers, arcs, longest path, longest message.
CONCENTRATE, SPREAD_A, SPREAD_B = (294, 294, 1, 1), (294, 1176, 5, 7), (294, 1372, 5, 49)
PAPER = {
    False: [CONCENTRATE, SPREAD_A, SPREAD_B, (294, 294, 1, 343)],
    True: [CONCENTRATE, SPREAD_A, SPREAD_B, (294, 294, 1, 49), (2058, 2058, 1, 49)],
}

#: Each round for i = 2 and short messages: transfers, arcs, longest path, longest message.
PAPER_2 = [
    (100842, 100842, 1, 1), (14406, 100842, 7, 7), (14406, 403368, 35, 49),
    (14406, 470596, 35, 343), (14406, 100842, 7, 2401), (100842, 403368, 5, 2401),
    (100842, 470596, 5, 16807), (100842, 100842, 1, 117649),
]  # fmt: skip

DELTA = {False: (12, 96, 684, 4800), True: (13, 104, 741, 5200)}
TAU = {
    False: (400, 139658, 47919558, 16436526100),
    True: (155, 53908, 18495303, 6343922600),
}


def cube(i):
    return Torus([7**i] * 3)


def quotient(i=1, large=False):
    return lee_code_quotient(cube(i), Collective("allgather"), large=large)


def figures(schedule):
    """Return transfers, arcs, longest path and longest message of each round."""
    report = check(schedule)
    counts = [(len(t), int(t.lengths.sum())) for t in schedule.rounds()]
    return [
        (*count, hops, blocks)
        for count, hops, blocks in zip(counts, report.round_hops, report.round_blocks, strict=True)
    ]


@pytest.mark.parametrize("large", [False, True])
def test_allgather_on_7x7x7_is_as_in_the_paper(large):
    """The all-gather on 7x7x7 has the rounds of the paper."""
    schedule = plan((7, 7, 7), "allgather", large=large)
    assert isinstance(schedule, Rounds)
    assert figures(schedule) == PAPER[large]


def test_allgather_on_49x49x49_is_as_in_the_paper():
    """The all-gather on 49x49x49 has the rounds of the paper."""
    assert figures(plan((49, 49, 49), "allgather")) == PAPER_2


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("i", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_costs_are_those_of_the_propositions(i, large):
    """Rounds, delta and tau are those of the propositions."""
    schedule = plan([7**i] * 3, "allgather", large=large)
    cost = schedule_cost(schedule)
    assert (cost.rounds, cost.delta) == ((5 if large else 4) * i, DELTA[large][i - 1])
    assert cost.tau == TAU[large][i - 1]
    assert cost.delta * 9 == (13 if large else 12) * schedule.topology.diameter


@pytest.mark.parametrize(("closed", "large"), [(tau_short, False), (tau_large, True)])
def test_closed_forms_solve_the_recurrences(closed, large):
    """The closed forms of tau solve the recurrences."""
    tau = 0
    for i in range(1, 9):
        nodes = 7 ** (3 * i)
        tau = 7 * tau + 1 + nodes // 49 + (3 * nodes // 7 if large else nodes + nodes // 7)
        assert closed(i) == tau
    assert tuple(closed(i) for i in range(1, 5)) == TAU[large]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("i", [1, 2, 3])
def test_nodes_of_a_label_have_one_program(i, large):
    """The nodes of each label have one program, and different labels have different programs."""
    feeds = quotient(i, large).port_feeds()
    programs = np.unique(feeds.transpose(1, 0, 2).reshape(7**i, -1), axis=0)
    assert len(programs) == 7**i


@pytest.mark.parametrize("large", [False, True])
def test_feeds_are_those_of_the_listed_paths(large):
    """The feeds of a quotient are those of the listed paths."""
    schedule = quotient(1, large)
    topology, feeds = schedule.topology, schedule.port_feeds()
    for feed, transfers in zip(feeds, schedule.rounds(), strict=True):
        listed_feed = np.full((topology.nodes, 6), -1)
        nodes = transfers.walk(topology)
        for hop in range(transfers.hops.shape[1]):
            on = transfers.hops[:, hop] >= 0
            came = topology.opposite[transfers.hops[on, hop - 1]] if hop else 6
            listed_feed[nodes[on, hop], transfers.hops[on, hop]] = came
        assert np.array_equal(listed_feed, feed[schedule.labels])


@pytest.mark.parametrize("large", [False, True])
def test_proof_by_labels_finds_what_the_plain_check_finds(large):
    """The check by labels gives the same report as the check block by block."""
    schedule = quotient(1, large)
    assert isinstance(schedule, Quotient)
    assert (
        check(schedule)
        == check_rounds(schedule)
        == check(Rounds(**schedule.head, transfers=tuple(schedule.rounds())))
    )


@pytest.mark.long
@pytest.mark.parametrize("large", [False, True])
def test_proof_by_labels_finds_what_the_plain_check_finds_on_49x49x49(large):
    """The check by labels gives the same report as the check block by block on 49x49x49."""
    schedule = quotient(2, large)
    assert check(schedule) == check_rounds(schedule)


def test_faults_of_labels_are_found():
    """Faults in the labels, the ports and the duplex mode are found."""
    schedule = quotient(1)
    with pytest.raises(ScheduleError, match=r"^Labels must change by multiples of 7 around"):
        check(replace(schedule, topology=Torus((7, 7, 8))))
    with pytest.raises(ScheduleError, match=r"^Weights must reach all 7 labels, not \(7, 0, 14\)$"):
        check(replace(schedule, weights=(7, 0, 14)))
    with pytest.raises(ScheduleError, match=r"^Quotient schedule must be an allgather, not gather"):
        check(replace(schedule, collective=Collective("gather", 0)))
    with pytest.raises(
        ScheduleError, match=r"^Round 1: node 0 .* receives message 6 of at most 5 in"
    ):
        check(replace(schedule, ports=5))
    with pytest.raises(ScheduleError, match=r"carries two messages at once \(half duplex"):
        check(replace(schedule, duplex="half"))


def test_schedules_have_different_digests():
    """Different schedules have different digests."""
    digests = {quotient(i, large).digest for i in (1, 2) for large in (False, True)}
    assert len(digests) == 4
    assert quotient(1).digest == quotient(1).digest


@pytest.mark.parametrize(
    ("sides", "rounds"),
    [((5, 5), 2), ((25, 25), 4), ((125, 125), 6), ((2, 2), 1), ((10, 10), 3), ((50, 50), 5),
     ((250, 250), 7), ((7, 7, 7), 3), ((49, 49, 49), 6)],
)  # fmt: skip
def test_broadcast_meets_the_lower_bound(sides, rounds):
    """A broadcast takes the fewest possible rounds."""
    nodes = int(np.prod(sides))
    schedule = plan(sides, "broadcast", root=nodes * 2 // 3)
    report = check(schedule)
    assert report.rounds == rounds == ceil_log(nodes, 2 * len(sides))
    assert (report.transfers, report.duplicates) == (nodes - 1, 0)


@pytest.mark.parametrize("sides", [(5, 5), (10, 10), (2, 2), (7, 7, 7), (25, 25)])
@pytest.mark.parametrize("kind", ["gather", "reduce"])
def test_gather_and_reduce_take_as_many_rounds(sides, kind):
    """Gather and reduce take as many rounds as the broadcast."""
    report = check(plan(sides, kind, root=3))
    assert report.rounds == plan(sides, "broadcast").round_count
    assert report.duplicates == 0
