"""Plans on networks with rates: near the bound, right by `check`, and at the rates in hardware."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.analysis.volume import least_time, longest_distance
from torusfabric.program.trace import list_arrivals

COLLECTIVES = (
    "broadcast", "reduce", "allgather", "reduce-scatter", "allreduce", "scatter", "gather",
    "alltoall", "halo", "exchange[+0,-1]",
)  # fmt: skip


def closest_flits(program):
    """Return, for each arc, the fewest cycles from a flit to the next in a run."""
    cycles: dict[tuple[int, int], list[int]] = defaultdict(list)
    for arrival in list_arrivals(program):
        assert len(arrival.hops) == 1
        cycles[arrival.path[0], arrival.hops[0]] += [
            arrival.cycle + flit * arrival.stride for flit in range(arrival.flits)
        ]
    return {
        arc: min((b - a for a, b in pairwise(sorted(when))), default=99)
        for arc, when in cycles.items()
    }


def assert_rates_are_kept(program):
    closest, spacing = closest_flits(program), program.topology.spacing_of_arc
    assert all(cycles >= spacing[arc] for arc, cycles in closest.items())
    return closest


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    "name",
    [
        "mesh:3x3%0:+0=1/4",
        pytest.param("4x4%1:1/2", marks=pytest.mark.long),
        pytest.param("3x3%0:1/3,1:3/2", marks=pytest.mark.long),
    ],
)
def test_all_collectives_are_planned_and_right(name, collective):
    schedule = tf.plan(name, collective)
    least = least_time(schedule.topology, schedule.collective)
    assert tf.check(schedule).rounds >= least * schedule.chunks
    assert tf.bound(schedule) <= schedule.steps


@pytest.mark.parametrize(
    "collective", ["allgather", "reduce-scatter", "scatter", "gather", "alltoall"]
)
@pytest.mark.parametrize(
    "name",
    [
        "4x4%1:1/2",
        "mesh:4x4%1:1/2",
        pytest.param("4x4%0:2,1:1/2", marks=pytest.mark.long),
        pytest.param("5x5%1:1/3", marks=pytest.mark.long),
    ],
)
def test_steps_come_near_the_bound(name, collective):
    """At most 1.05 of the bound, and the cycles from end to end (a hop takes latency + 2)."""
    schedule = tf.plan(name, collective, check=False)
    network = schedule.topology
    least = least_time(network, schedule.collective) * schedule.chunks
    far = longest_distance(network, schedule.collective)
    assert schedule.steps <= 1.05 * least + (2 + network.longest_link) * far


def test_half_the_rate_along_an_axis_takes_the_least_steps():
    """The example of the page: 15 messages by 2 + 2/2 links, five message times."""
    schedule = tf.plan("4x4", "allgather", rate="1:1/2")
    assert schedule.steps == 5 * schedule.chunks == tf.bound(schedule)


def test_whole_rates_serve_tables():
    """4x4%0:2 looks the same from each node; matching plans it at its bound."""
    schedule = tf.plan("4x4", "alltoall", rate="0:2")
    assert schedule.algorithm == "matching"
    assert schedule.steps == tf.bound(schedule) == 8 * schedule.chunks
    assert tf.simulate(tf.Fabric(tf.compile(schedule, flits=2), width=8)).passed


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("flits", [1, pytest.param(5, marks=pytest.mark.long), 23])
def test_hardware_keeps_the_rates(collective, flits):
    """Each slow link carries a flit at most every second cycle, and all words arrive."""
    schedule = tf.plan("3x3", collective, rate="1:1/2", flits=flits)
    program = tf.compile(schedule, flits=flits)
    closest = assert_rates_are_kept(program)
    slow = schedule.topology.spacing_of_arc
    if flits == 23 and collective in ("allgather", "alltoall"):
        assert min(cycles for arc, cycles in closest.items() if slow[arc] > 1) == 2
    assert tf.simulate(tf.Fabric(program, width=8)).passed


def test_any_length_and_several_modes_keep_the_rates():
    plans = [tf.plan("3x3", kind, rate="0:1/3", chunks=4) for kind in ("allgather", "allreduce")]
    program = tf.compile(plans, max_flits=12)
    for mode in (0, 1):
        for flits in (1, 4, 12):
            assert_rates_are_kept(tf.compile(plans[mode], flits=flits))
    jobs = [tf.Job(mode=mode, length=length) for mode in (0, 1) for length in (1, 5, 12)]
    assert tf.simulate(tf.Fabric(program, width=8), jobs=jobs).passed


def test_a_schedule_of_ones_own_waits_for_its_words():
    """Where a block is sent on in the next round, rounds take more cycles; rates are kept."""
    schedule = tf.plan("mesh:3", "allgather", rate="1:-0=1/2", chunks=1)
    assert isinstance(schedule, tf.Rounds)
    tight = [one for one in schedule.transfers if len(one)]
    none = [one for one in schedule.transfers if not len(one)][:1]
    rounds = tuple(part for one in tight for part in (one, *none))
    own = tf.Rounds(topology=schedule.topology, collective=schedule.collective, transfers=rounds)
    tf.check(own)
    for flits in (1, 3):
        program = tf.compile(own, flits=flits)
        assert_rates_are_kept(program)
        loop = program.loop
        sent = np.argwhere(loop.selected_sources[:, program.variant_of] >= 0).tolist()
        assert sorted(sent) == sorted(
            [int(loop.departure[step, port]), int(node), int(port)]
            for step, one in enumerate(rounds)
            for node, port in zip(one.source, one.hops[:, 0], strict=True)
        )
        assert tf.simulate(tf.Fabric(program, width=8)).passed


def test_irregular_traffic_keeps_the_rates():
    counts = [[(3 * a + b) % 4 * (a != b) for b in range(9)] for a in range(9)]
    schedule = tf.plan("3x3", "alltoall", rate="1:1/2", counts=counts)
    program = tf.compile(schedule)
    assert_rates_are_kept(program)
    assert tf.simulate(tf.Fabric(program, width=8)).passed
    groups = tf.plan("3x3", "allreduce@{0,1,4}{2,5,8}", rate="1:1/2", flits=6)
    program = tf.compile(groups, flits=6)
    assert_rates_are_kept(program)
    assert tf.simulate(tf.Fabric(program, width=8)).passed


def test_others_are_refused_with_a_next_step():
    with pytest.raises(tf.InputError, match=r"^Algorithm matching needs links of at least a flit"):
        tf.plan("4x4", "allgather", rate="1:1/2", algorithm="matching")
    with pytest.raises(tf.InputError, match=r"--trees left out, where links have rates below 1"):
        tf.plan("4x4", "broadcast", rate="1:1/2", algorithm="any-network", trees=2)


@pytest.mark.parametrize(
    ("collective", "flits", "cycles"),
    [("allgather", 12, 65), ("allgather", 40, 210), ("alltoall", 7, 117), ("scatter", 40, 205)],
)
def test_runs_take_little_more_than_the_limit(collective, flits, cycles):
    schedule = tf.plan("4x4", collective, rate="1:1/2", flits=flits)
    assert tf.compile(schedule, flits=flits).cycles() <= cycles


def test_choices_keep_rates_in_the_name_of_the_network():
    spec = tf.FabricSpec("3x3", "allgather", rate="1:2/4", flits=2, width=8)
    made = spec.make()
    choices = made.decided_choices()
    assert (choices["topology"], choices["rate"]) == ("3x3%1:1/2", None)
    assert tf.FabricSpec(**choices).make().fabric.program.topology == made.fabric.program.topology


def test_loaded_tables_serve_slow_links_of_one_latency():
    spec = tf.FabricSpec("3x3", "allgather", rate="1:1/2", tables="ram", max_flits=4, width=8)
    with pytest.raises(tf.InputError, match=r"^Loaded tables need links of one latency .* 2\)"):
        spec.make()
    made = spec.replace(link_latency="2").make()
    jobs = [tf.Job(length=length) for length in (1, 3, 4)]
    assert tf.simulate(made.fabric, jobs=jobs).passed


def test_rounds_on_slow_links_are_not_mended():
    schedule = tf.plan("mesh:3", "broadcast", rate="1/2", chunks=2)
    assert isinstance(schedule, tf.Rounds)
    assert tf.spread(schedule) is schedule
    tight = tuple(one for one in schedule.transfers if len(one))
    wrong = tf.Rounds(
        topology=schedule.topology, collective=schedule.collective, chunks=2, transfers=tight
    )
    with pytest.raises(tf.ScheduleError, match="its rate is a message every 2 rounds"):
        tf.spread(wrong)


def test_a_plan_from_a_file_is_built(tmp_path):
    """A round of a file in which nothing is sent does not keep a plan from being built."""
    plan = tf.plan("2x2", "allgather", rate="1:1/4", chunks=2)
    empty = [not len(transfers.source) for transfers in plan.rounds()]
    assert any(empty)
    plan.save(tmp_path / "plan.json")
    read = tf.load(tmp_path / "plan.json")
    assert tf.compile(read, flits=4).cycles() == tf.compile(plan, flits=4).cycles()
