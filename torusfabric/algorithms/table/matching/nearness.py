"""Which nodes an all-gather should reach first."""

import numpy as np

from ....topology import CayleyGraph

__all__ = ["nearness"]


def nearness(topology: CayleyGraph) -> np.ndarray:
    """A number for each node, the less the sooner it should be reached.

    Near nodes come first, and of those at one distance the ones with most neighbours farther away.

    Returns
    -------
    ndarray of float, shape (nodes,)
        The distance from node 0, less a part of a hop.
    """
    distance = topology.distances
    farther = (distance[topology.neighbours] > distance[:, None]).sum(axis=1)
    return np.asarray(distance - farther / (topology.ports + 1))
