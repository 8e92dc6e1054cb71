"""Proof of a schedule in which nodes of the same label do the same.

Moved by a node of label 0 the schedule stays the same. So one origin of each label is followed, 64
at a time, on the whole torus; and arcs and ports are counted once for each label.
"""

import math

import numpy as np

from ...errors import ScheduleError
from ...schedule import Duplex, Switching
from ...schedule.quotient import Quotient, QuotientRound, Send
from ...topology import IntArray, Torus
from .blocks import Words, popcount
from .fault import busy_arc, busy_node, fault, unfinished
from .traffic import Progress, Traffic

__all__ = ["check_quotient"]


def check_quotient(schedule: Quotient, *, progress: Progress | None = None) -> Traffic:
    """Check a quotient schedule of an all-gather; raises at the first fault."""
    _check_labelling(schedule)
    sound, broken = 0, None
    try:
        for number, step in enumerate(schedule.quotient_rounds, 1):
            _check_sends(schedule, number, step)
            _check_contention(schedule, number, step)
            sound = number
    except ScheduleError as error:
        broken = error
    steps = schedule.quotient_rounds[:sound]
    sizes: list[list[IntArray]] = [
        [np.zeros(len(send.labels), np.int64) for send in step.sends] for step in steps
    ]
    lacking: list[tuple[int, int]] = []
    passes = range(0, schedule.modulus, 64)
    for done, first in enumerate(passes):
        held = np.zeros(schedule.topology.nodes, np.uint64)
        origins = schedule.nodes_of[:, 0][first : first + 64]
        held[origins] = np.uint64(1) << np.arange(len(origins), dtype=np.uint64)
        full = np.bitwise_or.reduce(held)
        for number, (step, found) in enumerate(zip(steps, sizes, strict=True), 1):
            moved = [_moved(schedule, step, send, held, first) for send in step.sends]
            for (target, words, count), size in zip(moved, found, strict=True):
                held[target] |= words
                size += count
            if progress:
                progress(done * sound + number, len(passes) * sound)
        lacking += _lacking(schedule, held, full, origins)
    for number, (step, found) in enumerate(zip(steps, sizes, strict=True), 1):
        for send, size in zip(step.sends, found, strict=True):
            if not size.all():
                node = schedule.nodes_of[:, 0][send.labels[np.argmin(size)]]
                raise fault(schedule, number, "sends a message without a block", node=node,
                            port=send.runs[0][0])  # fmt: skip
    if broken is not None:
        raise broken
    if lacking:
        node, origin = min(lacking)
        raise unfinished(schedule, node, schedule.blocks.encode(origin, 0))
    return _traffic(schedule, sizes)


def _check_labelling(schedule: Quotient) -> None:
    """The label is a homomorphism onto the integers modulo m, and the collective an all-gather."""
    modulus, weights, sides = schedule.modulus, schedule.weights, schedule.topology.sides
    collective = schedule.collective
    if not (collective.from_each and collective.to_all):
        text = f"Quotient schedule must be an allgather, not {collective.kind}"
        raise fault(schedule, None, text)
    around = [side * weight for side, weight in zip(sides, weights, strict=True)]
    if any(change % modulus for change in around):
        raise fault(schedule, None, f"Labels must change by multiples of {modulus} around an axis, "
                    f"not {around}")  # fmt: skip
    if math.gcd(modulus, *weights) != 1:
        raise fault(schedule, None, f"Weights must reach all {modulus} labels, not {weights}")


def _check_sends(schedule: Quotient, number: int, step: QuotientRound) -> None:
    """Labels, ports, lengths and groups are what they should be."""
    for send in step.sends:
        labels = np.asarray(send.labels)
        inside = (labels >= 0) & (labels < schedule.modulus)
        if not inside.all() or len(np.unique(labels)) < len(labels):
            raise fault(schedule, number, f"a send must name labels 0 to {schedule.modulus - 1}, "
                        "each once")  # fmt: skip
        if not send.runs or any(count < 1 for _, count in send.runs):
            raise fault(schedule, number, "a send has a path or a run without a hop")
        if any(not 0 <= port < schedule.topology.ports for port, _ in send.runs):
            raise fault(schedule, number, "a send has a path through a port that is none")
        if schedule.switching != Switching.CIRCUIT and len(send.hops) > 1:
            raise fault(schedule, number, "a send has a path of more than one hop")
        if (send.group is None) != (step.grouping is None):
            raise fault(schedule, number, "all sends must have groups, or none")


def _check_contention(schedule: Quotient, number: int, step: QuotientRound) -> None:
    """No node sends or receives more than it has ports to use, and no arc carries two messages."""
    used = np.zeros((schedule.modulus, schedule.topology.ports), int)
    load = np.zeros((2, schedule.modulus), int)
    for send in step.sends:
        here = np.asarray(send.labels)
        load[0, here] += 1
        for port in send.hops:
            used[here, port] += 1
            here = (here + schedule.port_weight(port)) % schedule.modulus
            if schedule.duplex == Duplex.HALF:
                used[here, schedule.topology.opposite[port]] += 1
        load[1, here] += 1
    for verb, count in zip(("sends", "receives"), load, strict=True):
        if count.max() > schedule.ports:
            raise busy_node(schedule, number, verb, schedule.nodes_of[:, 0][count.argmax()])
    if used.max() > 1:
        label, port = np.unravel_index(int(np.argmax(used > 1)), used.shape)
        raise busy_arc(schedule, number, schedule.nodes_of[:, 0][label], port)


def _moved(
    schedule: Quotient, step: QuotientRound, send: Send, held: Words, first: int
) -> tuple[IntArray, Words, IntArray]:
    """Where messages of a send arrive, what is in them, and of how many origins, by label."""
    source = schedule.nodes_of[send.labels]
    words = held[source]
    if send.group is not None:
        groups = np.asarray(step.grouping)[first : first + 64]
        bits = np.uint64(1) << np.arange(len(groups), dtype=np.uint64)
        asked = np.asarray(send.group)[:, None] == groups
        words &= np.bitwise_or.reduce(np.where(asked, bits, np.uint64(0)), axis=1)[:, None]
    # All nodes of a label together hold of one origin as many as one of them holds of its label.
    count = popcount(words).sum(axis=1, dtype=np.int64)
    moving = np.flatnonzero(words)
    source, words = source.ravel()[moving], words.ravel()[moving]
    return _shifted(schedule.topology, source, send.displacement(schedule.topology)), words, count


def _shifted(topology: Torus, nodes: IntArray, shift: IntArray) -> IntArray:
    """Nodes moved by a displacement; in 32 bits, since there may be many of them."""
    there, stride = np.zeros_like(nodes), 1
    for side, by in zip(reversed(topology.sides), shift[::-1].tolist(), strict=True):
        nodes, along = np.divmod(nodes, np.int32(side))
        along += np.int32(by % side)
        along -= (along >= side) * np.int32(side)
        there += along * np.int32(stride)
        stride *= side
    return there


def _lacking(
    schedule: Quotient, held: Words, full: np.uint64, origins: IntArray
) -> list[tuple[int, int]]:
    """The lowest node that lacks a block of these origins, or of nodes of their labels, and it."""
    nodes = np.flatnonzero(held != full)
    if not nodes.size:
        return []
    alike = schedule.nodes_of[:, 0][schedule.labels[nodes]]
    node = alike.min()
    nodes = nodes[alike == node]
    at, bit = np.nonzero(held[nodes, None] >> np.arange(len(origins), dtype=np.uint64) & 1 == 0)
    topology = schedule.topology
    origin = topology.add(origins[bit], topology.subtract(node, nodes[at]))
    return [(int(node), int(origin.min()))]


def _traffic(schedule: Quotient, sizes: list[list[IntArray]]) -> Traffic:
    """What the schedule moves, from the blocks that each label sends in each round."""
    nodes, chunks = schedule.topology.nodes, schedule.chunks
    alike = nodes // schedule.modulus
    steps = schedule.quotient_rounds
    sends = [(len(send.labels), len(send.hops)) for step in steps for send in step.sends]
    hops = tuple(max((len(send.hops) for send in step.sends), default=0) for step in steps)
    received = sum(int(size.sum()) for found in sizes for size in found) * alike
    longest = (max((int(size.max(initial=0)) for size in found), default=0) for found in sizes)
    return Traffic(
        rounds=schedule.round_count,
        transfers=sum(labels for labels, _ in sends) * alike,
        arcs_used=sum(labels * length for labels, length in sends) * alike,
        longest=max(hops, default=0),
        duplicates=(received - nodes * (nodes - 1)) * chunks,
        round_hops=hops,
        round_blocks=tuple(size * chunks for size in longest),
    )
