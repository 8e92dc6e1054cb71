"""Plans for any root: from node 0, or for all roots alike."""

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.planning import plan_selection, resolve, select
from torusfabric.program.serving import CYCLES_ALIKE
from torusfabric.schedule import Lifted


def plan_any_root(topology, collective, algorithm=None, flits=None):
    """The schedule of what is chosen for any root, and what chooses it."""
    selection = select(topology, collective, algorithm=algorithm)
    chosen = resolve(selection, flits=flits, root="any")
    assert chosen.collective == selection.collective
    return plan_selection(chosen), chosen


def form(schedule):
    """The form of a schedule, or of its part."""
    return schedule.part.form if isinstance(schedule, Lifted) else schedule.form


@pytest.mark.parametrize("flits", [1, 16])
@pytest.mark.parametrize(
    "collective", few(2, ["scatter", "gather", "reduce", "reduce@1"], tuples=True)
)
@pytest.mark.parametrize("topology", ["2x3", "4x4"])
def test_the_quicker_is_chosen(topology, collective, flits):
    """By no algorithm that serves any root alone are cycles fewer by more than 3 %."""

    def cycles(schedule):
        return tf.compile(schedule, flits=flits, root="any").cycles()

    schedule, chosen = plan_any_root(topology, collective, flits=flits)
    assert schedule.algorithm == chosen.algorithm.name
    tf.check(schedule)
    found = []
    for algorithm in ("matching", "max-flow", "spanning-tree", "diagonal", "farthest-first"):
        try:
            found.append(cycles(plan_any_root(topology, collective, algorithm, flits)[0]))
        except tf.InputError:
            continue
    assert len(found) > 1
    assert cycles(schedule) <= (1 + CYCLES_ALIKE) * min(found)


def test_both_are_chosen():
    """A long reduction is that of an all-reduce; a short one comes from fixed ports."""
    assert form(plan_any_root("4x4", "reduce@0", flits=16)[0]) == "masked"
    assert form(plan_any_root("4x4", "reduce", flits=1)[0]) == "rounds"
    assert form(plan_any_root("4x4", "broadcast")[0]) == "pattern"


def test_a_named_algorithm_is_kept():
    """A name restricts what is chosen from, and names again what it gave."""
    assert plan_any_root("4x4", "reduce", "max-flow", flits=16)[0].algorithm == "max-flow"
    assert form(plan_any_root("4x4", "reduce", "matching", flits=1)[0]) == "masked"
    with pytest.raises(tf.InputError, match=r"^Algorithm bufferless"):
        plan_any_root("4x4", "scatter", "bufferless")
