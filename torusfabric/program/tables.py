"""Programs of tables: the same for all nodes.

A table lets every node do the same in every step. So where a block lies, when it is read, and what
feeds each out-port does not depend on the node: there is one variant, and the sequencer's ROM
serves all nodes. A step takes a cycle for each flit of a block, and no pause is needed between
steps. Blocks are forwarded as `table_planner` says, sums as `sum_planner` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..schedule import SumTable, Table
from ..topology import IntArray
from .address_map import DirectMap, OffsetMap
from .fields import IDLE, Action, Field, Loop, Order, Sources, fields_of, memories_of
from .mode import CycleCost
from .node_plan import TablePlan
from .request import Request
from .sum_plan import SumPlan
from .sum_planner import plan_sums, plan_sums_of_any_length
from .table_planner import plan_table
from .timing import ADDRESS, LINK, SETTING, store_delay

if TYPE_CHECKING:
    from .node_plan import NodePlan
    from .program import Program

__all__ = ["compile_table"]


def compile_table(request: Request) -> Program:
    """The program of a table.

    Examples
    --------
    All nodes are of one variant, and a step takes a cycle a flit.

    >>> import torusfabric as tf
    >>> table = tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching")
    >>> program = compile_table(Request(table, 4))
    >>> program.loop.variants, table.round_count, program.loop.slots(4)
    (1, 4, 16)
    """
    table, block = request.schedule, request.block
    assert isinstance(table, Table | SumTable)
    plan = _plan_of(request, table)
    receiving = [memory.port for memory in plan.receive_memories]
    mode = request.mode(
        _sum_loop(plan, table) if isinstance(plan, SumPlan) else _loop(plan, block),
        send_map=_send_map(table, plan, block),
        receive_map=OffsetMap(table.topology, plan.result_memory, _words(plan.slot, block)),
        moving=CycleCost(table.round_count, 0, table.round_count * block),
        known_by="step and port",
    )
    return request.program(
        mode,
        memories=memories_of(receiving, len(plan.send_memories)),
        depth=np.array([[memory.depth * block for memory in plan.memories]]),
        variant_of=np.zeros(table.topology.nodes, np.int32),
    )


def _plan_of(request: Request, table: Table | SumTable) -> SumPlan | TablePlan:
    """What a node does: of sums by the step where the length is open, of blocks by the flit."""
    if isinstance(table, Table) and not table.collective.reducing:
        return plan_table(table, request.block, by_waves_only=request.any_length)
    plan = plan_sums_of_any_length if request.any_length else plan_sums
    return plan(table, request.block, request.latency)


def _words(slot: IntArray, block: int) -> IntArray:
    """Slots, counted in blocks, as addresses; -1 stays."""
    return np.where(slot >= 0, slot * block, -1)


def _send_map(table: Table | SumTable, plan: NodePlan, block: int) -> DirectMap | OffsetMap:
    """Where a node keeps what it sends."""
    if (
        len(plan.send_memories) == 1
        and not table.collective.reducing
        and not table.collective.personal
    ):
        return DirectMap(len(plan.receive_memories), table.chunks, block)
    memory = plan.send_memory + len(plan.receive_memories)
    return OffsetMap(table.topology, memory, _words(plan.send_slot, block), ahead=True)


class _Injections(NamedTuple):
    """The memories that are read, each by a reader with an injection port of its own.

    Parameters
    ----------
    readers : int
    fields : tuple of Field
        Of the readers.
    settings : tuple of ndarray of int16, shape (rows, 1, ports)
        Settings in which memories are numbered as injection ports.
    """

    readers: int
    fields: tuple[Field, ...]
    settings: tuple[IntArray, ...]


def _injections(plan: NodePlan, first: int, settings: list[IntArray], block: int) -> _Injections:
    """Number the memories that are read as injection ports; the first memory is source `first`."""
    end = first + len(plan.memories)
    used = np.unique(np.concatenate(settings, axis=None))
    read = used[(used >= first) & (used < end)]
    fields: list[Field] = []
    for reader, number in enumerate((read - first).tolist()):
        memory = plan.memories[number]
        base, delay = _words(memory.read, block)[:, None, None], ADDRESS + memory.skew
        chosen = np.where(base >= 0, number, IDLE)
        fields += fields_of(Action.MEMORY, chosen, delay, first=reader)
        fields += fields_of(Action.READ, base, delay, first=reader)
    numbered = []
    for setting in settings:
        injected = first + np.searchsorted(read, np.maximum(setting, first))
        # What follows the memories is the word that changes nothing.
        source = np.where(setting >= end, first + len(read), injected)
        source = np.where(setting < first, setting, source)
        numbered.append(source[:, None].astype(np.int16))
    return _Injections(len(read), tuple(fields), tuple(numbered))


def _stores(plan: NodePlan, block: int, delays: list[int]) -> list[Field]:
    """What the memories for arrivals store, given the delay of each in-port, and of each result."""
    fields: list[Field] = []
    for number, memory in enumerate(plan.receive_memories):
        base = _words(memory.write, block)[:, None, None]
        late = delays[memory.port + (plan.ports if memory.sums else 0)]
        source = memory.port + (plan.first_result if memory.sums else 0)
        for action, value in (Action.WRITE, base), (Action.SOURCE, source), (Action.TAP, 1):
            values = np.where(base >= 0, value, IDLE)
            fields += fields_of(action, values, late, first=number)
    return fields


def _loop(plan: TablePlan, block: int) -> Loop:
    """The rows of a table of blocks: its steps."""
    first, ports = plan.ports + len(plan.delayed), plan.ports
    count, reads, (select,) = _injections(plan, first, [plan.select], block)
    return Loop(
        order=Order.FLIT if plan.by_waves else Order.ROW,
        flits=block,
        pause=np.zeros(plan.steps, int),
        blocks=np.ones(plan.steps, int),
        sources=Sources(ports, plan.delayed, injections=tuple((k,) for k in range(count))),
        fields=(
            *fields_of(Action.SELECT, select, SETTING),
            *reads,
            *_stores(plan, block, [store_delay()] * ports),
        ),
        departure=np.broadcast_to(np.arange(plan.steps)[:, None], plan.select.shape),
    )


def _sum_loop(plan: SumPlan, table: Table | SumTable) -> Loop:
    """The rows of a table of sums."""
    block = plan.flits
    settings = [plan.select, plan.operand]
    count, reads, (select, operand) = _injections(plan, plan.first_memory, settings, block)
    near = plan.skew[table.topology.opposite].tolist()
    return Loop(
        order=Order.FLIT if plan.by_waves else Order.ROW,
        flits=block,
        pause=np.full(plan.steps, 0 if plan.by_waves else max(plan.period - block, 0)),
        blocks=np.ones(plan.steps, int),
        least=plan.period,
        padded=plan.padded,
        sources=Sources(
            plan.ports,
            plan.passed,
            results=True,
            delayed_results=plan.delayed,
            injections=tuple((k,) for k in range(count)),
            latency=plan.latency,
        ),
        fields=(
            *fields_of(Action.SELECT, select, [SETTING + skew for skew in plan.skew.tolist()]),
            *fields_of(Action.OPERAND, operand, [LINK + skew for skew in near]),
            *reads,
            *_stores(
                plan,
                block,
                [
                    store_delay(skew=skew, latency=latency)
                    for latency in (None, plan.latency)
                    for skew in near
                ],
            ),
        ),
        departure=plan.departure,
        departure_skew=tuple(plan.skew.tolist()),
    )
