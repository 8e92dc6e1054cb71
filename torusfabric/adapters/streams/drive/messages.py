"""The packets of runs: those that nodes send, and those that each node must receive.

Both follow from the words of the nodes and the definition of the collective alone, not from a
schedule. The same holds for the error of a run with a fault.
"""

import random
from typing import NamedTuple

import numpy as np

from ....rtl.fabric import Fabric
from ....rtl.run_choices import RunError
from ....simulation.engines.base import Job
from ....simulation.jobs import drawn_words, is_barrier
from ..bench.packets import Choices, Packet, spoiled
from ..ports import needs_commands
from ..sections import number_bits

__all__ = ["Exchange", "Planned", "draw_exchange", "spoiled_run"]


class Exchange(NamedTuple):
    """The packets of a run, in their order.

    Parameters
    ----------
    sent, received : list of (list of Packet)
        For each node, the packets that it sends, and the packets that it must receive.
    """

    sent: list[list[Packet]]
    received: list[list[Packet]]


def draw_exchange(fabric: Fabric, job: Job, *, seed: int) -> Exchange:
    """Return the packets of a run, with random words and a random order of destinations.

    Parameters
    ----------
    job : Job
        A job in which all choices are made.
    seed : int
        Seed of the words and of the order.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "gather"), flits=2), width=8)
    >>> exchange = draw_exchange(fabric, Job(), seed=1)
    >>> [len(packets) for packets in exchange.sent], [len(p) for p in exchange.received]
    ([1, 1, 1], [3, 0, 0])
    """
    generator = np.random.default_rng(seed)
    if is_barrier(fabric, job):
        # In a barrier each node sends one word, and receives it back when all nodes have sent
        # theirs.
        drawn = generator.integers(1 << min(fabric.width, 32), size=fabric.nodes).tolist()
        packets = [[Packet(0, (word,))] for word in drawn]
        return Exchange(packets, packets)
    words = drawn_words(fabric, job, seed=seed)
    part = fabric.program.part(fabric.program.form_of(job.mode, job.length))
    layout = part.layout if job.root is None else part.layout.with_root(job.root)
    delivered, receives = fabric.program.delivered(words, **job.inputs, width=fabric.width)
    collective, groups = layout.blocks.collective, layout.blocks.groups
    destinations = layout.blocks.goals
    if collective.from_each:
        origins = range(layout.blocks.parts)
    else:
        only = (collective.root or 0) if collective.single_origin else 0
        origins = range(only, only + 1)
    sent: list[list[Packet]] = []
    received: list[list[Packet]] = []
    for node in range(fabric.nodes):
        sends = groups.group[node] >= 0
        sends &= not collective.single_origin or groups.position[node] == collective.root
        order = generator.permutation(range(destinations) if sends else range(0)).tolist()
        sent.append([_packet(k, words[node], destinations) for k in order])
        expected = receives[node].reshape(len(origins), -1).all(axis=1)
        received.append([
            _packet(k, delivered[node], len(origins), origin)
            for k, origin in enumerate(origins) if expected[k]
        ])  # fmt: skip
    return Exchange(sent, received)


def _packet(index: int, words: np.ndarray, parts: int, number: int | None = None) -> Packet:
    """Return one of `parts` equal parts of the words of a node as a packet.

    The number of the packet is `number`, by default the index of the part.
    """
    chosen = words.reshape(parts, -1)[index].tolist()
    return Packet(index if number is None else number, tuple(chosen))


class Planned(NamedTuple):
    """A run as it is sent, and the expected error.

    Parameters
    ----------
    job : Job
        The choices in the command of the run.
    exchange : Exchange
        The packets of the run.
    error : RunError
        The reason for which the fabric must drop the run, or NONE.
    """

    job: Job
    exchange: Exchange
    error: RunError = RunError.NONE


def spoiled_run(fabric: Fabric, job: Job, exchange: Exchange, generator: random.Random) -> Planned:
    """Return a run with a random fault in a packet or in the command.

    Parameters
    ----------
    job : Job
        A job in which all choices are made.
    exchange : Exchange
        The packets of the run without a fault.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.adapters.streams.drive.messages import draw_exchange
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "gather"), flits=2), width=8, top="stream")
    >>> exchange = draw_exchange(fabric, tf.Job(), seed=1)
    >>> planned = spoiled_run(fabric, tf.Job(), exchange, random.Random(1))
    >>> planned.error.name, sum(map(len, planned.exchange.received))
    ('PACKETS', 0)
    """
    error, sent, command = spoiled(generator, _choices(fabric, job), exchange.sent)
    return Planned(job._replace(**command), Exchange(sent, [[] for _ in sent]), RunError(error))


def _choices(fabric: Fabric, job: Job) -> Choices:
    """Return the limits of the choices of a run, from which faults follow."""
    program = fabric.program
    commands: dict[str, int] = {}
    if needs_commands(program):
        commands = {"mode": len(program.modes) + program.barrier, "length": program.flits + 1}
    if is_barrier(fabric, job):
        return Choices(program.flits, program.any_length, commands, 0, 0)
    mode = program.modes[job.mode or 0]
    size, collective = mode.groups.size, mode.schedule.collective
    destinations = mode.schedule.blocks.goals if collective.personal else 0
    if job.root is not None:
        commands["root"] = size
    if len(program.operators) > 1 and mode.operators:
        commands["operation"] = len(mode.operators)
    bits = number_bits(program)
    return Choices(program.flits, program.any_length, commands, destinations, bits)
