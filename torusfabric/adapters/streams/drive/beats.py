"""Beats: the words that go into streams, and come out of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["SIGNALS", "STATUS_SINK", "Beat", "Log", "Sink", "Source"]

#: The signals that go with a word of a stream, and the fields of a `Beat` that they are.
SIGNALS = {"tdata": "word", "tlast": "last", "tkeep": "keep", "tdest": "number", "tid": "number"}

#: The sink of statuses.
STATUS_SINK = "m_axis_status"


class Beat(NamedTuple):
    """A word of a stream.

    Parameters
    ----------
    last : bool
        True for the last word of its packet.
    number : int
        The destination, or the origin.
    cycle : int
        The cycle in which a received word was taken.
    keep : int
        A bit for each byte that is part of the packet, where words have several flits.
    """

    word: int
    last: bool
    number: int = 0
    cycle: int = 0
    keep: int = 0

    def flits(self, beat: int, width: int) -> Iterable[Beat]:
        """Return the flits that are part of the packet; those of a torn word have no origin."""
        if beat == 1:
            return (self,)
        every = (1 << beat * width // 8) - 1
        count = self.keep.bit_length() * 8 // width
        torn = self.keep != every >> (beat - count) * width // 8 or (count < beat and not self.last)
        mask = (1 << width) - 1
        return (
            Beat(
                self.word >> k * width & mask,
                self.last and k == count - 1,
                -1 if torn else self.number,
                self.cycle,
            )
            for k in range(max(count, 1))
        )


class Source(NamedTuple):
    """The beats that are sent into a stream.

    Parameters
    ----------
    prefix : str
        The beginning of the names of its ports.
    stall : float
        The probability that the source rests in a cycle.
    """

    prefix: str
    beats: list[Beat]
    stall: float


class Sink(NamedTuple):
    """The receiver of a stream.

    Parameters
    ----------
    prefix : str
        The beginning of the names of its ports.
    expected : int
        Number of beats that must come.
    stall : float
        The probability that the sink rests in a cycle.
    """

    prefix: str
    expected: int
    stall: float


@dataclass
class Log:
    """A record of a simulation.

    Parameters
    ----------
    arrivals : dict of str to (list of Beat)
        The beats that each sink received, by its prefix.
    runs : list of (int, int)
        For each run that ended, the last cycle in which it was busy, and the cycles that it took.
    errors : list of int
        The values of the output `error`, each time that it changed.
    clocks : int
        Number of cycles in all.
    unsteady : str or None
        The sink at which a waiting word changed.
    """

    arrivals: dict[str, list[Beat]] = field(default_factory=dict)
    runs: list[tuple[int, int]] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    clocks: int = 0
    unsteady: str | None = None
