"""Where every contribution to a reduction is: partial sums move, complete sums are copied.

Each contribution (origin, chunk), or (origin, destination, chunk), is part of exactly one partial
sum of its *key*, (chunk) or (destination, chunk), until that sum is complete. A node keeps at most
one sum of a key. Since a partial sum moves, no contribution can be in two of them, and a complete
sum leaves nothing for others: so all that must be followed is which sum stands where, how many
contributions are in it, and, for transfers that list their blocks, into which sum each contribution
has gone, a forest whose trees are joined where sums meet.
"""

from typing import NoReturn

import numpy as np

from ...schedule import Everything, Grouped, Schedule, Transfers
from ...topology import BoolArray, IntArray
from .blocks import Findings, follow
from .structure import ranks
from .traffic import Progress, Tally

__all__ = ["track_sums"]

#: Keys times nodes that one pass may follow.
BUDGET = 2**24


def track_sums(
    schedule: Schedule, limit: int, *, finish: bool = True, progress: Progress | None = None
) -> Tally:
    """Follow all partial sums through the first rounds of a schedule.

    Parameters
    ----------
    schedule : Schedule
        Of a reducing collective; its rounds keep the rules of `structure`.
    limit, finish
        As of `track_blocks`.

    Raises
    ------
    ScheduleError
        At the first transfer that carries other than one whole sum of each of its keys, adds a
        contribution a second time or, with ``finish``, at the first complete sum that is missing;
        in more than `MANY` passes at the first among the sums followed so far.
    """
    nodes, keys = schedule.topology.nodes, schedule.blocks.count // schedule.blocks.nodes
    passes = range(0, keys, max(1, BUDGET // nodes))
    return follow(schedule, _Sums, passes, limit, finish=finish, progress=progress)


class _Sums:
    """The sums of keys ``first`` up to ``last`` at all nodes.

    A *cell* is (key - first) * nodes + node. ``at[cell]`` is the tree of the sum that the node
    keeps, -1 for none, ``count[cell]`` its number of contributions, and ``parent`` the forest that
    leads from the contribution of an origin (a cell of the same key) to its tree. ``left[cell]`` is
    the tree of the partial sum that has left the node last. In several groups each has sums of its
    own, which are complete with a contribution of each of its nodes.
    """

    def __init__(self, schedule: Schedule, first: int, last: int, found: Findings) -> None:
        self.schedule, self.first, self.last, self.found = schedule, first, last, found
        self.number = 0
        self.nodes, self.groups = schedule.topology.nodes, schedule.blocks.groups
        self.full = self.groups.size
        self.keys = schedule.blocks.count // self.full
        self.at = np.arange((last - first) * self.nodes)
        self.parent = self.at.copy()
        self.left = np.full_like(self.at, -1)
        self.count = np.ones(len(self.at), np.int32)

    def block(self, key: int, origin: int) -> int:
        """The block number of the contribution of a node."""
        return int(self.groups.position[origin]) * self.keys + self.first + int(key)

    def move(self, number: int, transfers: Transfers) -> None:
        """Carry out one round."""
        self.number = number
        if not len(transfers):
            return
        owner, key = self._carried(transfers)
        sizes = np.bincount(owner, minlength=len(transfers))
        source = key * self.nodes + transfers.source[owner]
        target = key * self.nodes + transfers.walk(self.schedule.topology)[owner, -1]
        partial = self.count[source] < self.full
        self._check_moved_once(transfers, owner, source, partial)
        tree, count = self.at[source].copy(), self.count[source].copy()
        self.left[source[partial]] = self.at[source[partial]]
        self.at[source[partial]] = -1
        self.count[source[partial]] = 0
        self._deliver(transfers, owner, target, tree, count)
        self.found.add_sizes(number, transfers, sizes)
        self.found.fresh += len(owner)

    def _check_moved_once(
        self, transfers: Transfers, owner: IntArray, source: IntArray, partial: BoolArray
    ) -> None:
        """Check that no partial sum leaves a node twice."""
        moving = np.flatnonzero(partial)
        again = moving[ranks(source[moving]) > 0]
        if again.size:
            self._stop(transfers, owner[again[0]], source[again[0]],
                       "sends the partial sum with {block} a second time")  # fmt: skip

    def _deliver(
        self,
        transfers: Transfers,
        owner: IntArray,
        target: IntArray,
        tree: IntArray,
        count: IntArray,
    ) -> None:
        """Add the sums that arrive to what their targets keep, one at a time for each target."""
        turn = ranks(target)
        for layer in range(int(turn.max(initial=-1)) + 1):
            now = np.flatnonzero(turn == layer)
            cell = target[now]
            twice = now[self.count[cell] + count[now] > self.full]
            if twice.size:
                # A contribution that is in the arriving sum and at its target already.
                first = twice[0]
                both = target[first] - target[first] % self.nodes + tree[first] % self.nodes
                self._stop(transfers, owner[first], both, "sends {block}, which is counted twice")
            empty = self.at[cell] < 0
            self.at[cell[empty]] = tree[now[empty]]
            self.parent[tree[now[~empty]]] = self.at[cell[~empty]]
            self.count[cell] += count[now]

    def _stop(self, transfers: Transfers, transfer: int, cell: int, text: str) -> NoReturn:
        """End the pass with a fault of a transfer."""
        block = self.block(cell // self.nodes, cell % self.nodes)
        self.found.stop(self.number, transfers, transfer, block, text)

    def _carried(self, transfers: Transfers) -> tuple[IntArray, IntArray]:
        """The sums that the transfers of a round carry: pairs of transfer and key."""
        match transfers.payload:
            case Everything():
                kept = self.count.reshape(-1, self.nodes)[:, transfers.source] > 0
                key, owner = np.nonzero(kept)
                order = np.argsort(owner, kind="stable")
                return owner[order], key[order]
            case Grouped() as payload:
                return self._carried_groups(transfers, payload)
            case _:
                listed = transfers.listed
                owner = np.repeat(np.arange(len(transfers)), np.diff(listed.indptr))
                return self._carried_lists(transfers, owner, np.asarray(listed.ids, np.int64))

    def _carried_groups(self, transfers: Transfers, payload: Grouped) -> tuple[IntArray, IntArray]:
        """The sums of one group for each transfer."""
        group = np.asarray(payload.group).reshape(self.full, -1)[:, self.first : self.last]
        if (group == group[0]).all():
            order = np.argsort(group[0], kind="stable")
            ordered = group[0][order]
            low = np.searchsorted(ordered, payload.wanted, "left")
            many = np.searchsorted(ordered, payload.wanted, "right") - low
            owner = np.repeat(np.arange(len(transfers)), many)
            within = np.arange(len(owner)) - np.repeat(np.cumsum(many) - many, many)
            key = order[np.repeat(low, many) + within]
            kept = self.count[key * self.nodes + transfers.source[owner]] > 0
            return owner[kept], key[kept]
        roots = self._roots().reshape(-1, self.nodes)
        owners, lists = [], []
        for transfer, (node, wanted) in enumerate(
            zip(transfers.source, payload.wanted, strict=True)
        ):
            kept = self.at[np.arange(len(roots)) * self.nodes + node]
            mates = self.groups.members[self.groups.group[node]]
            key, origin = np.nonzero((roots[:, mates] == kept[:, None]) & (wanted == group.T))
            lists.append(origin * self.keys + self.first + key)
            owners.append(np.full(len(key), transfer))
        return self._carried_lists(transfers, np.concatenate(owners), np.concatenate(lists))

    def _roots(self) -> IntArray:
        """The tree that each contribution is in, with all paths of the forest made short."""
        while True:
            above: IntArray = self.parent[self.parent]
            if (above == self.parent).all():
                return above
            self.parent = above

    def _carried_lists(
        self, transfers: Transfers, owner: IntArray, ids: IntArray
    ) -> tuple[IntArray, IntArray]:
        """The sums of which the transfers list exactly all contributions."""
        key, position = ids % self.keys - self.first, ids // self.keys
        mine = (key >= 0) & (key < self.last - self.first)
        owner, key = owner[mine], key[mine]
        origin = self.groups.beside(transfers.source[owner], position[mine])
        cell = key * self.nodes + transfers.source[owner]
        roots = self._roots()
        inside = roots[key * self.nodes + origin] == self.at[cell]
        if not inside.all():
            wrong = np.flatnonzero(~inside)[0]
            contribution, left = key[wrong] * self.nodes + origin[wrong], self.left[cell[wrong]]
            moved = left >= 0 and roots[left] == roots[contribution]
            text = "sends {block} before it holds it"
            if moved:
                text = "sends {block}, whose partial sum it has sent on: that moved, and is no copy"
            self._stop(transfers, owner[wrong], contribution, text)
        pair, start, index, many = np.unique(
            owner * np.int64(self.last - self.first) + key,
            return_index=True, return_inverse=True, return_counts=True,
        )  # fmt: skip
        twice = ranks(index * np.int64(self.nodes) + origin) > 0
        if twice.any():
            wrong = np.flatnonzero(twice)[0]
            self._stop(transfers, owner[wrong], key[wrong] * self.nodes + origin[wrong],
                       "lists {block} twice")  # fmt: skip
        short = np.flatnonzero(many < self.count[cell[start]])
        if short.size:
            first = start[short].min()
            self._stop(transfers, owner[first], key[first] * self.nodes + origin[first],
                       "sends less than its whole partial sum with {block}")  # fmt: skip
        return pair // (self.last - self.first), pair % (self.last - self.first)

    def finish(self) -> None:
        """Note the first complete sum that a node must hold and does not."""
        keys = np.arange(self.first, self.last)
        required = self.schedule.blocks.postcondition(keys)
        complete = self.count.reshape(-1, self.nodes) == self.full
        node: IntArray
        key: IntArray = np.arange(len(keys))
        if required[0] < 0:
            node, key = np.nonzero(~complete.T)
        else:
            target = self.groups.members[:, required]
            group, lacking = np.nonzero(~complete[key, target])
            key, node = key[lacking], target[group, lacking]
            order = np.argsort(node, kind="stable")
            key, node = key[order], node[order]
        if len(node):
            self.found.lacks(node[0], self._lacking(key[0], node[0]))

    def _lacking(self, key: int, node: int) -> int:
        """A contribution of a key that a node does not have."""
        roots = self._roots().reshape(-1, self.nodes)[key]
        mates = self.groups.members[self.groups.group[node]]
        origin = mates[np.flatnonzero(roots[mates] != self.at[key * self.nodes + node])[0]]
        return self.block(key, origin)
