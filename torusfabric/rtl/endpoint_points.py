"""What the readers and memories of endpoints do in the rows of all forms, by variants of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from ..program.fields import IDLE, NEUTRAL, Action, Point
from ..topology import IntArray
from .loops import Loops
from .place import Column, ColumnSet, Shown
from .stores import find_stores

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Points", "Reading", "known", "of_each"]

Found = TypeVar("Found")

#: What a reader does: in each form, whether it adds a base of its own, or None where it does not
#: read; and the memories that it reads.
Reading: TypeAlias = tuple[tuple[bool | None, ...], frozenset[int]]


class Points:
    """What readers and memories do, in the rows of all forms.

    Attributes
    ----------
    columns : dict of str to ColumnSet
        Of the sequencer: ``read``, ``write``, ``store`` and ``ends``.
    given : list of (list of bool)
        Of each reader, of each form, whether all nodes that read begin at the same address, which a
        column gives; in other forms it counts words from the first.
    column_of : dict of int to int
        The column of each reader that reads any memory.
    words : ndarray of int, shape (rows,)
        Of each row, how many words are read from one first address.
    stores : list of Stores
        Of each memory.
    strobes : Strobes
    """

    def __init__(self, program: Program) -> None:
        self.loops = Loops.of(program)
        self.columns = {name: ColumnSet() for name in ("read", "write", "store", "ends")}
        self.words = self.loops.joined([loop.blocks * loop.flits for loop in self.loops.loops])
        self.given: list[list[bool]] = []
        self.column_of: dict[int, int] = {}
        for reader in range(self.loops.first.sources.readers):
            self._add_reads(reader)
        self.stores, self.strobes = find_stores(
            self.loops, len(program.memories), self.columns, any_length=program.any_length
        )

    def _add_reads(self, reader: int) -> None:
        """Find out what a column gives of the addresses of a reader."""
        point = Point(Action.READ, reader)
        read, memory = self.loops.values(point), self.loops.values(Point(Action.MEMORY, reader))
        reads, first = read >= 0, read.max(axis=1)
        alike = (~reads | (read == first[:, None])).all(axis=1) & (memory != NEUTRAL).all(axis=1)
        spans = [span for _, span in self.loops.spans()]
        some = [bool(reads[span].any()) for span in spans]
        given = [
            not any_ or bool(alike[span].all()) for span, any_ in zip(spans, some, strict=True)
        ]
        self.given.append(given)
        if not (memory >= 0).any():
            return
        for span, whole in zip(spans, given, strict=True):
            first[span] *= whole
        delays = tuple(late if any_ else None for late, any_ in
                       zip(self.loops.delays(point), some, strict=True))  # fmt: skip
        pitches = tuple(1 if any_ else None for any_ in some)
        column = Column(first, delays, Shown.ADDRESS, pitches)
        self.column_of[reader] = self.columns["read"].add(column)

    def stored(self, memory: int, members: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The sources of what variants store into a memory, and the strobes by which they do."""
        stores = self.stores[memory]
        return tuple(known(each[:, members]) for each in (stores.source, stores.strobe))

    def readings(self) -> Iterator[tuple[IntArray, list[Reading]]]:
        """The variants that have each reader, and what it does in these."""
        spans = [span for _, span in self.loops.spans()]
        for reader, given in enumerate(self.given):
            memory = self.loops.values(Point(Action.MEMORY, reader))
            read = self.loops.values(Point(Action.READ, reader)) >= 0
            used = np.flatnonzero((memory != IDLE).any(axis=0))

            def reading(values: IntArray, given: Sequence[bool] = given) -> Reading:
                memories, reads = np.split(values, 2)
                based = tuple(
                    not whole if reads[span].any() else None
                    for whole, span in zip(given, spans, strict=True)
                )
                return based, frozenset(memories[memories != IDLE].tolist())

            both = np.concatenate([memory[:, used], read[:, used]])
            yield used, of_each(both, reading)


def of_each(values: IntArray, what: Callable[[IntArray], Found]) -> list[Found]:
    """What is found of each column (last axis) of values, looked for once in those that are equal.

    Examples
    --------
    >>> of_each(np.array([[1, 0, 1], [2, 0, 2]]), lambda column: int(column.sum()))
    [3, 0, 3]
    """
    different, which = np.unique(values, axis=-1, return_inverse=True)
    found = [what(column) for column in np.moveaxis(different, -1, 0)]
    return [found[number] for number in which.ravel().tolist()]


def known(numbers: IntArray) -> tuple[int, ...]:
    """The different numbers that are none for nothing."""
    found = np.unique(numbers)
    return tuple(found[found >= 0].tolist())
