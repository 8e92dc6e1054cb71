"""Fabrics that carry out several collectives: hardware as executed, to the cycle, in any order."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import check_jobs, few, simulated
from hypothesis import given, settings
from hypothesis import strategies as st
from verilog_bench import check_in_icarus, lint_verilator

import torusfabric as tf
from torusfabric import verilog
from torusfabric.collective import random_messages
from torusfabric.rtl import fabric_builder
from torusfabric.rtl.assembly import Assembly
from torusfabric.rtl.run_length import RunLength
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine, Job
from torusfabric.simulation.engines.amaranth_host import Clock, HostDriver
from torusfabric.simulation.engines.words import Words
from torusfabric.simulation.jobs import default_jobs, random_jobs
from torusfabric.toolchain import cxx

WIDTH = 9

EVERY = (
    "broadcast", "scatter", "gather", "allgather", "alltoall", "reduce", "reduce-scatter",
    "allreduce",
)  # fmt: skip

MIXES = [
    ("2x3", ("allgather", "broadcast"), {}),
    ("2x2", ("allgather:hamiltonian", "alltoall", "allreduce", "broadcast"), {}),
    ("2x3", ("scatter", "gather", "reduce"), {"operators": ["add", "max:signed"]}),
    ("3", ("reduce", "broadcast", "allgather"), {"root": "any"}),
    ("2x3", ("scatter", "alltoall", "broadcast"), {"root": "any"}),
    ("2x3", ("allgather@0", "allgather@1", "allreduce"), {}),
    ("arrowhead:1", ("allgather", "broadcast"), {}),
    ("2x2", ("reduce-scatter", "gather:matching", "alltoall:necklace"), {}),
]


def engine_of(topology, names, most=4, *, width=WIDTH, **options):
    """A fabric of several collectives for messages of up to so many flits."""
    plans = [tf.plan(topology, name) for name in names]
    return tf.Fabric(tf.compile(plans, max_flits=most, **options), width=width)


def few_jobs(fabric, count):
    """Every mode with one flit and with the most, and some that are drawn."""
    modes = range(len(fabric.program.modes))
    ends = [Job(mode=mode, length=length) for mode in modes for length in (1, fabric.flits)]
    usual = [replace_open(fabric, job) for job in ends]
    return usual + list(random_jobs(fabric, count))


def replace_open(fabric, job):
    """A job with root and operation chosen where the mode leaves them open."""
    mode = fabric.program.modes[job.mode]
    root = mode.groups.size - 1 if mode.any_root else None
    operation = len(mode.operators) - 1 if len(mode.operators) > 1 else None
    return job._replace(root=root, operation=operation)


@pytest.mark.parametrize(("topology", "names", "options"), few(2, MIXES))
def test_modes_in_any_order(topology, names, options):
    """Each run is that of its mode alone; nothing of the run before shows."""
    fabric = engine_of(topology, names, **options)
    check_jobs(fabric, few_jobs(fabric, 4))


@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
def test_sequencer_selects_at_nodes_that_differ_in_another_mode():
    """An all-gather injects at other ports from row to row, an all-to-all is everywhere alike."""
    fabric = engine_of("5x5", ["allgather", "alltoall"], 2)
    check_jobs(fabric, few_jobs(fabric, 4), CompiledEngine)


@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
def test_selects_of_the_run_before_are_gone():
    """Where the sequencer gives some modes' selects late, it is 0 in time in those of the ROMs."""
    names = ("gather", "reduce-scatter", "allgather:one-packet")
    fabric = engine_of("3x4", names, 2)
    check_jobs(fabric, [Job(mode=1, length=1), Job(mode=0, length=1)], CompiledEngine)


def test_a_slow_link_delays_its_own_memory_alone():
    """Nodes that store late by one in-port are no case of those that do by another."""
    plans = [tf.plan("4", kind, flits=1, link_latency="1:+0=6") for kind in ("gather", "halo")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=1), width=WIDTH)
    check_jobs(fabric, [Job(mode=mode, length=1) for mode in (0, 1, 1)])


@pytest.mark.parametrize("latency", few(1, [5, 12, 3, 1]))
def test_a_run_begins_as_another_ends(latency):
    """Nothing that is under way for one, to be stored soon, is stored for one that stores late."""
    ring = tf.Torus(3, link_latency=latency)
    plans = [tf.plan(ring, "gather"), tf.plan(ring, "allreduce", algorithm="spanning-tree")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=3), width=WIDTH)
    gather, allreduce = (Job(mode=mode, length=3) for mode in (0, 1))
    program = fabric.program
    messages = random_messages(program.part(1).layout, 3, width=WIDTH, seed=1)
    engine, words = AmaranthEngine(fabric), Words(fabric, messages, allreduce)

    async def testbench(ctx):
        driver = HostDriver(ctx, Clock(ctx, engine.design), fabric, engine.design)
        await driver.load(words)
        for job in (gather, allreduce, gather, allreduce):
            assert await driver.collect(job) == program.cycles(3, mode=job.mode)
        await driver.take(words)

    engine.simulate(testbench)
    executed = program.execute(messages, **allreduce._asdict(), width=WIDTH)
    assert (np.array(words.received, object) == executed).all()


@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
@pytest.mark.parametrize("root", [pytest.param(None, marks=pytest.mark.long), "any"])
def test_every_collective_in_one_fabric(root):
    """All eight, on the compiled engine."""
    fabric = engine_of("2x3", EVERY, 3, operators=["add", "min"], root=root)
    check_jobs(fabric, few_jobs(fabric, 20), CompiledEngine)


@pytest.mark.long
@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
@pytest.mark.parametrize("topology", ["4x4", "3x5", "2x2x3", "7"])
def test_every_collective_on_larger_tori(topology):
    """All eight with any root, at all usual lengths."""
    names = EVERY if topology != "2x2x3" else EVERY[:6]
    fabric = engine_of(topology, names, 7, operators=["add", "max:signed"], root="any")
    check_jobs(fabric, [*default_jobs(fabric.program), *random_jobs(fabric, 40)], CompiledEngine)


@st.composite
def mixes(draw):
    """A topology, some collectives, the most flits, and whether roots are open."""
    topology = draw(st.sampled_from(["2", "3", "2x2", "2x3", "arrowhead:1"]))
    names = EVERY if topology != "arrowhead:1" else ("broadcast", "allgather", "alltoall")
    chosen = draw(st.lists(st.sampled_from(names), min_size=2, max_size=3))
    return topology, chosen, draw(st.integers(1, 7)), draw(st.sampled_from([None, "any"]))


@settings(derandomize=True, deadline=None, max_examples=4)
@given(mixes(), st.integers(1, 12), st.integers(0, 99))
def test_any_mix(mix, width, seed):
    """The same collective twice, too."""
    topology, names, most, root = mix
    fabric = engine_of(topology, names, most, width=width, root=root)
    check_jobs(fabric, random_jobs(fabric, 3, seed=seed))


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(mixes(), st.integers(1, 40), st.integers(0, 999))
def test_any_mix_at_length(mix, width, seed):
    """As the quick one, of many more."""
    topology, names, most, root = mix
    fabric = engine_of(topology, names, most, width=width, root=root)
    check_jobs(fabric, random_jobs(fabric, 6, seed=seed))


def run_starts(fabric, starts, *, gap=0, rounds=None):
    """`error`, and `cycles` at the end, of runs that begin as soon as the one before is done.

    Where `rounds` is given, what `round` shows while a run is under way is added to it.
    """
    design, seen = Assembly(fabric.netlist), []

    async def testbench(ctx):
        for chosen in starts:
            for name, value in chosen.items():
                ctx.set(getattr(design, name), value)
            ctx.set(design.start, 1)
            await ctx.tick()
            ctx.set(design.start, 0)
            for name in chosen:
                ctx.set(getattr(design, name), -1)
            error, shown = ctx.get(design.error), []
            while ctx.get(design.busy):
                shown.append(ctx.get(design.round))
                await ctx.tick()
            if rounds is not None:
                rounds.append(shown)
            for _ in range(gap):
                await ctx.tick()
            seen.append((error, ctx.get(design.cycles)))

    simulated(design, testbench)
    return seen


def test_starts_without_a_gap():
    """A run may begin in the cycle in which the one before is done."""
    fabric = engine_of("2x2", ("allgather", "alltoall", "gather"), 3)
    orders = [(0, 3), (2, 1), (1, 2), (0, 1), (2, 3), (1, 3)]
    seen = run_starts(fabric, [{"mode": m, "length": n} for m, n in orders])
    assert seen == [(0, fabric.program.cycles(n, mode=m)) for m, n in orders]


@pytest.mark.parametrize("length", [1, 3])
def test_rounds_are_shown_in_order(length):
    """From 0 in each mode, also where its rows come behind those of others."""
    fabric, rounds = engine_of("2x3", ("alltoall", "allreduce", "gather"), 3), []
    modes = (0, 1, 2, 1, 0)
    run_starts(fabric, [{"mode": m, "length": length} for m in modes], gap=4, rounds=rounds)
    for mode, shown in zip(modes, rounds, strict=True):
        loop = fabric.program.forms[mode].timing_of(length).loop
        steps = [a for a, b in zip(shown, [*shown[1:], None], strict=True) if a != b]
        assert steps[0] == 0
        assert sorted(set(steps)) == list(range(loop.rows))
        # A row follows the one before, or the last one.
        assert all(b in (a + 1, 0) for a, b in pairwise(steps))


def test_what_cannot_be_carried_out():
    """A mode before a root, a root before a length; and nothing changes."""
    fabric = engine_of("3", ("allgather", "broadcast", "alltoall"), 3, root="any")
    names = ("mode", "root", "length")
    wrong = [(3, 3, 0), (1, 3, 0), (1, 2, 0), (0, 3, 0), (0, 3, 2)]
    starts = [dict(zip(names, chosen, strict=True)) for chosen in wrong]
    seen = run_starts(fabric, starts)
    # The root does not matter in a mode without one.
    assert [error for error, _ in seen] == [1, 2, 3, 3, 0]
    assert seen[-1][1] == fabric.program.cycles(2, mode=0)


@pytest.mark.parametrize(("mode", "length"), few(2, [(0, 2), (1, 3), (2, 1)]))
def test_emitted_verilog(tmp_path, mode, length):
    """The text, by its manifest alone, is a fabric of all modes."""
    fabric = engine_of("2x2", ("allgather", "alltoall", "reduce"), 3)
    manifest = check_in_icarus(tmp_path, fabric, mode=mode, length=length)
    facts = manifest["modes"][mode]
    blocks = -(-length // facts["chunks"])
    piece = [each for each in facts["cycles"] if each["from"] <= blocks][-1]
    cycles = fabric.program.cycles(length, mode=mode)
    assert piece["constant"] + piece["per_flit"] * blocks == cycles


@pytest.mark.long
def test_lint(tmp_path):
    """Verilator has nothing to say about the text of all eight."""
    verilog.write(engine_of("2x3", EVERY, 3, root="any"), tmp_path / "out", command="")
    assert not lint_verilator(tmp_path / "out")


def first_row_off_by_one(monkeypatch, fabric):
    """The second mode begins with its second row."""
    constant, start = RunLength.constant, fabric.program.forms[0].loop.rows
    monkeypatch.setattr(
        RunLength,
        "constant",
        lambda run, values: constant(run, [value + (value == start) for value in values]),
    )
    return fabric


def shallow(monkeypatch, fabric):
    """No memory is deeper than those of the first mode."""
    program = fabric.program
    depth = np.minimum(program.depth, program.part(0).depth.max())
    return tf.Fabric(replace(program, depth=depth), width=WIDTH)


def wrong_memory(monkeypatch, fabric):
    """What a mode receives is looked for in the memories of another."""
    program = fabric.program
    last = program.forms[-1]
    numbers = np.roll(np.arange(len(program.memories)), 1)
    wrong = replace(last, receive_map=last.receive_map.renumbered(numbers))
    return tf.Fabric(replace(program, forms=(*program.forms[:-1], wrong)), width=WIDTH)


FAULTS = [first_row_off_by_one, shallow, wrong_memory]


@pytest.mark.parametrize("fault", few(2, [*FAULTS], tuples=True))
def test_faults_are_found(monkeypatch, fault):
    """Simulation finds what merging could get wrong."""
    jobs = [Job(mode=mode, length=4) for mode in (0, 1, 0, 1)]
    fabric = engine_of("2x3", ("broadcast", "alltoall"))
    assert tf.simulate(fabric, jobs=jobs).passed
    with monkeypatch.context() as planted:
        assert not tf.simulate(fault(planted, fabric), jobs=jobs).passed


def test_a_root_that_is_ignored_is_found(monkeypatch):
    """All nodes take offset 0 for their own in the modes with any root."""
    jobs = [Job(mode=0, length=2), Job(mode=1, length=2, root=2)]
    assert tf.simulate(engine_of("3", ("allgather", "broadcast"), root="any"), jobs=jobs).passed
    by_offset = fabric_builder.contents_by_offset

    def of_one(program, tables, *others):
        alike = (tables.contents[-1],) * len(tables.contents)
        return by_offset(program, SimpleNamespace(contents=alike, forms=tables.forms), *others)

    monkeypatch.setattr(fabric_builder, "contents_by_offset", of_one)
    assert not tf.simulate(engine_of("3", ("allgather", "broadcast"), root="any"), jobs=jobs).passed


def test_topologies_must_agree():
    """One line says which."""
    plans = [tf.plan("3", "allgather"), tf.plan("2x2", "allgather")]
    with pytest.raises(tf.InputError, match="Topology must be the same for all collectives"):
        tf.compile(plans, max_flits=2)


def test_roots_along_different_axes_are_refused():
    """A root is a position in a group, so that the groups have to be the same."""
    plans = [tf.plan("2x2", name) for name in ("broadcast@0", "broadcast@1")]
    with pytest.raises(tf.InputError, match="different axes"):
        tf.compile(plans, max_flits=2, root="any")


def test_modes_that_do_not_exist():
    """Neither does a program count their cycles, nor a simulation run them."""
    fabric = engine_of("3", ("allgather", "alltoall"), 2)
    with pytest.raises(tf.InputError, match="Mode must be from 0 to 1, not 2"):
        fabric.program.cycles(1, mode=2)
    with pytest.raises(tf.InputError, match="Mode must be from 0 to 1, not 2"):
        tf.simulate(fabric, jobs=[Job(mode=2)])
