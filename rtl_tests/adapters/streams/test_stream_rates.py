"""Rates of short runs with streams: runs follow one another as fast as ports and links allow."""

from itertools import product

import pytest
from fabrics import build_fabric
from helpers import few
from stream_sections import forced

import torusfabric as tf
from torusfabric.adapters.streams.sections import LEAST_SHARE, choose_sections, rate_share_with_two
from torusfabric.simulation.jobs import random_jobs

#: Fabrics with runs so short that two sections of each memory are too few.
SHORT = {
    "small square": ("2x2", "allgather", {"flits": 2}),
    "ring": ("5", "gather", {"flits": 2}),
    "cube": ("2x2x2", "allgather:matching", {"flits": 1}),
    "square": ("3x3", "allgather", {"flits": 1}),
    "exchange": ("2x2", "alltoall", {"flits": 2}),
    "any length": ("2x2x2", "allgather:matching", {"max_flits": 1}),
    "any root": ("2x2", "gather", {"flits": 2, "root": "any"}),
    "modes": ("2x2", "allgather,broadcast", {"max_flits": 2}),
}

#: Fabrics with short runs for which two sections are just enough.
LONG_ENOUGH = [
    ("4", "allgather", {"flits": 3}),
    pytest.param("3x3", "alltoall", {"flits": 1}, marks=pytest.mark.long),
    pytest.param("3x3", "allgather,scatter", {"max_flits": 2}, marks=pytest.mark.long),
]


def program_of(topology, collectives, options):
    """Return the compiled program of a fabric."""
    return build_fabric(topology, collectives, **options).program


def share_of(program, runs=24):
    """Return the share of the possible rate that back-to-back runs reach, in the slowest mode."""
    fabric, shares = tf.Fabric(program, width=8, top="stream", beat=1), []
    for number, mode in enumerate(program.modes):
        job = tf.Job(mode=number if program.several else None, root=0 if mode.any_root else None)
        report = tf.simulate(fabric, jobs=[job] * runs)
        assert report.passed, report.first_wrong
        shares.append(report.rate.share)
    return min(shares)


def expected(program):
    """Return the share that the formula predicts for two sections."""
    return min(rate_share_with_two(program, mode) for mode in range(len(program.modes)))


@pytest.mark.parametrize("name", few(2, [*SHORT]))
def test_short_runs_reach_the_rate(name):
    """Fabrics with short runs have four sections, and reach 95 % of the rate."""
    program = program_of(*SHORT[name])
    assert choose_sections(program).n_sections == 4
    assert share_of(program, runs=10) >= 0.95


@pytest.mark.parametrize("name", few(2, [*SHORT]))
def test_two_sections_would_be_too_few(name):
    """With two sections these fabrics are too slow, by the share that the formula predicts."""
    program = program_of(*SHORT[name])
    with forced(buffers=2):
        share = share_of(program)
    assert share < LEAST_SHARE
    assert share == pytest.approx(expected(program), abs=0.01)


@pytest.mark.parametrize(("topology", "collectives", "options"), LONG_ENOUGH)
def test_two_sections_are_enough(topology, collectives, options):
    """Two sections are enough for these fabrics, as the formula predicts."""
    program = program_of(topology, collectives, options)
    assert choose_sections(program).n_sections == 2
    share = share_of(program)
    assert share >= LEAST_SHARE
    assert share == pytest.approx(expected(program), abs=0.01)


@pytest.mark.parametrize("flits", [1, 2])
def test_loading_may_be_the_limit(flits):
    """A scatter, limited by loading, reaches the full rate with two sections."""
    program = program_of("3x3", "scatter", {"flits": flits})
    assert expected(program) == share_of(program, runs=10) == 1


def test_modes_that_take_turns():
    """Runs of different modes and lengths also reach 95 % of the rate."""
    fabric = tf.Fabric(program_of(*SHORT["modes"]), width=8, top="stream", beat=1)
    report = tf.simulate(fabric, jobs=random_jobs(fabric, 40, seed=3))
    assert report.passed, report.first_wrong
    assert report.rate.buffers == 3
    assert report.rate.share >= 0.95


#: Fabrics among which the long test searches for those with four sections.
TOPOLOGIES = ["2", "3", "4", "5", "6", "2x2", "2x3", "2x4", "3x3", "3x4", "4x4", "2x2x2", "2x2x3"]
COLLECTIVES = ["allgather", "broadcast", "scatter", "gather", "alltoall", "reduce",
               "reduce-scatter", "allreduce"]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_fabric_with_four_sections_reaches_the_rate(topology):
    """Every fabric with four sections reaches 95 % of the rate."""
    for collective, flits in product(COLLECTIVES, (1, 2, 3, 4, 8)):
        program = program_of(topology, collective, {"flits": flits})
        if choose_sections(program).n_sections == 4:
            assert share_of(program, runs=12) >= 0.95, (collective, flits)


@pytest.mark.parametrize("length", ["flits", "max_flits"])
def test_plans_are_chosen_whose_blocks_are_whole_words_of_ports(length):
    """The choice of a plan prefers blocks of whole beats.

    The fastest plan alone has blocks of two flits, for which ports would need twice the cycles of a
    run.
    """
    spec = tf.FabricSpec("4x4", "reduce-scatter", top="stream", width=8, **{length: 16})
    fabric = spec.make().fabric
    assert fabric.beat == 4
    report = tf.simulate(fabric, jobs=[tf.Job()] * 4)
    assert report.rate.cycles == 3 * fabric.predicted_cycles
