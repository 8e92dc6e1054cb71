"""Circuit-switched broadcast on the arrowhead torus, over forests.

In each round, every node that has the message sends it along straight paths, by three or six ports.

Rules of the model:

* circuit switching: in a round a message travels along a path of links that is held for that round;
* a node sends at most three messages a round (3-port), or at most six (6-port);
* half duplex suffices: no link is used twice in a round, in either direction.

Source: Dominique Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827,
1996, section 3.
"""

import numpy as np

from ...collective import Collective
from ...schedule import Listed, Rounds, Switching, Transfers
from ...topology import Arrowhead, Topology
from ..algorithm import Algorithm, Options

__all__ = ["WORMHOLE_FOREST"]


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if not isinstance(topology, Arrowhead):
        return "an arrowhead torus"
    if options.ports not in (None, 3, 6):
        return "--ports 3 or 6"
    halves = (options.ports or 6) // 3
    if options.chunks not in (None, halves):
        return f"--chunks {halves} at {3 * halves} ports"
    return None


def plan(topology: Arrowhead, collective: Collective, options: Options) -> Rounds:
    """Plan a circuit-switched broadcast on an arrowhead torus, in n rounds for 4^n nodes.

    In each round, every node that has the message sends it straight along three ports. With six
    ports, one half of the message goes over three of them, and the other half over the other three.
    (Forests of Lemma 1, or the two forests of Lemma 3.)

    Parameters
    ----------
    options : Options
        ``ports``: 3; or 6, with half of the message on each three ports.

    Returns
    -------
    Rounds
        n rounds. With 3 ports no schedule has fewer, because each informed node informs at most
        three others in a round.

    Notes
    -----
    On the arrowhead of order n, the longest paths of all rounds have 2^n - 1 hops in sum
    (Proposition 2, Corollary 4). With six ports the two halves of the message travel at the same
    time: one in the directions N, SW, SE and the other in S, NE, NW.

    Examples
    --------
    On 64 nodes (order 3), the paths of the three rounds have 4, 2 and 1 hops:

    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import parse_topology
    >>> schedule = WORMHOLE_FOREST(parse_topology("arrowhead:3"), parse_collective("broadcast"))
    >>> [transfers.hops.shape[1] for transfers in schedule.rounds()]
    [4, 2, 1]
    """
    ports = options.ports or 6
    rounds = [
        _forest_round(topology, collective.root or 0, ports, p)
        for p in range(1, topology.order + 1)
    ]
    return Rounds(
        topology=topology,
        collective=collective,
        switching=Switching.CIRCUIT,
        ports=ports,
        chunks=ports // 3,
        duplex=options.duplex,
        transfers=tuple(rounds),
    )


def _forest_round(topology: Arrowhead, root: int, ports: int, p: int) -> Transfers:
    """Return round p, in which every node that has the message sends it over 2^(n-p) hops.

    The paths are straight. The first half of the message uses the ports N, SW and SE; with 6
    `ports`, the second half uses the others. `root` is the root of the broadcast, and n the order
    of the arrowhead.
    """
    left = topology.order - p
    informed = np.arange(4 ** (p - 1)) * 4 ** (left + 1)
    source, port = np.meshgrid(topology.add(informed, root), np.arange(ports), indexing="ij")
    hops = np.repeat(port.reshape(-1, 1).astype(np.int8), 2**left, axis=1)
    return Transfers(source.ravel(), hops, Listed.single(port.ravel() // 3))


WORMHOLE_FOREST = Algorithm(
    name="wormhole-forest",
    source="Deserable 1996, section 3",
    summary="n rounds on an arrowhead of 4^n nodes, 3 or 6 ports, half duplex",
    collectives=("broadcast",),
    options=("ports", "chunks", "duplex"),
    misfit=unsupported_reason,
    plan=plan,
)
