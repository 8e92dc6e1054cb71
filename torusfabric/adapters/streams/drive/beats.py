"""Data types of a stream simulation: beats, the ends that send and receive them, and the log.

A *beat* is one transfer of a stream: a word and its tags, the other signals of the stream. A
*source* is the sender at a stream into the fabric, a *sink* the receiver at a stream out of it.
Both *stall* at random: in some cycles a source offers no word, or a sink accepts none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["SIGNALS", "STATUS_SINK", "Beat", "StreamLog", "Sink", "Source"]

#: The signals of a stream besides its handshake, with the field of a `Beat` that each carries.
SIGNALS = {"tdata": "word", "tlast": "last", "tkeep": "keep", "tdest": "number", "tid": "number"}

#: The prefix of the sink of statuses.
STATUS_SINK = "m_axis_status"


class Beat(NamedTuple):
    """One transfer of a stream: a word, and the values of the stream's other signals.

    Parameters
    ----------
    word : int
        The word, of one or several flits.
    last : bool
        True for the last word of its packet.
    number : int
        At a source the destination of the packet, at a sink its origin.
    cycle : int
        The cycle in which a sink accepted the word; 0 at a source.
    keep : int
        The value of `tkeep`: a bit for each byte that is part of the packet; 0 where words are
        single flits.
    """

    word: int
    last: bool
    number: int = 0
    cycle: int = 0
    keep: int = 0

    def split_flits(self, beat: int, width: int) -> Iterable[Beat]:
        """Split a beat of several flits; return a beat for each flit that is part of the packet.

        In a *torn* word the valid bytes are not whole flits from the lowest on, or flits are
        missing although the word is not the last. The flits of a torn word get the number -1, so
        that a comparison reports them.

        Parameters
        ----------
        beat : int
            Flits in a word.
        width : int
            Bits of a flit.
        """
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
    """The sender at a stream into the fabric, and the beats that it sends.

    Parameters
    ----------
    prefix : str
        Common prefix of the port names of the stream.
    beats : list of Beat
        The beats, in their order.
    stall : float
        The probability in each cycle that the source offers no word.
    """

    prefix: str
    beats: list[Beat]
    stall: float


class Sink(NamedTuple):
    """The receiver at a stream out of the fabric.

    Parameters
    ----------
    prefix : str
        Common prefix of the port names of the stream.
    expected : int
        Number of beats that must arrive.
    stall : float
        The probability in each cycle that the sink is not ready.
    """

    prefix: str
    expected: int
    stall: float


@dataclass
class StreamLog:
    """The record of a simulation of streams: received beats, ends of runs, errors.

    Parameters
    ----------
    arrivals : dict of str to (list of Beat)
        The beats that each sink (receiver) got, by the prefix of its ports, such as ``m_axis_8``.
    runs : list of (int, int)
        For each run that ended, the cycle in which `busy` fell, and the value of `cycles` then.
    errors : list of int
        The value of the output `error` after each change.
    clocks : int
        Number of cycles in all.
    unsteady : str or None
        The prefix of a sink at which a waiting word changed.
    """

    arrivals: dict[str, list[Beat]] = field(default_factory=dict)
    runs: list[tuple[int, int]] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    clocks: int = 0
    unsteady: str | None = None
