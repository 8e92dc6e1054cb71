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
from functools import lru_cache, partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ...analysis.congestion import MEMORY_CYCLES, WeightedArcs
from ...analysis.fractional import Demand
from ...analysis.irregular import (
    allreduce_routes,
    irregular_least_steps,
    traffic_demands,
    traffic_routes,
)
from ...collective import Blocks, Collective
from ...schedule import Grouped, Rounds, Schedule, Transfers
from ...topology import IntArray, Topology
from ..algorithm import Algorithm, Options, all_ports_reason
from ..network.plan import ANY_NETWORK
from ..network.rates import plan_with_slow_links
from ..network.slots import choose_steps, schedule_paths
from .routes import round_routes, spread_routes

__all__ = ["ANY_TRAFFIC"]

#: The most arcs of a network, the most blocks times members of all groups, and the most hops for
#: which messages are cut unasked.
MOST_ARCS, MOST_CELLS, MOST_HOPS = 8192, 2**20, 400_000

#: The numbers of chunks that are tried for long messages; the time that is worth more chunks,
#: relative to that of fewer chunks; and the most plans of one collective.
CHUNKS, WORTH_FACTOR, MOST_PLANS = (1, 2, 4, 8, 16, 32, 64, 128), 0.97, 3

#: The largest number of chunks that is tried for messages of a known length.
MOST_VARIANT_CHUNKS = 32

#: The most steps, relative to the diameter of the network, with which other routes are tried, too;
#: and the least load of an arc, in blocks, for which these take detours.
FEW_STEPS, FEW_BLOCKS = 4, 4

#: The most work of ejections of one plan, see `schedule_paths`.
MOST_WORK = 20_000_000


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
    counts = {*CHUNKS}
    if longest is not None:
        sizes = {1, 2, 3, 4, int(np.gcd.reduce(found.flits, axis=None))}
        counts |= {-(-longest // flits) for flits in sizes}
        counts = {k for k in counts if k <= longest}
    summed = collective.reducing and collective.to_all
    routes = traffic_routes(topology, collective)
    if summed:
        shares = _arc_shares(topology, allreduce_routes(topology, collective))
    elif routes is not None:
        shares = _arc_shares(topology, routes.routes)
    else:
        # Each demand counts as spread evenly over all arcs.
        hops = [_least_hops(found.network, demand) for demand in found.demands]
        shares = np.repeat(np.array(hops)[:, None] / topology.linked.sum(), 2, axis=1)
    loads: dict[int, int] = {}
    for chunks in sorted(counts):
        flits = -(-(longest or chunks) // chunks)
        blocks = found.blocks(flits) if longest else chunks * found.blocks(1)
        on_arcs = np.full(shares.shape[0], chunks) @ shares if summed else blocks @ shares
        if not loads or on_arcs.sum() <= MOST_HOPS:
            loads[chunks] = ceil(on_arcs.max(initial=0) - 1e-6)
    return loads


def _arc_shares(topology: Topology, routes: Sequence[Mapping[tuple[int, ...], float]]) -> Any:
    """Return the part of each demand on each arc, shape (demands, arcs)."""
    from scipy.sparse import csr_array

    rows, arcs, parts = list[int](), list[int](), list[float]()
    for demand, each in enumerate(routes):
        for route, part in each.items():
            rows += [demand] * len(route)
            arcs += [arc if arc >= 0 else ~arc for arc in route]
            parts += [part] * len(route)
    return csr_array((parts, (rows, arcs)), shape=(len(routes), int(topology.linked.sum())))


def _least_hops(network: Topology, demand: Demand) -> int:
    """Return a number of hops that every route of a demand has."""
    assert demand.source is not None
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
        best: tuple[Transfers, ...] | None = None
        for routes in self._choose_routes(moves, chunks):
            steps = self._order_blocks(blocks, moves, routes)
            if best is None or len(steps) < len(best):
                best = steps
            if len(best) > FEW_STEPS * self.topology.diameter:
                break
        assert best is not None
        return best

    def _order_blocks(
        self, blocks: Blocks, moves: _Moves, routes: list[list[int]]
    ) -> tuple[Transfers, ...]:
        """Return the transfers of each step, if blocks take the given routes."""
        arcs, turn = WeightedArcs(moves.network), _find_turns(routes)
        if all(len(each) == 1 for each in moves.receivers) and not self.collective.reducing:
            targets = np.array([each[0] for each in moves.receivers], int)
            ends = moves.source, targets
            return schedule_paths(arcs, routes, ends, moves.number, turn, MOST_WORK)
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
        spread = partial(spread_routes, arcs, moves.source, moves.receivers, seed=self.seed)
        if found is not None:
            number = traffic_demands(self.topology, self.collective).number
            ends = zip(moves.source.tolist(), moves.receivers, strict=True)
            demand = [number[pair] for pair in ends]
            counts = np.bincount(demand, minlength=len(number))
            rounded = round_routes(len(arcs.tail), counts, found.routes, self.seed)
            each = [iter(one) for one in rounded]
            yield spread(most=least, routes=[[*next(each[one])] for one in demand])
        yield spread(most=max(least, FEW_BLOCKS))

    def _plan_allreduce(self, blocks: Blocks) -> tuple[Transfers, ...]:
        """Return the steps of an all-reduce: each sum goes up a tree to its root, and down again.

        If a complete sum and a rising one wait for the same arc, the one with the longer chain of
        hops to go is sent first.
        """
        sums = np.arange(blocks.blocks_per_origin)
        counts = np.bincount(blocks.group_of_block(sums), minlength=len(self.groups.members))
        found = allreduce_routes(self.topology, self.collective)
        near = [{self._nearest_route(group): 1.0} for group in self.groups.node_lists]
        arcs, best = WeightedArcs(self.topology), None
        for choice in (found, near):
            rounded = round_routes(len(arcs.tail), counts, choice, self.seed)
            each = [iter(one) for one in rounded]
            routes = [
                _without_detour(arcs, {*self.groups.node_lists[group].tolist()}, next(each[group]))
                for group in blocks.group_of_block(sums).tolist()
            ]
            hops = _Hops([], [], [], [], [])
            for number, route in zip(sums.tolist(), routes, strict=True):
                hops.add_sum(arcs, route, number)
            step, arc, number = hops.choose_steps(arcs, _find_turns(routes))
            if best is None or step.max() < best[0].max():
                best = step, arc, number
        assert best is not None
        step, arc, number = best
        return _sum_transfers(blocks, step, arcs.tail[arc], arcs.port[arc], number)

    def _nearest_route(self, group: IntArray) -> tuple[int, ...]:
        """Return the route of a sum by shortest paths, up to the node amid the group and down."""
        arcs = WeightedArcs(self.topology)
        up, arc_of = arcs.backwards()
        length = np.rint(1024 * arcs.relative_forwarding_time).astype(np.int64)
        (down_away, down), (up_away, rising) = (
            arcs.shortest_paths(length), up.shortest_paths(length[arc_of])
        )  # fmt: skip
        far = down_away[:, group].max(axis=1) + up_away[:, group].max(axis=1)
        root = int(far.argmin())
        goals = group[group != root]
        back = arc_of[up.path_tree(rising[root], goals)]
        return (*(~back).tolist(), *arcs.path_tree(down[root], goals).tolist())


def _without_detour(arcs: WeightedArcs, members: set[int], route: Sequence[int]) -> tuple[int, ...]:
    """Return the route of a sum with its root at a node where the sum is complete first.

    If only one arc leads up to the root, and the root adds nothing, the sum is complete at the tail
    of this arc. A complete sum must not rise, so the tail becomes the root.

    Parameters
    ----------
    members : set of int
        The nodes whose words are added, and which receive the sum.
    route : sequence of int
        The arcs up, as numbers ~k, those near the root first; then the arcs down.
    """
    up, down = [~code for code in route if code < 0], [code for code in route if code >= 0]
    root = int(arcs.head[up[0]])
    while root not in members and (arcs.head[up] == root).sum() == 1:
        first = up.pop(0)
        root = int(arcs.tail[first])
        down = [first, *(arc for arc in down if arcs.head[arc] != root)]
        ends = members - {root}
        while idle := {*arcs.head[down].tolist()} - {*arcs.tail[down].tolist()} - ends:
            down = [arc for arc in down if arcs.head[arc] not in idle]
    return (*(~arc for arc in up), *down)


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

    def add_sum(self, arcs: WeightedArcs, route: Sequence[int], block: int) -> None:
        """Add the hops of a sum: up a tree, whose arcs are numbers ~k, and down another one."""
        rising: dict[int, list[int]] = {}
        up = [~code for code in route if code < 0]
        for arc in reversed(up):
            tail, head = int(arcs.tail[arc]), int(arcs.head[arc])
            for hop in rising.get(tail, []):
                self.earlier.append(hop)
                self.later.append(len(self.arc))
            rising.setdefault(head, []).append(len(self.arc))
            self.arc.append(arc)
            self.block.append(block)
        root = int(arcs.head[up[0]])
        above: dict[int, list[int]] = {root: rising[root]}
        for arc in (code for code in route if code >= 0):
            tail, head = int(arcs.tail[arc]), int(arcs.head[arc])
            for hop in above[tail]:
                self.earlier.append(hop)
                self.later.append(len(self.arc))
            above[head] = [len(self.arc)]
            self.arc.append(arc)
            self.block.append(block)
        self.lengths.append(len(route))

    def choose_steps(
        self, arcs: WeightedArcs, turn: np.ndarray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return the step, the arc and the block of each hop; `turn` has the turn of each block."""
        arc = np.array(self.arc, int)
        pairs = np.array(self.earlier, int), np.array(self.later, int)
        step = choose_steps(arcs, arc, *pairs, np.repeat(turn, self.lengths))
        return step, arc, np.array(self.block, int)


def _find_turns(routes: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the turn of each block: (k + 1/2) / n for block k of the n blocks with its route.

    If blocks move in the order of turns, all arcs are about equally busy all the time.
    """
    keys = [tuple(route) for route in routes]
    counts, seen, turn = Counter(keys), Counter[tuple[int, ...]](), []
    for key in keys:
        turn.append((seen[key] + 0.5) / counts[key])
        seen[key] += 1
    return np.array(turn)


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
