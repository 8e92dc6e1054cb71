"""Memories that are alike in all forms of a program, so that the forms can share them.

The user is `merge`, which gives the memories of several programs common numbers; each of these
programs has one form. Words that arrive are stored in one of two ways: in a memory for each
in-port, or in a memory for each chunk, whose words arrive by different in-ports at different nodes.
If two forms share a memory that they use in different ways, most nodes need a multiplexer in front
of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .address_map import MOST_DIRECT_ENTRIES
from .fields import (
    ACTIONS,
    IDLE,
    Action,
    Field,
    Loop,
    NodeComponent,
    Point,
    first_own_memory,
    make_node_memories,
)

if TYPE_CHECKING:
    from .program import Program

__all__ = ["store_by_port"]


def store_by_port(programs: Sequence[Program]) -> list[Program]:
    """Return the programs with a memory for each in-port, if other programs have such memories.

    At each node, the words of a chunk then lie in the memory of the in-port by which they arrive
    there, and the node needs no multiplexer in front of the memory.

    Examples
    --------
    An all-reduce by trees has a memory for each of two chunks. Beside an all-gather, it has one for
    each in-port.

    >>> import torusfabric as tf
    >>> plans = tf.plan("4x4", "allreduce", algorithm="spanning-tree"), tf.plan("4x4", "allgather")
    >>> programs = [tf.compile(plan, max_flits=8) for plan in plans]
    >>> for program in (programs[0], store_by_port(programs)[0]):
    ...     print(*(memory.ports for memory in program.memories if not memory.own))
    (0, 1, 2, 3) (0, 1, 2, 3)
    (0,) (1,) (2,) (3,)
    """
    mixed = [any(len(memory.ports) > 1 for memory in program.memories) for program in programs]
    known = {
        memory.ports
        for program, is_mixed in zip(programs, mixed, strict=True)
        for memory in program.memories
        if not is_mixed
    }
    return [
        _move_to_ports(program)
        if is_mixed and {(port,) for port in range(program.ports)} <= known
        else program
        for program, is_mixed in zip(programs, mixed, strict=True)
    ]


def _move_to_ports(program: Program) -> Program:
    """Return the program with a memory for each in-port, in place of those for arriving words.

    It is the same program if runs choose the root, if words of two memories arrive by one in-port,
    or if the table of addresses of received words became large.
    """
    loop, form, old = program.loop, program.form, first_own_memory(program.memories)
    groups, ports, own = form.groups, loop.n_ports, np.arange(old, len(program.memories))
    port_of = _arrival_ports(loop, old)
    number = np.hstack([port_of, np.tile(own - old + ports, (len(port_of), 1))])
    of_row = number[program.variant_of[groups.node_of_map_row]]
    differs = (of_row[groups.map_row_of_node] != number[program.variant_of]).any(axis=1)
    shared = [port for each in port_of.tolist() for port in each if each.count(port) > 1]
    if (
        program.any_root
        or max(shared, default=IDLE) >= 0
        or differs[groups.group_of_node >= 0].any()
        or any(
            way.row_of is not None or len(of_row) * way.memory[0].size > MOST_DIRECT_ENTRIES
            for way in form.receive_map.map_chain
        )
        or max(map(loop.pitch_of, range(old))) > 1
        or len({field.delay for field in loop.fields_of_action(Action.WRITE)}) > 1
    ):
        return program
    depth = np.zeros((len(number), ports + len(own)), int)
    variant, memory = np.nonzero(number >= 0)
    depth[variant, number[variant, memory]] = program.depth[variant, memory]
    form = replace(
        form,
        loop=replace(
            loop,
            fields=tuple(_fields_by_port(loop, number)),
            pitch=(1,) * ports + tuple(map(loop.pitch_of, own.tolist())),
        ),
        send_map=form.send_map.renumber_memories(number[0]),
        receive_map=form.receive_map.renumber_memories(np.maximum(of_row, 0)),
    )
    memories = make_node_memories(range(ports), len(own))
    return replace(program, forms=(form,), memories=memories, depth=depth)


def _arrival_ports(loop: Loop, memories: int) -> IntArray:
    """Return the in-port of the words that each memory stores, shape (variants, memories).

    For the result of an operator, it is the in-port in front of the operator. It is the last of
    several in-ports, and -1 for a memory that stores nothing. `memories` is the number of memories
    for arriving words.
    """
    port_of_source = np.array([port for _, port in loop.sources.by_number])
    found = np.full((loop.n_variants, memories), IDLE)
    for memory in range(memories):
        stores = loop.point_values(Action.WRITE, memory) >= 0
        port = port_of_source[loop.point_values(Action.SOURCE, memory)]
        found[:, memory] = np.where(stores, port, IDLE).max(axis=0)
    return found


def _fields_by_port(loop: Loop, number: IntArray) -> Iterator[Field]:
    """Yield the fields of a loop with other numbers of memories.

    ``number[v, m]`` is the new number of memory m at the nodes of variant v: an in-port for a
    memory that stores arriving words.
    """
    of_memories: dict[Action, list[Field]] = {}
    for field in loop.fields:
        action = field.point.action
        if ACTIONS[action].holder is NodeComponent.MEMORY:
            of_memories.setdefault(action, []).append(field)
        elif action is Action.MEMORY:
            named = np.take_along_axis(number.T, np.maximum(field.values, 0), axis=0)
            yield replace(field, values=np.where(field.values >= 0, named, field.values))
        else:
            yield field
    for action, fields in of_memories.items():
        for port in range(loop.n_ports):
            values = np.full((loop.n_rows, loop.n_variants), IDLE)
            for field in fields:
                here = number[:, field.point.number] == port
                values[:, here] = field.values[:, here]
            yield Field(Point(action, port), values, fields[0].delay)
