"""Symbolic execution of whole runs, from the resting state back to the resting state.

A *snapshot* is the state of all registers and memories of a fabric. It *covers* another one if each
of its bits is unknown or equal to the bit of the other.

The *resting state* is the least snapshot that covers the state after a reset, the state that
follows it in the next cycle without a start, and the state after every run. Bits that differ
between covered states are unknown. From the resting state every run is executed to its end, with
symbols for the words of messages. A run that passes therefore passes for all data, and after any
number of earlier runs in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..topology import BoolArray, IntArray
from .report import Counterexample, Refuted, make_refutation
from .snapshot import Snapshot, forget_moving_words, has_same_registers, select_runs
from .starts import Starts
from .symbols import UNKNOWN, bit_text

if TYPE_CHECKING:
    from .accesses import NodeAccess
    from .machine import Override
    from .messages import Run

__all__ = ["MOST_NODE_RUNS", "Environment", "Runs", "StartTiming", "make_run_refutation"]

#: Nodes times runs that are executed at once.
MOST_NODE_RUNS = 4096

#: Cycles after a run within which the fabric must be stable, and cycles after which words that
#: still move are taken to circulate.
RESTING, CIRCLING = 100, 50


def make_run_refutation(
    run: Run, cycle: int, signal: str, message: str, node: int | None = None
) -> Refuted:
    """Return the exception for a run in which a signal has a wrong value.

    Parameters
    ----------
    run : Run
        The run that is refuted.
    cycle : int
        Cycle of the run in which the value is wrong.
    signal : str
        Name of the signal.
    message : str
        Verb phrase that follows the signal in the message, such as "must be 1, not 0".
    node : int, optional
        Node of the signal.
    """
    at = "" if node is None else f" of node {node}"
    text = f"{signal[:1].upper()}{signal[1:]}{at} {message} (cycle {cycle} of {run})"
    return Refuted(Counterexample("whole runs", signal + at, cycle, text), run)


class StartTiming(NamedTuple):
    """A variant of the proof of runs, which says how soon the start follows the writes.

    A proof executes runs once in each variant; `memory_runs.MemoryRuns` lists the variants of
    fabrics with memories.

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


class Environment(NamedTuple):
    """Values at the inputs of a fabric during runs, and an observer of its nets.

    The start is in cycle -1, and all later cycles count from 0.

    Parameters
    ----------
    driven : function of (cycle) -> dict of str to ndarray
        Returns nets of the top with their values in a cycle, in addition to those of the start.
    overrides : function of (cycle) -> dict of str to Override
        Returns, for some modules such as endpoints, values at inputs of their instances; these
        replace the values of the connected nets.
    look : function of (cycle)
        Observer, called after all nets of the cycle have been computed.
    """

    driven: Callable[[int], dict[str, IntArray]] = lambda _: {}
    overrides: Callable[[int], Mapping[str, Override]] = lambda _: {}
    look: Callable[[int], None] = lambda _: None


class Runs(ABC):
    """Symbolic execution of several runs at once, with a check of their results.

    The messages are symbols, so that a run passes for all data. Each interface of fabrics has a
    subclass, which says how messages reach the nodes.
    """

    def __init__(self, access: NodeAccess) -> None:
        self.machine, self.program = access.machine, access.program
        self.starts, self.access = Starts(access), access

    #: The variants of starts.
    variants: tuple[StartTiming, ...] = (StartTiming(0, every=True),)

    @abstractmethod
    def prove(
        self, runs: Sequence[Run], rest: Snapshot, variant: int = 0, *, compares: bool = True
    ) -> Snapshot:
        """Execute runs from the state between runs to their ends, and check the results.

        Parameters
        ----------
        rest : Snapshot
            The resting state: the registers between runs. Bits that are not always the same between
            runs are unknown in it.
        variant : int
            Number of the variant, which says when the start follows the writes; see `StartTiming`.
        compares : bool
            True to compare the delivered words; False if only the final state is needed.

        Returns
        -------
        Snapshot
            The state after the runs: a bit that is not the same after all of them is unknown.

        Raises
        ------
        Refuted
            If a run shows a wrong value.
        """

    def prepare_machine(self, runs: Sequence[Run]) -> IntArray:
        """Set the number of runs in the machine, and the operator of each run.

        Returns
        -------
        ndarray of int, shape (runs,)
            Cycles that the program predicts for each run.
        """
        self.machine.prepare_runs(len(runs))
        self.machine.choose_operators([run.operation for run in runs])
        return np.array([self.program.cycles(run.length, mode=run.mode) for run in runs])

    def execute_runs(
        self,
        runs: Sequence[Run],
        cycles: IntArray,
        now: Snapshot,
        meanwhile: Environment,
        *,
        held: int = 0,
    ) -> tuple[Snapshot, Snapshot]:
        """Execute runs until all are done, and check the outputs of the sequencer.

        Outputs busy and done are checked in every cycle, error in the first cycle, and cycles (the
        cycle counter) at the end of each run.

        Parameters
        ----------
        cycles : ndarray of int, shape (runs,)
            Cycles that the program predicts for each run.
        now : Snapshot
            State in the cycle of the start.
        meanwhile : Environment
            Values at the other inputs of the fabric during the runs.
        held : int
            Cycles between the start and the first cycle of the run, if the fabric delays runs.

        Returns
        -------
        now : Snapshot
            State of all runs after the end of the longest run.
        left : Snapshot
            State of each run in the cycle in which it ends, the first cycle with done high.
        """
        machine, cycles = self.machine, cycles + held
        given = self.starts.start_inputs(runs) | meanwhile.driven(-1)
        machine.settle_nets(now, given, meanwhile.overrides(-1))
        meanwhile.look(-1)
        now = left = machine.next_state(now)
        for edge in range(int(cycles.max()) + 1):
            under_way: BoolArray = edge < cycles
            # The start input is unknown during a run, because the fabric ignores it.
            ignored = edge < cycles - self.access.follows
            given = self.access.idle_inputs(start=np.where(ignored, UNKNOWN, 0))
            machine.settle_nets(now, given | meanwhile.driven(edge), meanwhile.overrides(edge))
            meanwhile.look(edge)
            shows = edge >= self.access.unshown
            self.check_output(runs, edge, "busy", under_way & shows)
            if shows:
                self.check_output(runs, edge, "done", ~under_way)
            if not edge and self.starts.chosen and self.access.refuses:
                self.check_output(runs, edge, "error", 0)
            ending: BoolArray = np.equal(cycles, edge)
            if ending.any():
                left = select_runs(ending, now, left, len(runs))
                self.check_output(runs, edge, "cycles", edge - held, there=ending)
            now = machine.next_state(now)
        return now, left

    def check_output(
        self,
        runs: Sequence[Run],
        edge: int,
        signal: str,
        wanted: BoolArray | int,
        *,
        there: BoolArray | bool = True,
    ) -> None:
        """Check an output of the top.

        Parameters
        ----------
        runs : sequence of Run
            The runs that the machine executes.
        edge : int
            Cycle of the run, for messages.
        signal : str
            Name of the output.
        wanted : ndarray of bool, shape (runs,), or int
            Expected value. An int is the value of the whole output in all runs. An array has one
            bit for each run, and every bit of the output must have this value. (In a system of
            several fabrics, an output such as busy has one bit for each fabric.)
        there : ndarray of bool, shape (runs,), or True
            Runs in which the output is checked.
        """
        for k, shown in enumerate(self.machine.net_values(self.access.top_net(signal))):
            bits, name = wanted, signal
            if isinstance(wanted, int):
                bits, name = np.full(len(shown), wanted >> k & 1), f"{signal}[{k}]"
            wrong = (shown != bits) & there
            if wrong.any():
                at = int(wrong.argmax())
                message = f"must be {int(np.asarray(bits)[at])}, not {bit_text(int(shown[at]))}"
                raise make_run_refutation(runs[at], edge, name, message)

    def resting_state(self, now: Snapshot) -> Snapshot:
        """Simulate cycles without inputs from the state `now` until no net or register changes.

        The result is the state that is reached. Words that still circulate in routers after some
        cycles are made unknown, because they would change forever; nothing that is proved later
        depends on them.

        Raises
        ------
        Refuted
            If the fabric still changes after `RESTING` cycles.
        """
        machine = self.machine
        for cycle in range(RESTING):
            machine.settle_nets(now, self.access.idle_inputs())
            shown, later = machine.nets.copy(), machine.next_state(now)
            machine.settle_nets(later, self.access.idle_inputs())
            if (shown == machine.nets).all() and has_same_registers(now, later):
                return later
            now = forget_moving_words(now, later) if cycle >= CIRCLING else later
        message = f"A fabric that is done must come to rest within {RESTING} cycles, not go on"
        raise make_refutation("whole runs", "busy", message)
