"""Dimensions of the links between boards: latency, elastic buffers, messages and time limits.

`LinkPlan` computes these numbers for the hardware, the proofs, the simulation and the manifest.

Each board has its own oscillator, and neighbours start a run within a few cycles of each other. A
word that one board sends in cycle c of its run must be used by its neighbour in cycle c + latency
of the neighbour's run. Until then the word waits in an elastic buffer at the receiving link port.
The buffer absorbs two differences between the boards:

====== ============================================================================
skew   difference of their starts, in cycles
drift  words by which the faster clock gains on the slower one, from start to end
====== ============================================================================

Between runs the links carry *messages*, each followed by a CRC. Messages travel up and down a
spanning tree of the boards with board 0 as its root, so that all boards start together and agree on
the result. A *verdict* is this result: whether any link of any board lost a word in the run.
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

#: Longest delay of a cable, in cycles. The words and their clock travel together.
CABLE = 0.25

#: Most cycles from a word at an out-port to the cycle in which the receiver can take the word: 1
#: for the register of the transmitter, 0.5 until the falling edge samples the word, up to 3 for the
#: write count to cross into the receiver's clock domain, 1 to take the word, and the cable.
CROSSING = 5.5 + CABLE

#: Largest difference between the starts of a board and of its parent in the tree, in cycles, either
#: way. Why 1.5: the child corrects the count in a message by `LinkPlan.heard` cycles, but the real
#: delay is between `heard` - 0.5 and `heard` + 1.5 cycles, plus the cable. It consists of `period`
#: cycles for the message; 0.5 until the falling edge samples its last word; 2 or 3 for the write
#: count to cross clock domains, depending on the phase; up to 1 if another word is ahead in the
#: buffer (further words are skipped between runs); then the receiver decodes the message, which
#: takes effect in the next cycle.
START = 1.5 + CABLE

#: Cycles from the start of a message to its effect at the receiver, beyond one cycle per word.
HEARD = 4

#: Spare words of an elastic buffer. Why: the reader knows its fill level three cycles late.
SPARE = 4

#: Bits of the count of cycles until a start.
COUNT_BITS = 12

#: Largest depth of an elastic buffer, in words.
DEEPEST = 256

#: Cycles without a word from a neighbour after which a link is silent: a power of two.
SILENCE = 4096

#: Default limit of the wait for the other boards at a start, in cycles. It is a few seconds,
#: because hosts may start their boards one after another.
START_TIMEOUT = 1 << 28

#: Bits of the largest start timeout.
TIMEOUT_BITS = 32


class Phy(NamedTuple):
    """A physical layer of links between boards, with its delay.

    Parameters
    ----------
    least, most : float
        Least and most cycles that a word takes in addition to its delay on parallel wires.
    """

    name: str
    least: float = 0
    most: float = 0


#: Parallel wires: one for each bit of a word, and one for the clock of the sending board.
PARALLEL = Phy("parallel")

#: Differential pairs. A word waits up to 2/3 of a cycle for the serializer, takes one cycle on the
#: pair, and up to one cycle until it is complete, less the wait of a parallel word for its clock.
#: `most` includes pins and cables: up to 11 of 24 bit times, and seven cycles of the fast clock.
LVDS = Phy("lvds", 1.5, 4)

#: Transceivers of an ECP5 at 2.5 Gbit/s, with five transceiver cycles per fabric cycle.
#: The transceivers take 17 to 22.5 of their cycles, with words of 10 bits and both codes bypassed
#: (FPGA-DS-02012, table 3.26), which is 3.4 to 4.5 fabric cycles. A word further waits 0.2 to 0.8
#: fabric cycles until it is loaded, and takes 0.8 for encoding, 0.8 for decoding and alignment, and
#: 1 until it is complete. The rest of `most` is for bit alignment and the cable.
SERDES = Phy("serdes", 6, 8.5)

#: Physical layers by name.
PHYS = {phy.name: phy for phy in (PARALLEL, LVDS, SERDES)}


@dataclass(frozen=True)
class LinkPlan:
    """Dimensions and timing of all links of a torus on several boards.

    Parameters
    ----------
    boards : Boards
        The torus and its blocks.
    width : int
        Bits of a word.
    choices : dict of str to int
        Bits of each choice at the start of a run, such as the mode. Every board must be given equal
        choices.
    longest : int
        Cycles of the longest run on one chip.
    ppm : float
        Largest frequency error of each oscillator, in millionths.
    retries : int
        Number of times a run is repeated if a link lost a word.
    phy : Phy
        Physical layer of the links.
    start_timeout : int
        Most cycles for which a start waits for the other boards; 0 for no limit.
    hold : int
        Cycles after a write of the host during which no run may begin. Why: a start closes the host
        port, so the countdown to the run must last at least `hold` cycles.

    Raises
    ------
    InputError
        If `ppm`, `retries` or `start_timeout` is out of range.

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
            raise InputError(
                f"Tolerance of the oscillators (--ppm) must be from 0 to 1000 ppm, not {self.ppm:g}"
            )
        if not 0 <= self.retries <= 15:
            raise InputError(f"Retries must be from 0 to 15, not {self.retries}")
        if self.start_timeout >> TIMEOUT_BITS:
            raise InputError(
                f"Start timeout must be from 0 to {(1 << TIMEOUT_BITS) - 1} cycles, 0 for none, "
                f"not {self.start_timeout}"
            )

    def check(self) -> None:
        """Check that all boards can start together and that each word arrives before its cycle.

        Raises
        ------
        InputError
            If the latency of a link is too short, its elastic buffer too deep, or the countdown to
            a start too long for the bits of its count.
        """
        way = CROSSING + self.phy.most
        needs = (
            f"{way:g} cycles for the crossing, {self.skew:g} for boards that do not start at "
            f"once, {self.drift:.2f} for {2 * self.ppm:g} ppm in {self.window} cycles"
        )
        if self.countdown >> COUNT_BITS:
            raise InputError(
                f"Boards would start only after {self.countdown} cycles, but at most "
                f"{(1 << COUNT_BITS) - 1} are counted; choose flits wider than {self.width} bits"
            )
        for latency in self.latencies:
            if latency < self.least_latency:
                raise InputError(
                    f"Link latency between {self.boards} boards must be at least "
                    f"{self.least_latency} cycles ({needs}), not {latency}; give it by "
                    "--link-latency"
                )
            if self.depth(latency) > DEEPEST:
                raise InputError(
                    f"A link between boards would need {self.depth(latency)} words of buffer "
                    f"({latency} cycles of latency, and {needs}), but at most {DEEPEST} are "
                    "possible; choose a smaller --link-latency"
                )

    @property
    def links(self) -> int:
        """Number of link ports of a board."""
        return len(self.boards.links)

    @cached_property
    def latencies(self) -> tuple[int, ...]:
        """Distinct latencies of cut arcs, in ascending order."""
        return tuple(sorted(set(self.boards.latency)))

    @cached_property
    def levels(self) -> int:
        """Depth of the tree of boards: the number of links from board 0 to the farthest board."""
        return max(self.boards.depth)

    # Messages

    @cached_property
    def fields(self) -> StructLayout:
        """Layout of a message. The first field holds the lowest bits.

        - link, board: the link port and the board that send the message;
        - arrived: 1 if the board and all boards below it in the tree wait for a run;
        - differs: 1 if their choices differ; once the count runs, 1 if the start is refused;
        - settled: the result of the last run for the links of the board and all boards below it, as
          a `Verdict`: 0 unknown, 1 nothing lost, 2 words lost;
        - verdict: the same codes for the links of all boards, and 3 if the verdict is missing;
        - count: cycles until the board starts, 0 if not known;
        - waits: 1 if the board waits for a run, or has just ended one;
        - unfit: 1 if a link of the board, or of a board below it, has failed;
        - halt: 1 if board 0 has reported that a link of any board has failed;
        - the choices of the board, one field each.
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
        """Bits of the sender of a message: the fields `link` and `board`, which come first."""
        bits: int = self.fields["link"].width + self.fields["board"].width
        return bits

    @property
    def message_words(self) -> int:
        """Words of a message, without its CRC."""
        return -(-self.message_bits // self.width)

    @property
    def check_words(self) -> int:
        """Words of a CRC. One CRC follows the words of a run, and one follows each message."""
        return -(-CRC_BITS // self.width)

    @property
    def period(self) -> int:
        """Words of a message with its CRC, which is also the period of messages in cycles."""
        return self.message_words + self.check_words

    # Time

    @property
    def heard(self) -> int:
        """Cycles from the first word of a message to its effect, with the least delay of `phy`."""
        return self.period + HEARD + math.floor(self.phy.least)

    @property
    def joins(self) -> int:
        """Largest count in a message that comes too late for the receiver to join the start."""
        return self.heard + self._notice - 1

    @property
    def countdown(self) -> int:
        """Cycles from the arrival of all boards at the barrier to their start."""
        return self.levels * self._hop + self._notice

    @property
    def _notice(self) -> int:
        """Least cycles for which a board counts down before its start."""
        return max(self.settle_time, self.hold)

    @property
    def _hop(self) -> int:
        """Most cycles until news reaches the next board, even if one message is lost."""
        return 3 * self.period + 2 * HEARD + math.ceil(self.phy.most)

    @property
    def patience(self) -> int:
        """Cycles after the end of a run, or of a start, until no message refers to it any more."""
        return 2 * self.levels * self._hop + math.ceil(self.skew)

    @property
    def timer_bits(self) -> int:
        """Bits of the counter of cycles since a start."""
        return max(self.start_timeout, self.patience, SILENCE - 1).bit_length()

    @property
    def settle_time(self) -> int:
        """Cycles before the start of a board in which receivers must not skip words."""
        return 8 + 2 * self.levels

    @property
    def checked(self) -> int:
        """Cycles from the end of a run until each board knows whether its own links lost words."""
        return max(self.latencies) + self.check_words - 1

    @property
    def deadline(self) -> int:
        """Cycles from the end of a run until board 0 must have the reports of all boards."""
        return self.checked + self.levels * self._hop

    @property
    def settles_by(self) -> list[int]:
        """Cycles from the end of a run until each board must have the reports from below it."""
        return [
            self.deadline - depth * self._hop if below else self.deadline
            for depth, below in zip(self.boards.depth, self.boards.below, strict=True)
        ]

    @property
    def judged_by(self) -> list[int]:
        """Cycles from the end of a run until each board must have the verdict of board 0."""
        return [self.deadline + depth * self._hop for depth in self.boards.depth]

    @property
    def agreed(self) -> int:
        """Cycles from the end of a run until all boards have the verdict or miss it."""
        return self.deadline + self.levels * self._hop + 2

    @property
    def overhead(self) -> int:
        """Cycles that an attempt takes in addition to the run."""
        return self.agreed + 2

    def cycles(self, run: int, attempts: int = 1) -> int:
        """Return the cycles from the common start to done.

        Parameters
        ----------
        run : int
            Cycles of the run on one chip.
        attempts : int
            Number of times the run is executed, the last time without loss.
        """
        return attempts * (run + self.overhead)

    # Buffers

    @property
    def skew(self) -> float:
        """Largest difference between the starts of two boards, in cycles."""
        return (START + self.phy.most - math.floor(self.phy.least)) * self.levels

    @property
    def window(self) -> int:
        """Most cycles in which clocks drift apart: the countdown and all attempts."""
        return self.cycles(self.longest, self.retries + 1) + self.countdown

    @property
    def drift(self) -> float:
        """Largest drift of two clocks within `window`, in words."""
        return 2 * self.ppm * 1e-6 * self.window

    @property
    def least_latency(self) -> int:
        """Least admissible latency of a cut arc, in cycles."""
        return math.ceil(CROSSING + self.phy.most + self.skew + self.drift)

    def depth(self, latency: int) -> int:
        """Return the depth of the elastic buffer of a link, in words: a power of two.

        Parameters
        ----------
        latency : int
            Latency of the link, in cycles.
        """
        words = latency - 1.5 + self.skew + self.drift + SPARE
        return 1 << (math.ceil(words) - 1).bit_length()

    @property
    def depths(self) -> dict[str, int]:
        """Depth of the elastic buffers in words, by the latency of their links."""
        return {str(latency): self.depth(latency) for latency in self.latencies}

    def facts(self) -> dict[str, Any]:
        """Return the figures of clocks, starts and attempts as plain data, for JSON."""
        return {
            "ppm": self.ppm,
            "drift_words": round(self.drift, 3),
            "retries": self.retries,
            "start_timeout": self.start_timeout,
            "attempt_overhead": self.overhead,
        }
