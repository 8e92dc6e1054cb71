"""What links between boards need: the latency of each, its elastic buffer, and the words that go
over it between runs.

Each board has an oscillator of its own, and starts a run when its neighbours do, give or take some
cycles. A word that one sends in cycle c of a run is to be taken by the other in cycle c + latency
of its own count: it waits in an elastic buffer until then, which absorbs how much later or earlier
that board started, and how much faster or slower its clock has been since.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from amaranth.lib.data import StructLayout

from ....errors import InputError
from ....rtl.crc import CRC_BITS
from ....rtl.memories import address_width
from ....topology.boards import Boards

__all__ = ["CROSSING", "LVDS", "LinkPlan", "PARALLEL", "PHYS", "Phy", "SERDES", "START"]

#: The most cycles that a cable takes, beyond what its clock takes as well.
CABLE = 0.25

#: Cycles from the one in which an out-port shows a word to that in which a receiver can take it, at
#: most: the register of the transmitter, half a cycle until the word is sampled, up to three for
#: its number to be known in the other domain, and one to take it.
CROSSING = 5.5 + CABLE

#: By how many cycles a board may start later than the one above it in the tree, or earlier. The
#: last word of a message shows `period` cycles after that in which the message says the count, and
#: is sampled half a cycle later, and the cable. It is taken when its number is known, two or three
#: cycles later, for the phase of the clocks; another one later if a word was in front of it (more
#: are skipped between runs). Then it is heard, and counts in the next cycle: from half a cycle less
#: than `heard`, for which boards take it, to 1 1/2 more, and the cable.
START = 1.5 + CABLE

#: Cycles from the start of a message to when what it says counts, beyond those of its words.
HEARD = 4

#: Words more than what is in a buffer that it has room for: its fill is known three cycles late.
SPARE = 4

#: Bits of the cycles until a start.
COUNT_BITS = 12

#: The deepest buffer.
DEEPEST = 256

#: Cycles without a word from a neighbour after which a link is silent: a power of two.
SILENCE = 4096

#: Cycles for which a start waits for other boards, unless it is said how long: some seconds, for
#: hosts may start their boards one after another.
START_TIMEOUT = 1 << 28

#: Bits of the most cycles that can be chosen.
TIMEOUT_BITS = 32


class Phy(NamedTuple):
    """A physical layer of links between boards: what it adds to the way of a word.

    Parameters
    ----------
    least, most : float
        Cycles that a word takes beyond those of parallel wires.
    """

    name: str
    least: float = 0
    most: float = 0


#: Words and the clock of the board that sends, each bit on a wire of its own.
PARALLEL = Phy("parallel")

#: Differential pairs. A word waits up to 2/3 of a cycle until it is loaded, takes one on
#: the pair, and up to one until it is whole, less what a parallel word waits for its clock. What
#: pins and cables take, up to 11 bits of 24 and seven cycles of the faster clock, is part of the
#: most.
LVDS = Phy("lvds", 1.5, 4)

#: Transceivers of an ECP5 at 2.5 Gbit/s, with five cycles of their clock in one of the fabric. They
#: themselves take 17 to 22.5 of these, with words of 10 bits and both codes bypassed
#: (FPGA-DS-02012, table 3.26), or 3.4 to 4.5 of the fabric. A word waits 0.2 to 0.8 until it is
#: loaded, takes 0.8 to be coded, 0.8 to be decoded and found, and one to be whole; what is left of
#: the most is for the place of bits and the cable.
SERDES = Phy("serdes", 6, 8.5)

#: All of them, by name.
PHYS = {phy.name: phy for phy in (PARALLEL, LVDS, SERDES)}


@dataclass(frozen=True)
class LinkPlan:
    """What the links of a torus on several boards need.

    Parameters
    ----------
    width : int
        Bits of a word.
    choices : dict of str to int
        What is chosen at the start of a run, and its bits: all boards must choose the same.
    longest : int
        Cycles of the longest run on one board.
    ppm, retries, phy, start_timeout : float, int, Phy, int
        As of `torusfabric.adapters.boards.hardware.BoardSystem`.
    hold : int
        Cycles after a write of the host in which no run may begin: a start closes the host port,
        and boards begin later than that.

    Raises
    ------
    InputError
        If the oscillators are too far off, or there are too many retries.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> boards = Boards.parse("2x1", Torus(4, 4, link_latency="0:20"))
    >>> plan = LinkPlan(boards, 32, {}, longest=100, ppm=100, retries=1)
    >>> plan.least_latency, plan.depth(20), plan.overhead
    (8, 32, 52)
    """

    boards: Boards
    width: int
    choices: Mapping[str, int]
    longest: int
    ppm: float = 100.0
    retries: int = 1
    phy: Phy = PARALLEL
    start_timeout: int = START_TIMEOUT
    hold: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.ppm <= 1000:
            raise InputError(f"Oscillators must be within 0 to 1000 ppm, not {self.ppm:g}")
        if not 0 <= self.retries <= 15:
            raise InputError(f"Retries must be from 0 to 15, not {self.retries}")
        if self.start_timeout >> TIMEOUT_BITS:
            raise InputError(
                f"Start timeout must be from 0 to {(1 << TIMEOUT_BITS) - 1} cycles, 0 for none, "
                f"not {self.start_timeout}"
            )

    def check(self) -> None:
        """See to it that all boards can start together, and each word waits for its cycle.

        Raises
        ------
        InputError
            If the latency of a link is too short, or its buffer too deep.
        """
        way = CROSSING + self.phy.most
        needs = (
            f"{way:g} cycles for the crossing, {self.skew:g} for boards that do not start at "
            f"once, {self.drift:.2f} for {2 * self.ppm:g} ppm in {self.window} cycles"
        )
        if self.countdown >> COUNT_BITS:
            raise InputError(
                f"Width must be enough for boards to start within {(1 << COUNT_BITS) - 1} cycles, "
                f"not {self.width} bits, where they take {self.countdown}"
            )
        for latency in self.latencies:
            if latency < self.least_latency:
                raise InputError(
                    f"Link latency of cut arcs must be at least {self.least_latency} on "
                    f"{self.boards} boards ({needs}), not {latency}"
                )
            if self.depth(latency) > DEEPEST:
                raise InputError(
                    f"Elastic buffer must have at most {DEEPEST} words, not "
                    f"{self.depth(latency)} ({latency} cycles of latency, and {needs})"
                )

    @property
    def links(self) -> int:
        """Link ports of a board."""
        return len(self.boards.links)

    @cached_property
    def latencies(self) -> tuple[int, ...]:
        """The different latencies of cut arcs."""
        return tuple(sorted(set(self.boards.latency)))

    @cached_property
    def levels(self) -> int:
        """Boards between board 0 and the one farthest from it in the tree, that one included."""
        return max(self.boards.depth)

    # Messages

    @cached_property
    def fields(self) -> StructLayout:
        """What a message says: who sends it by which link port, and

        - arrived: whether the board and all below it wait for a run;
        - differs: whether they were told different things;
        - settled, verdict: what is known of the links in the last run, below the board and of all:
          1 if they lost nothing, 2 if they did, 3 for a verdict that has not come;
        - count: cycles until the board starts, if it is known;
        - waits: whether the board waits for a run, or has just ended one;
        - unfit: whether a link of the board, or of one below it, has failed;
        - halt: whether board 0 knows that a link of any board has failed;
        - and the choices of the board.
        """
        bits = {
            "link": address_width(self.links),
            "board": address_width(self.boards.number),
            "arrived": 1,
            "differs": 1,
            "settled": 2,
            "verdict": 2,
            "count": COUNT_BITS,
            "waits": 1,
            "unfit": 1,
            "halt": 1,
            **self.choices,
        }
        return StructLayout(bits)

    @property
    def message_bits(self) -> int:
        """Bits of a message."""
        bits: int = self.fields.size
        return bits

    @property
    def end_bits(self) -> int:
        """Bits of what says who sends a message, which come first."""
        bits: int = self.fields["link"].width + self.fields["board"].width
        return bits

    @property
    def message_words(self) -> int:
        """Words of a message, without the sum."""
        return -(-self.message_bits // self.width)

    @property
    def check_words(self) -> int:
        """Words of the sum that follows those of a run, and each message between runs."""
        return -(-CRC_BITS // self.width)

    @property
    def period(self) -> int:
        """Words of a message with its sum."""
        return self.message_words + self.check_words

    # Time

    @property
    def heard(self) -> int:
        """Least cycles from the first word of a message to when what it says counts."""
        return self.period + HEARD + math.floor(self.phy.least)

    @property
    def joins(self) -> int:
        """Cycles until a start that a message must say more than, or it comes too late."""
        return self.heard + self._notice - 1

    @property
    def countdown(self) -> int:
        """Cycles from when all boards have arrived to their start."""
        return self.levels * self._hop + self._notice

    @property
    def _notice(self) -> int:
        """The least cycles from when a board begins to count to its start."""
        return max(self.settle_time, self.hold)

    @property
    def _hop(self) -> int:
        """Cycles in which a message reaches the next board, even if the first one is lost."""
        return 3 * self.period + 2 * HEARD + math.ceil(self.phy.most)

    @property
    def patience(self) -> int:
        """Cycles from the end of a run, or of a start, to when no message is about it any more."""
        return 2 * self.levels * self._hop + math.ceil(self.skew)

    @property
    def timer_bits(self) -> int:
        """Bits of what counts the cycles since a start."""
        return max(self.start_timeout, self.patience, SILENCE - 1).bit_length()

    @property
    def settle_time(self) -> int:
        """Cycles for which nothing may be skipped before a board starts."""
        return 8 + 2 * self.levels

    @property
    def checked(self) -> int:
        """Cycles from the end of a run to when each board knows whether its links lost anything."""
        return max(self.latencies) + self.check_words - 1

    @property
    def deadline(self) -> int:
        """Cycles from the end of a run to when board 0 must know of all."""
        return self.checked + self.levels * self._hop

    @property
    def settles_by(self) -> list[int]:
        """Cycles from the end of a run to when each board must know of all below it."""
        return [
            self.deadline - depth * self._hop if below else self.deadline
            for depth, below in zip(self.boards.depth, self.boards.below, strict=True)
        ]

    @property
    def judged_by(self) -> list[int]:
        """Cycles from the end of a run to when each board must know the verdict of board 0."""
        return [self.deadline + depth * self._hop for depth in self.boards.depth]

    @property
    def agreed(self) -> int:
        """Cycles from the end of a run to when all boards know of all."""
        return self.deadline + self.levels * self._hop + 2

    @property
    def overhead(self) -> int:
        """Cycles of an attempt beyond those of the run."""
        return self.agreed + 2

    def cycles(self, run: int, attempts: int = 1) -> int:
        """Cycles from the common start to done, of a run that takes so many on one board."""
        return attempts * (run + self.overhead)

    # Buffers

    @property
    def skew(self) -> float:
        """By how many cycles the starts of two boards may differ."""
        return (START + self.phy.most - math.floor(self.phy.least)) * self.levels

    @property
    def window(self) -> int:
        """The most cycles in which clocks drift apart: those of all attempts, and before them."""
        return self.cycles(self.longest, self.retries + 1) + self.countdown

    @property
    def drift(self) -> float:
        """By how many words clocks drift apart meanwhile."""
        return 2 * self.ppm * 1e-6 * self.window

    @property
    def least_latency(self) -> int:
        """The least latency of a cut arc."""
        return math.ceil(CROSSING + self.phy.most + self.skew + self.drift)

    def depth(self, latency: int) -> int:
        """Words of the elastic buffer of a link: a power of two."""
        words = latency - 1.5 + self.skew + self.drift + SPARE
        return 1 << (math.ceil(words) - 1).bit_length()

    @property
    def depths(self) -> dict[str, int]:
        """Words of the elastic buffers, by the latency of their links."""
        return {str(latency): self.depth(latency) for latency in self.latencies}

    def facts(self) -> dict[str, Any]:
        """Return what is said of clocks, starts and attempts, as plain data."""
        return {
            "ppm": self.ppm,
            "drift_words": round(self.drift, 3),
            "retries": self.retries,
            "start_timeout": self.start_timeout,
            "attempt_overhead": self.overhead,
        }
