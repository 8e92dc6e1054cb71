"""Collectives on k-ary n-cubes from rotated trees (Fragopoulou and Akl).

Model: store-and-forward, all-port, full duplex, one block a port and step. A block that arrives in
step ``t`` may leave from step ``t + latency`` on. A message is cut into M chunks. Let G be the
number of ports: 2 n, or n for k = 2, where the two directions of an axis count as one port. With
latency 1 the steps are

============== ==============================================================================
broadcast      M + n floor(k / 2) - 1
allgather      M (N - 1) / G
scatter        M (N - 1) / G
alltoall       M n k^(n+1) / (4 G) for even k, M n (k^2 - 1) k^(n-1) / (4 G) for odd k
gather         M (N - 1) / G, a scatter in reverse
reduce         M + n floor(k / 2) - 1, a broadcast in reverse
reduce-scatter M (N - 1) / G, an all-gather in reverse
allreduce      2 M (N - 1) / G, a reduce-scatter and an all-gather
============== ==============================================================================

In an all-reduce, M is the number of chunks of the part that a node owns. Except for broadcast and
reduce, these counts hold if M is a multiple of the odd part of n (odd k), of 2 n (even k >= 4) or
of n (k = 2). M = 1 suffices if k is odd and n a power of 2. The default for M is the smallest such
number, and 1 for broadcast and reduce. With other M, a necklace whose blocks cannot be shared
evenly leaves some ports idle in one step.

References
----------
[1] P. Fragopoulou, S. G. Akl, "A Framework for Optimal Communication on the Multidimensional Torus
    Network", Technical Report 94-363, Queen's University, Kingston, 1994. Section 5.
"""

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from ....collective import Blocks, Collective
from ....schedule import Rounds, Table, Transfers
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options, all_ports_reason, chunk_multiple_reason
from ...reversal import with_reversed_collectives
from ..build import build_table, chunks_per_owner
from .trees import Necklaces

__all__ = ["NECKLACE"]


def plan_broadcast(
    necklaces: Necklaces, root: int, blocks: Blocks, latency: int = 1
) -> tuple[Transfers, ...]:
    """Plan a broadcast over a tree from each port of the root (section 5.2).

    The root sends chunk m to all neighbours in step m; every node forwards a chunk in the next
    step.

    Parameters
    ----------
    necklaces : Necklaces
        The torus with its necklaces and trees.
    root : int
        The root of the broadcast.
    blocks : Blocks
        The blocks of the broadcast.
    latency : int
        Steps from the arrival of a block to its earliest departure.

    Returns
    -------
    tuple of Transfers
        The transfers of each step. With M chunks and N nodes, all steps together have M (N - 1)
        transfers.
    """
    topology, chunks = necklaces.topology, blocks.chunks
    tail, port = necklaces.spanning_tree
    node = np.repeat(np.flatnonzero(tail >= 0), chunks)
    chunk = np.tile(np.arange(chunks), len(node) // chunks)
    source = topology.add(tail[node], root)
    step = (topology.distances[node] - 1) * latency + chunk
    return Transfers.by_step(step, source, port[node], blocks.encode(source, chunk))


def plan_allgather(
    necklaces: Necklaces, chunks: int, latency: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Plan an all-gather from the tree of node 0 and its rotations (section 5.3).

    A rotation maps the torus onto itself and each port onto another one. Each arc of the tree is
    used at the same time as all its rotations, which have different ports.

    Parameters
    ----------
    necklaces : Necklaces
        The torus with its necklaces and trees.
    chunks : int
        Number of chunks of a message.
    latency : int
        Steps from the arrival of a block to its earliest departure.

    Returns
    -------
    offset, chunk : ndarray of int, shape (steps, ports)
        The columns of a `Table`: for each step and port, the node that a block of node 0 reaches,
        and its chunk; -1 for an idle port.

    Notes
    -----
    A node of period P is the image of its generator under G / P rotations, and each of these G / P
    arcs carries its share of the chunks. The order is depth first. With a latency above 1 it is
    level by level, so that a parent has mostly had its chunks for long enough.
    """
    entries = _RotatedHops(necklaces)
    parent, port = necklaces.tree_parents
    clock, start = 0, {0: -chunks - latency}
    for node in _depth_first_nodes(parent) if latency == 1 else necklaces.generators.tolist():
        share, first = necklaces.chunk_shares(node, chunks)
        clock = max(clock, start[parent[node]] + int(first[first < chunks].max()) + latency)
        entries.add_hops(clock, [node], [port[node]], node, chunks, latency)
        start[node] = clock
        clock += share
    offset, chunk, _ = entries.table_columns()
    return offset, chunk


def _depth_first_nodes(parent: np.ndarray) -> list[int]:
    """Return the nodes of a tree out of node 0 in depth-first order, without node 0.

    `parent` has the parent of each node; -1 for nodes that are not in the tree.
    """
    children = defaultdict(list)
    for node in np.nonzero(parent >= 0)[0][::-1].tolist():
        children[int(parent[node])].append(node)
    stack, order = [0], []
    while stack:
        order.append(stack.pop())
        stack += children[order[-1]]
    return order[1:]


def plan_scatter(
    necklaces: Necklaces, root: int, blocks: Blocks, latency: int = 1
) -> tuple[Transfers, ...]:
    """Plan a scatter: blocks for far nodes leave first, over rotated routes (section 5.4).

    A rotation maps the torus onto itself, and each port onto another one. A necklace is a set of
    nodes that rotations map onto each other.

    Parameters
    ----------
    necklaces : Necklaces
        The torus with its necklaces and trees.
    root : int
        The root of the scatter.
    blocks : Blocks
        The blocks of the scatter.
    latency : int
        Steps from the arrival of a block to its earliest departure.

    Notes
    -----
    Blocks for the nodes of one necklace leave in one step by distinct ports, and use distinct ports
    in every later step. Blocks of other steps never meet them: all arcs of a step are at one
    distance from the root, and other blocks pass that distance at other times.
    """
    topology, entries, clock = necklaces.topology, _RotatedHops(necklaces), 0
    for node in necklaces.generators[::-1].tolist():
        nodes, ports = necklaces.route(node)
        entries.add_hops(clock, nodes, ports, node, blocks.chunks, latency)
        clock += necklaces.chunk_shares(node, blocks.chunks)[0]
    step, port, node, chunk, destination = entries.hop_arrays()
    source = topology.add(topology.subtract(node, topology.generators[port]), root)
    ids = blocks.encode(np.full_like(source, root), chunk, topology.add(destination, root))
    return Transfers.by_step(step, source, port, ids)


def plan_alltoall(
    necklaces: Necklaces, chunks: int, latency: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Plan an all-to-all that sends one block at a time down all rotated routes (section 5.5).

    A rotation maps the torus onto itself, and each port onto another one. So the rotations of a
    route, which lead to all nodes of a necklace, use all ports evenly. With a latency of l steps, a
    block moves on every l-th step only, so that l blocks take turns.

    Parameters
    ----------
    necklaces : Necklaces
        The torus with its necklaces and trees.
    chunks : int
        Number of chunks of a message.
    latency : int
        Steps from the arrival of a block to its earliest departure.

    Returns
    -------
    offset, chunk, destination : ndarray of int, shape (steps, ports)
        The columns of a `Table`: for each step and port, the node that a block of node 0 reaches,
        its chunk and its destination; -1 for an idle port.
    """
    entries = _RotatedHops(necklaces)
    free = list(range(latency))
    for node in necklaces.generators[::-1].tolist():
        nodes, ports = necklaces.route(node)
        for part in range(necklaces.chunk_shares(node, chunks)[0]):
            turn = heappop(free)
            entries.add_hops(turn, nodes, ports, node, chunks, latency, [part])
            heappush(free, turn + len(nodes) * latency)
    offset, chunk, destination = entries.table_columns()
    return offset, chunk, destination


class _RotatedHops:
    """The hops of blocks of node 0; each hop is added together with all its rotations.

    A rotation maps the torus onto itself, and each port onto another one.
    """

    def __init__(self, necklaces: Necklaces) -> None:
        self.necklaces = necklaces
        self.rows: list[np.ndarray] = []

    def add_hops(
        self,
        step: int,
        nodes: Sequence[int],
        ports: Sequence[int],
        target: int,
        chunks: int,
        latency: int,
        parts: Sequence[int] | None = None,
    ) -> None:
        """Send the chunks for a node along a route and, at the same time, along all its rotations.

        Each tree (a rotation of the tree with the route) carries a share of the chunks, one chunk a
        step.

        Parameters
        ----------
        step : int
            The step of the first hop.
        nodes, ports : sequence of int
            The route in tree 0: the nodes reached and the ports by which they are reached.
        target : int
            The node for which the chunks are.
        chunks : int
            Number of chunks of a message.
        latency : int
            Steps from the arrival of a block to its earliest departure.
        parts : sequence of int, optional
            The chunks to send, as indices in each tree's share; by default all.
        """
        share, first = self.necklaces.chunk_shares(target, chunks)
        targets, _ = self.necklaces.rotated_arcs(target, 0)
        for hop, (node, port) in enumerate(zip(nodes, ports, strict=True)):
            images, turned = self.necklaces.rotated_arcs(node, port)
            for delay, part in enumerate(range(share) if parts is None else parts):
                used = first + part < chunks
                when = np.full(used.sum(), step + delay + hop * latency)
                columns = (turned, images, first + part, targets)
                self.rows.append(np.stack([when, *(column[used] for column in columns)]))

    def hop_arrays(self) -> np.ndarray:
        """Return all hops, as an array of shape (5, hops).

        Its rows are the step, the port, the node that is reached, the chunk, and the destination.
        """
        return np.concatenate([np.empty((5, 0), dtype=np.int64), *self.rows], axis=1)

    def table_columns(self) -> np.ndarray:
        """Return the columns of a `Table`: offset, chunk and destination.

        The array has the shape (3, steps, ports), with -1 for an idle port.
        """
        step, port, *entries = self.hop_arrays()
        shape = (3, step.max(initial=-1) + 1, self.necklaces.topology.ports)
        columns = np.full(shape, -1)
        columns[:, step, port] = entries
        return columns


#: Collectives that are the reverse of others (section 6 of [1]).
REVERSED_COLLECTIVES = {"gather": "scatter", "reduce": "broadcast"}


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if not isinstance(topology, Torus) or len(set(topology.sides)) > 1:
        return "a torus with equal sides"
    reason = all_ports_reason(options, topology.ports, Necklaces(topology).n_ports_used)
    return reason or chunk_multiple_reason(topology, collective, options)


def plan(topology: Torus, collective: Collective, options: Options) -> Table | Rounds:
    """Plan a collective on a torus with equal sides.

    The result is `Rounds` if the collective has a root, else a `Table`.

    Parameters
    ----------
    topology : Torus
        A k-ary n-cube: n sides of length k.
    options : Options
        ``chunks`` of a message and ``latency`` in steps.

    Examples
    --------
    The numbers of steps:

    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import parse_topology
    >>> torus = parse_topology("5x5")
    >>> [NECKLACE(torus, parse_collective(kind)).round_count for kind in ("allgather", "alltoall")]
    [6, 15]
    """
    necklaces, latency = Necklaces(topology), options.latency
    default = 1 if collective.rooted and collective.to_all else necklaces.even_chunks
    chunks = chunks_per_owner(topology, collective, options.chunks) or default
    if collective.rooted:
        send = plan_broadcast if collective.to_all else plan_scatter
        blocks = collective.blocks(topology, chunks)
        return Rounds(
            topology=topology,
            collective=collective,
            ports=necklaces.n_ports_used,
            chunks=chunks,
            transfers=send(necklaces, collective.root or 0, blocks, latency),
        )
    exchange = collective.from_each and collective.personal
    columns = (plan_alltoall if exchange else plan_allgather)(necklaces, chunks, latency)
    return build_table(
        topology,
        collective,
        columns,
        ports=necklaces.n_ports_used,
        chunks=chunks,
        latency=latency,
    )


NECKLACE = Algorithm(
    name="necklace",
    source="Fragopoulou and Akl 1994",
    summary="trees that are rotations of each other, balanced over all ports of a k-ary n-cube",
    collectives=(
        "broadcast",
        "allgather",
        "scatter",
        "gather",
        "alltoall",
        "reduce",
        "reduce-scatter",
        "allreduce",
    ),
    options=("ports", "chunks", "latency"),
    misfit=unsupported_reason,
    plan=with_reversed_collectives(plan, REVERSED_COLLECTIVES),
)
