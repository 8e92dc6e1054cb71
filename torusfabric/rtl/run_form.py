"""The form of a run, which follows from its mode and its length."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Const, Mux, Value

from .memories import address_width, choose

__all__ = ["run_form"]


def run_form(starts: Sequence[Sequence[int]], mode: Value | None, length: Value) -> Value:
    """The number of the form of a run.

    Parameters
    ----------
    starts : sequence of (sequence of int)
        Of each mode, the least length for which each of its forms serves.
    mode : Value or None
        None where there is only one.

    Examples
    --------
    >>> from amaranth.hdl import Signal
    >>> len(run_form([(1, 5), (1,)], Signal(1), Signal(4)))
    2
    """
    bits = address_width(sum(map(len, starts)))
    reached = {least: length >= least for of_mode in starts for least in of_mode[1:]}
    found: list[Value] = []
    first = 0
    for of_mode in starts:
        number: Value = Const(first, bits)
        for later, least in enumerate(of_mode[1:], first + 1):
            number = Mux(reached[least], Const(later, bits), number)
        found.append(number)
        first += len(of_mode)
    return found[0] if mode is None else choose(found, mode)
