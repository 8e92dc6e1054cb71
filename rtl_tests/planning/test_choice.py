"""What is taken where no algorithm is named: the fewest cycles at the length."""

from dataclasses import replace

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.analysis.volume import limit
from torusfabric.planning import choice, resolve, select
from torusfabric.planning.planned import planned as planned_one
from torusfabric.program.counts import estimated_luts

KINDS = ("broadcast", "reduce", "scatter", "gather", "allgather", "reduce-scatter", "allreduce")


@pytest.mark.parametrize("flits", [1, 7, 64])
@pytest.mark.parametrize("collective", KINDS)
@pytest.mark.parametrize("topology", few(2, ["3x3", "2x4", "4x4"]))
def test_nothing_takes_fewer_cycles(topology, collective, flits):
    """Of all that serve; what is taken may have 3 % more where it is smaller."""
    schedule = tf.plan(topology, collective, flits=flits)
    cycles = tf.compile(schedule, flits=flits).cycles()
    rows = tf.compare(topology, collective, flits=flits)
    assert rows[0].cycles <= cycles <= 1.03 * rows[0].cycles
    assert [row.cycles for row in rows] == sorted(row.cycles for row in rows)
    for row in rows:
        assert row.cycles >= row.limit
        assert row.limit == limit(schedule.topology, schedule.collective, flits)
        assert tf.compile(row.schedule, flits=flits).cycles() == row.cycles


@pytest.mark.parametrize("topology", ["2", "4x4", "8x8", "5x7", "6x4", "4x4x4", "7x7x7"])
@pytest.mark.parametrize(("collective", "factor"), [("broadcast", 1.5), ("reduce", 4)])
def test_long_and_short_messages_are_near_the_limit(topology, collective, factor):
    """1.05 times the volume, so many diameters, and 12 cycles."""
    for flits in (1, 4, 16, 64, 256):
        schedule = tf.plan(topology, collective, flits=flits, check=False)
        torus = schedule.topology
        most = 1.05 * flits / torus.ports + factor * torus.diameter + 12
        assert tf.compile(schedule, flits=flits).cycles() <= most


def chosen_and_faster(collective):
    """The programs of what is chosen, and of what saves four cycles of 261."""
    chosen = tf.plan("8x8", collective, flits=16)
    faster = tf.plan("8x8", collective, algorithm="farthest-first", chunks=4)
    return [tf.compile(schedule, flits=16) for schedule in (chosen, faster)]


@pytest.mark.parametrize("collective", ["scatter", "gather"])
def test_of_nearly_as_fast_ones_the_smaller_is_taken(collective):
    """It is estimated as a mean of all nodes: memories of a root are not those of others."""
    chosen, faster = chosen_and_faster(collective)
    assert (chosen.cycles(), faster.cycles()) == (261, 257)
    assert estimated_luts(chosen) * 1.5 < estimated_luts(faster)


@pytest.mark.long
@pytest.mark.parametrize("collective", ["scatter", "gather"])
def test_what_is_estimated_to_be_smaller_is(collective):
    designs = [tf.emit(tf.Fabric(program, width=4)) for program in chosen_and_faster(collective)]
    chosen, faster = (tf.synthesize(each, "ecp5-85k").fabric["luts"] for each in designs)
    assert chosen * 2 < faster


def test_what_an_operator_does_not_allow_is_not_taken():
    """Nodes that exchange sums combine words in different orders."""
    unlike = replace(tf.Operator.parse("add"), name="unlike", associative=False)
    free, bound = (
        tf.plan("3x3", "allreduce", flits=1, operators=given) for given in ("add,max", unlike)
    )
    assert free.algorithm == "ring-exchange" != bound.algorithm
    with pytest.raises(tf.InputError, match="must be associative"):
        tf.compile(free, flits=1, operators=[unlike])
    forms = tf.plan_forms("3x3", "allreduce", max_flits=64, operators=[unlike])
    assert tf.compile([forms], max_flits=64, operators=[unlike]).operators == (unlike,)


def test_without_a_length():
    """The best for long messages."""
    assert tf.plan("7x7x7", "allgather").algorithm == "hamiltonian"
    assert tf.plan("7x7x7", "allgather", flits=64).algorithm == "matching"
    assert tf.plan("4x4", "allgather").algorithm == "hamiltonian"
    chosen = resolve(select("8x8", "broadcast"), flits=64)
    assert chosen.why.startswith("29 cycles for 64 flits")
    assert tf.plan("8x8", "allreduce").algorithm == "spanning-tree"
    assert tf.plan("4~4x8", "alltoall").steps == 22


def test_no_more_chunks_are_planned_than_are_of_use(monkeypatch):
    """What is best for long messages takes long to plan, and is chosen for none of few flits."""
    planned = []
    monkeypatch.setattr(choice, "planned", lambda one: planned.append(one) or planned_one(one))
    tf.plan("mesh:3x3", "allreduce", flits=4)
    assert [one.options.chunks for one in planned] == [None, 3]
    assert planned[0].options.trees == 1


@pytest.mark.parametrize("flits", [0, -1, "x", 2**40])
def test_lengths_that_are_none(flits):
    """Refused in a line."""
    with pytest.raises(tf.InputError, match="Flits must be"):
        tf.plan("3x3", "allgather", flits=flits)


def test_reasons_name_the_chunks_of_short_messages():
    """No two candidates of a plan have the same name."""
    why = choice.choose_by_cycles(select("3x3", "reduce-scatter"), 2).why
    names = [one.rsplit(" ", 1)[0] for one in why.split("; ", 1)[1].split(", ")]
    assert len(names) == len({*names}) > 1
