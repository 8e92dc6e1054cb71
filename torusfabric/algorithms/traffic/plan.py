"""Irregular collectives on any network: listed nodes, listed messages, unequal lengths.

Rules of the model: store-and-forward, full duplex, on all ports. Several groups of listed nodes run
at once and share the arcs. Nodes outside of groups relay.

- Broadcast, all-gather, halo, patterns in which a message has several destinations: each block goes
  down a tree to the nodes that receive it.
- Scatter, all-to-all, exchange, all other patterns: each block takes a path.
- Reduce, gather, reduce-scatter: a broadcast, scatter or all-gather backwards.
- All-reduce: the contributions to each chunk go up a tree to a root, and the sum goes down a tree
  to all members. The root is any node near the middle of the group.

Trees and paths come from a linear program that loads all arcs evenly, see
`torusfabric.analysis.fractional`, and are rounded to whole blocks, see `routes`. The steps of
blocks are chosen by `torusfabric.algorithms.network.slots`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import cycle, pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ...analysis.congestion import MEMORY_CYCLES, WeightedArcs
from ...analysis.fractional import Demand, FractionalRoutes, share_blocks
from ...analysis.irregular import (
    allreduce_demands,
    allreduce_routes,
    irregular_least_steps,
    irregular_least_time,
    traffic_demands,
    traffic_lengths,
    traffic_routes,
)
from ...collective import Blocks, Collective
from ...schedule import Grouped, Rounds, Schedule, Transfers
from ...topology import IntArray, Topology
from ..algorithm import Algorithm, Options, all_ports_reason
from ..network.plan import ANY_NETWORK
from ..network.rates import plan_with_slow_links
from ..network.slots import choose_steps, schedule_paths
from ..network.spread import route_messages
from .routes import round_routes, spread_routes

__all__ = ["ANY_TRAFFIC"]

#: The most arcs of a network, the most blocks times members of all groups, and the most hops for
#: which messages are cut unasked.
MOST_ARCS, MOST_CELLS, MOST_HOPS = 8192, 2**20, 400_000

#: The numbers of chunks that are tried for long messages; and the most blocks of all demands with
#: which more than `MANY_CHUNKS` are tried. Why: the tables of nodes grow with the number of blocks.
CHUNKS, MANY_CHUNKS, MOST_BLOCKS = tuple(1 << k for k in range(11)), 128, 1024

#: The time that is worth more chunks, relative to that of fewer chunks; and the most plans of one
#: collective.
WORTH_FACTOR, MOST_PLANS = 0.97, 3

#: The most chunks for which routes are found, while other chunks take the same routes again; and
#: the largest load of an arc for each of these chunks, relative to the least one, with which their
#: number is not raised.
MOST_PART, PART_FACTOR = 64, 1.01

#: The roundings of a part that are tried with different random choices, and the most demands for
#: which messages are cut into parts.
TRIES, FEW_DEMANDS = 4, 4

#: The largest number of chunks that is tried for messages of a known length.
MOST_VARIANT_CHUNKS = 32

#: The most steps, relative to the diameter of the network, with which other routes are tried, too;
#: and the least load of an arc, in blocks, for which these take detours.
FEW_STEPS, FEW_BLOCKS = 4, 4


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`.
    """
    if not collective.is_irregular:
        return "listed nodes such as @{0,1,5}, counts, or a pattern"
    if topology.linked.sum() > MOST_ARCS:
        return f"a network of at most {MOST_ARCS} arcs"
    blocks, chunks = collective.blocks(topology, 1), options.chunks or 1
    if _count_work(blocks) * chunks > MOST_CELLS:
        return f"at most {MOST_CELLS} blocks times the nodes of a group"
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
    if collective.turn_flits:
        options = replace(options, chunks=options.chunks or 1)
        counted = collective.with_lengths_in_chunks(topology, options.chunks or 1)
        return replace(plan(topology, counted, options), collective=collective)
    if topology.spacing_multiple > 1:
        return plan_with_slow_links(plan, topology, collective, options)
    chunks = options.chunks
    if chunks is not None:
        steps = _plan_steps(topology, collective, options.seed, chunks)
    else:
        chunks, steps = _plan_in_chunks(topology, collective, options.seed)
    return Rounds(topology=topology, collective=collective, chunks=chunks, transfers=steps)


def _plan_in_chunks(
    topology: Topology, collective: Collective, seed: int
) -> tuple[int, tuple[Transfers, ...]]:
    """Return the number of chunks with which a plan is short, and its steps.

    The time of a plan is estimated from the load of the busiest arc, which is known for each number
    of chunks, and from the steps beyond this load, which are those of the last plan.
    """
    loads = _chunk_loads(topology, collective)
    beyond = 0
    best: tuple[float, int, tuple[Transfers, ...]] = float("inf"), 0, ()
    for _ in range(MOST_PLANS):
        times = {k: (load + beyond) * _block_time(topology, collective, k)
                 for k, load in loads.items()}  # fmt: skip
        least = min(times.values())
        chunks = min(k for k, time in times.items() if WORTH_FACTOR * time <= least)
        if chunks == best[1] or times[chunks] > WORTH_FACTOR * best[0]:
            break
        steps = _plan_steps(topology, collective, seed, chunks)
        best = min(best, (len(steps) * _block_time(topology, collective, chunks), chunks, steps))
        beyond = len(steps) - loads[chunks]
    return best[1:]


def _block_time(topology: Topology, collective: Collective, chunks: int) -> float:
    """Return the time of a step; in cycles if the length of messages is known, else relative.

    A block moves on only when it has arrived, so a step takes some cycles even for a short block.
    """
    if (longest := collective.longest_flits) is None:
        return 1 / chunks
    quickest = MEMORY_CYCLES + int(topology.cycles_of_arc[topology.linked].min())
    return max(-(-longest // chunks), quickest)


@lru_cache(maxsize=16)
def _plan_steps(
    topology: Topology, collective: Collective, seed: int, chunks: int
) -> tuple[Transfers, ...]:
    """Return the transfers of each step, for messages of `chunks` chunks.

    `seed` is that of the searches. The results are kept, because the choice of an algorithm asks
    for each number of chunks alone, too.
    """
    return _TrafficPlanner(topology, collective, seed).plan_steps(chunks)


@lru_cache(maxsize=16)
def _chunk_loads(topology: Topology, collective: Collective) -> dict[int, int]:
    """Return the load of the busiest arc, in blocks, for each number of chunks that is tried."""
    found, longest = traffic_demands(topology, collective), collective.longest_flits
    summed = collective.reducing and collective.to_all
    demands = len(collective.members) if summed else len(found.demands)
    counts = {k for k in CHUNKS if k <= MANY_CHUNKS or k * demands <= MOST_BLOCKS}
    if longest is not None:
        sizes = {1, 2, 3, 4, int(np.gcd.reduce(found.flits, axis=None))}
        counts |= {-(-longest // flits) for flits in sizes}
        counts = {k for k in counts if k <= longest}
    routes = (allreduce_routes if summed else traffic_routes)(topology, collective)
    if routes is not None:
        shares = _arc_shares(topology, routes)
        hops = shares.sum(axis=1)
    else:
        shares, hops = _least_shares(topology, collective)
    loads: dict[int, int] = {}
    for chunks in sorted(counts):
        flits = -(-(longest or chunks) // chunks)
        if summed:
            blocks = np.full(len(hops), chunks)
        else:
            blocks = found.blocks(flits) if longest else chunks * found.blocks(1)
        if not loads or blocks @ hops <= MOST_HOPS:
            loads[chunks] = ceil((blocks @ shares).max(initial=0) - 1e-6)
    return loads


def _arc_shares(topology: Topology, found: FractionalRoutes) -> Any:
    """Return the part of each demand on each arc, shape (demands, arcs).

    The arcs of a tree that is used in both directions count in one direction.
    """
    from scipy.sparse import csr_array

    rows, arcs, parts = list[int](), list[int](), list[float]()
    for demand, each in enumerate(found.routes):
        for route, part in each.items():
            rows += [demand] * len(route)
            arcs += route
            parts += [part] * len(route)
    return csr_array((parts, (rows, arcs)), shape=(len(found.routes), int(topology.linked.sum())))


def _least_shares(topology: Topology, collective: Collective) -> tuple[np.ndarray, IntArray]:
    """Return the part of each demand on the busiest arc, and its hops, if routes are not known.

    The part follows from the lengths of arcs that prove the bound, or from a spread over all arcs.
    """
    found, lengths = traffic_demands(topology, collective), traffic_lengths(topology, collective)
    hops = np.array([_least_hops(found.network, demand) for demand in found.demands])
    if lengths is None:
        return hops[:, None] / topology.linked.sum(), hops
    away, _ = WeightedArcs(found.network).shortest_paths(lengths)
    ends = np.array([(demand.source, demand.receivers[0]) for demand in found.demands])
    return away[ends[:, :1], ends[:, 1:]] / lengths.sum(), hops


def _least_hops(network: Topology, demand: Demand) -> int:
    """Return a number of hops that every route of a demand has."""
    far = network.distance(demand.source, np.array(demand.receivers)).max()
    return max(len(demand.receivers), int(far))


def _count_work(blocks: Blocks) -> int:
    """Return the work of planning: the number of deliveries of a pattern.

    For other collectives it is the number of blocks, or of sums in a reduction, times the nodes of
    a group.
    """
    if (traffic := blocks.collective.traffic) is not None:
        return len(traffic.delivery_table)
    moved = blocks.blocks_per_origin if blocks.collective.reducing else blocks.n_blocks
    return moved * blocks.group_size


class _Moves(NamedTuple):
    """The blocks that move over a network, each from a source to its receivers.

    Parameters
    ----------
    network : Topology
        The network; for a reduction, the network with all arcs reversed.
    number : ndarray of int
        The number of each block, or of each sum.
    source : ndarray of int
        The source of each block; the root of each sum.
    receivers : list of (tuple of int)
        The receivers of each block, ascending, without the source.
    """

    network: Topology
    number: IntArray
    source: IntArray
    receivers: list[tuple[int, ...]]


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
        if collective.reducing and collective.to_all:
            return self._plan_allreduce(blocks)
        moves = self._moving_sums(blocks) if collective.reducing else self._moving_blocks(blocks)
        least = irregular_least_steps(self.topology, collective, chunks)
        best: tuple[Transfers, ...] | None = None
        for routes in self._choose_routes(moves, chunks):
            steps = self._order_blocks(blocks, moves, routes)
            if best is None or len(steps) < len(best):
                best = steps
            if not least < len(best) <= FEW_STEPS * self.topology.diameter:
                break
        assert best is not None
        return best

    def _order_blocks(
        self, blocks: Blocks, moves: _Moves, routes: list[list[int]]
    ) -> tuple[Transfers, ...]:
        """Return the transfers of each step, if blocks take the given routes."""
        arcs, turn = WeightedArcs(moves.network), _find_turns(routes, self.seed)
        if all(len(each) == 1 for each in moves.receivers) and not self.collective.reducing:
            targets = np.array([each[0] for each in moves.receivers], int)
            ends = moves.source, targets
            return schedule_paths(arcs, routes, ends, moves.number, turn)
        hops = _Hops([], [], [], [], [])
        for number, tree in zip(moves.number.tolist(), routes, strict=True):
            hops.add_tree(arcs, tree, number)
        step, arc, number = hops.choose_steps(arcs, turn)
        if not self.collective.reducing:
            return Transfers.by_step(step, arcs.tail[arc], arcs.port[arc], number)
        # A sum goes the opposite way, from the last step to the first.
        port, step = moves.network.opposite[arcs.port[arc]], step.max(initial=0) - step
        return _sum_transfers(blocks, step, arcs.head[arc], port, number)

    def _moving_blocks(self, blocks: Blocks) -> _Moves:
        """Return the blocks that leave their source."""
        ids = np.arange(blocks.n_blocks)
        origin, (node, block) = blocks.origin_nodes(ids), blocks.required_copies(ids)
        moved = origin[block] != node
        node, block = node[moved], block[moved]
        order = np.lexsort((node, block))
        number, first = np.unique(block[order], return_index=True)
        receivers = [tuple(each.tolist()) for each in np.split(node[order], first[1:])]
        return _Moves(self.topology, number, origin[number], receivers if len(number) else [])

    def _moving_sums(self, blocks: Blocks) -> _Moves:
        """Return the sums of a reduction as blocks that go from their root to the contributors."""
        sums = np.arange(blocks.blocks_per_origin)
        sums = sums[blocks.has_block(sums)]
        members = self.groups.members[blocks.group_of_block(sums)]
        roots = members[np.arange(len(sums)), blocks.postcondition(sums)]
        receivers = [
            tuple(sorted({*nodes} - {root}))
            for root, nodes in zip(roots.tolist(), members.tolist(), strict=True)
        ]
        return _Moves(self.topology.backwards, sums, roots, receivers)

    def _choose_routes(self, moves: _Moves, chunks: int) -> Iterator[list[list[int]]]:
        """Yield the arcs of the route of each block, in several ways.

        Fractional routes come first, if they are known. In the others, blocks only take detours
        around busy arcs, so they are better if there are few blocks.
        """
        least = irregular_least_steps(self.topology, self.collective, chunks)
        arcs, found = WeightedArcs(moves.network), traffic_routes(self.topology, self.collective)
        if found is not None:
            demands = traffic_demands(self.topology, self.collective)
            ends = zip(moves.source.tolist(), moves.receivers, strict=True)
            demand = np.array([demands.number[pair] for pair in ends])
            yield self._share_routes(arcs, demands.demands, found, demand, chunks)
        most = max(least, FEW_BLOCKS)
        lengths = None if found else traffic_lengths(self.topology, self.collective)
        if lengths is None:
            yield spread_routes(arcs, moves.source, moves.receivers, most, self.seed).best
        else:
            target = np.array([each[0] for each in moves.receivers])
            yield route_messages(arcs, moves.source, target, most, self.seed, lengths)

    def _share_routes(
        self,
        arcs: WeightedArcs,
        demands: Sequence[Demand],
        found: FractionalRoutes,
        demand: IntArray,
        chunks: int,
        links: IntArray | None = None,
    ) -> list[list[int]]:
        """Return the arcs of the route of each block, rounded from fractional routes.

        Routes of links begin at their middle node. If messages have equal lengths, the routes of a
        few chunks are found, and other chunks take them again, a *part* of the message after
        another. All parts load the arcs evenly, so that arcs are busy all the time.

        The first block on a route of h hops arrives in step h, so of n steps the route begins in
        n - h + 1 only. Each of its blocks counts as n / (n - h + 1) blocks on its arcs (Ford and
        Fulkerson, "Constructing maximal dynamic flows from static flows", 1958).

        Parameters
        ----------
        found : FractionalRoutes
            The known routes of each demand.
        demand : ndarray of int
            The demand of each block.
        links : ndarray of int, shape (arcs,), optional
            The number of the link of each arc, if the blocks on both arcs of a link count together.
        """
        count = np.bincount(demand, minlength=len(demands))
        link = np.arange(len(arcs.tail)) if links is None else links
        known = [route for each in found.routes for route in each]
        hops = np.array([_count_hops(arcs, route, links) for route in known])
        steps = irregular_least_steps(self.topology, self.collective, chunks) + int(hops.min())
        factor = _count_late(hops, steps)
        shares = share_blocks(found.routes, count, link, factor)
        tried: list[tuple[float, list[list[list[int]]]]] = []

        def try_part(part: int, seed: int, *, relieved: bool = True) -> bool:
            counts = count * part // chunks
            rounded = round_routes(link, counts, shares, seed, factor)
            routes = [[*route] for each in rounded for route in each]
            most, enough = irregular_least_steps(self.topology, self.collective, part), True
            if relieved:
                of = np.repeat(np.arange(len(demands)), counts).tolist()
                source = np.array([demands[k].source for k in of])
                receivers = [demands[k].receivers for k in of]
                relief = spread_routes(arcs, source, receivers, most, seed, routes, links)
                routes, enough = relief.best, relief.least <= most
            load = np.zeros(link.max() + 1)
            for route in routes:
                load[link[route]] += _count_late(_count_hops(arcs, route, links), steps)
            if links is not None:
                routes = [_turn_to_middle(arcs, route) for route in routes]
            each = [routes[a:b] for a, b in pairwise([0, *np.cumsum(counts).tolist()])]
            tried.append((load.max() / part, each))
            return enough

        for part in self._part_chunks(chunks, found):
            # A part whose arcs are too busy is given up for the next larger one.
            if all(try_part(part, self.seed + k) for k in range(TRIES if part < chunks else 1)):
                break
        else:
            if part < chunks:
                try_part(chunks, self.seed, relieved=False)
        again = [cycle(one) for one in min(tried, key=lambda one: one[0])[1]]
        return [next(again[k]) for k in demand.tolist()]

    def _part_chunks(self, chunks: int, found: FractionalRoutes) -> list[int]:
        """Return numbers of chunks whose routes are found, for messages of `chunks` chunks.

        The first is the smallest one that loads arcs little more than the bound. The others follow
        from the load of fractional routes, and leave more choice.
        """
        if self.collective.longest_flits is not None or len(found.routes) > FEW_DEMANDS:
            return [chunks]
        parts, least = range(1, 1 + min(chunks, MOST_PART)), list[int]()
        for load in (irregular_least_time(self.topology, self.collective, None), found.load):
            rounded = [ceil(part * load) / part for part in parts]
            enough = PART_FACTOR * min(rounded)
            least.append(next(part for part in parts if rounded[part - 1] <= enough))
        first, then = least
        more = [then << k for k in range(MOST_PART.bit_length()) if first < then << k <= parts[-1]]
        return [first, *more]

    def _plan_allreduce(self, blocks: Blocks) -> tuple[Transfers, ...]:
        """Return the steps of an all-reduce: each sum goes up a tree to its root, and down again.

        If a complete sum and a rising one wait for the same arc, the one with the longer chain of
        hops to go is sent first.
        """
        sums, arcs = np.arange(blocks.blocks_per_origin), WeightedArcs(self.topology)
        group, hops = blocks.group_of_block(sums), _Hops([], [], [], [], [])
        demands = allreduce_demands(self.topology, self.collective)
        found, opposite = allreduce_routes(self.topology, self.collective), arcs.opposite_arcs
        if found is not None and opposite is not None:
            links = np.minimum(np.arange(len(opposite)), opposite)
            routes = self._share_routes(arcs, demands, found, group, blocks.chunks, links)
            up = [opposite[route[::-1]].tolist() for route in routes]
        else:
            up, routes = self._spread_sums(blocks, [demands[k] for k in group.tolist()])
        for number, rising, down in zip(sums.tolist(), up, routes, strict=True):
            hops.add_sum(arcs, rising, down, number)
        step, arc, number = hops.choose_steps(arcs, _find_turns(routes, self.seed))
        return _sum_transfers(blocks, step, arcs.tail[arc], arcs.port[arc], number)

    def _spread_sums(
        self, blocks: Blocks, demands: Sequence[Demand]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return the arcs of two trees for each sum, up to its root and down, if links go one way.

        The arcs of a tree are ordered as `_Hops.add_sum` takes them.
        """
        least = irregular_least_steps(self.topology, self.collective, blocks.chunks)
        source = np.array([each.source for each in demands])
        receivers = [each.receivers for each in demands]
        arcs = WeightedArcs(self.topology)
        against, arc_of = arcs.backwards()
        down, up = (
            spread_routes(each, source, receivers, least / 2, self.seed).best
            for each in (arcs, against)
        )
        return [arc_of[tree[::-1]].tolist() for tree in up], down


def _count_hops(arcs: WeightedArcs, route: Sequence[int], links: IntArray | None) -> int:
    """Return the hops until all data of a route have arrived; up and down for a tree of links."""
    if links is not None:
        return 2 * _count_hops(arcs, _turn_to_middle(arcs, route), None)
    hops = {int(arcs.tail[route[0]]): 0}
    for arc in route:
        hops[int(arcs.head[arc])] = hops[int(arcs.tail[arc])] + 1
    return max(hops.values())


def _count_late(hops: Any, steps: int) -> Any:
    """Return the weight of a block on a route in the loads of its arcs, see `_share_routes`.

    The weight grows with the hops of the route, because its blocks arrive late. `steps` are the
    steps of all blocks, and `hops` is a number or an array.
    """
    return np.maximum(steps, hops) / np.maximum(steps + 1 - hops, 1)


def _turn_to_middle(arcs: WeightedArcs, tree: Sequence[int]) -> list[int]:
    """Return the arcs of a tree from its middle node to all others.

    Every link must have an arc each way. An arc comes after the arcs on the way to its tail.
    """
    assert arcs.opposite_arcs is not None
    out: dict[int, list[int]] = {}
    for arc in (*tree, *arcs.opposite_arcs[[*tree]].tolist()):
        out.setdefault(int(arcs.tail[arc]), []).append(arc)

    def grow_from(root: int) -> list[int]:
        found, seen, new = list[int](), {root}, [root]
        for node in new:
            for arc in out[node]:
                if (head := int(arcs.head[arc])) not in seen:
                    seen.add(head)
                    new.append(head)
                    found.append(arc)
        return found

    # The last arc of a search leads to a farthest node; the longest path begins there.
    longest = grow_from(end := int(arcs.head[grow_from(int(arcs.tail[tree[0]]))[-1]]))
    by, path = {int(arcs.head[arc]): arc for arc in longest}, list[int]()
    here = int(arcs.head[longest[-1]])
    while here != end:
        path.append(here)
        here = int(arcs.tail[by[here]])
    return grow_from([*path, end][len(path) // 2])


class _Hops(NamedTuple):
    """Hops of blocks along their routes, with the order in which they have to come.

    Parameters
    ----------
    arc : list of int
        The arc of each hop.
    block : list of int
        The block that each hop carries, or the sum.
    earlier, later : list of int
        Pairs of hops: hop ``later[k]`` waits until hop ``earlier[k]`` has ended.
    lengths : list of int
        The number of hops of each block, in the order in which blocks were added.
    """

    arc: list[int]
    block: list[int]
    earlier: list[int]
    later: list[int]
    lengths: list[int]

    def add_tree(self, arcs: WeightedArcs, tree: Sequence[int], block: int) -> None:
        """Add the hops of a block down a tree, whose arcs come after the arcs above them."""
        above: dict[int, int] = {}
        for arc in tree:
            tail, head = int(arcs.tail[arc]), int(arcs.head[arc])
            if tail in above:
                self.earlier.append(above[tail])
                self.later.append(len(self.arc))
            above[head] = len(self.arc)
            self.arc.append(arc)
            self.block.append(block)
        self.lengths.append(len(tree))

    def add_sum(
        self, arcs: WeightedArcs, up: Sequence[int], down: Sequence[int], block: int
    ) -> None:
        """Add the hops of a sum: up a tree, the arcs near the root last, and down another one."""
        rising: dict[int, list[int]] = {}
        for arc in up:
            tail, head = int(arcs.tail[arc]), int(arcs.head[arc])
            for hop in rising.get(tail, []):
                self.earlier.append(hop)
                self.later.append(len(self.arc))
            rising.setdefault(head, []).append(len(self.arc))
            self.arc.append(arc)
            self.block.append(block)
        root = int(arcs.head[up[-1]])
        above: dict[int, list[int]] = {root: rising[root]}
        for arc in down:
            tail, head = int(arcs.tail[arc]), int(arcs.head[arc])
            for hop in above[tail]:
                self.earlier.append(hop)
                self.later.append(len(self.arc))
            above[head] = [len(self.arc)]
            self.arc.append(arc)
            self.block.append(block)
        self.lengths.append(len(up) + len(down))

    def choose_steps(
        self, arcs: WeightedArcs, turn: np.ndarray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return the step, the arc and the block of each hop; `turn` has the turn of each block."""
        arc = np.array(self.arc, int)
        pairs = np.array(self.earlier, int), np.array(self.later, int)
        step = choose_steps(arcs, arc, *pairs, np.repeat(turn, self.lengths))
        return step, arc, np.array(self.block, int)


def _find_turns(routes: Sequence[Sequence[int]], seed: int) -> np.ndarray:
    """Return the turn of each block: (k + 1/2) / n for block k of the n blocks with its route.

    If blocks move in the order of turns, all arcs are about equally busy all the time. The turn of
    a block that is alone on its route is random.
    """
    keys = [tuple(route) for route in routes]
    counts, seen = Counter(keys), Counter[tuple[int, ...]]()
    turn = np.random.default_rng(seed).random(len(keys))
    for block, key in enumerate(keys):
        if counts[key] > 1:
            turn[block] = (seen[key] + 0.5) / counts[key]
            seen[key] += 1
    return turn


def _sum_transfers(
    blocks: Blocks, step: IntArray, source: IntArray, port: IntArray, number: IntArray
) -> tuple[Transfers, ...]:
    """Return the transfers of each step for hops of sums: step, sender, port and sum of each."""
    group = np.arange(blocks.n_blocks) % blocks.blocks_per_origin
    order = np.argsort(step, kind="stable")
    bounds = np.searchsorted(step[order], np.arange(1, step.max(initial=-1) + 1))
    return tuple(
        Transfers.hop(source[hops], port[hops], Grouped(group, number[hops]))
        for hops in (np.split(order, bounds) if len(order) else ())
    )


def _option_variants(topology: Topology, collective: Collective) -> Sequence[Mapping[str, Any]]:
    """Return the options to try for `collective`, such as ``[{"chunks": 1}, {"chunks": 4}]``.

    Fewer chunks are better for shorter messages.
    """
    if unsupported_reason(topology, collective, Options()) is not None:
        return ()
    if collective.turn_flits:
        most = -(-(collective.longest_flits or 1) // collective.turn_flits)
        counts: Iterable[int] = (chunks for chunks in CHUNKS if chunks <= most)
    else:
        counts = _chunk_loads(topology, collective)
    return [{"chunks": chunks} for chunks in counts if chunks <= MOST_VARIANT_CHUNKS]


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
    slow_links=True,
    irregular=True,
)
