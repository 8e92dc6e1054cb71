"""Irregular collectives on any network: listed nodes, listed messages, unequal lengths.

Rules of the model: store-and-forward, full duplex, on all ports. Several groups of listed nodes run
at once and share the arcs. Nodes outside of groups relay.

- Broadcast, all-gather, halo, patterns in which a message has several destinations: each block goes
  down a tree to the nodes that receive it.
- Scatter, all-to-all, exchange, all other patterns: each block takes a path.
- Reduce, gather, reduce-scatter: a broadcast, scatter or all-gather backwards.
- All-reduce: each chunk has a root among the members of its group. Its contributions go up a tree
  to the root, and the sum goes down a tree to all members. If messages are cut into a multiple of
  the members, each member is the root of equally many chunks. A message that stays whole has the
  member in the middle of its group as its root.

Trees and paths are spread over the network so that all arcs are equally busy, see
`torusfabric.algorithms.network.spread`. An arc then sends, of the blocks that wait for it, the one
with the most hops to go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...analysis.volume import least_time
from ...collective import Blocks, Collective
from ...schedule import Grouped, Listed, Rounds, Schedule, Transfers
from ...topology import IntArray, Topology
from ..algorithm import Algorithm, Options, all_ports_reason
from ..network.chunks import NEAR_FACTOR
from ..network.plan import ANY_NETWORK
from ..network.slots import schedule_paths
from ..network.spread import route_messages, schedule_hops, spread_messages, subtree_heights

__all__ = ["ANY_TRAFFIC"]

#: The most arcs of a network, the most blocks times members of all groups, and the most blocks for
#: which messages are cut unasked.
MOST_ARCS, MOST_CELLS, MOST_BLOCKS = 8192, 2**18, 2**11

#: The numbers of chunks that are tried, and the message times that are worth more chunks, relative
#: to those of fewer chunks.
CHUNKS, WORTH_FACTOR = (1, 2, 4, 8, 16, 32), Fraction(97, 100)

#: The least target for the load of an arc, in blocks. Below it, detours do not pay.
FEW_BLOCKS = 4.0


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`.
    """
    if not collective.is_irregular:
        return "listed nodes such as @{0,1,5}, counts, or a pattern"
    if topology.linked.sum() > MOST_ARCS:
        return f"a network of at most {MOST_ARCS} arcs"
    blocks, chunks = collective.blocks(topology, 1), options.chunks or 1
    if _count_work(blocks)[1] * chunks > MOST_CELLS:
        return f"at most {MOST_CELLS} blocks times the nodes of a group"
    if collective.kind == "allreduce" and chunks > 1 and chunks % blocks.group_size:
        return f"--chunks 1 or divisible by the members, {blocks.group_size}"
    return all_ports_reason(options, topology.ports)


def plan(topology: Topology, collective: Collective, options: Options) -> Schedule:
    """Plan an irregular collective.

    Parameters
    ----------
    options : Options
        ``chunks``, by default the fewest that come near the bound; ``seed`` of the searches.

    Examples
    --------
    The farthest two nodes of the group are three hops apart, so no schedule takes fewer steps:

    >>> import torusfabric as tf
    >>> gather = tf.parse_collective("allgather@{0,1,5,4,3}")
    >>> ANY_TRAFFIC(tf.Torus(4, 4), gather, Options(chunks=1)).round_count
    3
    """
    best: tuple[Fraction, int, tuple[Transfers, ...]] | None = None
    least = least_time(topology, collective)
    for chunks in (options.chunks,) if options.chunks else _chunk_counts(topology, collective):
        steps = _plan_steps(topology, collective, options.seed, chunks)
        block_flits = -(-(collective.longest_flits or chunks) // chunks)
        times = Fraction(len(steps) * block_flits, collective.longest_flits or chunks)
        if best is None or times < WORTH_FACTOR * best[0]:
            best = times, chunks, steps
        if times <= NEAR_FACTOR * least:
            break
    assert best is not None
    _, chunks, steps = best
    return Rounds(topology=topology, collective=collective, chunks=chunks, transfers=steps)


@lru_cache(maxsize=16)
def _plan_steps(
    topology: Topology, collective: Collective, seed: int, chunks: int
) -> tuple[Transfers, ...]:
    """Return the transfers of each step, for messages of `chunks` chunks.

    `seed` is that of the searches. The results are kept, because the choice of an algorithm asks
    for each number of chunks alone, too.
    """
    return _TrafficPlanner(topology, collective, seed).plan_steps(chunks)


def _chunk_counts(topology: Topology, collective: Collective) -> list[int]:
    """Return the numbers of chunks that are tried for a message, ascending.

    In an all-reduce these are multiples of the number of members of a group, so that each member
    can complete equally many sums.
    """
    blocks = collective.blocks(topology, 1)
    each = blocks.group_size if collective.kind == "allreduce" else 1
    (moved, cells), counts = _count_work(blocks), {*CHUNKS}
    if collective.longest_flits is not None and blocks.message_lengths is not None:
        common = int(np.gcd.reduce(blocks.message_lengths, axis=None))
        counts = {
            k
            for k in (*CHUNKS, collective.longest_flits // common)
            if k <= collective.longest_flits
        }
    most = max(1, min(MOST_CELLS // (cells * each), MOST_BLOCKS // moved))
    return [each * chunks for chunks in sorted(counts) if chunks <= most] or [1]


def _count_work(blocks: Blocks) -> tuple[int, int]:
    """Return the number of messages, and the work of planning them.

    The work is the number of deliveries of a pattern; else the blocks times the nodes of a group.
    """
    if (traffic := blocks.collective.traffic) is not None:
        return len(traffic.messages), len(traffic.delivery_table)
    return blocks.n_blocks, blocks.n_blocks * blocks.group_size


class _Hops(NamedTuple):
    """Hops of blocks along their trees or paths, with the order in which they have to come.

    Parameters
    ----------
    arc : list of int
        The arc of each hop.
    block : list of int
        The block that each hop carries, or the sum.
    after : list of (list of int)
        For each hop, the hops that must wait until it has ended.
    urgency : list of int
        For each hop, the number of hops, itself included, until its data are at the last receiver.
    """

    arc: list[int]
    block: list[int]
    after: list[list[int]]
    urgency: list[int]

    def add_tree(self, tree: Sequence[int], block: int, ends: Sequence[Any]) -> list[int]:
        """Add the hops of a block down a tree, and return their numbers.

        Parameters
        ----------
        tree : sequence of int
            The arcs of the tree.
        block : int
            The number of the block, or of the sum.
        ends : (list of int, list of int)
            The tail and the head of each arc of the network.
        """
        tail, head = ends
        number = {head[arc]: len(self.arc) + k for k, arc in enumerate(tree)}
        height = subtree_heights(tree, tail, head)
        for arc in tree:
            self.arc.append(arc)
            self.block.append(block)
            self.after.append([])
            self.urgency.append(height[arc])
        for arc in tree:
            if tail[arc] in number:
                self.after[number[tail[arc]]].append(number[head[arc]])
        return [number[head[arc]] for arc in tree]

    @property
    def predecessor_counts(self) -> list[int]:
        """The number of hops for which each hop waits."""
        counts = [0] * len(self.arc)
        for following in self.after:
            for hop in following:
                counts[hop] += 1
        return counts

    def schedule(self, apart: Sequence[int]) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the arcs and the blocks of each step, where each arc takes the most urgent hop.

        `apart` has, for each arc, the steps after which a block that it carries may go on.
        """
        urgency = [(-hops, block) for hops, block in zip(self.urgency, self.block, strict=True)]
        for step in schedule_hops(self.arc, self.after, self.predecessor_counts, urgency, apart):
            yield (np.array([self.arc[hop] for hop in step]),
                   np.array([self.block[hop] for hop in step]))  # fmt: skip


class _TrafficPlanner:
    """Planner of one irregular collective.

    Parameters
    ----------
    seed : int
        Seed of the searches.
    """

    def __init__(self, topology: Topology, collective: Collective, seed: int) -> None:
        self.topology, self.collective, self.seed = topology, collective, seed
        self.groups = collective.groups(topology)

    def plan_steps(self, chunks: int) -> tuple[Transfers, ...]:
        """Return the transfers of each step, for messages of `chunks` chunks."""
        collective, blocks = self.collective, self.collective.blocks(self.topology, chunks)
        if collective.reducing:
            return self._plan_sums(blocks)
        if collective.kind == "gather":
            return self._plan_paths(blocks, self.topology.backwards)
        block = blocks.required_copies(np.arange(blocks.n_blocks))[1]
        if len(np.unique(block)) == len(block):
            return self._plan_paths(blocks, self.topology)
        return self._plan_trees(blocks)

    def _plan_paths(self, blocks: Blocks, network: Topology) -> tuple[Transfers, ...]:
        """Return the steps of a collective in which each block takes a path, such as a scatter.

        `network` is the network with all arcs reversed for a gather, otherwise the network itself.
        A gather is planned as a scatter on the reversed network, from the receiver to the origins.
        Then the order of the steps and the direction of the hops are reversed.
        """
        ids, backwards = np.arange(blocks.n_blocks), network is not self.topology
        origin, (target, block) = blocks.origin_nodes(ids), blocks.required_copies(ids)
        start, end = (target, origin[block]) if backwards else (origin[block], target)
        moved, arcs = start != end, WeightedArcs(network)
        start, end, block = start[moved], end[moved], block[moved]
        most = max(float(least_time(self.topology, self.collective) * blocks.chunks), 1.0)
        paths = route_messages(arcs, start, end, most, self.seed)
        steps = schedule_paths(arcs, paths, (start, end), block)
        return _reverse_steps(network, steps) if backwards else steps

    def _plan_trees(self, blocks: Blocks) -> tuple[Transfers, ...]:
        """Return the steps of a broadcast, all-gather or halo: each block goes down a tree."""
        ids = np.arange(blocks.n_blocks)
        nodes, block = blocks.required_copies(ids)
        receivers = np.split(nodes[order := np.argsort(block, kind="stable")],
                             np.searchsorted(block[order], ids[1:]))  # fmt: skip
        origin = blocks.origin_nodes(ids)
        arcs = WeightedArcs(self.topology)
        hops, ends = _Hops([], [], [], []), (arcs.tail.tolist(), arcs.head.tolist())
        for number, tree in enumerate(self._spread_trees(arcs, origin, receivers, blocks.chunks)):
            hops.add_tree(tree, number, ends)
        return tuple(
            Transfers.hop(arcs.tail[arc], arcs.port[arc], Listed.single(sent))
            for arc, sent in hops.schedule(arcs.forwarding_steps)
        )

    def _plan_sums(self, blocks: Blocks) -> tuple[Transfers, ...]:
        """Return the steps of a reduction: each sum of `blocks` goes up a tree to its root.

        In an all-reduce, the complete sum then goes down another tree.
        """
        sums = np.arange(blocks.blocks_per_origin)
        sums = sums[blocks.has_block(sums)]
        members = self.groups.members[blocks.group_of_block(sums)]
        if blocks.collective.kind == "allreduce":
            position = self._roots_of_sums(blocks)
        else:
            position = blocks.postcondition(sums)
        roots, others = members[np.arange(len(sums)), position], [*members]
        up = WeightedArcs(self.topology.backwards)
        hops, ends = _Hops([], [], [], []), (up.tail.tolist(), up.head.tolist())
        trees = self._spread_trees(up, roots, others, blocks.chunks)
        for number, tree in zip(sums.tolist(), trees, strict=True):
            hops.add_tree(tree, number, ends)
        group = np.arange(blocks.n_blocks) % blocks.blocks_per_origin
        rising = tuple(
            Transfers.hop(up.tail[arc], up.port[arc], Grouped(group, carried))
            for arc, carried in hops.schedule(up.forwarding_steps)
        )
        rising = _reverse_steps(self.topology.backwards, rising)
        if not blocks.collective.to_all:
            return rising
        return self._add_descent(blocks, rising, roots, others)

    def _add_descent(
        self,
        blocks: Blocks,
        rising: Sequence[Transfers],
        roots: IntArray,
        receivers: Sequence[IntArray],
    ) -> tuple[Transfers, ...]:
        """Return the steps of an all-reduce, given those in which partial sums rise to the roots.

        Complete sums go down trees from the roots. If a complete sum and a rising one wait for the
        same arc, the one with the longer chain of hops to go is sent first.

        Parameters
        ----------
        roots : ndarray of int, shape (sums,)
            The node at which each sum is completed.
        receivers : sequence of (ndarray of int)
            The nodes that receive each sum.
        """
        arcs, group = WeightedArcs(self.topology), np.arange(blocks.n_blocks)
        group %= blocks.blocks_per_origin
        ends = arcs.tail.tolist(), arcs.head.tolist()
        down = _Hops([], [], [], [])
        trees = self._spread_trees(arcs, roots, receivers, blocks.chunks)
        numbers = [down.add_tree(tree, k, ends) for k, tree in enumerate(trees)]
        first = {}
        for sum_number, hops in enumerate(numbers):
            first[sum_number] = [hop for hop in hops if ends[0][down.arc[hop]] == roots[sum_number]]
        # Rising hops are added with the order that they have among themselves.
        arc_of = {pair: k for k, pair in enumerate(zip(arcs.tail.tolist(), arcs.port.tolist(),
                                                       strict=True))}  # fmt: skip
        below: dict[tuple[int, int], list[int]] = {}
        for transfers in rising:
            target = transfers.walk(self.topology)[:, -1].tolist()
            assert isinstance(transfers.payload, Grouped)
            arriving: list[tuple[tuple[int, int], int]] = []
            for node, port, number, end in zip(
                transfers.source.tolist(), transfers.hops[:, 0].tolist(),
                transfers.payload.wanted.tolist(), target, strict=True,
            ):  # fmt: skip
                hop = len(down.arc)
                down.arc.append(arc_of[node, port])
                down.block.append(number)
                down.after.append([])
                down.urgency.append(0)
                for child in below.get((node, number), []):
                    down.after[child].append(hop)
                arriving.append(((end, number), hop))
            for place, hop in arriving:
                below.setdefault(place, []).append(hop)
        for number, root in enumerate(roots.tolist()):
            for hop in below.get((root, number), []):
                down.after[hop] += first[number]
        _set_urgency(down)
        return tuple(
            Transfers.hop(arcs.tail[arc], arcs.port[arc], Grouped(group, carried))
            for arc, carried in down.schedule(arcs.forwarding_steps)
        )

    def _roots_of_sums(self, blocks: Blocks) -> IntArray:
        """Return where each sum of an all-reduce is completed: the position of a node in its group.

        The result has the shape (sums,). If the number of chunks is a multiple of the members, each
        member completes equally many sums. Otherwise the member in the middle of the group
        completes all.
        """
        sums = np.arange(blocks.blocks_per_origin)
        size, chunks = blocks.group_size, blocks.chunks
        if chunks % size == 0:
            return blocks.chunk(sums) * blocks.contribution_counts // chunks
        away = [self.topology.distance(nodes[:, None], nodes) for nodes in self.groups.node_lists]
        middle = np.array([(d.max(axis=0) + d.max(axis=1)).argmin() for d in away])
        return middle[blocks.group_of_block(sums)]

    def _spread_trees(
        self,
        arcs: WeightedArcs,
        starts: IntArray,
        receivers: Sequence[IntArray],
        chunks: int,
    ) -> list[list[int]]:
        """Return the arcs of a tree from each start to its receivers, which load arcs evenly.

        Parameters
        ----------
        arcs : WeightedArcs
            The arcs of the network, or of the network with all arcs reversed.
        starts : ndarray of int
            The root of each tree.
        receivers : sequence of (ndarray of int)
            The nodes that each tree reaches.
        chunks : int
            Number of chunks of a message.
        """
        random = np.random.default_rng(self.seed)

        def choose(by: IntArray, part: IntArray) -> list[IntArray]:
            return [arcs.path_tree(by[starts[k]], np.asarray(receivers[k])) for k in part.tolist()]

        least = float(least_time(self.topology, self.collective) * chunks)
        return spread_messages(arcs, len(starts), max(least, FEW_BLOCKS), random, choose)


def _set_urgency(hops: _Hops) -> None:
    """Set the urgency of each hop to the longest chain of hops that begins with it."""
    waits = hops.predecessor_counts
    order = [hop for hop, count in enumerate(waits) if not count]
    for hop in order:
        for following in hops.after[hop]:
            waits[following] -= 1
            if not waits[following]:
                order.append(following)
    for hop in reversed(order):
        hops.urgency[hop] = 1 + max((hops.urgency[k] for k in hops.after[hop]), default=0)


def _reverse_steps(network: Topology, steps: Sequence[Transfers]) -> tuple[Transfers, ...]:
    """Return steps of single hops in reverse order, with each hop in the opposite direction.

    `network` is the network for which `steps` were planned, the one with all arcs reversed.
    """
    return tuple(
        Transfers.hop(each.walk(network)[:, -1], network.opposite[each.hops[:, 0]], each.payload)
        for each in reversed(steps)
    )


def _option_variants(topology: Topology, collective: Collective) -> Sequence[Mapping[str, Any]]:
    """Return the options to try for `collective`, such as ``[{"chunks": 1}, {"chunks": 4}]``.

    Fewer chunks are better for shorter messages.
    """
    counts = _chunk_counts(topology, collective)
    return [{"chunks": chunks} for chunks in sorted({1, *counts})]


ANY_TRAFFIC = Algorithm(
    name="any-traffic",
    source="McMurchie and Ebeling 1995, for even loads; trees and paths of shortest length",
    summary="collectives among listed nodes, unequal messages, and patterns, on any network",
    collectives=(*ANY_NETWORK.collectives, "pattern"),
    options=("ports", "chunks", "seed"),
    misfit=unsupported_reason,
    plan=plan,
    variants=_option_variants,
    any_network=True,
    irregular=True,
)
