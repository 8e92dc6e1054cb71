"""Circuit-switched broadcast on the arrowhead torus, over forests.

Rules of the model:

* circuit switching: in a round a message is sent along a path of links held for that round;
* 3-port: a node sends at most three messages a round, or 6-port: at most six;
* half duplex suffices: no link is used twice in a round, in whichever direction.

Source: Dominique Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827,
1996, section 3.
"""

import numpy as np

from ...schedule import Listed, Rounds, Switching, Transfers
from ...topology import Arrowhead
from ..algorithm import Algorithm

__all__ = ["WORMHOLE_FOREST"]


def _misfit(topology, collective, options):
    if not isinstance(topology, Arrowhead):
        return "an arrowhead torus"
    if options.ports not in (None, 3, 6):
        return "--ports 3 or 6"
    halves = (options.ports or 6) // 3
    if options.chunks not in (None, halves):
        return f"--chunks {halves} at {3 * halves} ports"
    return None


def _plan(topology, collective, options):
    """The forests of Lemma 1, or the two forests of Lemma 3, from the root.

    Notes
    -----
    n rounds on the arrowhead of order n; the longest paths of all rounds have 2^n - 1 hops in sum
    (Proposition 2, Corollary 4). On six ports the two halves of the message travel at the same
    time, one in the directions N, SW, SE and the other in S, NE, NW.
    """
    ports = options.ports or 6
    rounds = [_round(topology, collective.root, ports, p) for p in range(1, topology.order + 1)]
    return Rounds(
        topology=topology,
        collective=collective,
        algorithm="wormhole-forest",
        switching=Switching.CIRCUIT,
        ports=ports,
        chunks=ports // 3,
        duplex=options.duplex,
        transfers=tuple(rounds),
    )


def _round(topology, root, ports, p):
    """Round p: every informed node sends 2^(n-p) hops straight, the first half N, SW and SE."""
    reach = topology.order - p
    informed = np.arange(4 ** (p - 1)) * 4 ** (reach + 1)
    source, port = np.meshgrid(topology.add(informed, root), np.arange(ports), indexing="ij")
    hops = np.repeat(port.reshape(-1, 1).astype(np.int8), 2**reach, axis=1)
    return Transfers(source.ravel(), hops, Listed.single(port.ravel() // 3))


WORMHOLE_FOREST = Algorithm(
    name="wormhole-forest",
    source="Deserable 1996, section 3",
    summary="n rounds on an arrowhead of 4^n nodes, 3 or 6 ports, half duplex",
    collectives=("broadcast",),
    options=("ports", "chunks", "duplex"),
    misfit=_misfit,
    plan=_plan,
)
