"""Circuit-switched broadcast by maximum flows, on any topology.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to alpha messages in a round and receives at most one.

All messages are the same, so a round is a flow of a single commodity: up to alpha units leave each
informed node, an arc carries one unit, and each new node takes one. A maximum flow in whole units
falls apart into paths. What decides whether later rounds can be as good is where the new nodes are:
they are chosen far from each other and from the informed ones, as if these repelled them.
"""

import numpy as np

from ....collective import Collective
from ....schedule import Rounds, Switching
from ....topology import CayleyGraph, Topology, Torus, cayley
from ...algorithm import Algorithm, Options
from ...requirements import one_chunk, some_ports
from ...reversal import BROADCAST, also_backwards
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
    options : Options
        ``ports`` is alpha, ``seed`` where to start.

    Returns
    -------
    Rounds
        ceil(log_(alpha + 1) N) rounds, the lower bound of Lemma 1 of [1]_, on every torus of two or
        more dimensions on which this has been tried; there is no proof that it always is. On rings
        the messages go as in `segments`, which meets the bound.

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
    >>> import torusfabric as tf
    >>> schedule = MAX_FLOW(tf.parse_topology("6x6"), tf.parse_collective("broadcast"))
    >>> schedule.round_count  # ceil(log_5 36)
    3
    """
    root, ports = collective.root or 0, options.ports or topology.ports
    regular = isinstance(topology, CayleyGraph)  # planned for node 0, and translated
    if isinstance(topology, Torus) and len(topology.sides) == 1:
        circuits = Circuits(topology)
        axis_rounds(circuits, Grid(topology.sides), ports)
        rounds = circuits.rounds
    else:
        informed = np.arange(topology.nodes) == (0 if regular else root)
        rounds = search(Network(topology), informed, ports, options.seed)
    return Rounds(
        topology=topology,
        collective=collective,
        switching=Switching.CIRCUIT,
        ports=ports,
        transfers=translated(cayley(topology), root, rounds) if regular else tuple(rounds),
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
    options=("ports", "chunks", "seed"),
    misfit=misfit,
    plan=also_backwards(max_flow_broadcast, BROADCAST),
    any_network=True,
)
