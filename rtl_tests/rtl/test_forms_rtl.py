"""Fabrics whose modes have several forms, chosen by the length of each run."""

import pytest
from helpers import check_jobs, few

import torusfabric as tf
from torusfabric.program.mode import Range
from torusfabric.proof import prove
from torusfabric.rtl import run_choices
from torusfabric.rtl.run_choices import find_form
from torusfabric.simulation.jobs import default_jobs
from torusfabric.toolchain.cache import Cache

WIDTH = 9


def engine_of(*modes, topology="2x3", most=9, top="host", **options):
    """Build a fabric from modes, each given by its collective and the plan options of its forms."""
    plans = [[tf.plan(topology, name, **how) for how in forms] for name, *forms in modes]
    return tf.Fabric(tf.compile(plans, max_flits=most, **options), width=WIDTH, top=top)


BROADCAST = ("broadcast", {"trees": 1}, {"trees": 2})
SUMS = ("allreduce", {"algorithm": "ring-exchange"}, {"algorithm": "matching"})
ALONE = ("allgather", {})


@pytest.mark.parametrize(
    ("modes", "options"),
    [
        pytest.param((BROADCAST,), {"topology": "9", "most": 16}, marks=pytest.mark.long),
        ((SUMS, ALONE), {}),
        pytest.param(
            (SUMS, BROADCAST),
            {"root": "any", "topology": "9", "most": 16, "operators": ["add", "max"]},
            marks=pytest.mark.long,
        ),
        ((ALONE, SUMS), {"top": "stream", "barrier": True}),
    ],
)
def test_each_form_is_carried_out(modes, options):
    """Words and cycles are right at the lengths where forms begin and end."""
    fabric = engine_of(*modes, **options)
    assert any(mode.has_several_ranges for mode in fabric.program.modes)
    jobs = [job for job in default_jobs(fabric.program) if job.root in (None, 5)]
    if options.get("top"):
        report = tf.simulate(fabric, jobs=jobs)
        assert report.passed, report.first_wrong
    else:
        check_jobs(fabric, jobs)


def off_by_one(monkeypatch):
    """Move the first length of every form but the first by one flit."""
    monkeypatch.setattr(
        run_choices,
        "find_form",
        lambda served, mode, length: find_form(
            [(first, *(Range(s + 1, f) for s, f in others)) for first, *others in served],
            mode,
            length,
        ),
    )


@pytest.mark.parametrize("planted", few(1, [True, False]))
def test_forms_are_proved(monkeypatch, planted):
    if planted:
        off_by_one(monkeypatch)
    fabric = engine_of(SUMS, topology="3", most=8)
    assert fabric.program.modes[0].has_several_ranges
    found = prove(fabric, cache=Cache())
    assert found.proved == (not planted)
    if planted:
        assert found.counterexample is not None
