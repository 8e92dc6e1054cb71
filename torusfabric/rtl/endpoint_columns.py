"""ColumnSet of the sequencer for endpoints: addresses that are the same at all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..program.fields import IDLE, NEUTRAL, Action
from .place import ColumnSet, Shown
from .windows import OwnStores, Phase, Windows

if TYPE_CHECKING:
    from ..program import Program
    from ..program.fields import Loop
    from ..topology import IntArray
    from .loops import Loops

__all__ = ["ReadColumns", "StoreColumns"]


class ReadColumns:
    """What readers read: the columns of their addresses, and their memories.

    Attributes
    ----------
    columns : ColumnSet
    column_of : list of int
        The column of each reader: first addresses where they are the same at all nodes, and in all
        other modes words counted from the first.
    central : list of (list of bool)
        Of each reader, of each mode, whether the column gives its addresses.
    """

    def __init__(self, loops: Loops) -> None:
        self.loops, self.columns = loops, ColumnSet(Shown.ADDRESS)
        self.column_of: list[int] = []
        self.central: list[list[bool]] = []
        self._known: dict[tuple[int, int, int], frozenset[int]] = {}
        for reader in range(loops.first.sources.readers):
            values, delays, central = zip(
                *(self._column(loop, reader) for loop in loops.loops), strict=True
            )
            pitches = tuple(1 if known is not None else None for known in delays)
            self.column_of.append(self.columns.add(loops.joined(values), delays, pitches))
            self.central.append(list(central))

    @staticmethod
    def _column(loop: Loop, reader: int) -> tuple[IntArray, int | None, bool]:
        """The column in a mode, the delay, and whether it gives addresses."""
        read, memory = loop.field(Action.READ, reader), loop.values(Action.MEMORY, reader)
        if read is None or not (read.values >= 0).any():
            return np.full(loop.rows, IDLE), None, True
        column = read.values.max(axis=1)
        alike = ((read.values < 0) | (read.values == column[:, None])).all()
        if not alike or (memory == NEUTRAL).any():
            return np.zeros(loop.rows, int), read.delay, False
        return column, read.delay, True

    def memories(self, reader: int, members: Sequence[int], mode: int | None = None) -> set[int]:
        """What variants read, in a mode or in any."""
        found: set[int] = set()
        for number in range(len(self.loops.loops)) if mode is None else [mode]:
            for variant in members:
                key = number, reader, variant
                if key not in self._known:
                    memory = self.loops.loops[number].values(Action.MEMORY, reader)[:, variant]
                    self._known[key] = frozenset(np.unique(memory[memory != IDLE]).tolist())
                found |= self._known[key]
        return found

    def based(self, reader: int, members: Sequence[int]) -> list[bool | None]:
        """Of each mode, whether bases are those of nodes; None where variants read nothing."""
        return [
            not central if self.memories(reader, members, mode) else None
            for mode, central in enumerate(self.central[reader])
        ]

    def structure(self, reader: int, variant: int) -> object:
        """What a reader of a variant has in common with those of its shape."""
        return tuple(self.based(reader, [variant])), frozenset(self.memories(reader, [variant]))


class StoreColumns:
    """What memories store: at addresses of columns, or of the nodes' own.

    Attributes
    ----------
    addresses, strobes : ColumnSet
    columns_of : dict of int to (int, int)
        Those of each memory that stores the same at all nodes in any mode.
    sources : dict of (int, int) to int
        The source of what it stores there, by mode and memory.
    windows : Windows
        Of what nodes store on their own.
    """

    def __init__(self, program: Program, loops: Loops) -> None:
        self.loops = loops
        self.addresses, self.strobes = ColumnSet(Shown.ADDRESS), ColumnSet(Shown.STROBE)
        self.columns_of: dict[int, tuple[int, int]] = {}
        self.sources: dict[tuple[int, int], int] = {}
        for memory in range(len(program.memories)):
            self._add(memory)
        own = [
            (mode, memory)
            for mode, loop in enumerate(loops.loops)
            for memory in range(len(program.memories))
            if (mode, memory) not in self.sources and (loop.values(Action.WRITE, memory) >= 0).any()
        ]
        self.windows = Windows.of(loops, own, any_length=program.any_length)
        self._own = {place: self.windows.stores(*place) for place in own}

    def _add(self, memory: int) -> None:
        """Add the columns of a memory."""
        bases: list[IntArray] = []
        delays: list[int | None] = []
        for mode, loop in enumerate(self.loops.loops):
            given = _alike(loop, memory)
            bases.append(np.full(loop.rows, IDLE) if given is None else given.base)
            delays.append(None if given is None else given.delay)
            if given:
                self.sources[mode, memory] = given.source
        if any(delay is not None for delay in delays):
            base = self.loops.joined(bases)
            pitches = tuple(
                None if delay is None else loop.pitch_of(memory)
                for delay, loop in zip(delays, self.loops.loops, strict=True)
            )
            address = self.addresses.add(base, tuple(delays), pitches)
            strobe = self.strobes.add((base >= 0).astype(int), tuple(delays))
            self.columns_of[memory] = address, strobe

    def of_mode(self, memory: int, mode: int) -> OwnStores | None:
        """What nodes store into a memory on their own, in a mode; None where they do not."""
        return self._own.get((mode, memory))

    def own(self, memory: int, members: Sequence[int]) -> tuple[tuple[int, ...], tuple[Phase, ...]]:
        """The sources and phases by which variants store into a memory on their own."""
        sources: set[int] = set()
        phases: set[Phase] = set()
        for mode in range(len(self.loops.loops)):
            own = self.of_mode(memory, mode)
            if own:
                stores, *facts = (values[:, members] for values in own)
                window, ago, source = (values[stores].tolist() for values in facts)
                sources |= {*source}
                phases |= set(map(Phase, window, ago))
        return tuple(sorted(sources)), tuple(sorted(phases))


class _Alike(NamedTuple):
    """What all variants store alike in a mode: first addresses, when, and of which source."""

    base: IntArray
    delay: int
    source: int


def _alike(loop: Loop, memory: int) -> _Alike | None:
    """What all variants store alike into a memory, or None."""
    field = loop.field(Action.WRITE, memory)
    if field is None or not (field.values == field.values[:, :1]).all():
        return None
    there = field.values >= 0
    facts = [np.unique(loop.values(a, memory)[there]) for a in (Action.SOURCE, Action.TAP)]
    if any(len(values) != 1 for values in facts):
        return None
    source, tap = (int(values[0]) for values in facts)
    return _Alike(field.values[:, 0], field.delay + tap, source)
