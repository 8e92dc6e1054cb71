"""Programs of collectives in groups: the program of one group, for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .fields import ACTIONS, IDLE, Holder, Order

if TYPE_CHECKING:
    from ..schedule import Lifted
    from ..topology import IntArray
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
    groups, loop, depth = schedule.blocks.groups, program.loop, program.depth
    count, fields, variant_of = groups.topology.ports, loop.fields, program.variant_of
    variant_of = variant_of[groups.position]
    if groups.without:
        # Nodes that do nothing are a variant more. In a loop by flits all nodes store alike, so
        # that these store as the others do.
        idle, alike = np.full((loop.rows, 1), IDLE), loop.order is Order.FLIT
        added = [
            field.values[:, :1] if alike and ACTIONS[field.point.action].stores else idle
            for field in fields
        ]
        fields = tuple(
            replace(field, values=np.hstack([field.values, last]))
            for field, last in zip(fields, added, strict=True)
        )
        variant_of = np.where(groups.group < 0, len(depth), variant_of)
        depth = np.vstack([depth, depth.max(axis=0) * alike])

    def embedded(columns: IntArray) -> IntArray:
        """Return an array whose last axis is that of ports; 0 for those outside a group."""
        result = np.zeros((*columns.shape[:-1], count), columns.dtype)
        result[..., groups.ports] = columns
        return result

    def ports(numbers: Iterable[int]) -> tuple[int, ...]:
        """Return the ports of the topology that are those of a group."""
        return tuple(groups.ports[port] for port in numbers)

    sources = replace(
        loop.sources,
        ports=count,
        delayed=ports(loop.sources.delayed),
        delayed_results=ports(loop.sources.delayed_results),
    )
    injections = range(len(sources.injections))
    numbers = loop.sources.numbers_in(sources, ports=groups.ports, injections=injections)
    port_of = dict(enumerate(groups.ports.tolist()))
    points = {Holder.ROUTER: port_of, Holder.COMBINER: port_of}
    loop = replace(
        loop,
        sources=sources,
        fields=tuple(field.renumbered(numbers, points) for field in fields),
        departure=embedded(loop.departure),
        departure_skew=embedded(loop.departure_skew)[groups.position],
    )
    return replace(
        program,
        topology=schedule.topology,
        forms=(replace(program.form, schedule=schedule, loop=loop),),
        memories=tuple(replace(memory, ports=ports(memory.ports)) for memory in program.memories),
        depth=depth,
        variant_of=variant_of,
    )
