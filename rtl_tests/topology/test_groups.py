"""Groups of nodes: sub-tori, and positions in them."""

import numpy as np
import pytest

from torusfabric.errors import InputError
from torusfabric.topology import Arrowhead, Groups, Torus


@pytest.mark.parametrize(
    ("sides", "axes"),
    [((3, 4), (0,)), ((3, 4), (1,)), ((2, 3, 4), (0, 2)), ((2, 3, 2, 5), (1, 3)), ((3, 4), None)],
)
def test_groups(sides, axes):
    """Every node is in one group; a hop by a port of a group leads to the position it leads to."""
    torus = Torus(sides)
    groups = Groups(torus, axes)
    assert sorted(groups.members.ravel().tolist()) == list(range(torus.nodes))
    assert groups.members.shape == (groups.count, groups.size)
    nodes = np.arange(torus.nodes)
    assert (groups.members[groups.group, groups.position] == nodes).all()
    assert (groups.beside(nodes, groups.position) == nodes).all()
    for port, there in enumerate(groups.ports.tolist()):
        assert groups.port_in_group[there] == port
        neighbour = torus.neighbours[:, there]
        assert (groups.group[neighbour] == groups.group).all()
        along = groups.torus.neighbours[groups.position, port]
        assert (groups.position[neighbour] == along).all()
    outside = np.flatnonzero(groups.port_in_group < 0)
    for port in outside.tolist():
        assert (groups.group[torus.neighbours[:, port]] != groups.group).all()


def test_groups_are_translations():
    """A node at an offset within the first group stands at that position from any other."""
    torus = Torus(3, 4, 2)
    groups = Groups(torus, (0, 2))
    for members in groups.members:
        assert (torus.subtract(members, members[0]) == groups.members[0]).all()


@pytest.mark.parametrize("axes", [(), (2,), (0, 0), (-1,)])
def test_axes_that_are_none(axes):
    with pytest.raises(InputError, match=r"^Axes must be some of the axes 0, 1 of 3x4, each once"):
        Groups(Torus(3, 4), axes)


def test_one_group_of_all_nodes():
    """On any topology."""
    groups = Groups(Arrowhead(2))
    assert (groups.count, groups.size, groups.torus) == (1, 16, Arrowhead(2))
    assert groups.position.tolist() == list(range(16))
