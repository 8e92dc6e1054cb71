"""Programs of collectives in groups: the program of one group, for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .fields import ACTIONS, IDLE, Holder, Order

if TYPE_CHECKING:
    from ..schedule import Lifted
    from ..topology import Groups, IntArray
    from .program import Program

__all__ = ["lift"]


def lift(program: Program, schedule: Lifted) -> Program:
    """The program of one group, carried out by every group.

    A node does what the node at its position does, by the ports that lie in its group; it is idle
    at all others, and does nothing where it takes no part. Memories are numbered as they were, and
    address maps keep to positions.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x4", "allgather@1"))
    >>> program.cycles() == tf.compile(tf.plan("4", "allgather")).cycles()
    True
    """
    groups, loop = schedule.blocks.groups, program.loop
    streams = None if loop.streams is None else _embedded(loop.streams, groups)[groups.position]
    if groups.without:
        program = _with_idle(program)
        loop = program.loop
    skews = _embedded(np.array(loop.departure_skew or np.zeros(loop.ports, int)), groups)
    sources = replace(
        loop.sources,
        ports=groups.topology.ports,
        delayed=_ports(loop.sources.delayed, groups),
        delayed_results=_ports(loop.sources.delayed_results, groups),
    )
    injections = range(len(sources.injections))
    numbers = loop.sources.numbers_in(sources, ports=groups.ports, injections=injections)
    port_of = dict(enumerate(groups.ports.tolist()))
    points = {Holder.ROUTER: port_of, Holder.COMBINER: port_of}
    variant_of = program.variant_of[groups.position]
    loop = replace(
        loop,
        streams=streams,
        sources=sources,
        fields=tuple(field.renumbered(numbers, points) for field in loop.fields),
        departure=_embedded(loop.departure, groups),
        departure_skew=tuple(skews.tolist()) if loop.departure_skew else (),
    )
    return replace(
        program,
        topology=schedule.topology,
        forms=(replace(program.form, schedule=schedule, loop=loop),),
        memories=tuple(replace(m, ports=_ports(m.ports, groups)) for m in program.memories),
        variant_of=np.where(groups.group < 0, len(program.depth) - 1, variant_of),
    )


def _with_idle(program: Program) -> Program:
    """The same with a variant more, of nodes that do nothing.

    In a loop by flits all nodes store alike, so that these store as the others do.
    """
    idle, alike = np.full((program.loop.rows, 1), IDLE), program.loop.order is Order.FLIT
    fields = []
    for field in program.loop.fields:
        same = alike and ACTIONS[field.point.action].stores
        last = field.values[:, :1] if same else idle
        fields.append(replace(field, values=np.append(field.values, last, axis=1)))
    depth = program.depth.max(axis=0, keepdims=True) * alike
    return replace(
        program,
        forms=(replace(program.form, loop=replace(program.loop, fields=tuple(fields))),),
        depth=np.append(program.depth, depth, axis=0),
    )


def _ports(ports: tuple[int, ...], groups: Groups) -> tuple[int, ...]:
    """The ports of the topology that are those of a group."""
    return tuple(groups.ports[port] for port in ports)


def _embedded(columns: IntArray, groups: Groups) -> IntArray:
    """An array whose last axis is that of ports; 0 for those outside a group."""
    result = np.zeros((*columns.shape[:-1], groups.topology.ports), columns.dtype)
    result[..., groups.ports] = columns
    return result
