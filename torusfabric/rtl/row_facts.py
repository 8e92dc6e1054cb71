"""What the slots know of the row under way, in registers that are loaded as the row is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from amaranth.hdl import Const, Module, Signal, Value

from .memories import look_up

if TYPE_CHECKING:
    from ..topology import IntArray
    from .loops import Loops
    from .run_length import RunLength

__all__ = ["RowFacts"]


class _Known(NamedTuple):
    """A register, what it is in the next row, and what at rest."""

    register: Signal
    next_row: Value
    at_rest: Value


class RowFacts:
    """Registers of what is known of a row: nothing in it has to wait for a look-up.

    Parameters
    ----------
    m : Module
    loops : Loops
    row : Value
        The row under way.
    run : RunLength
        Whose mode says which row is the first.
    """

    def __init__(self, m: Module, loops: Loops, row: Value, run: RunLength) -> None:
        self._m, self._row, self._run = m, row, run
        self._starts = np.array(loops.starts)
        self._following = np.arange(loops.rows) + 1
        for _, span in loops.spans():
            self._following[span.stop - 1] = span.start
        self._known: list[_Known] = []

    def register(self, name: str, values: IntArray, *, changes: bool = False) -> Value:
        """What is known of each row, at its begin if that changes; else a constant may be.

        Parameters
        ----------
        name : str
        values : ndarray of int
            Of each row.
        changes : bool
            Whether something else is loaded within a row.
        """
        values = values.astype(int)
        width = max(int(values.max()).bit_length(), 1)
        if (values == values[0]).all() and not changes:
            return Const(int(values[0]), width)
        register = Signal(width, name=name, init=int(values[0]))
        self._known.append(_Known(register, *self.ahead(values)))
        return register

    def ahead(self, values: IntArray) -> tuple[Value, Value]:
        """What is known of the next row, and of the first of the mode, given that of each row."""
        values = values.astype(int)
        next_row = look_up(values[self._following].tolist(), self._row)
        return next_row, self._run.constant(values[self._starts].tolist())

    def follow(self) -> None:
        """The row changes to the next."""
        self._m.d.sync += [known.register.eq(known.next_row) for known in self._known]

    def rest(self) -> None:
        """The row is the first of the mode."""
        self._m.d.sync += [known.register.eq(known.at_rest) for known in self._known]
