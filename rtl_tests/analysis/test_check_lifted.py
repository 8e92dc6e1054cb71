"""The check of one group stands for the check of all groups, and only if no two groups meet."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.analysis.check import check, check_rounds
from torusfabric.analysis.check.lifted import has_separate_copies
from torusfabric.analysis.link_use import busy_arcs, measure_link_use
from torusfabric.schedule import Lifted, Rounds
from torusfabric.topology import Groups

#: Selections in groups, for which each algorithm that suits is planned.
SELECTIONS = [
    ("4x3", "allgather@0"),
    ("4x3", "alltoall@1"),
    ("2x2", "alltoall@0"),
    ("3x4", "reduce-scatter@0"),
    ("3x4", "allreduce@1"),
    ("3x4", "broadcast@1"),
    ("2x3x2", "scatter@0+2"),
    ("2x3x3", "gather@1+2"),
    ("4x4x2", "halo@0+1"),
    ("5x3", "exchange[+0,-0]@0"),
    ("mesh:4x3", "allreduce@0"),
    ("4|x3", "alltoall@0"),
    ("4x4!5:+1", "allgather@1"),
    ("4x4!5:+1:out", "alltoall@1"),
    ("6x2", "reduce@0"),
]


def plan_groups(topology: str, collective: str, algorithm: str) -> Lifted:
    """Return the schedule of a collective in groups."""
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    assert isinstance(schedule, Lifted)
    return schedule


def plan_table(topology: str, collective: str, algorithm: str, **options: Any) -> Any:
    """Return a schedule in which all nodes do the same, or all nodes of a group."""
    return tf.plan(topology, collective, algorithm=algorithm, **options)


@pytest.mark.parametrize(("topology", "collective"), SELECTIONS)
def test_one_group_counts_like_all(topology, collective):
    """Traffic and use of links are those that all groups have, followed round by round."""
    for schedule in (row.schedule for row in tf.compare(topology, collective, flits=2)):
        assert isinstance(schedule, Lifted)
        assert has_separate_copies(schedule), schedule.algorithm
        assert check(schedule) == check_rounds(schedule), schedule.algorithm
        listed = Rounds(**schedule.head, transfers=tuple(schedule.rounds()))
        for given in (schedule, schedule.part):
            one = measure_link_use(given)
            each = np.array([*busy_arcs(given)])
            assert np.array_equal(one.of_arc, each.sum(axis=0))
            assert np.array_equal(one.of_round, each.sum(axis=(1, 2)))
        assert np.array_equal(measure_link_use(listed).of_arc, measure_link_use(schedule).of_arc)


def test_a_network_without_a_node():
    """One group that leaves out nodes is checked on the network without them."""
    lifted = Lifted.for_network(tf.plan("3x3!4", "allgather"), tf.Torus(3, 3))
    assert isinstance(lifted, Lifted)
    assert has_separate_copies(lifted)
    assert check(lifted) == check_rounds(lifted)
    each = np.array([*busy_arcs(lifted)])
    assert np.array_equal(measure_link_use(lifted).of_arc, each.sum(axis=0))
    assert not each[:, 4].any()


@pytest.mark.parametrize("name", ["alltoall@1", "reduce-scatter@1"])
def test_a_fault_in_the_part_is_named_in_the_whole(name):
    """A wrong entry of the part is refused, with the error of the follower."""
    right = plan_table("3x5", name, "matching")
    for step, port in np.ndindex(right.part.offset.shape):
        offset = right.part.offset.copy()
        offset[step, port] = (offset[step, port] + 2) % 5
        wrong = replace(right, part=replace(right.part, offset=offset))
        with pytest.raises(tf.ScheduleError) as expected:
            check_rounds(wrong)
        with pytest.raises(tf.ScheduleError) as found:
            check(wrong)
        assert str(found.value) == str(expected.value)


def test_a_link_that_one_group_lacks():
    """A part that is right on its ring is wrong if one of the rows has no such ring."""
    right = plan_groups("4x4", "allgather@1", "matching")
    wrong = replace(right, topology=tf.parse_topology("4x4!5:+1:out"))
    assert not has_separate_copies(wrong)
    with pytest.raises(tf.ScheduleError, match="has no link"):
        check(wrong)


def test_a_part_for_another_network_or_collective():
    """Parts of another length, with other chunks, ports or roots are no schedule of the groups."""
    right = plan_groups("4x4", "broadcast@1", "spanning-tree")
    assert has_separate_copies(right)
    for part in (
        tf.plan("5", "broadcast", algorithm="spanning-tree"),
        tf.plan("4", "broadcast", algorithm="spanning-tree", root=1),
        tf.plan("4", "scatter"),
        tf.plan("4", "broadcast", algorithm="spanning-tree", trees=1),
        tf.plan("mesh:4", "broadcast"),
    ):
        assert not has_separate_copies(replace(right, part=part)), part


class Overlapping(Groups):
    """Rows of a torus, of which the second is named twice and the first is left out."""

    @property
    def members(self):
        """The nodes of each row, with those of the second row in place of the first."""
        rows = np.arange(16).reshape(4, 4)
        return np.vstack([rows[1:2], rows[1:]])


class Crossed(Groups):
    """Rows of a torus in which two nodes of the last row have changed places."""

    @property
    def members(self):
        """The nodes of each row; positions 0 and 1 of the last row are exchanged."""
        rows = np.arange(16).reshape(4, 4)
        rows[3, :2] = rows[3, 1::-1]
        return rows


class OnePort(Groups):
    """Rows of a torus in which both ports of the ring are the same port."""

    @property
    def port_in_topology(self):
        """Port +1 for both ports of a ring."""
        return np.array([2, 2])


@pytest.mark.parametrize("kind", [Overlapping, Crossed, OnePort])
def test_groups_that_meet_are_not_checked_once(kind):
    """Groups that share nodes or arcs, or are joined in another order, are no separate copies."""
    schedule = plan_groups("4x4", "allgather@1", "matching")
    groups = kind(schedule.topology, schedule.collective.axes)
    object.__setattr__(schedule, "blocks", replace(schedule.blocks, groups=groups))
    assert not has_separate_copies(schedule)
    with pytest.raises(tf.ScheduleError):
        check(schedule)


@pytest.mark.parametrize("operator", ["max", "add"])
def test_operators_reach_the_part(operator):
    """A contribution that is counted twice is right for max and wrong for add, in groups too."""
    kept = plan_table("4", "allreduce", "ring-exchange", chunks=1)
    chunk, passed = np.zeros((3, 2), int), np.array([[-1, -1], [1, 0], [1, 0]])
    part = replace(kept, chunk=chunk, passed=passed)
    whole = tf.parse_collective("allreduce@0", topology=tf.Torus(4, 3))
    lifted = Lifted.from_group(part, tf.Torus(4, 3), whole)
    if operator == "max":
        assert (
            check(lifted, operators=operator).transfers
            == 3 * check(part, operators=operator).transfers
        )
    else:
        with pytest.raises(tf.ScheduleError, match="counted twice"):
            check(lifted, operators=operator)


def test_many_rows_take_no_longer_than_one():
    """An all-to-all in the rows of 65536 nodes, of 10^9 transfers, is checked at once."""
    schedule = tf.plan("256x256", "alltoall@0", flits=2)
    assert check(schedule).transfers == 1073741824
    assert measure_link_use(schedule).n_unused_arcs == 131072
