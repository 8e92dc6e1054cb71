"""Choice of the number of sections and of the beat, so that streams do not slow down the runs.

The *loader* of a node takes messages from the user and writes them into memories; the *unloader*
reads received words from memories and sends them to the user. A *section* is one of some equal
parts of each memory, for the data of one run. The *readiness tree* is the logic that combines the
states of all nodes; the *control* starts a run when all are ready.

*Buffers.* A buffer is the space for the data of one run at a node. One of the loader holds a
message from its first loaded word to the end of its run. One of the unloader is occupied from the
begin of a run until the last received word has been unloaded. Let

- R, L, U be the cycles in which a message runs, is loaded, and is unloaded;
- u be the levels of the readiness tree plus 1, the delay between nodes and control.

With two buffers on each side a run begins every ::

    max(R, L, U, (R + U + u) / 2, (L + R + u - 2) / 2)

cycles, with three buffers every ``max(R, L, U)`` cycles. The difference is large only for very
short runs. Two buffers need two sections of a memory, three need four (a power of two).

*Beat.* The links of a node deliver up to one flit a cycle at each port. A stream with one flit a
word would then take longer than the run. A stream whose words are beats of several flits keeps up.
A row of a send memory is one beat; it is written as a whole, and read flit by flit. Unloaders read
copies of the receive memories, which have rows of one beat, too. These are written flit by flit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Cat, Const, Value

from ...rtl.distribution import tree_level_sizes
from ...rtl.flit_rows import exceeded_limit, unsupported_beat_reason
from ...rtl.memories import address_width

if TYPE_CHECKING:
    from ...program import Program
    from ...topology import IntArray, Topology

__all__ = ["LEAST_SHARE", "Sections", "address_in_section", "least_beat", "tree_levels",
           "stream_id_bits", "packet_counts", "port_cycles", "section_bits", "choose_sections",
           "rate_share_with_two"]  # fmt: skip

#: Least rate of runs, as a share of the rate that ports and links allow, with which two buffers
#: are enough.
LEAST_SHARE = 0.95

#: A narrower beat is preferred if it makes the time between runs longer by at most this factor.
SLOWDOWN_TOLERANCE = 1.02


@dataclass(frozen=True)
class Sections:
    """The division of memories into sections: equal parts, each for the data of one run.

    Message k, and its run, use section k modulo `n_sections`. The count is a power of two, so that
    the section number is the upper bits of an address.

    Parameters
    ----------
    buffers : int
        Messages that a loader, or an unloader, holds at a time: 2 or 3.

    Examples
    --------
    Two buffers need two sections, three buffers need four. A message number has one bit more than a
    section number.

    >>> two, three = Sections(2), Sections(3)
    >>> two.n_sections, two.section_number_bits, two.message_number_bits
    (2, 1, 2)
    >>> three.n_sections, three.section_number_bits, three.message_number_bits
    (4, 2, 3)
    """

    buffers: int = 2

    @property
    def section_number_bits(self) -> int:
        """Bits of the number of a section: one of some equal parts of each memory."""
        return (self.buffers - 1).bit_length()

    @property
    def n_sections(self) -> int:
        """Number of sections: equal parts of each memory, each for the data of one run."""
        return 1 << self.section_number_bits

    @property
    def message_number_bits(self) -> int:
        """Bits of the number by which a node distinguishes the messages that it holds."""
        return self.section_number_bits + 1

    @property
    def has_two_sections(self) -> bool:
        """True for two sections; the lowest bit of a run number is then its section."""
        return self.n_sections == 2

    def section_of(self, number: Value) -> Value:
        """Return a signal with the section of a run or message: the lowest bits of its number."""
        return number[: self.section_number_bits]

    def next_section(self, section: Value, step: Value | None = None) -> Value:
        """Return the number of the section after `section`; while `step` is 0, return `section`."""
        if self.has_two_sections:
            return ~section if step is None else section ^ step
        return (section + (1 if step is None else step))[: self.section_number_bits]


def choose_sections(program: Program, beat: int = 1) -> Sections:
    """Return the division of memories into sections: two, or four if two slow down runs too much.

    A section is a part of each memory for the data of one run. While one run is executed, messages
    of the next are loaded into another section.

    Two sections suffice if the rate of runs is at least `LEAST_SHARE` of the rate with unlimited
    sections.

    A fabric with loadable tables has two sections, because its runs may change. If runs choose
    their length, the longest messages decide.

    Parameters
    ----------
    program : Program
        The program of the fabric.
    beat : int
        Flits that a stream moves in a cycle.

    Examples
    --------
    Runs with messages of one flit are so short that they need four sections; with two flits, two
    suffice.

    >>> import torusfabric as tf
    >>> gather = tf.plan("2x2x2", "allgather", algorithm="matching")
    >>> [choose_sections(tf.compile(gather, flits=flits)).n_sections for flits in (1, 2)]
    [4, 2]
    """
    if program.writable:
        return Sections()
    shares = [rate_share_with_two(program, mode, beat) for mode in range(len(program.modes))]
    return Sections(2 if min(shares) >= LEAST_SHARE else 3)


def rate_share_with_two(program: Program, mode: int = 0, beat: int = 1) -> float:
    """Return the rate of runs with two sections, divided by the rate with unlimited sections.

    A section is a part of each memory for the data of one run; with few sections, a run has to wait
    until an earlier one has been unloaded.

    The result is at most 1.

    Parameters
    ----------
    program : Program
        The program of the fabric; its longest messages are considered.
    mode : int
        Mode of the runs.
    beat : int
        Flits that a stream moves in a cycle.

    Examples
    --------
    A run takes 8 cycles, in which a node loads one word and unloads 8. With two sections a run
    begins every 9.5 cycles, with more every 8.

    >>> import torusfabric as tf
    >>> gather = tf.plan("2x2x2", "allgather", algorithm="matching")
    >>> round(rate_share_with_two(tf.compile(gather, flits=1)), 3)
    0.842
    """
    run, form = program.cycles(mode=mode), program.form_of(mode)
    load, unload = port_cycles(program, form, beat)
    heard = tree_levels(len(stream_nodes(program.topology))) + 1
    limit = max(run, load, unload)
    return limit / max(limit, (run + unload + heard) / 2, (load + run + heard - 2) / 2)


def port_cycles(program: Program, form: int, beat: int, *, own: bool = True) -> tuple[int, int]:
    """Return two numbers: the cycles in which the busiest node loads, and unloads, its packets.

    Parameters
    ----------
    program : Program
        The program of the fabric; its longest messages are considered.
    form : int
        Number of the form of the run.
    beat : int
        Flits that a stream moves in a cycle.
    own : bool
        False to leave out the shortest of several packets, in place of that of a node to itself.

    Examples
    --------
    Node 0 sends packets of 3 and 1 flits, and receives packets of 3 and 2 flits.

    >>> import torusfabric as tf
    >>> plan = tf.plan("2", "alltoall", counts=[[3, 1], [2, 0]])
    >>> port_cycles(tf.compile(plan), 0, 1)
    (4, 5)
    """
    blocks, found = program.part(form).schedule.blocks, list[int]()
    for packets, lengths in zip(
        packet_counts(program, form), (blocks.sent_lengths, blocks.received_lengths), strict=True
    ):
        if lengths is None:
            lengths = np.full((1, packets), program.flits)
        beats = -(-lengths // beat)
        if not own and packets > 1:
            beats = np.sort(beats, axis=1)[:, 1:]
        found.append(int(beats.sum(axis=1).max()))
    return found[0], found[1]


def packet_counts(program: Program, form: int) -> tuple[int, int]:
    """Return two numbers: the packets that a node sends, and those that it receives, in a run.

    `form` is the number of the form of the run. In an all-to-all, there is one packet for each
    destination, and one from each origin; in an exchange, one for each offset; in a broadcast, one
    packet.
    """
    blocks = program.part(form).schedule.blocks
    return blocks.messages_per_origin, blocks.messages_per_receiver


def stream_id_bits(program: Program) -> int:
    """Return the bits of the stream signals `tdest` and `tid`.

    Both contain the number of a node or, in an exchange, the number of an offset in its list.
    """
    counts = [max(packet_counts(program, form)) for form in range(len(program.forms))]
    return address_width(max(program.topology.nodes, *counts))


def section_bits(depth: int) -> int:
    """Return the bits of an address within a section: a part of a memory with `depth` words.

    Examples
    --------
    Sections of one, four and five words:

    >>> [section_bits(depth) for depth in (1, 4, 5)]
    [0, 2, 3]
    """
    return (depth - 1).bit_length()


def address_in_section(address: Value, depth: int, section: Value) -> Value:
    """Return the memory address of a word: its section, then its address within the section.

    A section is a part of a memory with `depth` words. For ``depth=4``, address 3 in section 1 is
    address 7 of the memory.
    """
    bits = section_bits(depth)
    return Cat(address[:bits], Const(0, max(bits - len(address), 0)), section)


def stream_nodes(topology: Topology) -> IntArray:
    """Return the nodes with streams, ascending: all but those that only relay."""
    return np.setdiff1d(np.arange(topology.nodes), topology.relays)


def tree_levels(nodes: int) -> int:
    """Return the levels of the tree that combines the readiness of `nodes` nodes, at least one.

    Examples
    --------
    A module of the tree combines up to four nodes, or modules of the level below.

    >>> tree_levels(2), tree_levels(16), tree_levels(17)
    (1, 2, 3)
    """
    return max(len(tree_level_sizes(nodes)), 1)


def least_beat(program: Program, width: int, *, fixed: bool = True) -> tuple[int, Program]:
    """Return the smallest beat with which streams do not slow down runs, and a program for it.

    A beat is the flits that a stream moves in a cycle. If streams slow down runs with every beat,
    the result is the beat with the highest rate of runs. The returned program executes the same
    schedules as `program`, with memories whose words are beats.

    Parameters
    ----------
    program : Program
        The program of the fabric; its longest messages are considered.
    width : int
        Bits of a flit.
    fixed : bool
        True if tables are fixed. Beats that the memories of the program cannot hold are then
        excluded.

    Examples
    --------
    A node receives 15 messages of 16 flits, 240 flits in all, in 134 cycles. So a beat must have
    two flits.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("4x4", "alltoall"), max_flits=16)
    >>> least_beat(program, 16)[0], program.cycles()
    (2, 134)
    """
    if program.any_length and program.of_beats is None:
        return program.form.beat, program  # the beat of this program is chosen already
    runs = [program.cycles(mode=mode) for mode in range(len(program.modes))]
    found = [(_relative_slowdown(program, 1, runs), 1, program)]
    for bits in count(1):
        beat = 1 << bits
        if found[-1][0] <= SLOWDOWN_TOLERANCE or exceeded_limit(program, width, beat):
            break
        wide = program.by_beats(beat)
        if not fixed or unsupported_beat_reason(wide, beat) is None:
            found.append((_relative_slowdown(wide, beat, runs), beat, wide))
    least = min(slowness for slowness, _, _ in found)
    return next(
        (beat, wide) for slowness, beat, wide in found if slowness <= SLOWDOWN_TOLERANCE * least
    )


def _relative_slowdown(program: Program, beat: int, runs: Sequence[int]) -> float:
    """Return the factor by which streams with a beat slow down consecutive runs; 1 for none.

    `runs` has the cycles of a run of each mode with beat 1. The factor of a mode is the number of
    cycles from one run to the next with `beat`, divided by this number. The result is the largest
    factor of all modes. The packet of a node to itself is not counted, because it can pass through
    the stream at another time.
    """
    found = 0.0
    for mode, least in enumerate(runs):
        form, run = program.form_of(mode), program.cycles(mode=mode)
        found = max(found, max(run, *port_cycles(program, form, beat, own=False)) / least)
    return found
