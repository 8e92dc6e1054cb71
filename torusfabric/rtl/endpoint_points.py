"""What readers and memories do in all forms, and what of it the sequencer gives to all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..program.fields import IDLE, NEUTRAL, Action, Point
from .loops import Loops
from .place import Column, ColumnSet, Shown

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["Points"]


class Points:
    """What readers and memories do, in the rows of all forms.

    Attributes
    ----------
    columns : dict of str to ColumnSet
        Of the sequencer: ``read``, ``write`` and ``store``.
    given : list of (list of bool)
        Of each reader, of each form, whether all nodes that read begin at the same address, which a
        column gives; in other forms it counts words from the first.
    addresses : list of Column
        These columns.
    words : ndarray of int, shape (rows,)
        Of each row, how many words are read from one first address.
    columns_of : dict of int to (int, int)
        Of each memory that stores the same at all nodes in any form, the columns of where, and
        whether, it does.
    source, phase : list of ndarray of int, shape (rows, variants)
        Of each memory, whose words it stores, and in which phase what nodes store on their own;
        -1 where it does not.
    windows : Windows or None
        Of what nodes store on their own, if any do.
    """

    def __init__(self, program: Program) -> None:
        self.loops = Loops.of(program)
        self.columns = {name: ColumnSet() for name in ("read", "write", "store")}
        self.words = self.loops.joined([loop.blocks * loop.flits for loop in self.loops.loops])
        self.given: list[list[bool]] = []
        self.addresses: list[Column] = []
        for reader in range(self.loops.first.sources.readers):
            self._add_reads(reader)
        self.columns_of: dict[int, tuple[int, int]] = {}
        self._alike = [self._add_stores(memory) for memory in range(len(program.memories))]
        self._add_own_stores(program)

    def _add_reads(self, reader: int) -> None:
        """Find out what a column gives of the addresses of a reader."""
        point = Point(Action.READ, reader)
        read, memory = self.loops.values(point), self.loops.values(Point(Action.MEMORY, reader))
        reads, first = read >= 0, read.max(axis=1)
        alike = (~reads | (read == first[:, None])).all(axis=1) & (memory != NEUTRAL).all(axis=1)
        some = [bool(reads[span].any()) for _, span in self.loops.spans()]
        delays = [late if any_ else None for late, any_ in
                  zip(self.loops.delays(point), some, strict=True)]  # fmt: skip
        pitches = tuple(1 if any_ else None for any_ in some)
        self.addresses.append(Column(first, tuple(delays), Shown.ADDRESS, pitches))
        spans = zip(self.loops.spans(), some, strict=True)
        self.given.append([not any_ or bool(alike[span].all()) for (_, span), any_ in spans])

    def _add_stores(self, memory: int) -> list[bool]:
        """Add the columns of what all nodes store alike: from one source, as long after its row."""
        point, given = Point(Action.WRITE, memory), []
        base, delays, pitches = self.loops.values(point)[:, 0].copy(), [], []
        for loop, span in self.loops.spans():
            field, tap = loop.field(*point), -1
            if field is not None and (field.values == field.values[:, :1]).all():
                there = field.values >= 0
                facts = [np.unique(loop.values(action, memory)[there])
                         for action in (Action.SOURCE, Action.TAP)]  # fmt: skip
                if all(len(values) == 1 for values in facts):
                    tap = int(facts[1][0])
            given.append(tap >= 0)
            if field is None or tap < 0:
                base[span] = IDLE
            delays.append(field.delay + tap if field is not None and tap >= 0 else None)
            pitches.append(loop.pitch_of(memory) if tap >= 0 else None)
        if any(given):
            address = Column(base, tuple(delays), Shown.ADDRESS, tuple(pitches))
            strobe = Column((base >= 0).astype(int), tuple(delays), Shown.STROBE)
            self.columns_of[memory] = (
                self.columns["write"].add(address), self.columns["store"].add(strobe),
            )  # fmt: skip
        return given

    def _add_own_stores(self, program: Program) -> None:
        """Find out what nodes store on their own, and of which source all is."""
        writes = [self.loops.values(Point(Action.WRITE, k)) for k in range(len(program.memories))]
        own = [
            (form, memory)
            for form, (_, span) in enumerate(self.loops.spans())
            for memory, write in enumerate(writes)
            if not self._alike[memory][form] and (write[span] >= 0).any()
        ]
        sources = [self.loops.values(Point(Action.SOURCE, k)) for k in range(len(writes))]
        self.source = [np.where(w >= 0, s, IDLE) for w, s in zip(writes, sources, strict=True)]
        self.phase = [np.full_like(write, IDLE) for write in writes]
        self.windows: Windows | None = None
        if not own:
            return
        from .windows import Windows

        self.windows = Windows.of(self.loops, own, any_length=program.any_length)
        spans = [span for _, span in self.loops.spans()]
        for form, memory in own:
            stores = self.windows.stores(form, memory)
            self.source[memory][spans[form]] = stores.source
            self.phase[memory][spans[form]] = stores.phase

    def own(self, memory: int, members: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The sources of what variants store into a memory, and the phases of what is their own."""
        source, phase = (
            tuple(np.unique(values[:, members]).tolist()) for values in
            (self.source[memory], self.phase[memory])
        )  # fmt: skip
        return tuple(k for k in source if k >= 0), tuple(k for k in phase if k >= 0)

    def reads(self, reader: int, variant: int) -> object:
        """What a reader of a variant has in common with those of its shape."""
        read = self.loops.values(Point(Action.READ, reader))[:, variant] >= 0
        memory = self.loops.values(Point(Action.MEMORY, reader))[:, variant]
        based = [
            not given if read[span].any() else None
            for given, (_, span) in zip(self.given[reader], self.loops.spans(), strict=True)
        ]
        return tuple(based), frozenset(memory[memory != IDLE].tolist())
