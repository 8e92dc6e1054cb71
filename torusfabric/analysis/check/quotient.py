"""Proof of an all-gather on a torus that looks the same from every node of one label.

Let K be the subgroup of nodes of label 0. A `Quotient` schedule is invariant under translation by K
and every label has N / m nodes, where m is the modulus, so that:

- Two messages meet on an arc if and only if two hops in the quotient use the same (label, port): if
  hop h of a path from x and hop h' of a path from x' leave nodes of one label by one port, the
  translation that takes one of these nodes to the other lies in K, and takes the path to another
  path of the same round. The same holds for the messages that a node sends or receives.
- Node x holds the block of origin o if and only if x + k holds that of o + k, for k in K. Hence one
  origin of each label is enough: every other set of holders is a translate of one of these.
- The pairs (x, o) with x of label a holding o number N / m times the blocks that each such x holds.
  Counted by origins, they are N / m times the sum over labels b of the holders of label a of one
  origin of label b. So that sum is the exact number of blocks that a node of label a holds.
- If all rounds from some round on depend on labels modulo a divisor m' of m only, translation by a
  node whose label is 0 mod m' does not change them. From then on a set of holders may be followed
  in the place of any such translate, and labels with equal sets are followed together.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ScheduleError
from ...schedule import Duplex, Switching
from ...schedule.quotient import Quotient, QuotientRound, Send
from ...topology import IntArray, Torus
from .fault import busy_arc, busy_node, fault, unfinished
from .progress import Progress
from .traffic import Traffic

__all__ = ["check_quotient"]

#: Above this share of all nodes, a set of nodes is merged as a bitmap instead of sorted.
SPARSE = 1 / 64

#: Above this share, it is also moved as a bitmap.
DENSE = 1 / 20


def check_quotient(schedule: Quotient, *, progress: Progress | None = None) -> Traffic:
    """Check a quotient schedule in the quotient, and one origin of each label on the torus.

    Parameters
    ----------
    schedule : Quotient
        Of an all-gather.
    progress : function of (done, total), optional

    Returns
    -------
    Traffic

    Raises
    ------
    ScheduleError
        At the first fault.
    """
    _check_labelling(schedule)
    sound, broken = 0, None
    for number, step in enumerate(schedule.quotient_rounds, 1):
        try:
            _check_sends(schedule, number, step)
            _check_ports(schedule, number, step)
            _check_arcs(schedule, number, step)
        except ScheduleError as error:
            broken = error
            break
        sound = number
    steps = schedule.quotient_rounds[:sound]
    holders, sizes = _origins(schedule), []
    for number, modulus in enumerate(_remaining_moduli(schedule, steps), 1):
        step = steps[number - 1]
        if step.focus is not None:
            holders = _refocus(schedule, step.focus, modulus, holders)
        sizes.append(_message_sizes(schedule, number, step, holders))
        holders = _advance(schedule, step, holders)
        if progress:
            progress(number, schedule.round_count)
    if broken is not None:
        raise broken
    _check_complete(schedule, holders)
    return _traffic(schedule, sizes)


def _traffic(schedule: Quotient, sizes: list[list[IntArray]]) -> Traffic:
    """What the schedule moves, from the blocks that each label sends in each round."""
    nodes, chunks = schedule.topology.nodes, schedule.chunks
    alike = nodes // schedule.modulus
    rounds = schedule.quotient_rounds
    hops = [max((len(send.hops) for send in step.sends), default=0) for step in rounds]
    sends = [send for step in rounds for send in step.sends]
    received = sum(int(size.sum()) for sent in sizes for size in sent) * alike
    return Traffic(
        rounds=schedule.round_count,
        transfers=sum(len(send.labels) for send in sends) * alike,
        arcs_used=sum(len(send.labels) * len(send.hops) for send in sends) * alike,
        longest=max(hops, default=0),
        duplicates=(received - nodes * (nodes - 1)) * chunks,
        round_hops=tuple(hops),
        round_blocks=tuple(
            max((int(size.max(initial=0)) for size in sent), default=0) * chunks for sent in sizes
        ),
    )


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


def _check_ports(schedule: Quotient, number: int, step: QuotientRound) -> None:
    """No node sends or receives more messages than it has ports to use."""
    for verb in ("sends", "receives"):
        load = np.zeros(schedule.modulus, int)
        for send in step.sends:
            there = np.asarray(send.labels)
            if verb == "receives":
                there = there + send.displacement(schedule.topology) @ np.array(schedule.weights)
            np.add.at(load, there % schedule.modulus, 1)
        if load.max() > schedule.ports:
            raise busy_node(schedule, number, verb, schedule.first_nodes[load.argmax()])


def _check_arcs(schedule: Quotient, number: int, step: QuotientRound) -> None:
    """Every arc, or every link in half duplex, is used at most once."""
    used = np.zeros((schedule.modulus, schedule.topology.ports), int)
    for send in step.sends:
        here = np.asarray(send.labels)
        for port in send.hops:
            there = (here + schedule.port_weight(port)) % schedule.modulus
            np.add.at(used, (here, port), 1)
            if schedule.duplex == Duplex.HALF:
                np.add.at(used, (there, schedule.topology.opposite[port]), 1)
            here = there
    if used.max() > 1:
        label, port = np.unravel_index(int(np.argmax(used > 1)), used.shape)
        raise busy_arc(schedule, number, schedule.first_nodes[label], port)


def _remaining_moduli(schedule: Quotient, steps: Sequence[QuotientRound]) -> list[int]:
    """For each round the modulus on which it and all later rounds depend."""
    moduli, modulus = [], 1
    for step in reversed(steps):
        for send in step.sends:
            action = np.zeros(schedule.modulus, int)
            action[send.labels] = 1 if send.group is None else np.asarray(send.group) + 1
            modulus = math.lcm(modulus, _period(action))
        moduli.append(modulus)
    return moduli[::-1]


def _period(values: IntArray) -> int:
    """The smallest divisor of the length after which an array repeats."""
    for divisor in range(1, len(values) + 1):
        if len(values) % divisor == 0:
            rows = values.reshape(-1, divisor)
            if (rows == rows[0]).all():
                return divisor
    raise AssertionError("an array repeats after its length")


@dataclass(eq=False)
class _Holders:
    """The nodes that hold the block of an origin, for one origin of each of some labels.

    Parameters
    ----------
    nodes : ndarray of int32
        The holders, sorted; they and the origins may be translated.
    labels : list of int
        The labels of the origins.
    positions : list of int
        Where the origins are in the same translation.
    """

    nodes: IntArray
    labels: list[int]
    positions: list[int]


def _origins(schedule: Quotient) -> list[_Holders]:
    """Before the first round, an origin alone holds its block."""
    positions = schedule.first_nodes.tolist()
    return [_Holders(np.array([v], np.int32), [b], [v]) for b, v in enumerate(positions)]


def _joined(holders: Iterable[_Holders]) -> list[_Holders]:
    """Holders with equal nodes made one."""
    known: dict[bytes, _Holders] = {}
    for item in holders:
        key = hashlib.blake2b(item.nodes.data).digest()
        same = known.setdefault(key, _Holders(item.nodes, [], []))
        same.labels.extend(item.labels)
        same.positions.extend(item.positions)
    return list(known.values())


def _refocus(
    schedule: Quotient, focus: IntArray, modulus: int, holders: list[_Holders]
) -> list[_Holders]:
    """Translate holders so that the focus of each origin is node 0, where this is allowed."""
    return _joined(_refocused(schedule, focus, modulus, holders))


def _refocused(
    schedule: Quotient, focus: IntArray, modulus: int, holders: list[_Holders]
) -> Iterator[_Holders]:
    """Holders of each origin, translated."""
    topology = schedule.topology
    for item in holders:
        labels, positions = np.array(item.labels), np.array(item.positions)
        centres = topology.add(positions, topology.node(np.asarray(focus)[labels].T))
        centres[schedule.labels[centres] % modulus != 0] = 0
        for centre in np.unique(centres):
            mine = centres == centre
            nodes = np.sort(topology.subtract(item.nodes, centre)).astype(np.int32)
            moved = topology.subtract(positions[mine], centre)
            yield _Holders(nodes, labels[mine].tolist(), moved.tolist())


def _split(step: QuotientRound, holders: list[_Holders]) -> Iterator[tuple[_Holders, int | None]]:
    """Holders apart by the group of their blocks: (holders, group or None)."""
    for item in holders:
        if step.grouping is None:
            yield item, None
            continue
        groups = np.asarray(step.grouping)[item.labels]
        for group in np.unique(groups):
            chosen = np.flatnonzero(groups == group)
            labels, positions = np.array(item.labels)[chosen], np.array(item.positions)[chosen]
            yield _Holders(item.nodes, labels.tolist(), positions.tolist()), int(group)


def _senders(send: Send, group: int | None) -> IntArray:
    """The labels of nodes whose message has blocks of a group."""
    labels = np.asarray(send.labels)
    return labels if group is None else labels[np.asarray(send.group) == group]


def _message_sizes(
    schedule: Quotient, number: int, step: QuotientRound, holders: list[_Holders]
) -> list[IntArray]:
    """How many origins' blocks the message of each sending label has."""
    held: dict[int | None, Any] = {}
    for item, group in _split(step, holders):
        counts = np.bincount(schedule.labels[item.nodes], minlength=schedule.modulus)
        moved = (schedule.labels[item.positions] - np.array(item.labels)) % schedule.modulus
        for shift, times in zip(*np.unique(moved, return_counts=True), strict=True):
            held[group] = held.get(group, 0) + np.roll(counts, -shift) * times
    sizes: list[IntArray] = []
    for send in step.sends:
        labels = np.asarray(send.labels)
        size = np.zeros(schedule.modulus, np.int64)
        for group, counts in held.items():
            sending = _senders(send, group)
            size[sending] = counts[sending]
        sizes.append(size[labels])
        if (sizes[-1] == 0).any():
            node = schedule.first_nodes[labels[np.argmin(sizes[-1])]]
            raise fault(schedule, number, "sends a message without a block", node=node,
                        port=send.runs[0][0])  # fmt: skip
    return sizes


def _advance(schedule: Quotient, step: QuotientRound, holders: list[_Holders]) -> list[_Holders]:
    """The holders after a round."""
    return _joined(_advanced(schedule, step, holders))


def _advanced(
    schedule: Quotient, step: QuotientRound, holders: list[_Holders]
) -> Iterator[_Holders]:
    """Holders after a round, not joined."""
    for item, group in _split(step, holders):
        nodes = item.nodes
        if DENSE * schedule.topology.nodes < len(nodes) < schedule.topology.nodes:
            nodes = _moved_bitmap(schedule, step, nodes, group)
        elif len(nodes) < schedule.topology.nodes:
            nodes = _union(schedule.topology, [nodes, *_arrivals(schedule, step, nodes, group)])
        yield _Holders(nodes, item.labels, item.positions)


def _arrivals(
    schedule: Quotient, step: QuotientRound, nodes: IntArray, group: int | None
) -> Iterator[IntArray]:
    """Where messages with blocks of a group arrive from some nodes: one array a `Send`."""
    topology = schedule.topology
    labels, coordinates = schedule.labels[nodes], np.unravel_index(nodes, topology.sides)
    for send in step.sends:
        chosen = np.zeros(schedule.modulus, bool)
        chosen[_senders(send, group)] = True
        sending = np.flatnonzero(chosen[labels])
        there = np.zeros(len(sending), np.int32)
        shifts = send.displacement(topology)
        for along, shift, side in zip(coordinates, shifts, topology.sides, strict=True):
            moved = (np.arange(side, dtype=np.int32) + shift) % side
            there = there * np.int32(side) + moved.astype(np.int32)[along[sending]]
        yield there


def _moved_bitmap(
    schedule: Quotient, step: QuotientRound, nodes: IntArray, group: int | None
) -> IntArray:
    """The nodes with all arrivals, by way of a bitmap."""
    sides = schedule.topology.sides
    present = np.zeros(schedule.topology.nodes, bool)
    present[nodes] = True
    result, known = present.reshape(sides).copy(), None
    for send in step.sends:
        labels = _senders(send, group)
        if known is None or not np.array_equal(labels, known):
            chosen, known = np.zeros(schedule.modulus, bool), labels
            chosen[labels] = True
            sending = (chosen[schedule.labels] & present).reshape(sides)
        result |= np.roll(sending, send.displacement(schedule.topology), range(len(sides)))
    return np.flatnonzero(result).astype(np.int32)


def _union(topology: Torus, parts: list[IntArray]) -> IntArray:
    """The sorted union of arrays of nodes."""
    if sum(map(len, parts)) < SPARSE * topology.nodes:
        return np.unique(np.concatenate(parts))
    present = np.zeros(topology.nodes, bool)
    for part in parts:
        present[part] = True
    return np.flatnonzero(present).astype(np.int32)


def _check_complete(schedule: Quotient, holders: list[_Holders]) -> None:
    """Every node holds the block of every origin."""
    for item in holders:
        if len(item.nodes) < schedule.topology.nodes:
            missing = int(np.setdiff1d(np.arange(schedule.topology.nodes), item.nodes)[0])
            origin = int(schedule.first_nodes[item.labels[0]])
            offset = schedule.topology.subtract(missing, item.positions[0])
            node = int(schedule.topology.add(origin, offset))
            block = int(schedule.blocks.encode(origin, 0))
            raise unfinished(schedule, node, block)
