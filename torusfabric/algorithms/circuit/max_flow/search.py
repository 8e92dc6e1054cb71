"""The rounds of a broadcast, each a maximum flow from informed nodes to chosen targets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ....schedule import Transfers
from ....topology import CayleyGraph, Topology, cayley
from ..segments import clog
from .network import Network, transfers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Repulsion", "best_flow", "search"]

#: How often to start again, with another seed, where the lower bound has been missed.
TRIES = 40

#: How strongly a try after the first departs from the plain repulsion.
NOISE = 0.1


def search(network: Network, informed: np.ndarray, ports: int, seed: int = 0) -> list[Transfers]:
    """The rounds of the first try that meets the bound, or the fewest of all tries.

    Parameters
    ----------
    informed : ndarray of bool, shape (nodes,)
        The nodes that are informed at first.
    ports : int
        How many messages a node may send in a round.
    seed : int
        Where to start.
    """
    first = np.minimum(ports, np.bincount(network.tail, minlength=network.nodes))[informed].sum()
    reached = int(informed.sum() + first)
    bound = int(not informed.all()) + clog(Fraction(network.nodes, reached), ports)
    best, limit = [], network.nodes
    for trial in range(TRIES):
        random = np.random.default_rng([seed, trial]) if seed or trial else None
        rounds = attempt(network, informed, ports, random, limit)
        if rounds is not None:
            best, limit = rounds, len(rounds) - 1
            if len(rounds) <= bound:
                break
    return best


def attempt(
    network: Network,
    informed: np.ndarray,
    ports: int,
    random: np.random.Generator | None,
    limit: int,
) -> list[Transfers] | None:
    """The rounds of one try, or None as soon as it cannot do with the limit."""
    informed = informed.copy()
    repulsion = Repulsion(network.topology, random)
    for node in np.flatnonzero(informed).tolist():
        repulsion.add(node)
    rounds: list[Transfers] = []
    while not informed.all():
        left = limit - len(rounds)
        if int(informed.sum()) * (ports + 1) ** left < network.nodes:
            return None
        flow = best_flow(network, informed, ports, repulsion)
        rounds.append(transfers(network, flow))
        for node in rounds[-1].walk(network.topology)[:, -1].tolist():
            informed[node] = True
            repulsion.add(node)
    return rounds


def best_flow(
    network: Network, informed: np.ndarray, ports: int, repulsion: Repulsion
) -> csr_array:
    """A maximum flow from informed to uninformed nodes that serves chosen targets first.

    Returns
    -------
    csr_array
        The net flow between each pair of nodes.
    """
    # Imported here, since that takes longer than a plan that does without it.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    targets = repulsion.targets(informed, ports * int(informed.sum()))
    demand = np.zeros(network.nodes, np.int32)
    demand[targets] = 1
    capacities = network.capacities(ports * informed, demand)
    first = maximum_flow(capacities, network.source, network.sink)
    goal = min(ports * int(informed.sum()), int((~informed).sum()))
    if first.flow_value == goal:
        return first.flow
    # Augmenting paths end at the sink, so that targets that are served stay served.
    opened = network.capacities(ports * informed, (~informed).astype(np.int32))
    residual = csr_array(opened - first.flow).astype(np.int32)
    residual.eliminate_zeros()
    second = maximum_flow(residual, network.source, network.sink)
    return first.flow + second.flow


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
