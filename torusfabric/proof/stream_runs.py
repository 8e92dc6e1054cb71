"""Runs of a fabric whose nodes load and unload messages while others are under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..program.timing import WRITE
from ..topology import IntArray
from .faults import refuted
from .memory_runs import MemoryRuns
from .messages import Run
from .runs import Meanwhile, Variant
from .snapshot import Snapshot, arrays, of_all, spread, unchanged, with_arrays
from .stream_access import SECTIONS
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from .stream_access import StreamAccess

__all__ = ["StreamRuns"]

#: The register of a node that names the half of its memories that the run under way uses.
HALF = "half"


class StreamRuns(MemoryRuns):
    """Runs in each section; loaders and unloaders of other sections do anything meanwhile."""

    variants: tuple[Variant, ...] = tuple(
        Variant(section, every=section < 2) for section in range(SECTIONS)
    )
    follows = 1
    access: StreamAccess

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Carry out runs of a section."""
        cycles = self._prepare(runs)
        access, machine, half = self.access, self.machine, variant % 2
        access.section = variant
        begin = self._with_half(spread(rest, len(runs)), 1 - half)
        writes = access.writes(runs)
        machine.settle(begin, self.starts.given())
        machine.forget_words()
        for step in range(writes.count + WRITE):
            machine.settle(begin, self.starts.given(), access.at(writes, step), only=access.nodes)
            begin = machine.after(begin)
        resting = self._with_half(spread(rest, len(runs)), 1 - half)
        begin = self._settled(resting, begin)
        loading = access.meanwhile(section=variant + 1)
        meanwhile = Meanwhile(overrides=lambda _: access.at(loading, 0))
        now, left = self._run(runs, cycles, begin, meanwhile)
        self._check_half(left, half)
        if compares:
            now = unchanged(self._rested(now), left)
            self._survive(now, half)
            self._compare_all(runs, cycles, now)
        return of_all(left, len(runs))

    def _with_half(self, now: Snapshot, half: int) -> Snapshot:
        """A state in which all nodes use a half."""
        found = with_arrays(now, [values.copy() for values in arrays(now)])
        for module in self.access.nodes:
            names = self.machine.groups[module].program.names
            if HALF in names:
                found.states[module].flops[names.index(HALF)] = half
        return found

    def _check_half(self, now: Snapshot, half: int) -> None:
        """Check that all nodes have turned to a half."""
        for module in self.access.nodes:
            names = self.machine.groups[module].program.names
            if HALF in names and (now.states[module].flops[names.index(HALF)] != half).any():
                raise refuted("whole runs", HALF, f"{module} must use half {half} in this run")

    def _survive(self, now: Snapshot, half: int) -> None:
        """Let loaders, and the run after this one, do anything that they may, in place.

        Nothing is known of registers but the half, so that what one cycle leaves all will.
        """
        machine, access = self.machine, self.access
        for later in (1, 2):
            machine.settle(now, self.starts.given(), access.at(access.meanwhile(
                section=access.section + later), 0), only=access.nodes)  # fmt: skip
            machine.after(now)
        machine.nets[3:] = UNKNOWN
        machine.nets[machine.text_places("run_begins")] = 0
        forgotten = with_arrays(now, [np.full_like(values, UNKNOWN) for values in arrays(now)])
        anything = self._with_half(forgotten, 1 - half)
        loading = access.at(access.meanwhile(section=access.section + 2), 0)
        machine.settle(anything, {}, loading, only=access.nodes)
        machine.after(anything)

    def _compare_all(self, runs: Sequence[Run], cycles: IntArray, now: Snapshot) -> None:
        """Unload, and compare; the receiver waits before every word."""
        machine, access = self.machine, self.access
        reads, pause = access.reads(runs), access.at(access.pause(), 0)
        owed = self._owed(runs)
        machine.settle(now, self.starts.given())
        machine.forget_words()
        for step in range(reads.count + access.answer):
            for asked in (pause, access.at(reads, step)):
                machine.settle(now, self.starts.given(), asked, only=access.nodes)
                if step >= access.answer:
                    self._compare_step(runs, cycles, owed, step - access.answer)
                now = machine.after(now)
