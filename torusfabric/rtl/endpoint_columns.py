"""Columns of the sequencer for endpoints: addresses and stores that are the same at all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..program.values import NEUTRAL, Reads, Writes
from ..topology import IntArray
from .loops import Loops
from .sharing import merge_columns

if TYPE_CHECKING:
    from ..program.values import Loop

__all__ = ["AddressColumn", "ReadColumns", "StoreColumn", "StoreColumns", "StorePart"]


@dataclass(frozen=True, eq=False)
class AddressColumn:
    """First addresses that the sequencer gives.

    Parameters
    ----------
    base : ndarray of int, shape (rows of all loops,)
    skews : tuple of (int or None)
        Of each loop: by how many cycles addresses come later than others; None if nobody looks.
    """

    base: IntArray
    skews: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class StorePart:
    """Where and whether memories store in a loop, the same at all nodes.

    Parameters
    ----------
    base : ndarray of int, shape (rows,)
        -1 where nothing is stored.
    blocks : int
        Blocks a row.
    pitch, hops, skew : int
    source : int
        Of the words.
    """

    base: IntArray
    blocks: int
    pitch: int
    hops: int
    skew: int
    source: int

    def same(self, other: StorePart) -> bool:
        """Whether both store at the same addresses at the same time."""
        facts = [(p.blocks, p.pitch, p.hops, p.skew) for p in (self, other)]
        return facts[0] == facts[1] and bool((self.base == other.base).all())


#: A column of where memories store: what it says in each loop, None where nobody looks.
StoreColumn = tuple[StorePart | None, ...]


@dataclass(frozen=True, eq=False)
class ReadColumns:
    """Address columns, and the readers that use them.

    Parameters
    ----------
    columns : tuple of AddressColumn
    column_of : tuple of int
        The column of each reader: first addresses where they are the same at all nodes, and in all
        other loops words counted from the first.
    central : tuple of (tuple of bool)
        Of each reader, of each loop, whether the column gives its addresses.
    """

    columns: tuple[AddressColumn, ...]
    column_of: tuple[int, ...]
    central: tuple[tuple[bool, ...], ...]

    @classmethod
    def of(cls, loops: Loops) -> ReadColumns:
        """Those of all loops; columns that may always be equal are one."""
        given: list[IntArray] = []
        skews: list[tuple[int | None, ...]] = []
        central: list[tuple[bool, ...]] = []
        for reader in range(len(loops.first.reads)):
            columns = [_reader_column(loop, reader) for loop in loops.loops]
            given.append(loops.joined([base for base, _, _ in columns]))
            skews.append(tuple(skew for _, skew, _ in columns))
            central.append(tuple(common for _, _, common in columns))
        merged, number = merge_columns(given, skews)
        joint = tuple(
            AddressColumn(column, _any_of([skews[r] for r, n in enumerate(number) if n == k]))
            for k, column in enumerate(merged)
        )
        return cls(joint, tuple(number), tuple(central))


def _reader_column(loop: Loop, reader: int) -> tuple[IntArray, int | None, bool]:
    """Of a reader in a loop: its column, the skew, and whether that gives its addresses."""
    reads = loop.reads[reader]
    if not reads.count.any():
        return np.full(loop.rows, -1), None, True
    base = _common_base(reads)
    if base is None:
        return np.zeros(loop.rows, int), reads.skew, False
    return base, reads.skew, True


def _any_of(skews: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    """Of each loop, the skew that is known."""
    return tuple(
        next((skew for skew in of_loop if skew is not None), None)
        for of_loop in zip(*skews, strict=True)
    )


@dataclass(frozen=True, eq=False)
class StoreColumns:
    """Store columns, and the memories that use them.

    Parameters
    ----------
    columns : tuple of StoreColumn
    column_of : dict of int to int
        The column of each memory that stores the same at all nodes in any loop.
    parts : dict of int to (tuple of (StorePart or None))
        Of each such memory, what it stores in each loop.
    """

    columns: tuple[StoreColumn, ...]
    column_of: dict[int, int]
    parts: dict[int, StoreColumn]

    @classmethod
    def of(cls, loops: Loops) -> StoreColumns:
        """Those of all loops; columns that may always be equal are one."""
        columns: list[StoreColumn] = []
        column_of: dict[int, int] = {}
        parts: dict[int, StoreColumn] = {}
        for memory in range(max(len(loop.writes) for loop in loops.loops)):
            own = tuple(_common_store(loop, memory) for loop in loops.loops)
            if not any(own):
                continue
            parts[memory] = own
            known = (k for k, other in enumerate(columns) if _agree(own, other))
            column_of[memory] = next(known, len(columns))
            if column_of[memory] == len(columns):
                columns.append(own)
        return cls(tuple(columns), column_of, parts)


def _agree(a: StoreColumn, b: StoreColumn) -> bool:
    """Whether two columns are always equal."""
    pairs = zip(a, b, strict=True)
    return all((p is None and q is None) or (p and q and p.same(q)) for p, q in pairs)


def _common_base(reads: Reads) -> IntArray | None:
    """First addresses that serve all variants, or None."""
    if reads.count.max(initial=0) > 1 or (reads.memory == NEUTRAL).any():
        return None
    there = reads.count > 0
    index = np.minimum(reads.start, max(len(reads.base) - 1, 0))
    base = np.where(there, reads.base[index] if len(reads.base) else 0, -1)
    column = base.max(axis=1)
    return column if ((base < 0) | (base == column[:, None])).all() else None


def _common_store(loop: Loop, memory: int) -> StorePart | None:
    """What all variants store alike in a loop, or None."""
    if memory >= len(loop.writes):
        return None
    writes: Writes = loop.writes[memory]
    base = writes.base
    if not (base == base[:, :1]).all():
        return None
    there = base >= 0
    facts = [np.unique(values[there]) for values in (writes.blocks, writes.hops, writes.port)]
    if not there.any() or any(len(values) > 1 for values in facts):
        return None
    blocks, hops, source = (int(values[0]) for values in facts)
    pitch = loop.pitch_of(memory)
    return StorePart(base[:, 0], blocks, pitch, hops, writes.skew, source)
