"""Runs of a fabric whose nodes load and unload messages while others are under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..program.timing import WRITE
from ..topology import IntArray
from .memory_runs import MemoryRuns
from .messages import Run
from .report import refuted
from .runs import Meanwhile, Variant
from .snapshot import Snapshot, arrays, of_all, spread, unchanged, with_arrays
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from ..program import Program
    from .machine import Override
    from .starts import Starts
    from .stream_access import StreamAccess

__all__ = ["StreamRuns"]


class StreamRuns(MemoryRuns):
    """Runs of each number; loaders and unloaders of others do anything meanwhile."""

    follows = 1
    unshown = 1
    access: StreamAccess

    def __init__(self, program: Program, starts: Starts, access: StreamAccess) -> None:
        super().__init__(program, starts, access)
        self._sections = sections = access.sections
        self.variants = tuple(
            Variant(number, every=number < sections.count) for number in range(2 * sections.count)
        )
        # The bits of the register of a node that names the section that the run under way uses.
        self._bits = (
            ["section"] if sections.bits == 1 else [f"section[{k}]" for k in range(sections.bits)]
        )

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Carry out runs of a number."""
        cycles = self._prepare(runs)
        access, machine = self.access, self.machine
        access.number = variant
        begin = self._with_section(spread(rest, len(runs)), variant - 1)
        writes = access.writes(runs)
        machine.settle(begin, self.starts.given())
        machine.forget_words()
        for step in range(writes.count + WRITE):
            machine.settle(begin, self.starts.given(), access.at(writes, step), only=access.nodes)
            begin = machine.after(begin)
        resting = self._with_section(spread(rest, len(runs)), variant - 1)
        begin = self._settled(resting, begin)
        loading = [self._loading(variant + ahead) for ahead in self._ahead]
        meanwhile = Meanwhile(overrides=lambda cycle: loading[cycle % len(loading)])
        now, left = self._run(runs, cycles, begin, meanwhile)
        self._check_section(left)
        if compares:
            now = unchanged(self._rested(now), left)
            self._survive(now)
            self._compare_all(runs, cycles, now)
        return of_all(left, len(runs))

    @property
    def _ahead(self) -> range:
        """How many runs ahead a message may be that is loaded while a run is under way."""
        return range(1, self._sections.buffers)

    def _loading(self, number: int) -> dict[str, Override]:
        """What drives nets while loaders do anything with a message."""
        return self.access.at(self.access.meanwhile(number=number), 0)

    def _registers(self, module: str) -> Iterator[tuple[int, int]]:
        """Where the bits of the section are among the registers of a node, and which they are."""
        names = self.machine.groups[module].program.names
        for k, name in enumerate(self._bits):
            if name in names:
                yield names.index(name), k

    def _with_section(self, now: Snapshot, number: int) -> Snapshot:
        """A state in which all nodes use the section of a run."""
        found = with_arrays(now, [values.copy() for values in arrays(now)])
        for module in self.access.nodes:
            for place, bit in self._registers(module):
                found.states[module].flops[place] = number >> bit & 1
        return found

    def _check_section(self, now: Snapshot) -> None:
        """Check that all nodes have turned to the section of the run."""
        number = self.access.number
        for module in self.access.nodes:
            for place, bit in self._registers(module):
                if (now.states[module].flops[place] != number >> bit & 1).any():
                    section = number % self._sections.count
                    what = f"{module} must use section {section} in this run"
                    raise refuted("whole runs", self._bits[bit], what)

    def _survive(self, now: Snapshot) -> None:
        """Let loaders, and the runs after this one, do anything that they may, in place.

        Nothing is known of registers but the section, so that what one cycle leaves all will.
        """
        machine, number = self.machine, self.access.number
        # Until what it has brought is unloaded, as many runs follow as there are other buffers.
        for later in range(1, 2 * self._sections.buffers - 1):
            loading = self._loading(number + later)
            machine.settle(now, self.starts.given(), loading, only=self.access.nodes)
            machine.after(now)
        machine.nets[3:] = UNKNOWN
        machine.nets[machine.text_places("run_begins")] = 0
        forgotten = with_arrays(now, [np.full_like(values, UNKNOWN) for values in arrays(now)])
        for run in range(number + 1, number + self._sections.buffers):
            anything = self._with_section(forgotten, run)
            for ahead in self._ahead:
                machine.settle(anything, {}, self._loading(run + ahead), only=self.access.nodes)
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
