"""Operators of reductions: how contributions are combined, on words of so many bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from ..toolchain.hints import no_such

__all__ = ["OPERATORS", "SIGNED", "Operator"]

#: How contributions of a reduction are combined: commutative and associative on W-bit words.
OPERATORS = ("add", "min", "max", "and", "or", "xor")

#: Those that compare words as two's complement.
SIGNED = ("min:signed", "max:signed")


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

    Examples
    --------
    >>> import numpy as np
    >>> Operator("add").reduce(np.array([[200], [100]], np.uint64), width=8)
    array([44], dtype=uint64)
    >>> Operator.parse("max:signed").identity(width=8)
    128
    """

    name: str = "add"
    signed: bool = False

    def __post_init__(self) -> None:
        if self.name not in OPERATORS:
            raise no_such("Operator", self.name, OPERATORS)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The operator that a user names: ``add``, or ``max:signed``.

        Raises
        ------
        InputError
            If there is no such operator, or it is the same on signed words.
        """
        if text not in (*OPERATORS, *SIGNED):
            raise no_such("Operator", text, [*OPERATORS, *SIGNED])
        name, _, sign = text.partition(":")
        return cls(name, signed=bool(sign))

    @property
    def notation(self) -> str:
        """What `parse` takes for it."""
        return f"{self.name}:signed" if self.signed else self.name

    def identity(self, width: int) -> int:
        """The word that changes nothing: ``combine(x, identity) == x``."""
        ones = (1 << width) - 1
        highest = 1 << (width - 1) if self.signed else 0
        return {"and": ones, "min": ones ^ highest, "max": highest}.get(self.name, 0)

    def combine(self, a: NDArray[Any], b: NDArray[Any], width: int) -> NDArray[Any]:
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
        result: NDArray[Any] = ufunc(a, b) & (mask if a.dtype == object else a.dtype.type(mask))
        return result

    def reduce(self, words: NDArray[Any], width: int) -> NDArray[Any]:
        """Combine all rows of an array into one.

        Parameters
        ----------
        words : ndarray, shape (rows, ..)
        width : int

        Returns
        -------
        ndarray, shape (..)
        """
        result: NDArray[Any] = words[0]
        for row in words[1:]:
            result = self.combine(result, row, width)
        return result

    def __str__(self) -> str:
        return f"signed {self.name}" if self.signed else self.name
