"""Runs of a fabric whose nodes have memories: write messages, run, read the received words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..program.timing import WRITE
from ..topology import IntArray
from .accesses import side_by_side
from .messages import Run, expected_bits, in_beats
from .runs import AT_ONCE, Meanwhile, Runs, Variant, run_refuted
from .snapshot import Snapshot, arrays, of_all, repeated, same, spread, unchanged, with_arrays
from .symbols import UNKNOWN, named, one_word

if TYPE_CHECKING:
    from .accesses import Access, Steps

__all__ = ["MemoryRuns"]


class MemoryRuns(Runs):
    """Symbolic execution of runs with memory accesses.

    =======  =================================================================================
    variant  start
    =======  =================================================================================
    0        at any time after all writes have taken effect
    1        the earliest start that the fabric executes without delay
    2        the cycle after the last write; the fabric delays the run by `Access.hold` cycles
    =======  =================================================================================

    Variant 2 exists only for fabrics that can delay a run.
    """

    variants: tuple[Variant, ...] = (Variant(0, every=True), Variant(1, every=False))

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        if access.hold:
            self.variants += (Variant(2, every=False),)

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Execute runs in a variant, and compare the words; see `Runs.prove`."""
        cycles = self.prepare(runs)
        access, begin = self.access, spread(rest, len(runs))
        writes, held = access.writes(runs), access.hold * (variant == 2)
        # Index of the write step in the cycle of the start.
        first = writes.count + (-access.overlap - held if variant else WRITE)
        begin = self.written(begin, writes, first)
        if not variant:
            begin = self.settled(spread(rest, len(runs)), begin)
            access.check_others(begin)
        meanwhile = Meanwhile(
            driven=lambda cycle: access.settling(cycle + 1 < held),
            overrides=lambda cycle: access.at(writes, first + 1 + cycle),
        )
        now, left = self.carry_out(runs, cycles, begin, meanwhile, held=held)
        if compares:
            self.read(runs, cycles, unchanged(self.rested(now), left))
        return of_all(left, len(runs))

    def written(self, begin: Snapshot, writes: Steps, count: int) -> Snapshot:
        """Return the state after `count` steps of writes; only the nodes are executed."""
        machine, access = self.machine, self.access
        machine.settle(begin, self.access.given())
        machine.forget_words()
        for step in range(count):
            machine.settle(begin, self.access.given(), access.at(writes, step), only=access.nodes)
            begin = machine.after(begin)
        return begin

    def settled(self, rest: Snapshot, written: Snapshot) -> Snapshot:
        """Return the resting state with the written words in the memories.

        A register counts as a memory here if it keeps its word while all else is at rest.
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

    def read(self, runs: Sequence[Run], cycles: IntArray, now: Snapshot) -> None:
        """Read the expected words from the final state, and compare them."""
        machine, access = self.machine, self.access
        reads: Steps = access.reads(runs)
        expected = self.expected(runs)
        # Reads are executed side by side, with unknown reads before and after each.
        most = max(1, AT_ONCE // (self.program.topology.nodes * len(runs)))
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
                columns = slice(at - first, None, count)
                self.compare_step(runs, cycles, expected, at, columns)

    def expected(self, runs: Sequence[Run]) -> list[IntArray]:
        """Return the expected words of each run by beats; `UNKNOWN` for words without delivery."""
        expected = []
        for run in runs:
            words, receives = expected_bits(self.program, run, self.machine.sums)
            wanted = np.where(receives, words, UNKNOWN)
            expected.append(in_beats(wanted, run.length, self.access.beat))
        return expected

    def compare_step(
        self,
        runs: Sequence[Run],
        cycles: IntArray,
        expected: list[IntArray],
        at: int,
        columns: slice = slice(None),
    ) -> None:
        """Compare beat `at` of each run; `columns` selects the machine columns of the runs."""
        for k, words in enumerate(expected):
            if at < words.shape[1]:
                column = range(self.machine.runs)[columns][k]
                self._compare(runs[k], column, words[:, at], int(cycles[k]), at)

    def _compare(self, run: Run, k: int, wanted: IntArray, cycle: int, at: int) -> None:
        """Compare the expected words of one beat of one run at all nodes."""
        for module, nodes in self.access.shown.items():
            expected = wanted[nodes].T
            bits = self.machine.output(module, self.access.port)[:, :, k]
            shown = bits.reshape(-1, len(self.machine.positions), len(nodes))
            shown = one_word(shown.swapaxes(0, 1))[: len(expected)]
            wrong = (shown != expected) & (expected != UNKNOWN)
            if wrong.any():
                flit, place = np.argwhere(wrong)[0].tolist()
                what = [named(int(bits[flit, place])) for bits in (expected, shown)]
                message, word = f"must be {what[0]}, not {what[1]}", at * len(expected) + flit
                raise run_refuted(run, cycle, f"received word {word}", message, nodes[place])
