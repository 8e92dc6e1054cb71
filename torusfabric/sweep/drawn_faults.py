"""Broken links that a sweep draws: so many of a network, the same for the same seed."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..topology import Faulty, Topology

__all__ = ["draw_faults"]

#: How often links are drawn whose loss cuts nodes off, before it is given up.
TRIES = 200


def draw_faults(topology: Topology, count: int, seed: int) -> Faulty:
    """A network without so many of its links, from which no node is cut off.

    Raises
    ------
    InputError
        If it has not so many that it can do without.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> draw_faults(Torus(4, 4), 3, seed=1)
    <Faulty 4x4!0:+0,1:-0,5:+1>
    """
    random = np.random.default_rng([seed, count])
    before = len(topology.broken_links) if isinstance(topology, Faulty) else 0
    whole = topology.whole if isinstance(topology, Faulty) else topology
    arcs = np.argwhere(topology.linked)
    for _ in range(TRIES if count <= len(arcs) else 0):
        chosen = arcs[random.choice(len(arcs), count, replace=False)].tolist()
        if isinstance(topology, Faulty):
            chosen = [(int(topology.kept[node]), port) for node, port in chosen]
        try:
            found = Faulty(topology, [f"{node}:{whole.port_names[port]}" for node, port in chosen])
        except InputError:
            continue
        if len(found.broken_links) == before + count:
            return found
    raise InputError(
        f"Faults of a sweep must leave a path from each node to every other, not be {count} of "
        f"{topology}"
    )
