"""Starts of runs: the resting state, accepted starts, and refused starts.

A *snapshot* is the symbolic state of all registers and memories. The *resting state* is a snapshot
that stands for every state of the fabric between runs: bits that can differ are unknown in it. An
*accepted* start begins a run; a *refused* one has choices that the fabric cannot execute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..rtl.run_choices import ERROR_BITS
from ..topology import IntArray
from .accesses import RUN_CHOICES, NodeAccess
from .report import make_refutation
from .snapshot import (
    Snapshot,
    copy_to_runs,
    cover_both,
    cover_runs,
    forget_memories,
    has_same_registers,
    with_symbols,
)
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from ..program import Program
    from .messages import Run

__all__ = ["Starts", "refused_starts"]

#: Clock edges of a reset.
RESET_EDGES = 16

#: Refused starts that are executed at once.
MOST_STARTS = 256

#: Error numbers of the fabric, by the choice that is out of range.
MODE, ROOT, LENGTH, OPERATION = 1, 2, 3, 4


class RefusedStart(NamedTuple):
    """A start whose choices the fabric cannot execute, so that it must refuse the run.

    Parameters
    ----------
    inputs : dict of str to int
        Input for mode, length, root or operator -> its value.
    errors : frozenset of int
        Error numbers, of which the fabric must show one.
    """

    inputs: dict[str, int]
    errors: frozenset[int]


def refused_starts(program: Program, bits: dict[str, int]) -> Iterator[RefusedStart]:
    """Yield all starts that a fabric refuses: all values of its inputs that are out of range.

    Parameters
    ----------
    bits : dict of str to int
        Input that the fabric samples at the start -> its width in bits.

    Examples
    --------
    A fabric for messages of up to two flits refuses the lengths 0 and 3 with error 3:

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather"), max_flits=2)
    >>> [(start.inputs, sorted(start.errors)) for start in refused_starts(program, {"length": 2})]
    [({'length': 0}, [3]), ({'length': 3}, [3])]
    """
    for values in product(*(range(1 << width) for width in bits.values())):
        asked = dict(zip(bits, values, strict=True))
        errors = frozenset(_start_errors(program, asked))
        if errors:
            yield RefusedStart(asked, errors)


def _start_errors(program: Program, asked: dict[str, int]) -> Iterator[int]:
    """Yield the numbers of all errors in a start with the choices `asked`: input -> value.

    A root or an operator is an error only in a mode in which runs choose it.
    """
    number = asked.get("mode", 0)
    if number >= len(program.modes):
        yield MODE
    if "length" in asked and not 1 <= asked["length"] <= program.flits:
        yield LENGTH
    mode = program.modes[min(number, len(program.modes) - 1)]
    if mode.any_root and asked.get("root", 0) >= mode.groups.group_size:
        yield ROOT
    if mode.operators and asked.get("operation", 0) >= len(mode.operators):
        yield OPERATION


class Starts:
    """The start cycle of runs: values of inputs, the state before it, and refused starts.

    Attributes
    ----------
    chosen : list of str
        Inputs that the fabric samples at the start: some of mode, length, root and operator.
    """

    def __init__(self, access: NodeAccess) -> None:
        self._program, self._access, self._machine = access.program, access, access.machine
        nets = self._machine.text.nets
        self.chosen = [name for name in RUN_CHOICES if name in nets]

    def start_inputs(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the inputs of the top, with their values in the cycle in which some runs start.

        The result is a dict: input -> its bits, shape (bits, runs) or (bits, 1).
        """
        return self._access.idle_inputs(start=1) | self.input_bits(
            self._access.sampled_choices(runs)
        )

    def input_bits(self, values: dict[str, IntArray]) -> dict[str, IntArray]:
        """Convert numbers at inputs of the top into bits.

        `values` is a dict: input -> numbers, shape (runs,). The result is a dict: net of the top ->
        bits, shape (bits, runs). Inputs that the fabric lacks are left out.
        """
        nets = self._machine.text.nets
        values = {self._access.top_net(name): of_name for name, of_name in values.items()}
        return {
            name: of_name[None] >> np.arange(len(nets[name]))[:, None] & 1
            for name, of_name in values.items()
            if name in nets
        }

    def find_resting_state(self, before: Snapshot | None = None) -> Snapshot:
        """Return the resting state: the state between runs, as far as it is always the same.

        A bit that can differ from one pause between runs to another is unknown in it. The search
        begins with the state after a reset, merged with the state `before` if it is given. A
        register bit that changes in the next cycle without a start is made unknown, until no known
        bit changes.
        """
        machine = self._machine
        machine.prepare_runs(1)
        now = machine.unknown_state()
        for _ in range(RESET_EDGES):
            machine.settle_nets(now, self._access.idle_inputs(rst=1, start=UNKNOWN))
            now = machine.next_state(now)
        now = now if before is None else cover_both(now, before)
        while True:
            machine.settle_nets(now, self._access.idle_inputs())
            later = cover_both(now, forget_memories(machine.next_state(now)))
            if has_same_registers(now, later):
                return now
            now = later

    def check_refused(self, rest: Snapshot) -> tuple[int, Snapshot]:
        """Execute all starts that the fabric must refuse, and check that it refuses them.

        A refused start must change no register except those that show the error, and the error
        number must be one of `RefusedStart.errors`.

        Parameters
        ----------
        rest : Snapshot
            The resting state, in which the starts occur.

        Returns
        -------
        count : int
            Number of refused starts.
        left : Snapshot
            State in which a register bit is known only if it has the same value in `rest` and after
            every refused start.
        """
        if not self._access.refuses:
            return 0, rest
        machine, numbered = self._machine, with_symbols(rest)
        bits = {name: len(machine.text.nets[name]) for name in self.chosen}
        count, left, starts = 0, rest, refused_starts(self._program, bits)
        stays = self._next_state(numbered, 1)
        while batch := list(islice(starts, MOST_STARTS)):
            asked = {n: np.array([start.inputs[n] for start in batch]) for n in bits}
            now = self._next_state(numbered, len(batch), start=1, asked=self.input_bits(asked))
            machine.settle_nets(now, self._access.idle_inputs())
            if machine.net_values("busy").any():
                raise make_refutation(
                    "whole runs", "busy", "busy must stay low if a start is refused"
                )
            self._check_errors(batch)
            if name := self._changed_register(copy_to_runs(stays, len(batch)), now):
                raise make_refutation("whole runs", name, f"{name} must stay if a start is refused")
            left = cover_both(left, cover_runs(now, len(batch)))
            count += len(batch)
        return count, left

    def _next_state(
        self,
        rest: Snapshot,
        runs: int,
        *,
        start: int = 0,
        asked: Mapping[str, IntArray] = MappingProxyType({}),
    ) -> Snapshot:
        """Return the state after one clock edge from the state `rest`, for `runs` runs.

        `start` is the value of the start input, and `asked` has the numbers at the other inputs.
        """
        self._machine.prepare_runs(runs)
        now = copy_to_runs(rest, runs)
        self._machine.settle_nets(now, self._access.idle_inputs(start=start) | {**asked})
        return self._machine.next_state(now)

    def _check_errors(self, batch: list[RefusedStart]) -> None:
        """Check, for each start in `batch`, that the fabric shows one of its errors."""
        error = self._machine.net_values("error")
        weights = 1 << np.arange(ERROR_BITS)[:, None]
        for first in range(0, len(error), ERROR_BITS):  # of each block
            numbers = (error[first : first + ERROR_BITS] * weights).sum(axis=0).tolist()
            for start, shown in zip(batch, numbers, strict=True):
                if shown not in start.errors:
                    said = f"one of {sorted(start.errors)} for {start.inputs}, not {shown}"
                    raise make_refutation("whole runs", "error", f"error at rest must be {said}")

    def _changed_register(self, stays: Snapshot, now: Snapshot) -> str | None:
        """Return a register that differs between the states `stays` and `now`.

        Registers that are unknown in the state `stays`, and those that show the error, are left
        out. The result is None if no other register differs.
        """
        for module, state in stays.states.items():
            if not len(state.flops):
                continue
            changed = (state.flops != now.states[module].flops) & (state.flops != UNKNOWN)
            for k in np.nonzero(changed.any(axis=1))[0].tolist():
                name = self._machine.groups[module].program.names[k]
                if not name.startswith(("error", "refused")):
                    return f"{name or 'a register'} of {module}"
        return None
