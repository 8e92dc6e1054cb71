"""Fast proof for symmetric schedules: tables, and quotient schedules.

In a quotient schedule, each node has a label, and nodes with the same label behave alike. A
translation that moves node 0 to a node with label 0 leaves such a schedule unchanged. It is
therefore enough to follow the blocks of one origin for each label, and to check arcs and ports at
one node for each label. In a `Table` all nodes have the same label.

Each function named prove_.. returns the traffic of a correct schedule, and None for a wrong one.
The caller then runs the follower, which names the fault.
"""

import math
from typing import Any

import numpy as np

from ...schedule import Duplex, SumTable, Switching, Table
from ...schedule.quotient import Quotient, Send
from ...topology import BoolArray, IntArray
from .follow import CheckedTraffic, Progress, popcount
from .rules import make_fault

__all__ = ["inspect_quotient", "inspect_table", "prove_quotient", "prove_kept_sums_table",
           "prove_reduction_table", "prove_table", "table_traffic"]  # fmt: skip


def inspect_table(schedule: Table) -> None:
    """Check that the arrays of a table have the right shape, and name existing blocks and ports."""
    topology = schedule.topology
    personal = schedule.collective.personal and not schedule.collective.reducing
    shape = (len(schedule.offset), topology.ports)
    if personal and schedule.destination is None:
        raise make_fault(
            schedule, None, f"a table for {schedule.collective.kind} needs destinations"
        )
    columns: list[tuple[Any, int, int, str]] = [
        (schedule.offset, -1, topology.nodes, "offset"),
        (schedule.chunk, 0, schedule.chunks, "chunk"),
    ]
    if personal:
        columns.append(
            (schedule.destination, 0, schedule.blocks.messages_per_origin, "destination")
        )
    for column, _, _, _ in columns:
        if np.shape(column) != shape:
            raise make_fault(schedule, None, f"the entries of a table must have shape {shape}")
    used = schedule.offset != -1
    for column, low, high, name in columns:
        bad = np.argwhere(used & ((column < low) | (column >= high)))
        if len(bad):
            raise make_fault(
                schedule,
                int(bad[0][0]) + 1,
                f"sends a block whose {name} does not exist",
                node=0,
                port=bad[0][1],
            )


def table_traffic(schedule: Table | SumTable) -> tuple[int, tuple[int, ...]]:
    """Return the number of transfers of a table, and a tuple with one entry for each step.

    The entry is 1 if a port is in use in the step, and 0 if all ports are idle.
    """
    used = _used_ports(schedule)
    return int(used.sum()) * schedule.topology.nodes, tuple(used.any(axis=1).astype(int).tolist())


def _used_ports(schedule: Table | SumTable) -> BoolArray:
    """Return an array of shape (steps, ports), True for ports in use."""
    used: BoolArray = (schedule.offset if isinstance(schedule, Table) else schedule.chunk) >= 0
    return used


def _is_contended(schedule: Table | SumTable) -> bool:
    """Return True if a step of a table breaks a limit on ports or links.

    It does if a node uses more ports than it may or, in half duplex, both directions of a link.
    """
    used = _used_ports(schedule)
    both = schedule.duplex == Duplex.HALF and bool(
        (used & used[:, schedule.topology.opposite]).any()
    )
    return both or int(used.sum(axis=1).max(initial=0)) > schedule.ports


def prove_table(schedule: Table) -> CheckedTraffic | None:
    """Check a table for an all-gather or an all-to-all by the blocks of node 0.

    The result is the traffic, or None if the table is wrong. All nodes do the same, so the blocks
    of origin 0 stand for all others. Such a block is at offset d (which is node d) after it was
    delivered there, and at offset 0 from the start. Each delivery at an offset must therefore
    follow an earlier delivery one hop before (Fragopoulou and Akl, Lemma 5).
    """
    topology, blocks, chunks = schedule.topology, schedule.blocks, schedule.chunks
    step, port = np.nonzero(schedule.offset >= 0)
    offset, chunk = schedule.offset[step, port], schedule.chunk[step, port]
    local, personal = schedule.collective.local, schedule.collective.personal
    destination: Any = 0 if schedule.destination is None else schedule.destination[step, port]

    def block_key(offset: IntArray, chunk: IntArray, destination: Any) -> IntArray:
        """Return a number that stands for a block of origin 0 at an offset.

        The block is chunk `chunk` of the message for `destination`, which is 0 if all destinations
        get the same message. Different blocks and offsets have different numbers.
        """
        place: IntArray = np.asarray(destination, np.int64) * topology.nodes + offset
        return place * chunks + chunk

    previous = topology.subtract(offset, topology.generators[port])
    before = block_key(previous, chunk, destination)
    known, first, which = np.unique(
        block_key(offset, chunk, destination), return_index=True, return_inverse=True
    )
    at = np.minimum(np.searchsorted(known, before), max(len(known) - 1, 0))
    early = (previous != 0) & ((known[at] != before) | (step[first[at]] >= step))
    goal = blocks.target_positions[0] if local else np.arange(1, topology.nodes)
    name = np.arange(len(goal)) if local else goal
    required = block_key(goal[:, None], np.arange(chunks), name[:, None] if personal else 0)
    if _is_contended(schedule) or early.any() or not np.isin(required, known).all():
        return None
    transfers, moving = table_traffic(schedule)
    fresh = np.zeros(len(first), bool)
    fresh[which] = offset != 0
    repeated = transfers - int(fresh.sum()) * topology.nodes
    return CheckedTraffic.from_steps(transfers, moving, duplicates=repeated)


def prove_reduction_table(schedule: Table) -> CheckedTraffic | None:
    """Check a table for a reduction; returns its traffic, or None if it is wrong.

    The collective is a reduce-scatter or an all-reduce in which partial sums move. All nodes do the
    same, so the sums that node 0 completes stand for all others. Only the number of contributions
    to the sum at each offset is followed. This is enough because a sender sends its whole partial
    sum, own contribution included, and keeps nothing, so that no contribution is in two partial
    sums. A second send of a partial sum from the same offset is therefore wrong, and so is a
    partial sum after the first `reducing` steps.
    """
    topology, nodes = schedule.topology, schedule.topology.nodes
    count = np.ones((nodes, schedule.sums_of_owner), np.int64)
    sent = np.zeros(count.shape, bool)
    used = schedule.offset >= 0
    senders = topology.subtract(np.where(used, schedule.offset, 0), topology.generators[None, :])
    for step, ports in enumerate(used):
        here = senders[step, ports], schedule.chunk[step, ports]
        carried = count[here]
        partial = carried < nodes
        if step >= schedule.reducing:
            early = partial
        else:
            early = sent[here]
            sent[here] = True
            if len({*zip(*map(np.ndarray.tolist, here), strict=True)}) < len(carried):
                return None
        count[here[0][partial], here[1][partial]] = 0
        np.add.at(count, (schedule.offset[step, ports], here[1]), carried)
        if early.any() or count.max() > nodes:
            return None
    held = count[:1] if schedule.collective.personal else count
    if _is_contended(schedule) or (held < nodes).any():
        return None
    return CheckedTraffic.from_steps(*table_traffic(schedule))


def prove_kept_sums_table(schedule: SumTable, *, twice: bool) -> CheckedTraffic | None:
    """Check a table in which nodes keep their sums; returns its traffic, or None if it is wrong.

    All nodes do the same, so the sums of node 0 are enough. A sum is the set of offsets of the
    nodes whose contributions it has. The word that node 0 receives by an in-port is the word that
    it sends by the opposite out-port, translated by one hop. `twice` is True if a contribution may
    be in a kept sum more than once, as for ``max``.
    """
    topology, every = schedule.topology, np.arange(schedule.topology.nodes)
    named = (schedule.passed >= -1) & (schedule.passed < topology.ports)
    if not (named & (schedule.chunk < schedule.chunks))[_used_ports(schedule)].all():
        return None
    total = np.tile((every == 0).astype(np.uint8), (schedule.chunks, 1))
    arrived: dict[tuple[int, int], IntArray] = {}
    for chunks, passed in zip(schedule.chunk, schedule.passed, strict=True):
        words = {}
        for port in np.flatnonzero(chunks >= 0).tolist():
            chunk, by = int(chunks[port]), int(passed[port])
            word = total[chunk] if by < 0 else arrived.get((by, chunk))
            if word is None:
                return None
            words[port, chunk] = word[topology.add(every, topology.generators[port])]
        for (port, chunk), word in words.items():
            total[chunk] = np.minimum(total[chunk] + word, 2)
            arrived[int(topology.opposite[port]), chunk] = word
    if _is_contended(schedule) or not total.all() or (total.max() > 1 and not twice):
        return None
    return CheckedTraffic.from_steps(*table_traffic(schedule))


def inspect_quotient(schedule: Quotient) -> None:
    """Check the labels of a quotient schedule, and the form of each `Send`.

    Nodes with the same label behave alike, so labels must fit the translations of the torus: one
    hop through a port must change the label modulo m by the same number at every node.
    """
    modulus, weights, sides = schedule.modulus, schedule.weights, schedule.topology.sides
    collective = schedule.collective
    if not (collective.from_each and collective.to_all):
        text = f"Quotient schedule must be an allgather, not {collective.kind}"
        raise make_fault(schedule, None, text)
    around = [side * weight for side, weight in zip(sides, weights, strict=True)]
    if any(change % modulus for change in around):
        raise make_fault(
            schedule,
            None,
            f"Labels must change by multiples of {modulus} around an axis, not {around}",
        )
    if math.gcd(modulus, *weights) != 1:
        raise make_fault(schedule, None, f"Weights must reach all {modulus} labels, not {weights}")
    for number, step in enumerate(schedule.quotient_rounds, 1):
        for send in step.sends:
            labels = np.asarray(send.labels)
            inside = (labels >= 0) & (labels < modulus)
            for wrong, text in (
                (not inside.all() or len(np.unique(labels)) < len(labels),
                 f"a send must name labels 0 to {modulus - 1}, each once"),
                (not send.runs or any(count < 1 for _, count in send.runs),
                 "a send has a path or a run without a hop"),
                (any(not 0 <= port < schedule.topology.ports for port, _ in send.runs),
                 "a send has a path through a port that is none"),
                (schedule.switching != Switching.CIRCUIT
                 and (len(send.runs) > 1 or any(count > 1 for _, count in send.runs)),
                 "a send has a path of more than one hop"),
                ((send.group is None) != (step.grouping is None),
                 "all sends must have groups, or none"),
            ):  # fmt: skip
                if wrong:
                    raise make_fault(schedule, number, text)


def prove_quotient(schedule: Quotient, progress: Progress | None = None) -> CheckedTraffic | None:
    """Check a quotient schedule; returns its traffic, or None if it is wrong.

    Nodes with the same label behave alike. It is therefore enough to follow the blocks of one
    origin for each label on the whole torus, 64 origins at a time, one bit each. `progress` is
    called as for `check`.
    """
    topology, modulus = schedule.topology, schedule.modulus
    steps = schedule.quotient_rounds
    if any(_is_contended_round(schedule, step.sends) for step in steps):
        return None
    sizes = [[np.zeros(len(send.labels), np.int64) for send in step.sends] for step in steps]
    passes = range(0, modulus, 64)
    for done, first in enumerate(passes):
        held = np.zeros(topology.nodes, np.uint64)
        origins = schedule.nodes_by_label[first : first + 64, 0]
        bits = np.uint64(1) << np.arange(len(origins), dtype=np.uint64)
        held[origins] = bits
        for number, (step, found) in enumerate(zip(steps, sizes, strict=True), 1):
            grouping = None if step.grouping is None else np.asarray(step.grouping)
            moved = []
            for send, size in zip(step.sends, found, strict=True):
                source = schedule.nodes_by_label[send.labels]
                words = held[source]
                if grouping is not None:
                    asked = np.asarray(send.group)[:, None] == grouping[first : first + 64]
                    words &= np.bitwise_or.reduce(np.where(asked, bits, np.uint64(0)), axis=1)[
                        :, None
                    ]
                # Counting one origin's blocks at all nodes of a label gives the same number as
                # counting the blocks of all origins of its label at one node.
                size += popcount(words).sum(axis=1, dtype=np.int64)
                moving = np.flatnonzero(words)
                moved.append(
                    (
                        _displaced_nodes(schedule, send, source.ravel()[moving]),
                        words.ravel()[moving],
                    )
                )
            for target, words in moved:
                held[target] |= words
            if progress:
                progress(done * len(steps) + number, len(passes) * len(steps))
        if (held != np.bitwise_or.reduce(bits)).any():
            return None
    if not all(size.all() for found in sizes for size in found):
        return None
    nodes, alike = topology.nodes, topology.nodes // modulus
    sends = [(len(send.labels), len(send.hops)) for step in steps for send in step.sends]
    hops = tuple(max((len(send.hops) for send in step.sends), default=0) for step in steps)
    received = sum(int(size.sum()) for found in sizes for size in found) * alike
    longest = (max((int(size.max(initial=0)) for size in found), default=0) for found in sizes)
    return CheckedTraffic(
        rounds=schedule.round_count,
        transfers=sum(labels for labels, _ in sends) * alike,
        arcs_used=sum(labels * length for labels, length in sends) * alike,
        longest=max(hops, default=0),
        duplicates=(received - nodes * (nodes - 1)) * schedule.chunks,
        round_hops=hops,
        round_blocks=tuple(size * schedule.chunks for size in longest),
    )


def _is_contended_round(schedule: Quotient, sends: tuple[Send, ...]) -> bool:
    """Return True if a round of a quotient schedule breaks a limit on arcs or ports.

    It does if an arc carries two messages, or if a node sends or receives more messages than it
    may. `sends` are the sends of the round.
    """
    used = np.zeros((schedule.modulus, schedule.topology.ports), int)
    load = np.zeros((2, schedule.modulus), int)
    for send in sends:
        here = np.asarray(send.labels)
        load[0, here] += 1
        for port in send.hops:
            used[here, port] += 1
            here = (here + schedule.port_weight(port)) % schedule.modulus
            if schedule.duplex == Duplex.HALF:
                used[here, schedule.topology.opposite[port]] += 1
        load[1, here] += 1
    return bool(used.max() > 1 or load.max() > schedule.ports)


def _displaced_nodes(schedule: Quotient, send: Send, nodes: IntArray) -> IntArray:
    """Return the nodes at which the messages of `send` arrive: one receiver for each of `nodes`.

    The result has integers of 32 bits, which saves memory.
    """
    sides, shift = schedule.topology.sides, send.displacement(schedule.topology)
    there, stride = np.zeros_like(nodes), 1
    for side, by in zip(reversed(sides), shift[::-1].tolist(), strict=True):
        nodes, along = np.divmod(nodes, np.int32(side))
        along += np.int32(by % side)
        along -= (along >= side) * np.int32(side)
        there += along * np.int32(stride)
        stride *= side
    return there
