"""Link latencies as part of a topology: notations, files and use by planners."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.analysis.volume import cycle_limit
from torusfabric.collective import parse_collective
from torusfabric.fabric.choose import split_modes
from torusfabric.fabric.spec import FabricSpec
from torusfabric.topology import (
    Faulty,
    equalize_axis_links,
    parse_topology,
    topology_from_json,
    with_latency,
    without_faults,
)


@pytest.mark.parametrize(
    ("said", "kept", "by_port"),
    [
        (3, 3, [3, 3, 3, 3]),
        ("64", 64, [64] * 4),
        ("0:1,1:4", (1, 4), [1, 1, 4, 4]),
        ("1:4", (1, 4), [1, 1, 4, 4]),
        ({1: 4}, (1, 4), [1, 1, 4, 4]),
        ((2, 2), 2, [2, 2, 2, 2]),
        (1, 1, [1, 1, 1, 1]),
    ],
)
def test_a_latency_is_said_in_many_ways(said, kept, by_port):
    torus = tf.Torus(4, 4, link_latency=said)
    assert torus.link_latency == kept
    assert torus.cycles_of_port.tolist() == by_port
    assert torus == tf.Torus(4, 4).on_links(said)
    assert topology_from_json(torus.to_entry()) == torus


@pytest.mark.parametrize("said", [0, 65, -1, "x", "0:0", "0:1,1:99", (1, 2, 3), 1.5, None, "0"])
def test_what_is_no_latency_is_refused(said):
    with pytest.raises(tf.InputError, match=r"^Link latency must be from 1 to 64 cycles, or"):
        tf.Torus(4, 4).on_links(said)


@pytest.mark.parametrize(
    ("topology", "said", "message"),
    [
        ("4x4", "2:3", "of some of the axes 0, 1 of 4x4, not of 2"),
        ("4x4", {5: 1}, "of some of the axes 0, 1 of 4x4, not of 5"),
        ("arrowhead:2", "0:2", "a number of cycles on arrowhead:2, which has no axes, not 0:2"),
    ],
)
def test_axes_that_there_are_not_are_refused(topology, said, message):
    with pytest.raises(tf.InputError, match=f"^Link latency must be {message}$"):
        tf.plan(topology, "allgather", link_latency=said)


def test_a_plan_file_keeps_the_latency(tmp_path):
    plan = tf.plan("3x4", "allgather", algorithm="matching", link_latency="1:5")
    plan.save(tmp_path / "plan.json")
    again = tf.load(tmp_path / "plan.json")
    assert again.digest == plan.digest != tf.plan("3x4", "allgather", algorithm="matching").digest
    assert repr(again.topology) == "<Torus 3x4, links of 0:1,1:5 cycles>"
    assert tf.compile(again, flits=6).cycles() == tf.compile(plan, flits=6).cycles()


def test_groups_have_the_links_of_their_axes():
    columns = tf.plan("3x4", "allgather@0", link_latency="0:6,1:2")
    assert columns.blocks.groups.group_topology == tf.Torus(3, link_latency=6)


def test_the_diameter_is_counted_in_cycles():
    assert tf.Torus(6, 4, link_latency={0: 2, 1: 5}).diameter_cycles == 3 * 2 + 2 * 5
    assert tf.parse_topology("arrowhead:2").on_links(7).diameter_cycles == 2 * 7


@pytest.mark.parametrize("kind", ["reduce-scatter", "allreduce"])
def test_what_is_planned_is_built(kind):
    """Reduce-scatters and all-reduces on unequal links get an algorithm other than sums around
    cycles, which needs equal links.
    """
    schedule = tf.plan("3x4", kind, link_latency="1:3")
    assert schedule.algorithm != "hamiltonian"
    assert tf.compile(schedule, flits=2).cycles() > 0
    assert tf.plan("3x4", kind, algorithm="hamiltonian", link_latency=3)
    with pytest.raises(tf.InputError, match="links of equal latency for sums"):
        tf.plan("3x4", kind, algorithm="hamiltonian", link_latency="1:3")


def test_single_links_are_slow(tmp_path):
    """A slow link is slow both ways. Files keep it, and the planner counts its cycles."""
    plan = tf.plan("4x4", "broadcast", link_latency="2,5:+0=7")
    topology = plan.topology
    assert str(topology) == "4x4!5:+0=7"
    expected = np.full((16, 4), 2)
    expected[5, 0] = expected[9, 1] = 7
    assert topology.cycles_of_arc.tolist() == expected.tolist()
    assert topology_from_json(topology.to_entry()) == topology.on_links(2)
    assert parse_topology("4x4!9:-0=7").on_links(2) == topology != parse_topology("4x4!5:+0=7")
    plan.save(tmp_path / "plan.json")
    assert tf.load(tmp_path / "plan.json").digest == plan.digest
    assert Faulty(topology, ["5:+0"]).faults == "5:+0"
    assert without_faults(Faulty(topology, ["0:+1"])) == topology
    ring = parse_topology("6!0:+0=9")
    assert (ring.longest_link, ring.diameter, ring.diameter_cycles) == (9, 3, 5)
    assert cycle_limit(ring, parse_collective("broadcast"), 1) == 5


def test_trees_and_detours_shun_slow_links():
    assert tf.plan("6!0:+0=9", "broadcast", trees=1).topology.diameter_cycles == 5
    plans = [tf.plan("3x3!0:+0=9", "alltoall", chunks=chunks) for chunks in (4, 1)]
    links = [sum((t.link_cycles(p.topology) == 9).sum() for t in p.rounds()) for p in plans]
    assert links[0] > 0 == links[1]
    assert tf.compile(tf.plan("6!0:+0=9", "broadcast", flits=1), flits=1).cycles() < 14


def test_groups_and_boards_have_links_alike_along_axes():
    """Groups and boards take the slowest latency of each axis, because all act at once."""
    schedule = tf.plan("3x4!0:+1=4,2:+0", "allreduce@1", flits=1)
    assert (schedule.topology.name, schedule.topology.latency_text) == ("3x4!2:+0", "0:1,1:4")
    program = tf.compile(schedule, flits=2)
    assert tf.simulate(tf.Fabric(program, width=8), engine="amaranth").passed
    groups = FabricSpec(topology="3x4!0:+1=4", collective="allgather@1,halo")
    each = {(one.topology, one.link_latency) for one in split_modes(groups)}
    assert each == {("3x4", "0:1,1:4")}


def test_a_link_that_is_not_there_is_not_slow():
    """Absent links at the edge of a mesh do not count as slow."""
    mesh = with_latency(parse_topology("mesh:2x2"), "4,0:+0=2,1:+0=2")
    assert equalize_axis_links(mesh).latency_text == "0:2,1:4"
    assert with_latency(parse_topology("mesh:3"), "4,0:+0=2,1:+0=2").longest_link == 2


def test_an_engine_keeps_its_slow_link():
    """An engine with a slow link keeps it in modes with further broken links."""
    plans = [tf.plan(f"3!{faults}0:+0=3", "allgather", algorithm="any-network")
             for faults in ("", "1:+0,")]  # fmt: skip
    program = tf.compile(plans, max_flits=2)
    assert (str(program.topology), program.name_of(program.modes[1])) == (
        "3!0:+0=3",
        "allgather!1:+0",
    )
    jobs = [tf.Job(mode=mode, length=2) for mode in (0, 1)]
    assert tf.simulate(tf.Fabric(program, width=8), jobs=jobs, engine="amaranth").passed


@pytest.mark.parametrize(
    ("name", "collective", "message"),
    [
        ("4x4!5:+0=65", "halo", "Slow link must be NODE:PORT=CYCLES with 1 to 64 cycles, not 5:"),
        ("4x4!5:+0:out=2", "halo", "Slow link must be slow both ways, not 5:.0:out=2$"),
        ("circulant:8:1,2!5:0=2", "halo@0", "circulant:8:1,2!5:.1=2 has no axes"),
    ],
)
def test_slow_links_that_are_refused(name, collective, message):
    with pytest.raises(tf.InputError, match=f"^{message}"):
        tf.plan(name, collective)
