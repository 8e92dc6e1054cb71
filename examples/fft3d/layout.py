"""The order of the points of a cube in memories, pieces and packets, for elements and host.

Elements and nodes have coordinates (a, b, c), and P nodes are along each axis of the torus. All
sizes are powers of two, so the *digits* of an address or a counter are groups of its bits. Node
(a, b, c) has these points::

    before pass x  all x;               y = (a, b, digit);  z = (piece, c, digit, lane)
    before pass y  x = (a, b, digit);   all y;              z = (piece, c, digit, lane)
    before pass z  x = (a, b, digit);   y = (c, piece, digit, lane);   all z

After a pass, the coordinate along which it has transformed is a frequency with its bits reversed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Coordinates", "Layout", "X", "Y", "Z", "place_points", "reverse_bits"]

#: The passes, by their numbers.
X, Y, Z = range(3)


def reverse_bits(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers with their lowest `bits` bits in reverse order."""
    digits = [(numbers >> bit & 1) << (bits - 1 - bit) for bit in range(bits)]
    return np.asarray(sum(digits, np.zeros_like(numbers)))


class Layout(NamedTuple):
    """The order of the points in memories, pieces and packets; all numbers are powers of two.

    Parameters
    ----------
    points : int
        The number N of points along each axis of the cube.
    side : int
        The number P of nodes along each axis of the torus.
    pieces : int
        The number K of pieces of each pass.
    lanes : int
        The number R of points of a word.
    """

    points: int
    side: int
    pieces: int
    lanes: int

    @property
    def wide(self) -> int:
        """The number m of points of a node along an axis that P nodes divide."""
        return self.points // self.side

    @property
    def narrow(self) -> int:
        """The number q of points of a node along an axis that P^2 nodes divide."""
        return self.points // self.side**2

    @property
    def channels(self) -> int:
        """The number of interleaved pencils of each lane."""
        return self.narrow * self.wide // self.pieces // self.lanes

    @property
    def piece_words(self) -> int:
        """The words of a piece."""
        return self.points * self.channels

    @property
    def words(self) -> int:
        """The words of a memory."""
        return self.pieces * self.piece_words

    @property
    def packet_words(self) -> tuple[int, int]:
        """The words of a packet after pass x, and after pass y."""
        return self.narrow * self.channels, self.wide * self.channels

    def digits(self, transform: int) -> tuple[list[tuple[str, int]], list[str]]:
        """Return the digits of an address, and those of a counter of the words of a pass.

        The highest digit is first. Each digit of an address has its name and its size. In pass z
        the digit `low` of the address is a part of y, and that of the counter is a part of z.
        """
        n, p, q, k = self.points, self.side, self.narrow, self.pieces
        high = self.wide // k // self.lanes
        if transform == X:
            return [("piece", k), ("x", n), ("y", q), ("high", high)], ["piece", "x", "y", "high"]
        if transform == Y:
            sizes = [("piece", k), ("origin", p * p), ("x", q), ("y", q), ("high", high)]
            return sizes, ["piece", "origin", "y", "x", "high"]
        sizes = [("z", k), ("origin", p), ("piece", k), ("y", high), ("low", self.lanes), ("x", q),
                 ("high", high)]  # fmt: skip
        return sizes, ["piece", "z", "origin", "high", "low", "y", "x"]

    def address_bits(self, transform: int) -> list[int]:
        """Return, for each bit of an address in a pass, the bit of the counter that it is."""
        sizes, order = self.digits(transform)
        bits, first, position = {name: (size - 1).bit_length() for name, size in sizes}, {}, 0
        for name in reversed(order):
            first[name] = position
            position += bits[name]
        return [first[name] + bit for name, _ in reversed(sizes) for bit in range(bits[name])]

    def low_bits(self, transform: int, *, of_address: bool = False) -> list[int]:
        """Return the bits of the digit `low` in the counter, or in the address, of a pass."""
        sizes, order = self.digits(transform)
        if "low" not in order:
            return []
        names = [name for name, _ in sizes] if of_address else order
        below = names[names.index("low") + 1 :]
        shift = sum((size - 1).bit_length() for name, size in sizes if name in below)
        return [shift + bit for bit in range((self.lanes - 1).bit_length())]

    def places(self, transform: int) -> tuple[np.ndarray, np.ndarray]:
        """Return address and bank of each point of a pass, both of shape (words, lanes)."""
        count, lane = np.arange(self.words)[:, None], np.arange(self.lanes)[None, :]
        address = sum((count >> bit & 1) << k for k, bit in enumerate(self.address_bits(transform)))
        low, slot = self.low_bits(transform), self.low_bits(transform, of_address=True)
        if not low:
            return address + 0 * lane, lane + 0 * count
        mask = (self.lanes - 1) << slot[0]
        return (address & ~mask) | lane << slot[0], lane ^ (count >> low[0] & (self.lanes - 1))


class Coordinates(NamedTuple):
    """The coordinates of each point of each memory, arrays of the shape (nodes, words, banks)."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray


def place_points(layout: Layout) -> tuple[Coordinates, Coordinates]:
    """Return the coordinates of the points before pass x, and of those after pass z."""
    node = np.arange(layout.side**3)[:, None, None]
    group, last = node // layout.side, node % layout.side
    lane = np.arange(layout.lanes)[None, None, :]
    found = []
    for transform in (X, Z):
        sizes, order = layout.digits(transform)
        rest, digit = np.arange(layout.words)[None, :, None], dict[str, np.ndarray]()
        for name in reversed(order):
            rest, digit[name] = np.divmod(rest, dict(sizes)[name])

        n, p, q, m = layout.points, layout.side, layout.narrow, layout.wide
        k, r = layout.pieces, layout.lanes
        high = m // k // r
        bits = (n - 1).bit_length()
        if transform == X:
            x = _join((digit["x"], n))
            y = _join((group, p * p), (digit["y"], q))
            z = _join((digit["piece"], k), (last, p), (digit["high"], high), (lane, r))
        else:
            x = _join((group, p * p), (digit["x"], q))
            y = _join((last, p), (digit["piece"], k), (digit["y"], high), (lane, r))
            z = _join(
                (digit["z"], k), (digit["origin"], p), (digit["high"], high), (digit["low"], r)
            )
            x, y, z = (reverse_bits(each, bits) for each in (x, y, z))
        address, bank = layout.places(transform)
        placed = np.empty((3, layout.side**3, layout.words, layout.lanes), int)
        for axis, each in enumerate((x, y, z)):
            placed[axis][:, address, bank] = each
        found.append(Coordinates(*placed))
    return found[0], found[1]


def _join(*digits: tuple[np.ndarray, int]) -> np.ndarray:
    """Return the numbers with some digits, each given with its size, the highest first."""
    total = np.zeros(1, int)
    for value, size in digits:
        total = total * size + value
    return total
