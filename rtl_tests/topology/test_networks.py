"""Twisted tori, circulants, complete graphs and cubes: their structure, and collectives on them."""

import networkx as nx
import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.topology import Faulty, Graph, require_cayley_graph, topology_from_json
from torusfabric.topology.validate import validate_cayley_graph

TWISTED = (
    "8x4~4",
    "8x4~2",
    "4~1x4",
    "2x2~1",
    "3x5~2x4",
    "3x5~2x4~1",
    "2~1x3x2",
    "5~4x5",
    "4x3x3~2",
    "4x4x8~2:0,1",
    "4x4x8~2:0=3,1",
    "4x8x8~1,2:0",
    "2x3x4~1:0=2~2:0=1,1=3",
    "1~8x13",
)
OTHERS = (
    "circulant:16:1,4",
    "circulant:8:1,4",
    "circulant:7:2,3",
    "circulant:2:1",
    "circulant:9:4",
    "complete:2",
    "complete:3",
    "complete:6",
    "cube:1",
    "cube:2",
    "cube:5",
)
KINDS = (
    "broadcast",
    "allgather",
    "scatter",
    "gather",
    "alltoall",
    "reduce",
    "reduce-scatter",
    "allreduce",
)


@pytest.mark.parametrize("name", TWISTED)
def test_the_way_round_an_axis_ends_in_another_row(name):
    """A walk around an axis of a twisted torus ends in the row given by the twist."""
    torus = tf.parse_topology(name)
    assert isinstance(torus, tf.TwistedTorus)
    axes = len(torus.sides)
    for node in range(torus.nodes):
        at = np.array(np.unravel_index(node, torus.sides))
        for axis in range(axes):
            ahead = torus.neighbours[node, 2 * axis]
            assert torus.neighbours[ahead, 2 * axis + 1] == node
            if at[axis] + 1 < torus.sides[axis]:
                step = at + np.eye(axes, dtype=int)[axis]
                assert ahead == np.ravel_multi_index(tuple(step), torus.sides)
            end = node
            for _ in range(torus.sides[axis]):
                end = torus.neighbours[end, 2 * axis]
            for other in range(axes):
                for _ in range(torus.shifts[axis, other]):
                    end = torus.neighbours[end, 2 * other + 1]
            assert end == node


@pytest.mark.parametrize("name", TWISTED + OTHERS)
def test_it_is_a_cayley_graph(name):
    """Each network is a valid Cayley graph, with the distances that NetworkX computes."""
    network = require_cayley_graph(tf.parse_topology(name))
    validate_cayley_graph(network)
    assert tf.parse_topology(network.name) == network
    pairs = ((v, int(w)) for v in range(network.nodes) for w in network.neighbours[v])
    lengths = nx.single_source_shortest_path_length(nx.Graph(pairs), 0)
    assert network.distances.tolist() == [lengths[node] for node in range(network.nodes)]


@pytest.mark.parametrize(
    ("name", "canonical", "twists"),
    [
        ("8x4~4", "8x4~4", [0, 4]),
        ("4x8~1:0", "4~4x8", [4, 0]),
        ("3x5x4~1:0=2~2:1=1", "3~2x5~1x4", [2, 1, 0]),
        ("4x4x8~2:1,0", "4x4x8~2:0,1", [[0, 0, 4], [0, 0, 4], [0, 0, 0]]),
        ("4x4x8~2:0=4,1=4", "4x4x8~2:0,1", [[0, 0, 4], [0, 0, 4], [0, 0, 0]]),
        ("4x8x8~1:0~2:0", "4x8x8~1,2:0", [[0, 4, 4], [0, 0, 0], [0, 0, 0]]),
        ("4x8x8~1:0~2:0=3", "4x8x8~1:0~2:0=3", [[0, 4, 3], [0, 0, 0], [0, 0, 0]]),
        ("lattice:0,0,8/4,0,4/0,4,-4", "4x4x8~2:0,1", [[0, 0, 4], [0, 0, 4], [0, 0, 0]]),
        ("lattice:3,2/-2,3", "1~8x13", [8, 0]),
    ],
)
def test_twists_are_named(name, canonical, twists):
    """Each form of a name leads to the same network, name and entry of a schedule file."""
    torus = tf.parse_topology(name)
    assert isinstance(torus, tf.TwistedTorus)
    entry = {"kind": "twisted-torus", "sides": [*torus.sides], "twists": twists}
    assert (torus.name, torus.to_json()) == (canonical, entry)
    assert torus == tf.parse_topology(canonical) == topology_from_json(entry)
    assert torus == tf.TwistedTorus(torus.sides, torus.shifts)


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_a_lattice_lead_back(seed):
    """Walks along the rows of a random matrix lead back, and the determinant counts the nodes."""
    random = np.random.default_rng(seed)
    axes = int(random.integers(2, 5))
    rows = random.integers(-4, 5, (axes, axes)).tolist()
    combinations = np.linalg.inv(rows)
    for axis, combination in enumerate(combinations):
        if np.allclose(combination, np.rint(combination), atol=1e-6):
            with pytest.raises(
                InputError, match=f"one step along axis {axis}; leave out this axis"
            ):
                tf.TwistedTorus.from_lattice(rows)
            return
    torus = tf.TwistedTorus.from_lattice(rows)
    assert torus.nodes == round(abs(np.linalg.det(rows)))
    written = "/".join(",".join(map(str, row)) for row in rows)
    assert tf.parse_topology(f"lattice:{written}") == torus
    for row in rows:
        node = 0
        for axis, steps in enumerate(row):
            for _ in range(abs(steps)):
                node = torus.neighbours[node, 2 * axis + (steps < 0)]
        assert node == 0


def test_known_figures():
    """A twist by half the longer side shortens the diameter, and a cube has the links of a torus
    with sides of 2.
    """
    assert [tf.parse_topology(name).diameter for name in ("8x4", "8x4~4")] == [6, 4]
    circulant, complete, cube = tf.Circulant(8, [1, 4]), tf.Complete(6), tf.Cube(4)
    assert circulant.port_names == ("+1", "-1", "+4")
    assert circulant.opposite.tolist() == [1, 0, 2]
    assert (complete.ports, complete.diameter) == (5, 1)
    torus = tf.parse_topology("2x2x2x2")
    assert {*map(frozenset, cube.neighbours.tolist())} == {
        *map(frozenset, torus.neighbours.tolist())
    }


def test_the_second_of_two_links_breaks_both_ways():
    """A broken link of two parallel links also breaks its counterpart in the other direction."""
    graph = Graph([(0, 1, "a"), (0, 1, "b"), (1, 0, "c"), (1, 0, "d")])
    faulty = Faulty(graph, ["0:b"])
    assert faulty.linked.tolist() == [[True, False, False, False], [False, False, True, False]]
    assert faulty.faults == "0:b"


def test_a_link_without_a_way_back_is_broken_as_a_whole():
    """A one-way link is named as a link, not as one way of a link."""
    graph = Graph([(0, 1, "a"), (1, 2, "a"), (2, 3, "a"), (3, 0, "a"), (0, 2, "b")])
    assert [Faulty(graph, [link]).faults for link in ("0:b", "0:b:out")] == ["0:b", "0:b"]


@pytest.mark.parametrize(("name", "diameter"), [("complete:1000", 1), ("circulant:5000:1,70", 56),
                                                ("cube:13", 13)])  # fmt: skip
def test_thousands_of_nodes(name, diameter):
    """Networks of thousands of nodes are added by coordinates, and have their known diameters."""
    assert tf.parse_topology(name).diameter == diameter


@pytest.mark.parametrize("name", ["4~4x8", "2x2x4~2:0,1", "1~8x13"])
def test_plan_files(name, tmp_path):
    """A plan file has the network with its twists, and is read back as the same network."""
    schedule = tf.plan(name, "alltoall", algorithm="matching")
    schedule.save(tmp_path / "plan.json")
    loaded = tf.load(tmp_path / "plan.json")
    assert loaded.topology == schedule.topology == tf.parse_topology(name)
    tf.check(loaded)


@pytest.mark.parametrize(
    "name", few(2, ["3x4~1", "circulant:8:1,4", "complete:4", "cube:3"], tuples=True)
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_collective_runs(name, kind, tmp_path):
    """Every collective is planned, checked, read from a file, and executed with the right words."""
    schedule = tf.plan(name, kind)
    schedule.save(tmp_path / "plan.json")
    tf.check(tf.load(tmp_path / "plan.json"))
    program = tf.compile(schedule, flits=schedule.chunks)
    words = np.random.default_rng(0).integers(
        0, 2**32, (program.topology.nodes, program.send_words)
    )
    words = words.astype(np.uint64)
    expected, receives = program.delivered(words)
    assert (program.execute(words)[receives] == expected[receives]).all()


@pytest.mark.parametrize(
    "name", ["2x3~1", *(pytest.param(k, marks=pytest.mark.long) for k in ("3x4~1", "cube:3"))]
)
def test_hardware(name):
    schedules = [tf.plan(name, kind) for kind in ("allgather", "broadcast")]
    fabric = tf.Fabric(tf.compile(schedules, max_flits=3, root="any"), width=5)
    assert tf.simulate(fabric).passed


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("4x4~0", "Twists of 4x4 must not all be 0; 4x4 is the plain torus"),
        (
            "4~1x4~1",
            "Twists of 4x4 must not form a circle: axis 0 shifts axis 1, axis 1 shifts axis 0; ",
        ),
        (
            "4x4x4x4~0:2~2:1~1:0~3:0",
            "Twists of .* a circle: axis 0 shifts axis 1, axis 1 shifts axis 2, axis 2 shifts",
        ),
        ("8x4~8", "Twists of 8x4 must be .* less than the side of the next axis, not .0, 8."),
        ("1x4~0", "Sides of a twisted torus must be two to 22 integers of at least 2, or of 1"),
        ("4~0", "Sides of a twisted torus must be two to 22 integers"),
        ("4x4x8~2:3", "Twist ~2:3 must have axes from 0 to 2, not 3"),
        ("4x4x8~2:0,2", "Twist ~2:2 must have two different axes; no axis shifts itself"),
        ("4x4x8~2:0,0", "Twist ~2:0 must be written only once"),
        ("4x4x7~2:0", "Twist ~2:0 must have a number of steps, .* write for example ~2:0=3"),
        ("4x4x8~2:0=8", "Twist ~2:0 must be less than 8, the side of axis 2, not 8"),
        ("lattice:4,0/0,8", "This lattice is that of the plain torus 4x8; write 4x8"),
        ("lattice:1,0/0,8", "Lattice must not lead back to the start in one step along axis 0; le"),
        ("lattice:1,2/2,4", "Rows of a lattice must be independent, not ..1, 2., .2, 4..: no row"),
        ("lattice:1,2/3", "Lattice must be a square matrix of integers with 2 to 22 rows"),
        ("4x4x8~2:", "Topology must be side lengths"),
        ("9999x9999~1", "Twisted torus must have at most 4194304 nodes, not 99980001"),
        ("circulant:8:2", "Offsets of a circulant of 8 nodes must have no divisor in common"),
        (
            "circulant:8:5",
            "Offsets of a circulant of 8 nodes must be different integers from 1 to 4",
        ),
        ("circulant:8:1,1", "Offsets of a circulant of 8 nodes must be different"),
        ("circulant:1:1", "Nodes of a circulant must be from 2 to 1048576, not 1"),
        ("complete:1", "Nodes of a complete graph must be from 2 to 1024, not 1"),
        ("cube:0", "Axes of a cube must be from 1 to 16, not 0"),
        ("cube", "Topology must be side lengths .*, cube:AXES, .*, not 'cube'"),
        ("8x4~", "Topology must be side lengths"),
    ],
)
def test_refused(name, message):
    with pytest.raises(InputError, match=f"^{message}"):
        tf.parse_topology(name)
