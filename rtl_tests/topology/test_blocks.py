"""Tori on several boards: blocks, link ports, and the tree of boards."""

import numpy as np
import pytest

from torusfabric.errors import InputError
from torusfabric.topology import Mesh, Torus
from torusfabric.topology.boards import Boards


@pytest.mark.parametrize(
    ("sides", "counts"), [((4, 4), "2x1"), ((4, 4), "2x2"), ((6, 4), "3x4"), ((2, 2, 2), "2x2x1")]
)
def test_links_lead_back(sides, counts):
    torus = Torus(*sides)
    boards = Boards.parse(counts, torus)
    board, number = boards.node_locations
    assert (boards.nodes_by_board[board, number] == np.arange(torus.nodes)).all()
    for here, ends in enumerate(boards.far_ends):
        for link, (there, port) in enumerate(ends):
            assert boards.far_ends[there][port] == (here, link)
            assert there != here
            node, out = boards.link_ports[link]
            far, back = boards.link_ports[port]
            assert (
                torus.neighbours[boards.nodes_by_board[here, node], out]
                == boards.nodes_by_board[there, far]
            )
            assert torus.opposite[out] == back


def test_each_arc_between_boards_is_a_link_port():
    boards = Boards.parse("2x2", Torus(4, 4))
    board, _ = boards.node_locations
    neighbours = boards.torus.neighbours
    cut = (board[neighbours] != board[:, None]).sum()
    assert cut == boards.n_boards * len(boards.link_ports) == 32


def test_tree_reaches_all_boards():
    boards = Boards.parse("3x4", Torus(6, 4))
    assert max(boards.tree_depths) == 3  # the eccentricity of a board in a 3x4 torus
    for board, link in enumerate(boards.parent_links[1:], 1):
        there, port = boards.far_ends[board][link]
        assert boards.tree_depths[there] == boards.tree_depths[board] - 1
        assert port in boards.child_links[there]
    assert sum(map(len, boards.child_links)) == boards.n_boards - 1


@pytest.mark.parametrize(
    ("text", "topology", "message"),
    [
        ("3x1", Torus(4, 4), "Boards must divide the sides of 4x4, not 3x1"),
        ("2", Torus(4, 4), "Boards must be a number for each axis of 4x4, not 2"),
        ("1x1", Torus(4, 4), "Boards must be two or more, not 1x1"),
        ("two", Torus(4, 4), "Boards must be numbers such as 2x1, not 'two'"),
        ("2x1", Mesh((4, 4)), "Topology on several boards must be a torus, not mesh:4x4"),
    ],
)
def test_refusals(text, topology, message):
    with pytest.raises(InputError) as found:
        Boards.parse(text, topology)
    assert str(found.value) == message
