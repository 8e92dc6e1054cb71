"""The error message about a fabric that is too large for a board."""

import math
from collections.abc import Sequence
from fractions import Fraction

from ...topology import Topology
from ..synthesis.nextpnr import NO_PLACE, utilisation
from .catalogue import Board

__all__ = ["SCARCE", "advice", "crowding", "largest_sides", "over_capacity"]

#: The names that place and route has for logic cells and block RAMs, which run out first.
SCARCE = ("ICESTORM_LC", "ICESTORM_RAM", "TRELLIS_COMB", "DP16KD", "LUT4", "BSRAM")

#: From this share on, what finds no place does so for want of room: flip-flops share a tile only
#: with those of the same enable and reset, so that many locations stay empty.
_CROWDED = 0.75


def over_capacity(log: str, topology: Topology, board: Board) -> str | None:
    """By how much a design is too large, and what would fit; None if that is not why it failed.

    Parameters
    ----------
    log : str
        The log of place and route.
    topology : Topology
        Of the fabric.
    """
    share, scarcest = _scarcest(log)
    if share <= 1 and not (share > _CROWDED and NO_PLACE.search(log)):
        return None
    need = "need" if share > 1 else "crowd it with"
    text = f"Fabric must fit into {board.name}, not {need} {scarcest}"
    return f"{text} ({100 * share:.0f} %); {advice(topology, share, board)}"


def crowding(log: str) -> str:
    """Logic or block RAM, what is taken to the larger part; empty where that is not known."""
    share, scarcest = _scarcest(log, SCARCE)
    return f"{scarcest}, {100 * share:.0f} %" if scarcest else ""


def _scarcest(log: str, names: Sequence[str] = ()) -> tuple[float, str]:
    """The resource, perhaps of some, that a design takes the largest share of; both numbers."""
    rows = [row for row in utilisation(log) if row[2] and (not names or row[0] in names)]
    share = lambda row: row[1] / row[2]
    name, used, most = max(rows, key=share, default=("", 0, 1))
    return used / most, f"{used} of {most} {name}" if name else ""


def advice(topology: Topology, share: float | Fraction, board: Board) -> str:
    """What would fit in the place of a fabric that takes a share of what a board has."""
    smaller = largest_sides(getattr(topology, "sides", ()), share)
    said = (
        f"by these totals up to {'x'.join(map(str, smaller))} may fit"
        if smaller
        else "fewer bits or flits may fit"
    )
    return "; ".join([said, *([board.limit.describe(board.name)] if board.limit else [])])


def largest_sides(sides: Sequence[int], share: float | Fraction) -> list[int] | None:
    """The sides of the largest torus that may fit, or None if not even the smallest may.

    All that is taken is counted as if it grew with the nodes: an estimate.

    Parameters
    ----------
    sides : sequence of int
        Of the torus that was tried; empty for another topology, for which nothing is known.
    share : float
        The resources that the whole takes, as a share of those of the device.
    """
    nodes, smaller = math.prod(sides), list(sides)
    room = min(int(nodes / share), nodes - 1)
    while smaller and math.prod(smaller) > room:
        longest = len(smaller) - 1 - smaller[::-1].index(max(smaller))
        smaller[longest] -= 1
        if smaller[longest] < 2:
            return None
    return smaller or None
