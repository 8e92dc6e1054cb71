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

#: Nodes times runs that are carried out at once.
AT_ONCE = 4096

#: Cycles within which nothing changes any more after a run, and after which words that still move
#: go round in circles.
RESTING, CIRCLING = 100, 50


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
    """The surroundings of a fabric in each cycle of a run, counted from 0; -1 is that of the start.

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

    @abstractmethod
    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Carry out runs from what is at rest, in one of the ways in which they can come about.

        Words are compared in the end, or runs are carried out for what they leave. Returns what is
        known of the fabric whichever of the runs it has done; raises `Refuted` if one of them is
        not as it should be.
        """

    def prepare(self, runs: Sequence[Run]) -> IntArray:
        """Get ready for runs; returns the cycles that each takes."""
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
        """Go on until all runs are done; the state in the end, and each run's when it was.

        Runs begin so many cycles after their start as they are `held`, and count from there.
        """
        machine, cycles = self.machine, cycles + held
        given = self.starts.of(runs) | meanwhile.driven(-1)
        machine.settle(now, given, meanwhile.overrides(-1))
        meanwhile.look(-1)
        now = left = machine.after(now)
        for edge in range(int(cycles.max()) + 1):
            under_way: BoolArray = edge < cycles
            # Whatever the start is meanwhile, it is ignored.
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
        """Check a number that the top shows in some runs, or a bit of each block."""
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
        """Return the state once nothing changes any more but in nodes.

        Words on links are forgotten. So are words that routers at rest pass on in circles, which
        harm nothing: what is known later holds whichever register has them.
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
