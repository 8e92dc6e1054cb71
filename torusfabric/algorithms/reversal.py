"""Gather and reduce from a broadcast, reduce-scatter from an all-gather, by running it backwards.

In a broadcast every node but the root receives each chunk for the first time once, from a node that
has it already: these receipts form a tree a chunk. Reversed rounds in reverse order and reversed
arcs turn it into a tree along which contributions come together at the root: a node sends to its
parent after all its children have sent to it, so that each contribution travels once and, in a
reduction, is added once. Paths that shared no arc share none backwards, and a node that received at
most so many messages in a round sends at most as many. In the same way a scatter becomes a gather.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ..collective import Collective
from ..schedule import Listed, Rounds, Schedule, Transfers
from ..schedule.held_blocks import HeldBlocks
from ..schedule.transfers import Payload
from ..topology import Topology
from .algorithm import Options, Planner

__all__ = ["BROADCAST", "also_backwards", "reverse"]

#: What is a broadcast backwards.
BROADCAST = {"gather": "broadcast", "reduce": "broadcast"}

#: Of each first receipt in a round: the transfer, the sending cell and the receiving cell.
Receipts: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


def also_backwards(plan: Planner, forwards: Mapping[str, str]) -> Planner:
    """A planner that plans some collectives as others backwards, too.

    Parameters
    ----------
    forwards : mapping of str to str
        By the kind of what is planned backwards: which kind the planner plans for that.
    """

    def planned(topology: Topology, collective: Collective, options: Options) -> Schedule:
        if collective.kind not in forwards:
            return plan(topology, collective, options)
        forward = replace(collective, kind=forwards[collective.kind])
        return reverse(plan(topology.backwards, forward, options), collective.kind)

    return planned


def reverse(schedule: Schedule, kind: str) -> Rounds:
    """Run a broadcast, an all-gather or a scatter backwards.

    Parameters
    ----------
    schedule : Schedule
        A broadcast or an all-gather of any form, or a scatter whose transfers list their blocks.
        What reaches a node a second time is left out, but of a scatter.
    kind : str
        ``gather`` or ``reduce`` of a broadcast; ``reduce-scatter`` of an all-gather; ``gather`` of
        a scatter.

    Returns
    -------
    Rounds
        As many rounds, on the topology with all arcs the other way. Messages list the contributions
        they bring: those of a subtree.
    """
    rounds = list(schedule.rounds())
    if schedule.collective.personal:
        backwards = [_backwards(schedule.topology, t, t.payload) for t in rounds]
    else:
        backwards = list(_reverse_trees(schedule, rounds))
    ends = {
        "topology": schedule.topology.backwards,
        "collective": replace(schedule.collective, kind=kind),
    }
    return Rounds(**schedule.head | ends, transfers=tuple(backwards[::-1]))


def _backwards(topology: Topology, transfers: Transfers, payload: Payload) -> Transfers:
    """The same paths from their ends to their beginnings."""
    lengths, longest = transfers.lengths, transfers.hops.shape[1]
    column = lengths[:, None] - 1 - np.arange(longest)
    hops = np.take_along_axis(transfers.hops, np.maximum(column, 0), axis=1)
    hops = np.where(column >= 0, topology.opposite[hops], -1).astype(np.int16)
    return Transfers(transfers.walk(topology)[:, -1], hops, payload)


def _reverse_trees(schedule: Schedule, rounds: list[Transfers]) -> Iterator[Transfers]:
    """The reversed rounds of a broadcast, in the broadcast's order.

    A *cell* is node * blocks + block, which is also the number of the node's contribution: to the
    sum of a chunk, or in a reduce-scatter to the sum that the origin of the block owns. Cells in
    preorder have each subtree in one piece.
    """
    receipts = list(_first_receipts(schedule, rounds))
    order, position, size = _preorder(schedule, receipts)
    for transfers, (index, _, child) in zip(rounds, receipts, strict=True):
        used, first = np.unique(index, return_index=True)
        indptr = np.concatenate([[0], np.cumsum(size[child])])
        inside = np.arange(indptr[-1]) - np.repeat(indptr[:-1], size[child])
        ids = order[np.repeat(position[child], size[child]) + inside]
        payload = Listed(indptr[np.append(first, len(index))], ids)
        kept = Transfers(transfers.source[used], transfers.hops[used])
        yield _backwards(schedule.topology, kept, payload)


def _first_receipts(schedule: Schedule, rounds: list[Transfers]) -> Iterator[Receipts]:
    """For each round the transfer, sending cell and receiving cell of each block's first receipts.

    Sorted by transfer.
    """
    count, state = schedule.blocks.count, HeldBlocks(schedule.topology, schedule.blocks)
    known = state.held.ravel().copy()
    for transfers in rounds:
        listed = state.carry_out(transfers).listed
        index = np.repeat(np.arange(len(transfers)), np.diff(listed.indptr))
        target = transfers.walk(schedule.topology)[:, -1].astype(np.int64)
        child = target[index] * count + listed.ids
        new = np.flatnonzero(~known[child])
        new = new[np.sort(np.unique(child[new], return_index=True)[1])]
        known[child[new]] = True
        index, block = index[new], listed.ids[new]
        yield index, transfers.source[index].astype(np.int64) * count + block, child[new]


def _preorder(
    schedule: Schedule, receipts: list[Receipts]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells in preorder, the position of each cell, and the size of its subtree."""
    nodes, blocks = schedule.topology.nodes, schedule.blocks
    size = np.ones(nodes * blocks.count, np.int64)
    for _, parent, child in reversed(receipts):
        np.add.at(size, parent, size[child])
    position = np.zeros_like(size)
    block = np.arange(blocks.count)
    position[blocks.origin(block) * blocks.count + block] = block * nodes
    free = position + 1
    for _, parent, child in receipts:
        by_parent = np.argsort(parent, kind="stable")
        parent, child = parent[by_parent], child[by_parent]
        before = np.cumsum(size[child]) - size[child]
        first = np.searchsorted(parent, parent)
        position[child] = free[parent] + before - before[first]
        np.add.at(free, parent, size[child])
        free[child] = position[child] + 1
    order = np.empty_like(position)
    order[position] = np.arange(len(order))
    return order, position, size
