"""Programs of tables: one for all nodes.

A table tells every node to do the same in every step. So where a block lies, when it is read, and
what feeds each out-port does not depend on the node: one sequencer tells all nodes, and there is
one kind of router. A step takes a cycle for each flit of a block, and no pause is needed between
steps.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .base import OWN, SwitchProgram
from .table_plan import plan_table

__all__ = ["TableProgram", "compile_tables"]

#: Clock edges from the start pulse to done beyond one a step: read address, memory, out-port, and
#: memory write, less the first edge.
OVERHEAD = 3

#: Cycles by which a write of the host may be late, for the first read comes as late.
SPARE = 1

#: Cycles in which the place of a word that the host writes is looked up.
LOOK_UP = 4

#: The same where only its chunk matters.
CHUNK_LOOK_UP = 2


def needs_divider(parts, flits):
    """Cycles to find out in which of several parts of so many flits an address lies."""
    return (parts - 1).bit_length() if flits & (flits - 1) else 0


@dataclass(frozen=True, eq=False, kw_only=True)
class TableProgram(SwitchProgram):
    """The program of a `Table` that moves blocks; `ReductionProgram` is for sums.

    ``select`` holds the settings for blocks of one flit; `plan` those for others.
    """

    @cached_property
    def _plans(self):
        return {}

    def plan(self, flits):
        """What every node does, for messages of so many flits: a `TablePlan`."""
        block = self.block_flits(flits)
        if block not in self._plans:
            self._plans[block] = plan_table(self.schedule, block)
        return self._plans[block]

    @property
    def steps(self):
        """Steps of the table."""
        return self.schedule.round_count

    def located(self, flits):
        """Whether what the host writes has to be put in another order."""
        return len(self.plan(flits).own) > 1 or self.blocks.collective.personal

    def write_delay(self, flits):
        """Cycles by which a word that the host writes arrives later than it could."""
        if not self.located(flits):
            return 0
        if not self.blocks.collective.personal:
            return CHUNK_LOOK_UP
        return LOOK_UP + needs_divider(self.topology.nodes, flits)

    def wait(self, flits):
        """Cycles to wait at the start, for what the host wrote last."""
        return max(self.write_delay(flits) - SPARE, 0)

    def cycles(self, flits):
        return self.block_flits(flits) * self.steps + OVERHEAD + self.wait(flits)

    def locate(self, nodes, blocks):
        nodes, blocks = np.broadcast_arrays(nodes, blocks)
        offset = self.topology.subtract(nodes, self.blocks.origin(blocks))
        plan, chunk = self.plan(self.schedule.chunks), self.blocks.chunk(blocks)
        bank = np.where(offset == 0, OWN, plan.bank[offset, chunk])
        slot = plan.slot[offset, chunk]
        if self.blocks.collective.personal:
            slot = np.where(self.blocks.destination(blocks) == nodes, slot, -1)
        return bank, slot

    def execute(self, messages):
        topology, chunks = self.topology, self.schedule.chunks
        nodes, flits = np.arange(topology.nodes), messages.shape[1] // self.layout.send_blocks
        plan = self.plan(flits * chunks)
        own = [np.zeros((len(nodes), bank.depth, flits), messages.dtype) for bank in plan.own]
        sent = messages.reshape(len(nodes), self.layout.send_blocks // chunks, chunks, flits)
        for index, bank in np.ndenumerate(plan.own_bank):
            goal = topology.add(nodes, index[0]) if plan.own_bank.shape[0] > 1 else 0
            own[bank][:, plan.own_slot[index]] = sent[nodes, goal, index[1]]
        banks = [np.zeros((len(nodes), bank.depth, flits), messages.dtype) for bank in plan.banks]
        arrived: list[np.ndarray] = []
        near = topology.neighbours
        upstream = near, np.broadcast_to(topology.opposite, near.shape)
        for step in range(plan.steps):
            link = np.zeros((len(nodes), plan.ports, flits), messages.dtype)
            for port in np.nonzero(plan.select[step] >= 0)[0]:
                link[:, port] = self._source(plan, step, port, arrived, banks, own)
            arrived.append(link[upstream])
            for bank, words in zip(plan.banks, banks, strict=True):
                if bank.write[step] >= 0:
                    words[:, bank.write[step]] = arrived[-1][:, bank.port]
        return self._view(plan, nodes, banks, own)

    @staticmethod
    def _source(plan, step, port, arrived, banks, own):
        """What all nodes send by a port in a step."""
        source = plan.select[step, port]
        if source < plan.ports:
            return arrived[step - 1][:, source]
        source -= plan.ports
        if source < len(plan.delayed):
            # Two cycles are two steps, or one step of two flits.
            age = 2 if plan.by_waves else 1
            return arrived[step - age][:, plan.delayed[source]]
        source -= len(plan.delayed)
        if source < len(banks):
            return banks[source][:, plan.banks[source].read[step]]
        source -= len(banks)
        return own[source][:, plan.own[source].read[step]]

    def _view(self, plan, nodes, banks, own):
        """What the host reads: at each node, for each origin and chunk."""
        shape = (len(nodes), self.layout.recv_blocks, banks[0].shape[2])
        view = np.zeros(shape, banks[0].dtype)
        for index in range(self.layout.recv_blocks):
            origin, chunk = divmod(index, self.schedule.chunks)
            offset = self.topology.subtract(nodes, origin)
            bank, slot = plan.bank[offset, chunk], plan.slot[offset, chunk]
            for node in nodes[slot >= 0]:
                where = own if offset[node] == 0 else banks
                view[node, index] = where[bank[node]][node, slot[node]]
        return view.reshape(len(nodes), -1)


def compile_tables(table):
    """The switch program of a table.

    Parameters
    ----------
    table : Table
        Not a reduction, and with at least one step.

    Returns
    -------
    TableProgram
    """
    return TableProgram(
        schedule=table,
        select=plan_table(table, 1).select[:, None].astype(np.int16),
        node_class=np.zeros(table.topology.nodes, np.int32),
    )
