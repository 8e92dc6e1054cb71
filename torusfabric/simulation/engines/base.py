"""The base class of engines, and the types that engines share with their callers.

An engine is a simulator for one fabric. An adapter describes the values at the ports of the fabric
as a generator of clock edges (see `edges`), so all engines drive the ports alike. *Node ports* are
the streams of the nodes, in a fabric in which each node has streams of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ...contract.traffic import PortTraffic
from ...errors import InputError
from ...rtl.fabric import Fabric
from .edges import Access

__all__ = ["TIMEOUT_CYCLES", "Engine", "EngineRun", "Job", "Messages", "Progress",
           "node_cycles"]  # fmt: skip

#: Cycles past the predicted end after which a run is abandoned.
TIMEOUT_CYCLES = 16

#: Random words of a run that pass through the host port in each direction; the others are copied
#: directly.
PORT_SAMPLE_WORDS = 1000

_Result = TypeVar("_Result")

#: Words of each node: those that it sends, or those that it has received.
Messages: TypeAlias = Sequence[Sequence[int]] | np.ndarray

#: A function of (words or beats moved so far, total), called from time to time.
Progress: TypeAlias = Callable[[int, int], Any]


class Job(NamedTuple):
    """The choices of one run: mode, length, root and operator.

    A choice that is None takes its default. If the fabric was built for a single value of a choice,
    for example for one mode, only None is allowed.

    Parameters
    ----------
    mode : int, optional
        Number of the mode, that is, of the collective among those of the fabric.
    length : int, optional
        Flits per message.
    root : int, optional
        Root, as a position within each group.
    operation : int, optional
        Number of the operator within the mode.

    Examples
    --------
    >>> Job(length=3).inputs
    {'length': 3}
    """

    mode: int | None = None
    length: int | None = None
    root: int | None = None
    operation: int | None = None

    @property
    def inputs(self) -> dict[str, int]:
        """The choices that are not None, as a dict: name of the fabric input -> value."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class EngineRun(NamedTuple):
    """Result of one run.

    Parameters
    ----------
    words : list of list of int, or ndarray, shape (nodes, words)
        Words in the receive memory of each node after the run, in the order of the addresses at
        the host port.
    cycles : int
        Cycles counted by the fabric itself.
    edges : int
        Clock edges from the start pulse to done, counted by the engine.
    clocks : int
        Simulated clock cycles, with those in which messages are written and results are read.
    seconds : float
        Processor time of the simulation from start to done.
    through_port : int
        Words written and read through the host port.
    direct : int
        Words copied directly into and out of the memories of nodes.
    """

    words: Messages
    cycles: int
    edges: int
    clocks: int
    seconds: float
    through_port: int = 0
    direct: int = 0


class Engine:
    """A simulator for one fabric.

    Parameters
    ----------
    wave : str or Path, optional
        File for the waveforms of every run; see `torusfabric.simulation.engines.waves`.
    through_port : bool
        True to move all words through the host port, which is always done if waveforms are written.
        Otherwise a sample of the words passes through the port; see `torusfabric.adapters.host`.
    repeat : int
        Approximate number of runs. If the simulation is short, the compiled engine is built with
        fewer optimizations: its build takes less time, and its simulation more.

    Raises
    ------
    InputError
        If the fabric is behind a bus.
    """

    name: str

    #: Seconds of preparation before the first run.
    build_seconds = 0.0

    def __init__(
        self,
        fabric: Fabric,
        *,
        wave: str | Path | None = None,
        through_port: bool = False,
        repeat: int = 1,
    ) -> None:
        if fabric.front.name != fabric.top:
            raise InputError(
                f"Python simulates no fabric behind {fabric.front.name}; build it without the "
                "bus, or use the bench that torusfabric verilog writes"
            )
        self.fabric, self._wave = fabric, wave
        self._through_port = through_port or wave is not None
        self._work = node_cycles(fabric, repeat)

    def run(
        self,
        messages: Messages,
        *,
        job: Job | None = None,
        progress: Progress | None = None,
    ) -> EngineRun:
        """Run one collective, and return its result; see `run_many`.

        Parameters
        ----------
        messages : sequence of (sequence of int)
            For each node, the words that it sends.
        job : Job, optional
            Mode, length, root and operator of the run.
        progress : function of (done, total), optional
            As for `run_many`.
        """
        jobs = () if job is None else [job]
        return self.run_many([messages], jobs=jobs, progress=progress)[0]

    def run_many(
        self,
        batches: Iterable[Messages],
        *,
        jobs: Sequence[Job] = (),
        progress: Progress | None = None,
    ) -> list[EngineRun]:
        """Run several collectives one after another without a reset between them.

        Each run writes a message into every node, starts the fabric, and reads every node after
        done.

        Parameters
        ----------
        batches : iterable of (sequence of (sequence of int))
            For each run, the words that each node sends: its messages, one after another. Each
            message has as many flits as the job of the run chooses.
        jobs : sequence of Job
            Job of each run, for a fabric that leaves a choice; by default `longest_job`.
        progress : function of (done, total), optional
            Called from time to time with the number of words moved so far and the total.

        Raises
        ------
        InputError
            If the fabric has no host port, or if the number or the length of messages is wrong.
        WorkFailed
            If a run does not finish.
        """
        if not self.fabric.shared_port:
            raise InputError(f"Top must be host for runs by a host port, not {self.fabric.top}")
        batches = list(batches)
        jobs = list(jobs) or [longest_job(self.fabric)] * len(batches)
        return self.run_all(batches, jobs, progress)

    def run_all(
        self, batches: Sequence[Messages], jobs: Sequence[Job], progress: Progress | None
    ) -> list[EngineRun]:
        """Run several collectives, one for each job.

        The parameters `batches`, `jobs` and `progress` are those of `run_many`, which has checked
        them.
        """
        access = self.fabric.interface.access
        return self.run_access(partial(access, self.fabric, batches, jobs, progress=progress,
                                       through_port=self._through_port))  # fmt: skip

    def run_access(self, make: Callable[..., Access[_Result]]) -> _Result:
        """Execute work at the ports of the fabric, clock edge by clock edge; return its result.

        Parameters
        ----------
        make : function of (cells=) -> Access
            Returns the work. `cells` is a `MemoryCells`, direct access to the memories of the
            simulated nodes.

        Raises
        ------
        InputError
            If the engine is not a simulator, such as a board.
        """
        del make
        raise InputError(f"Engine for clock edges must be amaranth or compiled, not {self.name}")

    def run_traffic(self, traffic: PortTraffic, progress: Progress | None = None) -> Any:
        """Send words through the streams of the nodes, and receive words until the fabric is idle.

        It is for fabrics in which each node has streams of its own (*node ports*).

        Parameters
        ----------
        traffic : PortTraffic
            Words of some runs, and the drivers that send and receive them.
        progress : function of (done, total), optional
            Called from time to time with the number of words or beats moved so far and the total.

        Returns
        -------
        object
            Log of the traffic; its class depends on the adapter.

        Raises
        ------
        InputError
            If the engine cannot drive node ports.
        WorkFailed
            If the fabric becomes idle before all words have passed, or if a word changes while it
            waits for its handshake.
        """
        del traffic, progress
        raise InputError(f"Engine for ports of nodes must be amaranth or compiled, not {self.name}")


def longest_job(fabric: Fabric, mode: int = 0) -> Job:
    """Return the default job of a mode: the longest messages, root 0 and operator 0.

    If the fabric was built for a single value of a choice, such as one length, that choice is None.
    """
    program = fabric.program
    of_mode = program.modes[program.mode_number(mode)]
    return Job(
        mode=mode if len(program.modes) > 1 else None,
        length=fabric.flits if program.any_length else None,
        root=0 if of_mode.any_root else None,
        operation=0 if len(of_mode.operators) > 1 else None,
    )


def node_cycles(fabric: Fabric, repeat: int) -> int:
    """Estimate the simulation work of `repeat` runs: number of nodes times simulated cycles.

    Cycles in which words pass through the host port are included. The estimate decides how much
    time is spent on the build of a compiled engine.
    """
    through_port = min(n_words_moved(fabric), 2 * PORT_SAMPLE_WORDS)
    return repeat * fabric.nodes * (fabric.predicted_cycles + through_port)


def n_words_moved(fabric: Fabric) -> int:
    """Return how many words one run writes and reads in the memories of all nodes together.

    With several modes, the result is that of the mode that moves the most words.
    """
    words = max(layout.send_words + layout.recv_words for layout in fabric.layouts)
    return fabric.nodes * fabric.beat * words
