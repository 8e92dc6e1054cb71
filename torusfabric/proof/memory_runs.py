"""Runs of a fabric whose nodes have memories: write messages, run, read the received words.

A *snapshot* is the state of all registers and memories of a fabric. The machine executes several
runs at once, each in a *column* of its arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..program.timing import WRITE
from ..topology import IntArray
from .accesses import reads_in_one_step
from .messages import Run, expected_bits, group_by_beats
from .runs import MOST_NODE_RUNS, Environment, Runs, StartTiming, make_run_refutation
from .snapshot import (
    Snapshot,
    copy_to_runs,
    cover_runs,
    forget_changes,
    has_same_registers,
    register_arrays,
    repeat_runs,
    with_register_arrays,
)
from .symbols import UNKNOWN, bit_of_word, bit_text

if TYPE_CHECKING:
    from .accesses import AccessSteps, NodeAccess

__all__ = ["MemoryRuns"]


class MemoryRuns(Runs):
    """Symbolic execution of runs: messages are written, the runs executed, and the words read.

    A variant is one time of the start:

    =======  =================================================================================
    variant  start
    =======  =================================================================================
    0        at any time after all writes have taken effect
    1        the earliest start that the fabric executes without delay
    2        the cycle after the last write; the fabric delays the run by `NodeAccess.hold` cycles
    =======  =================================================================================

    Variant 2 exists only for fabrics that can delay a run.
    """

    variants: tuple[StartTiming, ...] = (StartTiming(0, every=True), StartTiming(1, every=False))

    def __init__(self, access: NodeAccess) -> None:
        super().__init__(access)
        if access.hold:
            self.variants += (StartTiming(2, every=False),)

    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Execute runs from the resting state `rest`, and check them; see `Runs.prove`.

        `variant` is the number of the time of the start, see `MemoryRuns`. With `compares`, the
        delivered words are compared with the expected ones.
        """
        cycles = self.prepare_machine(runs)
        access, begin = self.access, copy_to_runs(rest, len(runs))
        writes, held = access.message_writes(runs), access.hold * (variant == 2)
        # Index of the write step in the cycle of the start.
        first = writes.count + (-access.overlap - held if variant else WRITE)
        begin = self.write_messages(begin, writes, first)
        if not variant:
            begin = self.rest_with_messages(copy_to_runs(rest, len(runs)), begin)
            access.check_others(begin)
        meanwhile = Environment(
            driven=lambda cycle: access.settling_net(cycle + 1 < held),
            overrides=lambda cycle: access.endpoint_inputs(writes, first + 1 + cycle),
        )
        now, left = self.execute_runs(runs, cycles, begin, meanwhile, held=held)
        if compares:
            self.read_and_compare(runs, cycles, forget_changes(self.resting_state(now), left))
        return cover_runs(left, len(runs))

    def write_messages(self, begin: Snapshot, writes: AccessSteps, count: int) -> Snapshot:
        """Return the state after the first `count` cycles of writes, from the state `begin`.

        `writes` has the values at the ports of nodes in each cycle. Only endpoints are executed.
        All other nets keep the values that they have in `begin`, except that words on links are
        unknown.
        """
        machine, access = self.machine, self.access
        machine.settle_nets(begin, self.access.idle_inputs())
        machine.forget_words()
        for step in range(count):
            machine.settle_nets(
                begin,
                self.access.idle_inputs(),
                access.endpoint_inputs(writes, step),
                only=access.nodes,
            )
            begin = machine.next_state(begin)
        return begin

    def rest_with_messages(self, rest: Snapshot, written: Snapshot) -> Snapshot:
        """Return the state of a fabric at rest whose memories hold written messages.

        The result has the memories of `written`. A memory of one word is a register. So the result
        also has those registers of `written` that hold a bit of a word and keep it while the fabric
        rests. All other registers are taken from `rest`.

        Parameters
        ----------
        rest : Snapshot
            The state between runs. Bits that are not always the same between runs are unknown.
        written : Snapshot
            State directly after the writes.
        """
        machine = self.machine
        now = with_register_arrays(
            written,
            [
                np.where(w > 1, w, r)
                for w, r in zip(register_arrays(written), register_arrays(rest), strict=True)
            ],
        )
        while True:
            machine.settle_nets(now, self.access.idle_inputs())
            later = machine.next_state(now)
            stays = [
                np.where((a > 1) & (a != b), r, a)
                for a, b, r in zip(
                    register_arrays(now), register_arrays(later), register_arrays(rest), strict=True
                )
            ]
            settled = with_register_arrays(later, stays)
            if has_same_registers(settled, now):
                return settled
            now = settled

    def read_and_compare(self, runs: Sequence[Run], cycles: IntArray, now: Snapshot) -> None:
        """Read the received words of all nodes, and compare them with the expected ones.

        Parameters
        ----------
        cycles : ndarray of int, shape (runs,)
            Cycles that the program predicts for each run, for error messages.
        now : Snapshot
            State in which the words are read.

        Raises
        ------
        Refuted
            If a word differs from the expected one.
        """
        machine, access = self.machine, self.access
        reads: AccessSteps = access.message_reads(runs)
        expected = self.expected_beats(runs)
        # Reads are executed side by side, with unknown reads before and after each.
        most = max(1, MOST_NODE_RUNS // (self.program.topology.nodes * len(runs)))
        for first in range(0, reads.count, most):
            count = min(most, reads.count - first)
            machine.prepare_runs(len(runs) * count)
            each, asked = repeat_runs(now, count), reads_in_one_step(reads, first, count)
            machine.settle_nets(each, self.access.idle_inputs())
            machine.forget_words()
            for step in range(access.answer + 1):
                given = access.endpoint_inputs(asked, step)
                machine.settle_nets(each, self.access.idle_inputs(), given, only=access.nodes)
                if step < access.answer:
                    each = machine.next_state(each)
            for at in range(first, first + count):
                columns = slice(at - first, None, count)
                self.compare_step(runs, cycles, expected, at, columns)

    def expected_beats(self, runs: Sequence[Run]) -> list[IntArray]:
        """Return the expected words of each of `runs`: ndarrays, shape (nodes, beats, beat).

        Words that the collective does not deliver to the node are `UNKNOWN` and not compared.
        """
        expected = []
        for run in runs:
            words, receives = expected_bits(self.program, run, self.machine.sums)
            wanted = np.where(receives, words, UNKNOWN)
            expected.append(group_by_beats(wanted, run.length, self.access.beat))
        return expected

    def compare_step(
        self,
        runs: Sequence[Run],
        cycles: IntArray,
        expected: list[IntArray],
        at: int,
        columns: slice = slice(None),
    ) -> None:
        """Compare one beat of each run with the words that the nodes show in this cycle.

        Parameters
        ----------
        cycles : ndarray of int, shape (runs,)
            Cycles that the program predicts for each run, for error messages.
        expected : list of ndarray
            Expected words of each run, as `expected_beats` returns them.
        at : int
            Number of the beat.
        columns : slice
            The machine executes many reads side by side, each in one column of its arrays. The
            slice selects the columns of this read, one for each run.
        """
        for k, words in enumerate(expected):
            if at < words.shape[1]:
                column = range(self.machine.runs)[columns][k]
                self._compare_beat(runs[k], column, words[:, at], int(cycles[k]), at)

    def _compare_beat(self, run: Run, k: int, wanted: IntArray, cycle: int, at: int) -> None:
        """Compare one beat of one run, at all nodes, with the expected words.

        Parameters
        ----------
        k : int
            Column of the arrays of the machine in which the nodes show the beat.
        wanted : ndarray of int, shape (nodes, beat)
            Symbolic bits of the expected words; `UNKNOWN` for words that are not compared.
        cycle, at : int
            Last cycle of the run, and number of the beat, for error messages.
        """
        for module, nodes in self.access.nodes_by_module.items():
            expected = wanted[nodes].T
            bits = self.machine.output_values(module, self.access.port)[:, :, k]
            shown = bits.reshape(-1, len(self.machine.positions), len(nodes))
            shown = bit_of_word(shown.swapaxes(0, 1))[: len(expected)]
            wrong = (shown != expected) & (expected != UNKNOWN)
            if wrong.any():
                flit, place = np.argwhere(wrong)[0].tolist()
                what = [bit_text(int(bits[flit, place])) for bits in (expected, shown)]
                message, word = f"must be {what[0]}, not {what[1]}", at * len(expected) + flit
                raise make_run_refutation(
                    run, cycle, f"received word {word}", message, nodes[place]
                )
