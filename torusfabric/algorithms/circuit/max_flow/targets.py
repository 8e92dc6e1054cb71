"""Which nodes a round should reach: far from each other and from the informed ones."""

from __future__ import annotations

import numpy as np

from ....topology import CayleyGraph, Topology, cayley

__all__ = ["Repulsion"]

#: How strongly a try after the first departs from the plain repulsion.
NOISE = 0.1


class Repulsion:
    """How little each node is wanted as a target: less, the nearer it is to informed nodes.

    Parameters
    ----------
    random : numpy Generator or None
        Where random changes come from.
    """

    def __init__(self, topology: Topology, random: np.random.Generator | None) -> None:
        self.topology, self.nodes = topology, np.arange(topology.nodes)
        regular = isinstance(topology, CayleyGraph)
        away = cayley(topology).distances if regular else topology.all_distances
        self.kernel = (away + 0.3) ** -2.0
        self.total = np.zeros(topology.nodes)
        self.bias = np.ones(topology.nodes)
        if random is not None:
            self.bias += NOISE * random.random(topology.nodes)

    def around(self, node: int) -> np.ndarray:
        """What a node adds to all others."""
        if isinstance(self.topology, CayleyGraph):
            return np.asarray(self.kernel[self.topology.subtract(self.nodes, node)])
        return np.asarray(self.kernel[node])

    def add(self, node: int) -> None:
        """Let a node repel from now on."""
        self.total += self.around(node)

    def targets(self, informed: np.ndarray, count: int) -> np.ndarray:
        """Choose targets among the nodes that are not informed."""
        if count >= (~informed).sum():
            return np.flatnonzero(~informed)
        total, chosen = self.total.copy(), []
        blocked = np.where(informed, np.inf, 0.0)
        for _ in range(count):
            node = int(np.argmin(total * self.bias + blocked))
            chosen.append(node)
            blocked[node] = np.inf
            total += self.around(node)
        return np.array(chosen)
