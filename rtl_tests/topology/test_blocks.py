"""Tori on several boards: blocks, link ports, and the tree of boards."""

import numpy as np
import pytest

from torusfabric.errors import InputError
from torusfabric.topology import Mesh, Torus, parse_topology, topology_from_json, with_rates
from torusfabric.topology.boards import Boards

#: Parts of messages.
TORUS = "Topology on several boards must be a torus without broken nodes"
ALIKE = "Links between boards must be alike on all boards, but only one of boards 0 and "
ALL = "give all the same rate, as in --rate {}=1/2, and break none of them"


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
        ("2x1", Mesh((4, 4)), f"{TORUS}, not mesh:4x4"),
        ("2x1", parse_topology("4x4!5"), f"{TORUS}, not 4x4!5"),
        (
            "2x1",
            parse_topology("4x4%0:-0=2"),
            f"{ALIKE}1 has one at port -0.2 of its node 0; {ALL}",
        ),
        ("2x2", parse_topology("4x4!5:+0"), f"{ALIKE}1 has one at port +0 of its node 3; {ALL}"),
    ],
)
def test_refusals(text, topology, message):
    with pytest.raises(InputError) as found:
        Boards.parse(text, topology)
    assert str(found.value) == message.format(text)


NETWORKS = [
    "4x4!3=relay,9=relay,4:+1,0:+0=3",
    "4x4%0:2,1:1/2",
    "4x4%0:2",
    "6x4%2x2=3/2,0:+0=5!2x2=9,7=relay",
]


@pytest.mark.parametrize("name", NETWORKS)
def test_boards_of_networks_with_relays_and_rates(name):
    """Every arc between two blocks is a link port, at both of its ends."""
    torus = parse_topology(name)
    boards = Boards.parse("2x2", torus)
    board, number = boards.node_locations
    cut = np.argwhere(torus.linked & (board[torus.neighbours] != board[:, None])).tolist()
    ends = {(board[v], boards.link_ports.index((number[v], p))): (v, p) for v, p in cut}
    assert len(ends) == boards.n_boards * len(boards.link_ports) == len(cut)
    for (here, link), (node, port) in ends.items():
        far = ends[boards.far_ends[here][link]]
        assert far == (torus.neighbours[node, port], torus.opposite[port])
        assert boards.latency_cycles[here][link] == torus.cycles_of_arc[node, port]


def test_links_between_blocks_have_one_name():
    """`2x1` names the links between blocks, in latencies and rates; single links are stronger."""
    torus = parse_topology("4x4%2x1=1/2,1:2,8:-0=1!2x1=8,0:-0=5")
    assert torus.name == "4x4%2x1=1/2,1:2,8:-0=1!2x1=8,0:-0=5"
    assert topology_from_json(torus.to_entry()) == torus == parse_topology(str(torus))
    ports = [torus.port_names.index(name) for name in ("-0", "+1")]
    assert torus.cycles_of_arc[:9:4, ports].tolist() == [[5, 1], [1, 1], [8, 1]]
    assert torus.spacing_of_arc[:9:4, ports].tolist() == [[2, 1], [1, 1], [1, 1]]
    assert with_rates("4x4", {"2x1": "1/2", 1: 2}) == parse_topology("4x4%2x1=1/2,1:2")
    assert parse_topology("4x4!9,2x1=8").cycles_of_arc[0, 1] == 8
    with pytest.raises(InputError, match=r"^Blocks must divide the sides of 4x4, not 3x1"):
        parse_topology("4x4%3x1=1/2")
    with pytest.raises(
        InputError, match=r"^Blocks must be a number for each axis of complete:4, n"
    ):
        parse_topology("complete:4!2x1=8")
