"""Values that depend on what a run chooses; constants where it has no choice."""

from collections.abc import Sequence

from amaranth.hdl import Const, Value

from ...rtl.memories import choose

__all__ = ["chosen", "chosen_number"]


def chosen(values: Sequence[Value], index: Value) -> Value:
    """The value at an index; no hardware where there is only one."""
    return values[0] if len(values) == 1 else choose(values, index)


def chosen_number(numbers: Sequence[int], index: Value) -> Value:
    """The number at an index; a constant where all are equal.

    Examples
    --------
    >>> chosen_number([5, 5], Const(1))
    (const 3'd5)
    """
    bits = max(max(numbers).bit_length(), 1)
    if len(set(numbers)) == 1:
        return Const(numbers[0], bits)
    return choose([Const(number, bits) for number in numbers], index)
