"""Common numbers of injection ports: those of different modes that feed the same out-ports are one.

Every input of an out-port costs look-up tables, so an injection port of a mode takes the number of
one that feeds the same out-ports and operators in other modes, and that reads the same memories, as
far as there is one. Modes with many injection ports come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..topology import BoolArray, IntArray
from .values import Loop

__all__ = ["common_injections"]

#: What it is worth to share an input of an out-port, or a memory; and what each reader costs that
#: only one of two injection ports has, and an injection port more.
INPUT, MEMORY, READER, PORT = 4.0, 1.0, -0.25, -2.0


@dataclass
class _Injection:
    """What an injection port does.

    Parameters
    ----------
    feeds : ndarray of bool
        Which out-ports, and which operators.
    reads : set of int
        Memories, by their common numbers.
    readers : int
    """

    feeds: BoolArray
    reads: set[int]
    readers: int

    def worth(self, other: _Injection) -> float:
        """What it is worth that both are one."""
        return (
            INPUT * int((self.feeds & other.feeds).sum())
            + MEMORY * len(self.reads & other.reads)
            + READER * abs(self.readers - other.readers)
        )

    def join(self, other: _Injection) -> None:
        """Do what another does, in its mode."""
        self.feeds = self.feeds | other.feeds
        self.reads |= other.reads
        self.readers = max(self.readers, other.readers)


def common_injections(
    loops: Sequence[Loop], memories: Sequence[IntArray]
) -> tuple[list[list[int]], list[int]]:
    """The common number of each injection port of each loop, and the readers of each common one.

    Parameters
    ----------
    loops : sequence of Loop
    memories : sequence of ndarray of int
        Of each loop, the common number of each of its memories.
    """
    numbers: list[list[int]] = [[] for _ in loops]
    common: list[_Injection] = []
    for mode in sorted(range(len(loops)), key=lambda k: -len(loops[k].injections)):
        mine = _injections(loops[mode], memories[mode])
        for one, number in zip(mine, _assigned(mine, common), strict=True):
            if number < len(common):
                common[number].join(one)
                numbers[mode].append(number)
            else:
                numbers[mode].append(len(common))
                common.append(one)
    return numbers, [one.readers for one in common]


def _assigned(mine: Sequence[_Injection], common: Sequence[_Injection]) -> list[int]:
    """The common number of each injection port of a mode; new ones begin after those there are."""
    if not common:
        return list(range(len(mine)))
    # Here, since only several modes need it and its import takes longer than compiling a small one.
    from scipy.optimize import linear_sum_assignment

    worth = np.full((len(mine), len(common) + len(mine)), PORT)
    for row, one in zip(worth, mine, strict=True):
        row[: len(common)] = [one.worth(other) for other in common]
    _, chosen = linear_sum_assignment(worth, maximize=True)
    return [int(number) for number in chosen]


def _injections(loop: Loop, memories: IntArray) -> list[_Injection]:
    """What each injection port of a loop does."""
    found = []
    for number, readers in enumerate(loop.injections):
        source = loop.first_injection + number
        feeds = [(loop.select == source).any(axis=(0, 1))]
        if loop.operand is not None:
            feeds.append((loop.operand == source).any(axis=(0, 1)))
        else:
            feeds.append(np.zeros(loop.ports, bool))
        read = {int(memory) for reader in readers for memory in loop.reads[reader].memory}
        known = {int(memories[memory]) for memory in read if memory >= 0}
        found.append(_Injection(np.concatenate(feeds), known, len(readers)))
    return found
