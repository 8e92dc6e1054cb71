"""Fabrics that begin again by themselves: every word, every cycle, and faults that are found."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.program.periods import plan_periods
from torusfabric.rtl import periodic_sequencer
from torusfabric.rtl.host import Host
from torusfabric.rtl.periodic_endpoint import PeriodicEndpointBuilder
from torusfabric.rtl.periodic_sequencer import PeriodicSequencer
from torusfabric.simulation.period_model import received_words


def periodic(topology, collective, flits=1, *, width=8, **options):
    """A periodic fabric."""
    program = tf.compile(tf.plan(topology, collective, **options), flits=flits)
    return tf.Fabric(program, width=width, periodic=True)


#: A table, waves, sums by flits and by rows, groups, rounds that forward from memory and that sum.
NAMED = {
    "table": ("2x2", "alltoall", 2, {}),
    "waves": ("2x3", "allgather", 1, {"algorithm": "one-packet"}),
    "sums": ("2x2", "allreduce", 2, {}),
    "sums by rows": ("2x2", "reduce-scatter", 3, {}),
    "groups": ("2x3", "alltoall@1", 1, {}),
    "broadcast": ("2x3", "broadcast", 2, {}),
    "gather": ("2x2", "gather", 2, {}),
    "rounds of sums": ("2x2", "reduce", 2, {}),
}


@pytest.mark.parametrize("name", NAMED)
def test_words_and_cycles(name):
    topology, collective, flits, options = NAMED[name]
    report = tf.simulate_periods(periodic(topology, collective, flits, **options), episodes=3)
    assert report.passed, report
    assert report.words_checked > 0
    assert report.messages > 1


@pytest.mark.parametrize(
    ("topology", "collective", "flits", "slots"),
    [("3x3", "alltoall", 1, 3), ("4x4", "allgather", 2, 8), ("3x3", "allreduce", 1, 11)],
)
def test_no_cycle_is_lost_between_periods_of_steps(topology, collective, flits, slots):
    fabric = periodic(topology, collective, flits)
    assert fabric.program.loop.slots(fabric.program.block_flits) == fabric.periods.cycles == slots


def test_rounds_begin_anew():
    program = tf.compile(tf.plan("3x3", "broadcast"))
    periods = plan_periods(program.timing, rests=True)
    assert periods.cycles == program.cycles() - program.timing.wait + 1


def test_throughput_counts_what_others_send():
    report = tf.simulate_periods(periodic("2x2", "alltoall", width=32), episodes=1)
    assert report.bytes_a_cycle == 4 * 3 * 4 / report.cycles
    assert received_words(tf.compile(tf.plan("2x3", "broadcast"))).sum() == 5


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(
    topology=st.sampled_from(["2x2", "3", "2x3", "5", "2x2x2", "arrowhead:1"]),
    collective=st.sampled_from(
        ["allgather", "alltoall", "broadcast", "scatter", "gather", "reduce", "allreduce"]
    ),
    flits=st.integers(1, 5),
    width=st.integers(1, 70),
    seed=st.integers(0, 99),
)
def test_any(topology, collective, flits, width, seed):
    fabric = periodic(topology, collective, flits, width=width)
    report = tf.simulate_periods(fabric, seed=seed, episodes=4)
    assert report.passed, report


# Faults, planted once the fabric is planned: its modules are built when it is simulated.


def given_commits(monkeypatch, change):
    """Endpoints are given other commits."""
    value = PeriodicEndpointBuilder._value  # noqa: SLF001

    def changed(builder, name):
        found = value(builder, name)
        return change(found) if name == "write_commit" else found

    monkeypatch.setattr(PeriodicEndpointBuilder, "_value", changed)


def commits_by_group(monkeypatch, change):
    """The host port commits messages of other groups of nodes."""
    pulses = Host._pulses  # noqa: SLF001

    def changed(host, m, pulse, group, name):
        found = pulses(host, m, pulse, group, name)
        return change(found) if name == "commit" else found

    monkeypatch.setattr(Host, "_pulses", changed)


def sequenced(monkeypatch, *, later=0, **changes):
    """The sequencer goes by other periods, and counts them some cycles later."""
    init = PeriodicSequencer.__init__

    def changed(sequencer, *arguments, periods, answer, **others):
        for name, change in changes.items():
            periods = replace(periods, **{name: getattr(periods, name) + change})
        init(sequencer, *arguments, periods=periods, answer=answer + later, **others)

    monkeypatch.setattr(PeriodicSequencer, "__init__", changed)


FAULTS = {
    "commits ignored": lambda patch: given_commits(patch, lambda commit: commit & 0),
    "writes taken for commits": lambda patch: given_commits(patch, lambda commit: ~commit),
    "commits for another group": lambda patch: commits_by_group(patch, lambda bits: bits[::-1]),
    "commits for all groups": lambda patch: commits_by_group(
        patch, lambda bits: bits.any().replicate(len(bits))
    ),
    "stored in the other half a cycle early": lambda patch: sequenced(
        patch, last_store=-1, later=1
    ),
    "stored in the other half a cycle late": lambda patch: sequenced(patch, last_store=1, later=-1),
    "sent from the other half a cycle early": lambda patch: patch.setattr(
        periodic_sequencer, "ADDRESS", periodic_sequencer.ADDRESS + 1
    ),
    "sent from the other half a cycle late": lambda patch: sequenced(patch, first_read=1),
    "counted a cycle late": lambda patch: sequenced(patch, later=1),
    "a cycle lost": lambda patch: sequenced(patch, cycles=1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault, monkeypatch):
    fabric = periodic("2x2", "alltoall")
    assert fabric.periods.cycles == fabric.program.loop.slots(1)
    FAULTS[fault](monkeypatch)
    assert tf.simulate_periods(fabric, episodes=4).first_wrong


# Errors


@pytest.mark.parametrize(
    ("collective", "lengths", "options", "message"),
    [
        ("alltoall", {"max_flits": 2}, {}, "length of a periodic fabric must be fixed"),
        ("broadcast", {"flits": 2, "root": "any"}, {}, "root of a periodic fabric must be fixed"),
        ("alltoall", {}, {"top": "core"}, "must be host, without a bus, not core"),
        ("alltoall", {}, {"bus": "wishbone"}, "must be host, without a bus, not wishbone"),
    ],
)
def test_what_cannot_be_periodic_is_refused(collective, lengths, options, message):
    program = tf.compile(tf.plan("2x2", collective), **lengths)
    with pytest.raises(tf.InputError, match=message):
        tf.Fabric(program, width=8, periodic=True, **options)


def test_several_collectives_cannot_be_periodic():
    program = tf.compile([tf.plan("2x2", "alltoall"), tf.plan("2x2", "gather")], max_flits=2)
    with pytest.raises(tf.InputError, match="must be one, not 2"):
        tf.Fabric(program, width=8, periodic=True)


def test_a_fabric_is_simulated_as_what_it_is():
    fabric = periodic("2x2", "alltoall")
    with pytest.raises(tf.InputError, match="must have a start, not be periodic"):
        tf.simulate(fabric)
    with pytest.raises(tf.InputError, match="must be periodic, not run by run"):
        tf.simulate_periods(tf.Fabric(fabric.program, width=8))
