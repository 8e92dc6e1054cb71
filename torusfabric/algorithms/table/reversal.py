"""Reductions from an all-gather table, by running it backwards.

Reversed steps and reversed arcs turn every tree along which a block of a node spreads into a tree
along which contributions to that node's sum come together (Fragopoulou and Akl 1994, sections 1 and
6). Every node then sends what it has gathered for an owner once, to its parent, after all its
children have sent theirs: each contribution is added exactly once. Ports stay distinct in a step,
so the reversed schedule is a table too.
"""

from dataclasses import replace

import numpy as np

from ...collective import Collective
from ...schedule import Table

__all__ = ["allreduce_table", "as_collective", "reduce_scatter_table"]


def as_collective(table: Table, collective: Collective, latency: int = 1) -> Table:
    """An all-gather table as a table for a collective it can serve.

    Parameters
    ----------
    table : Table
        An all-gather that delivers each chunk to each offset once.
    collective : Collective
        An allgather, a reduce-scatter or an allreduce.
    latency : int
        Steps from the arrival of a sum to its departure.
    """
    if not collective.reducing:
        return table
    return allreduce_table(table, latency) if collective.to_all else reduce_scatter_table(table)


def reduce_scatter_table(table: Table) -> Table:
    """Reverse an all-gather: every node ends with the sum of what all have for it.

    Parameters
    ----------
    table : Table
        An all-gather that delivers each chunk to each offset once.

    Returns
    -------
    Table
        As many steps, with the same latency between arrival and departure.

    Notes
    -----
    Where the all-gather sends from offset ``d - g`` to ``d`` on port g, the reduction sends from d
    to ``d - g`` on the opposite port.
    """
    topology = table.topology
    idle = table.offset < 0
    tail = topology.subtract(np.where(idle, 0, table.offset), topology.generators[None, :])
    return replace(
        table,
        collective=Collective("reduce-scatter"),
        offset=np.where(idle, -1, tail)[::-1, topology.opposite],
        chunk=table.chunk[::-1, topology.opposite],
        reducing=table.round_count,
    )


def allreduce_table(table: Table, latency: int = 1) -> Table:
    """A reduce-scatter followed by the all-gather: every node ends with all sums.

    Parameters
    ----------
    table : Table
        An all-gather of M chunks a node; here node n's chunks are chunks n * M + m of a message
        of N * M chunks.
    latency : int
        Steps from the arrival of a sum to its departure.

    Returns
    -------
    Table
        Twice as many steps and, between the halves, ``latency - 1`` idle ones.
    """
    halves = reduce_scatter_table(table), table
    idle = latency - 1 if table.round_count else 0
    pause = np.full((idle, table.topology.ports), -1)
    return replace(
        table,
        collective=Collective("allreduce"),
        chunks=table.chunks * table.topology.nodes,
        offset=np.concatenate([halves[0].offset, pause, halves[1].offset]),
        chunk=np.concatenate([halves[0].chunk, pause, halves[1].chunk]),
        reducing=table.round_count,
    )
