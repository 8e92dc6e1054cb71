"""The words that nodes take when they carry out a table of sums, who takes them, and from where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from .sum_timing import Arrival, SumKey

__all__ = [
    "Consumer",
    "FromAdder",
    "FromMemory",
    "FromPort",
    "FromSend",
    "Identity",
    "Kept",
    "Own",
    "Passed",
    "ReadWords",
    "SharedMemory",
    "Source",
    "Word",
]


@dataclass(frozen=True)
class Consumer:
    """What takes a word a cycle at most: an out-port, or the adder behind an in-port."""

    port: int
    adds: bool


@dataclass(frozen=True)
class Own:
    """A node's own contribution to a sum."""

    key: SumKey


@dataclass(frozen=True)
class Passed:
    """A word as it arrives."""

    arrival: Arrival


@dataclass(frozen=True)
class Identity:
    """The word that changes nothing."""


#: A word that a consumer takes: a result, by the arrival that completed it, or one of the others.
Word: TypeAlias = Arrival | Passed | Own | Identity


@dataclass(frozen=True)
class FromAdder:
    """The register behind an adder, or, if later, the one behind that."""

    port: int
    later: bool


@dataclass(frozen=True)
class FromPort:
    """An in-port, or, if later, the register behind it."""

    port: int
    later: bool


@dataclass(frozen=True)
class FromMemory:
    """The memory that a consumer reads: of the results of an adder, or of what an in-port brings.

    Parameters
    ----------
    consumer : Consumer
    port : int
    sums : bool
    """

    consumer: Consumer
    port: int
    sums: bool = True


@dataclass(frozen=True)
class FromSend:
    """The memory of contributions that a consumer reads, where nodes keep sums that of a chunk."""

    consumer: Consumer
    chunk: int = 0


#: What feeds an out-port or an adder.
Source: TypeAlias = FromAdder | FromPort | FromMemory | FromSend | Identity

#: What a memory keeps: results, by their arrivals, or contributions, by their sums.
Kept = TypeVar("Kept", Arrival | Passed, SumKey)

#: What each consumer reads in each step.
ReadWords: TypeAlias = dict[Consumer, dict[int, Kept]]


@dataclass
class SharedMemory(Generic[Kept]):
    """A memory that several consumers read: what in each row, and with which skew."""

    consumers: list[Consumer]
    rows: dict[int, Kept]
    skew: int
