"""Every store-and-forward collective on the tori of the papers, from the plan to every word.

The steps are those of the closed formulas, and the cycles those that are foretold.
"""

import pytest
from helpers import fabric_of, few, plan

from torusfabric.algorithms import CATALOGUE, Options
from torusfabric.analysis.bounds import bound
from torusfabric.analysis.distance_bounds import delivery_steps
from torusfabric.collective import parse_collective
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine
from torusfabric.simulation.simulate import simulate
from torusfabric.topology import parse_topology

TORI = ["3x3", "4x4", "5x5", "4x6", "8x8", "3x3x3", "4x4x4", "3x4x5", "2x2x2x2"]
ALLGATHER = ("matching", "bufferless", "necklace")

CASES = [
    *(("allgather", algorithm, topology) for topology in TORI for algorithm in ALLGATHER),
    *((kind, "matching", topology) for topology in TORI for kind in
      ("scatter", "gather", "alltoall", "reduce-scatter", "allreduce")),
]  # fmt: skip


def serves(kind, algorithm, topology):
    """Whether an algorithm can plan a collective there."""
    topology = parse_topology(topology)
    (found,) = (entry for entry in CATALOGUE if entry.name == algorithm)
    collective = parse_collective(kind, topology=topology)
    return found.why_not(topology, collective, Options()) is None


def check(kind, algorithm, topology, engine, **settings):
    """Simulate a collective, with the fewest steps there are."""
    if not serves(kind, algorithm, topology):
        pytest.skip(f"{algorithm} does not serve {topology}")
    schedule = plan(topology, kind, algorithm)
    # An all-reduce is a reduce-scatter and an all-gather, each at its own bound.
    halves = 2 * delivery_steps(schedule.topology)
    assert schedule.round_count == (halves if kind == "allreduce" else bound(schedule))
    flits = settings.pop("times", 1) * schedule.chunks
    fabric = fabric_of(topology, kind, algorithm, flits=flits, **settings)
    report = simulate(fabric, repeat=2, engine=engine(fabric))
    assert report.passed, report.first_wrong


@pytest.mark.parametrize(
    ("kind", "topology"),
    few(
        3,
        [
            *(("scatter", topology) for topology in ("3x3", "2x4", "2x2x2")),
            *(("gather", topology) for topology in ("3x3", "3x4", "2x2x2")),
        ],
    ),
)
def test_scatter_and_gather(kind, topology):
    """Personal messages from and to a root reach everybody, with the bound's number of steps."""
    check(kind, "matching", topology, AmaranthEngine, width=9)


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(("kind", "algorithm", "topology"), CASES)
def test_all(kind, algorithm, topology, times):
    """All of them, compiled, with messages of one flit a chunk and of three."""
    check(kind, algorithm, topology, CompiledEngine, width=32, times=times)


def test_exchange_of_8x8():
    """64 steps for everybody's messages to everybody, one cycle each once begun."""
    fabric = fabric_of("8x8", "alltoall", "matching", width=32)
    assert fabric.program.schedule.round_count == 64
    assert fabric.predicted_cycles == 64 + 5
