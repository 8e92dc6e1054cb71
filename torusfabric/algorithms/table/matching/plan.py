"""Collectives at their lower bound on any torus, by bipartite matching.

Model: store-and-forward, all-port, full duplex. A node sends and receives at most one block a step
on each of its ports; a block that arrives in step ``t`` may leave from step ``t + latency`` on. The
topology is any torus with sides from 2 on, or any other Cayley graph of an abelian group. Steps,
with M chunks and G ports:

============== ===================================================================
allgather      max(ceil(M (N - 1) / G), diameter); see `delivery_steps` for sides of 2
scatter        max(ceil(M (N - 1) / G), diameter)
gather         max(ceil(M (N - 1) / G), diameter), a scatter in reverse
alltoall       max(largest load of a port, diameter); see `alltoall_bound`
reduce-scatter max(ceil(M (N - 1) / G), diameter), an all-gather in reverse
allreduce      2 max(ceil(M (N - 1) / G), diameter) with N M chunks a message
exchange       the bound of alltoall for blocks to some offsets: 1 to all neighbours
halo           an all-gather to some offsets and nodes on the way: 1 to all neighbours
============== ===================================================================

Among schedules with this many steps, those with small routers are sought: see `small_router`. For a
scatter, arc-disjoint trees of shortest routes grow from all ports of the root, and blocks go down
these trees: see `schedule_down_trees`.

The bounds of all-gather and scatter are not proved to be always reached. They were reached on every
torus tried, with N <= 500.

References
----------
[1] P. Fragopoulou, S. G. Akl, "A Framework for Optimal Communication on the Multidimensional Torus
    Network", Technical Report 94-363, Queen's University, Kingston, 1994. Lemma 5.
"""

from functools import partial
from math import gcd

import numpy as np

from ....analysis.distance_bounds import delivery_steps
from ....analysis.volume import least_time
from ....collective import Collective
from ....schedule import Rounds, Table, Transfers
from ....topology import CayleyGraph, Topology, Torus
from ...algorithm import Algorithm, Options, all_ports_reason, chunk_multiple_reason
from ...down_trees import assign_blocks_to_trees, schedule_down_trees
from ...network.chunks import NEAR_FACTOR, NEAR_FACTOR_EXCHANGE, candidate_chunk_counts
from ...oblivious.shallow_trees import Trees
from ...reversal import with_reversed_collectives
from ..bipartite import maximum_matching
from ..build import build_table, chunks_per_owner
from .allgather import plan_allgather
from .alltoall import plan_alltoall

__all__ = ["MATCHING", "unsupported_reason", "plan", "port_trees"]

#: The most nodes with which doubled chunks are tried; above, they are hardly worth the time to
#: plan.
FEW_NODES = 128

#: Numbers of chunks that are tried where links are parallel. With one chunk, some of these links
#: stay idle.
PARALLEL_CHUNKS = (2, 3, 4)

#: The longest message, in flits, with which a chunk for each flit is tried: where links are
#: parallel; and for a reduce-scatter elsewhere, because its steps of several flits wait for sums.
FLIT_CHUNKS, SUM_CHUNKS = 8, 4


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why a table planner for all ports cannot serve a selection, or None.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if collective.local and (collective.targets(topology)[0] <= 0).any():
        return "offsets to other nodes"
    return all_ports_reason(options, topology.ports) or chunk_multiple_reason(
        topology, collective, options
    )


def plan(topology: CayleyGraph, collective: Collective, options: Options) -> Table | Rounds:
    """Plan a collective in as few steps as its lower bound allows, or nearly so.

    The result is `Rounds` for a scatter, else a `Table`.

    Parameters
    ----------
    options : Options
        ``chunks`` of a message, ``latency`` in steps, and the ``seed`` of the searches.

    Examples
    --------
    The numbers of steps:

    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import parse_topology
    >>> torus = parse_topology("4x5")
    >>> [MATCHING(torus, parse_collective(kind)).round_count for kind in ("allgather", "alltoall")]
    [5, 12]
    """
    if collective.rooted:
        return _plan_scatter(topology, collective, options)
    chunks = chunks_per_owner(topology, collective, options.chunks) or 1
    exchange = collective.from_each and collective.personal
    goals = collective.targets(topology)[0] if collective.local else None
    columns = (plan_alltoall if exchange else plan_allgather)(
        topology, chunks, options.latency, options.seed, goals
    )
    return build_table(topology, collective, columns, chunks=chunks, latency=options.latency)


def port_trees(topology: CayleyGraph) -> Trees:
    """Return a tree of shortest routes from each port of node 0, so that no arc is in two trees.

    A tree need not reach all nodes: a node that is not in it has the in-port -1 in `entry`.

    Notes
    -----
    Nodes are visited in order of distance. The arcs that lead to a node from nearer nodes are
    matched to trees that have reached the tail of the arc. On a torus this puts a node with j
    non-zero digits into at least j trees.
    """
    distance, neighbours = topology.distances, topology.neighbours
    last = np.full((topology.nodes, topology.ports), -1)
    opposite, sizes = topology.opposite.tolist(), [0] * topology.ports
    for node in np.argsort(distance, kind="stable").tolist():
        tails = [(entry, neighbours[node, entry]) for entry in opposite]
        arcs = [(entry, tail) for entry, tail in tails if distance[tail] < distance[node]]
        if distance[node] == 1:
            reached = [[opposite[entry]] for entry, _ in arcs]
        else:
            reached = [
                sorted(np.nonzero(last[tail] >= 0)[0].tolist(), key=sizes.__getitem__)
                for _, tail in arcs
            ]
        for arc, tree in maximum_matching(reached).items():
            last[node, tree] = arcs[arc][0]
            sizes[tree] += 1
    return Trees(last.T, np.broadcast_to(distance, last.T.shape))


def _plan_scatter(topology: CayleyGraph, collective: Collective, options: Options) -> Rounds:
    """Plan a scatter down trees that start at the ports of the root, in the fewest steps possible.

    `collective` has the root; `options` has the latency and may have the number of chunks.
    """
    chunks, latency = options.chunks or 1, options.latency
    transfers: tuple[Transfers, ...] = ()
    if topology.nodes > 1:
        trees, steps = port_trees(topology), delivery_steps(topology, chunks, latency)
        able = trees.entry >= 0
        sharing = partial(assign_blocks_to_trees, trees, able, chunks, most=chunks, latency=latency)
        while (choice := sharing(steps)) is None:
            steps += 1
        blocks, root = collective.blocks(topology, chunks), collective.root or 0
        transfers = schedule_down_trees(topology, root, blocks, trees, choice, latency=latency)
    return Rounds(topology=topology, collective=collective, chunks=chunks, transfers=transfers)


def option_variants(topology: Topology, collective: Collective) -> list[dict[str, int]]:
    """Return options with which hardware takes fewer cycles at some message lengths.

    An entry is a set of options, such as ``{"latency": 2, "chunks": 32}``:

    - Exchange and halo: blocks to nodes farther away, or over parallel links, share ports better in
      several chunks.
    - Links of several cycles: with a latency of as many steps, a block never waits for a word that
      is still under way.
    - All-reduce: sums that leave one step later than possible keep operators busy.
    - All-gather on a torus: in a few chunks it takes the cycles of trees, with smaller routers.
    - All-to-all on a torus with an even side, and an odd number of nodes on the other axes: half of
      a message goes each way round, as in no plan of one chunk in which all nodes do the same.
    - Reduce-scatter: if the number of ports does not divide the N - 1 blocks that a node receives,
      some ports are idle in the last step. With a few chunks, no step has idle ports.

    Parameters
    ----------
    collective : Collective
        A collective that `matching` can plan.
    """
    if collective.local:
        far = (topology.distance(0, collective.targets(topology)[0]) > 1).any()
        parallel = isinstance(topology, CayleyGraph) and topology.has_parallel_links
        return [{"chunks": chunks} for chunks in (2, 4) if far or parallel]
    nodes, few = topology.nodes, topology.nodes <= FEW_NODES
    torus, gathers = isinstance(topology, Torus), collective.kind == "allgather" and few
    parts = [] if torus and not gathers else _chunk_variants(topology, collective)
    if few and collective.kind == "alltoall" and isinstance(topology, Torus):
        ties = any(side % 2 == 0 and nodes // side % 2 for side in topology.sides)
        parts = [{"chunks": 2}] * ties
    if few and isinstance(topology, CayleyGraph) and topology.has_parallel_links:
        parts = _parallel_link_variants(topology, collective)
    if collective.rooted:
        return parts
    late: list[dict[str, int]] = [{"latency": k} for k in (topology.longest_link,) if k > 1]
    if not collective.reducing:
        return late + parts
    if not collective.to_all:
        chunks = topology.ports // gcd(topology.ports, nodes - 1)
        if isinstance(topology, Torus) and len({*topology.sides}) == 1:
            chunks = min(chunks, 2)  # with more, `necklace` takes as few cycles and fewer LUTs
        full = [{"chunks": chunks}] * (few and chunks > 1)
        return late + parts + [one for one in full if one not in parts]
    usual = [{"latency": 2}] + [{"latency": 2, "chunks": 2 * nodes}] * few
    # With a latency that the user asks for, these variants and the usual ones do not apply.
    at_once = [{"latency": 1, **part} for part in parts]
    return [one for one in late if one not in usual] + usual + at_once


def _parallel_link_variants(topology: CayleyGraph, collective: Collective) -> list[dict[str, int]]:
    """Return options with numbers of chunks by which parallel links share messages evenly.

    An entry is a set of options, such as ``{"chunks": 8}``. In an all-reduce the numbers are
    multiples of the number of nodes, because each node completes an equal share.
    """
    shares = topology.nodes if collective.reducing and collective.to_all else 1
    few = [part["chunks"] for part in _chunk_variants(topology, collective)] if shares == 1 else [8]
    several = {*PARALLEL_CHUNKS, topology.ports, *few}
    return [{"chunks": shares * count} for count in sorted(several)]


def flit_chunks(topology: Topology, collective: Collective) -> int:
    """Return the longest message, in flits, that is also planned with chunks of one flit each.

    The result is 0 if there is no such plan.

    Parameters
    ----------
    collective : Collective
        A collective that `matching` can plan.
    """
    if topology.nodes > FEW_NODES or not isinstance(topology, CayleyGraph):
        return 0
    sums = collective.reducing and not collective.to_all
    if collective.local or (collective.reducing and not sums):
        return 0
    return FLIT_CHUNKS if topology.has_parallel_links else SUM_CHUNKS * sums


def _chunk_variants(topology: Topology, collective: Collective) -> list[dict[str, int]]:
    """Return the option for as few chunks as come near the least message times: [{"chunks": 4}].

    The plan is for `collective`. The list is empty if a single chunk comes near.
    """
    exchange = collective.from_each and collective.personal
    least, alike = (
        least_time(topology, collective),
        NEAR_FACTOR_EXCHANGE if exchange else NEAR_FACTOR,
    )
    few = next(candidate_chunk_counts(least, alike), 1)
    return [{"chunks": few}] * (few > 1)


MATCHING = Algorithm(
    name="matching",
    source="beyond the papers; Lemma 5 of Fragopoulou and Akl 1994",
    summary="ports are matched to open deliveries step by step: the lower bound on any torus",
    collectives=(
        "allgather",
        "scatter",
        "gather",
        "alltoall",
        "reduce-scatter",
        "allreduce",
        "exchange",
        "halo",
    ),
    options=("ports", "chunks", "latency", "seed"),
    misfit=unsupported_reason,
    plan=with_reversed_collectives(plan, {"gather": "scatter"}),
    variants=option_variants,
    flit_chunks=flit_chunks,
)
