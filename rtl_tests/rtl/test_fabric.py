"""Fabrics in Amaranth's simulator against the executed program, to the word and to the cycle."""

import numpy as np
import pytest
from helpers import (
    as_executed,
    check_run,
    cycles_of_rounds,
    delay_end,
    expected_words,
    fabric_of,
    few,
    misrouted,
    program_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.errors import InputError, WorkFailed
from torusfabric.rtl import Fabric
from torusfabric.simulation.engines import AmaranthEngine, Job
from torusfabric.simulation.engines.amaranth_host import Clock, HostDriver
from torusfabric.simulation.engines.words import Words
from torusfabric.simulation.simulate import simulate

ALLGATHERS = [
    ("2x2", "hamiltonian", 1, 2),
    ("2x4", "hamiltonian", 5, 6),
    ("4x4", "hamiltonian", 32, 2),
    ("4x3", "one-packet", 8, 3),
    ("3x3", "one-packet", 1, 2),
    ("3x3", "hamiltonian", 8, 2),
    ("4x6", "hamiltonian", 8, 6),
    ("6x4", "hamiltonian", 64, 2),
    ("5x4", "hamiltonian", 3, 4),
    ("3x3x3", "hamiltonian", 8, 3),
    pytest.param("3x4x5", "hamiltonian", 4, 3, marks=pytest.mark.long),
    ("5", "hamiltonian", 8, 3),
    ("5x5", "one-packet", 16, 1),
    ("7x5", "one-packet", 8, 2),
    ("3x3x4", "one-packet", 8, 1),
]


@pytest.mark.parametrize(("topology", "algorithm", "width", "flits"), few(4, ALLGATHERS))
def test_oblivious_fabric(topology, algorithm, width, flits):
    """Every word arrives, after so many steps a flit of each chunk and three more cycles."""
    fabric = fabric_of(topology, "allgather", algorithm, width=width, flits=flits)
    check_run(fabric)
    schedule = fabric.program.schedule
    assert fabric.predicted_cycles == flits // schedule.chunks * schedule.steps + 5


@pytest.mark.parametrize(
    ("topology", "algorithm", "options", "width", "flits"),
    few(
        2,
        [
            ("arrowhead:1", "wormhole-forest", {}, 8, 2),
            ("arrowhead:2", "wormhole-forest", {}, 1, 4),
            ("arrowhead:2", "wormhole-forest", {"ports": 3, "root": 11}, 8, 3),
        ],
    ),
)
def test_broadcast_in_rounds(topology, algorithm, options, width, flits):
    """A broadcast takes a cycle a round beyond its hops and flits, and one more, from any root."""
    fabric = fabric_of(topology, "broadcast", algorithm, width=width, flits=flits, **options)
    check_run(fabric)
    assert fabric.predicted_cycles == cycles_of_rounds(fabric.program.schedule, flits)


@pytest.mark.parametrize(
    ("options", "width", "flits"), [({"root": 5}, 8, 2), ({"trees": 1}, 16, 1)]
)
def test_broadcast_down_a_tree(options, width, flits):
    """What never rests takes a cycle a hop, one for each flit of a chunk, and four more."""
    fabric = fabric_of("arrowhead:2", "broadcast", "spanning-tree", width=width, flits=flits,
                       **options)  # fmt: skip
    check_run(fabric)
    schedule = fabric.program.schedule
    assert fabric.predicted_cycles == schedule.steps + flits // schedule.chunks + 4


@pytest.mark.long
def test_two_flits_a_block_on_lee_code():
    """The executed lee-code program gives every node every message, in 4 + 12 + 400 L cycles.

    And three more, as any program in rounds.
    """
    program = program_of("7x7x7", "allgather", "lee-code", flits=2)
    messages = np.arange(343 * 2).reshape(343, 2)
    words, _ = expected_words(program, messages)
    assert (program.execute(messages) == words).all()
    schedule = program.schedule
    lengths = [tf.compile(schedule, flits=flits).cycles() for flits in (1, 2, 3)]
    assert lengths == [419, 819, 1219]
    assert program.loop.variants == 7


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "flits"),
    few(
        4,
        [
            ("3x4", "allgather", "hamiltonian", 2),
            ("arrowhead:2", "broadcast", "wormhole-forest", 2),
            ("3x3", "alltoall", "matching", 3),
            ("3x3", "reduce", "necklace", 2),
            ("3x3", "allgather", "bufferless", 2),
            ("3x3", "allreduce", "matching", 9),
        ],
    ),
)
def test_restart_without_reset(topology, collective, algorithm, flits):
    """Run after run with new data, nothing of the last one is left."""
    fabric = fabric_of(topology, collective, algorithm, flits=flits)
    assert simulate(fabric, repeat=3, engine=AmaranthEngine(fabric)).passed


@pytest.mark.parametrize("gated", [True, False])
def test_resting_clocks_change_nothing(gated):
    """Leaving the clocks of nodes still that are not concerned gives the same words and cycles."""
    check_run(fabric_of("3x4", "allgather", "hamiltonian", flits=4), gated=gated)
    check_run(fabric_of("arrowhead:2", "broadcast", "spanning-tree", flits=2), gated=gated)
    check_run(fabric_of("3x3", "alltoall", "necklace", flits=3), gated=gated)


@pytest.mark.parametrize("after", few(1, [3, 1, 7]))
@pytest.mark.parametrize(
    ("topology", "collective", "algorithm"),
    [("4x4", "allgather", "hamiltonian"), ("arrowhead:2", "broadcast", "wormhole-forest")],
)
def test_reset_in_the_middle_of_a_run(topology, collective, algorithm, after):
    """A reset ends a run at any time, and the next one works."""
    fabric = fabric_of(topology, collective, algorithm, flits=4)
    messages, executed = as_executed(fabric)
    engine = AmaranthEngine(fabric, gated=True)
    design, found = engine.design, []

    async def testbench(ctx):
        clock = Clock(ctx, design)
        driver = HostDriver(ctx, clock, fabric, design)
        words = Words(fabric, messages, Job())
        await driver.load(words)
        ctx.set(design.start, 1)
        await clock.tick()
        ctx.set(design.start, 0)
        for _ in range(after):
            await clock.tick()
        assert ctx.get(design.busy)
        ctx.set(design.domains[None].rst, 1)
        await clock.tick()
        ctx.set(design.domains[None].rst, 0)
        assert not ctx.get(design.busy)
        assert not ctx.get(design.done)
        assert await driver.collect(Job()) == fabric.predicted_cycles
        await driver.take(words)
        found.extend(words.received)

    engine.simulate(testbench)
    assert (np.array(found, object) == executed).all()


def test_start_is_ignored_while_busy():
    """A second start pulse during a run neither restarts nor lengthens it."""
    fabric = fabric_of("4x4", "allgather", "hamiltonian", flits=2)
    engine = AmaranthEngine(fabric, gated=True)
    design = engine.design

    async def testbench(ctx):
        clock = Clock(ctx, design)
        ctx.set(design.start, 1)
        for edge in range(fabric.predicted_cycles):
            assert ctx.get(design.busy) == (edge > 0)
            await clock.tick()
        ctx.set(design.start, 0)
        await clock.tick()
        assert ctx.get(design.done)
        assert ctx.get(design.cycles) == fabric.predicted_cycles

    engine.simulate(testbench)


@settings(derandomize=True, deadline=None, max_examples=3)
@given(st.data())
def test_any_size_width_and_length(data):
    """Fabrics of random tori, widths and lengths agree with the executed program."""
    algorithm = data.draw(st.sampled_from(["hamiltonian", "one-packet"]))
    sides = data.draw(st.tuples(st.integers(3, 6), st.integers(3, 6)))
    fabric = fabric_of(
        "x".join(map(str, sides)),
        "allgather",
        algorithm,
        width=data.draw(st.integers(1, 70)),
        flits=data.draw(st.integers(1, 3)) * (2 if algorithm == "hamiltonian" else 1),
    )
    check_run(fabric)


@pytest.mark.parametrize(("width", "wanted"), [(0, 0), (1025, 1025)])
def test_width_out_of_range(width, wanted):
    """The width is refused in one line."""
    program = program_of("4x4", "allgather", "hamiltonian")
    with pytest.raises(InputError, match=rf"^Width must be from 1 to 1024 bits, not {wanted}$"):
        Fabric(program, width=width)


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "flits", "options"),
    few(
        3,
        [
            ("3x3", "allgather", "hamiltonian", 3, {}),
            ("2x2x2", "allgather", "bufferless", 5, {"chunks": 2}),
            ("2x3", "alltoall", "matching", 5, {"chunks": 3}),
            ("2x3", "reduce-scatter", "matching", 5, {"chunks": 2}),
            ("2x3", "allreduce", "matching", 7, {}),
            ("2x3", "scatter", "matching", 5, {"chunks": 3, "root": 1}),
            ("2x3", "gather", "matching", 5, {"chunks": 3}),
        ],
    ),
)
def test_length_that_chunks_do_not_divide(topology, collective, algorithm, flits, options):
    """Chunks have as many flits as the first; what lies beyond the message nobody sees."""
    fabric = fabric_of(topology, collective, algorithm, width=6, flits=flits, **options)
    assert flits % fabric.program.schedule.chunks
    check_run(fabric)


@pytest.mark.parametrize("algorithm", ["hamiltonian", "matching"])
def test_flipped_crossbar_setting_is_seen(algorithm):
    """A single wrong crossbar setting makes words wrong, and the first is named."""
    report = simulate(fabric_of("4x4", "allgather", algorithm, flits=2, fault=misrouted))
    assert report.words_wrong > 0
    assert not report.passed
    fault = report.first_wrong
    assert fault.expected != fault.got
    assert f"node {fault.node} holds" in str(fault)


def test_fabric_that_never_ends_is_given_up():
    """A fabric that takes longer than predicted is a failure, not a hang."""
    fabric = fabric_of("3x3", "allgather", "hamiltonian", flits=4)
    delay_end(fabric)
    with pytest.raises(
        WorkFailed, match=r"^Fabric must be done 13 edges after its start, not busy"
    ):
        simulate(fabric)
