"""Row ROMs: what a node looks up for each row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..topology import IntArray
from .endpoint_shape import Field

__all__ = ["RowRom"]


@dataclass
class RowRom:
    """The row ROMs of the nodes of a shape, field by field.

    Parameters
    ----------
    members : int
        Number of variants of the shape.
    rows : int
    width : int
        Bits of a row so far.
    columns : list of (Field, ndarray of int)
        The values of each field, shape (members, rows).

    Examples
    --------
    Of two nodes, what is equal everywhere takes no bits, and equal fields are one.

    >>> rom = RowRom(members=2, rows=3)
    >>> rom.add(np.array([[3, -1, 3], [3, 3, 3]]))
    Field(start=0, width=2, constant=3)
    >>> rom.add(np.array([[0, 1, 2], [2, 1, 0]]))
    Field(start=0, width=2, constant=None)
    >>> rom.width, rom.contents(1)
    (2, (2, 1, 0))
    """

    members: int
    rows: int
    width: int = 0
    columns: list[tuple[Field, IntArray]] = field(default_factory=list)

    def add(self, values: IntArray) -> Field:
        """A field of given values, shape (members, rows), -1 where they do not matter."""
        known = values[values >= 0]
        if not len(known) or (known == known[0]).all():
            constant = int(known[0]) if len(known) else 0
            return Field(0, max(constant.bit_length(), 1), constant)
        filled = np.maximum(values, 0)
        for other, column in self.columns:
            if (column == filled).all():
                return other
        width = int(filled.max()).bit_length()
        self.columns.append((Field(self.width, width), filled))
        self.width += width
        return self.columns[-1][0]

    def contents(self, member: int) -> tuple[int, ...]:
        """The rows of a member."""
        return tuple(
            sum(int(values[member, row]) << f.start for f, values in self.columns)
            for row in range(self.rows)
        )
