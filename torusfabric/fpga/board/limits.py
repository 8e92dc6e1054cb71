"""The largest square torus that fits onto a board, found by building one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...toolchain.files import AnyPath
from .build import build
from .catalogue import Board, Misfit
from .run import SCARCE

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

    Returns
    -------
    side : int or None
        None if not even the smallest torus fits.
    attempts : list of Attempt
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
    board: Board, make_fabric: Callable[[int], Fabric], folder: AnyPath
) -> Callable[[int], Attempt]:
    """A function that builds the fabric of a side for a board, in a folder, for `find_limit`."""
    unknown = replace(board, limit=None)  # what is on record is not to be believed

    def attempt(side: int) -> Attempt:
        try:
            built = build(make_fabric(side), unknown, Path(folder, f"side-{side}"))
        except Misfit as error:
            return Attempt(side, fits=False, why=str(error).split(" (log: ")[0])
        report = built.report
        counts = [
            (name, report["resources"][name]) for name in SCARCE if name in report["resources"]
        ]
        used = [f"{count['used']} of {count['available']} {name}" for name, count in counts]
        return Attempt(side, fits=True, why=", ".join([*used, f"{report['fmax_mhz']} MHz"]))

    return attempt
