"""Rows of flits: how the words of a memory lie that is written or read several flits at a time.

Flits of a block that follow one another, a *beat*, lie side by side in a row::

    row  | flit 3 | flit 2 | flit 1 | flit 0 |   of a memory with beat 4 and pitch 1
    0    |      3 |      2 |      1 |      0 |   addresses
    1    |      7 |      6 |      5 |      4 |
"""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Value

from ..topology import IntArray
from .memories import WritePort, fitting

__all__ = ["FlitRows"]


class FlitRows(NamedTuple):
    """The layout of a memory whose rows are beats.

    Parameters
    ----------
    beat : int
        Flits of a row, a power of two.
    pitch : int
        Distance of the addresses of two successive flits of a block, a power of two if rows have
        several flits.

    Examples
    --------
    >>> import numpy as np
    >>> row, flit = FlitRows(beat=4, pitch=4).split(np.array([0, 1, 4, 5, 16, 17]))
    >>> row.tolist(), flit.tolist()
    ([0, 1, 0, 1, 4, 5], [0, 0, 1, 1, 0, 0])
    """

    beat: int = 1
    pitch: int = 1

    @property
    def bits(self) -> int:
        """Number of bits that select a flit of a row."""
        return self.beat.bit_length() - 1

    def depth(self, words: int) -> int:
        """Return the number of rows of a memory, given its flits."""
        if self.beat == 1:
            return words
        return -(-words // (self.beat * self.pitch)) * self.pitch

    def split(self, address: IntArray) -> tuple[IntArray, IntArray]:
        """Return the row of an address, and the number of the flit in the row."""
        turn, low = address // self.pitch, address % self.pitch
        return turn // self.beat * self.pitch + low, turn % self.beat

    def split_signal(self, address: Value) -> tuple[Value, Value]:
        """Return the row of an address, and the number of the flit; no bits if rows have one."""
        if self.beat == 1:
            return address, address[:0]
        low = self.pitch.bit_length() - 1
        address = fitting(address, max(len(address), low + self.bits + 1))
        row = Cat(address[:low], address[low + self.bits :])
        return row, address[low : low + self.bits]

    def write_flit(self, port: WritePort) -> WritePort:
        """Return the write port of rows, given that of flits: one enable for each flit of a row."""
        if self.beat == 1:
            return port
        row, flit = self.split_signal(port.address)
        enable = Cat(*(port.enable & (flit == k) for k in range(self.beat)))
        return WritePort(row, port.data.replicate(self.beat), enable)
