# amaranth: UnusedElaboratable=no
"""Where the host finds what nodes have received, in programs without symmetry."""

import pytest

import torusfabric as tf
from torusfabric.program import address_map
from torusfabric.rtl.locators import locator_of


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm"),
    [("2x3", "allgather", "redistribute"), ("3", "gather", "matching")],
)
@pytest.mark.parametrize("by_offset", [False, True])
def test_tables_of_nodes(topology, collective, algorithm, by_offset, monkeypatch):
    """Large tables have a row for each variant and offset, which takes a subtraction more."""
    monkeypatch.setattr(address_map, "DIRECT_ROWS", 0 if by_offset else 4096)
    program = tf.compile(tf.plan(topology, collective, algorithm=algorithm), max_flits=2)
    assert locator_of(program, 0, received=True)().latency == (4 if by_offset else 2)
    assert tf.simulate(tf.Fabric(program, width=8), jobs=[tf.Job(length=2)]).passed
