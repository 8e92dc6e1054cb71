"""The rounds of a broadcast, each a maximum flow from informed nodes to chosen targets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ....schedule import Transfers
from ..segments import clog
from .network import Network, transfers
from .targets import Repulsion

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["best_flow", "search"]

#: How often to start again, with another seed, where the lower bound has been missed.
TRIES = 40


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
