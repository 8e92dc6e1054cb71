"""The last stage of table planners: a `Table` from deliveries that are planned for node 0."""

from dataclasses import replace

import numpy as np

from ...collective import Collective
from ...schedule import Table
from ...topology import CayleyGraph, Topology

__all__ = ["build_table", "chunks_per_owner"]


def chunks_per_owner(topology: Topology, collective: Collective, chunks: int | None) -> int | None:
    """Return the number of chunks of one node's own data, or None if `chunks` is None.

    `chunks` is the number of chunks of a message that the user gave. In an all-reduce, a message is
    cut into one share for each node, and each share into several chunks; the result is the number
    of chunks of a share. For other collectives the result is `chunks`.
    """
    if chunks is None or not (collective.reducing and collective.to_all):
        return chunks
    return chunks // topology.nodes


def build_table(
    topology: CayleyGraph,
    collective: Collective,
    columns: tuple[np.ndarray, ...],
    *,
    chunks: int,
    latency: int,
    ports: int | None = None,
) -> Table:
    """Return the table of a collective without a root, from a plan for the blocks of node 0.

    Parameters
    ----------
    collective : Collective
        All-gather, reduce-scatter, all-reduce, all-to-all, exchange or halo.
    columns : tuple of ndarray of int, shape (steps, ports)
        The plan: two arrays, ``offset`` and ``chunk``, for an all-gather or a halo; three,
        ``offset``, ``chunk`` and ``destination``, for an all-to-all or an exchange. For a
        reduction, the two arrays of an all-gather, which is then reversed.
    chunks : int
        Number of chunks of one node's own data; in an all-reduce, of the part that a node owns.
    latency : int
        Steps from the arrival of a sum to its departure.
    ports : int, optional
        Ports that the table uses, by default all of them.
    """
    offset, chunk, *destination = columns
    table = Table(
        topology=topology,
        collective=Collective("allgather") if collective.reducing else collective,
        ports=topology.ports if ports is None else ports,
        chunks=chunks,
        offset=offset,
        chunk=chunk,
        destination=destination[0] if destination else None,
    )
    if not collective.reducing:
        return table
    backwards = _reverse_table(table)
    return _concatenate_phases(backwards, table, latency) if collective.to_all else backwards


def _reverse_table(table: Table) -> Table:
    """Return a reduce-scatter: the all-gather `table` backwards.

    The all-gather delivers each block to each node once. In it, every block of a node spreads along
    a tree. Reversing the order of the steps and the direction of all arcs makes it a tree along
    which contributions to that node's sum come together (Fragopoulou and Akl 1994, sections 1 and
    6). Every node then sends to its parent once, after all its children have sent to it, so each
    contribution is added exactly once. Where the all-gather sends from offset ``d - g`` to ``d`` on
    port g, the reduction sends from ``d`` to ``d - g`` on the opposite port. Ports therefore stay
    distinct in a step.
    """
    topology, idle = table.topology, table.offset < 0
    tail = topology.subtract(np.where(idle, 0, table.offset), topology.generators[None, :])
    return replace(
        table,
        collective=Collective("reduce-scatter"),
        offset=np.where(idle, -1, tail)[::-1, topology.opposite],
        chunk=table.chunk[::-1, topology.opposite],
        reducing=table.round_count,
    )


def _concatenate_phases(scattering: Table, gathering: Table, latency: int) -> Table:
    """Return an all-reduce: a reduce-scatter, ``latency - 1`` idle steps, and an all-gather.

    `scattering` is the reduce-scatter, and `gathering` the all-gather. In the idle steps the last
    sums are completed: a sum leaves a node at least `latency` steps after its last word has
    arrived. The M chunks of node n are chunks n * M + m of a message of N * M chunks.
    """
    idle = latency - 1 if gathering.round_count else 0
    pause = np.full((idle, gathering.topology.ports), -1)
    return replace(
        scattering,
        collective=Collective("allreduce"),
        chunks=gathering.chunks * gathering.topology.nodes,
        offset=np.concatenate([scattering.offset, pause, gathering.offset]),
        chunk=np.concatenate([scattering.chunk, pause, gathering.chunk]),
    )
