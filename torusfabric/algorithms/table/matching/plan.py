"""Collectives at their lower bound on any torus, by bipartite matching.

Model: store-and-forward, all-port, full duplex: a node sends and receives at most one block a step
on each of its ports, and what arrives in step ``t`` may leave from step ``t + latency`` on. Any
sides from 2 on, and any other Cayley graph of an abelian group. Steps, with M chunks and G ports:

============== ===================================================================
allgather      max(ceil(M (N - 1) / G), diameter); see `delivery_steps` for sides of 2
scatter        the same
gather         as scatter, which it is in reverse
alltoall       max(largest load of a port, diameter); see `alltoall_bound`
reduce-scatter as all-gather, which it is in reverse
allreduce      twice that: a reduce-scatter, then an all-gather, of N chunks a message
============== ===================================================================

Among schedules of so many steps those are sought whose routers are small: see `small_router`.

The first two are not proved to be always reached: they are by every torus tried, with N <= 500.

References
----------
[1] P. Fragopoulou, S. G. Akl, "A Framework for Optimal Communication on the Multidimensional Torus
    Network", Technical Report 94-363, Queen's University, Kingston, 1994. Lemma 5.
"""

from dataclasses import replace

from ....collective import Collective
from ....schedule import Rounds, Switching, Table
from ...algorithm import Algorithm
from ...requirements import every_port, step_numbers
from ...reversal import reverse
from ..reversal import as_collective
from .allgather import allgather
from .alltoall import alltoall
from .scatter import scatter

__all__ = ["MATCHING", "misfit", "plan"]


def misfit(topology, collective, options):
    """Why the options do not fit a store-and-forward algorithm that uses all ports, or None."""
    return every_port(options, topology.ports) or step_numbers(topology, collective, options)


def plan(topology, collective, options):
    """Plan a collective.

    Returns
    -------
    Table or Rounds
        Rounds for a scatter or gather, a table for the others.
    """
    if collective.to_root:
        return reverse(plan(topology, replace(collective, kind="scatter"), options), "gather")
    share = topology.nodes if collective.reducing and collective.to_all else 1
    chunks = (options.chunks or share) // share
    common = {
        "topology": topology,
        "collective": collective,
        "algorithm": "matching",
        "switching": Switching.STORE_AND_FORWARD,
        "ports": topology.ports,
        "chunks": chunks,
    }
    if collective.single_origin:
        blocks = collective.blocks(topology, chunks)
        transfers = scatter(topology, collective.root, blocks, options.latency)
        return Rounds(**common, transfers=transfers)
    if collective.personal and not collective.reducing:
        offset, chunk, destination = alltoall(topology, chunks, options.latency, options.seed)
        return Table(**common, offset=offset, chunk=chunk, destination=destination)
    offset, chunk = allgather(topology, chunks, options.latency, options.seed)
    common["collective"] = Collective("allgather")
    return as_collective(Table(**common, offset=offset, chunk=chunk), collective, options.latency)


MATCHING = Algorithm(
    name="matching",
    source="beyond the papers; Lemma 5 of Fragopoulou and Akl 1994",
    summary="ports are matched to open deliveries step by step: the lower bound on any torus",
    collectives=("allgather", "scatter", "gather", "alltoall", "reduce-scatter", "allreduce"),
    options=("ports", "chunks", "latency", "seed"),
    misfit=misfit,
    plan=plan,
)
