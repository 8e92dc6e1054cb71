"""All runs that a fabric can be asked for, carried out on its text."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from ..rtl.netlist import Role
from ..toolchain.cache import Cache, digest
from .gates import GateText
from .machine import WORDS, Machine
from .messages import Run, owed_words, received_places, sent_places
from .modules import SLICE, adders
from .report import ModuleProof
from .runs import Runs
from .snapshot import Snapshot, same, with_either
from .sums import Sums

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.control import Control
    from ..toolchain.progress import Progress
    from ..verilog.design import Design

__all__ = ["Whole", "all_runs"]

#: Nodes times runs that are carried out at once.
LANES = 4096

#: What is not carried out: arguments of their own cover it.
APART = {Role.HOST, Role.READ_TREE, Role.BUS}


def all_runs(fabric: Fabric) -> list[Run]:
    """Every choice of mode, length, root and operator, the shortest runs first."""
    program, found = fabric.program, []
    for number, mode in enumerate(program.modes):
        lengths = range(1, program.flits + 1) if program.any_length else [program.flits]
        roots = range(mode.groups.size) if mode.any_root else [0]
        operations = range(max(len(mode.operators), 1))
        found += [Run(number, *choice) for choice in product(lengths, roots, operations)]
    return sorted(found, key=lambda run: program.cycles(run.length, mode=run.mode))


class Whole:
    """The runs of a fabric.

    Parameters
    ----------
    fabric : Fabric
    control : Control
    design : Design
    text : GateText
    """

    def __init__(self, fabric: Fabric, control: Control, design: Design, text: GateText) -> None:
        self._fabric, self._design, program = fabric, design, fabric.program
        self._all = all_runs(fabric)
        layouts = [program.part(mode).layout for mode in range(len(program.modes))]
        most = max(layout.send_words(program.flits) for layout in layouts)
        sums = Sums(program.topology.nodes * most)
        roles, prefix = fabric.netlist.roles, fabric.prefix
        role_of = {prefix + name: role for name, role in roles.items()}

        def outputs(module: str, port: str, bits: int) -> list[int]:
            return [*range(SLICE, bits, fabric.width)] if port in WORDS else [*range(bits)]

        machine = Machine(
            text,
            outputs=outputs,
            sums=sums,
            adders=adders(fabric, control, sums),
            left_out=[name for name, role in role_of.items() if role in APART],
        )
        self._runs = Runs(
            fabric,
            machine,
            answer=control.endpoints.answer,
            write_cycles=fabric.netlist.modules["host"]().write_cycles,
        )
        self._sums = sums

    def _key(self) -> str:
        """What the proof depends on."""
        own = hashlib.sha256()
        for path in sorted(Path(__file__).parent.glob("*.py")):
            own.update(path.read_bytes())
        program = self._fabric.program
        for run in self._all:
            sent, received = sent_places(program, run), received_places(program, run)
            words, receives = owed_words(program, run, self._sums)
            for values in (sent.memory, sent.address, received.memory, received.address, words,
                           receives):  # fmt: skip
                own.update(values.tobytes())
            own.update(f"{run} {program.cycles(run.length, mode=run.mode)}".encode())
        return digest("runs", self._design.text, own.hexdigest())

    def _batches(self) -> Iterator[tuple[list[Run], bool]]:
        """Runs that are carried out at once, and whether they start early."""
        size = max(1, LANES // self._fabric.nodes)
        for early in (False, True):
            for start in range(0, len(self._all), size):
                yield self._all[start : start + size], early

    def prove(self, progress: Progress, cache: Cache | None = None) -> ModuleProof:
        """Carry out all runs.

        Raises
        ------
        Refutation
            If one of them is not as it should be.
        """
        key, began = self._key() if cache else "", time.monotonic()
        seconds = cache.get(key) if cache else None
        if seconds is None:
            rest = self._runs.rest()
            while (more := self._prove_from(rest, progress)) is not None:
                rest = self._runs.rest(more)
            seconds = round(time.monotonic() - began, 2)
            if cache:
                cache.put(key, seconds)
        return ModuleProof(
            "whole runs",
            "symbolic execution from any state at rest to the end",
            2 * sum(self._checks(run) for run in self._all),
            seconds,
            f"each of {len(self._all)} runs (mode, length, root, operator) ends in exactly the "
            "forecast cycle, with the owed words where the address map says, and at rest",
        )

    def _checks(self, run: Run) -> int:
        """What is compared in a run: busy and done in every cycle, and every word that is owed."""
        program = self._fabric.program
        words, receives = owed_words(program, run, self._sums)
        cycles = program.cycles(run.length, mode=run.mode)
        owed = int(receives.sum()) * int(words.shape[1])
        return 2 * (cycles + 1) + 32 + owed

    def _prove_from(self, rest: Snapshot, progress: Progress) -> Snapshot | None:
        """Carry out all runs from what is at rest; returns what they leave that is not."""
        done, total, more = 0, 2 * len(self._all), None
        for runs, early in self._batches():
            left = self._runs.prove(runs, rest, early=early)
            reached = with_either(rest, left)
            if not same(reached, rest):
                more = reached if more is None else with_either(more, reached)
                if done == 0:
                    return more
            done += len(runs)
            progress(done, total)
        return more
