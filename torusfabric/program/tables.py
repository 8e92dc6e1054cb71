"""Programs of tables: the same for all nodes.

A table lets every node do the same in every step. So where a block lies, when it is read, and what
feeds each out-port does not depend on the node: there is one variant, and the sequencer's ROM
serves all nodes. A step takes a cycle for each flit of a block, and no pause is needed between
steps. What a node does is planned by `table_planner`, or of
sums by `sum_planner`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..schedule import SumTable, Table
from ..topology import IntArray
from .address_map import AddressMap, DirectMap, OffsetMap, PartMap
from .fields import IDLE, Action, Field, Loop, Order, Point, fields_of, memories_of
from .request import Request
from .sum_planner import plan_sums
from .table_planner import plan_table
from .timing import ADDRESS, SETTING, store_delay

if TYPE_CHECKING:
    from ..topology import Topology
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
    return request.program(
        _loop(plan, table.topology, block),
        send_map=_send_map(table, plan, block),
        receive_map=_map(table, plan.memory, _words(plan.slot, block)),
        known_by="step and port",
        memories=memories_of(receiving, len(plan.send_memories)),
        depth=np.array([[memory.depth * block for memory in plan.memories]]),
        variant_of=np.zeros(table.topology.nodes, np.int32),
    )


def _plan_of(request: Request, table: Table | SumTable) -> NodePlan:
    """What a node does: of sums by the step where the length is open, of blocks by the flit."""
    if isinstance(table, Table) and not table.collective.reducing:
        return plan_table(table, request.block, any_length=request.any_length, short=request.short)
    # In short ones all rows are for each flit; they serve for any number of flits.
    block, any_length = (1, False) if request.short else (request.block, request.any_length)
    return plan_sums(table, block, request.latency, any_length=any_length)


def _words(slot: IntArray, block: int) -> IntArray:
    """Slots, counted in blocks, as addresses; -1 stays."""
    return np.where(slot >= 0, slot * block, -1)


def _map(
    table: Table | SumTable, memory: IntArray, base: IntArray, *, ahead: bool = False
) -> AddressMap:
    """Where a node keeps something, by offset, or by the number of a part."""
    if table.collective.local:
        return PartMap(memory, base)
    return OffsetMap(table.topology, memory, base, ahead=ahead)


def _send_map(table: Table | SumTable, plan: NodePlan, block: int) -> AddressMap:
    """Where a node keeps what it sends."""
    received, collective = len(plan.receive_memories), table.collective
    if len(plan.send_memories) == 1 and not collective.reducing and not collective.personal:
        return DirectMap(received, table.chunks, block)
    return _map(table, received + plan.send_memory, _words(plan.send_slot, block), ahead=True)


def _reads(plan: NodePlan, block: int) -> Iterator[Field]:
    """What each reader reads: one memory."""
    for reader, number in enumerate(plan.readers):
        memory = plan.memories[number]
        base, delay = _words(memory.read, block)[:, None], ADDRESS + memory.skew
        yield Field(Point(Action.MEMORY, reader), np.where(base >= 0, number, IDLE), delay)
        yield Field(Point(Action.READ, reader), base, delay)


def _stores(plan: NodePlan, skews: list[int], links: IntArray, block: int) -> Iterator[Field]:
    """What the memories for arrivals store, given skew and link of each in-port."""
    for number, memory in enumerate(plan.receive_memories):
        base = _words(memory.write, block)[:, None]
        latency = plan.sources.latency if memory.sums else None
        late = store_delay(skew=skews[memory.port], latency=latency)
        source = memory.port + (plan.sources.first_result if memory.sums else 0)
        tap = int(links[memory.port])
        for action, value in (Action.WRITE, base), (Action.SOURCE, source), (Action.TAP, tap):
            yield Field(Point(action, number), np.where(base >= 0, value, IDLE), late)


def _loop(plan: NodePlan, topology: Topology, block: int) -> Loop:
    """The rows: the steps of the table, or cycles in which sums move."""
    skew = plan.skew or (0,) * plan.sources.ports
    near, links = [skew[port] for port in topology.opposite.tolist()], topology.cycles_of_port
    arriving = [late + cycles for late, cycles in zip(near, links.tolist(), strict=True)]
    points = (Action.SELECT, SETTING, skew), (Action.OPERAND, SETTING, arriving)
    return Loop(
        order=Order.FLIT if plan.by_waves else Order.ROW,
        flits=block,
        pause=np.full(plan.steps, 0 if plan.by_waves else max(plan.period - plan.flits, 0)),
        blocks=np.ones(plan.steps, int),
        least=plan.period,
        padded=plan.padded,
        sources=plan.sources,
        fields=(
            *(
                field
                for (action, delay, late), setting in zip(points, plan.settings, strict=False)
                for field in fields_of(
                    action, setting[:, None].astype(np.int16), [delay + cycles for cycles in late]
                )
            ),
            *_reads(plan, block),
            *_stores(plan, near, links, block),
        ),
        departure=plan.departure,
        departure_skew=plan.skew,
    )
