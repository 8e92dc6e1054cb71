"""Programs of tables: the same for all nodes.

A table lets every node do the same in every step. So where a block lies, when it is read, and what
feeds each out-port does not depend on the node: there is one variant, and the sequencer's ROM
serves all nodes. A step takes a cycle for each flit of a block, and no pause is needed between
steps. Blocks are forwarded as `table_plan` says, sums as `sum_plan` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .address_map import DirectMap, OffsetMap
from .cost import CycleCost
from .program import Mode, Program, block_flits
from .sum_plan import SumPlan, plan_sums
from .table_plan import TablePlan, plan_table
from .timing import LINK
from .values import IntArray, Loop, Memory, Order, Reads, Writes

if TYPE_CHECKING:
    from ..collective import Operator
    from ..schedule import Table
    from .node_plan import NodePlan

__all__ = ["compile_table"]

#: Cycles in which the address of a word that the host writes is looked up, by offset and chunk.
LOOK_UP = 4

#: The same where only its chunk matters.
CHUNK_LOOK_UP = 2


def compile_table(table: Table, flits: int, operator: Operator | None) -> Program:
    """The program of a table.

    Parameters
    ----------
    table : Table
        With at least one step.
    flits : int
        Flits of a message.
    operator : Operator or None
        Of a table of sums.

    Returns
    -------
    Program

    Raises
    ------
    InputError
        If a message of so many flits cannot be cut into equal chunks.
    """
    block = block_flits(table, flits)
    topology, sums = table.topology, table.collective.reducing
    plan = plan_sums(table, block) if sums else plan_table(table, block)
    loop = _sum_loop(plan, table, block) if isinstance(plan, SumPlan) else _loop(plan, block)
    delay = _write_delay(table, plan, block)
    moved = table.round_count * block
    cycles = loop.slots + loop.drain + max(delay - 1, 0)
    mode = Mode(
        schedule=table,
        operators=(operator,) if operator else (),
        loop=loop,
        send_map=_send_map(table, plan, block),
        receive_map=OffsetMap(topology, plan.result_bank, _words(plan.slot, block)),
        write_delay=delay,
        cost=CycleCost(table.round_count, 0, moved, constant_cycles=cycles - moved),
        known_by="step and port",
    )
    memories = [Memory((bank.port,)) for bank in plan.banks] + [
        Memory((), own=True) for _ in plan.own
    ]
    return Program(
        topology=topology,
        flits=flits,
        modes=(mode,),
        memories=tuple(memories),
        depth=np.array([[bank.depth * block for bank in (*plan.banks, *plan.own)]]),
        variant_of=np.zeros(topology.nodes, np.int32),
    )


def _words(slot: IntArray, block: int) -> IntArray:
    """Places in blocks as addresses; -1 stays."""
    return np.where(slot >= 0, slot * block, -1)


def _send_map(table: Table, plan: NodePlan, block: int) -> DirectMap | OffsetMap:
    """Where a node keeps what it sends."""
    if len(plan.own) == 1 and not table.collective.reducing and not table.collective.personal:
        return DirectMap(len(plan.banks), table.chunks, block)
    memory = plan.own_bank + len(plan.banks)
    return OffsetMap(table.topology, memory, _words(plan.own_slot, block), ahead=True)


def _write_delay(table: Table, plan: NodePlan, block: int) -> int:
    """Cycles by which a word that the host writes arrives later than it could."""
    if isinstance(_send_map(table, plan, block), DirectMap):
        return 0
    layout = table.collective.layout(table.topology, table.chunks)
    if layout.send_parts == 1:
        return CHUNK_LOOK_UP
    return LOOK_UP + division_cycles(layout.send_parts, layout.part_chunks * block)


def division_cycles(parts: int, flits: int) -> int:
    """Cycles to find out in which of several parts of so many flits an address lies."""
    return (parts - 1).bit_length() if flits & (flits - 1) else 0


def _lanes(plan: NodePlan, first: int, settings: list[IntArray], block: int) -> tuple:
    """The banks that are read, as readers, and the settings with these numbered as lanes."""
    banks = [*plan.banks, *plan.own]
    end = first + len(banks)
    used = np.unique(np.concatenate(settings, axis=None))
    read = used[(used >= first) & (used < end)]
    reads = tuple(
        Reads.single(k, _words(banks[k].read[:, None], block), block, banks[k].skew)
        for k in (read - first).tolist()
    )
    lane = first + np.searchsorted(read, np.maximum(settings, first))
    lanes = [
        np.where(values < first, values, np.where(values >= end, first + len(read), lane[k]))
        for k, values in enumerate(settings)
    ]
    return reads, [values[:, None].astype(np.int16) for values in lanes]


def _writes(plan: NodePlan, block: int, skew: IntArray) -> tuple[Writes, ...]:
    """What the banks for arrivals store."""
    writes = []
    for bank in plan.banks:
        base = _words(bank.write[:, None], block)
        length, hops, port = (np.full_like(base, value) for value in (block, 1, bank.port))
        writes.append(Writes(base, length, hops, port, skew=int(skew[bank.port])))
    return tuple(writes)


def _loop(plan: TablePlan, block: int) -> Loop:
    """The rows of a table of blocks: its steps."""
    reads, (select,) = _lanes(plan, plan.ports + len(plan.delayed), [plan.select], block)
    starts = np.arange(plan.steps) * plan.period
    return Loop(
        order=Order.FLIT if plan.by_waves else Order.ROW,
        duration=np.full(plan.steps, plan.period),
        flits=block if plan.by_waves else 1,
        drain=LINK,
        select=select,
        delayed=plan.delayed,
        lanes=tuple((k,) for k in range(len(reads))),
        reads=reads,
        writes=_writes(plan, block, np.zeros(plan.ports, int)),
        departure=np.broadcast_to(starts[:, None], plan.select.shape),
        stride=plan.steps if plan.by_waves else 1,
    )


def _sum_loop(plan: SumPlan, table: Table, block: int) -> Loop:
    """The rows of a table of sums."""
    first = plan.ports + len(plan.delayed)
    reads, (select, operand) = _lanes(plan, first, [plan.select, plan.operand], block)
    near = plan.skew[table.topology.opposite]
    return Loop(
        order=Order.FLIT if plan.by_waves else Order.ROW,
        duration=np.full(plan.steps, plan.period),
        flits=block if plan.by_waves else 1,
        drain=LINK + plan.tail,
        select=select,
        select_skew=tuple(plan.skew.tolist()),
        operand=operand,
        operand_skew=tuple(near.tolist()),
        delayed=plan.delayed,
        lanes=tuple((k,) for k in range(len(reads))),
        reads=reads,
        writes=_writes(plan, block, near),
        departure=plan.leaves,
        stride=plan.steps if plan.by_waves else 1,
    )
