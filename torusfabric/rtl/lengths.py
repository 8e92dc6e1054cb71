"""The lengths of messages that a fabric is made for, and the blocks that they make.

A message of L flits in C chunks makes blocks of n = ceil(L / C) flits, or of n = R * ceil(L / RC)
where they go to several chunks by beats of R, a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Value

from ..program.fields import Loop
from .memories import TABLE_BITS, choose, look_up

__all__ = ["Lengths", "divided", "last_of_block", "last_of_form"]


@dataclass(frozen=True)
class Lengths:
    """The lengths that a fabric is made for.

    Parameters
    ----------
    most : int
        Flits of the longest message.
    chunks : tuple of int
        Of a message, in each form.
    beats : tuple of int
        Of each form, the flits that go to a chunk together; by default 1.

    Examples
    --------
    >>> lengths = Lengths(most=64, chunks=(2, 3))
    >>> lengths.bits, lengths.blocks
    (7, (32, 22))
    """

    most: int
    chunks: tuple[int, ...]
    beats: tuple[int, ...] = ()

    @property
    def cuts(self) -> list[tuple[int, int]]:
        """Of each form, the flits of a beat and the chunks."""
        return [*zip(self.beats or (1,) * len(self.chunks), self.chunks, strict=True)]

    @property
    def bits(self) -> int:
        """Bits of a length."""
        return self.most.bit_length()

    @property
    def blocks(self) -> tuple[int, ...]:
        """Flits of the longest block, in each form."""
        return tuple(beat * -(-self.most // (beat * chunks)) for beat, chunks in self.cuts)


def last_of_block(last: Value, beat: int, chunks: int) -> Value:
    """The number of the last flit of a block, given that of the last of a message."""
    bits = beat.bit_length() - 1
    if not bits or chunks == 1:
        return divided(last, chunks)
    return Cat(Const(beat - 1, bits), divided(last[bits:], chunks))


def last_of_form(
    loops: Sequence[Loop], cuts: Sequence[tuple[int, int]], last: Value, form: Value
) -> Value:
    """Return the number of the last flit of a block, given that of the last flit of a message.

    Parameters
    ----------
    loops : sequence of Loop
        One for each form.
    cuts : sequence of (int, int)
        For each form, the flits of a beat and the chunks of a message.
    """
    quotients = {cut: last_of_block(last, *cut) for cut in dict.fromkeys(cuts)}
    each = [
        Const(0) if loop.padded else quotients[cut] for loop, cut in zip(loops, cuts, strict=True)
    ]
    return choose(each, form)


def divided(value: Value, divisor: int) -> Value:
    """The quotient of a value of few bits and a constant, rounded down, at once.

    Examples
    --------
    A power of two drops bits; else it is looked up, or multiplied by a rounded reciprocal.

    >>> from amaranth.hdl import Signal
    >>> len(divided(Signal(6), 4)), len(divided(Signal(6), 3)), len(divided(Signal(7), 3))
    (4, 5, 6)
    """
    if not divisor & (divisor - 1):
        return value[divisor.bit_length() - 1 :]
    if len(value) <= TABLE_BITS:
        return look_up([number // divisor for number in range(1 << len(value))], value)
    # Exact while the error of the reciprocal, times the value, stays below a 1 / divisor.
    shift = len(value) + divisor.bit_length()
    reciprocal = -(-(1 << shift) // divisor)
    most = ((1 << len(value)) - 1) // divisor
    return (value * reciprocal)[shift:][: max(most.bit_length(), 1)]
