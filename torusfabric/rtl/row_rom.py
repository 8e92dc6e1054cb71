"""Row ROMs: what a node looks up for each row."""

from __future__ import annotations

from collections.abc import Sequence
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
    spans : sequence of slice
        The rows of each mode.
    width : int
        Bits of a row so far.
    columns : list of (Field, ndarray of int)
        The values of each field, shape (members, rows).

    Examples
    --------
    Of two nodes, what is equal everywhere takes no bits, and equal fields are one.

    >>> rom = RowRom(members=2, spans=[slice(0, 3)])
    >>> rom.add(np.array([[3, -1, 3], [3, 3, 3]])).constants
    (3,)
    >>> rom.add(np.array([[0, 1, 2], [2, 1, 0]]))
    Field(start=0, width=2, constants=(0,), stored=True)
    >>> rom.width, rom.contents(1)
    (2, (2, 1, 0))

    What is constant in a mode, here the second, takes no rows of it.

    >>> rom = RowRom(members=1, spans=[slice(0, 2), slice(2, 4)])
    >>> rom.add(np.array([[0, 1, 2, 2]])).constants, rom.contents(0), rom.used
    ((0, 2), (0, 1, 0, 0), {0})
    """

    members: int
    spans: Sequence[slice]
    width: int = 0
    columns: list[tuple[Field, IntArray]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Number of rows of all modes."""
        return int(self.spans[-1].stop)

    @property
    def used(self) -> set[int]:
        """The modes in whose rows anything is looked up."""
        return {
            mode
            for mode, span in enumerate(self.spans)
            if any(values[:, span].any() for _, values in self.columns)
        }

    def add(self, values: IntArray) -> Field:
        """A field of given values, shape (members, rows), -1 where they do not matter."""
        constants = [_constant(values[:, span]) for span in self.spans]
        width = max(int(values.max(initial=0)).bit_length(), 1)
        if None not in constants:
            return Field(0, width, tuple(max(c or 0, 0) for c in _agreed(constants)))
        known = tuple(max(c, 0) if c is not None else 0 for c in constants)
        filled = np.maximum(values, 0)
        for constant, span in zip(known, self.spans, strict=True):
            if constant:
                filled[:, span] = 0
        for other, column in self.columns:
            if (column == filled).all() and other.constants == known and other.width == width:
                return other
        self.columns.append((Field(self.width, width, known, stored=True), filled))
        self.width += width
        return self.columns[-1][0]

    def contents(self, member: int) -> tuple[int, ...]:
        """The rows of a member."""
        return tuple(
            sum(int(values[member, row]) << f.start for f, values in self.columns)
            for row in range(self.rows)
        )


def _constant(values: IntArray) -> int | None:
    """The value that is the same in all rows of a mode; -1 if none matters, None for several."""
    known = values[values >= 0]
    if not len(known):
        return -1
    return int(known[0]) if (known == known[0]).all() else None


def _agreed(constants: list[int | None]) -> list[int | None]:
    """Constants with those that do not matter made equal to one that does."""
    matters = next((c for c in constants if c is not None and c >= 0), 0)
    return [matters if c == -1 else c for c in constants]
