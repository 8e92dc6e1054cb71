"""The loops of a program, whose rows the sequencer presents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..program import Program
from ..program.fields import ACTIONS, Action, Holder, Loop, Point
from ..topology import IntArray

__all__ = ["Loops"]


class Loops:
    """The loops of a program, one a form; the rows of the second follow those of the first.

    Parameters
    ----------
    loops : sequence of Loop
        With the same variants, sources, readers and memories.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="matching"))
    >>> loops = Loops.of(program)
    >>> loops.rows, loops.spans
    (2, (slice(0, 2, None),))
    """

    def __init__(self, loops: Sequence[Loop]) -> None:
        self.loops = tuple(loops)
        self._values: dict[Point, IntArray] = {}

    @classmethod
    def of(cls, program: Program) -> Loops:
        """Those of a program."""
        return cls([form.loop for form in program.forms])

    @property
    def first(self) -> Loop:
        """The loop of the first form, for what all have in common."""
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

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """The rows of each loop among all."""
        starts = zip(self.loops, self.starts, strict=True)
        return tuple(slice(start, start + loop.rows) for loop, start in starts)

    def points(self, holder: Holder) -> list[Point]:
        """The control points of a part of a node, in the order of actions and of their numbers."""
        order = list(Action)
        found = {field.point for loop in self.loops for field in loop.fields
                 if ACTIONS[field.point.action].holder is holder}  # fmt: skip
        return sorted(found, key=lambda point: (order.index(point.action), point.number))

    def values(self, point: Point) -> IntArray:
        """The values of a control point in the rows of all loops, shape (rows, variants)."""
        if point not in self._values:
            # Each variant asks for those of every reader again.
            self._values[point] = self.joined([loop.values(*point) for loop in self.loops])
        return self._values[point]

    def delays(self, point: Point, unused: int | None = None) -> tuple[int | None, ...]:
        """The delay of a control point in each loop; `unused` where it does nothing."""
        fields = [loop.field(*point) for loop in self.loops]
        return tuple(field.delay if field else unused for field in fields)

    def joined(self, columns: Sequence[IntArray]) -> IntArray:
        """Columns of all loops as one; the first axis is that of rows."""
        return columns[0] if len(columns) == 1 else np.concatenate(columns)
