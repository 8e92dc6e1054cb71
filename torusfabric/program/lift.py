"""Programs of collectives in groups: the program of one group, for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .fields import ACTIONS, IDLE, Field, Holder, Loop, Memory, Point, Sources

if TYPE_CHECKING:
    from ..schedule import Lifted
    from ..topology import Groups, IntArray
    from .program import Program

__all__ = ["lift"]


def lift(program: Program, schedule: Lifted) -> Program:
    """The program of one group, carried out by every group.

    A node does what the node at its position does, by the ports that lie in its group; it is idle
    at all others. Memories are numbered as they were, and address maps keep to positions.

    Parameters
    ----------
    program : Program
        That of the schedule of a group.
    schedule : Lifted

    Returns
    -------
    Program

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x4", "allgather@1"))
    >>> program.cycles() == tf.compile(tf.plan("4", "allgather")).cycles()
    True
    """
    groups = schedule.blocks.groups
    mode = replace(program.mode, schedule=schedule, loop=_loop(program.loop, groups))
    return replace(
        program,
        topology=schedule.topology,
        modes=(mode,),
        memories=tuple(_memory(memory, groups) for memory in program.memories),
        variant_of=program.variant_of[groups.position],
    )


def _memory(memory: Memory, groups: Groups) -> Memory:
    """A memory that stores what arrives by the ports of the topology."""
    return replace(memory, ports=tuple(groups.ports[port] for port in memory.ports))


def _loop(loop: Loop, groups: Groups) -> Loop:
    """The rows, with the ports of the topology."""
    ports, mine = groups.ports, loop.sources
    sources = replace(
        mine,
        ports=groups.topology.ports,
        delayed=tuple(ports[port] for port in mine.delayed),
        delayed_results=tuple(ports[port] for port in mine.delayed_results),
    )
    streams = None if loop.streams is None else _embedded(loop.streams, groups)[groups.position]
    return replace(
        loop,
        streams=streams,
        sources=sources,
        fields=_renamed(loop, sources, groups),
        departure=_embedded(loop.departure, groups),
        departure_skew=_embedded_skews(loop.departure_skew, groups),
    )


def _renamed(loop: Loop, sources: Sources, groups: Groups) -> tuple[Field, ...]:
    """The fields, with the numbers of the ports and sources of the topology.

    In-ports and their results are spread out, all other sources keep their order.
    """
    ports, mine = np.array(groups.ports), loop.sources
    numbers = [*ports, *range(sources.ports, sources.first_result)]
    if mine.results:
        first = sources.first_result
        numbers += [*(first + ports), *range(first + sources.ports, sources.first_injection)]
    numbers += range(sources.first_injection, sources.identity + 1)
    number = np.array([*numbers, IDLE], np.int16)  # IDLE stays what it is
    fields = []
    for field in loop.fields:
        action, point = field.point
        duty = ACTIONS[action]
        if duty.holder in (Holder.ROUTER, Holder.COMBINER):
            field = replace(field, point=Point(action, int(ports[point])))
        if duty.selects:
            field = replace(field, values=number[field.values])
        fields.append(field)
    return tuple(fields)


def _embedded(columns: IntArray, groups: Groups) -> IntArray:
    """An array whose last axis is that of ports; 0 for those outside a group."""
    result = np.zeros((*columns.shape[:-1], groups.topology.ports), columns.dtype)
    result[..., groups.ports] = columns
    return result


def _embedded_skews(skews: tuple[int, ...], groups: Groups) -> tuple[int, ...]:
    """The skew of each port, 0 outside a group."""
    return tuple(_embedded(np.array(skews), groups).tolist()) if skews else ()
