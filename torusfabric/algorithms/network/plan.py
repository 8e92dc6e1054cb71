"""Collectives on any network: meshes, networks with faults, graphs of a user's own.

Rules of the model: store-and-forward, full duplex, on all ports. A network is a directed graph of
links in which every node reaches every other.

- Broadcast: trees that share no arc, as many as the least cut from the root allows; messages stream
  down them. Reduce is a broadcast backwards.
- All-gather: a spanning tree for each block, see `forest`. Reduce-scatter is an all-gather
  backwards.
- All-reduce: up trees that share no link, see `trees`, and down again. Where these do not come near
  the least time: up and down trees that share arcs, see `shared_trees`. For short messages: up a
  tree of shortest paths and down again.
- Scatter, all-to-all, exchange: a path for each message, see `spread`, and the steps of the
  paths, see `slots`. A scatter of few steps is a flow over time, see `quickest`. Gather is a
  scatter backwards. An all-to-all on a large network with few faults is a repaired schedule of the
  intact network, see `repair`.
- Halo: a tree for each block, to its neighbours.

Messages are cut into the fewest chunks that come near the least message times, see `chunks`; short
ones may stay whole. A block that arrives over a slow link leaves some steps later. Slow links stay
unused where the fewest steps are possible without them.

Sources: J. Edmonds, "Edge-disjoint branchings", 1973, for the number of trees; L. Zhao and others,
"ForestColl: throughput-optimal collective communications on heterogeneous network fabrics", 2024,
for the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from ...analysis.congestion import WeightedArcs, congestion_lengths
from ...analysis.cuts import worst_cut
from ...analysis.volume import least_time, longest_distance
from ...collective import NO_NODE, Collective
from ...errors import InputError
from ...schedule import Rounds, Schedule, Transfers
from ...schedule.sum_trees import find_sum_trees
from ...topology import Arrowhead, CayleyGraph, Faulty, IntArray, Topology, Torus
from ..algorithm import Algorithm, Options, all_ports_reason
from ..oblivious.shallow_trees import tree_pattern, up_down_allreduce
from ..reversal import with_reversed_collectives
from .chunks import NEAR_FACTOR, NEAR_FACTOR_EXCHANGE, candidate_chunk_counts, plan_near_bound
from .forest import allgather_steps
from .quickest import quickest_steps
from .rates import plan_with_slow_links
from .repair import repair_alltoall
from .shared_trees import LOOK_AHEAD_STEPS, MOST_TREES, SharedTrees, schedule_sums, shared_trees
from .slots import schedule_paths
from .spread import route_messages, schedule_trees, spread_messages
from .trees import (
    MOST_ARCS,
    disjoint_trees_from,
    link_disjoint_trees_of,
    max_link_disjoint_trees,
    nearest_root_tree,
)

__all__ = ["ANY_NETWORK"]

#: The most nodes with which whole messages are always tried beside chunks.
FEW_NODES = 36

#: The least target for the load of an arc in a halo, in blocks. Below it, detours do not pay.
FEW_BLOCKS = 4.0

#: Numbers of parts of a message, each with a chunk for each tree, that are tried for several
#: lengths.
COPIES = (1, 4, 16, 32)

#: The largest time of trees that share no link, relative to the least time of an all-reduce. On 4x4
#: with a broken link these trees do not come within 3 %, but take fewer cycles up to some 2,000
#: flits.
NEAR_FACTOR_LINKS = Fraction(104, 100)

#: The most sums of an all-reduce, and the most sums at all nodes together.
MOST_SUMS, MOST_CELLS = 1024, 2**17

#: The most nodes times arcs with which any collective is planned on a network that looks the same
#: from each node.
MOST_ALIKE = 30_000

#: The least nodes with which an all-to-all is planned by repair. Below, paths for all messages are
#: chosen in seconds, and take fewer steps.
LEAST_REPAIRED = 512

#: The most nodes. Larger networks are left to algorithms that use the symmetry of nodes.
MOST_NODES = 1024


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if isinstance(topology, CayleyGraph):
        trees = collective.kind in ("broadcast", "reduce")
        large = topology.nodes * topology.linked.sum() > MOST_ALIKE and not trees
        if large or isinstance(topology, Torus | Arrowhead):
            return "a network that is no torus, of few nodes if they are alike"
    if topology.nodes > MOST_NODES or topology.linked.sum() > MOST_ARCS:
        return f"at most {MOST_NODES} nodes and {MOST_ARCS} arcs"
    if topology.nodes == 1:
        return "at least two nodes"
    return _unsupported_trees_reason(topology, collective, options) or all_ports_reason(
        options, topology.ports
    )


def _unsupported_trees_reason(
    topology: Topology, collective: Collective, options: Options
) -> str | None:
    """Return the reason why the options `trees` and `chunks` do not fit `collective`, or None.

    The reason is a need, such as "--trees 1 to 3, by the least cut".
    """
    trees, chunks = options.trees, options.chunks
    if topology.spacing_multiple > 1:
        return "--trees left out, where links have rates below 1" if trees is not None else None
    if collective.kind in ("broadcast", "reduce"):
        most = _max_trees_from_root(topology, collective)
        if trees is not None and trees > most:
            return f"--trees 1 to {most}, by the least cut"
        return "--chunks left out, where each tree has one" if chunks is not None else None
    if collective.kind != "allreduce":
        return "--trees left out" if trees is not None else None
    if trees is not None and trees > MOST_TREES:
        return f"--trees 1 to {MOST_TREES}"
    if chunks is not None:
        each = trees or len(_allreduce_trees(topology, options).up)
        if chunks % each:
            return f"--chunks divisible by the trees, {each}"
    return None


def _max_trees_from_root(topology: Topology, collective: Collective) -> int:
    """Return the number of arc-disjoint spanning trees that exist out of (or into) the root.

    It follows from the least cut: the fewest arcs that separate some node from the root.
    `collective` is a broadcast, or a reduce for trees into the root.
    """
    cut = worst_cut(topology, collective)
    return 1 if cut is None else cut.arcs


def plan(topology: Topology, collective: Collective, options: Options) -> Schedule:
    """Plan a collective on any network: a mesh, a torus with faults, or a graph of the user.

    Parameters
    ----------
    options : Options
        Number of trees (``trees``), number of chunks (``chunks``; by default the fewest that come
        near the least message times), and the seed of the searches (``seed``).

    Examples
    --------
    On a torus with a broken link, an all-gather and a scatter take 21 rounds each:

    >>> import torusfabric as tf
    >>> faulty = tf.parse_topology("8x8!0:+0")
    >>> ANY_NETWORK(faulty, tf.parse_collective("allgather")).round_count
    21
    >>> ANY_NETWORK(faulty, tf.parse_collective("scatter")).round_count
    21
    """
    if topology.spacing_multiple > 1:
        return plan_with_slow_links(plan, topology, collective, options)
    found, rest = _plan_either_way(topology, collective, options), _without_slow_links(topology)
    if rest is None or not isinstance(found, Rounds) or find_sum_trees(found):
        return found
    # A step of whole messages may be shorter than a slow link, so `_arrival_steps` adds its
    # latency.
    around = replace(_plan_either_way(rest, collective, options), topology=topology)
    assert isinstance(around, Rounds)
    if options.chunks == 1:
        return min((around, found), key=_arrival_steps)
    return min((found, around), key=lambda one: Fraction(one.round_count, one.chunks))


def _arrival_steps(schedule: Rounds) -> int:
    """Return the steps of a schedule, counted until every block could be forwarded by its receiver.

    A block that is sent over a slow link arrives later than others, so it can be forwarded only
    some steps after it was sent; these steps count.
    """
    arcs = WeightedArcs(schedule.topology)
    apart = np.zeros((arcs.nodes, schedule.topology.ports), int)
    apart[arcs.tail, arcs.port] = arcs.forwarding_steps
    there = [
        number + apart[transfers.source, transfers.hops[:, 0]].max()
        for number, transfers in enumerate(schedule.transfers)
    ]
    return int(max(there))


def _without_slow_links(topology: Topology) -> Topology | None:
    """Return the network with its slow links broken, or None.

    A slow link has a larger latency than the other links. The result is None if no link is slow, or
    if some node could not reach all others without the slow links.
    """
    if not isinstance(topology, Faulty) or not topology.slow_links:
        return None
    slow = [link.partition("=")[0] for link in topology.slow_links]
    broken = [*topology.broken_links, *slow]
    try:
        return Faulty(topology.whole.on_links(topology.link_latency), broken, topology.broken_nodes)
    except InputError:
        return None


def _plan_forwards(topology: Topology, collective: Collective, options: Options) -> Schedule:
    """Plan a collective that is not planned as the reverse of another one.

    Left out are the reduce (a reversed broadcast), the gather (a reversed scatter) and the
    reduce-scatter (a reversed all-gather). All links may be used. `options` has the number of trees
    or chunks, and the seed.
    """
    match collective.kind:
        case "broadcast":
            # One chunk goes down each tree.
            root = collective.root or 0
            count = options.trees or _max_trees_from_root(topology, collective)
            near = nearest_root_tree(topology, root)
            trees = near if count == 1 else disjoint_trees_from(topology, root, count)
            return tree_pattern(topology, collective, trees)
        case "halo":
            return _plan_halo(topology, collective, options)
        case "allgather":
            # Each block goes down a tree of its own.
            least = least_time(topology, collective)

            def plan_steps(chunks: int) -> tuple[Transfers, ...]:
                return allgather_steps(topology, chunks, least, options.seed)

            return _plan_in_chunks(topology, collective, options, plan_steps)
        case "allreduce":
            return _plan_allreduce(topology, collective, options)
    return _plan_routed(topology, collective, options)


#: Plan a collective over all links.
_plan_either_way = with_reversed_collectives(
    _plan_forwards, {"reduce": "broadcast", "gather": "scatter", "reduce-scatter": "allgather"}
)


def _plan_allreduce(topology: Topology, collective: Collective, options: Options) -> Schedule:
    """Plan an all-reduce: partial sums go up trees to the roots, and the complete sums down again.

    The trees share no link if such trees come near the least time; else trees that share arcs are
    used. `options` may have the number of trees and of chunks.
    """
    trees, links = options.trees, max_link_disjoint_trees(topology)
    if trees is None and options.chunks is None and _has_enough_link_trees(topology):
        trees = links
    if trees is not None and options.chunks is None and trees <= max(1, links):
        if trees > 1:
            up = down = link_disjoint_trees_of(topology, trees)
        else:
            away = topology.all_distances
            amid = int((away.max(axis=0) + away.max(axis=1)).argmin())
            up, down = (
                nearest_root_tree(topology.backwards, amid),
                nearest_root_tree(topology, amid),
            )
        return up_down_allreduce(topology, collective, up, down)
    shared = _allreduce_trees(topology, options)
    count = len(shared.up)
    copies = options.chunks // count if options.chunks else _copy_count(topology, shared)
    steps = schedule_sums(topology, shared, copies)
    return Rounds(topology=topology, collective=collective, chunks=copies * count, transfers=steps)


def _allreduce_trees(topology: Topology, options: Options) -> SharedTrees:
    """Return trees for an all-reduce, which may share arcs.

    Their number is `options.trees`; by default the smallest number with which the all-reduce comes
    near the least message times.
    """
    least = least_time(topology, Collective("allreduce"))
    found = shared_trees(topology, least)
    if options.trees in (None, len(found.up)):
        return found
    return shared_trees(topology, least, options.trees)


def _has_enough_link_trees(topology: Topology) -> bool:
    """Return True if trees that share no link are good enough for an all-reduce.

    They are if the all-reduce comes near the least message times with these trees.
    """
    trees, least = max_link_disjoint_trees(topology), least_time(topology, Collective("allreduce"))
    return trees > 0 and Fraction(1, trees) <= NEAR_FACTOR_LINKS * least


def _copy_count(topology: Topology, trees: SharedTrees) -> int:
    """Return the number of parts of a message with which an all-reduce comes near the least time.

    A part has one chunk for each of the trees. The parts go along the same trees, one after
    another. Why several: in the first and the last steps arcs are idle, and with more parts these
    steps are a smaller share of all steps.
    """
    count, least = len(trees.up), least_time(topology, Collective("allreduce"))
    enough = max(1, -(-LOOK_AHEAD_STEPS // trees.most))
    more = 1 + len(schedule_sums(topology, trees, enough)) - enough * trees.most
    spare = NEAR_FACTOR * least * count - trees.most
    most = max(1, min(MOST_SUMS, MOST_CELLS // topology.nodes) // count)
    return min(most, ceil(more / spare)) if spare > 0 else most


def _plan_routed(topology: Topology, collective: Collective, options: Options) -> Rounds:
    """Plan a scatter, all-to-all or exchange, in which each block takes a path of its own.

    `collective` is one of these. `options` has the seed, and may have the number of chunks.
    """
    least = least_time(topology, collective)

    def plan_steps(chunks: int) -> tuple[Transfers, ...]:
        blocks = collective.blocks(topology, chunks)
        if collective.kind == "alltoall" and topology.nodes >= LEAST_REPAIRED:
            one_group = blocks.group_size == topology.nodes
            repaired = repair_alltoall(topology, blocks, options.seed) if one_group else None
            if repaired is not None:
                return repaired
        ids = np.arange(blocks.n_blocks)
        origin, target = blocks.origin(ids), blocks.postcondition(ids)
        moved, arcs = (origin != target) & (target != NO_NODE), WeightedArcs(topology)
        most = float(least * chunks)
        if collective.local:  # an arc carries this many in these steps
            most = max(most, float(longest_distance(topology, collective)))
        ends, found = (origin[moved], target[moved]), None
        # Lengths of arcs lead around hubs; without them, paths have fewer hops.
        proved = () if collective.rooted else (_arc_lengths(topology, collective),)
        for lengths in (*proved, None):
            paths = route_messages(arcs, *ends, most, options.seed, lengths)
            steps = schedule_paths(arcs, paths, ends, ids[moved])
            found = steps if found is None else min(found, steps, key=len)
            if len(found) <= ceil(most):
                break
        assert found is not None
        if not collective.rooted:
            return found
        fewest = max(ceil(least * chunks), longest_distance(topology, collective))
        counts = range(fewest, len(found))
        root = collective.root or 0
        return quickest_steps(arcs, root, target[moved], ids[moved], counts) or found

    return _plan_in_chunks(topology, collective, options, plan_steps)


def _arc_lengths(topology: Topology, collective: Collective) -> IntArray:
    """Return the lengths of arcs from which the bound of an all-to-all or exchange follows."""
    blocks = collective.blocks(topology, 1)
    ids, known = np.arange(blocks.n_blocks), Fraction(0)
    origin, target = blocks.origin(ids), blocks.postcondition(ids)
    moved = (origin != target) & (target != NO_NODE)
    demand = np.zeros((topology.nodes, topology.nodes), np.int64)
    np.add.at(demand, (origin[moved], target[moved]), 1)
    if not collective.local and (cut := worst_cut(topology, collective)) is not None:
        known = cut.message_times
    return congestion_lengths(topology, demand, known)[1]


def _plan_halo(topology: Topology, collective: Collective, options: Options) -> Rounds:
    """Plan a halo, in which each block goes down a tree to the nodes that receive it.

    `options` has the seed, and may have the number of chunks.
    """
    least = least_time(topology, collective)

    def plan_steps(chunks: int) -> tuple[Transfers, ...]:
        blocks = collective.blocks(topology, chunks)
        arcs, random = WeightedArcs(topology), np.random.default_rng(options.seed)
        goals = [
            np.unique(blocks.required_copies(np.array([k]))[0]) for k in range(blocks.n_blocks)
        ]

        def choose(by: IntArray, part: IntArray) -> list[IntArray]:
            origin = blocks.origin(part)
            return [
                arcs.path_tree(by[start], goals[block])
                for start, block in zip(origin.tolist(), part.tolist(), strict=True)
            ]

        most = max(float(least * chunks), FEW_BLOCKS)
        trees = spread_messages(arcs, blocks.n_blocks, most, random, choose)
        return schedule_trees(arcs, trees, np.arange(blocks.n_blocks))

    return _plan_in_chunks(topology, collective, options, plan_steps)


def _plan_in_chunks(
    topology: Topology,
    collective: Collective,
    options: Options,
    steps: Callable[[int], Sequence[Transfers]],
) -> Rounds:
    """Plan a collective in the number of chunks that the user asks for, or else in few chunks.

    ``steps(chunks)`` returns the steps of a plan for a number of chunks. If the user gives no
    number, the numbers are tried in ascending order, until a plan comes near the least message
    times.
    """
    chunks, least = options.chunks, least_time(topology, collective)
    if chunks:
        transfers = steps(chunks)
    else:
        cells = topology.nodes * (1 if collective.rooted else topology.nodes)
        chunks, transfers = plan_near_bound(least, cells, steps, _near_factor(collective))
    return Rounds(
        topology=topology, collective=collective, chunks=chunks, transfers=tuple(transfers)
    )


def _near_factor(collective: Collective) -> Fraction:
    """Return the factor by which a plan may exceed the least message times and still be near them.

    It is 1.10 for an all-to-all, an exchange and a halo, else 1.03.
    """
    exchange = collective.from_each and collective.personal
    return NEAR_FACTOR_EXCHANGE if exchange or collective.local else NEAR_FACTOR


#: The most nodes with which trees that share arcs are searched for unasked.
MOST_SEARCHED = 256

#: Numbers of chunks that are tried where links have rates below 1, the first six of them if each
#: node has many blocks; and the most flits of a message for which one chunk for each flit is.
SLOW_CHUNKS, MOST_FLIT_CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512), 16


def _most_flit_chunks(topology: Topology, collective: Collective) -> int:
    """Return the most flits of a message for which one chunk for each flit is tried."""
    return MOST_FLIT_CHUNKS if topology.spacing_multiple > 1 else 0


def _option_variants(topology: Topology, collective: Collective) -> Sequence[Mapping[str, Any]]:
    """Return the options with which short messages may take less time, such as ``{"trees": 1}``.

    They ask for a single tree or a single chunk. For all-reduces over trees that share arcs,
    options follow that cut the message into different numbers of parts, each part with a chunk for
    each tree.
    """
    if topology.spacing_multiple > 1:
        few = collective.personal or (collective.from_each and not collective.reducing)
        return tuple({"chunks": chunks} for chunks in SLOW_CHUNKS[: 6 if few else None])
    if collective.kind in ("broadcast", "reduce"):
        return ({"trees": 1},)
    if collective.kind == "allreduce":
        if topology.nodes == 1 or _has_enough_link_trees(topology):
            return ({"trees": 1},)
        links = max_link_disjoint_trees(topology)
        streams = [{"trees": trees} for trees in sorted({1, max(links, 1)})]
        if topology.nodes > MOST_SEARCHED:
            return streams
        count = len(_allreduce_trees(topology, Options()).up)
        return (*streams, *({"trees": count, "chunks": count * copies} for copies in COPIES))
    if isinstance(topology, CayleyGraph) or topology.nodes == 1:
        return ()
    several = (
        next(candidate_chunk_counts(least_time(topology, collective), _near_factor(collective)), 1)
        > 1
    )
    differ = topology.one_latency is None
    return ({"chunks": 1},) * (several or differ or topology.nodes <= FEW_NODES)


ANY_NETWORK = Algorithm(
    name="any-network",
    source="Edmonds 1973; Lovasz 1976; ForestColl 2024",
    summary="all collectives on any strongly connected network, by cuts, trees and paths",
    collectives=(
        "broadcast",
        "reduce",
        "allgather",
        "reduce-scatter",
        "allreduce",
        "scatter",
        "gather",
        "alltoall",
        "exchange",
        "halo",
    ),
    options=("ports", "chunks", "trees", "seed"),
    misfit=unsupported_reason,
    plan=plan,
    variants=_option_variants,
    flit_chunks=_most_flit_chunks,
    any_network=True,
    slow_links=True,
)
