"""Injection ports of their own for out-ports, in programs of several forms.

An *injection port* is an input of the router for words that a *reader* reads from a memory. Forms
of one program can feed an out-port from different injection ports: an all-gather sends one word
through all out-ports, an all-to-all a word of its own through each. `spread_injections` lets the
readers of several injection ports read the same word, so that each out-port selects one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from .fields import IDLE, Action, Loop, Point

if TYPE_CHECKING:
    from ..topology import BoolArray
    from .program import Program

__all__ = ["spread_injections"]


def spread_injections(program: Program, most: int) -> Program:
    """Return a program whose out-ports select words of fewer injection ports.

    All words move as before. A fabric in which readers can read each other's memories at no cost
    has smaller routers then. A program with operators, or with too many readers, stays the same.

    Parameters
    ----------
    program : Program
        Program of several forms.
    most : int
        The largest number of readers that can read each other's memories at no cost.

    Examples
    --------
    In this all-gather two readers suffice for four out-ports. Beside an all-to-all, which has four
    readers, all of them read.

    >>> import torusfabric as tf
    >>> plans = [tf.plan("4x4", "allgather"), tf.plan("4x4", "alltoall")]
    >>> program = tf.compile(plans, max_flits=8).arrange_messages(shared=True)
    >>> spread = spread_injections(program, most=4)
    >>> [len(each.forms[0].loop.fields_of_action(Action.READ)) for each in (program, spread)]
    [2, 4]
    """
    sources = program.form.loop.sources
    if program.operators or any(len(readers) > 1 for readers in sources.injections):
        return program
    loops = [form.loop for form in program.forms]
    first, ports = sources.first_injection, range(sources.ports)
    used = np.array([
        [_count_users(loops, port, first + k) for k in range(len(sources.injections))]
        for port in ports
    ])  # fmt: skip
    for port in ports:
        # The own injection port of an out-port serves most nodes, and few other out-ports.
        chosen = np.lexsort(((used > 0).sum(axis=0), -used[port]))
        for own in chosen[: (used[port] > 0).sum()].tolist():
            moved = [_select_own(loop, port, own) for loop in loops]
            if all(moved):
                loops = [_drop_reads(loop) for loop in moved if loop]
                break
    readers = {each.point.number for loop in loops for each in loop.fields_of_action(Action.READ)}
    if len(readers) > most:
        return program
    forms = (replace(form, loop=loop) for form, loop in zip(program.forms, loops, strict=True))
    return replace(program, forms=tuple(forms))


def _count_users(loops: Sequence[Loop], port: int, source: int) -> int:
    """Return the number of variants in which an out-port selects `source` in any row."""
    return int(reduce(np.logical_or, (_port_selects(x, port, source).any(0) for x in loops)).sum())


def _port_selects(loop: Loop, port: int, source: int) -> BoolArray:
    """Return an array of shape (rows, variants): True where an out-port selects `source`."""
    found: BoolArray = loop.point_values(Action.SELECT, port) == source
    return found


def _select_own(loop: Loop, port: int, own: int) -> Loop | None:
    """Return the rows in which out-port `port` takes all words of the node from port `own`.

    `own` is an injection port. Its reader reads the words of the other injection ports that the
    out-port selects. The result is None if the reader would read two words at once.
    """
    sources, fields = loop.sources, {field.point: field for field in loop.fields}
    (reader,) = sources.injections[own]
    for number, (other,) in enumerate(sources.injections):
        source = sources.first_injection + number
        if number == own or not (there := _port_selects(loop, port, source)).any():
            continue
        for action in (Action.MEMORY, Action.READ):
            given = fields[Point(action, other)]
            point = Point(action, reader)
            known = fields.get(point, replace(given, point=point, values=0 * given.values + IDLE))
            busy = known.values != IDLE
            if known.delay != given.delay or (there & busy & (known.values != given.values)).any():
                return None
            fields[point] = replace(known, values=np.where(there, given.values, known.values))
        select = Point(Action.SELECT, port)
        values = np.where(there, sources.first_injection + own, fields[select].values)
        fields[select] = replace(fields[select], values=values)
    return replace(loop, fields=tuple(fields.values()))


def _drop_reads(loop: Loop) -> Loop:
    """Return the rows without reads of words that no out-port selects and no memory stores."""
    sources, fields = loop.sources, {field.point: field for field in loop.fields}
    stored = {k for each in loop.fields_of_action(Action.SOURCE) for k in np.unique(each.values)}
    for number, (reader,) in enumerate(sources.injections):
        source = sources.first_injection + number
        used = np.logical_or.reduce(
            [_port_selects(loop, port, source) for port in range(sources.ports)]
        ) | (source in stored)
        for point in (Point(Action.MEMORY, reader), Point(Action.READ, reader)):
            if point in fields:
                values = np.where(used, fields[point].values, IDLE)
                fields[point] = replace(fields[point], values=values)
                if (values == IDLE).all():
                    del fields[point]
    return replace(loop, fields=tuple(fields.values()))
