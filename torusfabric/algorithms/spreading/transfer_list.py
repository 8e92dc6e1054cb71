"""`TransferList`: all transfers of a schedule in one list, with the resources that they need.

A *resource* is an arc, a link in half duplex, or the right of a node to send or to receive. In a
round it serves at most `capacity` transfers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...schedule import Duplex, KeptSums, Listed, Rounds, Schedule, Transfers
from ...schedule.held_blocks import HeldBlocks
from ...topology import IntArray

__all__ = ["Resources", "TransferList", "split_lists"]


class Resources(NamedTuple):
    """The resources that transfers need: entry k says that a transfer needs a resource.

    Parameters
    ----------
    transfer : ndarray of int
        Position of the transfer that needs it, in `TransferList.transfers`.
    resource : ndarray of int
        Number of the resource. Arc a has number a; sending at node k has number A + k, receiving
        A + N + k, with A arcs and N nodes. A link in half duplex has the lower number of its arcs.
    node, port : ndarray of int
        Node and port at which the transfer needs the resource: the out-port of the arc, or the
        first out-port or last in-port of the path.
    """

    transfer: IntArray
    resource: IntArray
    node: IntArray
    port: IntArray


class TransferList:
    """All transfers of a schedule, numbered in the order of the rounds.

    Parameters
    ----------
    schedule : Schedule
        A schedule whose paths are valid.

    Attributes
    ----------
    transfers : Transfers
        All transfers; their payload is `Listed`, or `KeptSums` if nodes keep their sums.
    round : ndarray of int
        The round of each transfer in the schedule, from 0.
    place : ndarray of int
        The place of each transfer in its round, from 0.
    """

    def __init__(self, schedule: Schedule) -> None:
        rounds = _list_blocks(schedule)
        self.schedule = schedule
        self.transfers = _concatenate_rounds(rounds)
        sizes = [len(each) for each in rounds]
        self.round = np.repeat(np.arange(len(rounds)), sizes)
        self.place = np.concatenate([np.empty(0, np.int64), *map(np.arange, sizes)])

    def __len__(self) -> int:
        return len(self.transfers)

    @cached_property
    def nodes(self) -> IntArray:
        """The nodes along each path; the last column has the receivers."""
        return self.transfers.walk(self.schedule.topology)

    @cached_property
    def listed_pairs(self) -> tuple[IntArray, IntArray]:
        """The pairs (transfer, block) of all transfers, as two arrays."""
        listed = self.transfers.listed
        owner = np.repeat(np.arange(len(self)), np.diff(listed.indptr))
        return owner, np.asarray(listed.ids, np.int64)

    @property
    def sum_count(self) -> int:
        """Number of different sums of a reduction; contributions to one sum are equal modulo it."""
        return self.schedule.blocks.n_blocks // self.schedule.blocks.group_size

    @cached_property
    def sizes(self) -> IntArray:
        """Number of blocks of each transfer; a partial sum counts as one block."""
        if isinstance(self.transfers.payload, KeptSums):
            return np.ones(len(self), np.int64)
        if not self.schedule.collective.reducing:
            return np.diff(self.transfers.listed.indptr)
        owner, ids = self.listed_pairs
        keys = self.sum_count
        sums = np.unique(owner * np.int64(keys) + ids % keys)
        return np.bincount(sums // keys, minlength=len(self))

    @property
    def round_limits(self) -> tuple[int, int]:
        """Transfers that an arc serves in a round, and transfers that a node sends or receives."""
        return 1, self.schedule.ports

    @cached_property
    def needed_resources(self) -> Resources:
        """The resources that each transfer needs, in the order of its path."""
        topology, hops, nodes = self.schedule.topology, self.transfers.hops, self.nodes
        row, column = np.nonzero(hops >= 0)
        node, port = nodes[row, column].astype(np.int64), hops[row, column].astype(np.int64)
        arc = node * topology.ports + port
        if self.schedule.duplex == Duplex.HALF:
            back = nodes[row, column + 1] * np.int64(topology.ports) + topology.opposite[port]
            arc = np.minimum(arc, back)
        found: list[tuple[IntArray, ...]] = [(row, arc, node, port)]
        if self.schedule.ports < topology.ports:
            every, arcs = np.arange(len(self)), topology.nodes * topology.ports
            last = topology.opposite[hops[every, self.transfers.lengths - 1]]
            source, target = nodes[:, 0].astype(np.int64), nodes[:, -1].astype(np.int64)
            found.append((every, arcs + source, source, hops[:, 0].astype(np.int64)))
            found.append((every, arcs + topology.nodes + target, target, last))
        return Resources(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def capacity_of(self, resource: IntArray) -> IntArray:
        """Return the number of transfers that each resource serves in a round."""
        arcs = self.schedule.topology.nodes * self.schedule.topology.ports
        return np.where(resource < arcs, *self.round_limits)

    def with_rounds(self, rounds: IntArray) -> Rounds:
        """Return the schedule in which transfer k moves in round ``rounds[k]``, counted from 0.

        In each round, transfers keep the order that they have in this list.
        """
        order = np.argsort(rounds, kind="stable")
        bounds = np.searchsorted(rounds[order], np.arange(rounds.max(initial=-1) + 2))
        each = [self.transfers.of(order[low:high]) for low, high in pairwise(bounds.tolist())]
        shortened = (
            Transfers(one.source, one.hops[:, : one.lengths.max(initial=1)], one.payload)
            for one in each
        )
        return Rounds(**self.schedule.head, transfers=tuple(shortened))


def _list_blocks(schedule: Schedule) -> list[Transfers]:
    """Return the transfers of each round, with all blocks listed or with kept sums."""
    rounds = list(schedule.rounds())
    payloads = [each.payload for each in rounds if len(each)]
    if all(isinstance(payload, Listed) for payload in payloads) or schedule.keeps_sums:
        return rounds
    held = HeldBlocks(schedule.topology, schedule.blocks)
    return [held.execute(each) for each in rounds]


def _concatenate_rounds(rounds: Sequence[Transfers]) -> Transfers:
    """Return the transfers of all rounds as one list."""
    rounds = [each for each in rounds if len(each)]
    if not rounds:
        return Transfers(
            np.empty(0, np.int64), np.empty((0, 1), np.int16), Listed.single(np.empty(0, np.int64))
        )
    longest = max(each.hops.shape[1] for each in rounds)
    hops = np.full((sum(map(len, rounds)), longest), -1, np.int16)
    first = 0
    for each in rounds:
        hops[first : first + len(each), : each.hops.shape[1]] = each.hops
        first += len(each)
    source = np.concatenate([each.source for each in rounds])
    if isinstance(rounds[0].payload, KeptSums):
        kept = [each.payload for each in rounds if isinstance(each.payload, KeptSums)]
        chunk = np.concatenate([each.chunk for each in kept])
        passed = np.concatenate([each.passed for each in kept])
        return Transfers(source, hops, KeptSums(chunk, passed))
    listed = [each.listed for each in rounds]
    sizes = np.concatenate([np.diff(each.indptr) for each in listed])
    ids = np.concatenate([each.ids for each in listed])
    return Transfers(source, hops, Listed(np.concatenate([[0], np.cumsum(sizes)]), ids))


def split_lists(index: IntArray, values: IntArray, count: int) -> list[list[int]]:
    """Return `count` lists; list k has the ``values[j]`` for which ``index[j]`` is k, in order.

    Examples
    --------
    >>> split_lists(np.array([2, 0, 2]), np.array([5, 6, 7]), 3)
    [[6], [], [5, 7]]
    """
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(count + 1)).tolist()
    ordered = values[order].tolist()
    return [ordered[low:high] for low, high in pairwise(bounds)]
