"""Oblivious all-gathers of whole messages: how a pattern is turned, and how long it takes.

Every node injects its message on all its ports in step 1, and forwards by a fixed `feed` from then
on.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from ....topology import Torus

__all__ = ["completion", "turn"]

#: Bytes used at a time to note who has which message.
MEMORY = 64_000_000


def turn(feed: np.ndarray, sides: Sequence[int], axes: Sequence[int]) -> np.ndarray:
    """A feed made for sides in another order.

    Parameters
    ----------
    feed : ndarray of int, shape (nodes, ports)
        Made for sides ``[sides[axis] for axis in axes]``.
    sides : sequence of int
        Of the torus that the result is for.
    """
    ports = np.array([2 * axis + sign for axis in axes for sign in (0, 1)])
    named = np.empty_like(feed)
    named[:, ports] = ports[feed]
    table = named.reshape(*(sides[axis] for axis in axes), -1)
    order = [list(axes).index(axis) for axis in range(len(sides))]
    turned: np.ndarray = table.transpose(*order, len(sides)).reshape(feed.shape)
    return turned.astype(np.int8)


def completion(torus: Torus, feed: np.ndarray, limit: int | None = None) -> int | None:
    """The number of steps after which every node has every message.

    Nodes that a translation maps onto each other without changing the feed take equally long, so
    that one of them is followed: the arcs whose injections arrive there are traced back.

    Parameters
    ----------
    feed : ndarray of int, shape (nodes, ports)
    limit : int, optional
        Give up after this many steps; by default when messages must have come round.

    Returns
    -------
    int or None
        None if it takes more steps than the limit.
    """
    ports = np.arange(torus.ports)
    feeder = torus.neighbours[np.arange(len(feed))[:, None], feed] * torus.ports
    feeder = (feeder + torus.opposite[feed]).ravel()
    chosen = one_of_each_orbit(torus, feed)
    limit = feed.size if limit is None else limit
    longest = 0
    for nodes in np.array_split(chosen, math.ceil(len(chosen) * len(feed) / MEMORY)):
        arcs = torus.neighbours[nodes] * torus.ports + torus.opposite[ports]
        steps = trace(nodes, arcs, feeder, torus.ports, limit)
        if steps is None:
            return None
        longest = max(longest, steps)
    return longest


def trace(
    nodes: np.ndarray, arcs: np.ndarray, feeder: np.ndarray, ports: int, limit: int
) -> int | None:
    """The steps that some nodes take, whose in-ports are the ends of given arcs."""
    rows, count = np.arange(len(nodes)), len(feeder) // ports
    held = np.zeros((len(nodes), count), bool)
    held[rows, nodes] = True
    missing = np.full(len(nodes), count - 1)
    step = 0
    while missing.any():
        if step == limit:
            return None
        for origin in arcs.T // ports:
            missing -= ~held[rows, origin]
            held[rows, origin] = True
        arcs = feeder[arcs]
        step += 1
    return step


def one_of_each_orbit(torus: Torus, feed: np.ndarray) -> np.ndarray:
    """One node for each orbit of the translations that leave a feed unchanged."""
    sides, axes = torus.sides, tuple(range(len(torus.sides)))
    shifts = set(product((-1, 0, 1), repeat=len(sides)))
    for axis, side in enumerate(sides):
        shifts |= {
            (*(0,) * axis, step, *(0,) * (len(sides) - axis - 1))
            for step in range(1, side)
            if side % step == 0
        }
    table = feed.reshape(*sides, -1)
    nodes = np.arange(torus.nodes).reshape(sides)
    links = [
        np.roll(nodes, shift, axes).ravel()
        for shift in sorted(shifts)
        if (np.roll(table, shift, axes) == table).all()
    ]
    # Imported here, since that takes longer than a plan that does without it.
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ends = np.tile(nodes.ravel(), len(links)), np.concatenate(links)
    graph = coo_matrix((np.ones(len(ends[0]), np.int8), ends), (torus.nodes,) * 2)
    _, orbit = connected_components(graph, directed=False)
    return np.unique(orbit, return_index=True)[1]
