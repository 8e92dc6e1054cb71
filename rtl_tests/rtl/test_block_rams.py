"""Memories that are read a cycle early, with a register behind them, as large ones are."""

import pytest
from fabrics import build_fabric, check_fabric
from helpers import few

import torusfabric as tf
from torusfabric.rtl import endpoint_builder

FABRICS = [
    ("2x2", "alltoall", {"flits": 2}),
    ("2x4", "allgather:hamiltonian", {"max_flits": 3}),
    ("2", "allgather,gather", {"max_flits": 3, "width": 33}),
    ("3", "scatter", {"flits": 2}),
    ("2x2", "allreduce", {"max_flits": 4}),
    ("2x2", "gather", {"max_flits": 2, "root": "any"}),
    ("arrowhead:1", "allgather", {"max_flits": 3, "width": 1}),
]


@pytest.fixture
def every_memory(monkeypatch):
    """All memories are taken for block RAMs."""
    monkeypatch.setattr(endpoint_builder, "BLOCK_RAM", 0)


@pytest.mark.parametrize(("topology", "collectives", "options"), few(3, FABRICS))
def test_words_and_cycles(every_memory, topology, collectives, options):
    check_fabric(build_fabric(topology, collectives, top="stream", **options))


def test_what_a_run_stores_and_reads_must_not_be_read_early(monkeypatch):
    """Else a sum that is sent on at once is the one of before."""
    early = lambda builder, group, reading: True
    monkeypatch.setattr(endpoint_builder.EndpointBuilder, "early", early)
    fabric = build_fabric("3x3", "allreduce", max_flits=9, top="stream", tables="ram")
    assert not tf.simulate(fabric).passed
