"""Columns of a ROM: values that share an address."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Signal, Value

from ..topology import IntArray
from .memories import add_rom

__all__ = ["Columns"]


class Columns:
    """A ROM of many columns that share an address; equal columns are one, and constant ones none.

    Parameters
    ----------
    address : Value

    Examples
    --------
    >>> columns = Columns(Signal(2))
    >>> len(columns.read(np.array([0, 5, 2, 7]))), len(columns.read(np.array([6, 6, 6, 6])))
    (3, 3)
    >>> columns.bits
    12
    """

    def __init__(self, address: Value) -> None:
        self._address = address
        self._columns: dict[bytes, tuple[IntArray, Signal]] = {}

    def read(self, values: IntArray) -> Value:
        """A value one cycle after its address.

        Parameters
        ----------
        values : ndarray of int
            Not negative.

        Returns
        -------
        Value
        """
        width = max(int(values.max()).bit_length(), 1)
        if (values == values[0]).all():
            return Const(int(values[0]), width)
        key = np.asarray(values, "<i8").tobytes()
        if key not in self._columns:
            self._columns[key] = (values, Signal(width, name=f"column_{len(self._columns)}"))
        return self._columns[key][1]

    @property
    def bits(self) -> int:
        """Bits of the ROM."""
        return sum(len(values) * len(signal) for values, signal in self._columns.values())

    def build(self, m: Module, name: str, *, alone: bool = False) -> None:
        """Add the ROM to a module, once all columns are known; parameters as of `add_rom`."""
        if not self._columns:
            return
        values, signals = zip(*self._columns.values(), strict=True)
        rows, shift = [0] * len(values[0]), 0
        for column, signal in zip(values, signals, strict=True):
            rows = [row | int(v) << shift for row, v in zip(rows, column, strict=True)]
            shift += len(signal)
        m.d.comb += Cat(*signals).eq(
            add_rom(m, name, rows=rows, width=shift, address=self._address, alone=alone)
        )
