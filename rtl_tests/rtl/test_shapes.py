"""Shapes: nodes that differ in data only share a module."""

import pytest
from helpers import program_of

from torusfabric.rtl.control import plan_control


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "routers"),
    [
        ("12x12", "scatter", "matching", 20),
        ("8x8", "scatter", "matching", 17),
        ("5x5", "scatter", "necklace", 12),
        ("arrowhead:3", "broadcast", "spanning-tree", 12),
        ("16x16", "broadcast", "max-flow", 63),
        ("7x7x7", "allgather", "lee-code", 7),
    ],
)
def test_one_router_for_each_set_of_inputs(topology, collective, algorithm, routers):
    """There are as many router modules as different sets of inputs; endpoints alike."""
    program = program_of(topology, collective, algorithm)
    control = plan_control(program)
    assert len(control.routers) == routers
    assert set(control.router_of.tolist()) == set(range(routers))
    assert len(control.endpoints.shapes) <= min(3 * routers, program.loop.variants)
