"""Whole runs of the emitted text, from any state in which it is at rest.

What is at rest is the least set of states that has what follows a reset, that stays at rest while
nobody starts a run, and to which every run returns. From each of them, with each choice of mode,
length, root and operator, a run is carried out to its end with words that stand for any words;
everything else that could differ is not known. So it is proved for all data, and for any number of
runs in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ..program.timing import WRITE
from ..rtl.netlist import Role
from ..topology import BoolArray, IntArray
from .accesses import Reads, Writes
from .faults import Refuted, refuted
from .machine import Machine, Override
from .messages import Run, owed_words
from .refusals import refused_starts
from .report import Counterexample
from .snapshot import (
    Snapshot,
    arrays,
    copied,
    forgetful,
    holds_words,
    of_all,
    picked,
    same,
    spread,
    unchanged,
    with_arrays,
    with_either,
)
from .symbols import UNKNOWN, named, word

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["RESET", "Runs"]

#: Clock edges for which a reset lasts.
RESET = 16

#: Starts that are carried out at once.
STARTS = 256

#: Cycles within which nothing changes any more after a run.
RESTING = 100

#: The inputs that are sampled with the start.
CHOICES = ("mode", "length", "root", "operation")


def _refuted(run: Run, cycle: int, signal: str, message: str, node: int | None = None) -> Refuted:
    """The exception of a run that is not as it should be."""
    at = "" if node is None else f" of node {node}"
    text = f"{signal[:1].upper()}{signal[1:]}{at} {message} (cycle {cycle} of {run})"
    return Refuted(Counterexample("whole runs", signal + at, cycle, text), run)


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

    def check_rest(self, rest: Snapshot) -> int:
        """Check that a node that is not asked shows 0, and that addresses of the host pass.

        Returns
        -------
        int
            How many things were compared.

        Raises
        ------
        Refuted
            If one is not so.
        """
        machine, count = self.machine, 0
        machine.prepare(1)
        bits = machine.text.nets.get("read_address", [])
        address = word(np.arange(len(bits)))[:, None]
        machine.settle(rest, self._given() | {"read_address": address})
        for name in machine.text.nets:
            if name.removeprefix("read_").isdigit():
                shown = machine.shown(name)
                count += len(shown)
                self._require(name, (shown == address[: len(shown)]).all(), "pass the address on")
        for position in range(max(self.program.topology.nodes - 1, 1).bit_length()):
            now = spread(rest, 1)
            others = {
                module: {"read_node": self._all_but(module, nodes, position)}
                for module, nodes in self._endpoints.items()
            }
            for _ in range(self._answer):
                machine.settle(now, self._given(), others)
                now = machine.after(now)
            machine.settle(now, self._given(), others)
            for module in self._endpoints if self.program.topology.nodes > 1 else ():
                shown = machine.output(module, "read_data")
                count += shown.size
                self._require(f"read_data of {module}", (shown == 0).all(), "be 0 if not asked")
        return count

    def refuse(self, rest: Snapshot) -> tuple[int, Snapshot]:
        """Start with what there is not: that is refused, and the error says why.

        Returns
        -------
        count : int
            How many starts were carried out.
        left : Snapshot
            What is known of the fabric at rest or after any of them.

        Raises
        ------
        Refuted
            If one of them is not refused.
        """
        machine = self.machine
        bits = {name: len(machine.text.nets[name]) for name in self._chosen}
        count, left, starts = 0, rest, refused_starts(self.program, bits)
        while batch := list(islice(starts, STARTS)):
            machine.prepare(len(batch))
            driven = {
                name: np.array([[start.inputs[name] for start in batch]])
                >> np.arange(width)[:, None]
                & 1
                for name, width in bits.items()
            }
            machine.settle(spread(rest, len(batch)), self._given(start=1) | driven)
            now = machine.after(spread(rest, len(batch)))
            machine.settle(now, self._given())
            self._require("busy", (machine.shown("busy") == 0).all(), "stay low if refused")
            error = machine.shown("error")
            for k, start in enumerate(batch):
                shown = [int(error[j, k]) << j for j in range(len(error))]
                said = f"be one of {sorted(start.errors)} for {start.inputs}"
                self._require("error", sum(shown) in start.errors, said)
            left = with_either(left, of_all(now, len(batch)))
            count += len(batch)
        return count, left

    def _check_others(self, begin: Snapshot) -> None:
        """Check that writes for other nodes change nothing that a node holds."""
        machine = self.machine
        now = copied(begin)
        machine.settle(now, self._given())
        machine.forget_words()
        written: dict[str, Override]
        for position in [*range(max(self.program.topology.nodes - 1, 1).bit_length()), None]:
            written = {}
            for module, nodes in self._endpoints.items() if position is not None else ():
                others = self._all_but(module, nodes, position, port="write_node")
                written[module] = {"write_node": others, "write_enable": np.ones((1, 1, 1), int)}
            for _ in range(WRITE):
                machine.settle(now, self._given(), written, only=self._endpoints)
                now = machine.after(now)
        self._require("a node", holds_words(now, begin), "keep its words when others are written")

    def _all_but(
        self, module: str, nodes: list[int], position: int, *, port: str = "read_node"
    ) -> IntArray:
        """All numbers of nodes that differ from a node's own at one bit of them."""
        own = self._bits(module, port, np.array(nodes)[:, None])
        others = np.full_like(own, UNKNOWN)
        if len(own):
            others[position] = 1 - own[position]
        return others

    def _require(self, signal: str, holds: object, what: str) -> None:
        """Raise a refutation unless something holds at rest."""
        if not holds:
            raise refuted("whole runs", signal, f"{signal} at rest must {what}")

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
        Refuted
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
            if self.program.topology.nodes > 1:
                self._check_others(begin)
        cycles = np.array([self.program.cycles(r.length, mode=r.mode) for r in runs])
        now, left = self._run(runs, cycles, begin, writes, first)
        self._read(runs, cycles, now, left)
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
            for k, shown in enumerate(machine.shown("error") if not edge and self._chosen else ()):
                self._report(runs, edge, f"error[{k}]", shown != 0, shown, 0)
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
            raise _refuted(runs[k], edge, signal, message)

    def _read(self, runs: Sequence[Run], cycles: IntArray, now: Snapshot, left: Snapshot) -> None:
        """Read what is owed at all nodes, and compare; what came after a run was done is too late.

        Parameters
        ----------
        runs, cycles
        now, left : Snapshot
            The state in the end, and each run's when it was done.
        """
        machine = self.machine
        owed = [owed_words(self.program, run, machine.sums) for run in runs]
        reads = Reads(self.program, runs, self._endpoints, self._bits)
        now = unchanged(self._rested(now), left)
        machine.forget_words()
        for step in range(reads.count + self._answer):
            machine.settle(now, self._given(), reads.at(step), only=self._endpoints)
            if step >= self._answer:
                for k, (words, receives) in enumerate(owed):
                    at = step - self._answer
                    if at < words.shape[1]:
                        wanted = np.where(receives, words[:, at], UNKNOWN)
                        self._compare(runs[k], k, wanted, int(cycles[k]), at)
            now = machine.after(now)

    def _rested(self, now: Snapshot) -> Snapshot:
        """The state once nothing changes any more but in nodes; what links carry is forgotten."""
        machine = self.machine
        for _ in range(RESTING):
            machine.settle(now, self._given())
            shown, later = machine.nets.copy(), machine.after(now)
            machine.settle(later, self._given())
            if (shown == machine.nets).all() and same(now, later):
                return later
            now = later
        message = f"A fabric that is done must come to rest within {RESTING} cycles, not go on"
        raise refuted("whole runs", "busy", message)

    def _compare(self, run: Run, k: int, wanted: IntArray, cycle: int, at: int) -> None:
        """Compare a word of all nodes that are owed it."""
        for module, nodes in self._endpoints.items():
            shown = self.machine.output(module, "read_data")[0, :, k]
            wrong = (shown != wanted[nodes]) & (wanted[nodes] != UNKNOWN)
            if wrong.any():
                place = int(np.nonzero(wrong)[0][0])
                what = [named(int(bits)) for bits in (wanted[nodes[place]], shown[place])]
                message = f"must be {what[0]}, not {what[1]}"
                node = nodes[place]
                raise _refuted(run, cycle, f"received word {at}", message, node)
