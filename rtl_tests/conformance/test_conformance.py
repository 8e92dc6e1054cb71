"""Conformance: the same checks for every algorithm, collective, engine and top.

A new algorithm, topology or engine is checked here without further tests: its schedules are valid,
the executed program delivers the words that the collective defines, the hardware delivers the same
words in the predicted cycles, and a file gives back the same schedule.
"""

from functools import cache

import numpy as np
import pytest
from core_bench import check_core
from fabrics import mask_schedule
from helpers import NAMED_COLLECTIVES, check_run, expected_words, fabric_of, few, plan

import torusfabric as tf
from torusfabric import Fabric
from torusfabric.algorithms import CATALOGUE, Options, find_algorithm
from torusfabric.analysis.check import check
from torusfabric.collective import parse_collective
from torusfabric.schedule.file import load, save
from torusfabric.schedule.held_blocks import HeldBlocks
from torusfabric.schedule.recognise import recognise
from torusfabric.simulation.engines import ENGINES
from torusfabric.toolchain import cxx
from torusfabric.topology import parse_topology

TOPOLOGIES = ("2x3", "3x3", "2x2x2", "3x4", "5", "arrowhead:1", "arrowhead:2")

#: Topology and axes of collectives that run in groups.
GROUPS = (("2x3x3", "0+2"), ("3x4", "1"))

#: Selections of algorithms that fit none of these topologies.
OTHERS = [
    *(("5x5", kind, "lee-code") for kind in ("broadcast", "gather", "reduce")),
    ("7x7x7", "allgather", "lee-code"),
    *(("mesh:2x3", kind, "any-network") for kind in find_algorithm("any-network").collectives),
    ("3x3!0:+0", "exchange", "any-network"),
    *(("2x3!0:+1=3", kind, "any-network") for kind in find_algorithm("any-network").collectives),
    *(("3x4", f"{kind}@{{0,1,4,5}}{{8,9}}", "any-traffic") for kind in NAMED_COLLECTIVES),
    *(("3x3!1=relay,5=relay", kind, "any-traffic") for kind in NAMED_COLLECTIVES),
]


def selections():
    """Yield topology, collective and algorithm of each selection that an algorithm serves."""
    cases = [(name, kind) for name in TOPOLOGIES for kind in NAMED_COLLECTIVES]
    cases += [(name, f"{kind}@{axes}") for name, axes in GROUPS for kind in NAMED_COLLECTIVES]
    for name, kind in cases:
        topology = parse_topology(name)
        collective = parse_collective(kind, topology=topology)
        for algorithm in CATALOGUE:
            if algorithm.why_not(topology, collective, Options()) is None:
                yield name, kind, algorithm.name
    yield from OTHERS


SELECTIONS = list(selections())


def of_selections(is_slow):
    """Return a parametrization over all selections; slow selections are marked as long."""
    selections = [
        pytest.param(names, id="-".join(names), marks=[pytest.mark.long] * is_slow(names))
        for names in SELECTIONS
    ]
    return pytest.mark.parametrize("selection", selections)


#: The first topology that fits, for each collective and algorithm, with and without groups.
FIRST = set({(kind, algorithm): (name, kind, algorithm)
             for name, kind, algorithm in reversed(SELECTIONS)}.values())  # fmt: skip

#: Topologies whose simulation takes little time.
SMALL = ("2x3", "3x3!0:+0", "5", "5x5", "arrowhead:1", "mesh:2x3", "3x4")

#: The first selection on a small topology, for each algorithm with and without groups.
BUILT = set({(algorithm, "@" in kind): (name, kind, algorithm)
             for name, kind, algorithm in SELECTIONS
             if name in SMALL and (name, kind, algorithm) in FIRST}.values())  # fmt: skip

every_selection = of_selections(lambda names: names[0] == "7x7x7")
first_selections = of_selections(lambda names: names not in FIRST or names[0] == "7x7x7")

planned = cache(plan)


@cache
def compiled(names):
    """Return the program of a selection, for two flits a block, or one flit fewer in all."""
    schedule = planned(*names)
    return tf.compile(schedule, flits=max(2 * schedule.chunks - 1, 2))


def test_no_algorithm_is_left_out():
    """Every algorithm is checked with each of its collectives; `test_any_traffic` has patterns."""
    wanted = {
        (entry.name, kind)
        for entry in CATALOGUE
        for kind in entry.collectives
        if kind in NAMED_COLLECTIVES
    }
    found = {(algorithm, kind.partition("@")[0]) for _, kind, algorithm in SELECTIONS}
    assert found == wanted


@every_selection
def test_schedule_is_valid(selection):
    """Senders hold the blocks that they send, no arc is used twice, and all is delivered."""
    schedule = planned(*selection)
    assert check(schedule).rounds == schedule.round_count


@every_selection
def test_executed_program(selection):
    """The executed program delivers the words that the collective defines."""
    program = compiled(selection)
    size = program.topology.nodes, program.send_words
    messages = np.random.default_rng(1).integers(0, 1 << 40, size, np.uint64)
    words, receives = expected_words(program, messages)
    assert receives.any()
    assert (program.execute(messages)[receives] == words[receives]).all()


@first_selections
def test_executed_program_of_the_smallest_form(selection):
    """The program of the smallest form of a schedule delivers the same words."""
    schedule = recognise(planned(*selection))
    program = tf.compile(schedule, flits=max(2 * schedule.chunks - 1, 2))
    size = program.topology.nodes, program.send_words
    messages = np.random.default_rng(1).integers(0, 1 << 40, size, np.uint64)
    words, receives = expected_words(program, messages)
    assert (program.execute(messages)[receives] == words[receives]).all()


@first_selections
def test_executed_program_of_any_length(selection):
    """A program of any length delivers the words of each length."""
    program = tf.compile(planned(*selection), max_flits=5)
    for length in (1, 4):
        size = program.topology.nodes, program.layout.send_words(length)
        messages = np.random.default_rng(length).integers(0, 1 << 40, size, np.uint64)
        words, receives = expected_words(program, messages)
        found = program.execute(messages, length=length)
        assert (found[receives] == words[receives]).all()


def engine_marks(name, form):
    """Return the marks of an engine: its requirement, and whether its build is slow."""
    if name == "amaranth":
        return []
    marks = [pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")]
    if form not in ("table", "rounds"):
        marks.append(pytest.mark.long)
    return marks


@pytest.mark.parametrize(
    "engine", ["amaranth", pytest.param("compiled", marks=engine_marks("compiled", "every"))]
)
@of_selections(lambda names: names not in BUILT)
def test_hardware(selection, engine):
    """The hardware delivers the words of the executed program in the predicted cycles."""
    check_run(Fabric(compiled(selection), width=9), ENGINES[engine])


def transfers(schedule):
    """Yield the sorted transfers of each round: source, path and blocks."""
    held = HeldBlocks(schedule.topology, schedule.blocks)
    for moved in schedule.rounds():
        listed = held.execute(moved)
        ids, bounds = listed.payload.ids.tolist(), listed.payload.indptr.tolist()
        yield sorted(
            (source, hops, sorted(ids[first:end]))
            for source, hops, first, end in zip(
                listed.source.tolist(), listed.hops.tolist(), bounds, bounds[1:], strict=False
            )
        )


@first_selections
def test_file(selection, tmp_path):
    """A file gives back the same transfers."""
    schedule = planned(*selection)
    save(schedule, tmp_path / "plan.json")
    assert list(transfers(load(tmp_path / "plan.json"))) == list(transfers(schedule))


#: A fabric for each form of schedule, and for each way to combine words.
FORMS = {
    "pattern": ("2x3", "allgather", "one-packet", {"flits": 2}),
    "pattern-of-chunks": ("2x2", "allgather", "hamiltonian", {"flits": 3}),
    "table": ("2x3", "alltoall", "matching", {"flits": 2}),
    "table-of-sums": ("2x3", "reduce-scatter", "matching", {"flits": 2, "operator": "min"}),
    "rounds": ("2x3", "scatter", "matching", {"flits": 2, "root": 1}),
    "rounds-of-sums": ("2x3", "reduce", "max-flow", {"flits": 2, "operator": "xor"}),
    "any-root": ("2x3", "broadcast", "max-flow", {"flits": 3, "root": "any"}),
    "pattern-in-groups": ("3x2", "allgather@0", "hamiltonian", {"flits": 2}),
    "table-in-groups": ("2x2x2", "alltoall@0+2", "matching", {"flits": 2}),
    "sums-in-groups": ("3x2", "allreduce@0", "matching", {"flits": 3}),
    "rounds-in-groups": ("2x2x2", "gather@0+2", "max-flow", {"flits": 2, "root": 2}),
    "any-root-in-groups": ("2x3", "broadcast@1", "max-flow", {"flits": 2, "root": "any"}),
}

every_form = pytest.mark.parametrize("form", FORMS)


def fabric_of_form(form, **settings):
    """Return the fabric of a form."""
    *names, options = FORMS[form]
    return fabric_of(*names, **options, **settings)


def some_root(form, fabric):
    """Return a root for a run if the fabric has a choice of roots."""
    return fabric.program.groups.group_size - 2 if form.startswith("any-root") else None


@pytest.mark.parametrize(
    ("name", "form"),
    few(
        4,
        [
            pytest.param(name, form, id=f"{name}-{form}", marks=engine_marks(name, form))
            for name in ENGINES
            for form in FORMS
        ],
    ),
)
def test_engine(name, form):
    """Every engine runs every form of schedule with correct words and cycles."""
    fabric = fabric_of_form(form, width=9)
    check_run(fabric, ENGINES[name], root=some_root(form, fabric))


@every_form
def test_core(form):
    """A core delivers the words at the addresses in its documentation."""
    fabric = fabric_of_form(form, width=9, top="core")
    check_core(fabric, root=some_root(form, fabric))


def of_plan(topology, collective, *, algorithm="matching", lengths, root=None, **settings):
    """Return a fabric of one collective."""
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    return tf.Fabric(tf.compile(schedule, root=root, **lengths), **{"width": 9, **settings})


def masked(topology, collective, algorithm="matching", **settings):
    """Return a fabric of a reduction for any root, with one schedule for all roots."""
    schedule = mask_schedule(topology, collective, algorithm)
    program = tf.compile(schedule, root="any", max_flits=4, operators=["add", "max"])
    return tf.Fabric(program, **{"width": 9, **settings})


#: Fabrics with choices, or with beats of several flits.
CHOICES = {
    "masked-sums": lambda: masked("2x3", "reduce"),
    "masked-sums-along-trees": lambda: masked("3x3", "reduce", "spanning-tree"),
    "beats": lambda: of_plan("3", "alltoall", lengths={"max_flits": 6}, width=8, beat=2),
    "beats-of-sums": lambda: of_plan("2x3", "allreduce", lengths={"max_flits": 8}, width=8, beat=4),
    "beats-of-any-root": lambda: of_plan(
        "2x2",
        "broadcast",
        algorithm="max-flow",
        lengths={"max_flits": 8},
        root="any",
        width=8,
        beat=2,
    ),
}


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        pytest.param(name, choice, id=f"{name}-{choice}", marks=engine_marks(name, choice))
        for name in ENGINES
        for choice in CHOICES
    ],
)
def test_engine_with_choices(name, choice):
    """Every engine runs the default jobs of a fabric with correct words and cycles."""
    report = tf.simulate(CHOICES[choice](), engine=name)
    assert report.passed
    assert report.words_checked


#: Fabrics with streams: with one clock, with a clock for each node, with beats, and with commands.
STREAMS = {
    "one-clock": lambda: of_plan("3", "alltoall", lengths={"flits": 2}, top="stream"),
    "per-node-clocks": lambda: of_plan(
        "3", "alltoall", lengths={"flits": 2}, top="stream", clocks="per-node"
    ),
    "per-node-clocks-and-commands": lambda: of_plan(
        "3", "allreduce", lengths={"max_flits": 3}, top="stream", clocks="per-node"
    ),
    "beats": lambda: of_plan(
        "3", "alltoall", lengths={"max_flits": 6}, width=16, beat=2, top="stream"
    ),
    "masked-sums": lambda: masked("2x2", "reduce", top="stream"),
}


def stream_cases():
    """Yield engines and fabrics with streams; only the engine of Amaranth has several clocks."""
    for name in ENGINES:
        for form in STREAMS:
            if name == "amaranth" or "clocks" not in form:
                yield pytest.param(name, form, id=f"{name}-{form}", marks=engine_marks(name, form))


@pytest.mark.parametrize(("name", "form"), [*stream_cases()])
def test_streams(name, form):
    """Every engine delivers all packets, with random stalls of the ports."""
    report = tf.simulate(STREAMS[form](), engine=name, stall=0.3)
    assert report.passed
    assert report.words_checked


#: Direct cores, without memories: words arrive and leave in the cycles of the schedule.
DIRECT = {
    "two-axes": ("3x3", "allgather", "hamiltonian", {"flits": 3}),
    "three-axes": ("3x3x3", "allgather", "hamiltonian", {"flits": 3}),
    "packets": ("3x4", "allgather", "one-packet", {"flits": 2}),
    "in-groups": ("3x4", "allgather@1", "hamiltonian", {"flits": 2}),
}


@pytest.mark.parametrize("form", DIRECT)
def test_direct_core(form):
    """A core without memories delivers all words in the cycles of its manifest."""
    *names, options = DIRECT[form]
    fabric = fabric_of(*names, **options, width=9, top="core")
    assert fabric.streaming
    check_core(fabric)
