"""Translation-invariant schedules: what node 0 does, if all nodes do the same."""

from collections.abc import Sequence

import numpy as np

from ...topology import CayleyGraph
from ..rounds import Rounds
from ..sum_table import SumTable
from ..table import Table
from ..transfers import KeptSums
from .steps import Irregular, Step, agree

__all__ = ["sum_table_of", "table_of_steps"]


def table_of_steps(schedule: Rounds, steps: Sequence[Step]) -> Table:
    """Steps as a table, if all nodes do what node 0 does.

    Raises
    ------
    Irregular
        If they do not.
    """
    topology, blocks, collective = schedule.topology, schedule.blocks, schedule.collective
    if not isinstance(topology, CayleyGraph):
        raise Irregular
    # An all-reduce counts chunks within the share of the message that its owner completes.
    shared = collective.reducing and collective.to_all
    part = schedule.sums_of_owner if shared else schedule.chunks
    exchange = collective.personal and not collective.reducing
    if not part:
        raise Irregular
    offset, chunk, destination = np.full((3, len(steps), topology.ports), -1)
    partial = 0
    for number, step in enumerate(steps):
        port = step.arc[: np.searchsorted(step.arc, topology.ports)]
        first = step.ids[step.indptr[: len(port)]]
        owner = blocks.origin(first)
        if collective.reducing:
            owner = blocks.chunk(first) // part if shared else blocks.destination(first)
        offset[number, port] = topology.subtract(topology.neighbours[0, port], owner)
        chunk[number, port] = blocks.chunk(first) % part
        if exchange:
            goal = blocks.destination(first)
            destination[number, port] = goal if collective.local else topology.subtract(goal, owner)
        if (np.diff(step.indptr) < topology.nodes).any():
            partial = number + 1
    table = Table(
        **schedule.head,
        offset=offset,
        chunk=chunk,
        destination=destination if exchange else None,
        reducing=(partial if shared else len(steps)) if collective.reducing else 0,
    )
    if not agree(table, steps):
        raise Irregular
    return table


def sum_table_of(schedule: Rounds) -> SumTable:
    """Rounds as a table, if all nodes do what node 0 does.

    Raises
    ------
    Irregular
        If they do not, or the collective is no all-reduce.
    """
    topology = schedule.topology
    if schedule.collective.kind != "allreduce":
        raise Irregular
    chunk, passed = np.full((2, schedule.round_count, topology.ports), -1)
    for number, transfers in enumerate(schedule.transfers):
        if not len(transfers):
            continue
        payload, ports = transfers.payload, transfers.hops[:, 0]
        if not isinstance(payload, KeptSums) or (transfers.lengths != 1).any():
            raise Irregular
        entries = np.full((3, topology.nodes, topology.ports), -1)
        entries[:, transfers.source, ports] = ports, payload.chunk, payload.passed
        each = len(transfers) // topology.nodes
        if (entries != entries[:, :1]).any() or (entries[0, 0] >= 0).sum() != each:
            raise Irregular
        chunk[number], passed[number] = entries[1:, 0]
    return SumTable(**schedule.head, chunk=chunk, passed=passed)
