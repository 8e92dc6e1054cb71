"""Runs that are no good: a packet or a command is changed, so that the fabric has to drop the run.

What is changed is drawn, from what can be wrong in a fabric: a packet is longer than any may be, or
of another length than the others; it is for a destination that there is not, or that had one
already; or a command chooses what there is not.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from ...rtl.fabric import Fabric
from ...rtl.memories import address_width
from ...rtl.run_choices import RunError
from ...rtl.streams import needs_commands
from ..engines.base import Job
from .messages import Exchange, Packet, is_barrier

__all__ = ["Planned", "spoiled"]

#: Words by which a packet is too long, at the most.
MORE = 3

#: The packets that all nodes send for a run.
Sent: TypeAlias = list[list[Packet]]

#: What is done to the packets of a node.
Change: TypeAlias = Callable[[list[Packet], np.random.Generator], None]


class Planned(NamedTuple):
    """A run as it is sent, and what has to become of it.

    Parameters
    ----------
    job : Job
        As its command says it.
    exchange : Exchange
    error : RunError
        Why it must be dropped, if it must.
    """

    job: Job
    exchange: Exchange
    error: RunError = RunError.NONE


def spoiled(fabric: Fabric, job: Job, exchange: Exchange, random: np.random.Generator) -> Planned:
    """A run in which something is wrong, drawn from all that can be.

    Parameters
    ----------
    fabric : Fabric
    job : Job
        Completed: nothing is left open.
    exchange : Exchange
    random : Generator

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.simulation.streams.messages import draw_exchange
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "gather"), flits=2), width=8, top="stream")
    >>> exchange = draw_exchange(fabric, tf.Job(), seed=1)
    >>> planned = spoiled(fabric, tf.Job(), exchange, np.random.default_rng(1))
    >>> planned.error.name, sum(map(len, planned.exchange.received))
    ('PACKETS', 0)
    """
    nobody: Sent = [[] for _ in exchange.sent]
    commands = _bad_commands(fabric, job) if needs_commands(fabric.program) else {}
    packets = _bad_packets(fabric, job, exchange.sent)
    chosen = int(random.integers(len(packets) + len(commands)))
    if chosen < len(packets):
        error, change = packets[chosen]
        sent = [list(of_node) for of_node in exchange.sent]
        node = int(random.choice([node for node, of_node in enumerate(sent) if of_node]))
        change(sent[node], random)
        return Planned(job, Exchange(sent, nobody), error)
    error = list(commands)[chosen - len(packets)]
    return Planned(commands[error], Exchange(nobody, nobody), error)


def _bad_commands(fabric: Fabric, job: Job) -> dict[RunError, Job]:
    """The job with one choice that there is not, by the error."""
    program = fabric.program
    found = {
        RunError.MODE: job._replace(mode=len(program.modes) + program.barrier),
        RunError.LENGTH: job._replace(length=program.flits + 1),
    }
    if is_barrier(fabric, job):
        return found
    mode = program.modes[job.mode or 0]
    if job.root is not None:
        found[RunError.ROOT] = job._replace(root=mode.groups.size)
    if len(program.operators) > 1 and mode.operators:
        found[RunError.OPERATION] = job._replace(operation=len(mode.operators))
    return found


def _bad_packets(fabric: Fabric, job: Job, sent: Sent) -> list[tuple[RunError, Change]]:
    """What can be wrong with a packet of a node, and what is done to its packets for it."""
    most, count = fabric.flits, sum(map(len, sent))
    length = len(next(packet for of_node in sent for packet in of_node).words)

    def too_long(packets: list[Packet], random: np.random.Generator) -> None:
        _resize(packets, random, most + int(random.integers(1, MORE + 1)))

    def unequal(packets: list[Packet], random: np.random.Generator) -> None:
        _resize(packets, random, length - 1 if length > 1 else length + 1)

    def unknown(packets: list[Packet], random: np.random.Generator) -> None:
        where = int(random.integers(len(packets)))
        packets[where] = packets[where]._replace(number=group)

    def again(packets: list[Packet], random: np.random.Generator) -> None:
        first, second = random.choice(len(packets), 2, replace=False).tolist()
        packets[first] = packets[first]._replace(number=packets[second].number)

    found: list[tuple[RunError, Change]] = [(RunError.PACKETS, too_long)]
    if count > 1 or not fabric.program.any_length:
        found.append((RunError.PACKETS, unequal))
    if is_barrier(fabric, job):
        return found
    mode = fabric.program.modes[job.mode or 0]
    group = mode.groups.size
    if mode.schedule.collective.personal:
        found.append((RunError.DESTINATION, again))
        if group < 1 << address_width(fabric.nodes):
            found.append((RunError.DESTINATION, unknown))
    return found


def _resize(packets: list[Packet], random: np.random.Generator, length: int) -> None:
    """Give one of the packets another length."""
    where = int(random.integers(len(packets)))
    words = packets[where].words
    packets[where] = packets[where]._replace(words=(words * (1 + length // len(words)))[:length])
