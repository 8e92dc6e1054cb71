"""Memories that are read a cycle early, with a register behind them, as large ones are."""

import pytest
from helpers import few
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.rtl import endpoint_builder
from torusfabric.simulation.jobs import random_jobs
from torusfabric.simulation.streams import stream_jobs

FABRICS = {
    "table": ("2x2", "alltoall", {"flits": 2}),
    "waves": ("2x4", "allgather:hamiltonian", {"max_flits": 3}),
    "rounds": ("3", "scatter", {"flits": 2}),
    "sums": ("2x2", "allreduce", {"max_flits": 4}),
    "any root": ("2x2", "gather", {"max_flits": 2, "root": "any"}),
}


@pytest.fixture
def every_memory(monkeypatch):
    """All memories are taken for block RAMs."""
    monkeypatch.setattr(endpoint_builder, "BLOCK_RAM", 0)


def program_of(name):
    """The program of a fabric by its name."""
    topology, collective, options = FABRICS[name]
    return tf.compile(tf.plan(topology, collective), **options)


def simulated(fabric, runs=5, **options):
    """The report of some runs, one after the other."""
    program = fabric.program
    if program.any_length:
        return tf.simulate(fabric, jobs=random_jobs(fabric, runs, seed=1), **options)
    return tf.simulate(fabric, repeat=runs, **options)


@pytest.mark.parametrize("name", few(3, [*FABRICS], tuples=True))
def test_words_and_cycles_behind_a_host_port(every_memory, name):
    report = simulated(tf.Fabric(program_of(name), width=8))
    assert report.passed, report.first_wrong
    assert report.words_checked


@pytest.mark.parametrize("name", few(2, [*FABRICS], tuples=True))
def test_words_and_cycles_with_streams(every_memory, name):
    fabric = tf.Fabric(program_of(name), width=8, top="stream")
    report = tf.simulate(fabric, jobs=stream_jobs(fabric, 5, seed=1), stall=0.3)
    assert report.passed, report.first_wrong


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_any_collective(data):
    """Whatever is sent, received and summed, by whichever way the host reads it."""
    topology = data.draw(st.sampled_from(["2", "3", "2x2", "2x3", "arrowhead:1"]))
    kind = data.draw(st.sampled_from(["broadcast", "allgather", "alltoall", "reduce", "allreduce"]))
    kinds = [kind] if topology.startswith("a") else [kind, "gather"]
    plans = [tf.plan(topology, "allgather" if topology.startswith("a") else k) for k in kinds]
    program = tf.compile(
        plans if len(plans) > 1 else plans[0], max_flits=data.draw(st.integers(1, 4))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endpoint_builder, "BLOCK_RAM", 0)
        report = simulated(tf.Fabric(program, width=data.draw(st.sampled_from([1, 8, 33]))))
    assert report.passed, report.first_wrong


def test_what_a_run_stores_and_reads_must_not_be_read_early(monkeypatch):
    """Else a sum that is sent on at once is the one of before."""
    early = lambda builder, group, reading: True
    monkeypatch.setattr(endpoint_builder.EndpointBuilder, "early", early)
    report = simulated(tf.Fabric(tf.compile(tf.plan("3x3", "allreduce"), flits=9), width=8))
    assert not report.passed
