"""Broadcast, all-gather, scatter and total exchange over the trees of necklaces.

References
----------
[1] P. Fragopoulou, S. G. Akl, "A Framework for Optimal Communication on the Multidimensional Torus
    Network", Technical Report 94-363, Queen's University, Kingston, 1994. Section 5.
"""

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from ....collective import Blocks
from ....schedule import Listed, Transfers
from .trees import Necklaces

__all__ = ["allgather", "alltoall", "broadcast", "scatter"]


def broadcast(
    necklaces: Necklaces, root: int, blocks: Blocks, latency: int = 1
) -> tuple[Transfers, ...]:
    """Send chunk m to all neighbours in step m; every node forwards at once (section 5.2).

    Parameters
    ----------
    latency : int
        Steps from arrival to departure.

    Returns
    -------
    tuple of Transfers
        The steps. Subtree i is rotated from the nodes with displacement i; M (N - 1) transfers.
    """
    topology, chunks = necklaces.topology, blocks.chunks
    tail, port = necklaces.spanning_tree
    depth = (topology.distances - 1) * latency
    steps = []
    for step in range(depth.max() + chunks):
        node = np.nonzero((depth <= step) & (step < depth + chunks) & (tail >= 0))[0]
        source = topology.add(tail[node], root)
        payload = Listed.single(blocks.encode(source, step - depth[node]))
        steps.append(Transfers(source, port[node, None].astype(np.int8), payload))
    return tuple(steps)


def allgather(necklaces: Necklaces, chunks: int, latency: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Traverse tree 0, every arc with its rotations at the same time (section 5.3).

    Parameters
    ----------
    latency : int
        Steps from arrival to departure.

    Returns
    -------
    offset, chunk : ndarray of int, shape (steps, ports)
        The columns of a `Table`.

    Notes
    -----
    A node of period P is the image of its generator under G / P rotations; each of these arcs
    carries its share of the chunks. The order is depth first; with a latency above 1 it is level by
    level, so that a parent's chunks have mostly been there for long enough.
    """
    entries = _Entries(necklaces)
    parent, port = necklaces.parents
    clock, start = 0, {0: -chunks - latency}
    for node in _depth_first(parent) if latency == 1 else necklaces.generators.tolist():
        share, first = necklaces.shares(node, chunks)
        clock = max(clock, start[parent[node]] + int(first[first < chunks].max()) + latency)
        entries.add(clock, [node], [port[node]], node, chunks, latency)
        start[node] = clock
        clock += share
    offset, chunk, _ = entries.columns()
    return offset, chunk


def _depth_first(parent: np.ndarray) -> list[int]:
    """The nodes of tree 0 in depth-first order, without its root."""
    children = defaultdict(list)
    for node in np.nonzero(parent >= 0)[0][::-1].tolist():
        children[int(parent[node])].append(node)
    stack, order = [0], []
    while stack:
        order.append(stack.pop())
        stack += children[order[-1]]
    return order[1:]


def scatter(
    necklaces: Necklaces, root: int, blocks: Blocks, latency: int = 1
) -> tuple[Transfers, ...]:
    """Send far necklaces first, over rotated routes (section 5.4).

    Parameters
    ----------
    latency : int
        Steps from arrival to departure.

    Notes
    -----
    Blocks of one necklace leave in one step by distinct ports and use distinct ports ever after.
    Others never meet them: an arc is at one distance from the root, and they left at other times.
    """
    topology, entries, clock = necklaces.topology, _Entries(necklaces), 0
    for node in necklaces.generators[::-1].tolist():
        nodes, ports = necklaces.route(node)
        entries.add(clock, nodes, ports, node, blocks.chunks, latency)
        clock += necklaces.shares(node, blocks.chunks)[0]
    step, port, node, chunk, destination = entries.arrays()
    source = topology.add(topology.subtract(node, topology.generators[port]), root)
    ids = blocks.encode(np.full_like(source, root), chunk, topology.add(destination, root))
    return tuple(
        Transfers(source[now], port[now, None].astype(np.int8), Listed.single(ids[now]))
        for now in (np.nonzero(step == number)[0] for number in range(step.max(initial=-1) + 1))
    )


def alltoall(
    necklaces: Necklaces, chunks: int, latency: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Send one block at a time down all rotated routes to a necklace (section 5.5).

    Parameters
    ----------
    latency : int
        Steps from arrival to departure; as many blocks take turns.

    Returns
    -------
    offset, chunk, destination : ndarray of int, shape (steps, ports)
        The columns of a `Table`.
    """
    entries = _Entries(necklaces)
    free = list(range(latency))
    for node in necklaces.generators[::-1].tolist():
        nodes, ports = necklaces.route(node)
        for part in range(necklaces.shares(node, chunks)[0]):
            turn = heappop(free)
            entries.add(turn, nodes, ports, node, chunks, latency, [part])
            heappush(free, turn + len(nodes) * latency)
    offset, chunk, destination = entries.columns()
    return offset, chunk, destination


class _Entries:
    """What is sent when, for node 0: a list of hops, each made with all its rotations."""

    def __init__(self, necklaces: Necklaces) -> None:
        self.necklaces = necklaces
        self.rows: list[np.ndarray] = []

    def add(
        self,
        step: int,
        nodes: Sequence[int],
        ports: Sequence[int],
        target: int,
        chunks: int,
        latency: int,
        parts: Sequence[int] | None = None,
    ) -> None:
        """Send the chunks for a node, or parts of each tree's share, in consecutive steps."""
        share, first = self.necklaces.shares(target, chunks)
        targets, _ = self.necklaces.images(target, 0)
        for hop, (node, port) in enumerate(zip(nodes, ports, strict=True)):
            images, turned = self.necklaces.images(node, port)
            for delay, part in enumerate(range(share) if parts is None else parts):
                used = first + part < chunks
                when = np.full(used.sum(), step + delay + hop * latency)
                columns = (turned, images, first + part, targets)
                self.rows.append(np.stack([when, *(column[used] for column in columns)]))

    def arrays(self) -> np.ndarray:
        """Step, port, node reached, chunk and destination of all."""
        return np.concatenate([np.empty((5, 0), dtype=np.int64), *self.rows], axis=1)

    def columns(self) -> np.ndarray:
        """Offset, chunk and destination by step and port, the columns of a `Table`."""
        step, port, *entries = self.arrays()
        shape = (3, step.max(initial=-1) + 1, self.necklaces.topology.ports)
        columns = np.full(shape, -1)
        columns[:, step, port] = entries
        return columns
