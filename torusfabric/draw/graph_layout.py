"""Positions of the nodes of any topology: `layout_of`.

Most topologies are defined by a mathematical group: nodes are elements, and each port adds a fixed
element. The group of a topology that is neither a torus nor an arrowhead decides how it is drawn:

- A cyclic group: a circle, with all links as chords.
- A product of two or three cyclic groups: a grid. Short links are lines, all others are stubs.
- A product of more cyclic groups, or no group: the equilibrium of springs in place of the links. If
  there are too many nodes for that, a circle.
"""

from dataclasses import replace

import numpy as np

from ..topology import (
    Arrowhead,
    BoolArray,
    IntArray,
    Multigraph,
    ParallelLinks,
    Subgraph,
    Topology,
    Torus,
    require_cayley_graph,
)
from .layout import NodeLayout, arrowhead_layout, axis_directions, grid_positions, torus_layout

__all__ = ["graph_layout", "layout_of"]

#: Length above which a link of a grid is drawn as stubs, in hops. A knight's move is still a line.
LONGEST_LINE = 2.3

#: Distance in hops between neighbours on a circle, and median distance of a node from the nearest
#: other node in a layout by springs.
NODE_DISTANCE = 1.2

#: Most nodes of a layout by springs between all pairs, and by springs in place of links.
MOST_KAMADA_KAWAI_NODES, MOST_SPRING_NODES = 256, 1024

#: Angle between the directions of two links to the same neighbour, in radians.
STUB_ANGLE = 2.0


def layout_of(
    topology: Topology, *, centre: int | None = None, root: int = 0, in_one_row: bool = False
) -> NodeLayout:
    """Return the layout of a topology of any type.

    Parameters
    ----------
    topology : Topology
        The topology to draw.
    centre : int, optional
        The node to draw in the middle. It is ignored if nodes or links are missing, because then
        nodes have different surroundings.
    root : int
        The node in the middle of an arrowhead torus.
    in_one_row : bool
        True to place the layers of a grid side by side.
    """
    if isinstance(topology, Subgraph):
        whole = layout_of(topology.whole, in_one_row=in_one_row)
        kept = topology.kept
        steps = whole.steps[:, kept] if whole.steps.shape[1] > 1 else whole.steps
        return NodeLayout(
            topology, whole.positions[:, kept], steps, whole.regions, whole.captions, whole.ghosts
        )
    if isinstance(topology, Multigraph | ParallelLinks):
        whole = layout_of(topology.whole, centre=centre, root=root, in_one_row=in_one_row)
        return _add_parallel_links(whole, topology)
    if isinstance(topology, Torus):
        return torus_layout(topology, centre=centre, in_one_row=in_one_row)
    if isinstance(topology, Arrowhead):
        return arrowhead_layout(topology, root)
    return graph_layout(topology, centre=centre, in_one_row=in_one_row)


def graph_layout(
    topology: Topology, *, centre: int | None = None, in_one_row: bool = False
) -> NodeLayout:
    """Return the layout of a topology that is neither a torus nor an arrowhead torus.

    Nodes are on a circle, on a grid, or where springs in place of the links are in balance; the
    mathematical group of the topology decides.

    Parameters
    ----------
    topology : Topology
        The topology to draw.
    centre : int, optional
        The node to draw in the middle of a grid.
    in_one_row : bool
        True to place the layers of a grid side by side.
    """
    lengths, coordinates = topology.grid
    cyclic = [axis for axis, length in enumerate(lengths) if length > 1]
    sides = tuple(int(lengths[axis]) for axis in cyclic)
    captions: tuple[tuple[float, float, str], ...] = ()
    if len(cyclic) in (2, 3):
        positions, captions = grid_positions(
            sides, coordinates[cyclic], centre=centre, in_one_row=in_one_row
        )
    elif len(cyclic) != 1 and 1 < topology.nodes <= MOST_SPRING_NODES:
        positions = _spring_positions(topology)
    else:
        place = coordinates[cyclic[0]] if len(cyclic) == 1 else np.arange(topology.nodes)
        positions = _circle_positions(place, topology.nodes)
    gap = positions[:, topology.neighbours] - positions[:, :, None]
    alone = _first_link_mask(topology)
    lines = alone & (topology.neighbours != np.arange(topology.nodes)[:, None])
    if len(cyclic) in (2, 3):
        lines &= _short_line_mask(gap)
        ahead = np.broadcast_to(
            _port_directions(topology, sides, coordinates[cyclic])[:, None], gap.shape
        )
    else:
        length = np.hypot(*gap)
        loop = _rotate_vectors(np.array([1.0, 0.0])[:, None, None], np.arange(topology.ports))
        ahead = np.where(length > 0, gap / np.where(length > 0, length, 1), loop)
    stubs = np.where(alone, ahead, _rotate_vectors(ahead, STUB_ANGLE))
    return NodeLayout(topology, positions, np.where(lines, gap, stubs), captions=captions)


def _add_parallel_links(whole: NodeLayout, topology: Multigraph | ParallelLinks) -> NodeLayout:
    """Return the layout of a network with parallel links, given that of the `whole` network.

    The first of parallel links has the line that the link has in the whole network; the others are
    stubs, short lines at both ends.
    """
    steps = whole.steps[:, :, topology.copies.port]
    angle = STUB_ANGLE / (1 + topology.copies.rank.max(initial=1)) * topology.copies.rank
    length = np.maximum(np.hypot(*steps), 1e-6)
    stubs = _rotate_vectors(steps / length, angle)
    steps = np.where(topology.copies.rank > 0, stubs, steps)
    return replace(whole, topology=topology, steps=steps)


def _circle_positions(place: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of nodes on a circle, in hops, shape (2, nodes), clockwise from the top.

    Parameters
    ----------
    place : ndarray of int, shape (nodes,)
        Position of each node in the order on the circle, from 0 at the top.
    count : int
        Number of nodes.
    """
    radius = 0.5 * NODE_DISTANCE / np.sin(np.pi / count) if count > 1 else 0.0
    angle = 2 * np.pi * place / count
    return np.asarray(radius * np.stack([np.sin(angle), -np.cos(angle)]))


def _spring_positions(topology: Topology) -> np.ndarray:
    """Return positions of nodes, in hops, at which springs in place of the links are in balance.

    The result has the shape (2, nodes). Equal topologies get equal positions.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(topology.nodes))
    graph.add_edges_from((v, w) for v, row in enumerate(topology.neighbours.tolist()) for w in row)
    if topology.nodes <= MOST_KAMADA_KAWAI_NODES:
        placed = nx.kamada_kawai_layout(graph)
    else:
        placed = nx.spring_layout(graph, seed=1)
    points = np.array([placed[node] for node in range(topology.nodes)])
    from scipy.spatial import KDTree

    nearest = KDTree(points).query(points, k=2)[0][:, 1]
    return np.asarray(points.T * NODE_DISTANCE / max(float(np.median(nearest)), 1e-3))


def _first_link_mask(topology: Topology) -> BoolArray:
    """Return a mask of the arcs to draw as lines, shape (nodes, ports).

    If two nodes have several links between them, only the arcs of the first link are True; the
    other links are drawn as stubs, short lines at both ends.
    """
    nodes, ports = topology.nodes, topology.ports
    here = np.repeat(np.arange(nodes), ports)
    there = topology.neighbours.reshape(-1).astype(np.int64)
    link = np.minimum(np.arange(nodes * ports), there * ports + np.tile(topology.opposite, nodes))
    pair = np.minimum(here, there) * nodes + np.maximum(here, there)
    if topology.backwards is not topology:
        link, pair = np.arange(nodes * ports), here * nodes + there  # each way is a link of its own
    order = np.lexsort((link, pair))
    _, starts, which = np.unique(pair[order], return_index=True, return_inverse=True)
    first = np.empty(len(link), bool)
    first[order] = link[order] == link[order][starts][which]
    return first.reshape(nodes, ports)


def _short_line_mask(gap: np.ndarray) -> BoolArray:
    """Return a mask of the links whose straight line may be drawn in a grid.

    Such a line joins two points of the grid, is shorter than `LONGEST_LINE` hops, and passes
    through no other node.

    Parameters
    ----------
    gap : ndarray of float, shape (2, nodes, ports)
        Vector of each line, in hops.
    """
    whole = np.rint(gap)
    passes_none = np.gcd(*whole.astype(np.int64)) == 1
    exact = np.abs(gap - whole).max(axis=0) < 1e-6
    return np.asarray(exact & passes_none & (np.hypot(*gap) < LONGEST_LINE))


def _port_directions(
    topology: Topology, sides: tuple[int, ...], coordinates: IntArray
) -> np.ndarray:
    """Return the unit vector of each port in a grid, shape (2, ports).

    `sides` has the sides of the grid, and `coordinates` the coordinates of each node along its
    axes, shape (axes, nodes). The opposite port has the opposite vector.
    """
    parts = coordinates[:, require_cayley_graph(topology).generators]
    half = np.array(sides)[:, None] / 2
    around = np.where(parts > half, parts - 2 * half, parts)
    second = topology.opposite < np.arange(topology.ports)
    around = np.where((parts == half) & second, -half, around)
    back = -around[:, topology.opposite]  # the way around an axis may end in another row
    around = np.where(abs(back).sum(axis=0) < abs(around).sum(axis=0), back, around)
    ahead = axis_directions(len(sides)) @ around
    length = np.hypot(*ahead)
    return np.where(length > 1e-6, ahead / np.maximum(length, 1e-6), [[1.0], [0.0]])


def _rotate_vectors(ahead: np.ndarray, angle: np.ndarray | float) -> np.ndarray:
    """Return the vectors in `ahead`, rotated by `angle` in radians."""
    x, y = ahead
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([x * cos - y * sin, x * sin + y * cos])
