"""The protocol of engines, which run a fabric by its host port or by ports of nodes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...contract.traffic import Traffic
from ...errors import InputError
from ...rtl.fabric import Fabric

__all__ = [
    "PATIENCE",
    "Engine",
    "EngineRun",
    "Job",
    "Messages",
    "Progress",
    "node_cycles",
]

#: Cycles after the predicted end before a run is given up.
PATIENCE = 16

#: Words of a run that go through the host port each way, beside those at the corners.
SAMPLE = 1000

#: The words of each node's send memory.
Messages: TypeAlias = Sequence[Sequence[int]] | np.ndarray

#: Called now and then with the words, or beats, that have passed so far, and with all.
Progress: TypeAlias = Callable[[int, int], Any]


class Job(NamedTuple):
    """The choices of a run, where a fabric leaves any.

    Parameters
    ----------
    mode : int, optional
        Which of several collectives.
    length : int, optional
        Flits of a message.
    operation : int, optional
        The number of an operator.

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
        """The inputs of the fabric that are sampled with the start, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class EngineRun(NamedTuple):
    """The result of a run.

    Parameters
    ----------
    words : list of list of int, or ndarray
        What each node has received, in the order of the host's addresses.
    cycles : int
        What the fabric's own counter says.
    edges : int
        Clock edges from the start pulse to done, as counted from outside.
    clocks : int
        Clock cycles simulated in all, loading and reading included.
    seconds : float
        Of processor time, from start to done.
    through_port, direct : int
        How many words were written and read through the host port, and how many were put into the
        memories of nodes and taken from there.
    """

    words: Messages
    cycles: int
    edges: int
    clocks: int
    seconds: float
    through_port: int = 0
    direct: int = 0


class Engine(ABC):
    """A way to run a fabric.

    Parameters
    ----------
    wave : str or Path, optional
        File that the waves of every run are written to; see `torusfabric.simulation.engines.waves`.
    through_port : bool
        Whether all words go through the host port, as they do where waves are written. Otherwise a
        sample does; see `torusfabric.adapters.host`.
    repeat : int
        About how many collectives it is made for: what is built for few is built quickly.

    Raises
    ------
    InputError
        If the fabric is behind a bus.
    """

    name: str

    #: Seconds it took to get ready for the first run.
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
            what = "a fabric that is simulated"
            raise InputError(f"Bus must be left out of {what}, not {fabric.front.name}")
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
        """Run a collective; see `run_many`."""
        jobs = () if job is None else [job]
        return self.run_many([messages], jobs=jobs, progress=progress)[0]

    def run_many(
        self,
        batches: Iterable[Messages],
        *,
        jobs: Sequence[Job] = (),
        progress: Progress | None = None,
    ) -> list[EngineRun]:
        """Run several collectives one after another, without a reset between them.

        In each, a message is written into every node; after the run, every node is read.

        Parameters
        ----------
        batches : iterable of (sequence of (sequence of int))
            Of each collective, the words of each node's send memory: parts of as many flits as its
            job says.
        jobs : sequence of Job
            What is chosen for each, for a fabric that leaves a choice; by default as `longest_job`
            says.

        Raises
        ------
        InputError
            If the fabric has no host port, or messages are not as many, or as long, as they must.
        WorkFailed
            If the fabric does not come to an end.
        """
        if not self.fabric.shared_port:
            raise InputError(f"Top must be host for runs by a host port, not {self.fabric.top}")
        batches = list(batches)
        jobs = list(jobs) or [longest_job(self.fabric)] * len(batches)
        return self.run_all(batches, jobs, progress)

    @abstractmethod
    def run_all(
        self, batches: Sequence[Messages], jobs: Sequence[Job], progress: Progress | None
    ) -> list[EngineRun]:
        """Run several collectives, with a job for each; see `run_many`."""

    def runs(
        self,
        batches: Sequence[Messages],
        jobs: Sequence[Job],
        cells: Any,
        progress: Progress | None,
    ) -> Any:
        """Return the clock edges of runs by the host port; see `Interface.access`."""
        access = self.fabric.interface.access
        return access(self.fabric, batches, jobs, cells=cells,
                      through_port=self._through_port, progress=progress)  # fmt: skip

    def run_traffic(self, traffic: Traffic, progress: Progress | None = None) -> Any:
        """Send all words of some traffic, and receive until nothing comes any more.

        Returns
        -------
        object
            The log of the traffic.

        Raises
        ------
        InputError
            If the engine drives no ports of nodes.
        WorkFailed
            If the fabric comes to rest before all has passed, or a word that waits changes.
        """
        del traffic, progress
        raise InputError(f"Engine for ports of nodes must be amaranth or compiled, not {self.name}")


def longest_job(fabric: Fabric, mode: int = 0) -> Job:
    """The job of a mode if nothing is chosen: the longest messages, and the first of the rest."""
    program = fabric.program
    of_mode = program.modes[program.mode_number(mode)]
    return Job(
        mode=mode if len(program.modes) > 1 else None,
        length=fabric.flits if program.any_length else None,
        root=0 if of_mode.any_root else None,
        operation=0 if len(of_mode.operators) > 1 else None,
    )


def node_cycles(fabric: Fabric, repeat: int) -> int:
    """Return the cycles times nodes of some collectives, those of the host port included."""
    through_port = min(words_moved(fabric), 2 * SAMPLE)
    return repeat * fabric.nodes * (fabric.predicted_cycles + through_port)


def words_moved(fabric: Fabric) -> int:
    """Words that are written and read in a run, of the mode with most."""
    words = max(layout.send_words + layout.recv_words for layout in fabric.layouts)
    return fabric.nodes * fabric.beat * words
