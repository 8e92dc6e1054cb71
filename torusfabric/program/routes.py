"""Where waves put blocks: the places of in-arcs and origins on their streams.

All that arrives at an in-port comes along one stream. On a stream of length m, what a node receives
in step t over the in-arc with index i was injected at index ``i - t + 1`` (modulo m). So the step
in which a block arrives is a difference of two numbers, one for the node and one for the origin.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Route", "routes_of"]


@dataclass(frozen=True, eq=False)
class Route:
    """One way by which blocks of one chunk reach nodes.

    Parameters
    ----------
    chunk : int
    length : int
        Length of the stream, or 0 where it does not close.
    position : ndarray of int, shape (nodes,)
        Index of a node's in-arc on the stream, -1 for none.
    port : ndarray of int, shape (nodes,)
        The in-port of that arc.
    entry : ndarray of int, shape (nodes,)
        Index of the arc by which an origin injects the chunk, -1 for none.
    tail : ndarray of int, shape (nodes,)
        Steps after which a node's in-arc carries the stream; before, it carries what was injected
        on the way from the stream to the node.
    """

    chunk: int
    length: int
    position: np.ndarray
    port: np.ndarray
    entry: np.ndarray
    tail: np.ndarray

    def step(self, nodes, origin, chunk):
        """The step in which blocks arrive, elementwise; 0 where they never do on this route."""
        position, entry = self.position[nodes], self.entry[origin]
        step = position - entry
        step = step % self.length + 1 if self.length else step + 1
        there = (position >= 0) & (entry >= 0) & (chunk == self.chunk)
        return np.where(there & (step > self.tail[nodes]), step, 0)


def routes_of(pattern, streams):
    """All routes of an oblivious schedule.

    Parameters
    ----------
    pattern : Pattern
    streams : Streams

    Returns
    -------
    list of Route
    """
    topology = pattern.topology
    ports = np.arange(topology.ports)
    upstream = topology.neighbours, np.broadcast_to(topology.opposite, topology.neighbours.shape)
    arriving, index = streams.stream[upstream], streams.index[upstream]
    tail = _tails(pattern, streams)[upstream]
    injects = np.where(streams.on_cycle | (streams.length[streams.stream] == 0), pattern.inject, -1)
    routes = []
    for stream, length in enumerate(streams.length.tolist()):
        positions = list(_ranked(arriving == stream, ports, index, tail))
        for chunk in np.unique(injects[(streams.stream == stream) & (injects >= 0)]).tolist():
            entering = (streams.stream == stream) & (injects == chunk)
            for _, entry in _ranked(entering, ports, streams.index):
                routes += [
                    Route(chunk, length, position, port, entry, late)
                    for port, position, late in positions
                ]
    return routes


def _tails(pattern, streams):
    """Steps in which each arc does not carry its stream yet.

    An arc that leaves a stream carries it from the first step on if it injects what the next arc of
    the stream injects.
    """
    tail = np.array(streams.tail)
    nodes, ports = np.nonzero(tail == 1)
    fed_alike = pattern.feed[nodes] == pattern.feed[nodes, ports][:, None]
    twin = (fed_alike & streams.on_cycle[nodes]).argmax(axis=1)
    same = pattern.inject[nodes, ports] == pattern.inject[nodes, twin]
    tail[nodes[same], ports[same]] = 0
    return tail


def _ranked(chosen, ports, *values):
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
