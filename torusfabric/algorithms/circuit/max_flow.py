"""Circuit-switched broadcast by maximum flows, on any topology.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to alpha messages in a round and receives at most one.

A node is *informed* if it has the message of the broadcast; a *target* is a node that a round is to
inform. All messages are the same, so a round is a flow of a single commodity. Up to alpha units
leave each informed node, an arc carries one unit, and each new node takes one. An integral maximum
flow decomposes into paths. The positions of the new nodes decide whether later rounds can be as
good. So targets are chosen far from each other and from the informed nodes, as if all of these
repelled them.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ...collective import Collective
from ...schedule import Rounds, Switching, Transfers
from ...topology import CayleyGraph, Topology, Torus, require_cayley_graph
from ..algorithm import Algorithm, Options, port_count_reason, single_chunk_reason
from ..reversal import REVERSED_BROADCASTS, with_reversed_collectives
from .circuits import CircuitRounds, LevelGrid, ceil_log, inform_axis_by_axis, translate_rounds

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["MAX_FLOW", "FlowNetwork", "Repulsion", "max_flow_to_targets", "follow_unit",
           "search_rounds"]  # fmt: skip


class FlowNetwork:
    """A topology as a flow network: its arcs, the source (number N) and the sink (number N + 1).

    Arcs from a node to itself are left out.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology, self.nodes = topology, topology.nodes
        self.tail, self.port = np.nonzero(topology.neighbours != np.arange(self.nodes)[:, None])
        self.head = topology.neighbours[self.tail, self.port]
        self.source, self.sink = self.nodes, self.nodes + 1

    def capacity_matrix(self, supply: np.ndarray, demand: np.ndarray) -> csr_array:
        """Return the capacities of the flow network, a matrix of shape (N + 2, N + 2).

        The vertices are the N nodes, a source that supplies units, and a sink that takes them. Each
        arc carries one unit.

        Parameters
        ----------
        supply : ndarray of int, shape (nodes,)
            Units that may enter at each node from the source.
        demand : ndarray of int, shape (nodes,)
            Units that may leave at each node to the sink.
        """
        # Imported here, because the import takes longer than a plan without it.
        from scipy.sparse import coo_array, csr_array

        nodes = np.arange(self.nodes)
        tail = np.concatenate([self.tail, np.full(self.nodes, self.source), nodes])
        head = np.concatenate([self.head, nodes, np.full(self.nodes, self.sink)])
        units = np.concatenate([np.ones(len(self.tail), np.int32), supply, demand])
        shape = (self.nodes + 2, self.nodes + 2)
        return csr_array(coo_array((units.astype(np.int32), (tail, head)), shape=shape))


def decompose_flow(network: FlowNetwork, flow: csr_array) -> Transfers:
    """Return the paths of the units of a flow, as transfers.

    Each node that is informed in this round receives one unit.

    Parameters
    ----------
    network : FlowNetwork
        The arcs of the topology, with a source and a sink.
    flow : csr_array
        The net flow between each pair of nodes, source and sink included.
    """
    flow = flow.tocoo()
    ahead: list[list[int]] = [[] for _ in range(network.nodes + 2)]
    for tail, head, units in zip(flow.row, flow.col, flow.data, strict=True):
        ahead[tail].extend([int(head)] * max(int(units), 0))
    for heads in ahead:
        heads.sort()
    lines: dict[tuple[int, int], list[int]] = {}
    for tail, head, port in zip(network.tail, network.head, network.port, strict=True):
        lines.setdefault((int(tail), int(head)), []).append(int(port))
    paths = [follow_unit(ahead, start, network.sink) for start in sorted(ahead[network.source])]
    hops = [[lines[a, b].pop() for a, b in pairwise(p)] for p in paths]
    table = np.full((len(paths), max(map(len, hops))), -1, np.int16)
    for row, ports in zip(table, hops, strict=True):
        row[: len(ports)] = ports
    return Transfers(np.array([p[0] for p in paths]), table)


def follow_unit(ahead: list[list[int]], node: int, sink: int) -> list[int]:
    """Return the path of one unit of flow from a node, without cycles, and remove the unit.

    The sink has the largest number. So it is the last in the sorted list of a node, and is taken
    first: a new node keeps the first unit that arrives.

    Parameters
    ----------
    ahead : list of list of int
        For each node, the next node of each remaining unit of flow that leaves it, in ascending
        order.
    node : int
        The node at which the path starts.
    sink : int
        The node at which the flow ends.
    """
    nodes = [node]
    while True:
        node = ahead[node].pop()
        if node == sink:
            return nodes
        if node in nodes:
            nodes = nodes[: nodes.index(node)]
        nodes.append(node)


#: Number of searches, each with another seed, that are tried to reach the lower bound.
TRIES = 40

#: The relative random change of the repulsion in every try after the first.
NOISE = 0.1


def search_rounds(
    network: FlowNetwork, informed: np.ndarray, ports: int, seed: int = 0
) -> list[Transfers]:
    """Plan a broadcast in as few rounds as a search finds.

    The search is tried several times, until the number of rounds meets the lower bound.

    Parameters
    ----------
    network : FlowNetwork
        The arcs of the topology.
    informed : ndarray of bool, shape (nodes,)
        True for the nodes that have the message at first.
    ports : int
        alpha, the messages that a node may send in a round.
    seed : int
        Seed of the random changes in the tries.
    """
    first = np.minimum(ports, np.bincount(network.tail, minlength=network.nodes))[informed].sum()
    reached = int(informed.sum() + first)
    bound = int(not informed.all()) + ceil_log(Fraction(network.nodes, reached), ports)
    best, limit = [], network.nodes
    for trial in range(TRIES):
        random = np.random.default_rng([seed, trial]) if seed or trial else None
        rounds = try_search(network, informed, ports, random, limit)
        if rounds is not None:
            best, limit = rounds, len(rounds) - 1
            if len(rounds) <= bound:
                break
    return best


def try_search(
    network: FlowNetwork,
    informed: np.ndarray,
    ports: int,
    random: np.random.Generator | None,
    limit: int,
) -> list[Transfers] | None:
    """Plan a broadcast once; return None as soon as it cannot end within `limit` rounds.

    Parameters
    ----------
    network : FlowNetwork
        The arcs of the topology.
    informed : ndarray of bool, shape (nodes,)
        True for the nodes that have the message at first.
    ports : int
        alpha, the messages that a node may send in a round.
    random : numpy Generator or None
        Source of random changes in the choice of targets; None for no changes.
    limit : int
        The most rounds.
    """
    informed = informed.copy()
    repulsion = Repulsion(network.topology, random)
    for node in np.flatnonzero(informed).tolist():
        repulsion.add_node(node)
    rounds: list[Transfers] = []
    while not informed.all():
        left = limit - len(rounds)
        if int(informed.sum()) * (ports + 1) ** left < network.nodes:
            return None
        flow = max_flow_to_targets(network, informed, ports, repulsion)
        rounds.append(decompose_flow(network, flow))
        for node in rounds[-1].walk(network.topology)[:, -1].tolist():
            informed[node] = True
            repulsion.add_node(node)
    return rounds


def max_flow_to_targets(
    network: FlowNetwork, informed: np.ndarray, ports: int, repulsion: Repulsion
) -> csr_array:
    """Return a maximum flow from nodes with the message to nodes without it.

    Nodes that are far from all others are chosen as targets, and served first.

    Parameters
    ----------
    network : FlowNetwork
        The arcs of the topology.
    informed : ndarray of bool, shape (nodes,)
        True for the nodes that have the message.
    ports : int
        alpha, the messages that a node may send in a round.
    repulsion : Repulsion
        The penalties by which targets are chosen.

    Returns
    -------
    csr_array
        The net flow between each pair of nodes.
    """
    # Imported here, because the import takes longer than a plan without it.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    targets = repulsion.choose_targets(informed, ports * int(informed.sum()))
    demand = np.zeros(network.nodes, np.int32)
    demand[targets] = 1
    capacities = network.capacity_matrix(ports * informed, demand)
    first = maximum_flow(capacities, network.source, network.sink)
    goal = min(ports * int(informed.sum()), int((~informed).sum()))
    if first.flow_value == goal:
        return first.flow
    # Augmenting paths end at the sink, so that targets that are served stay served.
    opened = network.capacity_matrix(ports * informed, (~informed).astype(np.int32))
    residual = csr_array(opened - first.flow).astype(np.int32)
    residual.eliminate_zeros()
    second = maximum_flow(residual, network.source, network.sink)
    return first.flow + second.flow


class Repulsion:
    """The choice of targets: the nodes to which the next round sends, far from informed nodes.

    Informed nodes have the message. Each node has a penalty, which is higher the nearer informed
    nodes and other targets are.

    Parameters
    ----------
    random : numpy Generator or None
        Source of random changes of the penalties; None for no changes.
    """

    def __init__(self, topology: Topology, random: np.random.Generator | None) -> None:
        self.topology, self.nodes = topology, np.arange(topology.nodes)
        regular = isinstance(topology, CayleyGraph)
        away = require_cayley_graph(topology).distances if regular else topology.all_distances
        self.kernel = (away + 0.3) ** -2.0
        self.total = np.zeros(topology.nodes)
        self.bias = np.ones(topology.nodes)
        if random is not None:
            self.bias += NOISE * random.random(topology.nodes)

    def node_repulsion(self, node: int) -> np.ndarray:
        """Return the penalty that an informed node adds to each node, depending on the distance."""
        if isinstance(self.topology, CayleyGraph):
            return np.asarray(self.kernel[self.topology.subtract(self.nodes, node)])
        return np.asarray(self.kernel[node])

    def add_node(self, node: int) -> None:
        """Add the penalties of one more node that has the message."""
        self.total += self.node_repulsion(node)

    def choose_targets(self, informed: np.ndarray, count: int) -> np.ndarray:
        """Choose `count` nodes to send to, one by one, each time the node with the least penalty.

        Only nodes for which `informed` is False are chosen, those that do not have the message yet.
        """
        if count >= (~informed).sum():
            return np.flatnonzero(~informed)
        total, chosen = self.total.copy(), []
        blocked = np.where(informed, np.inf, 0.0)
        for _ in range(count):
            node = int(np.argmin(total * self.bias + blocked))
            chosen.append(node)
            blocked[node] = np.inf
            total += self.node_repulsion(node)
        return np.array(chosen)


#: The largest number of nodes. The choice of targets takes time quadratic in it: about 20 s here.
MOST_NODES = 20_000


def max_flow_broadcast(topology: Topology, collective: Collective, options: Options) -> Rounds:
    """Plan a circuit-switched broadcast on any topology, by maximum flows.

    Parameters
    ----------
    collective : Collective
        The broadcast.
    options : Options
        ``ports`` is alpha, the messages that a node may send in a round; ``seed`` is the seed of
        the search.

    Returns
    -------
    Rounds
        ceil(log_(alpha + 1) N) rounds, the lower bound of Wang, Tseng, Ni and Sheu (Lemma 1, see
        `diagonal`), on every torus of two or more dimensions on which this was tried. There is no
        proof that the bound is always met. On rings the messages are those of `segment_rounds`,
        which meet it.

    Notes
    -----
    If informed nodes can send m messages, m targets are chosen one by one. Each target is the node
    with the least sum of (d + 0.3)^-2 over all informed and chosen nodes, where d is their
    distance. A maximum flow serves as many targets as possible; then it is augmented to all
    uninformed nodes. If the result misses the bound, the search is repeated with random changes of
    the repulsion.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = MAX_FLOW(tf.parse_topology("6x6"), tf.parse_collective("broadcast"))
    >>> schedule.round_count  # ceil(log_5 36)
    3
    """
    root, ports = collective.root or 0, options.ports or topology.ports
    regular = isinstance(topology, CayleyGraph)  # planned for node 0, and translated
    if isinstance(topology, Torus) and len(topology.sides) == 1:
        circuits = CircuitRounds(topology)
        inform_axis_by_axis(circuits, LevelGrid(topology.sides), ports)
        rounds = circuits.rounds
    else:
        informed = np.arange(topology.nodes) == (0 if regular else root)
        rounds = search_rounds(FlowNetwork(topology), informed, ports, options.seed)
    return Rounds(
        topology=topology,
        collective=collective,
        switching=Switching.CIRCUIT,
        ports=ports,
        transfers=translate_rounds(require_cayley_graph(topology), root, rounds)
        if regular
        else tuple(rounds),
    )


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if topology.nodes > MOST_NODES:
        return f"at most {MOST_NODES} nodes"
    return port_count_reason(options, topology.ports) or single_chunk_reason(options)


MAX_FLOW = Algorithm(
    name="max-flow",
    source="beyond Wang, Tseng, Ni and Sheu 2001",
    summary="circuit-switched broadcast on any topology, at the lower bound wherever tried on tori",
    collectives=("broadcast", "gather", "reduce"),
    options=("ports", "chunks", "seed"),
    misfit=unsupported_reason,
    plan=with_reversed_collectives(max_flow_broadcast, REVERSED_BROADCASTS),
    most_arcs=2**14,
    any_network=True,
)
