"""Quotient schedules: nodes of a torus have labels, and all nodes with the same label behave alike.

This is a fourth form of a schedule, beside patterns, tables and rounds. Labels are a homomorphism
from the torus onto the integers modulo m. The size of such a schedule depends on m alone, not on
the number of nodes, and contention can be checked on the quotient.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from typing_extensions import override

from ..topology import IntArray, Torus
from .base import Schedule
from .transfers import ALL, Grouped, Payload, Transfers

__all__ = ["Quotient", "QuotientRound", "Send"]


@dataclass(frozen=True, eq=False)
class Send:
    """The messages that some nodes send in a round, all along the same relative path.

    Every node has a *label*, a number; nodes with the same label behave alike, see `Quotient`.

    Parameters
    ----------
    labels : ndarray of int, shape (senders,)
        The labels of the senders, all different.
    runs : tuple of (int, int)
        The path as runs of hops in one direction: pairs (out-port, number of hops). With ``((0, 3),
        (2, 1))`` it has three hops by port 0, then one by port 2.
    group : ndarray of int, shape (senders,), or None
        For each entry of `labels`, the number of the set of blocks that these senders send (see
        `QuotientRound`). None if they send all blocks that they hold.
    """

    labels: IntArray
    runs: tuple[tuple[int, int], ...]
    group: IntArray | None = None

    @property
    def hops(self) -> IntArray:
        """The out-port taken at each node of the path, an int8 array."""
        ports, counts = zip(*self.runs, strict=True)
        return np.repeat(np.array(ports, np.int8), counts)

    def displacement(self, topology: Torus) -> IntArray:
        """Return the signed change of coordinates from sender to receiver, shape (axes,)."""
        step = np.zeros(len(topology.sides), int)
        for port, count in self.runs:
            step[port // 2] += count if port % 2 == 0 else -count
        return step


@dataclass(frozen=True, eq=False)
class QuotientRound:
    """One round of a quotient schedule.

    Parameters
    ----------
    sends : tuple of Send
        The messages of all nodes.
    grouping : ndarray of int, shape (modulus,), or None
        The number of the set to which a block belongs, by the label of its origin. A `Send` names
        these sets in its field `group`. None if no `Send` does.
    """

    sends: tuple[Send, ...]
    grouping: IntArray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Quotient(Schedule):
    """A schedule on a torus in which all nodes with the same label behave alike.

    The label of a node is the sum over all axes of weight times coordinate, modulo `modulus`. On
    each axis, weight times side must be a multiple of `modulus`, so that going once round the axis
    does not change the label. With weights (1, 2) and modulus 6 on 6x6, the node in row r and
    column c has the label r + 2 c modulo 6.

    Parameters
    ----------
    weights : tuple of int
        The weight of each axis.
    modulus : int
        The number m of labels.
    quotient_rounds : tuple of QuotientRound
        The rounds, by labels.
    """

    form: ClassVar[str] = "quotient"

    weights: tuple[int, ...]
    modulus: int
    quotient_rounds: tuple[QuotientRound, ...]

    topology: Torus

    @property
    @override
    def steps(self) -> int:
        return len(self.quotient_rounds)

    @cached_property
    def labels(self) -> IntArray:
        """The label of every node, an int16 or int32 array."""
        kind = np.int16 if self.modulus < 2**14 else np.int32
        total = np.zeros(self.topology.sides, kind)
        for axis, (side, weight) in enumerate(zip(self.topology.sides, self.weights, strict=True)):
            along = (np.arange(side) * weight % self.modulus).astype(kind)
            total += along.reshape([-1 if a == axis else 1 for a in range(total.ndim)])
            total %= kind(self.modulus)
        return total.ravel()

    @cached_property
    def nodes_by_label(self) -> IntArray:
        """The nodes by label: row l has the nodes with label l, in ascending order.

        The array has the shape (modulus, nodes with a label).
        """
        order = np.argsort(self.labels, kind="stable").astype(np.int32)
        return order.reshape(self.modulus, -1)

    def port_weight(self, port: int) -> int:
        """Return the number by which the label of the neighbour at a port exceeds that of the node.

        The difference is the same at all nodes, modulo `modulus`.
        """
        return self.weights[port // 2] * (1 if port % 2 == 0 else -1)

    def port_feeds(self) -> IntArray:
        """Return the input that feeds each out-port of the nodes with each label, in each round.

        Returns
        -------
        ndarray of int8, shape (rounds, modulus, ports)
            The number of an in-port. The number of ports stands for the node's own message, and -1
            for an idle out-port.
        """
        topology = self.topology
        feeds = np.full((len(self.quotient_rounds), self.modulus, topology.ports), -1, np.int8)
        for feed, step in zip(feeds, self.quotient_rounds, strict=True):
            for send in step.sends:
                here, came = send.labels, topology.ports
                for port in send.hops:
                    feed[here, port] = came
                    here = (here + self.port_weight(port)) % self.modulus
                    came = topology.opposite[port]
        return feeds

    @override
    def rounds(self) -> Iterator[Transfers]:
        """Yield the transfers of each round.

        A round is listed only when the iterator reaches it, because all rounds together may be
        large.
        """
        return (self.expand_round(step) for step in self.quotient_rounds)

    def expand_round(self, step: QuotientRound) -> Transfers:
        """Return the transfers of one round, for all nodes.

        Parameters
        ----------
        step : QuotientRound
            The round by labels, one of `quotient_rounds`.
        """
        if not step.sends:
            return Transfers(np.empty(0, np.int64), np.empty((0, 1), np.int8))
        longest = max(len(send.hops) for send in step.sends)
        sources, hops, wanted = [], [], []
        for send in step.sends:
            index = np.full(self.modulus, -1)
            index[send.labels] = np.arange(len(send.labels))
            source = np.flatnonzero(index[self.labels] >= 0)
            path = np.full(longest, -1, np.int8)
            path[: len(send.hops)] = send.hops
            sources.append(source)
            hops.append(np.broadcast_to(path, (len(source), longest)))
            if send.group is not None:
                wanted.append(send.group[index[self.labels[source]]])
        payload: Payload = ALL
        if step.grouping is not None:
            group = np.repeat(np.asarray(step.grouping)[self.labels], self.chunks)
            payload = Grouped(group, np.concatenate(wanted))
        return Transfers(np.concatenate(sources), np.concatenate(hops), payload)
