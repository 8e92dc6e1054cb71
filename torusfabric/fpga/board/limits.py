"""The largest square torus that fits onto a board, found by one build after another.

The user is the command ``boards``, which prints the result as the `Limit` for a board's file.
"""

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

__all__ = ["Attempt", "find_limit", "make_attempt"]

#: Largest side that is tried.
MOST_SIDE = 32


@dataclass(frozen=True)
class Attempt:
    """The outcome of the build of one square torus for a board.

    Parameters
    ----------
    side : int
        Nodes in each row and column.
    fits : bool
        True if the bitstream fits and reaches the clock.
    why : str
        Resources in use, or the reason why it does not fit.
    """

    side: int
    fits: bool
    why: str


def find_limit(
    attempt: Callable[[int], Attempt],
    *,
    start: int = 2,
    most: int = MOST_SIDE,
    progress: Callable[[Attempt], None] | None = None,
) -> tuple[int | None, list[Attempt]]:
    """Return the largest side of a square torus that fits, found by builds of several sides.

    The side grows by 1, 2, 4, .. until a torus does not fit; then bisection finds the largest side.
    If a torus fits, all smaller ones are taken to fit.

    Parameters
    ----------
    attempt : function of int -> Attempt
        Builds the square torus with a side.
    start, most : int
        First and largest side to try. A good first guess saves builds.
    progress : function of Attempt, optional
        Called after each build.

    Returns
    -------
    side : int or None
        Largest side that fits; None if even the smallest torus does not fit.
    attempts : list of Attempt
        All builds in their order.
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


def make_attempt(
    board: Board, make_fabric: Callable[[int], Fabric], folder: AnyPath
) -> Callable[[int], Attempt]:
    """Return a function that builds the fabric on a square torus for a board.

    The function takes the side of the torus and returns an `Attempt`; it is for `find_limit`.

    Parameters
    ----------
    board : Board
        Board of the bitstreams.
    make_fabric : function of int -> Fabric
        Makes the fabric with a side.
    folder : path
        Folder for the builds, each in a subfolder.
    """
    unknown = replace(board, limit=None)  # so that the recorded limit excludes no side

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
