"""Rules and bounds on links with rates below 1: `check` knows no planner, only the rates."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.analysis.cost import schedule_cost
from torusfabric.analysis.facts import schedule_facts
from torusfabric.analysis.link_use import measure_link_use
from torusfabric.analysis.volume import cycle_limit, least_time, limiting_cut_text
from torusfabric.schedule import Duplex, Listed, Rounds, Switching, Transfers
from torusfabric.schedule.transfers import NOTHING

#: A line of two nodes; the link carries a message every three rounds.
PAIR = tf.with_rates(tf.Graph([(0, 1, "a"), (1, 0, "a")]), "1/3")


def scatter(*steps, chunks=2, **head):
    """Return a scatter from node 0 of `PAIR` that sends chunks 0, 1 .. in the given steps."""
    none = np.zeros(0, int)
    rounds = [Transfers.hop(none, none, NOTHING)] * max(steps)
    for chunk, step in enumerate(steps[:-1]):
        block = Listed.single(np.array([chunks + chunk]))  # blocks of node 0 come first
        rounds[step - 1] = Transfers.hop(np.array([0]), np.array([0]), block)
    head = {"chunks": chunks, **head}
    collective = tf.Collective("scatter", 0)
    return Rounds(topology=PAIR, collective=collective, transfers=tuple(rounds), **head)


def test_messages_as_far_apart_as_the_rate_demands_are_right():
    """Sends in rounds 1 and 4, each for three rounds: six rounds are needed."""
    assert tf.check(scatter(1, 4, 6)).rounds == 6
    assert tf.check(scatter(2, 7, 9)).transfers == 2
    assert tf.bound(scatter(1, 4, 6)) == 6


def test_messages_too_close_are_refused_with_their_place():
    with pytest.raises(tf.ScheduleError) as error:
        tf.check(scatter(1, 3, 6))
    assert str(error.value) == (
        "Round 3: node 0 (0) port a carries a message 2 rounds after the one before; its rate is a "
        "message every 3 rounds"
    )
    assert (error.value.round, error.value.node, error.value.port) == (3, 0, 0)


def test_a_message_that_is_not_over_at_the_end_is_refused():
    with pytest.raises(tf.ScheduleError, match=r"^Round 4: node 0 \(0\) port a carries a message "
                       "for 3 rounds, of which there are only 5; add rounds"):  # fmt: skip
        tf.check(scatter(1, 4, 5))


def test_messages_of_several_blocks_and_circuits_are_refused():
    schedule = scatter(1, 4, 6)
    both = Listed(np.array([0, 2]), np.array([2, 3]))
    rounds = (replace(schedule.transfers[0], payload=both), *schedule.transfers[1:])
    text = "messages must be one block over one hop where links have rates below 1"
    with pytest.raises(tf.ScheduleError, match=f"^Round 1: {text}"):
        tf.check(replace(schedule, transfers=rounds))
    with pytest.raises(tf.ScheduleError, match=f"(?i)^{text}"):
        tf.check(replace(schedule, switching=Switching.CIRCUIT))


def test_in_half_duplex_both_ways_share_the_time_of_a_link():
    there, back = (Transfers.hop(np.array([k]), np.array([0]), Listed.single(np.array([k])))
                   for k in (0, 1))  # fmt: skip
    none = Transfers.hop(np.zeros(0, int), np.zeros(0, int), NOTHING)
    schedule = Rounds(
        topology=PAIR, collective=tf.Collective("allgather"),
        transfers=(there, none, back, none, none),
    )  # fmt: skip
    assert tf.check(schedule).rounds == 5
    with pytest.raises(
        tf.ScheduleError, match=r"^Round 3: node 1 \(1\) port a carries a message 2"
    ):
        tf.check(replace(schedule, duplex=Duplex.HALF))


def test_planted_faults_are_found():
    """Each message of a right schedule is moved one step nearer to another on its slow arc."""
    schedule = tf.plan("3x3", "allgather", rate="1:1/2", chunks=4)
    assert isinstance(schedule, Rounds)
    tf.check(schedule)
    spacing, steps = schedule.topology.spacing_of_arc, list(schedule.transfers)
    found = 0
    for number in range(len(steps) - 1):
        now, later = steps[number], steps[number + 1]
        arcs = set(zip(later.source.tolist(), later.hops[:, 0].tolist(), strict=True))
        for k in range(len(now)):
            arc = int(now.source[k]), int(now.hops[k, 0])
            next_use = number + spacing[arc]
            if spacing[arc] == 1 or arc in arcs or next_use >= len(steps):
                continue
            used = zip(steps[next_use].source.tolist(), steps[next_use].hops[:, 0], strict=True)
            if arc not in set(used):
                continue
            moved = Transfers.hop(
                np.append(later.source, arc[0]), np.append(later.hops[:, 0], arc[1]),
                Listed.single(np.append(later.listed.ids, now.listed.ids[k])),
            )  # fmt: skip
            rest = now.of(np.arange(len(now)) != k)
            wrong = replace(
                schedule, transfers=(*steps[:number], rest, moved, *steps[number + 2 :])
            )
            with pytest.raises(tf.ScheduleError):
                tf.check(wrong)
            found += 1
    assert found > 20


@pytest.mark.parametrize(
    ("name", "collective", "least"),
    [
        # Per node and step, 2 links of rate 1 and 2 of 1/2 bring 15 messages.
        ("4x4%1:1/2", "allgather", Fraction(15, 3)),
        ("4x4%1/2", "allgather", Fraction(15, 2)),
        ("4x4%0:2", "allgather", Fraction(15, 6)),
        ("4x4%0:2,1:1/2", "allgather", Fraction(15, 5)),
        # Half of the torus sends 8 x 8 messages to the other over 8 links of rate 1/2.
        ("4x4%1:1/2", "alltoall", Fraction(16)),
        ("4x4%1:1/3", "alltoall", Fraction(24)),
        ("4x4%0:2", "alltoall", Fraction(8)),
        ("4x4%1:1/2", "broadcast", Fraction(1, 3)),
        # All-reduce: 2 x 15 messages over 48 links at full rate.
        ("4x4%1:1/2", "allreduce", Fraction(30, 48)),
        ("3x3%1:1/2", "scatter", Fraction(8, 3)),
    ],
)
def test_bounds_count_rates(name, collective, least):
    network = tf.parse_topology(name)
    assert least_time(network, tf.parse_collective(collective)) == least
    assert cycle_limit(network, tf.parse_collective(collective), 64) >= 64 * least


def test_the_bound_holds_for_counts_and_few_ports():
    network = tf.parse_topology("4x4%1:1/2")
    gather = tf.parse_collective("gather")
    assert least_time(network, gather) == 5
    assert least_time(network, gather, ports=1) == 15
    some = tf.parse_collective("allgather@{0,1,2,3}", topology=network)
    assert least_time(network, some) == 1


def test_the_cut_names_the_rate():
    text = limiting_cut_text(tf.parse_topology("4x4%1:1/2"), tf.parse_collective("allgather"))
    assert text == (
        "15 messages over 6 links into node 0 (0,0), where a link of a flit a cycle counts 2 times"
    )


def test_facts_count_idle_rounds_and_busy_links():
    """A message occupies a slow link for all of its rounds, in which others may wait."""
    schedule = scatter(1, 4, 6)
    facts = schedule_facts(schedule)
    assert (facts["tau"], facts["tau_bound"], facts["bound"]) == (3, 3, 6)
    assert facts["rates"] == "2 arcs carry a message at most every 3 steps"
    assert measure_link_use(schedule).of_arc.tolist() == [[6], [0]]


def test_sums_do_not_stream_over_slow_links():
    """A reduction of one chunk goes up a tree, but each flit waits for its cycle."""
    schedule = tf.plan("3x3", "reduce", rate="1/2", chunks=1)
    assert schedule_cost(schedule).stream is None
    assert schedule_cost(tf.plan("mesh:3x3", "reduce", trees=1)).stream == 1
