"""Gather and reduce from a broadcast, reduce-scatter from an all-gather, by running it backwards.

In a broadcast every node except the root receives each chunk for the first time from one node.
These *first receipts* form a tree for each chunk. With the order of the rounds and the direction of
all arcs reversed, contributions travel along this tree to the root. A node sends to its parent
after all its children have sent to it, so each contribution travels once and, in a reduction, is
added once. Paths that share no arc share none backwards. A node that receives at most k messages in
a round sends at most k messages in the reversed one. In the same way a scatter becomes a gather.
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

__all__ = ["REVERSED_BROADCASTS", "with_reversed_collectives", "reverse_schedule"]

#: The collectives that are a broadcast backwards.
REVERSED_BROADCASTS = {"gather": "broadcast", "reduce": "broadcast"}

#: The first receipts of a round: arrays of the transfer, the sending cell and the receiving cell.
Receipts: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


def with_reversed_collectives(plan: Planner, forwards: Mapping[str, str]) -> Planner:
    """Extend a planner by collectives that are planned as the reverse of another one.

    A gather, for example, is a scatter with all rounds and arcs reversed.

    Parameters
    ----------
    plan : function of (Topology, Collective, Options) -> Schedule
        The planner of the forward collectives.
    forwards : mapping of str to str
        For each kind that is planned backwards, the kind that `plan` plans for it: ``{"gather":
        "scatter"}``.
    """

    def plan_either_way(topology: Topology, collective: Collective, options: Options) -> Schedule:
        if collective.kind not in forwards:
            return plan(topology, collective, options)
        forward = replace(collective, kind=forwards[collective.kind])
        return reverse_schedule(plan(topology.backwards, forward, options), collective.kind)

    return plan_either_way


def reverse_schedule(schedule: Schedule, kind: str) -> Rounds:
    """Return the schedule of the reverse collective: rounds in reverse order, on reversed arcs.

    Parameters
    ----------
    schedule : Schedule
        A broadcast or an all-gather of any form, or a scatter whose transfers list their blocks. In
        a broadcast or an all-gather, only the first receipt of a block by a node counts.
    kind : str
        ``gather`` or ``reduce`` for a broadcast; ``reduce-scatter`` for an all-gather; ``gather``
        for a scatter.

    Returns
    -------
    Rounds
        The same number of rounds, on the topology with all arcs reversed. A transfer lists the
        contributions that it carries: those of all nodes that got the data through the forward
        transfer.
    """
    rounds = list(schedule.rounds())
    if schedule.collective.personal:
        backwards = [_reverse_transfers(schedule.topology, t, t.payload) for t in rounds]
    else:
        backwards = list(_reverse_trees(schedule, rounds))
    ends = {
        "topology": schedule.topology.backwards,
        "collective": replace(schedule.collective, kind=kind),
    }
    return Rounds(**schedule.head | ends, transfers=tuple(backwards[::-1]))


def _reverse_transfers(topology: Topology, transfers: Transfers, payload: Payload) -> Transfers:
    """Return transfers along the same paths in the opposite direction, which carry `payload`."""
    lengths, longest = transfers.lengths, transfers.hops.shape[1]
    column = lengths[:, None] - 1 - np.arange(longest)
    hops = np.take_along_axis(transfers.hops, np.maximum(column, 0), axis=1)
    hops = np.where(column >= 0, topology.opposite[hops], -1).astype(np.int16)
    return Transfers(transfers.walk(topology)[:, -1], hops, payload)


def _reverse_trees(schedule: Schedule, rounds: list[Transfers]) -> Iterator[Transfers]:
    """Yield the reversed rounds of a broadcast or all-gather, in the order of the forward rounds.

    The forward blocks go down trees; backwards, a node sends the contributions of its subtree to
    its parent. A *cell* is a block at a node, with number node * blocks + block. This number also
    identifies the node's contribution. In preorder the cells of each subtree are contiguous, so the
    contributions in a transfer are a slice.
    """
    receipts = list(_first_receipts(schedule, rounds))
    order, position, size = _preorder_cells(schedule, receipts)
    for transfers, (index, _, child) in zip(rounds, receipts, strict=True):
        used, first = np.unique(index, return_index=True)
        indptr = np.concatenate([[0], np.cumsum(size[child])])
        inside = np.arange(indptr[-1]) - np.repeat(indptr[:-1], size[child])
        ids = order[np.repeat(position[child], size[child]) + inside]
        payload = Listed(indptr[np.append(first, len(index))], ids)
        kept = Transfers(transfers.source[used], transfers.hops[used])
        yield _reverse_transfers(schedule.topology, kept, payload)


def _first_receipts(schedule: Schedule, rounds: list[Transfers]) -> Iterator[Receipts]:
    """Yield, for each round, the blocks that a node receives for the first time, as three arrays.

    Each array has an entry for each such receipt: the index of the transfer, the cell of the
    sender, and the cell of the receiver. A cell is a block at a node, with number node * blocks +
    block.
    """
    count, state = schedule.blocks.n_blocks, HeldBlocks(schedule.topology, schedule.blocks)
    known = state.held.ravel().copy()
    for transfers in rounds:
        listed = state.execute(transfers).listed
        index = np.repeat(np.arange(len(transfers)), np.diff(listed.indptr))
        target = transfers.walk(schedule.topology)[:, -1].astype(np.int64)
        child = target[index] * count + listed.ids
        new = np.flatnonzero(~known[child])
        new = new[np.sort(np.unique(child[new], return_index=True)[1])]
        known[child[new]] = True
        index, block = index[new], listed.ids[new]
        yield index, transfers.source[index].astype(np.int64) * count + block, child[new]


def _preorder_cells(
    schedule: Schedule, receipts: list[Receipts]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all cells in an order in which each subtree is contiguous, and two arrays about it.

    A cell is a block at a node, with number node * blocks + block. `receipts` (see
    `_first_receipts`) says from which cell, its parent, each cell is received first. The arrays are
    the cells in preorder, the index of each cell in this order, and the number of cells in its
    subtree.
    """
    nodes, blocks = schedule.topology.nodes, schedule.blocks
    size = np.ones(nodes * blocks.n_blocks, np.int64)
    for _, parent, child in reversed(receipts):
        np.add.at(size, parent, size[child])
    position = np.zeros_like(size)
    block = np.arange(blocks.n_blocks)
    position[blocks.origin(block) * blocks.n_blocks + block] = block * nodes
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
