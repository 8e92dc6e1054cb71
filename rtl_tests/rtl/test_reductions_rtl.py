"""Times at which programs of reductions combine words, and their cycles."""

import itertools

import numpy as np
import pytest
from helpers import (
    fabric_of,
    few,
    plan,
    program_of,
    with_operator,
)

import torusfabric as tf
from torusfabric.collective import Operator
from torusfabric.program import Action
from torusfabric.program.table_timing import TableTransfers, plan_by_cycle, plan_by_step
from torusfabric.program.timing import SETTING
from torusfabric.simulation.engines import AmaranthEngine
from torusfabric.simulation.simulate import simulate

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


@pytest.mark.parametrize("topology", few(2, ["4x4", "5x5", "3x3x3", "2x2x2x2"], tuples=True))
@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce"])
@pytest.mark.parametrize("flits", [1, 3, 8])
def test_timing(topology, collective, flits):
    """No link carries two words at once, and sums leave once complete, added one at a time."""
    table = plan(topology, collective, "matching")
    transfers = TableTransfers(table)
    timings = [(plan_by_step(transfers, table.round_count, flits), flits)]
    if flits == 1:
        timings.append((plan_by_cycle(transfers), 1))
    for timing, length in timings:
        busy = sorted(
            (port, timing.link_cycle(step, port)) for step, port, *_ in transfers.departures
        )
        for (port, first), (other, second) in itertools.pairwise(busy):
            assert port != other or second - first >= length
        for leaving in transfers.departures:
            for arrival in transfers.required_arrivals(leaving):
                assert timing.link_cycle(*leaving[:2]) - timing.link_cycle(*arrival) >= 2
        for arrivals in transfers.joins.values():
            assert len({timing.link_cycle(*arrival) for arrival in arrivals}) == len(arrivals)


def test_cycles_in_figures():
    """A reduce-scatter on 8x8 takes 16 steps and 9 cycles."""
    for flits in (8, 64):
        program = program_of("8x8", "reduce-scatter", "matching", flits=flits)
        latest = max(field.delay for field in program.loop.fields_of_action(Action.SELECT))
        assert (set(program.loop.row_cycles(flits).tolist()), latest) == ({flits}, SETTING + 3)
        assert program.cycles() == 16 * flits + 5 + 1 + 3


@pytest.mark.parametrize("flits", [1, 4])
@pytest.mark.parametrize(("topology", "algorithm", "options"), ROOTED)
def test_cycles_of_rounds(topology, algorithm, options, flits):
    """A reduce in rounds takes at most the cycles of its longest sums and paths.

    A round takes 1 + hops + flits cycles, the sum at the root 1 + flits, and any program in rounds
    3. Rounds of single hops may take fewer.
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


@pytest.mark.parametrize("collective", ["reduce-scatter", "reduce"])
def test_a_wrong_operator_is_found(collective):
    """Hardware that takes minima fails a simulation that expects sums."""
    algorithm = "max-flow" if collective == "reduce" else "matching"
    fabric = fabric_of("3x3", collective, algorithm, operator=Operator.parse("min"))
    engine = AmaranthEngine(fabric)
    fabric.program = with_operator(fabric.program, Operator.parse("add"))
    report = simulate(fabric, engine=engine)
    assert report.words_wrong
    assert "as sum" in str(report.first_wrong)
