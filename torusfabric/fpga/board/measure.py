"""Measuring a board: fabrics are built for it until the largest that fits is found."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...toolchain.cache import Cache
from ...toolchain.files import AnyPath
from .build import build
from .capacity import SCARCE
from .catalogue import Board
from .limits import Misfit

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Attempt", "find_limit", "try_board"]

#: The largest side that is tried.
MOST = 32


@dataclass(frozen=True)
class Attempt:
    """A build that was tried.

    Parameters
    ----------
    side : int
        Nodes in a row and in a column.
    why : str
        The resources that it takes, or the reason why it does not fit.
    """

    side: int
    fits: bool
    why: str


def find_limit(
    attempt: Callable[[int], Attempt],
    *,
    start: int = 2,
    most: int = MOST,
    progress: Callable[[Attempt], None] | None = None,
) -> tuple[int | None, list[Attempt]]:
    """The largest side that fits: up by growing steps, then the gap is halved.

    Parameters
    ----------
    attempt : function of int -> Attempt
        Builds the square torus of a side.
    start, most : int
        The first and the largest side that are tried. A good guess saves builds.
    progress : function of Attempt, optional
        Called after each attempt.

    Returns
    -------
    side : int or None
        None if not even the smallest torus fits.
    attempts : list of Attempt
        In the order in which they were made.
    """
    attempts = []

    def fits(side: int) -> bool:
        found = attempt(side)
        attempts.append(found)
        if progress is not None:
            progress(found)
        return found.fits

    low, high, step = 1, min(start, most), 1
    while fits(high):
        if high == most:
            return most, attempts
        low, high, step = high, min(high + step, most), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return (low if low > 1 else None), attempts


def try_board(
    board: Board,
    make_fabric: Callable[[int], "Fabric"],
    folder: AnyPath,
    *,
    cache: Cache | None = None,
) -> Callable[[int], Attempt]:
    """A function that builds the fabric of a side for a board, for `find_limit`.

    Parameters
    ----------
    make_fabric : function of int -> Fabric
        Makes the fabric of the square torus of a side.
    folder : path
        Where the builds go, each in a folder of its own.
    """

    unknown = replace(board, limit=None)  # what is on record is not to be believed

    def attempt(side: int) -> Attempt:
        try:
            built = build(make_fabric(side), unknown, Path(folder, f"side-{side}"), cache=cache)
        except Misfit as error:
            return Attempt(side, fits=False, why=str(error).split(" (log: ")[0])
        return Attempt(side, fits=True, why=_resources(built.report))

    return attempt


def _resources(report: dict[str, Any]) -> str:
    """The scarce resources that a build takes, and the clock that it reaches."""
    resources = report["resources"]
    used = [
        f"{resources[name]['used']} of {resources[name]['available']} {name}"
        for name in SCARCE
        if name in resources
    ]
    return ", ".join([*used, f"{report['fmax_mhz']} MHz"])
