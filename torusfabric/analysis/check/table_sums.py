"""Proof of a translation-invariant reduction by looking at the sums of one owner.

Every node does the same relative to itself, so what is true of the sums that belong to node 0 is
true of all. Only how many contributions each offset keeps has to be followed: a partial sum moves,
so no contribution is in two of them, and a table names for each sum that it sends all that has come
together at its sender, which is what its sender keeps unless it has sent its own contribution
before.
"""

from typing import NoReturn

import numpy as np

from ...schedule import Table
from ...topology import IntArray
from .fault import fault, unfinished
from .table import raise_busy, table_traffic
from .traffic import Traffic

__all__ = ["check_sums_table"]


def check_sums_table(schedule: Table) -> Traffic:
    """Check a table for a reduce-scatter or an all-reduce.

    Parameters
    ----------
    schedule : Table
        With entries that `inspect_table` accepts, and chunks below its `sums_of_owner`.

    Raises
    ------
    ScheduleError
        At the first fault, as it shows at node 0.
    """
    topology, sums = schedule.topology, _Sums(schedule)
    for step in range(schedule.round_count):
        raise_busy(schedule, step, schedule.offset[step])
        ports = np.flatnonzero(schedule.offset[step] >= 0)
        target = schedule.offset[step, ports]
        sender = topology.subtract(target, topology.generators[ports])
        sums.move(step, ports, sender, target, schedule.chunk[step, ports])
    sums.finish()
    transfers, moving = table_traffic(schedule)
    return Traffic.of_steps(transfers, moving)


class _Sums:
    """How many contributions to the sums of node 0 each offset keeps: ``count[offset, chunk]``."""

    def __init__(self, schedule: Table) -> None:
        self.schedule, self.nodes = schedule, schedule.topology.nodes
        self.count = np.ones((self.nodes, schedule.sums_of_owner), np.int64)
        self.sent = np.zeros(self.count.shape, bool)

    def move(
        self,
        step: int,
        ports: IntArray,
        sender: IntArray,
        target: IntArray,
        chunk: IntArray,
    ) -> None:
        """Carry out a step: all sums leave before any arrives."""
        carried = self.count[sender, chunk]
        for k in range(len(ports)):
            here = sender[k], chunk[k]
            if step >= self.schedule.reducing:
                wrong = carried[k] < self.nodes
            else:
                wrong = self.sent[here]
                self.sent[here] = True
            if wrong:
                self.stop(step, ports[k], *here, "sends {block} before it holds it")
        partial = carried < self.nodes
        self.count[sender[partial], chunk[partial]] = 0
        for k in range(len(ports)):
            there = target[k], chunk[k]
            if self.count[there] + carried[k] > self.nodes:
                text = "sends {block}, which is counted twice"
                self.stop(step, ports[k], sender[k], chunk[k], text)
            self.count[there] += carried[k]

    def stop(self, step: int, port: int, sender: int, chunk: int, text: str) -> NoReturn:
        """Raise a fault of node 0, when it stands at an offset from the owner of a sum."""
        owner = int(self.schedule.topology.subtract(0, sender))
        raise fault(self.schedule, step + 1, text, node=0, port=port,
                    block=self.block(0, owner, chunk))  # fmt: skip

    def block(self, origin: int, owner: int, chunk: int) -> int:
        """The number of a contribution."""
        blocks = self.schedule.blocks
        if self.schedule.collective.personal:
            return int(blocks.encode(origin, chunk, owner))
        return int(blocks.encode(origin, owner * self.count.shape[1] + chunk))

    def finish(self) -> None:
        """Check that every sum is complete where it must be delivered."""
        required = self.count[:1] if self.schedule.collective.personal else self.count
        offset, chunk = np.nonzero(required < self.nodes)
        if len(offset):
            topology = self.schedule.topology
            owner = int(topology.subtract(0, offset[0]))
            block = self.block(owner, owner, chunk[0])
            text = "ends without the complete sum that has {block}"
            raise unfinished(self.schedule, 0, block, text)
