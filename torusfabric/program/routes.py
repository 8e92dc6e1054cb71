"""Where waves put blocks: the positions of in-arcs and origins on their flows.

All that arrives at an in-port comes along one flow. On a flow of length m, what a node receives
in step t over the in-arc with index i was injected at index ``i - t + 1`` (modulo m). So the step
in which a block arrives is a difference of two numbers, one for the node and one for the origin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..topology import BoolArray, IntArray

if TYPE_CHECKING:
    from ..schedule import Pattern
    from ..schedule.flows import Flows

__all__ = ["Route", "routes_of"]


@dataclass(frozen=True, eq=False)
class Route:
    """One way by which blocks of one chunk reach nodes.

    Parameters
    ----------
    chunk : int
    length : int
        Length of the flow, or 0 where it does not close.
    position : ndarray of int, shape (nodes,)
        Index of a node's in-arc on the flow, -1 for none.
    port : ndarray of int, shape (nodes,)
        The in-port of that arc.
    entry : ndarray of int, shape (nodes,)
        Index of the arc by which an origin injects the chunk, -1 for none.
    tail : ndarray of int, shape (nodes,)
        Steps after which a node's in-arc carries the flow; before, it carries what was injected
        on the way from the flow to the node.
    """

    chunk: int
    length: int
    position: IntArray
    port: IntArray
    entry: IntArray
    tail: IntArray

    def step(self, nodes: IntArray, origin: IntArray, chunk: IntArray) -> IntArray:
        """The step in which blocks arrive, elementwise; 0 where they never do on this route."""
        position, entry = self.position[nodes], self.entry[origin]
        step = position - entry
        step = step % self.length + 1 if self.length else step + 1
        there = (position >= 0) & (entry >= 0) & (chunk == self.chunk)
        return np.where(there & (step > self.tail[nodes]), step, 0)


def routes_of(pattern: Pattern, flows: Flows) -> list[Route]:
    """All routes of an oblivious schedule.

    Parameters
    ----------
    pattern : Pattern
    flows : Flows

    Returns
    -------
    list of Route

    Examples
    --------
    A ring of four in both directions: two flows, along each of which every node receives.

    >>> import torusfabric as tf
    >>> from torusfabric.schedule.flows import Flows
    >>> pattern = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> routes = routes_of(pattern, Flows.of(pattern))
    >>> len(routes), routes[0].length
    (4, 9)
    """
    topology = pattern.topology
    ports = np.arange(topology.ports)
    upstream = topology.neighbours, np.broadcast_to(topology.opposite, topology.neighbours.shape)
    arriving, index = flows.flow[upstream], flows.index[upstream]
    tail = _tails(pattern, flows)[upstream]
    routes = []
    for flow, length in enumerate(flows.length.tolist()):
        positions = list(_ranked(arriving == flow, ports, index, tail))
        # Where chains branch, what is injected above the branch is on each of them.
        along = np.zeros(pattern.inject.shape, bool)
        along.ravel()[flows.arcs[flows.indptr[flow] : flows.indptr[flow + 1]]] = True
        for chunk in np.unique(pattern.inject[along & (pattern.inject >= 0)]).tolist():
            for _, entry in _ranked(along & (pattern.inject == chunk), ports, flows.index):
                routes += [
                    Route(chunk, length, position, port, entry, late)
                    for port, position, late in positions
                ]
    return routes


def _tails(pattern: Pattern, flows: Flows) -> IntArray:
    """Steps in which each arc does not carry its flow yet.

    An arc that leaves a flow carries it from the first step on if it injects what the next arc of
    the flow injects.
    """
    tail = np.array(flows.tail)
    nodes, ports = np.nonzero(tail == 1)
    fed_alike = pattern.feed[nodes] == pattern.feed[nodes, ports][:, None]
    twin = (fed_alike & flows.on_cycle[nodes]).argmax(axis=1)
    same = pattern.inject[nodes, ports] == pattern.inject[nodes, twin]
    tail[nodes[same], ports[same]] = 0
    return tail


def _ranked(
    chosen: BoolArray, ports: IntArray, *values: IntArray
) -> Iterator[tuple[IntArray, ...]]:
    """Split a choice of a few arcs a node into arrays of at most one arc a node.

    Yields
    ------
    port, *values : ndarray of int, shape (nodes,)
        Of the first chosen arc of each node, then of the second, ..; port 0 and values -1 for none.
    """
    rank = np.cumsum(chosen, axis=1) * chosen
    for k in range(1, int(rank.max(initial=0)) + 1):
        this = rank == k
        found = this.any(axis=1)
        yield (
            (this * ports).sum(axis=1),
            *(np.where(found, (this * value).sum(axis=1), -1) for value in values),
        )
