"""Maps of the ranks of a foreign schedule to nodes.

A *rank* is a participant of the schedule, such as a GPU; *peers* are two ranks that exchange
messages. Ranks of a file have no coordinates. If a file was made for a ring, for rows and columns
or for a hypercube, there is a map of ranks to nodes under which all peers are neighbours.
"""

import time
from collections.abc import Iterator
from itertools import permutations

import numpy as np

from ...errors import InputError
from ...schedule.foreign.dataflow import Dataflow
from ...toolchain.values import unknown_name_error
from ...topology import CayleyGraph, IntArray, Topology, Torus
from ..oblivious.hamiltonian.plan import colour_links, cycle_of_colour

__all__ = ["PLACEMENTS", "SEARCH_SECONDS", "place_ranks"]

#: The longest search for a map.
SEARCH_SECONDS = 10.0

#: The names of maps.
PLACEMENTS = ("identity", "gray", "auto")


def place_ranks(
    dataflow: Dataflow,
    topology: Topology,
    placement: str = "identity",
    *,
    seconds: float = SEARCH_SECONDS,
) -> IntArray:
    """Choose the node of each rank, a participant of a foreign schedule such as a GPU.

    Parameters
    ----------
    dataflow : Dataflow
        The foreign schedule. Two ranks that exchange messages are called peers.
    topology : Topology
        A network with as many nodes as there are ranks.
    placement : {"identity", "gray", "auto"}
        ``identity``: rank r is node r. ``gray``: the bits of a rank are Gray codes of
        coordinates, so that ranks which differ in one bit are neighbours on a torus of sides 2 and
        4. ``auto``: search for a map under which all peers are neighbours.
    seconds : float
        Most seconds of the search.

    Returns
    -------
    ndarray of int, shape (ranks,)
        The node of each rank.

    Raises
    ------
    InputError
        If there is no such map, or none is found.
    """
    if dataflow.buffers.ranks != topology.nodes:
        raise InputError(
            f"Topology must have as many nodes as the file has gpus, {dataflow.buffers.ranks}, "
            f"not the {topology.nodes} of {topology}"
        )
    match placement:
        case "identity":
            return np.arange(topology.nodes)
        case "gray":
            return gray_code_map(topology)
        case "auto":
            return _search_map(dataflow, topology, seconds)
    raise unknown_name_error("Map", placement, PLACEMENTS)


def gray_code_map(topology: Topology) -> IntArray:
    """Return the node of each rank, where the bits of a rank are Gray codes of coordinates.

    On sides of 2 and 4, ranks that differ in one bit are then neighbours. The first axis has the
    highest bits.

    Raises
    ------
    InputError
        If a side is no power of two.

    Examples
    --------
    Rank 3 (binary 11) is at node 2, because 11 is the Gray code of 2:

    >>> gray_code_map(Torus(4)).tolist()
    [0, 1, 3, 2]
    """
    if not isinstance(topology, Torus) or any(side & (side - 1) for side in topology.sides):
        raise InputError(f"Topology must be a torus of sides 2, 4, 8, .. for gray, not {topology}")
    coordinates = []
    for side, code in zip(
        topology.sides, topology.coordinates(np.arange(topology.nodes)), strict=True
    ):
        numbers = np.arange(side)
        coordinates.append(np.argsort(numbers ^ numbers >> 1)[code])
    return topology.node(coordinates)


def _search_map(dataflow: Dataflow, topology: Topology, seconds: float) -> IntArray:
    """Return a node for each rank of `dataflow`; ranks that exchange messages are neighbours.

    The maps of `_usual_maps` are tried first, then a search of at most `seconds`.
    """
    pairs = np.array([pair[:2] for pair in dataflow.rank_pairs()]).reshape(-1, 2)
    for nodes in _usual_maps(topology, pairs):
        if (topology.distance(nodes[pairs[:, 0]], nodes[pairs[:, 1]]) == 1).all():
            return nodes
    found = _find_subgraph_map(topology, pairs, time.monotonic() + seconds)
    if found is None:
        raise InputError(
            f"No map places all peers side by side on {topology}; choose another topology, or "
            "--switching circuit, by which they may be apart"
        )
    return found


def _usual_maps(topology: Topology, pairs: IntArray) -> Iterator[IntArray]:
    """Yield placements that often fit, each as the node of every rank (participant, such as a GPU).

    They are: equal numbers, Gray codes, the same torus with permuted axes, and a cycle through all
    nodes if the ranks form a ring. `pairs`, shape (pairs, 2), has the ranks that exchange messages.
    """
    nodes = np.arange(topology.nodes)
    yield nodes
    if not isinstance(topology, Torus):
        return
    if all(side & (side - 1) == 0 for side in topology.sides):
        yield gray_code_map(topology)
    for order in permutations(range(topology.dimensions)):
        yield nodes.reshape(topology.sides).transpose(order).ravel()
    around = _order_around_ring(pairs)
    if around is not None and topology.dimensions > 1:
        cycle = np.empty_like(nodes)
        cycle[around] = cycle_of_colour(topology.sides, colour_links(topology.sides), 0).nodes
        yield cycle


def _order_around_ring(pairs: IntArray) -> IntArray | None:
    """Return the ranks in their order around the ring that they form; None if they form none.

    `pairs`, shape (pairs, 2), has the ranks that send messages and those that receive them.
    """
    after: dict[int, set[int]] = {}
    for source, target in pairs.tolist():
        after.setdefault(source, set()).add(target)
    order, here = [0], 0
    while len(order) <= len(after):
        there = after.get(here, set()) - set(order[-2:-1])
        if len(after.get(here, ())) > 2 or not there:
            return None
        here = min(there)
        if here == 0:
            return np.array(order) if len(order) == len(after) else None
        order.append(here)
    return None


class _SearchTimeout(Exception):
    """The search has taken too long."""


def _find_subgraph_map(topology: Topology, pairs: IntArray, until: float) -> IntArray | None:
    """Search for the node of each rank so that ranks that exchange messages are neighbours.

    `pairs`, shape (pairs, 2), has these ranks. The search for a subgraph is that of networkx. On a
    network whose nodes are all alike, rank 0 is at node 0. The search is given up at the time
    `until` of ``time.monotonic``, in seconds. The result is None if there is no such placement.
    """
    import networkx as nx
    from networkx.algorithms.isomorphism import GraphMatcher

    def may_match(node: dict[str, bool], rank: dict[str, bool]) -> bool:
        """Return True if a rank may be at a node, and stop the search if it has taken too long.

        networkx calls the function at every step of the search, with the attributes of a node of
        the network and of a rank. The attribute ``first`` marks node 0 and rank 0, which belong
        together.
        """
        if time.monotonic() > until:
            raise _SearchTimeout
        return node["first"] == rank["first"]

    links = nx.Graph()
    for node, row in enumerate(topology.neighbours.tolist()):
        links.add_edges_from((node, other) for other in row)
    peers = nx.Graph()
    peers.add_nodes_from(range(topology.nodes))
    peers.add_edges_from(pairs.tolist())
    alike = isinstance(topology, CayleyGraph)
    for graph in (links, peers):
        nx.set_node_attributes(graph, {node: alike and node == 0 for node in graph}, "first")
    if max(dict(peers.degree).values()) > max(dict(links.degree).values()):
        return None
    try:
        for found in GraphMatcher(links, peers, may_match).subgraph_monomorphisms_iter():
            rank_of = dict(found)
            nodes = np.empty(topology.nodes, np.int64)
            nodes[list(rank_of.values())] = list(rank_of.keys())
            return nodes
    except _SearchTimeout:
        raise InputError(
            f"No map was found in time that places all peers side by side on {topology}; give one "
            "by --map FILE, or more seconds"
        ) from None
    return None
