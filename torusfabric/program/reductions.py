"""Programs of tables of sums: reduce-scatter and all-reduce, one program for all nodes."""

from dataclasses import dataclass, field

import numpy as np

from ..collective import Operator
from .reduction_plan import plan_reduction
from .tables import LOOK_UP, OVERHEAD, TableProgram, needs_divider

__all__ = ["ReductionProgram", "compile_reductions"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ReductionProgram(TableProgram):
    """The program of a `Table` that moves sums.

    Parameters
    ----------
    operator : Operator
    """

    operator: Operator = field(default_factory=Operator)

    def plan(self, flits):
        """What every node does, for messages of so many flits: a `ReductionPlan`."""
        block = self.block_flits(flits)
        if block not in self._plans:
            self._plans[block] = plan_reduction(self.schedule, block)
        return self._plans[block]

    def located(self, flits):
        return True

    def write_delay(self, flits):
        part = self.block_flits(flits) * self.layout.part_chunks
        return LOOK_UP + needs_divider(self.topology.nodes, part)

    def cycles(self, flits):
        return self.plan(flits).duration + OVERHEAD + self.wait(flits)

    def locate(self, nodes, blocks):
        nodes, blocks = np.broadcast_arrays(nodes, blocks)
        plan, chunk = self.plan(self.schedule.chunks), self.blocks.chunk(blocks)
        if self.blocks.collective.personal:
            mine = self.blocks.destination(blocks) == nodes
            return plan.bank[0, chunk], np.where(mine, plan.slot[0, chunk], -1)
        owner, part = divmod(chunk, self.layout.part_chunks)
        offset = self.topology.subtract(nodes, owner)
        return plan.bank[offset, part], plan.slot[offset, part]

    def execute(self, messages, width=64):
        """Carry out the program on words of so many bits, as the hardware does."""
        flits = messages.shape[1] // self.layout.send_blocks
        plan = self.plan(flits * self.schedule.chunks)
        return _Machine(self, plan, messages, width).run()


class _Machine:
    """All nodes, cycle by cycle; the flits of a block are a vector, timed by the first of them."""

    def __init__(self, program, plan, messages, width):
        self.program, self.plan, self.width = program, plan, width
        topology = self.topology = program.topology
        nodes = self.nodes = np.arange(topology.nodes)
        chunks = program.layout.part_chunks
        sent = messages.reshape(len(nodes), len(nodes), chunks, -1)
        self.own = [self._memory(bank, sent) for bank in plan.own]
        self.banks = [self._memory(bank, sent) for bank in plan.banks]
        for index, bank in np.ndenumerate(plan.own_bank):
            goal = topology.add(nodes, index[0])
            self.own[bank][:, plan.own_slot[index]] = sent[nodes, goal, index[1]]
        self.upstream = topology.neighbours, topology.opposite

    def _memory(self, bank, sent):
        return np.zeros((len(self.nodes), bank.depth, sent.shape[-1]), sent.dtype)

    def _row(self, time, skew):
        """The row that is carried out at a time by what has a skew, or None."""
        row, rest = divmod(time - skew, self.plan.period)
        return row if not rest and 0 <= row < self.plan.steps else None

    def _word(self, source, time, sums):
        """What a number means to who takes it at a time."""
        plan = self.plan
        if source < plan.ports:
            return sums[time - 1][source]
        source -= plan.ports
        if source < len(plan.delayed):
            return sums[time - 2][plan.delayed[source]]
        source -= len(plan.delayed)
        if source < len(plan.banks) + len(plan.own):
            bank = [*plan.banks, *plan.own][source]
            words = [*self.banks, *self.own][source]
            return words[:, bank.read[self._row(time + 1, bank.skew)]].copy()
        return None

    def run(self):
        """What the host reads in the end."""
        plan, ports = self.plan, range(self.plan.ports)
        opposite = self.topology.opposite.tolist()
        sums: dict[int, dict] = {}
        links: dict[int, dict] = {}
        for time in range(-1, plan.last + 1):
            # What was added a cycle ago is written now, to be read in the next cycle.
            self._store(time - 2, sums.get(time - 2, {}))
            sums[time] = {}
            for q in ports:
                row = self._row(time, int(plan.skew[opposite[q]]))
                if row is not None and plan.operand[row, q] >= 0:
                    word = links[time][opposite[q]][self.topology.neighbours[:, q]]
                    other = self._word(plan.operand[row, q], time, sums)
                    if other is not None:
                        word = self.program.operator.combine(word, other, self.width)
                    sums[time][q] = word
            links[time + 1] = {}
            for port in ports:
                row = self._row(time + 1, int(plan.skew[port]))
                if row is not None and plan.select[row, port] >= 0:
                    links[time + 1][port] = self._word(plan.select[row, port], time, sums)
            for past in (sums, links):
                past.pop(time - 4, None)
        for time in (plan.last, plan.last - 1):
            self._store(time, sums[time])
        return self._view()

    def _store(self, time, sums):
        """Write what was added at a time."""
        for bank, words in zip(self.plan.banks, self.banks, strict=True):
            row = self._row(time, int(self.plan.skew[self.topology.opposite[bank.port]]))
            if bank.port in sums and bank.write[row] >= 0:
                words[:, bank.write[row]] = sums[bank.port]

    def _view(self):
        program, plan = self.program, self.plan
        parts = np.arange(program.layout.recv_parts)
        offset = self.topology.subtract(self.nodes[:, None], parts[None, :])
        if program.layout.recv_parts == 1:
            offset = np.zeros_like(offset)
        bank, slot = plan.bank[offset], plan.slot[offset]
        flits = self.own[0].shape[-1]
        view = np.zeros((*bank.shape, flits), self.own[0].dtype)
        for number, words in enumerate(self.banks):
            at = np.nonzero(bank == number)
            view[at] = words[at[0], slot[at]]
        return view.reshape(len(self.nodes), -1)


def compile_reductions(table, operator):
    """The switch program of a table of sums.

    Parameters
    ----------
    table : Table
        A reduce-scatter or an all-reduce, with at least one step.
    operator : Operator

    Returns
    -------
    ReductionProgram
    """
    return ReductionProgram(
        schedule=table,
        select=plan_reduction(table, 1).select[:, None].astype(np.int16),
        node_class=np.zeros(table.topology.nodes, np.int32),
        operator=operator,
    )
