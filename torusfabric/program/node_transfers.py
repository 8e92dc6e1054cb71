"""What a node sends and receives of a table, by its offset from the origins of blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from ..schedule import Table

__all__ = ["Arrival", "Block", "Departure", "Forwarding", "NodeTransfers", "SentBlock"]

#: A block by offsets from its origin: (offset of the node, offset of the destination, chunk).
Block: TypeAlias = tuple[int, int, int]

#: A block of a node's own: (offset of the destination, chunk).
SentBlock: TypeAlias = tuple[int, int]


class Arrival(NamedTuple):
    """By which in-port, and in which step, a block arrives."""

    port: int
    step: int


class Departure(NamedTuple):
    """In which step, and by which out-port, a block leaves."""

    step: int
    port: int


class Forwarding(NamedTuple):
    """A block of another node that is sent on, and how it arrived."""

    step: int
    port: int
    arrival: Arrival


class NodeTransfers:
    """What a node sends and receives, by its offset from the origins of the blocks.

    Parameters
    ----------
    table : Table
        Not a reduction.

    Attributes
    ----------
    arrivals : dict of Block to (list of Arrival)
    forwarded : list of (Departure, Block)
    sent : dict of SentBlock to (list of Departure)
    """

    def __init__(self, table: Table) -> None:
        topology = table.topology
        steps, ports = np.nonzero(table.offset >= 0)
        offset, chunk = table.offset[steps, ports], table.chunk[steps, ports]
        target = np.zeros_like(offset)
        if table.destination is not None:
            target = table.destination[steps, ports]
        before = topology.subtract(offset, topology.generators[ports])
        in_port = topology.opposite[ports]
        self.arrivals: dict[Block, list[Arrival]] = defaultdict(list)
        self.forwarded: list[tuple[Departure, Block]] = []
        self.sent: dict[SentBlock, list[Departure]] = defaultdict(list)
        columns = (steps, ports, offset, before, target, chunk, in_port)
        for step, port, there, here, goal, part, by in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            if here:
                self.forwarded.append((Departure(step, port), (here, goal, part)))
            else:
                self.sent[goal, part].append(Departure(step, port))
            if there:
                self.arrivals[there, goal, part].append(Arrival(by, step))

    def forwardings(self, *, latest: bool) -> Iterator[Forwarding]:
        """What is forwarded: of several arrivals the latest in time, or the first."""
        for (step, port), block in self.forwarded:
            before = [arrival for arrival in self.arrivals[block] if arrival.step < step]
            yield Forwarding(step, port, before[-1] if latest else before[0])
