"""The loops of all modes of a program, with their rows one after another."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..program.fields import Loop
from ..topology import IntArray

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["LocalRows", "Loops"]


class Loops:
    """The loops of a program, one a mode; the rows of the second follow those of the first.

    Parameters
    ----------
    loops : sequence of Loop
        With the same variants, sources, readers and memories.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="matching"))
    >>> loops = Loops.of(program)
    >>> loops.rows, [span for _, span in loops.spans()]
    (2, [slice(0, 2, None)])
    """

    def __init__(self, loops: Sequence[Loop]) -> None:
        self.loops = tuple(loops)

    @classmethod
    def of(cls, program: Program) -> Loops:
        """Those of a program."""
        return cls([mode.loop for mode in program.modes])

    @property
    def first(self) -> Loop:
        """The loop of the first mode, for what all have in common."""
        return self.loops[0]

    @property
    def several(self) -> bool:
        """Whether there are several."""
        return len(self.loops) > 1

    @property
    def rows(self) -> int:
        """Rows of all together."""
        return sum(loop.rows for loop in self.loops)

    @property
    def variants(self) -> int:
        """Number of variants."""
        return self.first.variants

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of each loop."""
        counts = [loop.rows for loop in self.loops]
        return tuple((np.cumsum(counts) - counts).tolist())

    def spans(self) -> Iterator[tuple[Loop, slice]]:
        """Each loop, and its rows among all."""
        for loop, start in zip(self.loops, self.starts, strict=True):
            yield loop, slice(start, start + loop.rows)

    def joined(self, columns: Sequence[IntArray]) -> IntArray:
        """Columns of all loops as one; the first axis is that of rows."""
        return columns[0] if len(columns) == 1 else np.concatenate(columns)


class LocalRows:
    """The rows of which nodes have ROMs: those of modes in which there is anything to look up.

    Parameters
    ----------
    loops : Loops
    used : collection of int
        The modes in whose rows there is.

    Attributes
    ----------
    numbers : ndarray of int, shape (rows of all loops,)
        The row of the ROM; all modes that need none have one row of zeros, the last.
    count : int
        Rows of the ROM.
    modes : tuple of int
        The mode of each row of the ROM, but for the row of zeros.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="matching"))
    >>> rows = LocalRows(Loops.of(program), {0})
    >>> rows.numbers.tolist(), rows.of((5, 7))
    ([0, 1], (5, 7))
    """

    def __init__(self, loops: Loops, used: Collection[int]) -> None:
        kept = np.zeros(loops.rows, bool)
        for mode, (_, span) in enumerate(loops.spans()):
            kept[span] = mode in used
        self._kept = np.nonzero(kept)[0].tolist()
        self._whole = len(self._kept) == loops.rows
        self.numbers: IntArray = np.full(loops.rows, len(self._kept))
        self.numbers[kept] = np.arange(len(self._kept))
        self.count = len(self._kept) + (not self._whole)
        owner = np.concatenate([np.full(loop.rows, k) for k, (loop, _) in enumerate(loops.spans())])
        self.modes: tuple[int, ...] = tuple(owner[self._kept].tolist())

    @property
    def whole(self) -> bool:
        """Whether every row is one of the ROM."""
        return self._whole

    def of(self, contents: Sequence[int]) -> tuple[int, ...]:
        """The rows of a ROM, given what is looked up in all rows."""
        if not contents:
            return ()
        return tuple(contents[row] for row in self._kept) + (0,) * (not self._whole)
