"""Collectives in groups: schedules of one group, lifted to all groups."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import NAMED_COLLECTIVES
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.collective import Collective, expected_words, parse_collective
from torusfabric.schedule import Lifted, Listed, Rounds, Switching, Transfers
from torusfabric.schedule.held_blocks import HeldBlocks
from torusfabric.schedule.recognise import recognise

#: A pattern, tables, and rounds, with all payloads.
CASES = [
    ("3x4", "allgather@1", "hamiltonian", None),
    ("3x4", "alltoall@0", "matching", None),
    ("2x3x4", "allreduce@0+2", "matching", None),
    ("2x3x3", "scatter@1+2", "matching", 4),
    ("2x3x4", "gather@0+2", "max-flow", 3),
    ("4x5x5", "broadcast@1+2", "lee-code", 7),
    ("3x3x4", "reduce@0+1", "max-flow", 5),
]

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case[:3])))


def planned(case):
    """The checked schedule of a case."""
    *names, algorithm, root = case
    return tf.plan(*names, algorithm=algorithm, root=root)


def as_rounds(schedule):
    """Return the same transfers in rounds, with all blocks listed."""
    held = HeldBlocks(schedule.topology, schedule.blocks)
    return Rounds(**schedule.head, transfers=tuple(map(held.execute, schedule.rounds())))


@every_case
def test_every_group_does_what_one_does(case):
    """A lifted schedule has the rounds and cycles of one group, and the transfers of all."""
    schedule = planned(case)
    groups = schedule.blocks.groups
    alone = tf.plan(groups.group_topology, case[1].split("@")[0], algorithm=case[2], root=case[3])
    assert isinstance(schedule, Lifted)
    assert (schedule.form, schedule.steps) == (alone.form, alone.steps)
    assert tf.bound(schedule) == tf.bound(alone)
    whole, part = tf.check(schedule), tf.check(alone)
    for name in ("transfers", "arcs_used", "duplicates"):
        assert getattr(whole, name) == groups.n_groups * getattr(part, name)
    assert (whole.round_hops, whole.round_blocks) == (part.round_hops, part.round_blocks)
    assert tf.compile(schedule).cycles() == tf.compile(alone).cycles()


@every_case
def test_file_and_form(case, tmp_path):
    """A file is read as a lifted schedule in its smallest form, with the same hardware."""
    schedule = planned(case)
    schedule.save(tmp_path / "plan.json")
    head = json.loads((tmp_path / "plan.json").read_text())
    assert head["collective"]["axes"] == list(schedule.collective.axes)
    read = tf.load(tmp_path / "plan.json")
    assert isinstance(read, Lifted)
    assert read.form == schedule.form
    assert tf.compile(read).digest == tf.compile(schedule).digest


def test_groups_that_differ():
    """Groups that differ pass the check, but hardware refuses them. Equal groups are lifted,
    whatever their order.
    """
    alike = Rounds(
        topology=tf.Torus(3, 2),
        collective=Collective("broadcast", 1, (1,)),
        algorithm="by hand",
        switching=Switching.CIRCUIT,
        ports=1,
        transfers=(Transfers(np.array([5, 1, 3]), np.full((3, 1), 2)),),
    )
    assert tf.check(alike).transfers == 3
    assert isinstance(recognise(alike), Lifted)
    differing = replace(
        alike, transfers=(replace(alike.transfers[0], hops=np.array([[3], [2], [2]])),)
    )
    assert tf.check(differing).transfers == 3
    assert isinstance(recognise(differing), Rounds)
    with pytest.raises(tf.InputError, match="differs between groups, but hardware needs the"):
        tf.compile(differing)
    twice = replace(alike, transfers=(alike.transfers[0].of(np.array([0, 1, 2, 0])),))
    assert isinstance(recognise(twice), Rounds)


def test_the_lowest_node_of_all_groups_is_named():
    """The checker names the lowest node of all groups that lacks a block."""
    sums = Listed.single(np.array([2]))
    schedule = Rounds(
        topology=tf.Torus(2, 2),
        collective=Collective("reduce-scatter", None, (0,)),
        ports=2,
        transfers=(Transfers(np.array([2]), np.zeros((1, 1), np.int8), sums),),
    )
    with pytest.raises(tf.ScheduleError, match=r"^After 1 step: node 1 \(0,1\) ends without block"):
        tf.check(schedule)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_any_groups(data):
    """On random tori and axes every group receives the words of its own nodes."""
    sides = data.draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    axes = data.draw(st.sets(st.integers(0, len(sides) - 1), min_size=1, max_size=len(sides) - 1))
    name = f"{data.draw(st.sampled_from(list(NAMED_COLLECTIVES)))}@{'+'.join(map(str, axes))}"
    collective = parse_collective(name, topology=tf.Torus(sides))
    groups = collective.groups(tf.Torus(sides))
    if collective.rooted:
        collective = replace(collective, root=data.draw(st.integers(0, groups.group_size - 1)))
    program = tf.compile(tf.plan(tf.Torus(sides), collective))
    count = program.topology.nodes * program.send_words
    words = np.arange(count, dtype=np.uint64).reshape(-1, program.send_words)
    (mode,) = program.modes
    expected, receives = expected_words(program.layout, words, operator=mode.operator_of())
    assert (program.execute(words)[receives] == expected[receives]).all()


def fails(schedule, **changes):
    """Return the message of the checker's error."""
    with pytest.raises(tf.ScheduleError) as caught:
        tf.check(replace(schedule, **changes))
    return str(caught.value)


def test_paths_that_leave_a_group():
    """A path along arcs of other axes is refused, even if nothing else uses these arcs."""
    schedule = as_rounds(tf.plan("3x4", "allgather@1", algorithm="hamiltonian"))
    first, *others = schedule.transfers
    hops = first.hops.copy()
    hops[0] = 0
    wrong = replace(first, hops=hops)
    message = fails(schedule, transfers=(wrong, *others))
    assert message == "Round 1: node 0 (0,0) port +0 starts a path that leaves its group"
    assert isinstance(recognise(replace(schedule, transfers=(wrong, *others))), Rounds)


@pytest.mark.parametrize("kind", ["allgather", "alltoall", "allreduce", "reduce-scatter"])
def test_one_group_stands_still(kind):
    """The checker names the block that an idle group lacks, though other groups have theirs."""
    schedule = as_rounds(tf.plan("3x4", f"{kind}@1"))
    groups = schedule.blocks.groups

    def without_group(transfers):
        kept = groups.group_of_node[transfers.source] != 1
        sizes = np.diff(transfers.listed.indptr)
        ids = transfers.listed.ids[np.repeat(kept, sizes)]
        listed = Listed(np.concatenate([[0], np.cumsum(sizes[kept])]), ids)
        return Transfers(transfers.source[kept], transfers.hops[kept], listed)

    still = tuple(map(without_group, schedule.transfers))
    assert "node 4 (1,0) ends without" in fails(schedule, transfers=still)


def test_block_of_another_group():
    """A block number means a block of the sender's group, which must have arrived there."""
    schedule = as_rounds(tf.plan("3x4", "allgather@1", algorithm="hamiltonian"))
    first, *others = schedule.transfers
    ids = first.listed.ids.copy()
    ids[5] = (ids[5] + 1) % 4
    wrong = replace(first, payload=Listed(first.listed.indptr, ids))
    node = int(first.source[5])
    message = fails(schedule, transfers=(wrong, *others))
    assert message.startswith(f"Round 1: node {node} ")
    assert message.endswith(f"sends block ({ids[5]}, 0) before it holds it")


def test_sum_of_another_group():
    """A partial sum that has been sent on cannot be sent a second time."""
    schedule = as_rounds(tf.plan("3x4", "reduce@1"))
    first, *others = schedule.transfers
    message = fails(schedule, transfers=(first, first, *others))
    assert "whose partial sum it has sent on" in message


@pytest.mark.parametrize(
    ("collective", "message"),
    [
        (Collective("gather", 4, (1,)), "Root must be a position in a group from 0 to 3, not 4"),
        (Collective("gather", None, (1,)), "Root must be a position in a group from 0 to 3, not"),
    ],
)
def test_root_outside_its_group(collective, message):
    schedule = as_rounds(tf.plan("3x4", "gather@1"))
    assert message in fails(schedule, collective=collective)


def test_broken_links_are_avoided_in_every_group():
    """A link broken in one group is avoided in all groups; links between groups do not matter."""
    schedule = tf.plan("3x5", "broadcast@1", broken_links=((6, 2), (6, 0)))
    assert tf.plan("4x4", "allgather@1", broken_links=((3, 0),)).algorithm == "necklace"
    port = schedule.topology.port("+1")
    for transfers in schedule.rounds():
        walk = transfers.walk(schedule.topology)[:, :-1]
        assert not ((walk % 5 == 1) & (transfers.hops == port)).any()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"axes": [2]}, "Axes must be some of the axes 0, 1 of 3x4"),
        ({"axes": []}, "collective.axes must be a list of different axis numbers, at least one"),
        ({"axes": [1, 1]}, "collective.axes must be a list of different axis numbers, at least"),
        ({"axes": [-1]}, "collective.axes.0. must be an axis number, not -1"),
        ({"axes": 1},
         "collective.axes must be a list of different axis numbers, at least one, not 1"),
        ({"kind": "gather", "axes": [1], "root": 4}, "Root must be a position in a group"),
    ],
)  # fmt: skip
def test_axes_of_a_file(entry, message, tmp_path):
    """Wrong axes in a file are refused with one line."""
    path = tmp_path / "plan.json"
    tf.plan("3x4", "allgather@1").save(path)
    data = json.loads(path.read_text())
    data["collective"] |= entry
    path.write_text(json.dumps(data))
    with pytest.raises(tf.InputError, match=message):
        tf.load(path)


#: Collectives whose messages reach every node, one node, or other nodes; with and without sums.
KINDS_WITHOUT_A_NODE = ["allgather", "broadcast", "scatter", "alltoall", "reduce", "allreduce"]


@pytest.mark.parametrize("kind", KINDS_WITHOUT_A_NODE)
def test_nodes_outside_of_the_group_need_nothing(kind):
    """A schedule around a broken node is checked on the whole network, too."""
    schedule = Lifted.for_network(tf.plan("3x3!4", kind), tf.Torus(3, 3))
    assert 4 not in schedule.blocks.groups.members
    assert tf.check(schedule).rounds == schedule.steps


def test_a_member_that_lacks_a_block_is_found_beside_a_node_outside():
    """The last round of an all-gather is left out; the message names a member of the group."""
    whole = as_rounds(Lifted.for_network(tf.plan("3x3!4", "allgather"), tf.Torus(3, 3)))
    cut = replace(whole, transfers=whole.transfers[:-1])
    with pytest.raises(tf.ScheduleError, match=r"node [0-35-8] \(\d,\d\) ends without block"):
        tf.check(cut)
