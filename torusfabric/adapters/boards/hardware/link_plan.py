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

Between runs the links carry *control messages* from board to board, each followed by a CRC. (They
are not the messages of a collective.) They travel up and down a spanning tree of the boards with
board 0 as its root, so that all boards start together and agree on the result: *below* a board are
its children in the tree and their children. A *verdict* is this result: whether any link of any
board lost a word in the run. After a loss the boards repeat the run; each execution is an
*attempt*. A *choice* is a value that a user sets for a run: mode, length, root or operator. Before
a start the boards wait for each other, and then *count down* the cycles to their common start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product, starmap
from typing import Any, NamedTuple

from amaranth.lib.data import StructLayout

from ....errors import InputError
from ....rtl.crc import CRC_BITS
from ....rtl.memories import address_width
from ....topology.boards import Boards

__all__ = ["CROSSING_CYCLES", "LVDS", "LinkPlan", "PARALLEL", "PHYS", "Phy", "SERDES",
           "START_SKEW_CYCLES"]  # fmt: skip

#: Longest delay of a cable, in cycles. The words and their clock travel together.
CABLE_CYCLES = 0.25

#: Most cycles from a word at an out-port to the cycle in which the receiver can take the word: 1
#: for the register of the transmitter, 0.5 until the falling edge samples the word, up to 3 for the
#: write count to cross into the receiver's clock domain, 1 to take the word, and the cable.
CROSSING_CYCLES = 5.5 + CABLE_CYCLES

#: Largest difference between the starts of a board and of its parent in the tree, in cycles, either
#: way. Why 1.5: the child corrects the count in a message by `LinkPlan.message_delay` cycles, but
#: the real delay is between `message_delay` - 0.5 and `message_delay` + 1.5 cycles, plus the cable.
#: It consists of `message_period` cycles for the message; 0.5 until the falling edge samples its
#: last word; 2 or 3 for the write count to cross clock domains, depending on the phase; up to 1 if
#: another word is ahead in the buffer (further words are skipped between runs); then the receiver
#: decodes the message, which takes effect in the next cycle.
START_SKEW_CYCLES = 1.5 + CABLE_CYCLES

#: Cycles from the start of a message to its effect at the receiver, beyond one cycle per word.
DECODE_CYCLES = 4

#: Spare words of an elastic buffer. Why: the reader knows its fill level three cycles late.
SPARE_WORDS = 4

#: Bits of the count of cycles until a start.
COUNT_BITS = 12

#: Largest depth of an elastic buffer, in words.
MOST_BUFFER_WORDS = 256

#: Cycles without a word from a neighbour after which a link is silent: a power of two.
SILENCE_CYCLES = 4096

#: Default limit of the wait for the other boards at a start, in cycles. It is a few seconds,
#: because hosts may start their boards one after another.
START_TIMEOUT = 1 << 28

#: Bits of the largest start timeout.
TIMEOUT_BITS = 32


class Phy(NamedTuple):
    """A physical layer of links between boards, such as differential pairs, with its delay.

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
    flit_bits : int
        Width of the words at out-ports.
    choices : dict of str to int
        Width in bits of each choice for a run, by its name, such as ``mode``. A user must set equal
        choices on all boards.
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
        Cycles after a write of the host during which no run may begin, because the word is still on
        its way to a memory. No write can follow a start, so the countdown from the start to the run
        must last at least `hold` cycles.
    parts : int
        Number of words in which a cable carries a flit, see `narrow`.

    Raises
    ------
    InputError
        If `ppm`, `retries` or `start_timeout` is out of range.

    Examples
    --------
    Links along axis 0 lead to other boards and have a latency of 20 cycles; 8 would suffice.

    >>> from torusfabric.topology import Torus
    >>> boards = Boards.parse("2x1", Torus(4, 4, link_latency="0:20"))
    >>> plan = LinkPlan(boards, 32, {}, longest=100, ppm=100, retries=1)
    >>> plan.least_latency, plan.buffer_depth(20), plan.attempt_overhead
    (8, 32, 52)
    """

    boards: Boards
    flit_bits: int
    choices: Mapping[str, int]
    longest: int
    ppm: float = 100.0
    retries: int = 1
    phy: Phy = PARALLEL
    start_timeout: int = START_TIMEOUT
    hold: int = 0
    parts: int = 1

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

    def check_limits(self) -> None:
        """Check that all boards can start together and that each word arrives before its cycle.

        Raises
        ------
        InputError
            If the latency of a link is too short, its elastic buffer too deep, or the countdown to
            a start too long for the bits of its count.
        """
        way = CROSSING_CYCLES + self.phy.most
        needs = (
            f"{way:g} cycles for the crossing, {self.start_skew:g} for boards that do not start at "
            f"once, {self.drift_words:.2f} for {2 * self.ppm:g} ppm in {self.drift_window} cycles"
            + f", {self.parts - 1} for the parts of a flit"
            * (self.parts > 1)
        )
        if self.countdown_cycles >> COUNT_BITS:
            raise InputError(
                f"Boards would start only after {self.countdown_cycles} cycles, but at most "
                f"{(1 << COUNT_BITS) - 1} are counted; choose flits wider than {self.width} bits"
            )
        least = self.least_latency
        for latency in self.latencies:
            if latency + self.parts - 1 < least:
                raise InputError(
                    f"Link latency between {self.boards} boards must be at least {least} cycles "
                    f"({needs}), not {latency + self.parts - 1}; give it by --link-latency, as in "
                    f"{self.boards}={least}"
                )
            if self.buffer_depth(latency) > MOST_BUFFER_WORDS:
                raise InputError(
                    f"A link between boards would need {self.buffer_depth(latency)} words of "
                    "buffer "
                    f"({latency} cycles of latency, and {needs}), but at most "
                    f"{MOST_BUFFER_WORDS} are "
                    "possible; choose a smaller --link-latency"
                )

    @property
    def width(self) -> int:
        """Bits of a word on a cable: a flit, or one of its parts."""
        return -(-self.flit_bits // self.parts)

    def cable_latency(self, board: int, link: int) -> int:
        """Return the cycles that a word takes over the cable to a link port of a board.

        The latency of the link covers all parts of a flit, so that of the cable is less.
        """
        return self.boards.latency_cycles[board][link] - (self.parts - 1)

    @property
    def n_links(self) -> int:
        """Number of link ports of a board, the same for all boards."""
        return len(self.boards.link_ports)

    @cached_property
    def latencies(self) -> tuple[int, ...]:
        """Latencies of the cables between boards, in cycles: each one once, in ascending order."""
        places = product(range(self.boards.n_boards), range(self.n_links))
        return tuple(sorted({*starmap(self.cable_latency, places)}))

    @cached_property
    def tree_depth(self) -> int:
        """Depth of the tree of boards: the number of links from board 0 to the farthest board."""
        return max(self.boards.tree_depths)

    # Messages

    @cached_property
    def message_layout(self) -> StructLayout:
        """Layout of a control message, which boards send to their neighbours between runs.

        The boards form a tree with board 0 as its root; below a board are its children and their
        children. The first field holds the lowest bits.

        - link, board: the link port and the board that send the message;
        - arrived: 1 if the board and all boards below it wait for a run;
        - differs: 1 if the choices of these boards differ; once the countdown has begun, 1 if the
          start is refused;
        - settled: the result of the last run for the links of the board and all boards below it, as
          a `RunVerdict`: 0 unknown, 1 nothing lost, 2 words lost;
        - verdict: the same codes for the links of all boards, and 3 if the verdict is missing;
        - count: cycles until the board starts, 0 if not known;
        - waits: 1 if the board waits for a run, or has just ended one;
        - unfit: 1 if a link of the board, or of a board below it, has failed;
        - halt: 1 if board 0 has reported that a link of any board has failed;
        - the choices of the board, one field each.
        """
        bits = {
            "link": address_width(self.n_links),
            "board": address_width(self.boards.n_boards),
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
        """Bits of a control message, which boards send to their neighbours between runs."""
        bits: int = self.message_layout.size
        return bits

    @property
    def sender_bits(self) -> int:
        """Bits of the first two fields of a control message, `link` and `board`: its sender."""
        bits: int = self.message_layout["link"].width + self.message_layout["board"].width
        return bits

    @property
    def message_words(self) -> int:
        """Number of words of a control message between boards, without its CRC."""
        return -(-self.message_bits // self.width)

    @property
    def crc_words(self) -> int:
        """Number of words of a CRC of 32 bits on a link: 4 if a word has 8 bits.

        A CRC is sent after the last word of each run, and after each control message between
        boards.
        """
        return -(-CRC_BITS // self.width)

    @property
    def message_period(self) -> int:
        """Number of words of a control message between boards, with its CRC.

        Between runs a board sends one message after another, one word a cycle. So this is also the
        period of messages in cycles.
        """
        return self.message_words + self.crc_words

    # Time

    @property
    def message_delay(self) -> int:
        """Least cycles from the transmission of a control message's first word to its evaluation.

        The message is evaluated on the receiving board after its last word. The delay of a word on
        the link is the smallest that the physical layer `phy` can have.
        """
        return self.message_period + DECODE_CYCLES + math.floor(self.phy.least)

    @property
    def too_late_count(self) -> int:
        """Largest count in a control message that comes too late for a start.

        The count is the number of cycles until the common start. A board that receives this count,
        or a smaller one, has no time to prepare, and does not start.
        """
        return self.message_delay + self._least_countdown - 1

    @property
    def countdown_cycles(self) -> int:
        """Cycles of the countdown to a start of all boards.

        It begins when board 0 knows that all boards wait for the run.
        """
        return self.tree_depth * self._hop_cycles + self._least_countdown

    @property
    def _least_countdown(self) -> int:
        """Least cycles that a board needs from the message about a start to the start itself."""
        return max(self.settle_cycles, self.hold)

    @property
    def _hop_cycles(self) -> int:
        """Largest number of cycles from an event on a board until a neighbour knows of it.

        The board tells it in a control message. The number allows for the loss of one message.
        """
        return 3 * self.message_period + 2 * DECODE_CYCLES + math.ceil(self.phy.most)

    @property
    def stale_message_cycles(self) -> int:
        """Cycles after the end of a run, or of a start, in which messages about it may still come.

        A message about it travels up the tree of boards and down again, and a board must not take
        it for a message about the next run.
        """
        return 2 * self.tree_depth * self._hop_cycles + math.ceil(self.start_skew)

    @property
    def timer_bits(self) -> int:
        """Bits of the counter of the cycles since the host has started a run on this board."""
        return max(self.start_timeout, self.stale_message_cycles, SILENCE_CYCLES - 1).bit_length()

    @property
    def settle_cycles(self) -> int:
        """Cycles before the start of a board during which its receivers must not skip words.

        At other times a receiver skips words while its elastic buffer is too full. Why not here: a
        neighbour may start a few cycles earlier, and a word of its run must not be skipped.
        """
        return 8 + 2 * self.tree_depth

    @property
    def loss_check_cycles(self) -> int:
        """Cycles from the end of a run until each board knows whether its own links lost words."""
        return max(self.latencies) + self.crc_words - 1

    @property
    def root_report_deadline(self) -> int:
        """Cycles from the end of a run until board 0 must have the reports of all boards.

        In a report, a board says whether its links lost words of the run.
        """
        return self.loss_check_cycles + self.tree_depth * self._hop_cycles

    @property
    def report_deadlines(self) -> list[int]:
        """For each board, the cycles from the end of a run until it must have all reports.

        A report says whether links lost words of the run. A board waits for the reports of the
        boards below it: its children in the tree of boards, which report for their children, too.
        """
        return [
            self.root_report_deadline - depth * self._hop_cycles
            if below
            else self.root_report_deadline
            for depth, below in zip(self.boards.tree_depths, self.boards.child_links, strict=True)
        ]

    @property
    def verdict_deadlines(self) -> list[int]:
        """For each board, the cycles from the end of a run until it must have the verdict.

        The verdict is the result of the run on all boards: whether any link lost a word. Board 0
        sends it down the tree of boards.
        """
        return [
            self.root_report_deadline + depth * self._hop_cycles
            for depth in self.boards.tree_depths
        ]

    @property
    def agreement_cycles(self) -> int:
        """Cycles from the end of a run until a board has the verdict, or counts it as missing.

        The verdict, sent by board 0, says whether any link of any board lost a word. If it has not
        come by then, the board ends the run with an error.
        """
        return self.root_report_deadline + self.tree_depth * self._hop_cycles + 2

    @property
    def attempt_overhead(self) -> int:
        """Cycles of an attempt (one execution of a run) in addition to the cycles on one chip.

        In these cycles the boards agree whether any link lost a word.
        """
        return self.agreement_cycles + 2

    def total_cycles(self, run: int, attempts: int = 1) -> int:
        """Return the cycles from the common start of the boards to the output `done`.

        Parameters
        ----------
        run : int
            Cycles of the run on one chip.
        attempts : int
            Number of times the run is executed, the last time without loss.
        """
        return attempts * (run + self.attempt_overhead)

    # Buffers

    @property
    def start_skew(self) -> float:
        """Largest difference between the starts of two boards, in cycles."""
        return (START_SKEW_CYCLES + self.phy.most - math.floor(self.phy.least)) * self.tree_depth

    @property
    def drift_window(self) -> int:
        """Largest number of cycles in which two clocks drift apart without a correction.

        This is the countdown to a start, followed by all attempts (executions) of the longest run.
        Between runs there is no drift, because receivers take words as they arrive.
        """
        return self.total_cycles(self.longest, self.retries + 1) + self.countdown_cycles

    @property
    def drift_words(self) -> float:
        """Words by which the faster of two clocks gains on the slower one within `drift_window`."""
        return 2 * self.ppm * 1e-6 * self.drift_window

    @property
    def least_latency(self) -> int:
        """Least latency, in cycles, that an arc between two boards may have."""
        cable = CROSSING_CYCLES + self.phy.most + self.start_skew + self.drift_words
        return math.ceil(cable) + self.parts - 1

    def buffer_depth(self, latency: int) -> int:
        """Return the depth of the elastic buffer of a link, in words: a power of two.

        Parameters
        ----------
        latency : int
            Latency of the link, in cycles.
        """
        words = latency - 1.5 + self.start_skew + self.drift_words + SPARE_WORDS
        return 1 << (math.ceil(words) - 1).bit_length()

    @property
    def buffer_depths(self) -> dict[str, int]:
        """Depth of the elastic buffers in words, by the latency of their links."""
        return {str(latency): self.buffer_depth(latency) for latency in self.latencies}

    def facts(self) -> dict[str, Any]:
        """Return the entries of a manifest about clocks and attempts, such as ``ppm``, by name."""
        return {
            "parts": self.parts,
            "ppm": self.ppm,
            "drift_words": round(self.drift_words, 3),
            "retries": self.retries,
            "start_timeout": self.start_timeout,
            "attempt_overhead": self.attempt_overhead,
        }
