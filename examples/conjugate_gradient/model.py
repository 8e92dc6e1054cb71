"""Conjugate gradients in NumPy with the operations of the elements, in the same order.

Numbers are binary32. So the words are those of the hardware, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from conjugate_gradient.arithmetic import ADD_CYCLES

__all__ = ["Solution", "add_products", "divide", "iterate", "join_blocks",
           "multiply", "solve_directly", "split_grid"]  # fmt: skip

#: The smallest normal number, and the largest number that is rounded to less than it.
SMALLEST, TINY = 2.0**-126, 2.0**-126 - 2.0**-151


class Solution(NamedTuple):
    """The result of some iterations.

    Parameters
    ----------
    x : ndarray of float32, shape (elements, rows, columns)
        The solution.
    residuals : list of float
        The square root of rho at the beginning of each iteration: the length of the residual.
    """

    x: np.ndarray
    residuals: list[float]


def flush_small(numbers: np.ndarray) -> np.ndarray:
    """Return numbers as binary64, those below the smallest normal number of binary32 as zero."""
    wide = numbers.astype(np.float64)
    return np.where(np.abs(wide) < SMALLEST, np.copysign(0.0, wide), wide)


def round_wide(numbers: np.ndarray) -> np.ndarray:
    """Return numbers of binary64 as binary32, results below the smallest normal one as zero."""
    kept = np.where(np.abs(numbers) < TINY, np.copysign(0.0, numbers), numbers)
    with np.errstate(over="ignore"):
        return kept.astype(np.float32)


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the products of the multiplier."""
    with np.errstate(invalid="ignore"):
        return round_wide(flush_small(a) * flush_small(b))


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the quotients of the divider; a quotient by zero is zero.

    Why binary64: a quotient that is rounded to it first is rounded to binary32 as if once, because
    53 bits are at least twice as many as 24, and two more.
    """
    a, b = flush_small(a), flush_small(b)
    sign = np.copysign(0.0, a) * np.copysign(1.0, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        return round_wide(np.where((b == 0) & ~np.isnan(a), sign, a / b))


def add_products(products: np.ndarray) -> np.ndarray:
    """Return the sums along the last axis, in the order of a `ProductSum`."""
    count = products.shape[-1]
    partial = [np.zeros(products.shape[:-1], np.float32) for _ in range(ADD_CYCLES)]
    for number in range(count):
        partial[number % ADD_CYCLES] = partial[number % ADD_CYCLES] + products[..., number]
    waiting = [partial[(count + number) % ADD_CYCLES] for number in range(ADD_CYCLES)]
    while len(waiting) > 1:
        first, second, *waiting = waiting
        waiting.append(first + second)
    return np.asarray(waiting[0])


def iterate(
    blocks: np.ndarray, sides: tuple[int, int], reduce: Callable[[np.ndarray], np.ndarray],
    goes_on: Callable[[list[float]], bool],
) -> Solution:  # fmt: skip
    """Return the solution after some iterations.

    Parameters
    ----------
    blocks : ndarray of float32, shape (elements, rows, columns)
        The right-hand side, divided into blocks.
    sides : (int, int)
        The sides of the torus.
    reduce : function of (ndarray of float32) -> ndarray of float32
        Returns the sum of a number of each element, as the fabric computes it.
    goes_on : function of (list of float) -> bool
        True if there is a further iteration, by the residuals until then.
    """
    count = len(blocks)

    def sum_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        products = multiply(a, b).reshape(count, -1)
        return reduce(add_products(products))[:, None, None]

    x = p = q = np.zeros_like(blocks)
    alpha = rho = np.zeros((count, 1, 1), np.float32)
    r, residuals = blocks, list[float]()
    while True:
        r = r - multiply(alpha, q)
        before, rho = rho, sum_products(r, r)
        residuals.append(float(rho[0, 0, 0]) ** 0.5)
        if not goes_on(residuals):
            return Solution(x + multiply(alpha, p), residuals)
        beta = divide(rho, before)
        x, p = x + multiply(alpha, p), r + multiply(beta, p)
        q = apply_stencil(p, sides)
        alpha = divide(rho, sum_products(p, q))


def apply_stencil(blocks: np.ndarray, sides: tuple[int, int]) -> np.ndarray:
    """Return four times each point minus its neighbours; points around the grid are zero."""
    grid = np.pad(join_blocks(blocks, sides), 1)
    north, south, west, east = grid[:-2, 1:-1], grid[2:, 1:-1], grid[1:-1, :-2], grid[1:-1, 2:]
    four = multiply(np.float32(4), grid[1:-1, 1:-1])
    return split_grid(four - ((north + south) + (west + east)), sides)


def split_grid(grid: np.ndarray, sides: tuple[int, int]) -> np.ndarray:
    """Return the block of each element, shape (elements, rows, columns), of a grid."""
    rows, columns = (size // side for size, side in zip(grid.shape, sides, strict=True))
    parts = grid.reshape(sides[0], rows, sides[1], columns).swapaxes(1, 2)
    return parts.reshape(-1, rows, columns)


def join_blocks(blocks: np.ndarray, sides: tuple[int, int]) -> np.ndarray:
    """Return the grid of which `split_grid` makes the blocks."""
    rows, columns = blocks.shape[1:]
    parts = blocks.reshape(*sides, rows, columns).swapaxes(1, 2)
    return parts.reshape(sides[0] * rows, sides[1] * columns)


def solve_directly(grid: np.ndarray) -> np.ndarray:
    """Return the solution in binary64, by the eigenvectors of the differences along each axis."""
    values, vectors = zip(*(
        np.linalg.eigh(2 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1))
        for size in grid.shape
    ), strict=True)  # fmt: skip
    scale = values[0][:, None] + values[1]
    return vectors[0] @ (vectors[0].T @ grid @ vectors[1] / scale) @ vectors[1].T
