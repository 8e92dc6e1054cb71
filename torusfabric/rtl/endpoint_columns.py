"""Columns of the sequencer for endpoints: addresses and stores that are the same at all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..program.values import NEUTRAL, Reads, Writes
from ..topology import IntArray
from .sharing import merge_columns

if TYPE_CHECKING:
    from ..program import Program
    from ..program.values import Loop

__all__ = ["AddressColumn", "ReadColumns", "StoreColumn", "StoreColumns"]


@dataclass(frozen=True, eq=False)
class AddressColumn:
    """First addresses that the sequencer gives, shape (rows,); -1 where it does not matter."""

    base: IntArray
    skew: int


@dataclass(frozen=True, eq=False)
class StoreColumn:
    """Where and whether memories store, the same at all nodes.

    Parameters
    ----------
    base : ndarray of int, shape (rows,)
        -1 where nothing is stored.
    blocks : int
        Blocks a row.
    pitch, hops, skew : int
    """

    base: IntArray
    blocks: int
    pitch: int
    hops: int
    skew: int


@dataclass(frozen=True, eq=False)
class ReadColumns:
    """Address columns, and the readers that use them.

    Parameters
    ----------
    columns : tuple of AddressColumn
    column_of : dict of int to int
        The column of each reader whose addresses are the same at all nodes.
    words : int or None
        The column that counts words, for all other readers.
    """

    columns: tuple[AddressColumn, ...]
    column_of: dict[int, int]
    words: int | None

    @classmethod
    def of(cls, loop: Loop) -> ReadColumns:
        """Those of a loop; columns that may always be equal are one."""
        bases = [_common_base(reads) for reads in loop.reads]
        common = {reader: base for reader, base in enumerate(bases) if base is not None}
        given, skews = list(common.values()), [loop.reads[reader].skew for reader in common]
        counts = len(common) < len(bases)
        if counts:
            given, skews = [np.zeros(loop.rows, int), *given], [0, *skews]
        merged, number = merge_columns(given, skews)
        columns = tuple(
            AddressColumn(column, skews[number.index(k)]) for k, column in enumerate(merged)
        )
        column_of = dict(zip(common, number[counts:], strict=True))
        return cls(columns, column_of, number[0] if counts else None)

    def of_reader(self, reader: int) -> int:
        """The column that a reader uses."""
        column = self.column_of.get(reader, self.words)
        assert column is not None
        return column


@dataclass(frozen=True, eq=False)
class StoreColumns:
    """Store columns, and the memories that use them.

    Parameters
    ----------
    columns : tuple of StoreColumn
    column_of : dict of int to int
        The column of each memory that stores the same at all nodes.
    """

    columns: tuple[StoreColumn, ...]
    column_of: dict[int, int]

    @classmethod
    def of(cls, program: Program) -> StoreColumns:
        """Those of a program; equal columns are one."""
        columns: list[StoreColumn] = []
        column_of: dict[int, int] = {}
        for memory, writes in enumerate(program.loop.writes):
            column = _common_store(writes, program.memories[memory].pitch)
            if column is None:
                continue
            known = (k for k, other in enumerate(columns) if _same_store(column, other))
            column_of[memory] = next(known, len(columns))
            if column_of[memory] == len(columns):
                columns.append(column)
        return cls(tuple(columns), column_of)


def _common_base(reads: Reads) -> IntArray | None:
    """First addresses that serve all variants, or None."""
    if reads.count.max(initial=0) > 1 or (reads.memory == NEUTRAL).any():
        return None
    there = reads.count > 0
    index = np.minimum(reads.start, max(len(reads.base) - 1, 0))
    base = np.where(there, reads.base[index] if len(reads.base) else 0, -1)
    column = base.max(axis=1)
    return column if ((base < 0) | (base == column[:, None])).all() else None


def _common_store(writes: Writes, pitch: int) -> StoreColumn | None:
    """What all variants store alike, or None."""
    base = writes.base
    if not (base == base[:, :1]).all():
        return None
    there = base >= 0
    facts = [np.unique(values[there]) for values in (writes.blocks, writes.hops, writes.port)]
    if not there.any() or any(len(values) > 1 for values in facts):
        return None
    blocks, hops = int(facts[0][0]), int(facts[1][0])
    return StoreColumn(base[:, 0], blocks, pitch, hops, writes.skew)


def _same_store(a: StoreColumn, b: StoreColumn) -> bool:
    """Whether two columns are always equal."""
    facts = [(c.blocks, c.pitch, c.hops, c.skew) for c in (a, b)]
    return facts[0] == facts[1] and bool((a.base == b.base).all())
