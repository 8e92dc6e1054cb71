"""Where the nodes of any topology are drawn, by its group: a circle, rows and columns, or springs.

A cyclic group is a circle with all its links as chords; a group of two or three cyclic ones a grid,
whose short links are lines and whose others are stubs; of more, nodes lie where springs in place of
the links would pull them, or on a circle if they are very many.
"""

import numpy as np

from ..topology import Arrowhead, BoolArray, IntArray, Part, Topology, Torus, cayley
from .layout import Layout, arrowhead_layout, axis_directions, rows_and_layers, torus_layout

__all__ = ["graph_layout", "layout_of"]

#: The longest link of a grid that is drawn as a line, in hops: a knight's move.
LONGEST = 2.3

#: Hops between neighbours on a circle, and by springs between half of all nodes and the nearest.
APART = 1.2

#: Most nodes that are placed by springs between all pairs of them, and by springs of links.
MOST_PAIRED, MOST_LINKED = 256, 1024

#: By how much the stub of a second link to the same neighbour is turned from the first.
TURN = 2.0


def layout_of(
    topology: Topology, *, centre: int | None = None, root: int = 0, in_one_row: bool = False
) -> Layout:
    """Where the nodes of a topology are drawn, whatever it is.

    Parameters
    ----------
    centre : int, optional
        The node that is drawn in the middle, if it can be any; a network with edges stays.
    root : int
        The node in the middle, of an arrowhead torus.
    in_one_row : bool
        Whether the layers of a grid stand side by side.
    """
    if isinstance(topology, Part):
        whole = layout_of(topology.whole, in_one_row=in_one_row)
        kept = topology.kept
        steps = whole.steps[:, kept] if whole.steps.shape[1] > 1 else whole.steps
        return Layout(
            topology, whole.positions[:, kept], steps, whole.regions, whole.captions, whole.ghosts
        )
    if isinstance(topology, Torus):
        return torus_layout(topology, centre=centre, in_one_row=in_one_row)
    if isinstance(topology, Arrowhead):
        return arrowhead_layout(topology, root)
    return graph_layout(topology, centre=centre, in_one_row=in_one_row)


def graph_layout(
    topology: Topology, *, centre: int | None = None, in_one_row: bool = False
) -> Layout:
    """A circle, a grid or springs, by how many cyclic groups the nodes are the product of.

    Parameters
    ----------
    centre : int, optional
        The node that is drawn in the middle of a grid.
    in_one_row : bool
        Whether the layers of a grid stand side by side.
    """
    lengths, coordinates = topology.grid
    cyclic = [axis for axis, length in enumerate(lengths) if length > 1]
    sides = tuple(int(lengths[axis]) for axis in cyclic)
    captions: tuple[tuple[float, float, str], ...] = ()
    if len(cyclic) in (2, 3):
        positions, captions = rows_and_layers(
            sides, coordinates[cyclic], centre=centre, in_one_row=in_one_row
        )
    elif len(cyclic) != 1 and 1 < topology.nodes <= MOST_LINKED:
        positions = _springs(topology)
    else:
        place = coordinates[cyclic[0]] if len(cyclic) == 1 else np.arange(topology.nodes)
        positions = _circle(place, topology.nodes)
    gap = positions[:, topology.neighbours] - positions[:, :, None]
    alone = _first_links(topology)
    lines = alone & (topology.neighbours != np.arange(topology.nodes)[:, None])
    if len(cyclic) in (2, 3):
        lines &= _short(gap)
        ahead = np.broadcast_to(
            _port_directions(topology, sides, coordinates[cyclic])[:, None], gap.shape
        )
    else:
        length = np.hypot(*gap)
        loop = _turned(np.array([1.0, 0.0])[:, None, None], np.arange(topology.ports))
        ahead = np.where(length > 0, gap / np.where(length > 0, length, 1), loop)
    stubs = np.where(alone, ahead, _turned(ahead, TURN))
    return Layout(topology, positions, np.where(lines, gap, stubs), captions=captions)


def _circle(place: np.ndarray, count: int) -> np.ndarray:
    """Nodes around a circle by their places, the first at the top."""
    radius = 0.5 * APART / np.sin(np.pi / count) if count > 1 else 0.0
    angle = 2 * np.pi * place / count
    return np.asarray(radius * np.stack([np.sin(angle), -np.cos(angle)]))


def _springs(topology: Topology) -> np.ndarray:
    """Nodes where springs pull them, the same each time."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(topology.nodes))
    graph.add_edges_from((v, w) for v, row in enumerate(topology.neighbours.tolist()) for w in row)
    if topology.nodes <= MOST_PAIRED:
        placed = nx.kamada_kawai_layout(graph)
    else:
        placed = nx.spring_layout(graph, seed=1)
    points = np.array([placed[node] for node in range(topology.nodes)])
    from scipy.spatial import KDTree

    nearest = KDTree(points).query(points, k=2)[0][:, 1]
    return np.asarray(points.T * APART / max(float(np.median(nearest)), 1e-3))


def _first_links(topology: Topology) -> BoolArray:
    """Whether an arc is of the first of all links between its two nodes: (nodes, ports)."""
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


def _short(gap: np.ndarray) -> BoolArray:
    """Whether lines in a grid are short and meet no node between their ends."""
    whole = np.rint(gap)
    passes_none = np.gcd(*whole.astype(np.int64)) == 1
    exact = np.abs(gap - whole).max(axis=0) < 1e-6
    return np.asarray(exact & passes_none & (np.hypot(*gap) < LONGEST))


def _port_directions(
    topology: Topology, sides: tuple[int, ...], coordinates: IntArray
) -> np.ndarray:
    """The direction of each port in a grid, of length 1; that of its opposite is the contrary."""
    parts = coordinates[:, cayley(topology).generators]
    half = np.array(sides)[:, None] / 2
    around = np.where(parts > half, parts - 2 * half, parts)
    second = topology.opposite < np.arange(topology.ports)
    around = np.where((parts == half) & second, -half, around)
    back = -around[:, topology.opposite]  # the way round an axis may end in another row
    around = np.where(abs(back).sum(axis=0) < abs(around).sum(axis=0), back, around)
    ahead = axis_directions(len(sides)) @ around
    length = np.hypot(*ahead)
    return np.where(length > 1e-6, ahead / np.maximum(length, 1e-6), [[1.0], [0.0]])


def _turned(ahead: np.ndarray, angle: np.ndarray | float) -> np.ndarray:
    """Directions turned by angles."""
    x, y = ahead
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([x * cos - y * sin, x * sin + y * cos])
