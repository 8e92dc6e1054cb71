"""Collectives in groups of listed nodes: planned, checked, right in hardware; other nodes relay."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from helpers import NAMED_COLLECTIVES, few

import torusfabric as tf
from torusfabric.algorithms import find_algorithm
from torusfabric.analysis.check import follow
from torusfabric.analysis.volume import cycle_limit, least_time, longest_distance
from torusfabric.collective import expected_words, random_messages, split_names
from torusfabric.proof import prove
from torusfabric.schedule import Listed, Rounds
from torusfabric.schedule.held_blocks import HeldBlocks

ANY_TRAFFIC = find_algorithm("any-traffic")

#: Networks of all kinds; the second ring has links of several cycles.
NETWORKS = ["4x4", "3x5", "mesh:3x4", "4x4!0:+0,5", "cube:4", "2x2x3", "9"]

#: One group, two groups that lie across each other, and groups of different sizes.
GROUPS = ["{0,1,5,7}", "{0,2}{1,3}", "{6,0}{1,4,7}{8,2}"]


def plan(network, name, **options):
    """Return a checked schedule of a collective in groups; position 1 is the root."""
    kind = name.partition("@")[0]
    root = 1 if kind in ("broadcast", "scatter", "gather", "reduce") else None
    return tf.plan(network, name, root=root, **options)


@pytest.mark.parametrize("network", few(3, NETWORKS))
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("kind", NAMED_COLLECTIVES)
def test_programs_deliver_the_words_of_the_collective(network, groups, kind):
    """Each member receives the words of its group, whatever other nodes relay."""
    if kind in ("exchange", "halo"):
        groups = "{0,1}"
    members = max(len(group.split(",")) for group in groups.split("}{"))
    chunks = members if kind == "allreduce" else 2
    schedule = plan(network, f"{kind}@{groups}", chunks=chunks)
    program = tf.compile(schedule, flits=4)
    words = random_messages(program.layout, 4, width=16, seed=3)
    expected, receives = expected_words(program.layout, words, width=16)
    found = program.execute(words, width=16)
    assert receives.any()
    assert (found == expected)[receives].all()


@pytest.mark.parametrize("kind", [kind for kind in NAMED_COLLECTIVES if "[" not in kind])
def test_words_of_groups_of_different_sizes(kind):
    """Each group delivers the words that it delivers alone."""
    if kind in ("exchange", "halo"):
        kind = "exchange[+0]"
    groups = [(6, 7, 8), (1, 2), (3, 4, 5, 0)]
    root = 1 if kind in ("broadcast", "scatter", "gather", "reduce") else None
    layouts = [
        tf.parse_collective(kind, groups=each, root=root).layout(tf.Torus(9), 1)
        for each in (groups, *([group] for group in groups))
    ]
    words = random_messages(layouts[0], 3, width=16, seed=3)
    found, receives = expected_words(layouts[0], words, width=16)
    for group, layout in zip(groups, layouts[1:], strict=True):
        own, mine = expected_words(layout, words[:, : layout.send_words(3)], width=16)
        count, nodes = own.shape[1], [*group]
        assert (receives[nodes, :count] == mine[nodes]).all()
        assert not receives[nodes, count:].any()
        assert (found[nodes, :count] == own[nodes])[mine[nodes]].all()


def test_groups_of_different_sizes_in_hardware(tmp_path):
    """Modes with groups of different sizes are right in hardware, in a proof and in a file."""
    names = ["allgather@{0,1,5}{8-15}", "alltoall@{3,2}{7,8,9}", "allreduce@{9,4,2}{10,11}"]
    schedules = [tf.plan("4x4", name) for name in names]
    fabric = tf.Fabric(tf.compile(schedules, max_flits=4), width=8)
    assert tf.simulate(fabric, jobs=6).passed
    assert prove(tf.Fabric(tf.compile(schedules[2], flits=2), width=8)).proved
    report = tf.simulate(tf.Fabric(tf.compile(schedules[0], flits=2), width=8)).to_json()
    received = (3 * 2 + 8 * 7) * 2
    assert report["throughput"] == round(received / (16 * report["cycles"]), 4)
    for schedule in schedules:
        schedule.save(tmp_path / "plan.json")
        read = tf.load(tmp_path / "plan.json")
        assert isinstance(read, Rounds)
        assert read.collective == schedule.collective
        assert tf.check(read) == tf.check(schedule)
        short = replace(read, transfers=read.transfers[:-1])
        with pytest.raises(tf.ScheduleError, match=r"ends without|send"):
            tf.check(short)


def test_contributions_of_groups_of_different_sizes_are_listed():
    """A partial sum has left its sender, and a complete one stays, whatever the size of a group."""
    schedule = tf.plan("3x3", "allreduce@{0,1,2,7}{4,5,8}", chunks=8)
    assert isinstance(schedule, Rounds)
    held = HeldBlocks(schedule.topology, schedule.blocks)
    listed = tuple(held.execute(transfers) for transfers in schedule.transfers)
    assert tf.check(replace(schedule, transfers=listed)).rounds == schedule.round_count


def test_a_smaller_group_has_fewer_blocks():
    """A block of a position that a group lacks is refused, in a schedule and in a file."""
    schedule = tf.plan("4x4", "alltoall@{0,1,5}{8,9}", chunks=1)
    assert isinstance(schedule, Rounds)
    blocks = schedule.blocks
    absent = int(blocks.encode(2, 0, 0, 1))
    there = blocks.is_in_group(np.arange(blocks.n_blocks))
    assert (there.sum(), there[absent]) == (9 + 4, False)
    assert blocks.has_message[[5, 8]].tolist() == [[True, True, True], [True, True, False]]
    assert len(blocks.required_copies(np.arange(blocks.n_blocks))[1]) == 9 + 4
    gather = tf.parse_collective("allgather@{0,1,5}{8,9}").blocks(schedule.topology, 1)
    assert len(gather.required_copies(np.arange(gather.n_blocks))[1]) == 9 + 4
    first = schedule.transfers[0]
    wrong = replace(first, payload=Listed.single(np.where(np.arange(len(first)), first.listed.ids,
                                                          absent)))  # fmt: skip
    with pytest.raises(tf.ScheduleError, match="block that does not exist"):
        tf.check(replace(schedule, transfers=(wrong, *schedule.transfers[1:])))
    with pytest.raises(tf.InputError, match="must lie within 2 nodes"):
        blocks.parse_entry([0, 2, 0, 1])
    with pytest.raises(tf.InputError, match="position in a group from 0 to 1, not 2"):
        tf.plan("4x4", "broadcast@{0,1,5}{8,9}", root=2)
    collective = tf.Collective("broadcast", root=2, members=((0, 1, 5), (8, 9)))
    with pytest.raises(tf.ScheduleError, match="position in a group from 0 to 1, not 2"):
        tf.check(replace(schedule, collective=collective))


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


@pytest.mark.parametrize(
    ("topology", "groups"),
    [("3x3", [[0, 5, 7, 8], [1, 2, 3, 4]]), ("mesh:3x4", [[2, 3, 6, 7], [0, 1, 5, 11]])],
)
def test_a_host_reads_by_a_reader_that_also_passes_the_identity_word(topology, groups):
    """A reader that joins another one in a sum serves the host port between runs."""
    schedule = tf.plan(topology, "allreduce", groups=groups, chunks=32)
    report = tf.simulate(tf.Fabric(tf.compile(schedule, flits=2), width=16))
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
        ("allgather@{0,1,2}{3}", "at least 2 nodes, not 1"),
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
    uneven = tf.plan("4x4", "reduce", groups=[[3, 2], [4, 5, 6]], root=1)
    assert str(uneven.collective) == "reduce@{3,2}{4-6} from 1"
    with pytest.raises(tf.InputError, match="groups along axes"):
        tf.plan("4x4", "allgather", groups=[[0, 1]], algorithm="matching")
    with pytest.raises(tf.InputError, match="given once"):
        tf.plan("4x4", "allgather@{0,1}", groups=[[2, 3]])
    with pytest.raises(tf.InputError, match="by axes or by nodes"):
        tf.plan("4x4", "allgather", axes=0, groups=[[2, 3]])
    with pytest.raises(tf.InputError, match="Root any"):
        tf.compile(tf.plan("4x4", "broadcast@{0,1,9}"), max_flits=4, root="any")


COUNTS = {
    "allgather": [3, 0, 1, 5, 2, 8],
    "gather": [3, 0, 1, 5, 2, 8],
    "scatter": [3, 0, 1, 5, 2, 8],
    "reduce-scatter": [3, 0, 1, 5, 2, 8],
    "alltoall": np.random.default_rng(4).integers(0, 9, (6, 6)).tolist(),
}


@pytest.mark.parametrize("network", ["2x3", "mesh:6"])
@pytest.mark.parametrize("kind", COUNTS)
def test_messages_of_unequal_lengths(network, kind):
    """Each node receives the flits of each message, and no schedule reserves time for more."""
    root = 1 if kind in ("gather", "scatter") else None
    schedule = tf.plan(network, kind, root=root, counts=COUNTS[kind])
    fabric = tf.Fabric(tf.compile(schedule), width=8)
    report = tf.simulate(fabric)
    longest = max(np.ravel(COUNTS[kind]))
    assert (report.passed, fabric.flits) == (True, longest)
    if kind != "reduce-scatter":  # sums of equal lengths may pass through without a memory
        equal = tf.plan(network, kind, root=root, flits=longest)
        assert fabric.predicted_cycles <= tf.compile(equal, flits=longest).cycles() + 4


def test_lengths_of_received_messages():
    """A receiver gets exactly the flits that the counts say."""
    schedule = tf.plan(
        "2x2", "alltoall", counts=[[0, 1, 2, 3], [1, 0, 0, 0], [4, 0, 0, 1], [2, 2, 2, 0]]
    )
    program = tf.compile(schedule)
    words = np.arange(4 * 16, dtype=np.uint64).reshape(4, 16)
    _, receives = expected_words(program.layout, words)
    counts = receives.reshape(4, 4, 4).sum(axis=2)
    assert counts.T.tolist() == [[0, 1, 2, 3], [1, 0, 0, 0], [4, 0, 0, 1], [2, 2, 2, 0]]


def test_short_messages_have_few_blocks():
    """A message of n flits has ceil(n / u) blocks of u flits, and none if it is empty."""
    counts = [3, 0, 4, 5, 8, 1]
    blocks = tf.parse_collective("allgather", counts=counts).blocks(tf.Torus(2, 3), 4)
    origin = blocks.origin(ids := np.arange(blocks.n_blocks))
    assert np.bincount(origin[blocks.has_block(ids)]).tolist() == [2, 0, 2, 3, 4, 1]


def test_sums_of_groups_are_checked_in_several_passes(monkeypatch):
    """If the sums do not fit in one pass, the checker finds the same traffic and the same fault."""
    schedule = plan("3x5", "reduce-scatter@{6,0,3}{1,4,7}", chunks=3)
    whole = tf.check(schedule)
    monkeypatch.setattr(follow, "SUM_BUDGET", 60)
    assert tf.check(schedule) == whole
    assert isinstance(schedule, Rounds)
    with pytest.raises(tf.ScheduleError, match="ends without"):
        tf.check(replace(schedule, transfers=schedule.transfers[:-1]))


MESSAGES = [(0, 5, 4, "a"), (0, (1, 2, 7), 2), (3, 5, 4), (7, 0, 1), (5, 0, 3), (5, 4, 3)]


@pytest.mark.parametrize("network", ["3x3", "mesh:2x4", "cube:3"])
def test_traffic_is_delivered(network):
    """Each destination of each message receives it, on the host port and in a proof."""
    schedule = tf.plan(network, "pattern", traffic=MESSAGES)
    fabric = tf.Fabric(tf.compile(schedule), width=8)
    assert tf.simulate(fabric).passed


def test_traffic_of_one_length_has_any_length():
    """If all messages are equally long, each run chooses their length, on streams too."""
    traffic = tf.Traffic([(0, 5), (0, (1, 2)), (3, 5), (5, 3)])
    modes = [tf.plan("2x3", "pattern", traffic=traffic), tf.plan("2x3", "allreduce")]
    for top in ("host", "stream"):
        fabric = tf.Fabric(tf.compile(modes, max_flits=5), width=8, top=top)
        assert tf.simulate(fabric, jobs=6).passed


@pytest.mark.parametrize("lengths", [{"flits": 3}, {"max_flits": 3}])
@pytest.mark.parametrize(
    "name", ["allgather@{0,1,2}{4,5}", "alltoall@{0,1}{3,4,8}", "exchange[+1]@{0,1,2}{4,5}"]
)
def test_streams_of_groups_of_different_sizes(name, lengths: dict[str, Any]):
    """A node sends packets to the nodes of its group, and receives packets from them."""
    fabric = tf.Fabric(tf.compile(tf.plan("3x3", name), **lengths), width=8, top="stream")
    assert tf.simulate(fabric, jobs=6).passed
    assert tf.simulate(fabric, jobs=3, engine="amaranth").passed


def test_a_pattern_is_read_from_its_file(tmp_path):
    """Traffic and counts are kept in schedule files."""
    schedule = tf.plan("3x3", "pattern", traffic=MESSAGES)
    schedule.save(tmp_path / "plan.json")
    read = tf.load(tmp_path / "plan.json")
    assert read.collective == schedule.collective
    assert tf.check(read).rounds == schedule.round_count
    uneven = tf.plan("2x3", "gather", counts=COUNTS["gather"])
    uneven.save(tmp_path / "counts.json")
    assert tf.load(tmp_path / "counts.json").collective.lengths == uneven.collective.lengths


@pytest.mark.parametrize("groups", ["{0-7}{8-15}", "{0-7}{9-20}{30,40,50}"])
def test_sums_are_complete_at_their_root(groups):
    """No sum is complete before it is at its root, whatever detours its routes take."""
    schedule = tf.plan("8x8", f"allreduce@{groups}", chunks=64)
    assert tf.check(schedule).rounds == schedule.round_count


def test_long_messages_are_cut_into_many_chunks():
    """Few large blocks would leave most links idle while the first one is under way."""
    schedule = tf.plan("8x8", "broadcast@{0,9,18,27,36,45,54,63,7,14,21,28}")
    assert schedule.chunks > 32
    assert Fraction(schedule.round_count, schedule.chunks) < Fraction(1, 2)


def test_shares_of_a_hundred_nodes():
    """A reduction of many nodes is planned: its work grows with the sums, not the contributions."""
    schedule = tf.plan("3x5x7", "reduce-scatter", counts=[1 + k % 2 for k in range(105)])
    assert tf.check(schedule).rounds == schedule.round_count


def test_a_lost_message_is_found():
    """The checker notices that a destination lacks a message, and ignores what nobody needs."""
    schedule = tf.plan("3x3", "pattern", traffic=MESSAGES)
    assert isinstance(schedule, Rounds)
    with pytest.raises(tf.ScheduleError, match="ends without"):
        tf.check(replace(schedule, transfers=schedule.transfers[:-1]))


def test_bounds_of_traffic():
    """The bound of a hot spot is the load of its links, that of a shift the distance."""
    ring = tf.Torus(8)
    hot = tf.parse_collective("pattern", traffic=[(node, 0, 4) for node in range(1, 8)])
    assert least_time(ring, hot) == Fraction(7, 2)
    shift = tf.parse_collective("pattern", traffic=[(0, 3)])
    assert longest_distance(ring, shift) == 3
    several = tf.parse_collective("pattern", traffic=[(0, (1, 7, 4), 2), (4, 0, 6)])
    assert least_time(ring, several) == Fraction(1, 2)


@pytest.mark.parametrize("name", ["transpose", "reversal", "random", "hot spot", "tornado"])
def test_patterns_come_near_their_bound(name):
    """Steps exceed the bound by little more than the diameter."""
    side, random = 6, np.random.default_rng(5)
    nodes = side * side
    goals = {
        "transpose": [k % side * side + k // side for k in range(nodes)],
        "reversal": [nodes - 1 - k for k in range(nodes)],
        "random": random.permutation(nodes).tolist(),
        "hot spot": [0] * nodes,
        "tornado": [k // side * side + (k + side // 2 - 1) % side for k in range(nodes)],
    }[name]
    traffic = [(k, goal, 4) for k, goal in enumerate(goals) if goal != k]
    schedule = tf.plan(tf.Torus(side, side), "pattern", traffic=traffic, chunks=4)
    assert schedule.round_count <= 1.05 * tf.bound(schedule) + schedule.topology.diameter


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"collective": "pattern"}, "give --traffic FILE"),
        ({"collective": "allgather", "traffic": [(0, 1)]}, "for the collective pattern"),
        ({"collective": "pattern", "traffic": []}, "1 to 262144 messages, not 0"),
        ({"collective": "pattern", "traffic": [(0, 0)]}, "other nodes than its source"),
        ({"collective": "pattern", "traffic": [(0, 99)]}, "from 0 to 5, not 99"),
        ({"collective": "pattern", "traffic": [(0,)]}, "must be .source, destinations"),
        ({"collective": "pattern", "traffic": [(0, (1, 1))]}, "different destinations"),
        ({"collective": "pattern", "traffic": [(0, 1, 0)]}, "words must be"),
        ({"collective": "pattern", "traffic": [{"source": 0, "to": 1}]}, "must have the keys"),
        ({"collective": "pattern", "traffic": 7}, "must be a list of messages"),
        ({"collective": "allgather", "counts": [1, 2]}, "must be 6 numbers, not 2"),
        ({"collective": "alltoall", "counts": [[1, 2], [3, 4]]}, "6 lines of 6 numbers"),
        ({"collective": "broadcast", "counts": [1, 2, 3, 4, 5, 6]}, "Counts are for"),
        ({"collective": "allgather", "counts": [2, 2, 2, 2, 2, 2]}, "must be unequal"),
        ({"collective": "allgather", "counts": "none.csv"}, "could not be read"),
        ({"collective": "allgather", "counts": [1, 2, 3, 4, 5, 6], "flits": 3}, "leave --flits"),
    ],
)
def test_refused_traffic(words, message):
    """Bad traffic and bad counts are refused with the reason."""
    with pytest.raises(tf.InputError, match=message):
        tf.plan("2x3", **words)


def test_each_pattern_of_a_fabric_has_its_own_messages(tmp_path):
    """Several patterns are modes of one fabric, with a file each or with one file for all."""
    files = []
    for name, lines in (("a.csv", "0,1\n2,3 4\n"), ("b.csv", "5,1\n")):
        file = tmp_path / name
        file.write_text(f"source,destinations\n{lines}")
        files.append(str(file))
    spec = tf.FabricSpec("2x3", "pattern,allgather,pattern", traffic=",".join(files), max_flits=3)
    fabric = spec.make().fabric
    found = [mode.schedule.collective.traffic for mode in fabric.program.modes]
    assert [traffic and len(traffic.messages) for traffic in found] == [2, None, 1]
    assert tf.simulate(fabric, jobs=6).passed
    with pytest.raises(tf.InputError, match="one for each, 1, not 2"):
        tf.FabricSpec("2x3", "pattern,allgather", traffic=",".join(files), max_flits=3).make()
