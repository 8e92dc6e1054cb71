"""All-reduces in which all nodes keep their sums and do the same."""

import numpy as np

from ..rounds import Rounds
from ..sum_table import SumTable
from ..transfers import KeptSums
from .steps import Irregular, common

__all__ = ["keeps_sums", "sum_table_of"]


def keeps_sums(schedule: Rounds) -> bool:
    """Whether nodes keep the sums that they send."""
    return any(isinstance(transfers.payload, KeptSums) for transfers in schedule.transfers)


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
    return SumTable(**common(schedule), chunk=chunk, passed=passed)
