"""The length of the blocks of a message, for fabrics whose runs choose the length of messages.

A message of L flits in C chunks has blocks of n = ceil(L / C) flits. If a message is divided by
beats of R flits (a power of two), its blocks have n = R * ceil(L / RC) flits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Value

from ..program.fields import Loop
from .memories import QUOTIENT_KEY_BITS, choose_value, look_up

__all__ = ["Lengths", "divide_by_constant", "last_flit_of_block", "last_flit_of_form"]


@dataclass(frozen=True)
class Lengths:
    """The lengths of messages that runs of a fabric may have, and those of their blocks.

    Parameters
    ----------
    most : int
        Flits of the longest message.
    chunks : tuple of int
        Number of chunks of a message, for each form.
    beats : tuple of int
        Flits of a beat, for each form; by default 1.

    Examples
    --------
    The messages of form 0 have two chunks, and those of form 1 three.

    >>> lengths = Lengths(most=64, chunks=(2, 3))
    >>> lengths.length_bits, lengths.beats_and_chunks
    (7, [(1, 2), (1, 3)])
    """

    most: int
    chunks: tuple[int, ...]
    beats: tuple[int, ...] = ()

    @property
    def beats_and_chunks(self) -> list[tuple[int, int]]:
        """For each form, the flits of a beat and the number of chunks: ``[(1, 2), (1, 3)]``."""
        return [*zip(self.beats or (1,) * len(self.chunks), self.chunks, strict=True)]

    @property
    def length_bits(self) -> int:
        """Bits of a number of flits from 0 to `most`."""
        return self.most.bit_length()


def last_flit_of_block(last: Value, beat: int, chunks: int) -> Value:
    """Return the number of the last flit of a block, from 0, as a signal.

    `last` is the number of the last flit of the message. The message is cut into `chunks` blocks,
    and blocks consist of whole beats of `beat` flits.
    """
    bits = beat.bit_length() - 1
    if not bits or chunks == 1:
        return divide_by_constant(last, chunks)
    return Cat(Const(beat - 1, bits), divide_by_constant(last[bits:], chunks))


def last_flit_of_form(
    loops: Sequence[Loop], cuts: Sequence[tuple[int, int]], last: Value, form: Value
) -> Value:
    """Return the number of the last flit of a block in the form of a run, as a signal.

    Parameters
    ----------
    loops : sequence of Loop
        The rows of each form.
    cuts : sequence of (int, int)
        Flits of a beat and number of chunks, for each form.
    last : Value
        The number of the last flit of the message, from 0.
    form : Value
        The number of the form that the run executes.
    """
    quotients = {cut: last_flit_of_block(last, *cut) for cut in dict.fromkeys(cuts)}
    each = [
        Const(0) if loop.padded else quotients[cut] for loop, cut in zip(loops, cuts, strict=True)
    ]
    return choose_value(each, form)


def divide_by_constant(value: Value, divisor: int) -> Value:
    """Return the quotient of a value and a constant, rounded down, in the same cycle.

    Division by a power of two drops bits. Otherwise a value of up to `QUOTIENT_KEY_BITS` bits is
    looked up in a table, and a longer value is multiplied by a rounded reciprocal.

    Parameters
    ----------
    value : Value
        The dividend, an unsigned number.
    divisor : int
        The constant, at least 1.

    Examples
    --------
    The quotient has only the bits that its largest value needs.

    >>> from amaranth.hdl import Signal
    >>> [len(divide_by_constant(Signal(bits), by)) for bits, by in ((6, 4), (6, 3), (7, 3))]
    [4, 5, 6]
    """
    if not divisor & (divisor - 1):
        return value[divisor.bit_length() - 1 :]
    if len(value) <= QUOTIENT_KEY_BITS:
        return look_up([number // divisor for number in range(1 << len(value))], value)
    # The product is exact as long as value times the error of the reciprocal is below 1 / divisor.
    shift = len(value) + divisor.bit_length()
    reciprocal = -(-(1 << shift) // divisor)
    most = ((1 << len(value)) - 1) // divisor
    return (value * reciprocal)[shift:][: max(most.bit_length(), 1)]
