"""Programs of collectives in groups: the program of one group, for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .values import IDLE, Loop, Memory

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
    return replace(memory, ports=tuple(_ports(np.array(memory.ports, int), groups).tolist()))


def _loop(loop: Loop, groups: Groups) -> Loop:
    """The rows, with the ports of the topology."""
    number = _numbers(loop, groups)
    operand = None if loop.operand is None else _embedded(number[loop.operand], groups)
    return replace(
        loop,
        select=_embedded(number[loop.select], groups),
        select_skew=_skews(loop.select_skew, groups),
        operand=operand,
        operand_skew=_skews(loop.operand_skew, groups),
        delayed=tuple(groups.ports[port] for port in loop.delayed),
        delayed_results=tuple(groups.ports[port] for port in loop.delayed_results),
        writes=tuple(replace(writes, port=number[writes.port]) for writes in loop.writes),
        departure=_embedded(loop.departure, groups, fill=0),
        departure_skew=_skews(loop.departure_skew, groups),
    )


def _ports(ports: IntArray, groups: Groups) -> IntArray:
    """Ports of the topology for those of the torus of a group; what is below 0 stays."""
    return np.where(ports >= 0, groups.ports[ports], ports)


def _numbers(loop: Loop, groups: Groups) -> IntArray:
    """The new number of each source, and, from the end, of what is none: it stays.

    In-ports and their results are spread out, all others keep their order.
    """
    ports, old, new = np.array(groups.ports), loop.ports, groups.topology.ports
    later = len(loop.delayed)
    numbers = [*ports, *range(new, new + later)]
    end = new + later
    if loop.results:
        numbers += [*(end + ports), *range(end + new, end + new + len(loop.delayed_results))]
        end += new + len(loop.delayed_results)
    rest = loop.identity + 1 - len(numbers)
    assert old == len(ports)
    return np.array([*numbers, *range(end, end + rest), IDLE], np.int16)


def _embedded(columns: IntArray, groups: Groups, fill: int = -1) -> IntArray:
    """An array whose last axis is that of ports; those outside a group are filled."""
    result = np.full((*columns.shape[:-1], groups.topology.ports), fill, columns.dtype)
    result[..., groups.ports] = columns
    return result


def _skews(skews: tuple[int, ...], groups: Groups) -> tuple[int, ...]:
    """The skew of each port, 0 outside a group."""
    return tuple(_embedded(np.array(skews), groups, fill=0).tolist()) if skews else ()
