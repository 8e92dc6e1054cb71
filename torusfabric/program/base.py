"""What every switch program knows.

A *switch program* is a schedule seen from the nodes: which in-port feeds which out-port in each
round, what a node sends, and where it stores what arrives. It is a plain value; the hardware only
builds what it says.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..collective import Blocks, Layout
from ..errors import InputError
from ..schedule import Schedule

__all__ = ["IDLE", "OWN", "CycleCost", "SwitchProgram", "classify"]

#: Setting of an out-port whose value does not matter in a round.
IDLE = -1

#: Bank number of the memory that holds what a node itself sends, in `SwitchProgram.locate`.
OWN = -1


@dataclass(frozen=True)
class CycleCost:
    """What the cycles of a run are made of: the papers' cost formula with the hardware's constants.

    Parameters
    ----------
    rounds : int
        Rounds, or steps.
    hops : int
        The sum over the rounds of their longest path; 0 where the formula has no such term.
    flits : int
        The sum over the rounds of their longest message.
    alpha, hop_cycles, flit_cycles : int
        Cycles to start a round, for a hop, and for a flit.
    constant_cycles : int
        Cycles once a run.
    """

    rounds: int
    hops: int
    flits: int
    alpha: int = 0
    hop_cycles: int = 0
    flit_cycles: int = 1
    constant_cycles: int = 0

    @property
    def cycles(self):
        """The sum."""
        return (
            self.alpha * self.rounds
            + self.hop_cycles * self.hops
            + self.flit_cycles * self.flits
            + self.constant_cycles
        )

    def __str__(self):
        terms = [
            ("alpha", "rounds", self.alpha, self.rounds),
            ("delta", "hops", self.hop_cycles, self.hops),
            ("tau", "flits", self.flit_cycles, self.flits),
        ]
        terms = [term for term in terms if term[2]]
        names = [f"{name} {of}" for name, of, _, _ in terms]
        values = [f"{value} * {count}" for _, _, value, count in terms]
        if self.constant_cycles:
            names.append("constant")
            values.append(str(self.constant_cycles))
        return f"{' + '.join(names)} = {' + '.join(values)} = {self.cycles} cycles"


@dataclass(frozen=True, eq=False, kw_only=True)
class SwitchProgram(ABC):
    """The settings of all routers, and the memory layout of all endpoints.

    Parameters
    ----------
    schedule : Schedule
        What the program carries out.
    select : ndarray of int16, shape (settings, router classes, ports)
        What feeds each out-port: an in-port ``q``, a local lane ``ports + g``, or `IDLE`.
    node_class : ndarray of int32, shape (nodes,)
        The router class of each node.
    """

    schedule: Schedule
    select: np.ndarray
    node_class: np.ndarray

    @property
    def topology(self):
        """The topology."""
        return self.schedule.topology

    @property
    def ports(self):
        """Number of ports of a node."""
        return self.topology.ports

    @property
    def blocks(self) -> Blocks:
        """The numbered blocks."""
        return self.schedule.blocks

    @property
    def lanes(self):
        """Number of local inputs of each router class, an int array of shape (classes,)."""
        lane = np.where(self.select >= self.ports, self.select - self.ports + 1, 0)
        return lane.max(axis=(0, 2), initial=0)

    @property
    def class_sizes(self):
        """Number of nodes of each router class."""
        return np.bincount(self.node_class, minlength=self.select.shape[1])

    def block_flits(self, flits):
        """Flits of one block, given the flits of a message.

        Raises
        ------
        InputError
            If a message of so many flits cannot be cut into equal chunks.
        """
        chunks = self.schedule.chunks
        if flits < 1 or flits % chunks:
            values = ", ".join(str(chunks * k) for k in (1, 2, 3))
            raise InputError(
                f"Flits must be a positive multiple of {chunks} ({values}, ..), because "
                f"{self.schedule.algorithm} cuts a message into {chunks} chunks, not {flits}"
                if chunks > 1
                else f"Flits must be at least 1, not {flits}"
            )
        return flits // chunks

    @property
    def layout(self) -> Layout:
        """The layout of a node's memories, as the host addresses them."""
        return Layout(self.blocks)

    @abstractmethod
    def cycles(self, flits):
        """Clock edges from the start pulse to done, for messages of so many flits."""

    def cycle_cost(self, flits):
        """What `cycles` is made of: so long a step for each flit, and what is left over once."""
        count = self.schedule.round_count * self.block_flits(flits)
        rest = self.cycles(flits) - count
        return CycleCost(self.schedule.round_count, 0, count, constant_cycles=rest)

    @abstractmethod
    def locate(self, nodes, blocks):
        """Where nodes store blocks, elementwise.

        Returns
        -------
        bank, slot : ndarray of int
            The bank (an in-port, or `OWN`) and the place in it, counted in blocks; slot -1 where a
            block never arrives.
        """

    @abstractmethod
    def execute(self, messages):
        """Carry out the program on data, as the hardware does.

        Parameters
        ----------
        messages : ndarray, shape (nodes, send words)
            What each node sends, as the host writes it.

        Returns
        -------
        ndarray, shape (nodes, receive words)
            What the host reads at each node; 0 where nothing is delivered.
        """


def classify(rows):
    """Number equal rows, in the order of their first appearance.

    Parameters
    ----------
    rows : ndarray of int, shape (nodes, n)

    Returns
    -------
    number : ndarray of int32, shape (nodes,)
        The class of each row.
    first : ndarray of int, shape (classes,)
        A row of each class.
    """
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse.ravel()].astype(np.int32), first[order]
