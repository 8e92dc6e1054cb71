"""Common sources: what out-ports, operators and memories of all modes select from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..topology import IntArray
from .values import IDLE, Loop

__all__ = ["CommonSources"]


@dataclass(frozen=True)
class CommonSources:
    """The sources of all modes.

    Parameters
    ----------
    loops : sequence of Loop
    injection_numbers : list of (list of int)
        Of each loop, the common number of each of its injection ports.
    readers : list of int
        Of each common injection port, how many readers it has.
    """

    loops: Sequence[Loop]
    injection_numbers: list[list[int]]
    readers: list[int]

    @property
    def delayed(self) -> tuple[int, ...]:
        """The in-ports with a second register."""
        return tuple(sorted({port for loop in self.loops for port in loop.delayed}))

    @property
    def results(self) -> bool:
        """Whether operators stand behind in-ports."""
        return any(loop.results for loop in self.loops)

    @property
    def delayed_results(self) -> tuple[int, ...]:
        """The in-ports whose results have a second register."""
        return tuple(sorted({port for loop in self.loops for port in loop.delayed_results}))

    @property
    def first_injection(self) -> int:
        """The number of the first injection port."""
        ports = self.loops[0].ports
        results = ports + len(self.delayed_results) if self.results else 0
        return ports + len(self.delayed) + results

    @property
    def injections(self) -> tuple[tuple[int, ...], ...]:
        """The readers of each injection port: as many as any mode needs."""
        ends = np.cumsum([0, *self.readers]).tolist()
        return tuple(tuple(range(a, b)) for a, b in pairwise(ends))

    def numbers(self, mode: int) -> IntArray:
        """The common number of each source of a loop, and, from the end, of what is none."""
        loop = self.loops[mode]
        ports = loop.ports
        numbers = [*range(ports), *(ports + self.delayed.index(port) for port in loop.delayed)]
        if loop.results:
            first = ports + len(self.delayed)
            numbers += range(first, first + ports)
            later = self.delayed_results
            numbers += [first + ports + later.index(port) for port in loop.delayed_results]
        injections = (self.first_injection + number for number in self.injection_numbers[mode])
        identity = self.first_injection + len(self.injections)
        return np.array([*numbers, *injections, identity, IDLE], np.int16)
