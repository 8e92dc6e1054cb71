"""Division of numbers by constants, a step a cycle: by tables, or by subtraction."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ...program.timing import table_digits
from ...rtl.memories import Columns
from ...rtl.modules import delayed

__all__ = ["divide"]


def divide(m: Module, name: str, value: Value, divisor: int, *, count: int) -> tuple[Value, Value]:
    """Quotient and remainder of one of so many numbers, after `division_cycles`.

    Parameters
    ----------
    name : str
        Of its tables.
    value : Value
        A number from 0 to ``count - 1``.
    """
    bits = max((count - 1).bit_length(), 1)
    value = value[:bits]
    if count <= divisor:
        return Const(0), value
    if not divisor & (divisor - 1):
        shift = divisor.bit_length() - 1
        return value[shift:], value[:shift] if shift else Const(0)
    if digits := table_digits(count, divisor):
        return _by_tables(m, name, value, divisor, digits)
    return _by_subtraction(m, value, divisor, (count - 1) // divisor)


def _by_tables(
    m: Module, name: str, value: Value, divisor: int, digits: tuple[int, ...]
) -> tuple[Value, Value]:
    """Find a digit of the quotient, and what is left, in each cycle."""
    quotient: Value = Const(0, 0)
    left: Value = Const(0, 0)
    lower = sum(digits)
    for number, bits in enumerate(digits):
        lower -= bits
        table = Columns(Cat(value[lower:][:bits], left))
        key = np.arange(1 << (bits + len(left)))
        # What is left of the digits before is below the divisor.
        digit = table.read(np.minimum(key // divisor, (1 << bits) - 1))
        left = table.read(key % divisor)
        table.build(m, f"{name}_{number}")
        filled = Cat(digit, Const(0, max(bits - len(digit), 0)))[:bits]
        quotient = Cat(filled, delayed(m, quotient, 1))
        value = delayed(m, value[: max(lower, 1)], 1)
    return quotient, left


def _by_subtraction(m: Module, value: Value, divisor: int, most: int) -> tuple[Value, Value]:
    """Find a bit of the quotient in each cycle."""
    quotient: list[Value] = []
    rest = value
    for k in reversed(range(most.bit_length())):
        fits = rest >= divisor << k
        quotient = [delayed(m, bit, 1) for bit in quotient]
        taken = Signal(reset_less=True, name="taken")
        remaining = Signal(len(value), reset_less=True, name="remaining")
        m.d.sync += [taken.eq(fits), remaining.eq(Mux(fits, rest - (divisor << k), rest))]
        quotient.insert(0, taken)
        rest = remaining
    return Cat(*quotient), rest[: max((divisor - 1).bit_length(), 1)]
