"""Whole runs of the emitted text, from any state in which it is at rest.

What is at rest is the least set of states that has what follows a reset, that stays at rest while
nobody starts a run, and to which every run returns. From each of them, with each choice of mode,
length, root and operator, a run is carried out to its end with words that stand for any words;
everything else that could differ is not known. So it is proved for all data, and for any number of
runs in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..program.timing import WRITE
from ..rtl.netlist import Role
from ..topology import BoolArray, IntArray
from .accesses import Reads, Writes
from .machine import Machine
from .messages import Run, owed_words
from .snapshot import (
    Snapshot,
    arrays,
    forgetful,
    of_all,
    picked,
    same,
    spread,
    with_arrays,
    with_either,
)
from .symbols import UNKNOWN, named

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["RESET", "Refutation", "RunFault", "Runs"]

#: Clock edges for which a reset lasts.
RESET = 16

#: The inputs that are sampled with the start.
CHOICES = ("mode", "length", "root", "operation")


@dataclass(frozen=True)
class RunFault:
    """Where a run is not as it should be.

    Parameters
    ----------
    run : Run
    cycle : int
        Clock edges since the start.
    signal : str
    node : int or None
    message : str
    """

    run: Run
    cycle: int
    signal: str
    node: int | None
    message: str

    def __str__(self) -> str:
        at = "" if self.node is None else f" of node {self.node}"
        return f"{self.signal}{at} in cycle {self.cycle} of {self.run} {self.message}"


class Refutation(Exception):
    """A run is not as it should be."""

    def __init__(self, fault: RunFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Runs:
    """Runs of a fabric, several at once.

    Parameters
    ----------
    fabric : Fabric
    machine : Machine
    answer : int
        Cycles from a read at a node to its word.
    write_cycles : int
        Cycles from a write at the host port to the register before the nodes.
    """

    def __init__(self, fabric: Fabric, machine: Machine, *, answer: int, write_cycles: int) -> None:
        self.machine, self.program = machine, fabric.program
        self._chosen = [name for name in CHOICES if name in machine.text.nets]
        self._answer, self._write_cycles = answer, write_cycles
        roles, prefix = fabric.netlist.roles, fabric.prefix
        self._endpoints = {
            module: [int(name.rsplit("_", 1)[1]) for name in group.names]
            for module, group in machine.groups.items()
            if roles[module.removeprefix(prefix)] is Role.ENDPOINT
        }

    def rest(self, before: Snapshot | None = None) -> Snapshot:
        """What follows a reset, and a state before, while nobody starts a run."""
        machine = self.machine
        machine.prepare(1)
        now = machine.unknown()
        for _ in range(RESET):
            machine.settle(now, self._given(rst=1, start=UNKNOWN))
            now = machine.after(now)
        now = now if before is None else with_either(now, before)
        while True:
            machine.settle(now, self._given())
            later = with_either(now, forgetful(machine.after(now)))
            if same(now, later):
                return now
            now = later

    def _given(self, *, rst: int = 0, start: int | IntArray = 0) -> dict[str, IntArray]:
        """What drives the fabric besides what the host writes and reads."""
        start = np.broadcast_to(np.asarray(start), (1, self.machine.runs))
        return {"rst": np.array([[rst]]), "write_enable": np.array([[0]]), "start": start}

    def prove(self, runs: Sequence[Run], rest: Snapshot, *, early: bool = False) -> Snapshot:
        """Carry out runs.

        Parameters
        ----------
        runs : sequence of Run
        rest : Snapshot
            What is at rest, as `rest` gives it.
        early : bool
            Whether runs start with the edge after the last write of the host, rather than at any
            time after all that was written is in the memories.

        Returns
        -------
        Snapshot
            What is known of the fabric whichever of the runs it has done.

        Raises
        ------
        Refutation
            If one of them is not as it should be.
        """
        self.machine.prepare(len(runs))
        for adder in self.machine.adders.values():
            adder.choose([run.operation for run in runs])
        begin = spread(rest, len(runs))
        writes = Writes(self.program, runs, self._endpoints, self._bits)
        # The step of writes in the cycle after the start.
        first = writes.count - self._write_cycles if early else writes.count + WRITE
        # All but the nodes is at rest.
        self.machine.settle(begin, self._given())
        self.machine.forget_words()
        for step in range(first - 1):
            self.machine.settle(begin, self._given(), writes.at(step), only=self._endpoints)
            begin = self.machine.after(begin)
        if not early:
            begin = self._settled(spread(rest, len(runs)), begin)
        cycles = np.array([self.program.cycles(r.length, mode=r.mode) for r in runs])
        now, left = self._run(runs, cycles, begin, writes, first)
        self._read(runs, cycles, now)
        return of_all(left, len(runs))

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
            machine.settle(now, self._given())
            later = machine.after(now)
            stays = [
                np.where((a > 1) & (a != b), r, a)
                for a, b, r in zip(arrays(now), arrays(later), arrays(rest), strict=True)
            ]
            settled = with_arrays(later, stays)
            if same(settled, now):
                return settled
            now = settled

    def _bits(self, module: str, port: str, values: IntArray) -> IntArray:
        """Numbers as the bits of a port that matter; -1 is not known."""
        bits = self.machine.groups[module].program.inputs.get(port, [])
        shifts = np.array(bits, int)[:, None, None]
        return np.where(values[None] < 0, UNKNOWN, values[None] >> shifts & 1)

    def _run(
        self, runs: Sequence[Run], cycles: IntArray, now: Snapshot, writes: Writes, first: int
    ) -> tuple[Snapshot, Snapshot]:
        """Start, and go on until all runs are done.

        Returns
        -------
        now, left : Snapshot
            The state in the end, and each run's when it was done.
        """
        machine = self.machine
        machine.settle(now, self._given(start=1) | self._choice(runs), writes.at(first - 1))
        now = left = machine.after(now)
        for edge in range(int(cycles.max()) + 1):
            under_way: BoolArray = edge < cycles
            # Whatever the start is meanwhile, it is ignored.
            given = self._given(start=np.where(under_way, UNKNOWN, 0))
            machine.settle(now, given, writes.at(first + edge))
            self._check(runs, edge, "busy", under_way)
            self._check(runs, edge, "done", ~under_way)
            ending: BoolArray = np.equal(cycles, edge)
            if ending.any():
                left = picked(ending, now, left, len(runs))
                for k, shown in enumerate(machine.shown("cycles")):
                    wrong = ending & (shown != (edge >> k & 1))
                    self._report(runs, edge, f"cycles[{k}]", wrong, shown, edge >> k & 1)
            now = machine.after(now)
        return now, left

    def _choice(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """The inputs that are sampled with the start."""
        given: dict[str, IntArray] = {}
        for name in self._chosen:
            values = np.array([getattr(run, name) for run in runs])
            given[name] = values[None] >> np.arange(len(self.machine.text.nets[name]))[:, None] & 1
        return given

    def _check(self, runs: Sequence[Run], edge: int, signal: str, wanted: BoolArray) -> None:
        """Check a bit of the top."""
        (shown,) = self.machine.shown(signal)
        self._report(runs, edge, signal, shown != wanted, shown, wanted)

    def _report(
        self,
        runs: Sequence[Run],
        edge: int,
        signal: str,
        wrong: BoolArray,
        shown: IntArray,
        wanted: BoolArray | int,
    ) -> None:
        """Raise a refutation if anything is wrong."""
        if wrong.any():
            k = int(np.nonzero(wrong)[0][0])
            value = int(np.broadcast_to(np.asarray(wanted), shown.shape)[k])
            message = f"must be {value}, not {named(int(shown[k]))}"
            raise Refutation(RunFault(runs[k], edge, signal, None, message))

    def _read(self, runs: Sequence[Run], cycles: IntArray, now: Snapshot) -> None:
        """Read what is owed at all nodes, and compare."""
        machine = self.machine
        owed = [owed_words(self.program, run, machine.sums) for run in runs]
        reads = Reads(self.program, runs, self._endpoints, self._bits)
        now = self._rested(now)
        machine.forget_words()
        for step in range(reads.count + self._answer):
            machine.settle(now, self._given(), reads.at(step), only=self._endpoints)
            if step >= self._answer:
                for k, (words, receives) in enumerate(owed):
                    word = step - self._answer
                    if word < words.shape[1]:
                        wanted = np.where(receives, words[:, word], UNKNOWN)
                        self._compare(runs[k], k, wanted, int(cycles[k]), word)
            now = machine.after(now)

    def _rested(self, now: Snapshot) -> Snapshot:
        """The state once nothing changes any more but in nodes; what links carry is forgotten."""
        machine = self.machine
        while True:
            machine.settle(now, self._given())
            shown, later = machine.nets.copy(), machine.after(now)
            machine.settle(later, self._given())
            if (shown == machine.nets).all() and same(now, later):
                return later
            now = later

    def _compare(self, run: Run, k: int, wanted: IntArray, cycle: int, word: int) -> None:
        """Compare a word of all nodes that are owed it."""
        for module, nodes in self._endpoints.items():
            shown = self.machine.output(module, "read_data")[0, :, k]
            wrong = (shown != wanted[nodes]) & (wanted[nodes] != UNKNOWN)
            if wrong.any():
                place = int(np.nonzero(wrong)[0][0])
                what = [named(int(bits)) for bits in (wanted[nodes[place]], shown[place])]
                message = f"must be {what[0]}, not {what[1]}"
                node = nodes[place]
                raise Refutation(RunFault(run, cycle, f"received word {word}", node, message))
