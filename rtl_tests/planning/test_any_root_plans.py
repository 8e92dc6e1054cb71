"""Plans for any root: from node 0, or for all roots alike."""

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.planning import plan_any_root, plan_selection, resolve, select
from torusfabric.program.counts import estimated_luts
from torusfabric.schedule import Lifted


def form(schedule):
    """The form of a schedule, or of its part."""
    return schedule.part.form if isinstance(schedule, Lifted) else schedule.form


@pytest.mark.parametrize("flits", [1, 16])
@pytest.mark.parametrize(
    "collective", few(2, ["scatter", "gather", "reduce", "reduce@1"], tuples=True)
)
@pytest.mark.parametrize("topology", ["2x3", "4x4"])
def test_the_quicker_is_chosen(topology, collective, flits):
    """Neither plan of one kind alone takes fewer cycles, or as many with fewer LUTs."""

    def price(schedule):
        program = tf.compile(schedule, flits=flits, root="any")
        return program.cycles(), estimated_luts(program)

    selection, schedule = plan_any_root(select(topology, collective), flits=flits)
    assert schedule.algorithm == selection.algorithm.name
    assert schedule.collective == selection.collective
    tf.check(schedule)
    chosen = resolve(select(topology, collective), flits=flits, root="any")
    rooted = plan_selection(chosen)
    assert price(schedule) <= price(rooted)
    if form(schedule) != "masked":
        assert schedule.digest == rooted.digest


def test_both_are_chosen():
    """A long reduction is that of an all-reduce; the gather of a torus from fixed ports is not."""
    assert form(plan_any_root(select("4x4", "reduce@0"), flits=16)[1]) == "masked"
    assert form(plan_any_root(select("4x4", "reduce"), flits=1)[1]) == "rounds"
    assert form(plan_any_root(select("4x4", "broadcast"))[1]) == "pattern"


def test_a_named_algorithm_is_kept():
    """A name restricts what is chosen from, and names again what it gave."""
    by_flow = select("4x4", "reduce", algorithm="max-flow")
    assert plan_any_root(by_flow, flits=16)[1].algorithm == "max-flow"
    by_table = select("4x4", "reduce", algorithm="matching")
    assert form(plan_any_root(by_table, flits=1)[1]) == "masked"
    with pytest.raises(tf.InputError, match=r"^Algorithm bufferless"):
        plan_any_root(select("4x4", "scatter", algorithm="bufferless"))
