"""Where the host finds what nodes have received, in programs without symmetry."""

import pytest

import torusfabric as tf
from torusfabric.program import address_map


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm"),
    [("2x3", "allgather", "redistribute"), ("3", "gather", "matching")],
)
def test_tables_of_nodes(topology, collective, algorithm, monkeypatch):
    """Large tables have a row for each variant and offset, which takes a subtraction more."""
    latencies = []
    for most in (4096, 0):
        monkeypatch.setattr(address_map, "DIRECT_ROWS", most)
        program = tf.compile(tf.plan(topology, collective, algorithm=algorithm), max_flits=2)
        fabric = tf.Fabric(program, width=8)
        assert tf.simulate(fabric, jobs=[tf.Job(length=2)]).passed
        latencies.append(fabric.read_latency)
    assert latencies[1] == latencies[0] + 2
