"""How many flits a word of the streams of nodes has: as many as arrive, where a port is the limit.

A node's links bring up to as many flits a cycle as it has ports. A stream whose words are *beats*
of several flits takes them in as few cycles as the run. Memories of what is sent have rows of a
beat, which are written as a whole and read flit by flit; copies of what is received that are
unloaded have such rows, too, and are written flit by flit.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from ...errors import InputError
from ...toolchain.values import natural
from .packets import packets_received, packets_sent, received_count, sent_count

if TYPE_CHECKING:
    from ...program import Program

__all__ = ["AUTO", "chosen_beat"]

#: The least beat that does not limit runs.
AUTO = "auto"

#: The most bits of a word of a stream.
MOST_BITS = 1024


def chosen_beat(program: Program, width: int, beat: int | str) -> int:
    """The flits of a stream word.

    Parameters
    ----------
    width : int
        Bits of a flit.
    beat : int or "auto"
        As many, or the least power of two with which ports do not limit the runs of the longest
        messages; or the widest that the program allows, where they always do.

    Raises
    ------
    InputError
        If the beat is no power of two, or the program does not allow it.

    Examples
    --------
    A node receives 15 messages from others in 136 cycles, which takes two flits a word.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("4x4", "alltoall"), max_flits=16)
    >>> chosen_beat(program, 16, "auto"), program.cycles()
    (2, 136)
    """
    if beat == AUTO:
        return _least(program, width)
    flits = natural("Beat", beat)
    if flits < 1 or flits.bit_count() != 1:
        raise InputError(f"Beat must be auto or a power of two, not {beat}")
    if reason := _misfit(program, width, flits):
        raise InputError(f"Beat must be {reason}, not {beat}")
    return flits


def _least(program: Program, width: int) -> int:
    """The least beat that does not limit the runs, or the widest that there may be."""
    fitting = 1
    for bits in count():
        beat = 1 << bits
        if beat > program.flits or beat * width > MOST_BITS:
            return fitting
        if _misfit(program, width, beat) is None:
            fitting = beat
            if not _limits(program, beat):
                return fitting
    raise AssertionError("a beat is no longer than a message")


def _misfit(program: Program, width: int, beat: int) -> str | None:
    """What a beat would have to be, if a program does not allow it."""
    if beat == 1:
        return None
    if program.any_root:
        return "1 where the root is chosen for each run"
    if width % 8:
        return f"1 for flits of {width} bits, which are no whole bytes"
    if beat > program.flits:
        return f"at most the {program.flits} flits of a message"
    if beat * width > MOST_BITS:
        return f"at most {max(MOST_BITS // width, 1)}, so that words have up to {MOST_BITS} bits"
    forms = range(len(program.forms))
    received = [packets_received(program, form) for form in forms]
    if len({each.pitch for each in received}) > 1:
        return "1 for collectives that lie differently in memories"
    for form, came in zip(forms, received, strict=True):
        if not (came.fits(beat) and packets_sent(program, form).fits(beat)):
            blocks = program.part(form).block_flits
            return f"1, or what divides all blocks of messages, such as those of {blocks} flits"
    return None


def _limits(program: Program, beat: int) -> bool:
    """Whether the longest messages take longer at ports than in runs, but for a node's own."""
    by_beats = program.by_beats(beat)
    for mode in range(len(program.modes)):
        form, beats = program.form_of(mode), -(-program.flits // beat)
        for packets in (sent_count(program, form), received_count(program, form)):
            if beats * max(packets - 1, 1) > by_beats.cycles(mode=mode):
                return True
    return False
