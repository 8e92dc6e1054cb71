"""Random broken links for the networks of a sweep."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..topology import Faulty, Topology

__all__ = ["break_random_links"]

#: Most random sets of links that are tried; a set that cuts nodes off is discarded.
TRIES = 200


def break_random_links(topology: Topology, count: int, seed: int) -> Faulty:
    """Return a network with random broken links, in which all nodes stay connected.

    Parameters
    ----------
    topology : Topology
        The network. It may have faults already, which stay.
    count : int
        Number of links to break.
    seed : int
        Seed of the random choice; the same seed breaks the same links.

    Raises
    ------
    InputError
        If no tried set of `count` links leaves all nodes connected.

    Examples
    --------
    The broken links are those at port +0 of node 0, port -0 of node 1, and port +1 of node 5.

    >>> from torusfabric.topology import Torus
    >>> break_random_links(Torus(4, 4), 3, seed=1)
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
        f"No {count} faults were found that leave a path between all nodes of {topology}; choose "
        "fewer faults"
    )
