"""Flows of messages through a network, and the paths of a flow."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ....schedule import Transfers
from ....topology import Topology

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Network", "path", "transfers"]


class Network:
    """The arcs between different nodes, as capacities between pairs of nodes."""

    def __init__(self, topology: Topology) -> None:
        self.topology, self.nodes = topology, topology.nodes
        self.tail, self.port = np.nonzero(topology.neighbours != np.arange(self.nodes)[:, None])
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
