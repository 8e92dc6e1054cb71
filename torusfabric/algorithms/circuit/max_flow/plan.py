"""Circuit-switched broadcast by maximum flows, on any topology and around broken links.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to alpha messages in a round and receives at most one.

All messages are the same, so a round is a flow of a single commodity: up to alpha units leave each
informed node, an arc carries one unit, and each new node takes one. A maximum flow in whole units
falls apart into paths. What decides whether later rounds can be as good is where the new nodes are:
they are chosen far from each other and from the informed ones, as if these repelled them.
"""

from collections.abc import Iterable

import numpy as np

from ....collective import Collective
from ....errors import InputError
from ....schedule import Rounds, Switching
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options
from ...requirements import one_chunk, some_ports
from ...reversal import from_broadcast
from ..circuits import Circuits, Grid, translated
from ..diagonal.square import axis_rounds
from .network import Network
from .search import search

__all__ = ["MAX_FLOW", "max_flow_broadcast"]

#: Choosing targets takes time quadratic in the number of nodes: about 20 s for this many.
MOST_NODES = 20_000


def max_flow_broadcast(topology: Topology, collective: Collective, options: Options) -> Rounds:
    """Plan a broadcast by maximum flows.

    Parameters
    ----------
    topology : Topology
        Any.
    collective : Collective
        Broadcast from any root.
    options : Options
        ``ports`` is alpha, ``seed`` where to start, ``broken_links`` what to avoid.

    Returns
    -------
    Rounds
        ceil(log_(alpha + 1) N) rounds, the lower bound of Lemma 1 of [1]_, on every torus of two or
        more dimensions on which this has been tried; there is no proof that it always is. On rings
        the messages go as in `segments`, which meets the bound.

    Raises
    ------
    InputError
        If a broken link does not exist or if broken links cut off a node.

    Notes
    -----
    As many targets as there are messages are chosen one by one, each where the sum over all
    informed and chosen nodes at distance d of (d + 0.3)^-2 is least. A maximum flow serves as many
    of them as possible; it is then augmented to all uninformed nodes. Where this misses the bound,
    it is tried again with random changes to the repulsion.

    References
    ----------
    .. [1] S.-Y. Wang, Y.-C. Tseng, S.-Y. Ni, J.-P. Sheu, "Circuit-switched broadcasting in
       multi-port multi-dimensional torus networks", The Journal of Supercomputing 20, 2001.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import parse_topology
    >>> schedule = MAX_FLOW(parse_topology("6x6"), parse_collective("broadcast"))
    >>> schedule.round_count  # ceil(log_5 36)
    3
    """
    root, ports = collective.root or 0, options.ports or topology.ports
    network = network_from(topology, root, options.broken_links)
    if isinstance(topology, Torus) and len(topology.sides) == 1 and not options.broken_links:
        circuits = Circuits(topology)
        axis_rounds(circuits, Grid(topology.sides), ports)
        rounds = circuits.rounds
    else:
        rounds = search(network, np.arange(topology.nodes) == 0, ports, options.seed)
    return Rounds(
        topology=topology,
        collective=collective,
        algorithm="max-flow",
        switching=Switching.CIRCUIT,
        ports=ports,
        transfers=translated(topology, root, rounds),
        broken_links=named_once(topology, options.broken_links),
    )


def network_from(topology: Topology, root: int, broken_links: Iterable[tuple[int, int]]) -> Network:
    """The arcs that are in order, translated so that the root is node 0.

    Raises
    ------
    InputError
        If a broken link does not exist or if broken links cut off a node.
    """
    broken_links = list(broken_links)
    check_broken(topology, broken_links)
    network = Network(topology, [(int(topology.subtract(v, root)), p) for v, p in broken_links])
    missing = network.cut_off()
    if len(missing):
        node = int(topology.add(missing, root).min())
        raise InputError(
            f"Broken links must leave a path from node {root} to every node, "
            f"not cut off node {node} {topology.node_name(node)}"
        )
    return network


def named_once(
    topology: Topology, broken_links: Iterable[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """Links in order, each by the lower of its two ends."""
    ends = (
        ((node, port), (int(topology.neighbours[node, port]), int(topology.opposite[port])))
        for node, port in broken_links
    )
    return tuple(sorted({min(pair) for pair in ends}))


def check_broken(topology: Topology, broken_links: Iterable[tuple[int, int]]) -> None:
    """Raise `InputError` if a broken link does not exist."""
    for node, port in broken_links:
        if not (0 <= node < topology.nodes and 0 <= port < topology.ports):
            raise InputError(
                f"Broken link must be a node from 0 to {topology.nodes - 1} and a port from 0 to "
                f"{topology.ports - 1}, not {node}, {port}"
            )


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Which topology and options are needed, or None."""
    if topology.nodes > MOST_NODES:
        return f"at most {MOST_NODES} nodes"
    return some_ports(options, topology.ports) or one_chunk(options)


MAX_FLOW = Algorithm(
    name="max-flow",
    source="beyond Wang, Tseng, Ni and Sheu 2001",
    summary="circuit-switched broadcast on any topology, at the lower bound wherever tried on tori",
    collectives=("broadcast", "gather", "reduce"),
    options=("ports", "chunks", "seed", "broken_links"),
    misfit=misfit,
    plan=from_broadcast(max_flow_broadcast),
)
