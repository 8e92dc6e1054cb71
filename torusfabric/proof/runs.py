"""Whole runs of the emitted text, from any state in which it is at rest.

What is at rest is the least set of states that has what follows a reset, that stays at rest while
nobody starts a run, and to which every run returns. From each of them, with each choice of mode,
length, root and operator, a run is carried out to its end with words that stand for any words;
everything else that could differ is not known. So it is proved for all data, and for any number of
runs in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..program.timing import WRITE
from ..topology import BoolArray, IntArray
from .accesses import side_by_side
from .messages import Run, in_beats, owed_words
from .report import Counterexample, Refuted, refuted
from .snapshot import (
    Snapshot,
    arrays,
    of_all,
    picked,
    repeated,
    same,
    spread,
    unchanged,
    with_arrays,
)
from .starts import Starts
from .symbols import UNKNOWN, named

if TYPE_CHECKING:
    from .accesses import Access, Steps
    from .machine import Override

__all__ = ["LANES", "Meanwhile", "MemoryRuns", "Runs", "Variant", "run_refuted"]

#: Nodes times runs that are carried out at once.
LANES = 4096

#: Cycles within which nothing changes any more after a run.
RESTING = 100


def run_refuted(
    run: Run, cycle: int, signal: str, message: str, node: int | None = None
) -> Refuted:
    """The exception of a run that is not as it should be."""
    at = "" if node is None else f" of node {node}"
    text = f"{signal[:1].upper()}{signal[1:]}{at} {message} (cycle {cycle} of {run})"
    return Refuted(Counterexample("whole runs", signal + at, cycle, text), run)


class Variant(NamedTuple):
    """A way in which runs can come about.

    Parameters
    ----------
    every : bool
        Whether all runs are carried out in it, or those of the shortest and longest messages.
    """

    number: int
    every: bool


class Meanwhile(NamedTuple):
    """What goes on around a fabric in a cycle of a run, counted from 0; -1 is that of the start.

    Parameters
    ----------
    driven : function of (cycle) -> dict of str to ndarray
        What drives nets of the top, besides what a start does.
    overrides : function of (cycle) -> dict of str to Override
        What drives inputs of instances.
    look : function of (cycle)
        Looks at the nets.
    """

    driven: Callable[[int], dict[str, IntArray]] = lambda _: {}
    overrides: Callable[[int], Mapping[str, Override]] = lambda _: {}
    look: Callable[[int], None] = lambda _: None


class Runs(ABC):
    """Runs of a fabric, several at once."""

    def __init__(self, access: Access) -> None:
        self.machine, self.program = access.machine, access.program
        self.starts, self.access = Starts(access), access

    #: The ways in which runs can come about.
    variants: tuple[Variant, ...] = (Variant(0, every=True),)
    #: In how many of the last cycles of a run the next one may begin.
    follows = 0
    #: In how many of its first cycles a run is not shown yet.
    unshown = 0

    @abstractmethod
    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Carry out runs from what is at rest, in one of the ways in which they can come about.

        Words are compared in the end, or runs are carried out for what they leave. Returns what is
        known of the fabric whichever of the runs it has done; raises `Refuted` if one of them is
        not as it should be.
        """

    def _prepare(self, runs: Sequence[Run]) -> IntArray:
        """Get ready for runs; returns the cycles that each takes."""
        self.machine.prepare(len(runs))
        self.machine.choose([run.operation for run in runs])
        return np.array([self.program.cycles(run.length, mode=run.mode) for run in runs])

    def _run(
        self, runs: Sequence[Run], cycles: IntArray, now: Snapshot, meanwhile: Meanwhile
    ) -> tuple[Snapshot, Snapshot]:
        """Go on until all runs are done; the state in the end, and each run's when it was."""
        machine = self.machine
        given = self.starts.of(runs) | meanwhile.driven(-1)
        machine.settle(now, given, meanwhile.overrides(-1))
        meanwhile.look(-1)
        now = left = machine.after(now)
        for edge in range(int(cycles.max()) + 1):
            under_way: BoolArray = edge < cycles
            # Whatever the start is meanwhile, it is ignored.
            ignored = edge < cycles - self.follows
            given = self.access.given(start=np.where(ignored, UNKNOWN, 0))
            machine.settle(now, given | meanwhile.driven(edge), meanwhile.overrides(edge))
            meanwhile.look(edge)
            shows = edge >= self.unshown
            self._check(runs, edge, "busy", under_way & shows)
            if shows:
                self._check(runs, edge, "done", ~under_way)
            if not edge and self.starts.chosen:
                self._check(runs, edge, self.starts.error, 0)
            ending: BoolArray = np.equal(cycles, edge)
            if ending.any():
                left = picked(ending, now, left, len(runs))
                self._check(runs, edge, "cycles", edge, there=ending)
            now = machine.after(now)
        return now, left

    def _check(
        self,
        runs: Sequence[Run],
        edge: int,
        signal: str,
        wanted: BoolArray | int,
        *,
        there: BoolArray | bool = True,
    ) -> None:
        """Check a number that the top shows in some runs, or a bit of each board."""
        for k, shown in enumerate(self.machine.shown(signal)):
            bits, name = wanted, signal
            if isinstance(wanted, int):
                bits, name = np.full(len(shown), wanted >> k & 1), f"{signal}[{k}]"
            wrong = (shown != bits) & there
            if wrong.any():
                at = int(wrong.argmax())
                message = f"must be {int(np.asarray(bits)[at])}, not {named(int(shown[at]))}"
                raise run_refuted(runs[at], edge, name, message)

    def _rested(self, now: Snapshot) -> Snapshot:
        """The state once nothing changes any more but in nodes; what links carry is forgotten."""
        machine = self.machine
        for _ in range(RESTING):
            machine.settle(now, self.access.given())
            shown, later = machine.nets.copy(), machine.after(now)
            machine.settle(later, self.access.given())
            if (shown == machine.nets).all() and same(now, later):
                return later
            now = later
        message = f"A fabric that is done must come to rest within {RESTING} cycles, not go on"
        raise refuted("whole runs", "busy", message)


class MemoryRuns(Runs):
    """Runs of a fabric whose nodes have memories: written before, and read after.

    They start at any time after all that was written is in the memories, or as early as they may.
    """

    variants: tuple[Variant, ...] = (Variant(0, every=True), Variant(1, every=False))

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Carry out runs, in variant 1 as early as they may start."""
        early = variant == 1
        cycles = self._prepare(runs)
        access, begin = self.access, spread(rest, len(runs))
        writes = access.writes(runs)
        # The step of writes in the cycle of the start.
        first = writes.count - access.overlap if early else writes.count + WRITE
        begin = self._written(begin, writes, first)
        if not early:
            begin = self._settled(spread(rest, len(runs)), begin)
            access.check_others(begin)
        meanwhile = Meanwhile(overrides=lambda cycle: access.at(writes, first + 1 + cycle))
        now, left = self._run(runs, cycles, begin, meanwhile)
        if compares:
            self._read(runs, cycles, now, left)
        return of_all(left, len(runs))

    def _written(self, begin: Snapshot, writes: Steps, count: int) -> Snapshot:
        """The state after so many steps of writes; all but the nodes is at rest."""
        machine, access = self.machine, self.access
        machine.settle(begin, self.access.given())
        machine.forget_words()
        for step in range(count):
            machine.settle(begin, self.access.given(), access.at(writes, step), only=access.nodes)
            begin = machine.after(begin)
        return begin

    def _settled(self, rest: Snapshot, written: Snapshot) -> Snapshot:
        """The state at rest with the words that memories hold; some memories are of one word.

        A register is one of them if it holds a word that stays, whatever else is at rest.
        """
        machine = self.machine
        now = with_arrays(
            written,
            [np.where(w > 1, w, r) for w, r in zip(arrays(written), arrays(rest), strict=True)],
        )
        while True:
            machine.settle(now, self.access.given())
            later = machine.after(now)
            stays = [
                np.where((a > 1) & (a != b), r, a)
                for a, b, r in zip(arrays(now), arrays(later), arrays(rest), strict=True)
            ]
            settled = with_arrays(later, stays)
            if same(settled, now):
                return settled
            now = settled

    def _read(self, runs: Sequence[Run], cycles: IntArray, now: Snapshot, left: Snapshot) -> None:
        """Read what is owed, and compare; what came after a run was done is too late."""
        machine, access = self.machine, self.access
        reads: Steps = access.reads(runs)
        now, owed = unchanged(self._rested(now), left), self._owed(runs)
        # Reads are carried out side by side, with nothing known of those before and after.
        most = max(1, LANES // (self.program.topology.nodes * len(runs)))
        for first in range(0, reads.count, most):
            count = min(most, reads.count - first)
            machine.prepare(len(runs) * count)
            each, asked = repeated(now, count), side_by_side(reads, first, count)
            machine.settle(each, self.access.given())
            machine.forget_words()
            for step in range(access.answer + 1):
                given = access.at(asked, step)
                machine.settle(each, self.access.given(), given, only=access.nodes)
                if step < access.answer:
                    each = machine.after(each)
            for at in range(first, first + count):
                lanes = slice(at - first, None, count)
                self._compare_step(runs, cycles, owed, at, lanes)

    def _owed(self, runs: Sequence[Run]) -> list[IntArray]:
        """What each run owes, by beats, and to whom; UNKNOWN where it is nothing."""
        owed = []
        for run in runs:
            words, receives = owed_words(self.program, run, self.machine.sums)
            wanted = np.where(receives, words, UNKNOWN)
            owed.append(in_beats(wanted, run.length, self.access.beat))
        return owed

    def _compare_step(
        self,
        runs: Sequence[Run],
        cycles: IntArray,
        owed: list[IntArray],
        at: int,
        lanes: slice = slice(None),
    ) -> None:
        """Compare a beat of each run; which lanes are theirs may be said."""
        for k, words in enumerate(owed):
            if at < words.shape[1]:
                lane = range(self.machine.runs)[lanes][k]
                self._compare(runs[k], lane, words[:, at], int(cycles[k]), at)

    def _compare(self, run: Run, k: int, wanted: IntArray, cycle: int, at: int) -> None:
        """Compare a beat of all nodes that are owed any of it."""
        for module, nodes in self.access.nodes.items():
            owed = wanted[nodes].T
            shown = self.machine.output(module, "read_data")[: len(owed), :, k]
            wrong = (shown != owed) & (owed != UNKNOWN)
            if wrong.any():
                flit, place = np.argwhere(wrong)[0].tolist()
                what = [named(int(bits[flit, place])) for bits in (owed, shown)]
                message, word = f"must be {what[0]}, not {what[1]}", at * len(owed) + flit
                raise run_refuted(run, cycle, f"received word {word}", message, nodes[place])
