"""How many messages a node holds on each side, in which sections of its memories they lie, and how
many flits a word of its streams has: as much as is needed for runs to limit the rate, not ports.

A side holds a message from its first word loaded to the end of its run, or from the begin of a run
to its last word unloaded. With two of them a run comes every

    max(R, L, U, (R + U + u) / 2, (L + R + u - 2) / 2)

cycles, where R, L and U are those in which it runs, loads and unloads, and u, one more than the
levels of the tree of readiness, is what passes between nodes and control. Only where runs are very
short that is much more than the slowest of the three. With three of them it is as few as these.

A node's links bring up to as many flits a cycle as it has ports. A stream whose words are *beats*
of several flits takes them in as few cycles as the run. Memories of what is sent have rows of a
beat, which are written as a whole and read flit by flit; copies of what is received that are
unloaded have such rows, too, and are written flit by flit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Value

from ...rtl.distribution import merge_levels
from ...rtl.flit_rows import beat_fault, too_wide
from ...rtl.memories import address_width

if TYPE_CHECKING:
    from ...program import Program

__all__ = [
    "SHARE",
    "Sections",
    "in_section",
    "least_beat",
    "levels",
    "number_bits",
    "packet_counts",
    "section_bits",
    "sections_of",
    "share_with_two",
]

#: The share of the rate that ports and links allow that is to be reached at least.
SHARE = 0.95

#: A narrower beat is taken if runs come so much as often, or nearly.
ALIKE = 1.02


@dataclass(frozen=True)
class Sections:
    """The sections of memories.

    Message and run k lie in section k modulo `count`, which is a power of two, so that the section
    is the upper bits of an address.

    Parameters
    ----------
    buffers : int
        Messages that a node holds on each side at a time, 2 or 3.

    Examples
    --------
    >>> [(each.count, each.bits, each.number_bits) for each in map(Sections, (2, 3))]
    [(2, 1, 2), (4, 2, 3)]
    """

    buffers: int = 2

    @property
    def bits(self) -> int:
        """Bits of the number of a section."""
        return (self.buffers - 1).bit_length()

    @property
    def count(self) -> int:
        """Sections of a memory."""
        return 1 << self.bits

    @property
    def number_bits(self) -> int:
        """Bits of a number that tells all messages and runs apart that a node deals with."""
        return self.bits + 1

    @property
    def two(self) -> bool:
        """Whether there are two, so that a section is whether a number is odd."""
        return self.count == 2

    def of(self, number: Value) -> Value:
        """The section of a run or message."""
        return number[: self.bits]

    def following(self, section: Value, step: Value | None = None) -> Value:
        """The section after one; or that one, if `step` is 0."""
        if self.two:
            return ~section if step is None else section ^ step
        return (section + (1 if step is None else step))[: self.bits]


def sections_of(program: Program, beat: int = 1) -> Sections:
    """The sections of a fabric: more than two where its runs would not reach `SHARE` with two.

    Of one whose tables are loaded there are two.

    Ports take and give a beat of flits a cycle. Where messages may be shorter, the longest count.

    Examples
    --------
    >>> import torusfabric as tf
    >>> gather = tf.plan("2x2x2", "allgather", algorithm="matching")
    >>> [sections_of(tf.compile(gather, flits=flits)).count for flits in (1, 2)]
    [4, 2]
    """
    if program.writable:  # of whatever length runs may be
        return Sections()
    shares = [share_with_two(program, mode, beat) for mode in range(len(program.modes))]
    return Sections(2 if min(shares) >= SHARE else 3)


def share_with_two(program: Program, mode: int = 0, beat: int = 1) -> float:
    """The share of what ports and links allow that runs of the longest messages reach with two.

    Examples
    --------
    A run takes 8 cycles, in which a node loads one word and unloads 8; then one comes every 9.5.

    >>> import torusfabric as tf
    >>> gather = tf.plan("2x2x2", "allgather", algorithm="matching")
    >>> round(share_with_two(tf.compile(gather, flits=1)), 3)
    0.842
    """
    run, form = program.cycles(mode=mode), program.form_of(mode)
    beats = -(-program.flits // beat)
    load, unload = (beats * packets for packets in packet_counts(program, form))
    heard = levels(program.topology.nodes) + 1
    limit = max(run, load, unload)
    return limit / max(limit, (run + unload + heard) / 2, (load + run + heard - 2) / 2)


def packet_counts(program: Program, form: int) -> tuple[int, int]:
    """How many packets a node sends in a form, and how many it receives.

    One for each destination or offset, and from each origin or offset, or one.
    """
    blocks = program.part(form).schedule.blocks
    return blocks.goals, blocks.parts


def number_bits(program: Program) -> int:
    """Bits of the number of a packet: of a node, or of an offset."""
    counts = [max(packet_counts(program, form)) for form in range(len(program.forms))]
    return address_width(max(program.topology.nodes, *counts))


def section_bits(depth: int) -> int:
    """Bits of an address within a section of so many words.

    Examples
    --------
    >>> [section_bits(depth) for depth in (1, 4, 5)]
    [0, 2, 3]
    """
    return (depth - 1).bit_length()


def in_section(address: Value, depth: int, section: Value) -> Value:
    """An address of so many words in one of the sections of a memory."""
    bits = section_bits(depth)
    return Cat(address[:bits], Const(0, max(bits - len(address), 0)), section)


def levels(nodes: int) -> int:
    """Levels of the tree of readiness, at least one.

    Examples
    --------
    >>> levels(2), levels(16), levels(17)
    (1, 2, 3)
    """
    return max(len(merge_levels(nodes)), 1)


def least_beat(program: Program, width: int, *, fixed: bool = True) -> tuple[int, Program]:
    """Return the least beat that does not limit the runs, and the program for it.

    If every beat limits them, return the one with which they come most often.

    Parameters
    ----------
    width : int
        Bits of a flit.
    fixed : bool
        True if tables are fixed: then rows of memories have to suit the program.

    Examples
    --------
    A node receives 15 messages from others in 136 cycles, which takes two flits a word.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("4x4", "alltoall"), max_flits=16)
    >>> least_beat(program, 16)[0], program.cycles()
    (2, 134)
    """
    if program.any_length and program.of_beats is None:
        return program.form.beat, program  # a part of one that has its beat
    runs = [program.cycles(mode=mode) for mode in range(len(program.modes))]
    found = [(_slowness(program, 1, runs), 1, program)]
    for bits in count(1):
        beat = 1 << bits
        if found[-1][0] <= ALIKE or too_wide(program, width, beat):
            break
        wide = program.by_beats(beat)
        if not fixed or beat_fault(wide, beat) is None:
            found.append((_slowness(wide, beat, runs), beat, wide))
    least = min(slowness for slowness, _, _ in found)
    return next((beat, wide) for slowness, beat, wide in found if slowness <= ALIKE * least)


def _slowness(program: Program, beat: int, runs: Sequence[int]) -> float:
    """How much longer it takes from a run to the next than the runs of each mode alone, at most.

    What a node has for itself need not pass its ports at the same time.
    """
    found, beats = 0.0, -(-program.flits // beat)
    for mode, least in enumerate(runs):
        form, run = program.form_of(mode), program.cycles(mode=mode)
        packets = max(2, *packet_counts(program, form)) - 1
        found = max(found, max(run, beats * packets) / least)
    return found
