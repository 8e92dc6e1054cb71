"""Symbolic execution of whole runs, from the resting state back to the resting state.

The *resting state* is the least snapshot that covers the state after a reset, its own successor
without a start, and the state after every run. Bits that differ between covered states are unknown.
From the resting state every run is executed to its end, with symbols for the words of messages. A
run that passes therefore passes for all data, and after any number of earlier runs in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..topology import BoolArray, IntArray
from .report import Counterexample, Refuted, refuted
from .snapshot import Snapshot, picked, same, without_moving_words
from .starts import Starts
from .symbols import UNKNOWN, named

if TYPE_CHECKING:
    from .accesses import Access
    from .machine import Override
    from .messages import Run

__all__ = ["AT_ONCE", "Meanwhile", "Runs", "Variant", "run_refuted"]

#: Nodes times runs that are executed at once.
AT_ONCE = 4096

#: Cycles after a run within which the fabric must be stable, and cycles after which words that
#: still move are taken to circulate.
RESTING, CIRCLING = 100, 50


def run_refuted(
    run: Run, cycle: int, signal: str, message: str, node: int | None = None
) -> Refuted:
    """Return the exception for a run with a wrong value."""
    at = "" if node is None else f" of node {node}"
    text = f"{signal[:1].upper()}{signal[1:]}{at} {message} (cycle {cycle} of {run})"
    return Refuted(Counterexample("whole runs", signal + at, cycle, text), run)


class Variant(NamedTuple):
    """A timing of starts relative to the writes of messages.

    Parameters
    ----------
    number : int
        Number of the variant.
    every : bool
        True to execute all runs in this variant, False for those with the shortest and longest
        messages.
    """

    number: int
    every: bool


class Meanwhile(NamedTuple):
    """The environment of a fabric during a run; cycles count from 0, and the start is in cycle -1.

    Parameters
    ----------
    driven : function of (cycle) -> dict of str to ndarray
        Values of nets of the top, in addition to those of the start.
    overrides : function of (cycle) -> dict of str to Override
        Values of inputs of instances.
    look : function of (cycle)
        Observer, called after the nets have settled.
    """

    driven: Callable[[int], dict[str, IntArray]] = lambda _: {}
    overrides: Callable[[int], Mapping[str, Override]] = lambda _: {}
    look: Callable[[int], None] = lambda _: None


class Runs(ABC):
    """Symbolic execution of several runs at once; each interface has a subclass."""

    def __init__(self, access: Access) -> None:
        self.machine, self.program = access.machine, access.program
        self.starts, self.access = Starts(access), access

    #: The variants of starts.
    variants: tuple[Variant, ...] = (Variant(0, every=True),)

    @abstractmethod
    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Execute runs from the resting state, with the starts of one variant, and check them.

        Parameters
        ----------
        rest : Snapshot
            The resting state.
        compares : bool
            True to compare the delivered words; False if only the final state is needed.

        Returns
        -------
        Snapshot
            State that covers the state after each of the runs.

        Raises
        ------
        Refuted
            If a run shows a wrong value.
        """

    def prepare(self, runs: Sequence[Run]) -> IntArray:
        """Prepare the machine for runs; returns the forecast cycles of each."""
        self.machine.prepare(len(runs))
        self.machine.choose([run.operation for run in runs])
        return np.array([self.program.cycles(run.length, mode=run.mode) for run in runs])

    def carry_out(
        self,
        runs: Sequence[Run],
        cycles: IntArray,
        now: Snapshot,
        meanwhile: Meanwhile,
        *,
        held: int = 0,
    ) -> tuple[Snapshot, Snapshot]:
        """Execute runs until all are done, and check busy, done, cycles and error in every cycle.

        Parameters
        ----------
        cycles : ndarray of int, shape (runs,)
            Forecast cycles of each run.
        held : int
            Cycles by which each run is delayed after its start.

        Returns
        -------
        tuple of (Snapshot, Snapshot)
            State after the last run, and the states of the runs each at its own end.
        """
        machine, cycles = self.machine, cycles + held
        given = self.starts.of(runs) | meanwhile.driven(-1)
        machine.settle(now, given, meanwhile.overrides(-1))
        meanwhile.look(-1)
        now = left = machine.after(now)
        for edge in range(int(cycles.max()) + 1):
            under_way: BoolArray = edge < cycles
            # The start input is unknown during a run, because the fabric ignores it.
            ignored = edge < cycles - self.access.follows
            given = self.access.given(start=np.where(ignored, UNKNOWN, 0))
            machine.settle(now, given | meanwhile.driven(edge), meanwhile.overrides(edge))
            meanwhile.look(edge)
            shows = edge >= self.access.unshown
            self.check(runs, edge, "busy", under_way & shows)
            if shows:
                self.check(runs, edge, "done", ~under_way)
            if not edge and self.starts.chosen and self.access.refuses:
                self.check(runs, edge, "error", 0)
            ending: BoolArray = np.equal(cycles, edge)
            if ending.any():
                left = picked(ending, now, left, len(runs))
                self.check(runs, edge, "cycles", edge - held, there=ending)
            now = machine.after(now)
        return now, left

    def check(
        self,
        runs: Sequence[Run],
        edge: int,
        signal: str,
        wanted: BoolArray | int,
        *,
        there: BoolArray | bool = True,
    ) -> None:
        """Check an output of the top in the runs `there`.

        Parameters
        ----------
        wanted : ndarray of bool, shape (runs,), or int
            Bit of each run, repeated for each block; or a number for all runs.
        """
        for k, shown in enumerate(self.machine.shown(self.access.net(signal))):
            bits, name = wanted, signal
            if isinstance(wanted, int):
                bits, name = np.full(len(shown), wanted >> k & 1), f"{signal}[{k}]"
            wrong = (shown != bits) & there
            if wrong.any():
                at = int(wrong.argmax())
                message = f"must be {int(np.asarray(bits)[at])}, not {named(int(shown[at]))}"
                raise run_refuted(runs[at], edge, name, message)

    def rested(self, now: Snapshot) -> Snapshot:
        """Return the state once nothing changes outside the nodes.

        Words on links become unknown. So do words that circulate in routers at rest; they are
        harmless, because nothing that is proved later depends on them.
        """
        machine = self.machine
        for cycle in range(RESTING):
            machine.settle(now, self.access.given())
            shown, later = machine.nets.copy(), machine.after(now)
            machine.settle(later, self.access.given())
            if (shown == machine.nets).all() and same(now, later):
                return later
            now = without_moving_words(now, later) if cycle >= CIRCLING else later
        message = f"A fabric that is done must come to rest within {RESTING} cycles, not go on"
        raise refuted("whole runs", "busy", message)
