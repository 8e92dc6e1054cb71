"""Programs of oblivious schedules: the waves of a `Pattern`.

Every router knows two settings: inject (the first row of a wave) and forward (all later rows). A
message of L flits in C chunks travels as L / C waves, one after another without a gap. Whatever
arrives in a row is stored at ``wave * steps + row`` of its in-port's memory, in every node alike;
which block that is follows from the position of the in-arc on its flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..schedule.flows import Flows
from ..topology import IntArray
from .address_map import DirectMap, RouteMap
from .cost import CycleCost
from .fields import IDLE, Action, Field, Loop, Memory, Order, Sources, fields_of
from .mode import Mode, block_flits
from .program import Program
from .routes import routes_of
from .timing import ADDRESS, SETTING, store_delay
from .variants import classify
from .write_delay import chunk_cycles

if TYPE_CHECKING:
    from ..schedule import Pattern

__all__ = ["compile_pattern"]


def compile_pattern(pattern: Pattern, flits: int, *, any_length: bool = False) -> Program:
    """The program of an oblivious schedule.

    Parameters
    ----------
    pattern : Pattern
    flits : int
        Flits of a message.
    any_length : bool
        Whether messages may be shorter.

    Returns
    -------
    Program

    Raises
    ------
    InputError
        If a message of so many flits cannot be cut into equal chunks.

    Examples
    --------
    Two flits in two chunks are one wave; every in-port has a memory, and so has every chunk.

    >>> import torusfabric as tf
    >>> pattern = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> program = compile_pattern(pattern, flits=2)
    >>> pattern.chunks, program.loop.rows, len(program.memories)
    (2, 4, 6)
    """
    waves, steps = block_flits(pattern, flits), pattern.steps
    ports, chunks = pattern.topology.ports, pattern.chunks
    inject = np.where(pattern.inject >= 0, ports + pattern.inject, IDLE)
    forward = np.where(pattern.feed >= 0, pattern.feed, IDLE)
    variant_of, first = classify(np.hstack([inject, forward]))
    select = np.broadcast_to(forward[first], (steps, len(first), ports)).astype(np.int16)
    select[0] = inject[first]
    # Every chunk is injected in the first row, and every row is stored in all nodes alike.
    row, chunk, port = np.arange(steps), np.arange(chunks), np.arange(ports)
    later = row[:, None, None] > 0
    loop = Loop(
        order=Order.FLIT,
        flits=waves,
        pause=np.zeros(steps, int),
        blocks=np.ones(steps, int),
        sources=Sources(ports, injections=tuple((k,) for k in range(chunks))),
        fields=(
            *fields_of(Action.SELECT, select, SETTING),
            *_alike(Action.MEMORY, np.where(later, IDLE, ports + chunk), select, ADDRESS),
            *_alike(Action.READ, np.where(later, IDLE, 0 * chunk), select, ADDRESS),
            *_alike(Action.WRITE, row[:, None, None] + 0 * port, select, store_delay()),
            *_alike(Action.SOURCE, port, select, store_delay()),
            *_alike(Action.TAP, 1 + 0 * port, select, store_delay()),
        ),
        pitch=(steps,) * ports,
        departure=np.broadcast_to(np.arange(steps)[:, None], (steps, ports)),
    )
    received = tuple(Memory((port,)) for port in range(ports))
    own = tuple(Memory((), own=True) for _ in range(chunks))
    routes = tuple(routes_of(pattern, Flows.of(pattern)))
    layout = pattern.collective.layout(pattern.topology, chunks)
    mode = Mode(
        schedule=pattern,
        loop=loop,
        send_map=DirectMap(ports, chunks, waves, by_chunk=True),
        receive_map=RouteMap(routes, steps, ports),
        write_delay=chunk_cycles(layout, flits, any_length=any_length),
        moving=CycleCost(steps, 0, steps * waves),
        any_length=any_length,
        known_by="position on the stream",
    )
    return Program(
        topology=pattern.topology,
        flits=flits,
        modes=(mode,),
        memories=received + own,
        depth=np.tile([steps * waves] * ports + [waves] * chunks, (len(first), 1)),
        variant_of=variant_of,
    )


def _alike(action: Action, values: IntArray, select: IntArray, delay: int) -> tuple[Field, ...]:
    """Fields whose values are the same in all variants; the last axis is that of points."""
    shape = (*select.shape[:2], values.shape[-1])
    return fields_of(action, np.broadcast_to(values, shape), delay)
