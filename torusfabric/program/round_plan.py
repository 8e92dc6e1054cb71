"""What nodes do in rounds, counted in blocks: what they send, store and pass on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..topology import IntArray
from .fields import NEUTRAL
from .send_order import SEND, BlockRun, Location

__all__ = ["NOTHING", "NodeRounds", "Readers", "Receipt", "RoundPlan", "runs_of"]

#: Of each reader of an injection port, the runs that it reads in a round.
Readers: TypeAlias = tuple[tuple[BlockRun, ...], ...]


class Receipt(NamedTuple):
    """What is stored of what arrives at an in-port: ``length`` blocks over a path of ``hops``."""

    hops: int
    length: int


#: Nothing arrives, or nothing new.
NOTHING = Receipt(0, 0)


@dataclass(frozen=True)
class NodeRounds:
    """What a node does; equal for nodes of a variant.

    Parameters
    ----------
    select : bytes
        The settings of its crossbar.
    send : tuple of tuple of Readers
        ``send[round][injection]`` lists what is read; empty where the injection port is idle.
    receive : tuple of (tuple of Receipt)
        ``receive[round][port]`` is what is stored of what arrives at an in-port.
    depth : tuple of int
        Blocks that each in-port's memory holds, followed by those of the send memory.
    """

    select: bytes
    send: tuple[tuple[Readers, ...], ...]
    receive: tuple[tuple[Receipt, ...], ...]
    depth: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RoundPlan:
    """What all nodes do.

    Parameters
    ----------
    nodes : list of NodeRounds
    select : ndarray of int16, shape (rounds, nodes, ports)
        What feeds each out-port: an in-port, or, numbered after those, an injection port.
    hops : ndarray of int, shape (rounds,)
        The longest path of each round.
    blocks : ndarray of int, shape (rounds,)
        The longest message of each round.
    memory, slot : ndarray of int, shape (nodes, receive blocks)
        Where each node keeps each block that the host may ask for, in the host's order; the slot is
        -1 for none.
    """

    nodes: list[NodeRounds]
    select: IntArray
    hops: IntArray
    blocks: IntArray
    memory: IntArray
    slot: IntArray

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return int(self.select.shape[2])

    def memory_number(self, memory: int) -> int:
        """The number in the program of a memory of a run: the send memory comes after others."""
        return self.ports if memory == SEND else memory


def runs_of(locations: Iterable[Location]) -> tuple[BlockRun, ...]:
    """Join locations that follow each other.

    Examples
    --------
    >>> runs_of([Location(0, 3), Location(0, 4), Location(1, 5)])
    (BlockRun(memory=0, slot=3, length=2), BlockRun(memory=1, slot=5, length=1))
    """
    runs: list[BlockRun] = []
    for memory, slot in locations:
        if runs:
            last = runs[-1]
            follows = memory == NEUTRAL or last.slot + last.length == slot
            if last.memory == memory and follows:
                runs[-1] = last._replace(length=last.length + 1)
                continue
        runs.append(BlockRun(memory, slot, 1))
    return tuple(runs)
