"""All-gather of whole messages by fixed forwarding.

Model: store-and-forward, full duplex, all ports, one hop a step, nothing stored on the way. A
message is not cut: on a torus of d axes it runs both ways along cycles of which each visits little
more than every d-th node and passes all others by.
"""

import numpy as np

from ....collective import Collective
from ....schedule import Pattern
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options
from ...requirements import every_port
from .completion import completion
from .four_axes import feeds_4d, roles_4d
from .three_axes import feeds_3d, roles_3d
from .two_axes import feeds_2d

__all__ = ["ONE_PACKET"]

FEEDS = {2: feeds_2d, 3: feeds_3d, 4: feeds_4d}


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """What the algorithm needs and does not get, or None."""
    if not isinstance(topology, Torus) or len(topology.sides) not in FEEDS:
        return "a torus of two, three or four axes"
    if len(topology.sides) == 3 and not any(roles_3d(topology.sides)):
        return "two sides that are multiples of 3 and a third of at least 3"
    if len(topology.sides) == 4 and not any(roles_4d(topology.sides)):
        return (
            "two sides that are multiples of 4, an even one and a fourth of at least 4, "
            "on which the laps close to one cycle"
        )
    return every_port(options, topology.ports)


def plan(topology: Torus, collective: Collective, options: Options) -> Pattern:
    """Plan an all-gather in N / (2 d) steps and some, in the best order of axes.

    Parameters
    ----------
    topology : Torus
        N nodes, d = 2, 3 or 4 axes; see `misfit` for its sides.

    Returns
    -------
    Pattern
        Of one chunk.

    Notes
    -----
    The number of steps is found by tracing what each node receives. It exceeds the least possible,
    (N - 1) / (2 d), by O(n1 + n2) on two axes and by O(n1 n2 + n1 n3) on three.

    References
    ----------
    .. [1] U. Meyer and J. F. Sibeyn, "Oblivious gossiping on tori", J. Algorithms 42 (2002),
       section 4.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = ONE_PACKET(tf.parse_topology("6x6"), tf.parse_collective("allgather"))
    >>> schedule.round_count, (36 - 1) / 4
    (17, 8.75)
    """
    best, steps = None, None
    for feed in FEEDS[len(topology.sides)](topology.sides):
        found = completion(topology, feed, None if steps is None else steps - 1)
        if found is not None:
            best, steps = feed, found
    if best is None or steps is None:
        raise AssertionError(f"no feed completes on {topology}")
    return Pattern(
        topology=topology,
        collective=collective,
        steps=steps,
        feed=best,
        inject=np.zeros_like(best),
    )


ONE_PACKET = Algorithm(
    name="one-packet",
    source="Meyer & Sibeyn 2002, section 4",
    summary="whole messages along d cycles that each pass by every node, by fixed forwarding",
    collectives=("allgather",),
    options=("ports",),
    misfit=misfit,
    plan=plan,
)
