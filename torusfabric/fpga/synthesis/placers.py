"""The placers of nextpnr, and how its log shows that one comes to no end.

The static placer moves all cells at once for a time, and then looks for a legal place for
each of them. That takes seconds, or comes to no end on a crowded device; nothing is written
meanwhile. So it is stuck when the log has been silent for as long as everything before took, which
is so on a slow machine as on a fast one.
"""

import re
import time
from pathlib import Path

from ...errors import WorkFailed

__all__ = ["ECP5_PLACERS", "NO_PLACE", "PlacerWatch", "StuckPlacer", "is_placed", "utilisation"]

#: Those for an ECP5, the better one first. Its wires are a fifth shorter: a 4x4
#: engine of two collectives, 32 bits, is routed on an 85F in minutes, where behind the second one
#: it was not in 25.
ECP5_PLACERS = ("static", "heap")

#: Seconds of silence after which a placer may be stuck at the soonest.
SILENCE = 60.0


#: What nextpnr says where it finds no place for a cell, as opposed to a design that is wrong.
NO_PLACE = re.compile(r"[Uu]nable to (find|place)|[Ff]ailed to (find|place|expand)|no BELs remain")


class StuckPlacer(WorkFailed):
    """A placer comes to no end."""


def utilisation(log: str) -> list[tuple[str, int, int]]:
    """Each resource that nextpnr logged, how much of it is used, and of how much."""
    rows = re.findall(r"Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s+\d+%", log)
    return [(name, int(used), int(most)) for name, used, most in rows]


def is_placed(log: str) -> bool:
    """Whether all cells have their places, by the log of nextpnr."""
    return "Routing globals" in log


class PlacerWatch:
    """Raises an error when called while a placer is stuck; to be called every second or so.

    Parameters
    ----------
    log : Path
        What nextpnr writes; it need not exist yet.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._size = 0
        self._began = self._grown = 0.0

    def __call__(self) -> None:
        """Look at the log once.

        Raises
        ------
        StuckPlacer
            If the placer is stuck.
        """
        now, size = time.monotonic(), self._log.stat().st_size if self._log.exists() else 0
        if size != self._size:
            self._began = self._began if self._size else now
            self._size, self._grown = size, now
        silent = now - self._grown
        if not size or silent <= max(SILENCE, self._grown - self._began):
            return
        if not is_placed(self._log.read_text(encoding="utf-8", errors="replace")):
            raise StuckPlacer(
                f"Placer must find a place for all cells, not be stuck (log: {self._log})"
            )
