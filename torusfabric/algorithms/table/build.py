"""A table for a collective, from what is planned for node 0."""

import numpy as np

from ...collective import Collective
from ...schedule import Switching, Table
from ...topology import CayleyGraph, Topology
from .reversal import as_collective

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
    algorithm: str,
    ports: int,
    chunks: int,
    latency: int,
) -> Table:
    """The table of a collective without a root.

    Parameters
    ----------
    collective : Collective
        All-gather, reduce-scatter, all-reduce or total exchange.
    columns : tuple of ndarray of int, shape (steps, ports)
        ``offset`` and ``chunk`` of an all-gather, which serves the reductions in reverse, or
        ``offset``, ``chunk`` and ``destination`` of a total exchange.
    ports : int
        How many messages a node sends, and receives, in a step.
    chunks : int
        The chunks of what a node sends, or owns of an all-reduce.
    latency : int
        Steps from the arrival of a sum to its departure.
    """
    offset, chunk, *destination = columns
    table = Table(
        topology=topology,
        collective=Collective("allgather") if collective.reducing else collective,
        algorithm=algorithm,
        switching=Switching.STORE_AND_FORWARD,
        ports=ports,
        chunks=chunks,
        offset=offset,
        chunk=chunk,
        destination=destination[0] if destination else None,
    )
    return table if destination else as_collective(table, collective, latency)
