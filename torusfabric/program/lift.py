"""Programs of collectives that run in groups: the program of one group, repeated in all groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .fields import ACTIONS, IDLE, NodeComponent, Order

if TYPE_CHECKING:
    from ..schedule import Lifted
    from ..topology import IntArray
    from .program import Program

__all__ = ["lift"]


def lift(program: Program, schedule: Lifted) -> Program:
    """Return the program in which every group executes the program of one group.

    A node acts like the node at its position in the group, by the ports that lie within its group.
    Its other ports are idle. A node outside all groups does nothing. Memories keep their numbers,
    and address maps keep using positions.

    Parameters
    ----------
    program : Program
        Program of one group.
    schedule : Lifted
        Schedule of all groups.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x4", "allgather@1"))
    >>> program.cycles() == tf.compile(tf.plan("4", "allgather")).cycles()
    True
    """
    groups, loop, depth = schedule.blocks.groups, program.loop, program.depth
    count, fields, variant_of = groups.topology.ports, loop.fields, program.variant_of
    variant_of = variant_of[groups.position_of_node]
    if groups.without:
        # Nodes outside all groups are one more variant. In a loop flit by flit they store like the
        # others, because there all nodes share the addresses of their writes.
        idle, alike = np.full((loop.n_rows, 1), IDLE), loop.order is Order.FLIT
        added = [
            field.values[:, :1] if alike and ACTIONS[field.point.action].stores else idle
            for field in fields
        ]
        fields = tuple(
            replace(field, values=np.hstack([field.values, last]))
            for field, last in zip(fields, added, strict=True)
        )
        variant_of = np.where(groups.group_of_node < 0, len(depth), variant_of)
        depth = np.vstack([depth, depth.max(axis=0) * alike])

    def embed_columns(columns: IntArray) -> IntArray:
        """Return an array with a column for each port, from `columns` for the ports in a group.

        Columns are along the last axis. `columns` has one for each port that lies within the group.
        The result also has columns for the ports that lead out of the group, with zeros.
        """
        result = np.zeros((*columns.shape[:-1], count), columns.dtype)
        result[..., groups.port_in_topology] = columns
        return result

    def port_numbers(numbers: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers of ports in the whole topology, given their numbers in the group."""
        return tuple(groups.port_in_topology[port] for port in numbers)

    sources = replace(
        loop.sources,
        ports=count,
        delayed=port_numbers(loop.sources.delayed),
        delayed_results=port_numbers(loop.sources.delayed_results),
    )
    injections = range(len(sources.injections))
    numbers = loop.sources.numbers_within(
        sources, ports=groups.port_in_topology, injections=injections
    )
    port_of = dict(enumerate(groups.port_in_topology.tolist()))
    points = {NodeComponent.ROUTER: port_of, NodeComponent.COMBINER: port_of}
    loop = replace(
        loop,
        sources=sources,
        fields=tuple(field.renumber(numbers, points) for field in fields),
        departure=embed_columns(loop.departure),
        departure_skew=embed_columns(loop.departure_skew)[groups.position_of_node],
    )
    return replace(
        program,
        topology=schedule.topology,
        forms=(replace(program.form, schedule=schedule, loop=loop),),
        memories=tuple(
            replace(memory, ports=port_numbers(memory.ports)) for memory in program.memories
        ),
        depth=depth,
        variant_of=variant_of,
    )
