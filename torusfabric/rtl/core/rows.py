"""The fields of all forms of a program, with their rows one after another.

A run carries out the rows of one form. A *delay* is a tuple with an entry for each form: the cycles
from the slot of a row to the cycle in which a control point acts on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from ...program import Program
from ...program.fields import IDLE, Action, Loop, Memory, Order, Sources
from ...topology import IntArray

__all__ = ["Delays", "RowField", "Rows", "later"]

#: Cycles for each form.
Delays: TypeAlias = tuple[int, ...]


def later(delays: Delays, cycles: int) -> Delays:
    """Return delays that are some cycles longer."""
    return tuple(delay + cycles for delay in delays)


class RowField(NamedTuple):
    """The values of a control point in all forms.

    Parameters
    ----------
    values : ndarray of int, shape (rows, variants)
    delays : tuple of int
        For each form, the cycles from the slot of a row to the point.
    """

    values: IntArray
    delays: Delays

    @property
    def agrees(self) -> bool:
        """True if all variants with a known value have the same, row by row."""
        most = self.values.max(axis=1, keepdims=True)
        return bool(((self.values == most) | (self.values < 0)).all())


class Rows:
    """The rows of all forms.

    Attributes
    ----------
    loops : tuple of Loop
        One for each form.
    starts, stops : ndarray of int, shape (forms,)
        The first row of each form, and the row after its last.
    used : ndarray of int
        The variants that any node carries out; values have a column for each.
    memories : tuple of Memory
    depth : ndarray of int, shape (variants, memories)
        Words of each memory.

    Examples
    --------
    >>> import torusfabric as tf
    >>> rows = Rows(tf.compile(tf.plan("3x3", "allgather", algorithm="matching"), flits=4))
    >>> rows.count, rows.starts.tolist(), rows.numbers(Action.SELECT)
    (2, [0], [0, 1, 2, 3])
    """

    #: Low bits of addresses that lie in a table of their own, if tables are loaded.
    low_bits = 0

    #: True if nodes subtract the cycles by which words are stored later from addresses.
    stores_exactly = False

    def __init__(self, program: Program) -> None:
        self.program = program
        self.loops: tuple[Loop, ...] = tuple(form.loop for form in program.forms)
        counts = [loop.rows for loop in self.loops]
        self.stops: IntArray = np.cumsum(counts)
        self.starts: IntArray = self.stops - counts
        self.form_of_row: IntArray = np.repeat(np.arange(len(counts)), counts)
        known = [program.variant_of] + ([program.variant_at] if program.by_offset else [])
        self.used: IntArray = np.unique(np.concatenate(known))
        self._known: dict[tuple[Action, int], RowField | None] = {}
        self.memories: tuple[Memory, ...] = program.memories
        self.depth: IntArray = program.depth[self.used]

    @property
    def sources(self) -> Sources:
        """The sources of all forms."""
        return self.loops[0].sources

    @property
    def ports(self) -> int:
        """Ports of a node."""
        return self.program.ports

    @property
    def run_setup(self) -> int:
        """Cycles from a start to the first slot."""
        return self.program.form.timing.run_setup

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.stops[-1])

    @property
    def several(self) -> bool:
        """True if there are several forms."""
        return len(self.loops) > 1

    def join(self, columns: Sequence[IntArray]) -> IntArray:
        """Return values by row, given those of each form."""
        return np.concatenate(columns).astype(int)

    @cached_property
    def blocks(self) -> IntArray:
        """Blocks of each row."""
        return self.join([loop.blocks for loop in self.loops])

    def by_flit(self) -> list[bool]:
        """Return True for each form that passes all rows for each flit."""
        return [loop.order is Order.FLIT for loop in self.loops]

    def pitch(self, memory: int) -> Delays:
        """Return the distance of the addresses of two flits in a memory, for each form."""
        return tuple(
            loop.pitch_of(memory) if loop.order is Order.FLIT else 1 for loop in self.loops
        )

    def most_word(self, pitch: Delays) -> int:
        """Return the largest distance of an address from the first one of its row."""
        return max(
            (loop.flits - 1) * step
            if loop.order is Order.FLIT
            else max(int(loop.blocks.max()) * loop.flits - 1, 0)
            for loop, step in zip(self.loops, pitch, strict=True)
        )

    def shown(self, memories: frozenset[int]) -> frozenset[int]:
        """Return the memories that the memory port reads, given those of received words."""
        return memories

    def numbers(self, action: Action) -> list[int]:
        """Return the numbers of the control points of an action."""
        return sorted({field.point.number for loop in self.loops for field in loop.of(action)})

    def field(self, action: Action, number: int) -> RowField | None:
        """Return the values of a control point, or None if it does nothing in any form."""
        key = action, number
        if key not in self._known:
            self._known[key] = self._joined(action, number)
        return self._known[key]

    def _joined(self, action: Action, number: int) -> RowField | None:
        """Return the values of a control point in all forms."""
        fields = [loop.field(action, number) for loop in self.loops]
        delay = next((field.delay for field in fields if field is not None), None)
        if delay is None:
            return None
        values, delays = [], []
        for loop, field in zip(self.loops, fields, strict=True):
            if field is None:
                values.append(np.full((loop.rows, len(self.used)), IDLE))
                delays.append(delay)
                continue
            columns = self.used if field.values.shape[1] > 1 else np.zeros_like(self.used)
            values.append(field.values[:, columns])
            delays.append(field.delay)
        return RowField(self.join(values), tuple(delays))
