"""Floating-point operators: the functions of `floats`, their hardware, and formulas for the proof.

The operators are ``add:fp32``, ``min:fp32``, ``max:fp32``, and those of ``bf16`` and ``fp16``. The
identity word is minus zero in additions, and an infinity in a minimum or maximum.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from .floats import FORMATS, FloatFormat, add_floats, choose_float, typical_floats

if TYPE_CHECKING:
    from amaranth.hdl import Module, Value

__all__ = ["float_operator_parts"]


def add_in_hardware(
    number_format: FloatFormat, registered: Collection[int], m: Module, a: Value, b: Value
) -> Value:
    """Add an adder with registers behind some of its steps to a module, and return its sum."""
    from .float_adder import add_float_adder  # imported here because planning needs no Amaranth

    return add_float_adder(m, number_format, registered, a, b)


def choose_in_hardware(
    number_format: FloatFormat, m: Module, a: Value, b: Value, *, least: bool
) -> Value:
    """Return the smaller of two floating-point numbers, or the larger, in hardware."""
    from amaranth.hdl import Cat, Mux  # imported here because planning needs no Amaranth

    def rank_words(word: Value) -> Value:
        return Cat(word[:-1] ^ word[-1].replicate(len(word) - 1), ~word[-1])

    nan_a, nan_b = (word[:-1] > number_format.infinity_word for word in (a, b))
    first = rank_words(a) < rank_words(b) if least else rank_words(a) > rank_words(b)
    return Mux(Mux(nan_a == nan_b, first, nan_a), a, b)


def choice_formula(number_format: FloatFormat, a: str, b: str, width: int, *, least: bool) -> str:
    """Return the formula of a minimum or maximum in SystemVerilog, for the proof of hardware."""
    size = f"{width}'d{number_format.sign_word - 1}"

    def is_nan(word: str) -> str:
        return f"(({word} & {size}) > {width}'d{number_format.infinity_word})"

    def is_negative(word: str) -> str:
        return f"({word} > {size})"

    def rank_words(word: str) -> str:
        top = f"{width}'d{number_format.sign_word}"
        return f"({is_negative(word)} ? ~{word} : ({word} | {top}))"

    sign = "<" if least else ">"
    first = f"({rank_words(a)} {sign} {rank_words(b)})"
    return f"(({is_nan(a)} == {is_nan(b)} ? {first} : {is_nan(a)}) ? {a} : {b})"


#: The steps of an adder (see `float_adder`) behind which there are registers, by format.
ADDER_REGISTERS = {name: frozenset({0, 1, 2, 3, 4}) for name in FORMATS}


def float_operator_parts(name: str) -> dict[str, Any]:
    """Return the fields of the operator `name`, such as ``add:fp32``, apart from its name."""
    operation, _, suffix = name.partition(":")
    number_format = FORMATS[suffix]
    if operation == "add":
        registered = ADDER_REGISTERS[suffix]
        return {
            "function": partial(add_floats, number_format),
            "identity": lambda width: number_format.sign_word,
            "hardware": partial(add_in_hardware, number_format, registered),
            "latency": len(registered),
            "widths": (number_format.width,),
            "associative": False,
            "unit_roundoff": number_format.unit_roundoff,
            "typical": partial(typical_floats, number_format),
        }
    least = operation == "min"
    negative = 0 if least else number_format.sign_word
    return {
        "function": partial(choose_float, number_format, least=least),
        "identity": lambda width: number_format.infinity_word | negative,
        "hardware": partial(choose_in_hardware, number_format, least=least),
        "proof": partial(choice_formula, number_format, least=least),
        "widths": (number_format.width,),
        "idempotent": True,
        "typical": partial(typical_floats, number_format),
    }
