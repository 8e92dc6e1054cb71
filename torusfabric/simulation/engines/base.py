"""What an engine does: it runs a fabric, driven only through its host port."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["PATIENCE", "Engine", "Phases", "Run"]

#: Cycles after the predicted end before a run is given up.
PATIENCE = 16


class Phases(NamedTuple):
    """Seconds of processor time that the parts of a run took."""

    load: float
    run: float
    read: float


class Run(NamedTuple):
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
    phases : Phases
        Where the time went.
    """

    words: Sequence[Sequence[int]]
    cycles: int
    edges: int
    clocks: int
    phases: Phases


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

    def __init__(self, fabric, *, wave=None):
        self.fabric, self._wave = fabric, wave

    def run(
        self,
        messages,
        *,
        root: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Run:
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
    def measure(self, runs) -> tuple[int, float]:
        """Run collectives on whatever is in memory, to tell how fast that goes.

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
    def run_many(self, batches, *, roots=None, progress=None) -> list[Run]:
        """Run several collectives one after another, without a reset between them.

        Parameters
        ----------
        batches : iterable of (sequence of (sequence of int))
            The messages of each collective.
        roots : sequence of int, optional
            The root of each, for a fabric that lets it be chosen.
        progress : function of (done, total), optional
        """
