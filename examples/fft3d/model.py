"""The fixed-point transform of the elements in numpy, equal to the hardware in every bit.

A point has a real and an imaginary part of `BITS` bits each. A stage halves sums and differences,
and rounds them; so the transform of N points is divided by N. Products with twiddle factors are
rounded, too. Nothing overflows if every point has an absolute value of less than 2^15 - 64.
"""

from __future__ import annotations

import numpy as np

from fft3d.layout import reverse_bits

__all__ = ["BITS", "FRACTION", "transform_cube", "transform_rows", "twiddles"]

#: Bits of the real part, and of the imaginary part, of a point.
BITS = 16

#: Bits after the binary point of a twiddle factor; it has two more.
FRACTION = 16


def twiddles(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return real and imaginary parts of exp(-2 pi i k / points), k < points / 2, as integers."""
    factors = np.exp(-2j * np.pi * np.arange(points // 2) / points) * (1 << FRACTION)
    return np.rint(factors.real).astype(int), np.rint(factors.imag).astype(int)


def transform_rows(points: np.ndarray) -> np.ndarray:
    """Return the fixed-point transform along the last axis, as the element computes it.

    Parameters
    ----------
    points : ndarray of int, shape (2, .., N)
        Real and imaginary parts.
    """
    size = points.shape[-1]
    blocks = points
    length = size
    while length > 1:
        half = length // 2
        pairs = blocks.reshape(*points.shape[:-1], size // length, 2, half)
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        sums, (r, i) = (a + b + 1) >> 1, (a - b + 1) >> 1
        if length > 2:
            w_r, w_i = twiddles(length)
            one = 1 << FRACTION - 1
            r, i = (r * w_r - i * w_i + one) >> FRACTION, (r * w_i + i * w_r + one) >> FRACTION
        blocks = np.stack([sums, np.stack([r, i])], axis=-2).reshape(points.shape)
        length = half
    return blocks[..., reverse_bits(np.arange(size), (size - 1).bit_length())]


def transform_cube(points: np.ndarray) -> np.ndarray:
    """Return the fixed-point transform along x, y and z of an array of shape (2, N, N, N)."""
    for axis in (1, 2, 3):
        points = np.moveaxis(transform_rows(np.moveaxis(points, axis, -1)), -1, axis)
    return points
