"""What an engine does: it runs a fabric, driven only through its host port."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...rtl.fabric import Fabric

__all__ = ["PATIENCE", "Engine", "EngineRun", "Messages", "PhaseTimes", "Progress"]

#: Cycles after the predicted end before a run is given up.
PATIENCE = 16

#: The words of each node's send memory.
Messages: TypeAlias = Sequence[Sequence[int]] | np.ndarray

#: Called now and then with the words loaded and read so far, and in all.
Progress: TypeAlias = Callable[[int, int], Any]


class PhaseTimes(NamedTuple):
    """Seconds of processor time that the parts of a run took."""

    load: float
    run: float
    read: float


class EngineRun(NamedTuple):
    """What came of a run.

    Parameters
    ----------
    words : list of list of int, or ndarray
        What the host read at each node, in the order of its receive addresses.
    cycles : int
        What the fabric's own counter says.
    edges : int
        Clock edges from the start pulse to done, as counted from outside.
    clocks : int
        Clock cycles simulated in all, loading and reading included.
    phases : PhaseTimes
        Where the time went.
    """

    words: Messages
    cycles: int
    edges: int
    clocks: int
    phases: PhaseTimes


class Engine(ABC):
    """A way to run a fabric.

    Parameters
    ----------
    fabric : Fabric
    wave : str or Path, optional
        File that the waves of every run are written to; see `torusfabric.simulation.engines.waves`.
    """

    name: str

    #: Seconds it took to get ready for the first run.
    build_seconds = 0.0

    def __init__(self, fabric: Fabric, *, wave: str | Path | None = None) -> None:
        self.fabric, self._wave = fabric, wave

    def run(
        self,
        messages: Messages,
        *,
        root: int | None = None,
        progress: Progress | None = None,
    ) -> EngineRun:
        """Load a message into every node, start, wait for done, and read every node.

        Parameters
        ----------
        messages : sequence of (sequence of int)
            The words of each node's send memory.
        root : int, optional
            The root, for a fabric that lets it be chosen.
        progress : function of (done, total), optional
            Called now and then with the words loaded and read so far.

        Raises
        ------
        WorkFailed
            If the fabric does not come to an end.
        """
        roots = None if root is None else [root]
        return self.run_many([messages], roots=roots, progress=progress)[0]

    @abstractmethod
    def measure(self, runs: int) -> tuple[int, float]:
        """Run collectives on whatever is in memory, to find out how fast that goes.

        Parameters
        ----------
        runs : int

        Returns
        -------
        cycles : int
            From start to done, in all.
        seconds : float
            Of processor time.
        """

    @abstractmethod
    def run_many(
        self,
        batches: Iterable[Messages],
        *,
        roots: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> list[EngineRun]:
        """Run several collectives one after another, without a reset between them.

        Parameters
        ----------
        batches : iterable of (sequence of (sequence of int))
            The messages of each collective.
        roots : sequence of int, optional
            The root of each, for a fabric that lets it be chosen.
        progress : function of (done, total), optional
        """
