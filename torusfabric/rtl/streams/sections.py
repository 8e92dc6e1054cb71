"""How many messages a node holds on each side, and in which sections of its memories they lie.

A side holds a message from its first word loaded to the end of its run, or from the begin of a run
to its last word unloaded. With two of them a run comes every

    max(R, L, U, (R + U + u) / 2, (L + R + u - 2) / 2)

cycles, where R, L and U are those in which it runs, loads and unloads, and u, one more than the
levels of the tree of readiness, is what passes between nodes and control. Only where runs are very
short that is much more than the slowest of the three. With three of them it is as few as these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Value

from .packets import received_count, sent_count
from .readiness import levels

if TYPE_CHECKING:
    from ...program import Program

__all__ = ["SHARE", "Sections", "in_section", "section_bits", "sections_of", "share_with_two"]

#: The share of the rate that ports and links allow that is to be reached at least.
SHARE = 0.95


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
    if program.loaded:  # of whatever length runs may be
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
    load, unload = (beats * count(program, form) for count in (sent_count, received_count))
    heard = levels(program.topology.nodes) + 1
    limit = max(run, load, unload)
    return limit / max(limit, (run + unload + heard) / 2, (load + run + heard - 2) / 2)


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
