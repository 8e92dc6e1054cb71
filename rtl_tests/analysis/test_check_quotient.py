"""Quotient schedules, in which all nodes of one label do the same, and their check."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.analysis.check import check, check_rounds
from torusfabric.collective import Collective
from torusfabric.errors import ScheduleError
from torusfabric.schedule.quotient import Quotient, QuotientRound, Send
from torusfabric.topology import Torus

SMALL = settings(derandomize=True, deadline=None, max_examples=80)

#: Sides, weights and modulus of each labelling.
LABELLINGS = [
    ((12,), (1,), 12), ((12,), (5,), 4), ((4, 6), (3, 2), 12), ((4, 4), (1, 2), 4),
    ((3, 3, 3), (1, 1, 1), 3), ((2, 6), (3, 1), 6), ((5, 3), (0, 1), 3),
]  # fmt: skip


def schedule(labelling, steps, chunks=1, **changes):
    sides, weights, modulus = labelling
    fields = {
        "topology": Torus(sides),
        "collective": Collective("allgather"),
        "algorithm": "by-hand",
        "switching": "circuit",
        "ports": 2 * len(sides),
        "chunks": chunks,
        "weights": weights,
        "modulus": modulus,
        "quotient_rounds": tuple(steps),
    }
    return Quotient(**fields | changes)


def flooding(labelling):
    """Return rounds in which every node sends everything through every port."""
    sides, _, modulus = labelling
    moves = [Send(np.arange(modulus), ((port, 1),)) for port in range(2 * len(sides))]
    return [QuotientRound(tuple(moves))] * Torus(sides).diameter


def random_step(random, labelling):
    """Return a random round of single hops, or rarely of paths, alike modulo a divisor."""
    sides, _, modulus = labelling
    divisor = random.choice([d for d in range(1, modulus + 1) if modulus % d == 0])
    grouped = random.random() < 0.4
    grouping = random.integers(0, 2, modulus) if grouped else None
    moves = []
    for port in range(2 * len(sides)):
        labels = np.flatnonzero((random.random(divisor) < 0.6)[np.arange(modulus) % divisor])
        group = random.integers(0, 2, divisor)[labels % divisor] if grouped else None
        if len(labels):
            hops = 2 if random.random() < 0.03 else 1
            moves.append(Send(labels, ((port, hops),), group))
    return QuotientRound(tuple(moves), grouping)


def verdict(quotient, prove):
    try:
        return prove(quotient)
    except ScheduleError as error:
        return error.round, error.args[0].split(" ")[-4:]


@SMALL
@given(st.sampled_from(LABELLINGS), st.integers(0, 2**32), st.integers(0, 5), st.integers(1, 2))
def test_same_verdict_and_figures_as_the_plain_check(labelling, seed, count, chunks):
    """The check by labels gives the same verdict and figures as the check block by block."""
    random = np.random.default_rng(seed)
    steps = [random_step(random, labelling) for _ in range(count)] + flooding(labelling)
    quotient = schedule(labelling, steps, chunks)
    assert verdict(quotient, check) == verdict(quotient, check_rounds)


def test_most_of_the_random_schedules_are_correct():
    """Most of the random schedules are correct, so that both verdicts are compared."""
    random, correct = np.random.default_rng(3), 0
    for labelling in LABELLINGS:
        for _ in range(10):
            steps = [random_step(random, labelling) for _ in range(3)] + flooding(labelling)
            correct += not isinstance(verdict(schedule(labelling, steps), check), tuple)
    assert correct > 15


@pytest.mark.parametrize("labelling", LABELLINGS)
def test_flooding_is_complete_one_round_less_is_not(labelling):
    """Flooding is complete after as many rounds as the diameter.

    One round fewer lacks the farthest block.
    """
    steps = flooding(labelling)
    assert check(schedule(labelling, steps)).rounds == len(steps)
    short = schedule(labelling, steps[:-1])
    with pytest.raises(ScheduleError, match=r"ends without block") as proof:
        check(short)
    node, block = proof.value.node, proof.value.block
    assert node is not None
    assert block is not None
    assert short.topology.distance(block[0], node) == len(steps)


@pytest.mark.parametrize("labelling", LABELLINGS)
def test_labels_are_sums_of_weights_and_coordinates(labelling):
    """The label of a node is the weighted sum of its coordinates, modulo the modulus."""
    quotient = schedule(labelling, [])
    coordinates = quotient.topology.coordinates(np.arange(quotient.topology.nodes))
    assert np.array_equal(quotient.labels, labelling[1] @ coordinates % labelling[2])
    for label, nodes in enumerate(quotient.nodes_by_label):
        assert np.array_equal(nodes, np.flatnonzero(quotient.labels == label))


def move(labels, runs, group=None):
    return QuotientRound((Send(np.array(labels), runs, group),))


@pytest.mark.parametrize(
    ("step", "message"),
    [(move([0, 0], ((0, 1),)), "a send must name labels 0 to 11, each once"),
     (move([12], ((0, 1),)), "a send must name labels 0 to 11, each once"),
     (move([-1], ((0, 1),)), "a send must name labels 0 to 11, each once"),
     (move([0], ()), "a send has a path or a run without a hop"),
     (move([0], ((0, 0),)), "a send has a path or a run without a hop"),
     (move([0], ((2, 1),)), "a send has a path through a port that is none"),
     (move([0], ((0, 1),), np.array([0])), "all sends must have groups, or none"),
     (move([0], ((0, 13),)), "carries two messages at once"),
     (move([0, 1], ((0, 2),)), "carries two messages at once"),
     (QuotientRound((Send(np.array([0]), ((0, 1),), np.array([1])),), np.zeros(12, int)),
      "sends a message without a block")],
)  # fmt: skip
def test_faults(step, message):
    """A fault in a send is named with its round."""
    with pytest.raises(ScheduleError, match=f"^Round 1: .*{message}$"):
        check(schedule(LABELLINGS[0], [step]))


def test_ports_switching_and_duplex_are_respected():
    """Ports, duplex mode and switching are checked."""
    flood = flooding(LABELLINGS[0])
    with pytest.raises(ScheduleError, match=r"^Round 1: node 0 \(0\) port -0 sends message 2 of"):
        check(schedule(LABELLINGS[0], flood, ports=1))
    with pytest.raises(ScheduleError, match=r"carries two messages at once \(half duplex"):
        check(schedule(LABELLINGS[0], flood, duplex="half"))
    with pytest.raises(ScheduleError, match=r"^Round 1: a send has a path of more than one hop$"):
        check(schedule(LABELLINGS[0], [move([0], ((0, 2),))], switching="store-and-forward"))
