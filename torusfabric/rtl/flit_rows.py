"""How flits lie in memories that are written or read from outside by beats of several flits."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Cat, Value

from ..topology import IntArray
from .memories import WritePort, fitting

__all__ = ["FlitRows"]


class FlitRows(NamedTuple):
    """A memory whose rows are beats: flits of a block that follow one another, side by side.

    Parameters
    ----------
    beat : int
        Flits of a row, a power of two.
    pitch : int
        From the address of a flit of a block to that of the next, a power of two if rows have
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
        """Bits of the number of a flit in its row."""
        return self.beat.bit_length() - 1

    def depth(self, words: int) -> int:
        """Rows of a memory of so many flits."""
        if self.beat == 1:
            return words
        return -(-words // (self.beat * self.pitch)) * self.pitch

    def split(self, address: IntArray) -> tuple[IntArray, IntArray]:
        """The row of an address, and which of its flits it is."""
        turn, low = address // self.pitch, address % self.pitch
        return turn // self.beat * self.pitch + low, turn % self.beat

    def parts(self, address: Value) -> tuple[Value, Value]:
        """The same in hardware; the number of the flit has no bits where rows have one."""
        if self.beat == 1:
            return address, address[:0]
        low = self.pitch.bit_length() - 1
        address = fitting(address, max(len(address), low + self.bits + 1))
        row = Cat(address[:low], address[low + self.bits :])
        return row, address[low : low + self.bits]

    def written(self, port: WritePort) -> WritePort:
        """What is written flit by flit, into rows."""
        if self.beat == 1:
            return port
        row, flit = self.parts(port.address)
        enable = Cat(*(port.enable & (flit == k) for k in range(self.beat)))
        return WritePort(row, port.data.replicate(self.beat), enable)
