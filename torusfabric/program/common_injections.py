"""Common numbers of injection ports: those of different forms that feed the same out-ports are one.

Every input of an out-port costs look-up tables, so an injection port of a form takes the number of
one that feeds the same out-ports and operators in other forms, and that reads the same memories, as
far as there is one. Modes with many injection ports come first. Both have to be there at the same
nodes: otherwise nodes that differ in one form only, as those of a tree do, would have endpoints of
as many shapes, while a multiplexer in the router instead of the endpoint costs the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..topology import BoolArray, IntArray
from .fields import IDLE, Action, Loop

__all__ = ["common_injections"]

#: What it is worth to share an input of an out-port, or a memory; and what each reader costs that
#: only one of two injection ports has, a choice between words of different memories, and an
#: injection port more.
INPUT, MEMORY, READER, CHOICE, PORT = 4.0, 1.0, -0.25, -3.0, -2.0

#: What it is worth to make one what may not be.
NEVER = -np.inf


@dataclass
class _Injection:
    """The out-ports and operators that an injection port feeds, its memories, its readers, and the
    variants of nodes that have it.
    """

    feeds: BoolArray
    reads: set[int]
    readers: int
    at: BoolArray

    def worth(self, other: _Injection) -> float:
        """What it is worth that both are one."""
        if (self.at != other.at).any():
            return NEVER
        return (
            INPUT * int((self.feeds & other.feeds).sum())
            + MEMORY * len(self.reads & other.reads)
            + CHOICE * self.reads.isdisjoint(other.reads)
            + READER * abs(self.readers - other.readers)
        )

    def join(self, other: _Injection) -> None:
        """Do what another does, in its form."""
        self.feeds = self.feeds | other.feeds
        self.reads |= other.reads
        self.readers = max(self.readers, other.readers)


def common_injections(
    loops: Sequence[Loop], memories: Sequence[IntArray], variants: Sequence[IntArray]
) -> tuple[list[list[int]], list[int]]:
    """The common number of each injection port of each loop, and the readers of each common one.

    Parameters
    ----------
    memories : sequence of ndarray of int
        Of each loop, the common number of each of its memories.
    variants : sequence of ndarray of int
        Of each loop, its variant for each of the common ones among which endpoints may differ.
    """
    numbers: list[list[int]] = [[] for _ in loops]
    common: list[_Injection] = []
    for form in sorted(range(len(loops)), key=lambda k: -len(loops[k].sources.injections)):
        mine = _injections(loops[form], memories[form], variants[form])
        for one, number in zip(mine, _assigned(mine, common), strict=True):
            if number < len(common):
                common[number].join(one)
                numbers[form].append(number)
            else:
                numbers[form].append(len(common))
                common.append(one)
    return numbers, [one.readers for one in common]


def _assigned(mine: Sequence[_Injection], common: Sequence[_Injection]) -> list[int]:
    """The common number of each injection port of a form; new ones begin after those there are."""
    if not common:
        return list(range(len(mine)))
    # Here, since only several forms need it and its import takes longer than compiling a small one.
    from scipy.optimize import linear_sum_assignment

    worth = np.full((len(mine), len(common) + len(mine)), PORT)
    for row, one in zip(worth, mine, strict=True):
        row[: len(common)] = [one.worth(other) for other in common]
    _, chosen = linear_sum_assignment(worth, maximize=True)
    return [int(number) for number in chosen]


def _injections(loop: Loop, memories: IntArray, variants: IntArray) -> list[_Injection]:
    """What each injection port of a loop does."""
    found = []
    for number, readers in enumerate(loop.sources.injections):
        source = loop.sources.first_injection + number
        feeds = [
            (loop.values(action, port) == source).any()
            for action in (Action.SELECT, Action.OPERAND)
            for port in range(loop.ports)
        ]
        values = np.array([loop.values(Action.MEMORY, reader) for reader in readers])
        read = np.unique(values)
        at = (values != IDLE).any(axis=(0, 1))[variants]
        known = set(memories[read[read >= 0]].tolist())
        found.append(_Injection(np.array(feeds), known, len(readers), at))
    return found
