"""The form of a run, which follows from its mode and its length."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence

from amaranth.hdl import Const, Mux, Value

from ..program.mode import Range
from .memories import address_width, choose, look_up

__all__ = ["run_form"]

#: So many ranges are compared with one after another; where there are more, a table is smaller.
FEW_RANGES = 4


def run_form(served: Sequence[Sequence[Range]], mode: Value | None, length: Value) -> Value:
    """The number of the form of a run.

    Parameters
    ----------
    served : sequence of (sequence of Range)
        Of each mode, which form serves for which lengths, by the numbers of forms of all modes.
    mode : Value or None
        None where there is only one.

    Examples
    --------
    >>> from amaranth.hdl import Signal
    >>> len(run_form([(Range(1, 0), Range(5, 1)), (Range(1, 2),)], Signal(1), Signal(4)))
    2
    """
    bits = address_width(1 + max(form for ranges in served for _, form in ranges))
    reached = {start: length >= start for ranges in served for start, _ in ranges[1:]}
    found: list[Value] = []
    for ranges in served:
        number: Value = Const(ranges[0].form, bits)
        if len(ranges) > FEW_RANGES:
            number = _listed(ranges, length)
        else:
            for start, form in ranges[1:]:
                number = Mux(reached[start], Const(form, bits), number)
        found.append(number)
    return found[0] if mode is None else choose(found, mode)


def _listed(ranges: Sequence[Range], length: Value) -> Value:
    """The form from a table with all lengths up to the last range; then that of this."""
    numbers = min(1 << len(length), 2 * ranges[-1].start)
    starts = [start for start, _ in ranges]
    forms = [ranges[max(bisect(starts, number) - 1, 0)].form for number in range(numbers)]
    if numbers == 1 << len(length):
        return look_up(forms, length)
    last = Const(numbers - 1, len(length))
    return look_up(forms, Mux(length > last, last, length))
