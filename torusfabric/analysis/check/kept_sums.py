"""Proof of a reduction in which nodes keep their sums and copy them.

Of each chunk a node has one sum, so that a contribution can be in many sums at once, and may reach
a node by several ways. A word that arrives is added to the sum. A word that has all contributions
of the sum replaces it, unless the schedule is a table, whose nodes only add. All contributions of
every word are followed, how often each is in it included. In a table every node does the same
relative to itself, so only the words of node 0 are followed, by the offsets of their contributions.
"""

from typing import SupportsInt

import numpy as np

from ...errors import InputError, ScheduleError
from ...schedule import KeptSums, Rounds, Schedule, SumTable, Transfers
from ...topology import IntArray, IntLike
from .fault import fault, unfinished
from .structure import ranks
from .table import raise_busy
from .traffic import Progress, Tally, Traffic

__all__ = ["check_sum_table", "inspect_kept_sums", "inspect_sum_table",
           "track_kept_sums"]  # fmt: skip

#: Bytes that contributions of one chunk may take.
BUDGET = 2**31

#: Contributions that are in a sum more than once count as two.
TWICE = 2


def inspect_kept_sums(schedule: Schedule, number: int, transfers: Transfers) -> None:
    """Check that what transfers carry is there in this collective."""
    payload, collective = transfers.payload, schedule.collective
    if not len(transfers):
        return
    if not isinstance(payload, KeptSums):
        raise fault(schedule, number, "lists blocks, in a schedule of sums that nodes keep")
    if not collective.reducing or collective.personal:
        text = f"sends a sum that it keeps, which is no part of {collective.kind}"
        raise fault(schedule, number, text, node=transfers.source[0])
    if np.shape(payload.chunk) != (len(transfers),) or np.shape(payload.passed) != (
        len(transfers),
    ):
        raise fault(schedule, number, "sums that nodes keep must have one entry a transfer")
    for wrong, text in (
        ((payload.chunk < 0) | (payload.chunk >= schedule.chunks), "sends a chunk that is none"),
        (
            (payload.passed < -1) | (payload.passed >= schedule.topology.ports),
            "passes on from an in-port that is none",
        ),
    ):
        bad = np.flatnonzero(wrong)
        if bad.size:
            raise fault(schedule, number, text, node=transfers.source[bad[0]],
                        port=transfers.hops[bad[0], 0])  # fmt: skip


def track_kept_sums(
    schedule: Schedule,
    limit: int,
    *,
    finish: bool = True,
    twice: bool = False,
    progress: Progress | None = None,
) -> Tally:
    """Follow all contributions through the first rounds of a schedule, chunk by chunk.

    Parameters
    ----------
    schedule : Schedule
        Whose rounds keep the rules of `structure` and of `inspect_kept_sums`.
    twice : bool
        Whether a contribution may be in a sum more than once, as by ``max``.
    limit, finish
        As of `track_blocks`.

    Raises
    ------
    InputError
        If there are too many nodes to follow.
    ScheduleError
        At the first fault of the first chunk that has any.
    """
    nodes, ports = schedule.topology.nodes, schedule.topology.ports
    if nodes * nodes * (ports + 1) > BUDGET:
        most = int((BUDGET / (ports + 1)) ** 0.5)
        raise InputError(f"Nodes that keep sums must be at most {most}, not {nodes}")
    rounds = [transfers for transfers, _ in zip(schedule.rounds(), range(limit), strict=False)]
    for chunk in range(schedule.chunks):
        held = _Held(schedule, chunk, twice=twice)
        for number, transfers in enumerate(rounds, 1):
            held.move(number, transfers)
            if progress:
                progress(chunk * limit + number, schedule.chunks * limit)
        if finish:
            held.finish()
    return [int(bool(len(transfers))) for transfers in schedule.rounds()], 0


class _Held:
    """The sums of one chunk: ``total[node, origin]`` says how often a contribution is in one.

    ``arrived[node, port]`` is the word that has come last by an in-port, if any.
    """

    def __init__(self, schedule: Schedule, chunk: int, *, twice: bool) -> None:
        self.schedule, self.chunk, self.twice = schedule, chunk, twice
        self.replaces = isinstance(schedule, Rounds)
        topology = schedule.topology
        self.total = np.eye(topology.nodes, dtype=np.uint8)
        self.arrived: dict[tuple[int, int], IntArray] = {}

    def move(self, number: int, transfers: Transfers) -> None:
        """Carry out a round: all words leave before any arrives."""
        topology, payload = self.schedule.topology, transfers.payload
        if not len(transfers):
            return
        assert isinstance(payload, KeptSums)
        mine = np.flatnonzero(payload.chunk == self.chunk)
        source, passed = transfers.source[mine], payload.passed[mine]
        words = self.total[source]
        for k in np.flatnonzero(passed >= 0).tolist():
            word = self.arrived.get((int(source[k]), int(passed[k])))
            if word is None:
                raise _nothing(self.schedule, number, source[k], transfers.hops[mine[k], 0])
            words[k] = word
        target = transfers.walk(topology)[mine, -1]
        last = transfers.hops[mine, transfers.lengths[mine] - 1]
        # Of words that arrive at a node in a round, those that replace the sum come first.
        added = ((words == 0) & (self.total[target] > 0)).any(axis=1)
        order = np.lexsort(((words > 0).sum(axis=1), added))
        turn = np.empty(len(order), int)
        turn[order] = ranks(target[order])
        for layer in range(int(turn.max(initial=-1)) + 1):
            now = np.flatnonzero(turn == layer)
            held = self.total[target[now]]
            total = held + words[now]
            whole = self.replaces & ((words[now] > 0) | (held == 0)).all(axis=1)
            total[whole] = words[now[whole]]
            k, origin = np.nonzero(total > 1)
            if k.size and self.schedule.collective.to_all and not self.twice:
                at = mine[now[k[0]]]
                raise _counted_twice(self.schedule, number, transfers.source[at],
                                     transfers.hops[at, 0], origin[0], self.chunk)  # fmt: skip
            self.total[target[now]] = np.minimum(total, TWICE)
        ports = topology.opposite[last]
        self.arrived.update(zip(zip(target.tolist(), ports.tolist(), strict=True), words,
                                strict=True))  # fmt: skip

    def finish(self) -> None:
        """Check that all sums are complete that are delivered."""
        blocks = self.schedule.blocks
        groups = blocks.groups
        for group in groups.members:
            root = self.schedule.collective.root
            receivers = group if root is None else group[[root]]
            count = self.total[np.ix_(receivers, group)]
            wrong = count < 1 if self.twice else count != 1
            if wrong.any():
                receiver, origin = (int(k[0]) for k in np.nonzero(wrong))
                text = "ends without the complete sum that has {block}"
                if count[receiver, origin]:
                    text = "ends with a sum in which {block} is counted twice"
                block = blocks.encode(origin, self.chunk)
                raise unfinished(self.schedule, receivers[receiver], block, text)


def check_sum_table(schedule: SumTable, *, twice: bool = False) -> Traffic:
    """Check a table of sums that nodes keep.

    Parameters
    ----------
    twice : bool
        Whether a contribution may be in a sum more than once, as by ``max``.

    Raises
    ------
    ScheduleError
        At the first fault, as it shows at node 0.
    """
    topology = schedule.topology
    every = np.arange(topology.nodes)
    total = np.tile((every == 0).astype(np.uint8), (schedule.chunks, 1))
    arrived: dict[tuple[int, int], IntArray] = {}
    for step, (chunks, passed) in enumerate(zip(schedule.chunk, schedule.passed, strict=True)):
        ports = np.flatnonzero(chunks >= 0)
        raise_busy(schedule, step, chunks)
        words = {}
        for port in ports.tolist():
            chunk, by = int(chunks[port]), int(passed[port])
            word = total[chunk] if by < 0 else arrived.get((by, chunk))
            if word is None:
                raise _nothing(schedule, step + 1, 0, port)
            # What node 0 sends, node -g sends to node 0, on whose port g it stands.
            words[port, chunk] = word[topology.add(every, topology.generators[port])]
        for (port, chunk), word in words.items():
            both = total[chunk] + word
            if (both > 1).any() and not twice:
                # Seen from the receiver at node 0; the sender that is named is node 0 as well.
                origin = topology.add(int(np.argmax(both > 1)), topology.generators[port])
                raise _counted_twice(schedule, step + 1, 0, port, origin, chunk)
            total[chunk] = np.minimum(both, TWICE)
            arrived[int(topology.opposite[port]), chunk] = word
    chunk_at, origin_at = np.nonzero(total < 1)
    if chunk_at.size:
        block = schedule.blocks.encode(origin_at[0], chunk_at[0])
        text = "ends without the complete sum that has {block}"
        raise unfinished(schedule, 0, block, text)
    moving = tuple((schedule.chunk >= 0).any(axis=1).astype(int).tolist())
    transfers = int((schedule.chunk >= 0).sum()) * topology.nodes
    return Traffic.of_steps(transfers, moving)


def inspect_sum_table(schedule: SumTable) -> None:
    """Check that the entries of a table have the right shape."""
    shape = (len(schedule.chunk), schedule.topology.ports)
    if np.shape(schedule.chunk) != shape or np.shape(schedule.passed) != shape:
        raise fault(schedule, None, f"the entries of a table must have shape {shape}")
    if schedule.collective.kind != "allreduce":
        raise fault(schedule, None, "a table of sums that nodes keep must be an allreduce")
    for number, transfers in enumerate(schedule.rounds(), 1):
        inspect_kept_sums(schedule, number, transfers)


def _nothing(
    schedule: Schedule, number: int, node: SupportsInt, port: SupportsInt
) -> ScheduleError:
    """The fault of a node that passes on what has not come."""
    text = "passes on a word of a chunk that has not arrived"
    return fault(schedule, number, text, node=node, port=port)


def _counted_twice(
    schedule: Schedule,
    number: int,
    node: SupportsInt,
    port: SupportsInt,
    origin: IntLike,
    chunk: int,
) -> ScheduleError:
    """The fault of a transfer with a contribution that is at its receiver already."""
    block = schedule.blocks.encode(schedule.blocks.groups.position[origin], chunk)
    text = "sends {block}, which is counted twice"
    return fault(schedule, number, text, node=node, port=port, block=block)
