"""A table for a collective, from what is planned for node 0."""

from dataclasses import replace

import numpy as np

from ...collective import Collective
from ...schedule import Table
from ...topology import CayleyGraph, Topology

__all__ = ["build_table", "chunks_of_owner"]


def chunks_of_owner(topology: Topology, collective: Collective, chunks: int | None) -> int | None:
    """Into how many chunks is cut what a node sends, or owns of an all-reduce; None if not given.

    A message of an all-reduce is cut into as many parts as there are nodes, each of several chunks.
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
    """The table of a collective without a root.

    Parameters
    ----------
    collective : Collective
        All-gather, reduce-scatter, all-reduce or total exchange.
    columns : tuple of ndarray of int, shape (steps, ports)
        ``offset`` and ``chunk`` of an all-gather, which serves the reductions in reverse, or
        ``offset``, ``chunk`` and ``destination`` of a total exchange.
    chunks : int
        The chunks of what a node sends, or owns of an all-reduce.
    latency : int
        Steps from the arrival of a sum to its departure.
    ports : int, optional
        As of the `Table`.
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
    backwards = _backwards(table)
    return _one_after_the_other(backwards, table, latency) if collective.to_all else backwards


def _backwards(table: Table) -> Table:
    """A reduce-scatter, by running an all-gather backwards, which delivers all to each node once.

    Reversed steps and reversed arcs turn every tree along which a block of a node spreads into a
    tree along which contributions to that node's sum come together (Fragopoulou and Akl 1994,
    sections 1 and 6). Every node then sends what it has gathered for an owner once, to its parent,
    after all its children have sent theirs: each contribution is added exactly once. Where the
    all-gather sends from offset ``d - g`` to ``d`` on port g, the reduction sends from d to
    ``d - g`` on the opposite port, so that ports stay distinct in a step.
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


def _one_after_the_other(scattering: Table, gathering: Table, latency: int) -> Table:
    """An all-reduce: a reduce-scatter, ``latency - 1`` idle steps, and an all-gather.

    Node n's M chunks are chunks n * M + m of a message of N * M chunks.
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
