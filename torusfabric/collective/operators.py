"""Operators of reductions: how contributions are combined, on words of so many bits."""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .collective import OPERATORS

__all__ = ["Operator"]


@dataclass(frozen=True)
class Operator:
    """A commutative and associative operation on two words.

    Parameters
    ----------
    name : str
        ``add`` (the carry out of the highest bit is lost), ``min``, ``max``, ``and``, ``or`` or
        ``xor``.
    signed : bool
        Whether `min` and `max` compare words as two's complement.

    Raises
    ------
    InputError
        If there is no such operator.
    """

    name: str = "add"
    signed: bool = False

    def __post_init__(self):
        if self.name not in OPERATORS:
            raise InputError(f"Operator must be one of {', '.join(OPERATORS)}, not {self.name!r}")

    def identity(self, width):
        """The word that changes nothing: ``combine(x, identity) == x``."""
        ones = (1 << width) - 1
        highest = 1 << (width - 1) if self.signed else 0
        return {"and": ones, "min": ones ^ highest, "max": highest}.get(self.name, 0)

    def combine(self, a, b, width):
        """Combine arrays of words elementwise.

        Parameters
        ----------
        a, b : ndarray of uint64, or of Python integers if words are wider
        width : int
            Bits of a word.

        Returns
        -------
        ndarray
        """
        if self.name in ("min", "max"):
            # Turning the highest bit over puts two's complement in the order of plain numbers.
            flip = a.dtype.type(1 << (width - 1)) if a.dtype != object else 1 << (width - 1)
            less = (a ^ flip) < (b ^ flip) if self.signed else a < b
            return np.where(less if self.name == "min" else ~less.astype(bool), a, b)
        ufunc = {
            "add": np.add,
            "and": np.bitwise_and,
            "or": np.bitwise_or,
            "xor": np.bitwise_xor,
        }[self.name]
        mask = (1 << width) - 1
        return ufunc(a, b) & (mask if a.dtype == object else a.dtype.type(mask))

    def reduce(self, words, width):
        """Combine all rows of an array into one.

        Parameters
        ----------
        words : ndarray, shape (rows, ..)
        width : int

        Returns
        -------
        ndarray, shape (..)
        """
        result = words[0]
        for row in words[1:]:
            result = self.combine(result, row, width)
        return result

    def __str__(self):
        return f"signed {self.name}" if self.signed else self.name
