"""How the traffic of a fabric with streams is carried out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from ...errors import WorkFailed
from ...rtl.fabric import Fabric
from ..engines.base import node_cycles
from .traffic import STATUS_SINK, Log, Traffic

__all__ = ["Progress", "StreamEngine", "check_end"]

#: Called now and then with the beats that have passed, and all of them.
Progress: TypeAlias = Callable[[int, int], Any]


class StreamEngine(ABC):
    """A way to run a fabric with streams.

    Parameters
    ----------
    wave : str or Path, optional
        File that the waves are written to.
    runs : int
        About how many it is made for, as `repeat` of `Engine`.
    """

    name: str

    #: Seconds it took to get ready.
    build_seconds = 0.0

    def __init__(self, fabric: Fabric, *, wave: str | Path | None = None, runs: int = 1) -> None:
        self.fabric, self._wave, self._work = fabric, wave, node_cycles(fabric, runs)

    @abstractmethod
    def run(self, traffic: Traffic, progress: Progress | None = None) -> Log:
        """Send all there is to send, and receive until nothing comes any more.

        Raises
        ------
        WorkFailed
            If the fabric comes to rest before all has passed, or a word that waits changes.
        """


def check_end(traffic: Traffic, log: Log, *, unsent: int) -> None:
    """Check that all has passed.

    Raises
    ------
    WorkFailed
        If not.
    """
    if traffic.loads and any(arrival.word for arrival in log.arrivals[STATUS_SINK][1:2]):
        raise WorkFailed("Image must be taken by the fabric, not refused")
    if log.unsteady:
        raise WorkFailed(f"Word that waits at {log.unsteady} must stay as it is, not change")
    missing = sum(max(sink.expected - len(log.arrivals[sink.prefix]), 0) for sink in traffic.sinks)
    if missing or unsent:
        raise WorkFailed(
            f"Fabric must take and give all words, not rest after {log.clocks} cycles with "
            f"{unsent} not taken and {missing} not given"
        )
