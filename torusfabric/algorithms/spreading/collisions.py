"""`Collision`: a place where two transfers of a round meet, or where a transfer is early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...analysis.check.rules import make_fault, occurrence_ranks
from ...schedule import Duplex, KeptSums
from ...topology import BoolArray, IntArray
from .precedence import NEVER
from .transfer_list import TransferList

__all__ = ["Collision", "list_collisions"]

#: Blocks of a transfer that the text of a collision names.
MOST_NAMED = 2


@dataclass(frozen=True)
class Collision:
    """A fault of a schedule that a delay mends: two transfers that meet, or one that is early.

    Its text, ``str(collision)``, names the place and the transfers.

    Parameters
    ----------
    kind : str
        "arc": an arc carries two messages; "link": a link does, in half duplex; "sends" or
        "receives": a node does so more often than its ports allow; "early": a sender does not yet
        hold a block.
    round : int
        The round, counted from 1.
    node, port : int
        Place of the fault: a node, and its out-port, or its in-port for "receives".
    transfers : tuple of int
        The two transfers that meet, or the one that is early: their places in the round, from 0.

    Examples
    --------
    Node 0 sends both chunks of its message by port 0 in the same round:

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> both = tf.Transfers(np.array([0, 0]), np.array([[0], [0]]), tf.Listed.single([0, 1]))
    >>> mine = tf.Rounds(topology=tf.Torus(2), collective=tf.Collective("broadcast", 0), chunks=2,
    ...     transfers=(both,))
    >>> print(tf.find_collisions(mine)[0])
    Round 1: node 0 (0) port +0 carries 0>1 with block (0, 0) and 0>1 with block (0, 1)
    """

    kind: str
    round: int
    node: int
    port: int
    transfers: tuple[int, ...]
    _moves: TransferList = field(repr=False, compare=False)
    _numbers: tuple[int, ...] = field(repr=False, compare=False)

    def __str__(self) -> str:
        first, *others = (self._transfer_text(number) for number in self._numbers)
        match self.kind:
            case "early":
                text = f"sends {first} before it holds {self._lacking_text()}"
            case "arc":
                text = f"carries {first} and {others[0]}"
            case "link":
                text = f"carries {first} and {others[0]} (half duplex: both ways of its link count)"
            case _:
                limit = self._moves.schedule.ports
                text = f"{self.kind} {others[0]} beyond {limit} in a round, such as {first}"
        return str(
            make_fault(self._moves.schedule, self.round, text, node=self.node, port=self.port)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the collision as a JSON object, with the path and the blocks of each transfer."""
        moved = []
        for place, number in zip(self.transfers, self._numbers, strict=True):
            blocks = [list(block) for block in self._named_blocks(number)]
            carried = {"sum": blocks[0][-1]} if self._keeps_sums else {"blocks": blocks}
            moved.append({"number": place + 1, "path": self._nodes_of(number), **carried})
        return {
            "kind": self.kind, "round": self.round, "node": self.node, "port": self.port,
            "transfers": moved, "text": str(self),
        }  # fmt: skip

    @property
    def _keeps_sums(self) -> bool:
        """True if the transfers carry sums that nodes keep."""
        return isinstance(self._moves.transfers.payload, KeptSums)

    def _nodes_of(self, number: int) -> list[int]:
        """Return the nodes along the path of a transfer, given its number in the list."""
        hops = int(self._moves.transfers.lengths[number])
        path: list[int] = self._moves.nodes[number, : hops + 1].tolist()
        return path

    def _named_blocks(self, number: int) -> list[tuple[int, ...]]:
        """Return the blocks of a transfer as in a schedule file; of a kept sum only the chunk."""
        payload = self._moves.transfers.payload
        if isinstance(payload, KeptSums):
            return [(int(payload.chunk[number]),)]
        low, high = self._moves.transfers.listed.indptr[number : number + 2].tolist()
        ids = self._moves.transfers.listed.ids[low:high].tolist()
        return [self._moves.schedule.blocks.block_entry(each) for each in ids]

    def _transfer_text(self, number: int) -> str:
        """Return the path and the blocks of a transfer, such as ``0>1 with block (0, 2, 0)``."""
        path, blocks = ">".join(map(str, self._nodes_of(number))), self._named_blocks(number)
        if self._keeps_sums:
            return f"{path} with the sum of chunk {blocks[0][0]}"
        names = ", ".join(map(str, blocks[:MOST_NAMED]))
        more = f" and {len(blocks) - MOST_NAMED} more" if len(blocks) > MOST_NAMED else ""
        return f"{path} with block{'s' * (len(blocks) > 1)} {names}{more}"

    def _lacking_text(self) -> str:
        """Return words for the data that an early transfer sends."""
        return "it" if len(self._named_blocks(self._numbers[0])) == 1 else "all of them"


def list_collisions(moves: TransferList, rounds: IntArray) -> list[Collision]:
    """Return all collisions of a schedule, and its early transfers, round by round.

    Two transfers that share several arcs are listed once, at the first of these. If n transfers
    need a resource that serves c, the transfers from number c + 1 on are listed, each with the
    first one.

    Parameters
    ----------
    rounds : ndarray of int
        `TransferOrder.rounds`: a later round than that of the schedule marks an early transfer.
    """
    found = [*_met_transfers(moves)]
    early = np.flatnonzero((rounds != moves.round) & (rounds != NEVER))
    node, port = moves.nodes[early, 0], moves.transfers.hops[early, 0]
    found += [
        ("early", (number,), at, by)
        for number, at, by in zip(early.tolist(), node.tolist(), port.tolist(), strict=True)
    ]
    found.sort(key=lambda each: (moves.round[each[1][0]], each[1][-1]))
    return [
        Collision(
            kind, int(moves.round[numbers[0]]) + 1, node, port,
            tuple(moves.place[[*numbers]].tolist()), moves, numbers,
        )
        for kind, numbers, node, port in found
    ]  # fmt: skip


def _met_transfers(moves: TransferList) -> Iterator[tuple[str, tuple[int, ...], int, int]]:
    """Yield kind, transfers, node and port of each pair of transfers that meet."""
    transfer, resource, node, port = moves.needed_resources
    size = np.int64(resource.max(initial=0) + 1)
    key = moves.round[transfer] * size + resource
    rank = occurrence_ranks(key)
    order = np.flatnonzero(rank == 0)
    order = order[np.argsort(key[order])]
    met: IntArray = np.flatnonzero(rank >= moves.capacity_of(resource))
    first = transfer[order[np.searchsorted(key[order], key[met])]]
    kinds = _resource_kinds(moves, resource[met])
    seen: set[tuple[int, int]] = set()
    for kind, one, other, at, by in zip(
        kinds, first.tolist(), transfer[met].tolist(), node[met].tolist(), port[met].tolist(),
        strict=True,
    ):  # fmt: skip
        if (one, other) not in seen:
            seen.add((one, other))
            yield kind, (one, other), at, by


def _resource_kinds(moves: TransferList, resource: IntArray) -> list[str]:
    """Return the word for the kind of each resource: "arc", "link", "sends" or "receives"."""
    topology = moves.schedule.topology
    arcs = topology.nodes * topology.ports
    is_arc: BoolArray = resource < arcs
    arc = "link" if moves.schedule.duplex == Duplex.HALF else "arc"
    node = np.where(resource < arcs + topology.nodes, "sends", "receives")
    kinds: list[str] = np.where(is_arc, arc, node).tolist()
    return kinds
