"""Proof of all runs that a fabric can execute, with waveforms of a run that fails.

A *variant* says when a run is started after its messages are written (see `runs`). The *resting
state* has the registers between runs; bits that can differ are unknown in it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from vcd import VCDWriter

from ..topology import IntArray
from .gates import WORDS_OUT, Bit, GateText
from .machine import SymbolicMachine
from .messages import Run, expected_bits
from .report import Refuted
from .runs import MOST_NODE_RUNS, Runs
from .snapshot import Snapshot, cover_both, has_same_registers
from .sums import Sums
from .symbols import bit_text

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..toolchain.progress import Progress

__all__ = ["VcdRecorder", "AllRunsProof", "all_runs"]


def all_runs(fabric: Fabric) -> list[Run]:
    """Return every combination of mode, length, root and operator, the shortest runs first."""
    program, found = fabric.program, []
    for number, mode in enumerate(program.modes):
        lengths = range(1, program.flits + 1) if program.any_length else [program.flits]
        roots = range(mode.groups.group_size) if mode.any_root else [0]
        operations = range(max(len(mode.operators), 1))
        found += [Run(number, *choice) for choice in product(lengths, roots, operations)]
    return sorted(found, key=lambda run: program.cycles(run.length, mode=run.mode))


class AllRunsProof:
    """Proof that every run of a fabric ends in the predicted cycle with the expected words.

    All runs are executed on the gates of the fabric, with symbols in place of data. The cycle in
    which a run must end is computed from the program.

    Parameters
    ----------
    fabric : Fabric
        The fabric whose program defines the runs.
    text : GateText
        The emitted Verilog as gates.
    runs : function of (Fabric, SymbolicMachine) -> Runs
        Makes the object that executes runs; by default, the interface of the fabric makes it.
    """

    def __init__(
        self,
        fabric: Fabric,
        text: GateText,
        runs: Callable[[Fabric, SymbolicMachine], Runs] | None = None,
    ) -> None:
        self._fabric, program = fabric, fabric.program
        self._all = all_runs(fabric)
        layouts = [program.part(form).layout for form in range(len(program.forms))]
        most = max(layout.send_words(program.flits) for layout in layouts)
        ordered = not all(operator.associative for operator in program.operators)
        self._sums = Sums(program.topology.nodes * most, ordered=ordered)
        machine = SymbolicMachine(fabric, text, self._sums)
        self._runs: Runs = (runs or fabric.interface.symbolic_runs)(fabric, machine)

    def _batches(self) -> Iterator[tuple[list[Run], int]]:
        """Yield the runs to prove, as batches that are executed at once.

        Each batch comes with the number of its variant. A variant says how soon the start follows
        the writes of the messages, see `StartTiming`.
        """
        size = max(1, MOST_NODE_RUNS // self._fabric.nodes)
        for variant in self._runs.variants:
            runs = self._all if variant.every else self._extreme_runs
            for start in range(0, len(runs), size):
                yield runs[start : start + size], variant.number

    @property
    def _runs_by_variant(self) -> list[Run]:
        """All runs that are executed, as one list, the runs of the first variant first.

        A variant says how soon the start follows the writes of the messages. A run is in the list
        once for each variant in which it is executed.
        """
        return [
            r for v in self._runs.variants for r in (self._all if v.every else self._extreme_runs)
        ]

    @property
    def _extreme_runs(self) -> list[Run]:
        """The runs with the shortest and the longest messages."""
        ends = (1, self._fabric.program.flits)
        return [run for run in self._all if run.length in ends]

    @property
    def _sample_runs(self) -> list[Run]:
        """A sample of runs, with a few lengths and roots of each mode.

        The sample is small enough to be executed at once.
        """
        flits = self._fabric.program.flits
        lengths = {1, 2, flits // 2, flits - 1, flits}
        last = {run.mode: max(r.root for r in self._all if r.mode == run.mode) for run in self._all}
        few = [r for r in self._all if r.length in lengths and r.root in (0, last[r.mode])]
        return few[:: -(-len(few) * self._fabric.nodes // MOST_NODE_RUNS)]

    @property
    def statement(self) -> str:
        """The proved statement, in one line."""
        count = f"each of {len(self._all)} runs" if len(self._all) > 1 else "the run"
        return (
            f"{count} (mode, length, root, operator) ends in exactly the predicted cycle, with "
            "the expected words at their addresses, and leaves the fabric at rest"
        ) + "; words are combined in the order of the program" * self._sums.ordered

    def prove(self, progress: Progress) -> int:
        """Prove all runs; returns the number of comparisons.

        All runs begin in the *resting state*: the registers between two runs. A bit that can differ
        from run to run is unknown in it. If a run ends with registers that differ from a known bit
        of the resting state, this bit is made unknown, and all runs are executed again. First a
        sample of runs is executed in this way, which is fast and finds nearly all such bits.
        `progress` is called after each batch of runs.
        """
        rest = self._runs.starts.find_resting_state()
        # Widen the resting state by the sample, without comparison of words.
        few = [
            (self._sample_runs, variant.number) for variant in self._runs.variants if variant.every
        ]
        while not has_same_registers(
            reached := self._covering_state(few, rest, compares=False), rest
        ):
            rest = self._runs.starts.find_resting_state(reached)
        while not has_same_registers(
            reached := self._covering_state(self._batches(), rest, progress), rest
        ):
            rest = self._runs.starts.find_resting_state(reached)
        refused, _ = self._runs.starts.check_refused(rest)
        compared = refused + self._runs.access.check_rest(rest)
        return compared + sum(map(self._comparison_count, self._runs_by_variant))

    def _with_waves(self, error: Refuted, rest: Snapshot, variant: int) -> Refuted:
        """Execute a failed run again, and return its refutation with waveforms.

        `error` is the refutation without waveforms. `rest` is the state between runs, in which the
        run begins, and `variant` the number of the variant (time of the start) in which it fails.
        """
        machine, run = self._runs.machine, error.run
        if not isinstance(run, Run):
            return error
        recorder = VcdRecorder(machine.text, machine.numbers, width=self._fabric.width)
        machine.watch = recorder.record_cycle
        try:
            self._runs.prove([run], rest, variant)
        except Refuted as again:
            error = again
        finally:
            machine.watch = None
        return Refuted(replace(error.counterexample, wave=recorder.vcd_text()), run)

    def _covering_state(
        self,
        batches: Iterable[tuple[list[Run], int]],
        rest: Snapshot,
        progress: Progress = lambda *_: None,
        *,
        compares: bool = True,
    ) -> Snapshot:
        """Execute and check some runs, and all starts that the fabric must refuse.

        All of them begin in the state between runs. The result stands for the states in which they
        end: register bits that differ are unknown.

        Parameters
        ----------
        batches : iterable of (list of Run, int)
            Runs to execute at once, and the number of their variant (time of the start).
        rest : Snapshot
            The state between runs.
        progress : Progress
            Function to call after each batch, with the number of runs so far and in all.
        compares : bool
            True to compare the delivered words.

        Returns
        -------
        Snapshot
            State in which a register bit is known only if it has the same value in `rest` and after
            each of the starts and runs.
        """
        done, total = 0, len(self._runs_by_variant)
        _, reached = self._runs.starts.check_refused(rest)
        for runs, variant in batches:
            try:
                left = self._runs.prove(runs, rest, variant, compares=compares)
            except Refuted as error:
                raise self._with_waves(error, rest, variant) from None
            reached = cover_both(reached, left)
            done += len(runs)
            progress(done, total, "whole runs")
        return reached

    def _comparison_count(self, run: Run) -> int:
        """Return the number of comparisons in the proof of a run.

        The outputs busy and done count once for each cycle, the cycle counter once for each of its
        bits, and each delivered word once.
        """
        program = self._fabric.program
        _, receives = expected_bits(program, run, self._sums)
        cycles = program.cycles(run.length, mode=run.mode)
        return 2 * (cycles + 1) + 32 + int(receives.sum())


class VcdRecorder:
    """Recorder of the nets of the top, cycle by cycle, from which a VCD file is made.

    A word on a net is shown as a text such as ``word_12``; its first bit says which word it is.
    Nets that carry no words have the values 0, 1 and x.

    Parameters
    ----------
    number : dict of Bit to int
        Bit of the top -> its row in `SymbolicMachine.nets`.
    width : int
        Bits of a word.
    """

    def __init__(self, text: GateText, number: dict[Bit, int], *, width: int) -> None:
        self._cycles: list[IntArray] = []
        carried = {
            bit
            for instance in text.instances.values()
            for port, bits in instance.pins.items()
            if port in WORDS_OUT
            for bit in bits
        }
        self._words: dict[str, int] = {}
        self._vectors: dict[str, list[int]] = {}
        for name, bits in text.nets.items():
            places = [number.get(bit, 2) for bit in bits]
            if bits and bits[0] in carried:
                for k, place in enumerate(places[::width]):
                    self._words[f"{name}_{k}"] = place
            elif any(place > 2 for place in places):
                self._vectors[name] = places

    def record_cycle(self, nets: IntArray) -> None:
        """Record the values of all nets in one cycle of the first run.

        `nets` has the symbolic value of each bit of the top, shape (bits, runs).
        """
        self._cycles.append(nets[:, 0].copy())

    def vcd_text(self) -> str:
        """Return the text of the VCD file with all recorded cycles.

        A cycle takes two time units, for the two halves of the clock.
        """
        stream = io.StringIO()
        with VCDWriter(stream, timescale="1 ns", date="") as writer:
            clock = writer.register_var("fabric", "clk", "wire", size=1)
            words = {n: writer.register_var("fabric", n, "string") for n in self._words}
            vectors = {
                n: writer.register_var("fabric", n, "wire", size=len(places))
                for n, places in self._vectors.items()
            }
            for cycle, nets in enumerate(self._cycles):
                writer.change(clock, 2 * cycle, 1)
                for name, value in self._recorded_values(nets):
                    writer.change((words | vectors)[name], 2 * cycle, value)
                writer.change(clock, 2 * cycle + 1, 0)
        return stream.getvalue()

    def _recorded_values(self, nets: IntArray) -> Iterator[tuple[str, str]]:
        """Yield the name and the value, as text, of each net in one recorded cycle.

        `nets` has the symbolic value of each bit of the top in this cycle.
        """
        for name, place in self._words.items():
            yield name, bit_text(int(nets[place])).replace(" ", "_")
        for name, places in self._vectors.items():
            bits = (int(nets[place]) for place in reversed(places))
            yield name, "".join(str(bit) if bit in (0, 1) else "x" for bit in bits)
