"""Fabrics whose runs have any length up to a maximum: hardware as executed, to the cycle."""

from dataclasses import replace

import pytest
from helpers import check_jobs, few, simulated, starts_seen
from hypothesis import given, settings
from hypothesis import strategies as st
from verilog_bench import check_in_icarus

import torusfabric as tf
from torusfabric.rtl.assembly import Assembly
from torusfabric.rtl.modules import delayed
from torusfabric.rtl.run_length import divided, hold_length
from torusfabric.simulation.engines import CompiledEngine, Job
from torusfabric.simulation.jobs import default_jobs, random_jobs
from torusfabric.toolchain import cxx

WIDTH = 9

CASES = [
    ("2x2", "allgather", "hamiltonian", {}),
    ("2x3", "allgather", "matching", {}),
    ("2x2", "alltoall", "matching", {"chunks": 3}),
    ("2x3", "reduce-scatter", "matching", {}),
    ("2x2", "allreduce", "matching", {}),
    ("2x3", "scatter", "matching", {"chunks": 3, "root": 1}),
    ("2x2", "gather", "matching", {"chunks": 2}),
    ("2x3", "reduce", "max-flow", {}),
    ("3x3", "broadcast", "diagonal", {}),
    ("2x3", "gather", "max-flow", {"root": 4}),
    ("3x3", "reduce", "necklace", {"chunks": 3}),
    ("2x3", "allgather", "redistribute", {}),
    ("arrowhead:1", "broadcast", "spanning-tree", {"packets": 2}),
    ("2x3", "allgather@1", "matching", {}),
    ("4", "reduce", "necklace", {"latency": 3}),
]


def engine_of(topology, collective, algorithm, options, most, *, root=None):
    """A fabric for messages of up to so many flits."""
    schedule = tf.plan(topology, collective, algorithm=algorithm, **options)
    return tf.Fabric(tf.compile(schedule, max_flits=most, root=root), width=WIDTH)


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), few(5, CASES))
def test_every_length(topology, collective, algorithm, options):
    """Lengths up to the most, in any order; what was left by a longer run does not show."""
    fabric = engine_of(topology, collective, algorithm, options, 5)
    check_jobs(fabric, [Job(length=length) for length in (5, 1, 2, 4, 3)])


def test_one_flit_at_most():
    """A maximum of one flit leaves one length."""
    for case in CASES[:4]:
        check_jobs(engine_of(*case, 1), [Job(length=1)] * 2)


def test_first_step_in_which_nothing_moves():
    """Alone, and before or after one that begins at once."""
    at_once = tf.plan("4", "gather")
    nothing = tf.plan("4", "reduce", latency=3).transfers[1]
    assert not len(nothing)
    late = replace(at_once, transfers=(nothing, *at_once.transfers))
    check_jobs(
        tf.Fabric(tf.compile(late, max_flits=3), width=WIDTH), [Job(length=1), Job(length=3)]
    )
    several = tf.Fabric(tf.compile([late, at_once], max_flits=3), width=WIDTH)
    orders = [(0, 1), (0, 3), (1, 2), (0, 2), (1, 1), (1, 3)]
    check_jobs(several, [Job(mode=mode, length=length) for mode, length in orders])


def test_any_root():
    """Length and root are chosen together."""
    fabric = engine_of("2x3", "broadcast", "max-flow", {}, 4, root="any")
    check_jobs(fabric, [Job(length=4, root=0), Job(length=1, root=5), Job(length=3, root=2)])


@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
def test_compiled():
    """The compiled engine samples the length with the start."""
    fabric = engine_of("2x3", "gather", "max-flow", {}, 5)
    check_jobs(fabric, [Job(length=length) for length in (5, 1, 3)], CompiledEngine)


@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
def test_compiled_with_several_modes():
    """The compiled engine samples the mode, the root and the operation as well."""
    plans = [tf.plan("2", name) for name in ("allgather", "broadcast", "allreduce")]
    fabric = tf.Fabric(
        tf.compile(plans, max_flits=2, root="any", operators=["add", "max"]), width=4
    )
    jobs = [Job(0, 2), Job(1, 1, root=1), Job(2, 2, operation=1), Job(1, 2, root=0)]
    check_jobs(fabric, jobs, CompiledEngine)


@settings(derandomize=True, deadline=None, max_examples=4)
@given(st.data())
def test_any_fabric_and_jobs(data):
    """Fabrics of random tori, collectives and most flits, and random jobs."""
    sides = data.draw(st.lists(st.integers(2, 3), min_size=1, max_size=2))
    kind = data.draw(st.sampled_from(["allgather", "alltoall", "reduce-scatter", "scatter"]))
    options = {"chunks": data.draw(st.integers(1, 3))}
    most = data.draw(st.integers(1, 9))
    fabric = engine_of("x".join(map(str, sides)), kind, "matching", options, most)
    check_jobs(fabric, random_jobs(fabric, 4, seed=data.draw(st.integers(0, 99))))


@pytest.mark.parametrize("length", few(1, [1, 4, 6], tuples=True))
@pytest.mark.parametrize(
    ("collective", "algorithm"), [("reduce-scatter", "matching"), ("gather", "max-flow")]
)
def test_verilog_agrees(tmp_path, collective, algorithm, length):
    """Icarus, by nothing but the manifest, reads the same words after the same cycles."""
    fabric = engine_of("2x3", collective, algorithm, {}, 6)
    manifest = check_in_icarus(tmp_path, fabric, length=length)
    assert (manifest["max_flits"], manifest["stride"]) == (6, 6)
    assert "predicted_cycles" not in manifest


def test_commands_that_cannot_be_carried_out():
    """They change nothing and are reported until the next start; nothing hangs."""
    fabric = engine_of("2x3", "allgather", "matching", {}, 5)
    lengths = [{"length": length} for length in (0, 6, 2, 5, 7, 5)]
    steps = [*lengths[:3], 1, lengths[3], fabric.program.cycles(2) - 2, *lengths[4:]]
    assert starts_seen(fabric, steps) == [
        (3, 0, 0), (3, 0, 0), (0, 1, 0), (5, 1, 0), (3, 0, 1), (0, 1, 0),
    ]  # fmt: skip


def late_length(m, lengths, loops, length, mode, begin):
    """Plant a fault: the length is sampled a cycle after the start."""
    return hold_length(m, lengths, loops, length, mode, delayed(m, begin, 1))


def test_a_length_sampled_late_is_found(monkeypatch):
    """A fabric that takes the length a cycle late does not do what is expected."""
    monkeypatch.setattr("torusfabric.rtl.sequencer.hold_length", late_length)
    fabric = engine_of("2x3", "allgather", "matching", {}, 5)
    design, seen = Assembly(fabric.netlist), []

    async def testbench(ctx):
        ctx.set(design.length, 1)
        ctx.set(design.start, 1)
        await ctx.tick()
        ctx.set(design.start, 0)
        ctx.set(design.length, 5)
        for _ in range(60):
            await ctx.tick()
        seen.append(ctx.get(design.cycles))

    simulated(design, testbench)
    assert seen[0] != fabric.program.cycles(1)


def test_division_by_constants():
    """Every value of a few bits is divided exactly."""
    from amaranth.hdl import Module, Signal

    for divisor in range(1, 20):
        m, value = Module(), Signal(6)
        quotient = Signal(6)
        m.d.comb += quotient.eq(divided(value, divisor))

        async def testbench(ctx, value=value, quotient=quotient, divisor=divisor):
            for number in range(64):
                ctx.set(value, number)
                assert ctx.get(quotient) == number // divisor, (number, divisor)

        simulated(m, testbench)


def test_jobs_by_default():
    """One flit, the most, and some between; every root of a few."""
    fabric = engine_of("2x3", "broadcast", "max-flow", {}, 4, root="any")
    jobs = default_jobs(fabric.program)
    assert {job.length for job in jobs} == {1, 2, 3, 4}
    assert {job.root for job in jobs} == set(range(6))
    report = tf.simulate(fabric, jobs=jobs[:3])
    assert report.passed
    assert [job.length for job in report.jobs] == [1, 2, 3]
    assert report.cycles == sum(job.cycles for job in report.jobs)


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([], "Jobs must be at least one, not none"),
        ([Job(length=0)], "Length must be from 1 to 4 flits, not 0"),
        ([Job(length=5)], "Length must be from 1 to 4 flits, not 5"),
        ([Job(length=2, root=6)], "Root must be from 0 to 5, not 6"),
    ],
)
def test_jobs_that_do_not_fit(jobs, message):
    fabric = engine_of("2x3", "broadcast", "max-flow", {}, 4, root="any")
    with pytest.raises(tf.InputError, match=f"^{message}"):
        tf.simulate(fabric, jobs=jobs)


def test_core_is_refused():
    program = tf.compile(tf.plan("2x3", "allgather"), max_flits=4)
    with pytest.raises(tf.InputError, match=r"^Top must be host for messages of any length"):
        tf.Fabric(program, top="core")
