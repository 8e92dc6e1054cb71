"""Simulation of the blocks that every node holds, round by round.

The file writer, the file reader and the exporters use it to list the blocks of transfers whose
payload only says "all that the sender holds" or "all of a set" (see `Grouped`).

In a file, an entry can stand for a *whole sum*: all contributions to one sum that the sender holds
before the round. A whole sum need not be complete.
"""

import numpy as np

from ..collective import Blocks
from ..errors import InputError
from ..topology import BoolArray, IntArray, Topology
from .transfers import NOTHING, Everything, Grouped, KeptSums, Listed, Transfers

__all__ = ["EVERY_ORIGIN", "HeldBlocks", "whole_sum_id"]

#: In a file, in place of an origin: all contributions to this sum that the sender holds.
EVERY_ORIGIN = "*"

#: The most bytes of state, one for each node and block.
MOST_BYTES = 2**31


def whole_sum_id(key: IntArray) -> IntArray:
    """Return the numbers that stand for whole sums in a list of blocks, elementwise.

    While a file is read or written, a number below 0 in a list of block numbers stands for all
    contributions to a sum that the sender holds. A sum is given by its `key`, the block number of
    the contribution of origin 0. The function also turns such a number back into the key.
    """
    return -1 - key


class HeldBlocks:
    """The blocks that every node holds; in a reduction, the contributions to its partial sums.

    A caller passes all rounds, in order, to `execute`, which returns them with their blocks listed.
    Why: the payload of a transfer may say only that it carries everything that the sender holds.

    Attributes
    ----------
    held : ndarray of bool, shape (nodes, blocks)
        True where a node holds a block, before the next round.

    Raises
    ------
    InputError
        If there are too many blocks.

    Examples
    --------
    On a ring, each node sends everything that it holds to the next node, twice. First these are the
    blocks 0, 1 and 2. Then node 0 sends the blocks 0 and 2, node 1 sends 0 and 1, and node 2 sends
    1 and 2.

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> ring = tf.Torus(3)
    >>> state = HeldBlocks(ring, tf.Collective("allgather").blocks(ring, 1))
    >>> right = Transfers(np.arange(3), np.zeros((3, 1), np.int8))
    >>> state.execute(right).payload.ids
    array([0, 1, 2])
    >>> state.execute(right).payload.ids
    array([0, 2, 0, 1, 1, 2])
    """

    def __init__(self, topology: Topology, blocks: Blocks) -> None:
        if topology.nodes * blocks.n_blocks > MOST_BYTES:
            raise InputError(
                f"Blocks to be listed must be at most {MOST_BYTES // topology.nodes}, "
                f"not {blocks.n_blocks}"
            )
        self.topology, self.blocks = topology, blocks
        self.held = np.zeros((topology.nodes, blocks.n_blocks), bool)
        self.held[blocks.initial_copies(np.arange(blocks.n_blocks))] = True
        # If nodes keep their sums: the contributions to the word that arrived last, by node,
        # in-port and chunk, since the node may forward this word.
        self._arrived: dict[tuple[int, int, int], IntArray] = {}

    def execute(self, transfers: Transfers, whole: BoolArray | None = None) -> Transfers:
        """Move the blocks of one round, so that `held` is right for the next round.

        Parameters
        ----------
        whole : ndarray of bool, shape (transfers,), optional
            True for a transfer that carries all that its sender holds, although its payload is
            `Listed`.

        Returns
        -------
        Transfers
            The same transfers with all blocks listed.
        """
        if not len(transfers):
            return Transfers(transfers.source, transfers.hops, NOTHING)
        listed = self._list_blocks(transfers, whole)
        sizes = np.diff(listed.indptr)
        if isinstance(transfers.payload, KeptSums):
            self._store_arrivals(transfers, transfers.payload, listed)
        elif self.blocks.collective.reducing:
            # Partial sums leave their senders; complete sums are copied.
            node, ids = np.repeat(transfers.source, sizes), listed.ids
            complete = self._find_complete_sums()[node, ids % self._sum_count]
            self.held[node[~complete], ids[~complete]] = False
        self.held[np.repeat(transfers.walk(self.topology)[:, -1], sizes), listed.ids] = True
        return Transfers(transfers.source, transfers.hops, listed)

    def with_whole_sums(self, transfers: Transfers) -> Transfers | None:
        """Return the transfers of a round with whole sums in place of lists of contributions.

        A whole sum is one entry of the list of a transfer, and stands for all contributions to a
        sum that the sender holds; it is the `whole_sum_id` of the sum. The result is None if some
        transfer carries only a part of the contributions that its sender holds, or if the payload
        does not say which sums are carried.
        """
        if isinstance(transfers.payload, Grouped):
            payload = transfers.payload
            if (payload.group != np.arange(self.blocks.n_blocks) % self._sum_count).any():
                return None  # the groups are not the chunks
            listed = Listed.single(whole_sum_id(np.asarray(payload.wanted)))
            return Transfers(transfers.source, transfers.hops, listed)
        if not isinstance(transfers.payload, Listed):
            return None
        ids, indptr = transfers.payload.ids, transfers.payload.indptr
        owner = np.repeat(np.arange(len(transfers)), np.diff(indptr))
        cells, carried = np.unique(
            owner * self._sum_count + ids % self._sum_count, return_counts=True
        )
        of, key = np.divmod(cells, self._sum_count)
        held = self._contributions[transfers.source[of], :, key].sum(axis=1)
        if (held != carried).any():
            return None
        cuts = np.searchsorted(of, np.arange(len(transfers) + 1))
        return Transfers(transfers.source, transfers.hops, Listed(cuts, whole_sum_id(key)))

    @property
    def _sum_count(self) -> int:
        """Number of different sums of a reduction.

        Block numbers of contributions to the same sum are equal modulo this number.
        """
        return self.blocks.blocks_per_origin

    @property
    def _contributions(self) -> BoolArray:
        """True where a node holds a contribution to a sum, shape (nodes, origins, sums)."""
        return self.held.reshape(self.topology.nodes, self.blocks.group_size, self._sum_count)

    def _find_complete_sums(self) -> BoolArray:
        """Return True where a node holds all contributions to a sum, shape (nodes, sums)."""
        if self.blocks.groups.has_several_sizes:
            counts: IntArray = self._contributions.sum(axis=1)
            return np.equal(counts, self.blocks.contribution_counts)
        return np.asarray(self._contributions.all(axis=1))

    def _list_blocks(self, transfers: Transfers, whole: BoolArray | None) -> Listed:
        """Return the blocks that each transfer of a round carries, as a `Listed` payload.

        The payload of `transfers` may be of any class; `whole` is as in `execute`.
        """
        payload, source = transfers.payload, transfers.source
        lists: list[IntArray]
        match payload:
            case Everything():
                lists = [np.flatnonzero(self.held[node]) for node in source]
            case KeptSums():
                each = zip(source.tolist(), payload.passed.tolist(), payload.chunk.tolist(),
                           strict=True)  # fmt: skip
                lists = [self._word_contributions(*entry) for entry in each]
            case Grouped():
                lists = [
                    np.flatnonzero(self.held[node] & (payload.group == wanted))
                    for node, wanted in zip(source, payload.wanted, strict=True)
                ]
            case Listed():
                listed = self._expand_sums(source, payload)
                if whole is None:
                    return listed
                lists = [
                    np.flatnonzero(self.held[node]) if every else ids
                    for node, every, ids in zip(source, whole, listed.lists, strict=True)
                ]
        indptr = np.cumsum([0, *map(len, lists)])
        return Listed(indptr, np.concatenate([np.empty(0, np.int64), *lists]))

    def _expand_sums(self, source: IntArray, listed: Listed) -> Listed:
        """Return the lists of blocks in `listed`, with contributions in place of whole sums.

        `source` has the sender of each list. Each whole sum is replaced by all contributions to it
        that the sender holds.
        """
        ids, sizes = np.asarray(listed.ids, np.int64), np.diff(listed.indptr)
        if not (ids < 0).any():
            return Listed(listed.indptr, ids)
        owner, sums = np.repeat(np.arange(len(source)), sizes), np.flatnonzero(ids < 0)
        key = whole_sum_id(ids[sums])
        entry, origin = np.nonzero(self._contributions[source[owner[sums]], :, key])
        place = np.concatenate([np.flatnonzero(ids >= 0), sums[entry]])
        found = np.concatenate([ids[ids >= 0], origin * self._sum_count + key[entry]])
        order = np.argsort(place, kind="stable")
        counts = np.bincount(owner[place], minlength=len(source))
        return Listed(np.cumsum([0, *counts]), found[order])

    def _word_contributions(self, node: int, port: int, chunk: int) -> IntArray:
        """Return the block numbers of the contributions to a word that `node` sends.

        The word belongs to `chunk`. It is the last word that arrived at in-port `port`, or for port
        -1 the node's own sum.
        """
        if port >= 0:
            return self._arrived.get((node, port, chunk), np.empty(0, np.int64))
        held = np.flatnonzero(self.held[node])
        mine: IntArray = held[self.blocks.chunk(held) == chunk]
        return mine

    def _store_arrivals(self, transfers: Transfers, payload: KeptSums, listed: Listed) -> None:
        """Note the contributions to each word that arrives; a node may forward it later.

        In this schedule nodes keep their sums. `transfers` are those of the round, with the payload
        `payload`, and `listed` has the contributions to the word of each transfer. The
        contributions are stored by node, in-port and chunk.
        """
        target = transfers.walk(self.topology)[:, -1]
        last = transfers.hops[np.arange(len(transfers)), transfers.lengths - 1]
        ports = self.topology.opposite[last]
        keys = zip(target.tolist(), ports.tolist(), payload.chunk.tolist(), strict=True)
        self._arrived.update(zip(keys, listed.lists, strict=True))
