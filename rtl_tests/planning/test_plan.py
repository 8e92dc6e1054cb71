"""The steps from a selection to a checked schedule."""

from dataclasses import replace

import pytest
from helpers import few

from torusfabric.algorithms import find_algorithm
from torusfabric.collective import Collective
from torusfabric.errors import InputError, ScheduleError
from torusfabric.planning import compile, make_selection, plan, plan_selection, resolve
from torusfabric.schedule import Table
from torusfabric.topology import Torus


def test_names_and_values_select_the_same():
    """Topology, collective and algorithm can be given by name or as a value."""
    by_names = make_selection("4x4", "gossip", algorithm="matching", duplex="full", ports=4)
    topology, collective = Torus(4, 4), Collective("allgather")
    assert by_names == make_selection(
        topology, collective, algorithm=find_algorithm("matching"), ports=4
    )


def test_the_default_algorithm_is_the_first_that_serves():
    """The default algorithm is the first in the catalogue that serves."""
    chosen = resolve(make_selection("4x4", "allgather"))
    assert chosen.algorithm is find_algorithm("hamiltonian")
    assert plan_selection(chosen).digest == plan("4x4", "allgather").digest


def test_options_reach_the_algorithm():
    """Options reach the algorithm that they belong to."""
    assert plan("arrowhead:2", "broadcast", algorithm="spanning-tree", packets=3).chunks == 6
    assert plan("4x4", "broadcast", root=5).collective.root == 5
    assert plan("5x5", "broadcast", ports=2, algorithm="diagonal").ports == 2


@pytest.mark.parametrize("flits", few(1, [1, 64]))
def test_the_quickest_latency(flits):
    """`latency="auto"` chooses the latency with the fewest cycles in hardware."""
    cycles = {
        latency: compile(plan("5x5", "reduce-scatter", latency=latency), flits=flits).cycles()
        for latency in (1, 2, 3, 4)
    }
    chosen = resolve(make_selection("5x5", "reduce-scatter", latency="auto"), flits=flits)
    assert cycles[chosen.options.latency] == min(cycles.values())
    schedule = plan_selection(make_selection("5x5", "reduce-scatter", latency="auto"), flits=flits)
    assert compile(schedule, flits=flits).cycles() == min(cycles.values())


def test_the_latency_of_what_knows_none():
    """`latency="auto"` stays 1 for schedules whose sums do not move by a table."""
    assert resolve(make_selection("4x4", "broadcast", latency="auto")).options.latency == 1


def test_what_is_planned_has_its_smallest_form():
    """A plan has its smallest form: a table that is oblivious becomes a pattern."""
    assert plan("5", "allgather", algorithm="matching").form == "pattern"


def test_schedules_are_checked():
    """A wrong schedule is refused, unless `check=False`."""
    right = find_algorithm("matching")

    def wrong(*arguments):
        table = right.plan(*arguments)
        assert isinstance(table, Table)
        return replace(table, offset=table.offset[:-1], chunk=table.chunk[:-1])

    broken = replace(right, plan=wrong)
    with pytest.raises(ScheduleError, match="ends without block"):
        plan("4x4", "allgather", algorithm=broken)
    assert plan("4x4", "allgather", algorithm=broken, check=False).steps == 3


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (("4x", "allgather"), {}, "Topology must be"),
        (("4x4", "chatter"), {}, "Collective must be one of"),
        (
            ("4x4", "allgather"),
            {"algorithm": "match"},
            "Algorithm must be one of .* .did you mean",
        ),
        (("4x4", "allgather"), {"ports": 5}, "Ports must be from 1 to 4 on 4x4, not 5"),
        (("4x4", "allgather"), {"root": 3}, "allgather has no root; leave the root 3 out"),
        (("4x4", "allgather"), {"axes": [2]}, "Axes must be some of the axes 0, 1 of 4x4"),
        (("4x4", Collective("gather", 2, (3,))), {}, "Axes must be some of the axes 0, 1 of 4x4"),
        (("4x4", Collective("gather", 4, (1,))), {}, "Root must be a position in a group from 0"),
        (("4x4", "allgather@1"), {"ports": 3}, "Ports must be from 1 to 2 on 4x4 allgather@1"),
        (("4x4", Collective("broadcast", 3)), {"root": 3}, "The collective has its own root and"),
        (("5x5", "allgather"), {"algorithm": "lee-code"}, "Algorithm lee-code needs"),
        (("4x4", "allgather"), {"duplex": "none"}, "Duplex must be full or half"),
    ],
)
def test_what_cannot_be_planned(words, options, message):
    """A selection that cannot be planned is refused in one line."""
    with pytest.raises(InputError, match=f"^{message}"):
        plan(*words, **options)
