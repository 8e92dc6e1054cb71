"""Columns of the sequencer for endpoints: addresses and stores that are the same at all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..program.fields import IDLE, NEUTRAL, Action
from ..topology import IntArray
from .loops import Loops
from .sharing import merge_columns

if TYPE_CHECKING:
    from ..program.fields import Loop

__all__ = ["AddressColumn", "ReadColumns", "StoreColumn", "StoreColumns", "StorePart"]


@dataclass(frozen=True, eq=False)
class AddressColumn:
    """First addresses that the sequencer gives.

    Parameters
    ----------
    base : ndarray of int, shape (rows of all loops,)
    delays : tuple of (int or None)
        Of each loop: cycles from a slot to the address at memories; None if nobody looks.
    """

    base: IntArray
    delays: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class StorePart:
    """Where and whether memories store in a loop, the same at all nodes.

    Parameters
    ----------
    base : ndarray of int, shape (rows,)
        -1 where nothing is stored.
    pitch : int
    delay : int
        Cycles from a slot to the write.
    source : int
        Of the words.
    """

    base: IntArray
    pitch: int
    delay: int
    source: int

    def same(self, other: StorePart) -> bool:
        """Whether both store at the same addresses at the same time."""
        facts = [(p.pitch, p.delay) for p in (self, other)]
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
        delays: list[tuple[int | None, ...]] = []
        central: list[tuple[bool, ...]] = []
        for reader in range(loops.first.sources.readers):
            columns = [_reader_column(loop, reader) for loop in loops.loops]
            given.append(loops.joined([base for base, _, _ in columns]))
            delays.append(tuple(delay for _, delay, _ in columns))
            central.append(tuple(common for _, _, common in columns))
        merged, number = merge_columns(given, delays)
        joint = tuple(
            AddressColumn(column, _any_of([delays[r] for r, n in enumerate(number) if n == k]))
            for k, column in enumerate(merged)
        )
        return cls(joint, tuple(number), tuple(central))


def _reader_column(loop: Loop, reader: int) -> tuple[IntArray, int | None, bool]:
    """Of a reader in a loop: its column, the delay, and whether that gives its addresses."""
    read, memory = loop.field(Action.READ, reader), loop.values(Action.MEMORY, reader)
    if read is None or not (read.values >= 0).any():
        return np.full(loop.rows, IDLE), None, True
    column = read.values.max(axis=1)
    alike = ((read.values < 0) | (read.values == column[:, None])).all()
    if not alike or (memory == NEUTRAL).any():
        return np.zeros(loop.rows, int), read.delay, False
    return column, read.delay, True


def _any_of(delays: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    """Of each loop, the delay that is known."""
    return tuple(
        next((delay for delay in of_loop if delay is not None), None)
        for of_loop in zip(*delays, strict=True)
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

    def part(self, memory: int, mode: int) -> StorePart | None:
        """What a memory stores in a mode by its column, or None."""
        return self.parts[memory][mode] if memory in self.parts else None

    @classmethod
    def of(cls, loops: Loops, memories: int) -> StoreColumns:
        """Those of all loops and memories; columns that may always be equal are one."""
        columns: list[StoreColumn] = []
        column_of: dict[int, int] = {}
        parts: dict[int, StoreColumn] = {}
        for memory in range(memories):
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


def _common_store(loop: Loop, memory: int) -> StorePart | None:
    """What all variants store alike in a loop, or None."""
    field = loop.field(Action.WRITE, memory)
    if field is None or not (field.values == field.values[:, :1]).all():
        return None
    there = field.values >= 0
    facts = [np.unique(loop.values(a, memory)[there]) for a in (Action.SOURCE, Action.TAP)]
    if not there.any() or any(len(values) > 1 for values in facts):
        return None
    source, tap = (int(values[0]) for values in facts)
    return StorePart(field.values[:, 0], loop.pitch_of(memory), field.delay + tap, source)
