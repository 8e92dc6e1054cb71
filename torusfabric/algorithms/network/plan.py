"""Collectives on any network: meshes, networks with faults, graphs of one's own.

Rules of the model: store-and-forward, full duplex, on all ports. A network is a directed graph of
links; nothing is assumed of it but that every node reaches every other.

- Broadcast: trees that share no arc, as many as the least cut from the root allows; messages stream
  down them. Reduce: the same backwards.
- All-gather: a spanning tree for each block, see `forest`. Reduce-scatter: the same backwards.
  All-reduce: up trees that share no link, see `link_forest`, and down again, where that takes less
  time than one after the other; for short messages up a tree of shortest paths and down again.
- Scatter, total exchange, exchange: a path for each message, see `routes`. Gather: a scatter
  backwards. Halo: a tree for each block, to its neighbours.

Messages are cut into as few chunks as come near the least message times, see `chunks`; for short
ones, into one.

Sources: J. Edmonds, "Edge-disjoint branchings", 1973, for the number of trees; L. Zhao and others,
"ForestColl: throughput-optimal collective communications on heterogeneous network fabrics", 2024,
for the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...analysis.congestion import Lengths
from ...analysis.cuts import worst_cut
from ...analysis.volume import least_time, reach
from ...collective import NO_NODE, Collective
from ...schedule import Listed, Rounds, Schedule, Switching, Transfers
from ...topology import Arrowhead, CayleyGraph, IntArray, Topology, Torus
from ..algorithm import Algorithm, Options
from ..oblivious.shallow_trees import tree_pattern, up_and_down
from ..requirements import every_port
from ..reversal import reverse
from .chunks import ALIKE, ALIKE_EXCHANGE, as_near_as_can_be, candidates
from .forest import allgather_steps
from .link_forest import link_disjoint_trees_of, most_link_trees
from .routes import routed
from .spread import spread, timed
from .trees import MOST_ARCS, disjoint_trees_from, nearest_tree

__all__ = ["ANY_NETWORK"]

#: On so few nodes whole messages are tried beside chunks, whatever comes near the bound.
FEW_NODES = 36

#: Fewer blocks on an arc of a halo are not worth a detour.
FEW_BLOCKS = 4.0

#: More nodes are planned by algorithms that use how alike nodes are.
MOST_NODES = 1024


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """What the algorithm needs and does not get, or None."""
    if isinstance(topology, CayleyGraph):
        trees = collective.kind in ("broadcast", "reduce")
        if not trees or isinstance(topology, Torus | Arrowhead):
            return "a network that does not look the same from every node"
    if topology.nodes > MOST_NODES or topology.linked.sum() > MOST_ARCS:
        return f"at most {MOST_NODES} nodes and {MOST_ARCS} arcs"
    if topology.nodes == 1:
        return "at least two nodes"
    streams = collective.kind in ("broadcast", "reduce")
    one = collective.kind == "allreduce" and options.trees
    if options.trees is not None and not (streams or one):
        return "--trees left out"
    most = _most_trees(topology, collective)
    if options.trees is not None and options.trees > most:
        return f"--trees 1 to {most}, by the least cut" if streams else f"--trees 1 to {most}"
    if options.chunks is not None and (streams or one):
        return "--chunks left out, where each tree has one"
    if collective.kind == "allreduce" and (options.chunks or 0) % topology.nodes:
        return f"--chunks divisible by the number of nodes, {topology.nodes}"
    return every_port(options, topology.ports)


def _most_trees(topology: Topology, collective: Collective) -> int:
    """As many trees as share no arc, or, of sums that go up and down, no link."""
    if collective.kind in ("broadcast", "reduce"):
        return _cut_from_root(topology, collective)
    return max(1, most_link_trees(topology)) if collective.kind == "allreduce" else 1


def _cut_from_root(topology: Topology, collective: Collective) -> int:
    """As many trees as the least cut allows."""
    cut = worst_cut(topology, collective)
    return 1 if cut is None else cut.arcs


def plan(topology: Topology, collective: Collective, options: Options) -> Schedule:
    """Plan a collective on any network.

    Parameters
    ----------
    options : Options
        ``trees``, ``chunks`` (the fewest that come near the bound), ``seed`` of all-gathers and of
        what is like them.

    Examples
    --------
    >>> import torusfabric as tf
    >>> faulty = tf.parse_topology("8x8!0:+0")
    >>> ANY_NETWORK(faulty, tf.parse_collective("allgather")).round_count
    21
    >>> ANY_NETWORK(faulty, tf.parse_collective("scatter")).round_count
    21
    """
    match collective.kind:
        case "broadcast":
            return _broadcast(topology, collective, options)
        case "reduce":
            spread = replace(collective, kind="broadcast")
            return reverse(_broadcast(topology.backwards, spread, options), "reduce")
        case "gather":
            spread = replace(collective, kind="scatter")
            return reverse(_routed(topology.backwards, spread, options), "gather")
        case "scatter" | "alltoall" | "exchange":
            return _routed(topology, collective, options)
        case "halo":
            return _halo(topology, collective, options)
        case "allgather":
            return _allgather(topology, collective, options)
        case "reduce-scatter":
            spread = Collective("allgather")
            return reverse(_allgather(topology.backwards, spread, options), "reduce-scatter")
    trees = options.trees
    if trees is None and options.chunks is None and _trees_are_quicker(topology):
        trees = most_link_trees(topology)
    if trees is None:
        return _allreduce(topology, collective, options)
    if trees == 1:
        away = topology.all_distances
        amid = int((away.max(axis=0) + away.max(axis=1)).argmin())
        up, down = nearest_tree(topology.backwards, amid), nearest_tree(topology, amid)
    else:
        up = down = link_disjoint_trees_of(topology, trees)
    return up_and_down(topology, collective, NAME, up, down)


def _trees_are_quicker(topology: Topology) -> bool:
    """Whether sums up and down trees take less time than sums that are scattered and gathered."""
    trees, gather = most_link_trees(topology), Collective("allgather")
    return trees > 0 and Fraction(topology.nodes, trees) <= 2 * least_time(topology, gather)


def _rounds(
    topology: Topology, collective: Collective, chunks: int, transfers: Sequence[Transfers]
) -> Rounds:
    """A schedule in rounds."""
    return Rounds(
        topology=topology,
        collective=collective,
        algorithm=NAME,
        switching=Switching.STORE_AND_FORWARD,
        ports=topology.ports,
        chunks=chunks,
        transfers=tuple(transfers),
    )


def _broadcast(topology: Topology, collective: Collective, options: Options) -> Schedule:
    """A chunk down each tree."""
    root = collective.root or 0
    count = options.trees or _cut_from_root(topology, collective)
    near = nearest_tree(topology, root)
    trees = near if count == 1 else disjoint_trees_from(topology, root, count)
    return tree_pattern(topology, collective, NAME, trees)


def _allgather(topology: Topology, collective: Collective, options: Options) -> Rounds:
    """Down a tree for each block."""
    least = least_time(topology, collective)

    def steps(chunks: int) -> tuple[Transfers, ...]:
        return allgather_steps(topology, chunks, least, options.seed)

    return _in_chunks(topology, collective, options, steps)


def _routed(topology: Topology, collective: Collective, options: Options) -> Rounds:
    """On paths."""
    least = least_time(topology, collective)

    def steps(chunks: int) -> tuple[Transfers, ...]:
        blocks = collective.blocks(topology, chunks)
        ids = np.arange(blocks.count)
        origin, target = blocks.origin(ids), blocks.postcondition(ids)
        moved, arcs = (origin != target) & (target != NO_NODE), Lengths(topology)
        most = float(least * chunks)
        if collective.local:  # in as many steps arcs carry as many
            most = max(most, float(reach(topology, collective)))
        paths = routed(arcs, origin[moved], target[moved], most, options.seed)
        return timed(arcs, paths, ids[moved])

    return _in_chunks(topology, collective, options, steps)


def _halo(topology: Topology, collective: Collective, options: Options) -> Rounds:
    """Down a tree for each block, to those nodes alone that receive it."""
    least = least_time(topology, collective)

    def steps(chunks: int) -> tuple[Transfers, ...]:
        blocks = collective.blocks(topology, chunks)
        arcs, random = Lengths(topology), np.random.default_rng(options.seed)
        goals = [np.unique(blocks.final(np.array([k]))[0]) for k in range(blocks.count)]

        def choose(by: IntArray, part: IntArray) -> list[IntArray]:
            origin = blocks.origin(part)
            return [
                arcs.tree(by[start], goals[block])
                for start, block in zip(origin.tolist(), part.tolist(), strict=True)
            ]

        most = max(float(least * chunks), FEW_BLOCKS)
        trees = spread(arcs, blocks.count, most, random, choose)
        return timed(arcs, trees, np.arange(blocks.count))

    return _in_chunks(topology, collective, options, steps)


def _in_chunks(
    topology: Topology,
    collective: Collective,
    options: Options,
    steps: Callable[[int], Sequence[Transfers]],
) -> Rounds:
    """What is planned in so many chunks as are asked for, or as come near the bound."""
    if options.chunks:
        return _rounds(topology, collective, options.chunks, steps(options.chunks))
    cells = topology.nodes * (1 if collective.rooted else topology.nodes)
    least = least_time(topology, collective)
    return _rounds(
        topology, collective, *as_near_as_can_be(least, cells, steps, _alike(collective))
    )


def _alike(collective: Collective) -> Fraction:
    """What times the least message times is as good as these."""
    exchange = collective.from_each and collective.personal
    return ALIKE_EXCHANGE if exchange or collective.local else ALIKE


def _allreduce(topology: Topology, collective: Collective, options: Options) -> Rounds:
    """Sums are scattered over all nodes, and gathered by all."""
    nodes, part = topology.nodes, Options(seed=options.seed)
    if options.chunks:
        part = replace(part, chunks=options.chunks // nodes)
    scattered = plan(topology, Collective("reduce-scatter"), part)
    part = replace(part, chunks=scattered.chunks)
    gathered = _allgather(topology, Collective("allgather"), part)
    sums = nodes * scattered.chunks
    whole = [_whole(transfers, nodes, sums) for transfers in gathered.transfers]
    return _rounds(topology, collective, sums, [*scattered.rounds(), *whole])


def _whole(transfers: Transfers, nodes: int, sums: int) -> Transfers:
    """Complete sums in place of the blocks of an all-gather: the contributions of all nodes."""
    ids = transfers.listed.ids[:, None] + sums * np.arange(nodes)
    indptr = nodes * np.arange(len(ids) + 1)
    return Transfers(transfers.source, transfers.hops, Listed(indptr, ids.ravel()))


def _variants(topology: Topology, collective: Collective) -> Sequence[Mapping[str, Any]]:
    """A single tree, or a single chunk, is quicker for short messages."""
    if collective.kind in ("broadcast", "reduce"):
        return ({"trees": 1},)
    if collective.kind == "allreduce":
        usual = {"chunks": topology.nodes} if _trees_are_quicker(topology) else {}
        return ({"trees": 1}, *([usual] if usual else []))
    if isinstance(topology, CayleyGraph) or topology.nodes == 1:
        return ()
    several = next(candidates(least_time(topology, collective), _alike(collective)), 1) > 1
    return ({"chunks": 1},) * (several or topology.nodes <= FEW_NODES)


NAME = "any-network"

ANY_NETWORK = Algorithm(
    name=NAME,
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
    misfit=misfit,
    plan=plan,
    variants=_variants,
    any_network=True,
)
