"""Matching schedules with small routers: few inputs for an out-port, few memories for a node."""

from collections import defaultdict
from functools import cache

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.algorithms import Options
from torusfabric.algorithms.table.matching.alltoall import alltoall_bound, balanced_routes
from torusfabric.algorithms.table.matching.exchange import plan_exchange
from torusfabric.algorithms.table.matching.heads import plan_few_heads
from torusfabric.algorithms.table.matching.plan import MATCHING
from torusfabric.analysis.check import check
from torusfabric.analysis.distance_bounds import delivery_steps
from torusfabric.collective import parse_collective
from torusfabric.program import Action
from torusfabric.topology import parse_topology, require_cayley_graph

NAMES = ("4x4", "5x5", "4x6", "8x8", "3x3x3", "4x4x4")


@cache
def schedule_of(name, kind, latency=1, **options):
    topology = parse_topology(name)
    collective = parse_collective(kind, root=None, topology=topology)
    return MATCHING(topology, collective, Options(latency=latency, **options))


def program_of(schedule, flits):
    """Return the program, and its numbers of memories for received blocks and for own blocks."""
    program = tf.compile(schedule, flits=flits * schedule.chunks)
    own = sum(memory.own for memory in program.memories)
    return program, (len(program.memories) - own, own)


def inputs(program):
    """Return the number of inputs of each out-port."""
    columns = program.loop.selected_sources[:, 0].T
    return [len(np.unique(column[column >= 0])) for column in columns]


def tables(program):
    """Return the LUTs per bit of all out-ports."""
    return sum(-(-count // 2) for count in inputs(program) if count > 1)


def crowds(schedule):
    """Return the most blocks that arrived through one in-port and leave in the same step."""
    topology, most = schedule.topology, 0
    came: dict = {}
    personal = schedule.destination is not None
    for step in range(schedule.round_count):
        leaving = defaultdict(set)
        arrived = {}
        for port in np.nonzero(schedule.offset[step] >= 0)[0]:
            there = int(schedule.offset[step, port])
            here = int(topology.subtract(there, topology.generators[port]))
            goal = int(schedule.destination[step, port]) if personal else 0
            name = goal, int(schedule.chunk[step, port])
            if here:
                leaving[came[here, name]].add((here, name))
            arrived[there, name] = int(topology.opposite[port])
        came |= arrived
        most = max([most, *map(len, leaving.values())])
    return most


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["allgather", "alltoall"])
@pytest.mark.parametrize(("latency", "flits"), [(1, 4), (3, 1), (3, 4)])
def test_one_memory_an_in_port_and_four_inputs_an_out_port(name, kind, latency, flits):
    """A node has one memory for each in-port, and an out-port has at most four inputs."""
    schedule = schedule_of(name, kind, latency)
    topology = schedule.topology
    check(schedule)
    assert crowds(schedule) == 1
    program, memories = program_of(schedule, flits)
    assert memories == (topology.ports, 1 if kind == "allgather" else topology.ports)
    assert max(inputs(program)) <= 4


@pytest.mark.parametrize(
    ("name", "kind", "steps"),
    [("4x4", "allgather", (4, 10)), ("5x5", "allgather", (6, 10)), ("4x6", "allgather", (6, 13)),
     ("8x8", "allgather", (16, 22)), ("3x3x3", "allgather", (5, 8)),
     ("4x4x4", "allgather", (11, 16)), ("4x4", "alltoall", (8, 10)), ("5x5", "alltoall", (15, 15)),
     ("4x6", "alltoall", (18, 18)), ("8x8", "alltoall", (64, 64)), ("3x3x3", "alltoall", (9, 9)),
     ("4x4x4", "alltoall", (32, 32))],
)  # fmt: skip
def test_steps_of_latency_one_and_three_are_at_the_bound(name, kind, steps):
    """Schedules of latency 1 and 3 take the steps of the bound."""
    for latency, expected in zip((1, 3), steps, strict=True):
        schedule = schedule_of(name, kind, latency)
        if kind == "allgather":
            bound = delivery_steps(schedule.topology, 1, latency)
        else:
            bound = alltoall_bound(balanced_routes(schedule.topology), latency)
        assert schedule.round_count == bound == expected


@pytest.mark.parametrize(
    ("name", "kind", "most"),
    [("4x4", "allgather", 8), ("5x5", "allgather", 8), ("4x6", "allgather", 8),
     ("8x8", "allgather", 10), ("3x3x3", "allgather", 12), ("4x4x4", "allgather", 18),
     ("4x4", "alltoall", 8), ("5x5", "alltoall", 9), ("4x6", "alltoall", 9),
     ("8x8", "alltoall", 13), ("3x3x3", "alltoall", 12), ("4x4x4", "alltoall", 23)],
)  # fmt: skip
def test_words_past_memories_take_few_tables(name, kind, most):
    """The selectors of words that bypass memories take few LUTs per bit."""
    # A schedule planned without regard to the router takes 8, 10, 11, 19, 12, 25 and 10, 11, 12,
    # 19, 15, 28.
    assert tables(tf.compile(schedule_of(name, kind), flits=1)) <= most


@pytest.mark.parametrize("name", ["4x4", "5x5", "4x6", "8x8"])
def test_blocks_of_an_all_gather_need_not_rest(name):
    """With messages of one flit, the blocks of an all-gather pass without a stop in a memory."""
    program, (received, _) = program_of(schedule_of(name, "allgather"), 1)
    read = np.stack([field.values for field in program.loop.fields_of_action(Action.MEMORY)])
    assert not ((read >= 0) & (read < received)).any()


def test_chunks_are_sent_from_one_memory():
    """All chunks of a node are sent from one memory, in the steps of the bound."""
    for name in ("4x4", "8x8", "4x4x4"):
        for latency in (1, 3):
            schedule = schedule_of(name, "allgather", latency, chunks=4)
            check(schedule)
            assert program_of(schedule, 4)[1] == (schedule.topology.ports, 1)
            assert schedule.round_count == delivery_steps(schedule.topology, 4, latency)


def test_parallel_links_take_two_memories():
    """With parallel links, own blocks take two memories."""
    # One chunk cannot use both links to a node: 68 deliveries fill 17 steps of 4 ports.
    schedule = schedule_of("2x9", "allgather", chunks=4)
    assert schedule.round_count == 17
    assert crowds(schedule) == 1
    assert program_of(schedule, 4)[1][1] == 2


def test_arrowheads_have_small_routers():
    """Schedules on arrowheads have small routers."""
    for kind in ("allgather", "alltoall"):
        schedule = schedule_of("arrowhead:2", kind)
        check(schedule)
        assert crowds(schedule) == 1


def test_as_many_steps_where_no_small_router_is_found():
    """If no small router is found, the schedule takes at most one step more."""
    # On 5x2 with two chunks no schedule is known whose nodes send on one block per in-port.
    topology = require_cayley_graph(parse_topology("5x2"))
    assert plan_few_heads(topology, 2, 3, delivery_steps(topology, 2, 3)) is None
    schedule = schedule_of("5x2", "allgather", 3, chunks=2)
    check(schedule)
    assert schedule.round_count <= delivery_steps(topology, 2, 3) + 1


def test_too_few_steps_are_not_met():
    """The planners refuse fewer steps than the bound."""
    topology = require_cayley_graph(parse_topology("4x4"))
    assert plan_few_heads(topology, 1, 1, 3) is None
    assert plan_exchange(topology, balanced_routes(topology), 1, 7) is None
