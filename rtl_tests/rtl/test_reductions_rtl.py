"""Fabrics of reductions: every result compared with numpy, to the word and to the cycle."""

import itertools

import numpy as np
import pytest
from helpers import (
    as_executed,
    check_run,
    expected_words,
    fabric_of,
    few,
    forgetful,
    plan,
    program_of,
    with_operator,
)
from verilog_bench import check_in_icarus

import torusfabric as tf
from torusfabric import verilog
from torusfabric.collective import OPERATORS, SIGNED, Operator
from torusfabric.program import Action
from torusfabric.program.table_timing import TableTransfers, by_cycle, by_step
from torusfabric.program.timing import SETTING
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine
from torusfabric.simulation.simulate import simulate

TABLES = [
    *((name, kind) for name in ("3x3", "4x4", "5x5", "4x6", "3x3x3") for kind in
      ("reduce-scatter", "allreduce")),
    ("2x2x2x2", "allreduce"),
    ("3x4x5", "reduce-scatter"),
    ("2", "allreduce"),
    ("2x3", "reduce-scatter"),
    ("arrowhead:1", "allreduce"),
]  # fmt: skip

EVERY = (*OPERATORS, *SIGNED)

#: Simulated in the long sweep only; the quick one executes their programs.
LARGE = ("4x4", "5x5", "4x6", "3x3x3", "2x2x2x2", "3x4x5")

ROOTED = [
    ("3x3", "max-flow", {"root": 4}),
    ("4x4", "diagonal", {"ports": 1}),
    ("5x5", "lee-code", {}),
    ("4x4", "necklace", {"chunks": 2}),
    ("5x5", "necklace", {"chunks": 5, "root": 12}),
    ("3x4x5", "max-flow", {"root": 59}),
    ("arrowhead:2", "max-flow", {"root": 3}),
    ("2x2x2", "diagonal", {}),
]


def check_execution(schedule, flits):
    """Execute the program of a schedule, with so many flits a block, on random data."""
    program = tf.compile(schedule, flits=flits * schedule.chunks)
    size = program.topology.nodes, program.send_words
    messages = np.random.default_rng(1).integers(0, 1 << 20, size, np.uint64)
    words, receives = expected_words(program, messages)
    assert (program.execute(messages)[receives] == words[receives]).all()


@pytest.mark.parametrize("flits", few(1, [5, 1]))
@pytest.mark.parametrize(("topology", "collective"), [*TABLES, ("8x8", "allreduce")])
def test_executed_tables(topology, collective, flits):
    """By the cycle or by the step, with any latency, each contribution is added once."""
    for latency in (1, 3):
        check_execution(plan(topology, collective, "matching", latency=latency), flits)


@pytest.mark.parametrize("flits", [1, 4])
@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce"])
@pytest.mark.parametrize("topology", few(2, ["3x3", "4x4", "5x5", "2x2x2x2", "3x3x3"], tuples=True))
def test_executed_necklace(topology, collective, flits):
    """Tables that were not made for adders are served too."""
    check_execution(plan(topology, collective, "necklace"), flits)


@pytest.mark.parametrize(("topology", "algorithm", "options"), ROOTED)
def test_executed_rounds(topology, algorithm, options):
    check_execution(plan(topology, "reduce", algorithm, **options), 3)


@pytest.mark.parametrize("topology", few(2, ["4x4", "5x5", "3x3x3", "2x2x2x2"], tuples=True))
@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce"])
@pytest.mark.parametrize("flits", [1, 3, 8])
def test_timing(topology, collective, flits):
    """No link carries two words at once, sums leave once complete, none are combined at once."""
    table = plan(topology, collective, "matching")
    transfers = TableTransfers(table)
    timings = [(by_step(transfers, table.round_count, flits), flits)]
    if flits == 1:
        timings.append((by_cycle(transfers), 1))
    for timing, length in timings:
        busy = sorted((port, timing.time(step, port)) for step, port, *_ in transfers.departures)
        for (port, first), (other, second) in itertools.pairwise(busy):
            assert port != other or second - first >= length
        for leaving in transfers.departures:
            for arrival in transfers.feeding(leaving):
                assert timing.time(*leaving[:2]) - timing.time(*arrival) >= 2
        for arrivals in transfers.joins.values():
            assert len({timing.time(*arrival) for arrival in arrivals}) == len(arrivals)


def test_cycles_in_figures():
    """Sums of 8x8 in 16 steps; a run takes little more, once the pipeline is full."""
    for flits in (8, 64):
        program = program_of("8x8", "reduce-scatter", "matching", flits=flits)
        latest = max(field.delay for field in program.loop.of(Action.SELECT))
        assert (set(program.loop.duration(flits).tolist()), latest) == ({flits}, SETTING + 3)
        assert program.cycles() == 16 * flits + 5 + 1 + 3


@pytest.mark.parametrize("flits", [1, 4])
@pytest.mark.parametrize(("topology", "algorithm", "options"), ROOTED)
def test_cycles_of_rounds(topology, algorithm, options, flits):
    """At most 1 + hops + flits a round of the longest of each, and 1 + flits to add up at the root.

    And three more, as any program in rounds. Rounds of single hops may take fewer.
    """
    schedule = plan(topology, "reduce", algorithm, **options)
    cycles = 1 + schedule.chunks * flits + 3
    for transfers in schedule.rounds():
        payload = transfers.payload
        bounds = zip(payload.indptr[:-1], payload.indptr[1:], strict=True)
        sums = [len(np.unique(payload.ids[a:b] % schedule.chunks)) for a, b in bounds]
        cycles += 1 + int(transfers.lengths.max()) + max(sums) * flits
    program = tf.compile(schedule, flits=flits * schedule.chunks)
    assert program.cycles() < cycles if program.loop.rests else program.cycles() == cycles


@pytest.mark.parametrize(
    ("topology", "collective"),
    few(
        2,
        [pytest.param(*names, marks=[pytest.mark.long] * (names[0] in LARGE)) for names in TABLES],
    ),
)
def test_tables(topology, collective):
    """On every torus of the list, with operators in turn."""
    number = TABLES.index((topology, collective))
    operator = Operator.parse(EVERY[number % len(EVERY)])
    chunks = plan(topology, collective, "matching").chunks
    for flits in (1, 2):
        check_run(fabric_of(topology, collective, "matching", width=6, flits=flits * chunks,
                            operator=operator))  # fmt: skip


@pytest.mark.parametrize(("topology", "algorithm", "options"), few(4, ROOTED))
def test_rounds(topology, algorithm, options):
    number = ROOTED.index((topology, algorithm, options))
    operator = Operator.parse(EVERY[number % len(EVERY)])
    fabric = fabric_of(topology, "reduce", algorithm, width=7, operator=operator,
                       flits=2 * options.get("chunks", 1), **options)  # fmt: skip
    check_run(fabric)


@pytest.mark.parametrize("name", few(3, EVERY))
@pytest.mark.parametrize(("collective", "algorithm"), few(1, [
    ("reduce", "max-flow"), ("reduce-scatter", "matching"), ("allreduce", "matching"),
]))  # fmt: skip
def test_operators(collective, algorithm, name):
    """Every operator, of words that are as wide as others and of one bit."""
    for width in (1, 9):
        check_run(fabric_of("2x2", collective, algorithm, width=width,
                            operator=Operator.parse(name)))  # fmt: skip


@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce"])
def test_necklace(collective):
    fabric = fabric_of("3x3", collective, "necklace", operator=Operator.parse("max:signed"))
    check_run(fabric)


def test_wide_words():
    """Wider than any integer of numpy."""
    check_run(fabric_of("2x3", "allreduce", "matching", width=100))
    check_run(
        fabric_of("2x3", "reduce", "max-flow", width=100, operator=Operator.parse("min:signed"))
    )


@pytest.mark.long
@pytest.mark.parametrize("topology", ["8x8", "4x4x4"])
def test_large_tables(topology):
    """Tori of 64 nodes, compiled; 8x8 and 4x4x4 add up everything everywhere."""
    check_run(fabric_of(topology, "allreduce", "matching", width=32, latency=3), CompiledEngine)


def test_the_same_run_again():
    """A run leaves what nodes contribute as it was."""
    fabric = fabric_of("3x3", "allreduce", "matching")
    messages, executed = as_executed(fabric)
    first, second = AmaranthEngine(fabric).run_many([messages, messages])
    assert np.array(first.words).tolist() == np.array(second.words).tolist() == executed.tolist()


@pytest.mark.parametrize("collective", ["reduce-scatter", "reduce"])
def test_a_wrong_operator_is_found(collective):
    """Hardware that takes minima is not taken for hardware that adds."""
    algorithm = "max-flow" if collective == "reduce" else "matching"
    fabric = fabric_of("3x3", collective, algorithm, operator=Operator.parse("min"))
    engine = AmaranthEngine(fabric)
    fabric.program = with_operator(fabric.program, Operator.parse("add"))
    report = simulate(fabric, engine=engine)
    assert report.words_wrong
    assert "as sum" in str(report.first_wrong)


def test_a_sum_that_leaves_too_early_is_found():
    """A plan in which an out-port takes a word before it is complete gives wrong sums."""
    fabric = fabric_of("4x4", "reduce-scatter", "matching", fault=forgetful)
    assert simulate(fabric).words_wrong


FABRICS = [
    ("3x3", "reduce-scatter", "matching", 9, 3, Operator.parse("min:signed")),
    ("3x3", "allreduce", "matching", 16, 9, Operator.parse("add")),
    ("2x3", "allreduce", "matching", 8, 42, Operator.parse("xor")),
    ("4x4", "reduce", "max-flow", 8, 2, Operator.parse("max:signed")),
    pytest.param("5x5", "reduce", "necklace", 5, 5, Operator.parse("add"), marks=pytest.mark.long),
]


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "width", "flits", "operator"), few(3, [*FABRICS])
)
def test_verilog_agrees(tmp_path, topology, collective, algorithm, width, flits, operator):
    """The linters are silent, and Icarus reads the same words after the same cycles, twice."""
    options = {"chunks": 5} if algorithm == "necklace" else {}
    fabric = fabric_of(topology, collective, algorithm, width=width, flits=flits,
                       operator=operator, **options)  # fmt: skip
    assert check_in_icarus(tmp_path, fabric)["operator"] == str(operator)
    assert f"{collective} ({operator})" in verilog.emit(fabric).header.replace(" from 0", "")
