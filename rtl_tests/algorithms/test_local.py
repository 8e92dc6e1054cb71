"""Exchange and halo, messages to nodes at some offsets: from the notation to hardware."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.analysis.check import check_rounds
from torusfabric.analysis.volume import cycle_limit
from torusfabric.collective import parse_collective, split_names
from torusfabric.schedule import Rounds
from torusfabric.topology import parse_topology

CORNERS = "(1,1),(1,-1),(-1,1),(-1,-1),+0,-0,+1,-1"


@pytest.mark.parametrize("kind", ["exchange", "halo"])
@pytest.mark.parametrize("name", ["2", "3", "2x2", "2x5", "4x4", "2x3x4", "8x4~4", "arrowhead:2"])
def test_neighbours_take_one_step(name, kind):
    """Messages to neighbours take one step, and L + 5 cycles for L flits."""
    schedule = tf.plan(name, kind)
    assert schedule.steps == tf.bound(schedule) == 1
    traffic = check_rounds(schedule)
    assert tf.check(schedule) == traffic
    for flits in (1, 8):
        assert tf.compile(schedule, flits=flits).cycles() == flits + 5
    torus, collective = schedule.topology, schedule.collective
    if min(getattr(torus, "sides", [3])) > 2:
        assert cycle_limit(torus, collective, 8) == 8


@pytest.mark.parametrize(
    ("name", "steps", "bound"),
    [
        ("exchange[+0]", 1, 1),
        ("exchange[(1,2)]", 3, 3),
        ("halo[(1,2)]", 3, 3),
        (f"halo[{CORNERS}]", 2, 2),
        (f"exchange[{CORNERS}]", 3, 3),
        ("halo[(2,0),(1,0),(-1,0),(-2,0),(0,2),(0,1),(0,-1),(0,-2)]", 2, 2),
        ("exchange[-1]@1", 1, 1),
        ("halo[(2)]@0", 2, 2),
    ],
)
def test_offsets(name, steps, bound, tmp_path):
    """Messages to listed offsets take the expected steps, and a file keeps the offsets."""
    schedule = tf.plan("8x8", name)
    assert (schedule.steps, tf.bound(schedule)) == (steps, bound)
    check_rounds(schedule)
    schedule.save(tmp_path / "plan.json")
    again = tf.load(tmp_path / "plan.json")
    assert again.collective == schedule.collective
    assert str(again.collective) == name
    assert (type(again), again.steps) == (type(schedule), steps)


@pytest.mark.parametrize("kind", ["exchange", "halo"])
def test_two_ports_to_one_neighbour(kind):
    """On a side of 2 both ports lead to the same node, and each port has a message of its own."""
    program = tf.compile(tf.plan("2", kind), flits=1)
    words = np.array([[10, 11], [20, 21]])[:, : program.send_words]
    found = program.execute(words, width=8).tolist()
    assert found == ([[20, 21], [10, 11]] if kind == "exchange" else [[20, 20], [10, 10]])


@pytest.mark.parametrize(("kind", "column"), [("halo", "offset"), ("exchange", "destination")])
def test_planted_faults(kind, column):
    """Both checks find a neighbour without its message."""
    schedule = tf.plan("4x4", kind)
    values = getattr(schedule, column).copy()
    values[0, 1] = -1 if kind == "halo" else values[0, 0]
    wrong = replace(schedule, **{column: values})
    for check in (tf.check, check_rounds):
        with pytest.raises(
            tf.ScheduleError, match=r"node 0 \(0,0\) ends without block \(4, (1, )?0\)"
        ):
            check(wrong)


def test_an_engine_of_both():
    """An engine can combine exchange, halo in groups and all-gather."""
    names = ["exchange", "halo[+1,-1]@1", "allgather:matching"]
    program = tf.compile([tf.plan("2x2", name) for name in names], max_flits=2)
    jobs = [tf.Job(mode=mode, length=2) for mode in range(3)]
    assert tf.simulate(tf.Fabric(program, width=8), jobs=jobs, engine="amaranth").passed


@pytest.mark.parametrize("name", ["exchange[(1,1),+1]", "halo"])
def test_streams(name):
    """With streams, the number of a packet is the number of its offset."""
    program = tf.compile(tf.plan("2x2", name), flits=2)
    fabric = tf.Fabric(program, width=8, top="stream")
    assert tf.simulate(fabric, engine="amaranth").passed


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("exchange[]", "Offsets must be ports or coordinates, as in .*, not ..$"),
        ("halo[+0,+0]", "Offsets must be different ones, not ..0,.0.$"),
        ("halo[+7]", "Offset must be one of the ports .0, -0, .1, -1 or 2 coordinates .*, not .7$"),
        ("halo[(1)]", r"Offset must be one of .*, not \(1\)$"),
        ("halo[(4,4)]", r"Offset must lead to another node of 4x4, not \(4,4\)$"),
        ("halo[+0]@1", "Offset must go along the axes .1. of the groups, not .0$"),
        ("allgather[+0]", "allgather takes no offsets; leave ..0. out$"),
    ],
)
def test_bad_offsets(name, message):
    """Invalid offsets are refused."""
    with pytest.raises(tf.InputError, match=message):
        tf.plan("4x4", name)


def test_names():
    """Offsets may contain commas, and have a short notation along axes."""
    assert split_names("exchange[+0,(1,2)]@0+1:matching,halo") == [
        "exchange[+0,(1,2)]@0+1:matching",
        "halo",
    ]
    torus = parse_topology("3x4x5")
    exchange = parse_collective("exchange[+2, -0]@0+2", topology=torus)
    assert str(exchange) == "exchange[+2,-0]@0+2"
    assert exchange.in_one_group.offsets == ("+1", "-0")
    assert exchange.targets(torus)[0].tolist() == [1, 10]


@pytest.mark.parametrize(
    ("name", "kind", "steps"),
    few(
        2,
        [
            ("3x3!0:+0", "exchange", 2),
            ("3x4!0:+0,5:-1", "halo[+0,(1,1)]", 3),
            ("3x4!0:+0", "halo", 3),
            ("3x4!0:+0:out", "exchange[(1,1)]", 3),
        ],
    ),
)
def test_broken_links(name, kind, steps):
    """With broken links, neighbours are those of the whole network."""
    schedule = tf.plan(name, kind, chunks=1)
    assert schedule.algorithm == "any-network"
    assert tf.bound(schedule) <= schedule.steps <= steps
    program = tf.compile(schedule, flits=2)
    report = tf.simulate(tf.Fabric(program, width=8))
    assert (report.words_wrong, report.cycles) == (0, program.cycles())
    assert tf.plan(name, kind, flits=1).chunks == 1


@pytest.mark.parametrize(
    ("name", "kind", "steps"),
    few(
        3,
        [
            ("mesh:2x3", "exchange", 1),
            ("3x3!4", "halo", 1),
            ("4|x3", "shift[(1,1)]", 2),
            ("mesh:6x2", "shift[(3,0)]", 3),
            ("mesh:2x3!0:+0", "halo", 3),
            ("mesh:3x2", "exchange@0", 1),
            ("arrowhead:1", "exchange", 1),
        ],
    ),
)
def test_missing_neighbours(name, kind, steps):
    """A node without a neighbour at an offset has no message for this offset."""
    schedule = tf.plan(name, kind, chunks=1)
    assert tf.bound(schedule) <= schedule.steps <= steps
    program = tf.compile(schedule, flits=2)
    report = tf.simulate(tf.Fabric(program, width=8))
    assert (report.words_wrong, report.cycles) == (0, program.cycles())
    targets = schedule.collective.targets(schedule.topology)
    assert (
        report.words_checked
        == 2 * schedule.collective.groups(schedule.topology).n_groups * (targets >= 0).sum()
    )


def test_words_on_a_mesh():
    """On a mesh the offsets are coordinates that do not wrap around."""
    schedule = tf.plan("mesh:2x3", "exchange[(1,-1),+1]")
    program = tf.compile(schedule, flits=1)
    words = np.arange(12, dtype=np.uint64).reshape(6, 2)
    found, receives = program.delivered(words)
    assert receives.tolist() == [[r and c < 2, c > 0] for r in (False, True) for c in range(3)]
    assert found[3:5, 0].tolist() == [words[1, 0], words[2, 0]]
    assert found[receives[:, 1], 1].tolist() == words[[0, 1, 3, 4], 1].tolist()
    assert (program.execute(words)[receives] == found[receives]).all()
    assert isinstance(schedule, Rounds)
    wrong = replace(schedule, transfers=schedule.transfers[:-1])
    with pytest.raises(tf.ScheduleError, match="ends without block"):
        tf.check(wrong)


@pytest.mark.parametrize(
    ("network", "kind", "message"),
    [
        ("mesh:3x3", "halo[(3,0)]", r"lead to another node of mesh:3x3, not \(3,0\)$"),
        ("arrowhead:0", "halo", "Topology must have two nodes or more for halo, not arrowhead:0$"),
        ("4x4", "shift", r"Shift must be by one offset, as in shift\[\+0\], not by 0$"),
    ],
)
def test_no_neighbours(network, kind, message):
    """Offsets without any neighbour, a single node, and a shift without an offset are refused."""
    with pytest.raises(tf.InputError, match=message):
        tf.plan(network, kind)


@pytest.mark.parametrize(
    ("network", "names"),
    few(2, [("mesh:3", ["halo"]), ("mesh:2x3", ["exchange[+1,(1,1),-1]", "broadcast", "halo@1"]),
            ("2x3!4", ["exchange"]), ("mesh:3", ["shift[+0]"])]),
)  # fmt: skip
def test_streams_of_the_neighbours_that_there_are(network, names):
    """Packets for missing neighbours are accepted, and other packets keep their numbers."""
    program = tf.compile([tf.plan(network, name) for name in names], max_flits=2)
    fabric = tf.Fabric(program, width=8, top="stream")
    assert tf.simulate(fabric, engine="amaranth").passed
