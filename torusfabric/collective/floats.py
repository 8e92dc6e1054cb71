"""Floating-point formats, and the sums, minima and maxima of their numbers as functions of words.

A *format* is that of IEEE 754 with any number of bits: a word has, from its highest bit on, a sign,
an exponent and a fraction. A number with exponent 0 is *subnormal*. The largest exponent marks
infinities, and NaNs (not a number), which have a fraction other than 0. `float_operators` makes
operators of these functions.

- A sum is rounded to nearest, ties to even. Subnormal numbers are kept, as operands and as results.
  Why not flushed: words that are no operands pass operators too, combined with the identity word,
  and must stay as they are.
- A NaN operand is the result. Of two NaNs a sum is the one with the larger magnitude. Infinity
  minus infinity is the NaN whose fraction has only its highest bit.
- Minimum and maximum are those of IEEE 754-2019: a NaN wins, and minus zero is less than plus zero.
  Of two NaNs, the one that comes first in the order of magnitudes and signs wins. So both
  operations are associative.

The functions are those of hardware, bit by bit. They compute in binary64, whose 53 bits are at
least twice as many as any format has here, and two more. Why: a sum that is rounded to so many bits
first, and then to the format, equals the sum that is rounded once (S. A. Figueroa, "When is double
rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMATS", "FloatFormat", "add_floats", "choose_float", "typical_floats"]

Words: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format, such as binary32.

    Parameters
    ----------
    name : str
        Name in operators, such as ``fp32``.
    exponent_bits, fraction_bits : int
        Bits of the exponent, 2 to 8, and of the fraction, 2 to 23.

    Examples
    --------
    >>> fp16 = FORMATS["fp16"]
    >>> fp16.width, fp16.infinity_word == 0x7C00, fp16.unit_roundoff == 2**-11
    (16, True, True)
    >>> fp16.encode(np.array([1.5, -np.inf]))
    array([15872, 64512], dtype=uint64)
    >>> fp16.decode(np.array([15872, 64512], np.uint64))
    array([ 1.5, -inf])
    """

    name: str
    exponent_bits: int
    fraction_bits: int

    @property
    def width(self) -> int:
        """Bits of a word."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def exponent_bias(self) -> int:
        """The exponent of a word that stands for numbers from 1 up to 2."""
        return (1 << self.exponent_bits - 1) - 1

    @property
    def sign_word(self) -> int:
        """The word of minus zero."""
        return 1 << self.width - 1

    @property
    def infinity_word(self) -> int:
        """The word of plus infinity."""
        return (1 << self.exponent_bits) - 1 << self.fraction_bits

    @property
    def nan_word(self) -> int:
        """The word of the NaN that an undefined sum gives."""
        return self.infinity_word | 1 << self.fraction_bits - 1

    @property
    def unit_roundoff(self) -> float:
        """The largest relative error of one rounding: half of the distance from 1 upwards."""
        return float(2.0 ** -(self.fraction_bits + 1))

    def is_nan(self, words: Words) -> NDArray[np.bool_]:
        """Return, for each word, True if it is not a number."""
        magnitude = words & words.dtype.type(self.sign_word - 1)
        return np.asarray(magnitude > words.dtype.type(self.infinity_word))

    def decode(self, words: Words) -> NDArray[np.float64]:
        """Return the numbers that words stand for, exactly.

        Parameters
        ----------
        words : ndarray of uint64
            Words of the format, of any shape.

        Returns
        -------
        ndarray of float64
            Numbers, infinities and NaNs, in the shape of `words`.
        """
        words = words.astype(np.int64)
        fraction = words & (1 << self.fraction_bits) - 1
        exponent = words >> self.fraction_bits & (1 << self.exponent_bits) - 1
        significand = fraction + np.where(exponent > 0, 1 << self.fraction_bits, 0)
        scale = np.maximum(exponent, 1) - self.exponent_bias - self.fraction_bits
        size = np.ldexp(significand.astype(np.float64), scale)
        special = np.where(fraction == 0, np.inf, np.nan)
        size = np.where(exponent == (1 << self.exponent_bits) - 1, special, size)
        return np.where(words >> self.width - 1 & 1, -size, size)

    def encode(self, numbers: NDArray[np.float64]) -> Words:
        """Return the words of numbers, rounded to nearest, ties to even.

        Parameters
        ----------
        numbers : ndarray of float64
            Numbers of any size, of any shape.

        Returns
        -------
        ndarray of uint64
            Words of the format, in the shape of `numbers`.
        """
        numbers = np.asarray(numbers, np.float64)
        finite = np.isfinite(numbers)
        size = np.where(finite, np.abs(numbers), 0.0)
        exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] + self.exponent_bias - 1, 1), 1)
        # The significand counts units of the last place. A normal one has the bit above the
        # fraction, which adds 1 to the exponent that is packed above it.
        significand = np.rint(np.ldexp(size, self.fraction_bits + self.exponent_bias - exponent))
        packed = (exponent - 1 << self.fraction_bits) + significand.astype(np.int64)
        packed = np.minimum(packed, self.infinity_word)
        special = np.where(np.isnan(numbers), self.nan_word, self.infinity_word)
        words = np.where(finite, packed, special) | np.signbit(numbers) * self.sign_word
        return np.where(np.isnan(numbers), self.nan_word, words).astype(np.uint64)


#: The formats of built-in operators, by name: binary32, bfloat16 and binary16.
FORMATS = {
    each.name: each
    for each in (FloatFormat("fp32", 8, 23), FloatFormat("bf16", 8, 7), FloatFormat("fp16", 5, 10))
}


def add_floats(number_format: FloatFormat, a: Words, b: Words, width: int) -> Words:
    """Return the sums of floating-point numbers, rounded to nearest even.

    Parameters
    ----------
    number_format : FloatFormat
        Format of the words.
    a, b : ndarray of uint64
        Operands.
    width : int
        Bits of a word.

    Examples
    --------
    One, and a quarter of the distance to the next number: the sum is rounded down to one.

    >>> one = np.array([0x3F80], np.uint64)
    >>> add_floats(FORMATS["bf16"], one, np.array([0x3B00], np.uint64), 16) == one
    array([ True])
    """
    magnitude = a.dtype.type(number_format.sign_word - 1)
    size_a, size_b = a & magnitude, b & magnitude
    with np.errstate(invalid="ignore"):
        total = number_format.encode(number_format.decode(a) + number_format.decode(b))
    larger = np.where(size_a == size_b, a & b, np.where(size_a > size_b, a, b))
    nan = number_format.is_nan(a) | number_format.is_nan(b)
    return np.where(nan, larger, total.astype(a.dtype))


def choose_float(
    number_format: FloatFormat, a: Words, b: Words, width: int, *, least: bool
) -> Words:
    """Return the smaller of floating-point numbers if `least`, otherwise the larger; NaNs win.

    Parameters
    ----------
    number_format : FloatFormat
        Format of the words.
    a, b : ndarray of uint64
        Operands.
    width : int
        Bits of a word.

    Examples
    --------
    >>> fp32 = FORMATS["fp32"]
    >>> words = (fp32.encode(np.array([each])) for each in (-2.0, 1.0))
    >>> fp32.decode(choose_float(fp32, *words, 32, least=True))
    array([-2.])
    """
    top, ones = a.dtype.type(number_format.sign_word), a.dtype.type(2 * number_format.sign_word - 1)

    def rank_words(words: Words) -> Words:
        # Numbers of one sign are in the order of their magnitudes, negative ones in reverse.
        ranks: Words = words ^ np.where(words & top, ones, top)
        return ranks

    nan_a, nan_b = number_format.is_nan(a), number_format.is_nan(b)
    first = rank_words(a) < rank_words(b) if least else rank_words(a) > rank_words(b)
    return np.where(np.where(nan_a == nan_b, first, nan_a), a, b)


def typical_floats(number_format: FloatFormat, words: Words, width: int) -> Words:
    """Return random words with exponents close to one another, so that order and rounding matter.

    Every eighth word stays as it is, with all exponents, infinities and NaNs.

    Parameters
    ----------
    number_format : FloatFormat
        Format of the words that are returned.
    words : ndarray of uint64, shape (.., words)
        Random words.
    width : int
        Bits of a word.

    Examples
    --------
    >>> words = np.random.default_rng(1).integers(0, 1 << 16, 5, np.uint64)
    >>> FORMATS["fp16"].decode(typical_floats(FORMATS["fp16"], words, 16)).round(2).tolist()
    [5.13, -0.11, -0.08, -1.83, 0.31]
    """
    bits, fraction_bits = words.astype(np.int64), number_format.fraction_bits
    exponents = (1 << number_format.exponent_bits) - 1 << fraction_bits
    near = (bits >> fraction_bits & 7) - 4 + number_format.exponent_bias
    typical = bits & ~exponents | near << fraction_bits
    raw = np.arange(words.shape[-1]) % 8 == 7
    return np.where(raw, bits, typical).astype(words.dtype)
