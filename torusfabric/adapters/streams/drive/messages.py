"""The packets of runs: those that nodes send, and those that each node must receive.

These packets are computed from the words of the nodes and the definition of the collective, without
any schedule. So the simulation also finds errors of the schedule. The expected error of a run with
a fault is computed in the same way.
"""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....collective import MemoryLayout
from ....rtl.fabric import Fabric
from ....rtl.run_choices import RunError
from ....simulation.engines.base import Job
from ....simulation.jobs import is_barrier, random_job_messages
from ....topology import BoolArray, IntArray
from ..bench.packets import FaultChoices, Packet, spoil_run
from ..ports import needs_commands
from ..sections import stream_id_bits

__all__ = ["RunPackets", "PlannedRun", "random_run_packets", "make_faulty_run"]


class RunPackets(NamedTuple):
    """The packets of a run, in their order.

    Parameters
    ----------
    sent, received : list of (list of Packet)
        For each node, the packets that it sends, and the packets that it must receive.
    """

    sent: list[list[Packet]]
    received: list[list[Packet]]


def random_run_packets(fabric: Fabric, job: Job, *, seed: int) -> RunPackets:
    """Return the packets that nodes send and must receive in a run, with random words.

    A node sends its packets in a random order of destinations.

    Parameters
    ----------
    job : Job
        A job in which all choices are made.
    seed : int
        Seed of the words and of the order.

    Examples
    --------
    In a gather each node sends one packet, and the root, node 0, receives all three.

    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "gather"), flits=2), width=8)
    >>> exchange = random_run_packets(fabric, Job(), seed=1)
    >>> [len(packets) for packets in exchange.sent], [len(p) for p in exchange.received]
    ([1, 1, 1], [3, 0, 0])
    """
    generator = np.random.default_rng(seed)
    if is_barrier(fabric, job):
        # In a barrier each node sends one word, and receives it back when all nodes have sent
        # theirs.
        drawn = generator.integers(1 << min(fabric.width, 32), size=fabric.nodes).tolist()
        relays = fabric.program.topology.relays
        packets = [[Packet(0, (word,))] * (k not in relays) for k, word in enumerate(drawn)]
        return RunPackets(packets, packets)
    words = random_job_messages(fabric, job, seed=seed)
    part = fabric.program.part(fabric.program.form_of(job.mode, job.length))
    loaded = fabric.tables is not None
    layout = part.layout if job.root is None else part.layout.with_root(job.root)
    delivered, receives = fabric.program.delivered(words, **job.inputs, width=fabric.width)
    collective, destinations = layout.blocks.collective, layout.blocks.messages_per_origin
    sends = _sent_flits(layout, words.shape[1] // destinations, loaded=loaded)
    if collective.from_each:
        origins = range(layout.blocks.messages_per_receiver)
    else:
        only = (collective.root or 0) if collective.single_origin else 0
        origins = range(only, only + 1)
    sent: list[list[Packet]] = []
    received: list[list[Packet]] = []
    for node in range(fabric.nodes):
        parts, flits = words[node].reshape(destinations, -1), sends[node].tolist()
        order = generator.permutation(destinations).tolist()
        sent.append([Packet(k, tuple(parts[k, : flits[k]].tolist())) for k in order if flits[k]])
        parts, there = (each[node].reshape(len(origins), -1) for each in (delivered, receives))
        received.append([
            Packet(origin, tuple(_known_words(part, mask) if loaded else part[mask].tolist()))
            for origin, part, mask in zip(origins, parts, there, strict=True) if mask.any()
        ])  # fmt: skip
    return RunPackets(sent, received)


def _known_words(words: NDArray[Any], known: BoolArray) -> Iterator[int | None]:
    """Yield the words of a packet, with None in place of those that have no meaning."""
    for word, there in zip(words.tolist(), known.tolist(), strict=True):
        yield word if there else None


def _sent_flits(layout: MemoryLayout, length: int, *, loaded: bool) -> IntArray:
    """Return the flits of each packet of each node, shape (nodes, packets); 0 for no packet.

    Parameters
    ----------
    layout : MemoryLayout
        The messages of the nodes.
    length : int
        Flits of a message, if all have the same length.
    loaded : bool
        True for a fabric with loaded tables. There all packets have the same length, and a node
        sends one for each number of a pattern; elsewhere, only for the messages that it has.
    """
    blocks, groups = layout.blocks, layout.blocks.groups
    lengths = None if loaded else blocks.sent_lengths
    flits: IntArray = length * (blocks.has_message | loaded)
    if lengths is not None:
        flits = lengths[groups.position_of_node] * blocks.has_message
    sends = groups.group_of_node >= 0
    sends[[*groups.topology.relays]] = False
    if blocks.collective.single_origin:
        sends &= groups.position_of_node == blocks.collective.root
    found: IntArray = np.where(sends[:, None], flits, 0)
    return found


class PlannedRun(NamedTuple):
    """A run as the simulation sends it, perhaps with a fault, and the expected results.

    Parameters
    ----------
    job : Job
        The choices of the run: mode, length, root and operator.
    exchange : RunPackets
        The packets of the run, sent and expected, for each node.
    error : RunError
        The reason for which the fabric must drop the run, or NONE.
    """

    job: Job
    exchange: RunPackets
    error: RunError = RunError.NONE


def make_faulty_run(
    fabric: Fabric, job: Job, exchange: RunPackets, generator: random.Random
) -> PlannedRun:
    """Return a run with a random fault in a packet or in the command, and the expected error.

    Parameters
    ----------
    job : Job
        A job in which all choices are made.
    exchange : RunPackets
        The packets of the run without a fault.
    generator : random.Random
        Source of the random choices.

    Examples
    --------
    In this run a packet has a fault. So the fabric must report the error ``PACKETS``, and no node
    receives anything.

    >>> import torusfabric as tf
    >>> from torusfabric.adapters.streams.drive.messages import random_run_packets
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "gather"), flits=2), width=8, top="stream")
    >>> exchange = random_run_packets(fabric, tf.Job(), seed=1)
    >>> planned = make_faulty_run(fabric, tf.Job(), exchange, random.Random(1))
    >>> planned.error.name, sum(map(len, planned.exchange.received))
    ('PACKETS', 0)
    """
    error, sent, command = spoil_run(generator, _fault_choices(fabric, job), exchange.sent)
    return PlannedRun(
        job._replace(**command), RunPackets(sent, [[] for _ in sent]), RunError(error)
    )


def _fault_choices(fabric: Fabric, job: Job) -> FaultChoices:
    """Return the limits of packets and commands of a run, by which a fault is made.

    For example, a packet with a fault is longer than the limit.

    `job` has the mode and the root of the run.
    """
    program = fabric.program
    commands: dict[str, int] = {}
    if needs_commands(program):
        commands = {"mode": len(program.modes) + program.barrier, "length": program.flits + 1}
    if is_barrier(fabric, job):
        return FaultChoices(program.flits, program.any_length, commands, 0, 0)
    mode = program.modes[job.mode or 0]
    size, collective = mode.groups.group_size, mode.schedule.collective
    destinations = mode.schedule.blocks.messages_per_origin if collective.personal else 0
    if job.root is not None:
        commands["root"] = size
    if len(program.operators) > 1 and mode.operators:
        commands["operation"] = len(mode.operators)
    bits = stream_id_bits(program)
    return FaultChoices(program.flits, program.any_length, commands, destinations, bits)
