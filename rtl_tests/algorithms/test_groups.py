"""Collectives in groups of listed nodes: planned, checked, right in hardware; other nodes relay."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.algorithms import find_algorithm
from torusfabric.analysis.volume import cycle_limit, least_time, longest_distance
from torusfabric.collective import expected_words, random_messages, split_names
from torusfabric.schedule import Listed, Rounds

ANY_GROUP = find_algorithm("any-group")

#: Networks of all kinds; the second ring has links of several cycles.
NETWORKS = ["4x4", "3x5", "mesh:3x4", "4x4!0:+0,5", "cube:4", "2x2x3", "9"]

#: One group, two groups that lie across each other, and two groups of three.
GROUPS = ["{0,1,5,7}", "{0,2}{1,3}", "{6,0,3}{1,4,7}"]


def plan(network, name, **options):
    """Return a checked schedule of a collective in groups; position 1 is the root."""
    kind = name.partition("@")[0]
    root = 1 if kind in ("broadcast", "scatter", "gather", "reduce") else None
    return tf.plan(network, name, root=root, **options)


@pytest.mark.parametrize("network", few(3, NETWORKS))
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("kind", ANY_GROUP.collectives)
def test_programs_deliver_the_words_of_the_collective(network, groups, kind):
    """Each member receives the words of its group, whatever other nodes relay."""
    if kind in ("exchange", "halo"):
        groups = "{0,1}"
    members = len(groups.split("}")[0].split(","))
    chunks = members if kind == "allreduce" else 2
    schedule = plan(network, f"{kind}@{groups}", chunks=chunks)
    program = tf.compile(schedule, flits=4)
    words = random_messages(program.layout, 4, width=16, seed=3)
    expected, receives = expected_words(program.layout, words, width=16)
    found = program.execute(words, width=16)
    assert receives.any()
    assert (found == expected)[receives].all()


@pytest.mark.parametrize(
    "names",
    [
        "allgather@{0,1,5,9,11}",
        "allreduce@{0-7}{8-15},alltoall@{0,2}{1,3}",
        "reduce-scatter@{0-3}{8-11},broadcast@{15,0,6},allgather",
    ],
)
@pytest.mark.parametrize("top", ["host", "stream"])
def test_hardware_of_groups_is_right(names, top):
    """Fabrics with modes in groups deliver every word in the predicted cycles."""
    schedules = [tf.plan("4x4", name) for name in split_names(names)]
    fabric = tf.Fabric(tf.compile(schedules, max_flits=6), width=8, top=top)
    report = tf.simulate(fabric, jobs=6)
    assert report.passed
    assert report.words_wrong == 0


@pytest.mark.parametrize("kind", ["alltoall", "scatter", "allgather", "allreduce", "reduce"])
def test_schedules_of_groups_are_read_from_files(tmp_path, kind):
    """A file has the groups, and the group of each block if there are several."""
    schedule = plan("4x4", f"{kind}@{{0,2}}{{1,3}}")
    schedule.save(tmp_path / "plan.json")
    read = tf.load(tmp_path / "plan.json")
    assert read.collective == schedule.collective
    assert tf.check(read).rounds == schedule.round_count
    program = tf.compile(read, flits=4)
    assert program.cycles() == tf.compile(schedule, flits=4).cycles()


@pytest.mark.parametrize("kind", ["allgather", "alltoall", "reduce-scatter", "allreduce"])
def test_a_missing_round_is_found(kind):
    """The checker notices that a member lacks data of its own group."""
    schedule = plan("3x5", f"{kind}@{{6,0,3}}{{1,4,7}}")
    assert isinstance(schedule, Rounds)
    short = replace(schedule, transfers=schedule.transfers[:-1])
    with pytest.raises(tf.ScheduleError):
        tf.check(short)


def test_a_block_of_another_group_is_found():
    """A node that delivers the block of another group in place of its own is at fault."""
    schedule = tf.plan("4", "allgather@{0,1}{2,3}", chunks=1)
    assert isinstance(schedule, Rounds)
    blocks = schedule.blocks
    first = schedule.transfers[0]
    swapped = np.where(
        blocks.group_of_block(first.listed.ids) == 0, first.listed.ids + 1, first.listed.ids
    )
    wrong = replace(first, payload=Listed.single(swapped))
    with pytest.raises(tf.ScheduleError, match="before it holds it"):
        tf.check(replace(schedule, transfers=(wrong, *schedule.transfers[1:])))


def test_bounds_of_groups():
    """Bounds follow from the cuts, the paths and the distances of the members alone."""
    ring, line = tf.Torus(8), tf.parse_topology("mesh:8")
    gather = tf.parse_collective("allgather@{0,1,3,6}")
    assert least_time(ring, gather) == Fraction(3, 2)
    assert longest_distance(ring, gather) == 3
    exchange = tf.parse_collective("alltoall@{0,7}")
    assert least_time(line, exchange) == 1
    assert cycle_limit(line, exchange, 1) == 7
    far = tf.parse_collective("scatter@{3,4,5}", root=0)
    assert (least_time(line, far), longest_distance(line, far)) == (2, 2)


@pytest.mark.parametrize("name", ["allgather@{0-15}", "alltoall@{0-15}", "broadcast@{0-15}"])
def test_a_group_of_all_nodes_has_the_bound_of_the_collective(name):
    """The bound of a group of all nodes is that of the same collective without a group."""
    network, kind = tf.parse_topology("mesh:4x4"), name.partition("@")[0]
    whole = least_time(network, tf.parse_collective(kind))
    assert least_time(network, tf.parse_collective(name)) == whole


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("allgather@{0,16}", "must be from 0 to 15 on 4x4, not 16"),
        ("allgather@{0,1}{1,2}", "Node 1 is listed twice"),
        ("allgather@{3}", "at least 2 nodes"),
        ("allgather@{0,1}{2,3,4}", "equally many nodes, not 2 and 3"),
        ("allgather@{0,x}", "numbers and ranges"),
        ("allgather@{5-2}", "numbers and ranges"),
        ("allgather@{0,1", "nodes in braces"),
        ("exchange[+0]@{0,1}{2,6}", "lead to the same positions"),
        ("exchange@{0,10}", "all lead out of it"),
    ],
)
def test_refused_groups(name, message):
    """Bad groups are refused with the reason."""
    with pytest.raises(tf.InputError, match=message):
        tf.plan("4x4", name)


def test_groups_in_python():
    """Groups are lists of nodes in Python, and other algorithms refuse them."""
    schedule = tf.plan(tf.Torus(4, 4), "allgather", groups=[[0, 1, 5, 9]])
    assert str(schedule.collective) == "allgather@{0,1,5,9}"
    with pytest.raises(tf.InputError, match="groups along axes"):
        tf.plan("4x4", "allgather", groups=[[0, 1]], algorithm="matching")
    with pytest.raises(tf.InputError, match="given once"):
        tf.plan("4x4", "allgather@{0,1}", groups=[[2, 3]])
    with pytest.raises(tf.InputError, match="by axes or by nodes"):
        tf.plan("4x4", "allgather", axes=0, groups=[[2, 3]])
    with pytest.raises(tf.InputError, match="Root any"):
        tf.compile(tf.plan("4x4", "broadcast@{0,1,9}"), max_flits=4, root="any")
