"""How many flits a word of the streams of nodes has: as many as arrive, where a port is the limit.

A node's links bring up to as many flits a cycle as it has ports. A stream whose words are *beats*
of several flits takes them in as few cycles as the run. Memories of what is sent have rows of a
beat, which are written as a whole and read flit by flit; copies of what is received that are
unloaded have such rows, too, and are written flit by flit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

from ...errors import InputError
from ...toolchain.values import natural
from .packets import packets_received, packets_sent, received_count, sent_count

if TYPE_CHECKING:
    from ...program import Program

__all__ = ["AUTO", "by_beats"]

#: The beat with which ports limit runs the least.
AUTO = "auto"

#: The most bits of a word of a stream.
MOST_BITS = 1024

#: A narrower beat is taken if runs come so much as often, or nearly.
ALIKE = 1.02


def by_beats(program: Program, width: int, beat: int | str) -> tuple[int, Program]:
    """The flits of a stream word, and the program whose messages go to chunks by as many.

    Parameters
    ----------
    width : int
        Bits of a flit.
    beat : int or "auto"
        As many, or the least power of two with which ports do not limit the runs of the longest
        messages; or that with which they come the most often, where none does.

    Raises
    ------
    InputError
        If the beat is no power of two, or the program does not allow it.

    Examples
    --------
    A node receives 15 messages from others in 136 cycles, which takes two flits a word.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("4x4", "alltoall"), max_flits=16)
    >>> by_beats(program, 16, "auto")[0], program.cycles()
    (2, 136)
    """
    if beat == AUTO:
        return _chosen(program, width)
    flits = natural("Beat", beat)
    if flits < 1 or flits.bit_count() != 1:
        raise InputError(f"Beat must be auto or a power of two, not {beat}")
    reason = _too_wide(program, width, flits)
    if reason is None:
        program = program.by_beats(flits)
        reason = _misfit(program, flits)
    if reason is not None:
        raise InputError(f"Beat must be {reason}, not {beat}")
    return flits, program


def _chosen(program: Program, width: int) -> tuple[int, Program]:
    """The least beat that does not limit the runs, or that with which they come most often."""
    if program.any_length and program.of_beats is None:
        return program.form.beat, program  # a part of one that has its beat
    runs = [program.cycles(mode=mode) for mode in range(len(program.modes))]
    found = [(_slowness(program, 1, runs), 1, program)]
    for bits in count(1):
        beat = 1 << bits
        if found[-1][0] <= ALIKE or _too_wide(program, width, beat):
            break
        wide = program.by_beats(beat)
        if _misfit(wide, beat) is None:
            found.append((_slowness(wide, beat, runs), beat, wide))
    least = min(slowness for slowness, _, _ in found)
    return next((beat, wide) for slowness, beat, wide in found if slowness <= ALIKE * least)


def _too_wide(program: Program, width: int, beat: int) -> str | None:
    """What a beat would have to be, if messages or words of streams are too short for it."""
    if beat == 1:
        return None
    if width % 8:
        return f"1 for flits of {width} bits, which are no whole bytes"
    if beat > program.flits:
        return f"at most the {program.flits} flits of a message"
    if beat * width > MOST_BITS:
        return f"at most {max(MOST_BITS // width, 1)}, so that words have up to {MOST_BITS} bits"
    return None


def _misfit(program: Program, beat: int) -> str | None:
    """What a beat would have to be, if it does not fit the memories of its program."""
    forms = range(len(program.forms))
    received = [packets_received(program, form) for form in forms]
    if beat > 1 and len({each.pitch for each in received}) > 1:
        return "1 for collectives that lie differently in memories"
    for form, came in zip(forms, received, strict=True):
        if not (came.fits(beat) and packets_sent(program, form).fits(beat)):
            blocks = program.part(form).block_flits
            return f"1, or what divides all blocks of messages, such as those of {blocks} flits"
    return None


def _slowness(program: Program, beat: int, runs: Sequence[int]) -> float:
    """How much longer it takes from a run to the next than the runs of each mode alone, at most.

    What a node has for itself need not pass its ports at the same time.
    """
    found, beats = 0.0, -(-program.flits // beat)
    for mode, least in enumerate(runs):
        form, run = program.form_of(mode), program.cycles(mode=mode)
        packets = max(sent_count(program, form), received_count(program, form))
        found = max(found, max(run, beats * max(packets - 1, 1)) / least)
    return found
