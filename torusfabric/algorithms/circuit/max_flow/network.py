"""Flows of messages through a network: the arcs that are in order, and the paths of a flow."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ....schedule import Transfers
from ....topology import Topology

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Network", "path", "transfers"]


class Network:
    """The arcs that are in order, as capacities between pairs of nodes; node 0 is the root.

    Parameters
    ----------
    broken_links : iterable of (int, int)
        Links out of order, each named by one of its arcs.
    """

    def __init__(self, topology: Topology, broken_links: Iterable[tuple[int, int]] = ()) -> None:
        self.topology, self.nodes = topology, topology.nodes
        alive = topology.neighbours != np.arange(self.nodes)[:, None]
        for node, port in broken_links:
            alive[node, port] = False
            alive[topology.neighbours[node, port], topology.opposite[port]] = False
        self.tail, self.port = np.nonzero(alive)
        self.head = topology.neighbours[self.tail, self.port]
        self.source, self.sink = self.nodes, self.nodes + 1

    def capacities(self, supply: np.ndarray, demand: np.ndarray) -> csr_array:
        """Capacities of all arcs, of supplies from the source and of demands to the sink."""
        # Imported here, since that takes longer than a plan that does without it.
        from scipy.sparse import coo_array, csr_array

        nodes = np.arange(self.nodes)
        tail = np.concatenate([self.tail, np.full(self.nodes, self.source), nodes])
        head = np.concatenate([self.head, nodes, np.full(self.nodes, self.sink)])
        units = np.concatenate([np.ones(len(self.tail), np.int32), supply, demand])
        shape = (self.nodes + 2, self.nodes + 2)
        return csr_array(coo_array((units.astype(np.int32), (tail, head)), shape=shape))

    def cut_off(self) -> np.ndarray:
        """The nodes that no path leads to from node 0."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        graph = csr_array((np.ones(len(self.tail)), (self.tail, self.head)), (self.nodes,) * 2)
        reached = breadth_first_order(graph, 0, return_predecessors=False)
        return np.setdiff1d(np.arange(self.nodes), reached)


def transfers(network: Network, flow: csr_array) -> Transfers:
    """Take a flow apart into paths."""
    flow = flow.tocoo()
    ahead: list[list[int]] = [[] for _ in range(network.nodes + 2)]
    for tail, head, units in zip(flow.row, flow.col, flow.data, strict=True):
        ahead[tail].extend([int(head)] * max(int(units), 0))
    for heads in ahead:
        heads.sort()
    lines: dict[tuple[int, int], list[int]] = {}
    for tail, head, port in zip(network.tail, network.head, network.port, strict=True):
        lines.setdefault((int(tail), int(head)), []).append(int(port))
    paths = [path(ahead, start, network.sink) for start in sorted(ahead[network.source])]
    hops = [[lines[a, b].pop() for a, b in pairwise(p)] for p in paths]
    table = np.full((len(paths), max(map(len, hops))), -1, np.int8)
    for row, ports in zip(table, hops, strict=True):
        row[: len(ports)] = ports
    return Transfers(np.array([p[0] for p in paths]), table)


def path(ahead: list[list[int]], node: int, sink: int) -> list[int]:
    """Follow and use up one unit of flow to where it ends, leaving out cycles.

    The sink is the largest number, hence the last of a node's sorted heads, and the first taken: a
    new node takes the first unit that comes.
    """
    nodes = [node]
    while True:
        node = ahead[node].pop()
        if node == sink:
            return nodes
        if node in nodes:
            nodes = nodes[: nodes.index(node)]
        nodes.append(node)
