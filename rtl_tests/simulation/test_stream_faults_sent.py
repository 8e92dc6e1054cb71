"""Simulations of streams with packets and commands that are no good."""

from dataclasses import replace

import pytest
from amaranth.hdl import Const
from helpers import few
from stream_bench import streams

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.rtl.streams.loader import Loader
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine
from torusfabric.simulation.streams import simulate_streams, stream_jobs
from torusfabric.toolchain import cxx

#: Fabrics, and the errors that can come up in them.
FABRICS = {
    "one length": ("2", "allgather", {"flits": 2}, {6}),
    "destinations": ("3", "alltoall", {"max_flits": 2}, {6, 7}),
    "commands": (
        "2",
        "allgather,reduce",
        {"max_flits": 2, "root": "any", "operators": ["add", "max"], "barrier": True},
        {1, 2, 3, 4, 6},
    ),
}


@pytest.mark.parametrize("name", few(2, [*FABRICS], tuples=True))
def test_what_is_no_good_is_dropped(name):
    """For the right reason; every other word is right, and in its time."""
    topology, collectives, options, errors = FABRICS[name]
    fabric = streams(topology, collectives, **options)
    jobs = stream_jobs(fabric, 12)
    report = simulate_streams(fabric, jobs=jobs, stall=0.2, faults=0.5, seed=3)
    assert report.passed, report.first_wrong
    assert set(report.dropped) == errors
    assert len(report.jobs) + sum(report.dropped.values()) == len(jobs)
    assert report.rate is None


@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
def test_engines_agree_on_errors():
    fabric = streams("3", "alltoall", max_flits=2)
    reports = [
        simulate_streams(fabric, jobs=[tf.Job(length=2)] * 12, faults=0.5, engine=engine(fabric))
        for engine in (AmaranthEngine, CompiledEngine)
    ]
    slow, fast = (replace(report, seconds=0, engine="") for report in reports)
    assert slow == fast
    assert slow.passed, slow.first_wrong


@pytest.mark.parametrize("collectives", ["alltoall", "alltoall,allgather"])
def test_an_error_that_is_not_told_is_found(collectives, monkeypatch):
    """Loaders that take every destination for one that exists: words are wrong, or errors are."""
    monkeypatch.setattr(Loader, "wrong_destination", lambda *_: Const(0))
    fabric = streams("3", collectives, max_flits=2)
    jobs = [tf.Job(mode=0 if "," in collectives else None, length=1)] * 12
    report = simulate_streams(fabric, jobs=jobs, faults=0.5, seed=2)
    assert 7 in report.dropped
    assert not report.passed


@pytest.mark.parametrize("faults", [-0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(faults):
    with pytest.raises(InputError, match="Share of faults must be from 0 to 1, not"):
        simulate_streams(streams("2", "allgather", flits=1), faults=faults)
