"""Partial sums that are copied: what of them nodes keep, round by round.

Of each chunk a node has one sum, at first its own contribution, to which it adds all that arrives.
What it sends is a copy of that, or, as it came, what arrived last by a link.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import InputError
from ...schedule import KeptSums
from ...schedule.foreign.buffers import Buffers, Value
from ...topology import IntArray, Topology

__all__ = ["Copies"]


class Copies:
    """Follows the sums of all nodes; contributions are ranks, as bits."""

    def __init__(self, buffers: Buffers, topology: Topology, nodes: IntArray) -> None:
        self._buffers, self._topology = buffers, topology
        self._rank_of = {int(node): rank for rank, node in enumerate(nodes)}
        self._sums: dict[tuple[int, int], int] = {}
        self._came: dict[tuple[int, int, int], int] = {}

    def payload(self, paths: Mapping[tuple[int, tuple[int, ...]], Sequence[Value]]) -> KeptSums:
        """What goes along the paths of the next round, each from a node by some ports.

        Raises
        ------
        InputError
            If it is no such copy, or a sum that arrives has a contribution that is there already.
        """
        passed, arrivals = [], []
        for (source, path), values in paths.items():
            if len(values) > 1 or len(path) > 1:
                raise InputError("Partial sums that are copied must go one by one, a hop each")
            ((key, ranks),) = values
            passed.append(self._origin(source, key, ranks))
            there = int(self._topology.neighbours[source, path[0]])
            arrivals.append((there, int(self._topology.opposite[path[0]]), key, ranks))
        for node, port, key, ranks in arrivals:
            before = self._sum(node, key)
            if before & ranks:
                raise InputError(
                    f"Gpu {self._rank_of[node]} must add each contribution once, and keep its sum "
                    f"of {self._buffers.name(key)}, where partial sums are copied"
                )
            self._came[node, port, key] = ranks
            self._sums[node, key] = before | ranks
        keys = np.array([key for ((key, _),) in paths.values()], np.int64)
        _, _, chunk = self._buffers.split(keys)
        return KeptSums(chunk, np.array(passed, np.int64))

    def _sum(self, node: int, key: int) -> int:
        """What is in the sum of a node."""
        return self._sums.get((node, key), 1 << self._rank_of[node])

    def _origin(self, node: int, key: int, ranks: int) -> int:
        """The in-port by which a word came that leaves, or -1 of the sum of the node."""
        if ranks == self._sum(node, key):
            return -1
        for port in range(self._topology.ports):
            if self._came.get((node, port, key)) == ranks:
                return port
        raise InputError(
            f"Gpu {self._rank_of[node]} must send its sum of {self._buffers.name(key)}, or what "
            "came last by a link, where partial sums are copied"
        )
