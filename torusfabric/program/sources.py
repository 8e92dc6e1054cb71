"""What out-ports, operators and memories of a node select from."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..topology import IntArray

__all__ = ["Source", "Sources", "Stage"]


class Stage(enum.IntEnum):
    """Where a node finds a word, in the order in which sources are numbered."""

    #: An in-port, and the register behind it.
    PORT = 0
    LATER = 1
    #: The operator behind an in-port, and the register behind that.
    RESULT = 2
    LATER_RESULT = 3
    #: What that operator makes, in the cycle before it is in its register.
    MADE = 4
    INJECTION = 5
    #: The word that changes nothing.
    IDENTITY = 6


#: A source: the stage, and the in-port or injection port there, if not by its number by its name.
Source: TypeAlias = tuple[Stage, Any]


@dataclass(frozen=True)
class Sources:
    """What out-ports, operators and memories of a node select from, by number.

    In-ports come first, then the registers behind those of `delayed`; where operators stand behind
    in-ports, their results, the registers behind those of `delayed_results`, and what operators
    make; then injection ports, and at last the word that changes nothing.

    Parameters
    ----------
    ports : int
        Of a node.
    delayed : tuple of int
        The in-ports with a second register.
    results : bool
        Whether every in-port has an operator behind it.
    delayed_results : tuple of int
        The in-ports whose results have a second register.
    injections : tuple of (tuple of int)
        The readers whose words are combined for each injection port; mostly one.
    latency : int
        Cycles that the hardware of operators takes by itself.
    injection_delay : int
        Cycles by which all words leave later for operators in front of injection ports.
    made : bool
        Whether out-ports take what operators make before it is in their registers, too: the
        register of the out-port is that of the result then, and a sum leaves a cycle earlier.

    Examples
    --------
    >>> sources = Sources(4, delayed=(0, 2), injections=((0,), (1,)))
    >>> sources.first_result, sources.first_injection, sources.identity
    (6, 6, 8)
    """

    ports: int
    delayed: tuple[int, ...] = ()
    results: bool = False
    delayed_results: tuple[int, ...] = ()
    injections: tuple[tuple[int, ...], ...] = ()
    latency: int = 0
    injection_delay: int = 0
    made: bool = False

    @property
    def first_result(self) -> int:
        """The number of the result of the first in-port."""
        return self.ports + len(self.delayed)

    @property
    def first_injection(self) -> int:
        """The number of the first injection port."""
        return self.first_made + (self.ports if self.made else 0)

    @property
    def first_made(self) -> int:
        """The number of what the operator behind the first in-port makes."""
        results = self.ports + len(self.delayed_results) if self.results else 0
        return self.first_result + results

    @property
    def identity(self) -> int:
        """The number of the word that changes nothing."""
        return self.first_injection + len(self.injections)

    @property
    def readers(self) -> int:
        """Number of readers."""
        return sum(map(len, self.injections))

    @cached_property
    def listed(self) -> tuple[Source, ...]:
        """What each number means."""
        ports = range(self.ports)
        numbered = (
            (Stage.PORT, ports),
            (Stage.LATER, self.delayed),
            (Stage.RESULT, ports if self.results else ()),
            (Stage.LATER_RESULT, self.delayed_results),
            (Stage.MADE, ports if self.made else ()),
            (Stage.INJECTION, range(len(self.injections))),
            (Stage.IDENTITY, (0,)),
        )
        return tuple((stage, number) for stage, numbers in numbered for number in numbers)

    def numbers_in(
        self, others: Sources, *, ports: Sequence[int] | IntArray, injections: Sequence[int]
    ) -> IntArray:
        """The number of each source among others, and, from the end, of what is none.

        Parameters
        ----------
        ports, injections
            Which of the others each in-port and injection port is.

        Examples
        --------
        >>> common = Sources(2, delayed=(1,), injections=((0,), (1,)))
        >>> Sources(1, injections=((0,),)).numbers_in(common, ports=[1], injections=[0]).tolist()
        [1, 3, 5, -1]
        """
        number = {source: k for k, source in enumerate(others.listed)}
        named: dict[Stage, Sequence[int]] = {Stage.INJECTION: injections, Stage.IDENTITY: (0,)}
        numbers = [number[stage, named.get(stage, ports)[k]] for stage, k in self.listed]
        return np.array([*numbers, -1], np.int16)
