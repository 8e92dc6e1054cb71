"""The way of control to the nodes: a register for each group, and one in every node."""

import pytest
from helpers import fabric_of

from torusfabric.rtl.fabric_builder import Distribution
from torusfabric.rtl.netlist import Part, Role

CASES = [
    ("4x4", "allgather", "hamiltonian", {"flits": 2}),
    ("3x3", "reduce-scatter", "matching", {}),
    ("4x4", "broadcast", "diagonal", {"root": "any"}),
]


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), CASES)
def test_no_node_is_given_anything_from_afar(topology, collective, algorithm, options):
    """All that instances of nodes read is of nodes, of their group, or the offset from a root."""
    fabric = fabric_of(topology, collective, algorithm, **options)
    netlist = fabric.netlist
    distribution = Distribution(netlist, fabric.nodes)
    drivers = {net: each for each in netlist.instances for net in each.outputs.values()}
    for instance in netlist.instances:
        if instance.node is None:
            continue
        for part in (p for parts in instance.inputs.values() for p in parts if isinstance(p, Part)):
            driver = drivers[part.net]
            group = distribution.groups.of(instance.node)
            near = driver.role is Role.CONTROL and driver.name == f"control_stage_{group}"
            assert driver.node is not None or near or driver.role is Role.ROOT_UNIT
