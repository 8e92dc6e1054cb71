"""The length of a run: what the sequencer keeps of it.

A message of L flits in C chunks makes blocks of n = ceil(L / C) flits. Addresses leave room for N
flits a block, so that from the last flit of a block to the first of the next the address grows by
N - (n - 1).
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal, Value

from ..program.values import Loop
from .memories import address_width

__all__ = ["Lengths", "RunLength", "divided"]


@dataclass(frozen=True)
class Lengths:
    """The lengths that a fabric is made for.

    Parameters
    ----------
    most : int
        Flits of the longest message.
    chunks : int
        Of a message.

    Examples
    --------
    >>> lengths = Lengths(most=64, chunks=2)
    >>> lengths.bits, lengths.block
    (7, 32)
    """

    most: int
    chunks: int

    @property
    def bits(self) -> int:
        """Bits of a length."""
        return self.most.bit_length()

    @property
    def block(self) -> int:
        """Flits of the longest block."""
        return -(-self.most // self.chunks)


def divided(value: Value, divisor: int) -> Value:
    """The quotient of a value of few bits and a constant, rounded down.

    Examples
    --------
    A power of two drops bits; else the value is multiplied by a rounded reciprocal.

    >>> len(divided(Signal(6), 4)), len(divided(Signal(6), 3))
    (4, 5)
    """
    if not divisor & (divisor - 1):
        return value[divisor.bit_length() - 1 :]
    # Exact while the error of the reciprocal, times the value, stays below a 1 / divisor.
    shift = len(value) + divisor.bit_length()
    reciprocal = -(-(1 << shift) // divisor)
    most = ((1 << len(value)) - 1) // divisor
    return (value * reciprocal)[shift:][: max(most.bit_length(), 1)]


class RunLength:
    """Registers that hold what follows from the length of the run under way.

    Parameters
    ----------
    m : Module
    lengths : Lengths
    loop : Loop
    length : Value
    begin : Value
        High in the cycle in which a run is accepted.

    Attributes
    ----------
    last : Signal
        The number of the last flit of a block.
    skip : Signal
        From the address of the last flit of a block to that of the first of the next.
    idle : Signal
        Cycles of a row besides those of its blocks, where rows have a least duration.
    """

    def __init__(
        self, m: Module, lengths: Lengths, loop: Loop, length: Value, begin: Value
    ) -> None:
        block, least = lengths.block, loop.least
        last = divided((length - 1)[: lengths.bits], lengths.chunks)
        self.last = Signal(address_width(block), reset_less=True)
        self.skip = Signal(range(block + 1), reset_less=True)
        self.idle = Signal(range(max(least, 2)), reset_less=True)
        with m.If(begin):
            m.d.sync += [self.last.eq(last), self.skip.eq(block - last)]
            if least > 1:
                m.d.sync += self.idle.eq(Mux(last < least - 1, least - 1 - last, 0))
