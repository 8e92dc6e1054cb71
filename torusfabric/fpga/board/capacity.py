"""The error message about a fabric that is too large for a board."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .catalogue import Board

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["SCARCE", "advice", "crowding", "largest_sides", "over_capacity"]

#: The names that place and route has for logic cells and block RAMs, which run out first.
SCARCE = ("ICESTORM_LC", "ICESTORM_RAM", "TRELLIS_COMB", "DP16KD", "LUT4", "BSRAM")

#: Errors of place and route that finds no location, though by the numbers there should be one.
_NOT_PLACED = re.compile(
    r"[Uu]nable to (find|place)|[Ff]ailed to (find|place|expand)|no BELs remain"
)

#: Cells of routers, endpoints and the multiplexers that gather what nodes read.
_OF_NODES = re.compile(r"image\.bridge\.fabric\.(?!the_bus|host_port|sequencer)")

#: From this share on, that is for want of room: flip-flops share a tile only with those of the same
#: enable and reset, so that many locations stay empty.
_CROWDED = 0.75


def over_capacity(
    log: str, fabric: "Fabric", board: Board, netlist: Path | None = None
) -> str | None:
    """By how much a design is too large, and what would fit; None if that is not why it failed.

    Parameters
    ----------
    log : str
        The log of place and route.
    fabric : Fabric
    board : Board
    netlist : Path, optional
        The netlist from synthesis, as JSON; it shows how much there is once, however many nodes.

    Returns
    -------
    str or None
    """
    share, scarcest = _scarcest(log)
    if share <= 1 and not (share > _CROWDED and _NOT_PLACED.search(log)):
        return None
    need = "need" if share > 1 else "crowd it with"
    text = f"Fabric must fit into {board.name}, not {need} {scarcest}"
    return f"{text} ({100 * share:.0f} %); {_advice(fabric, share, board, netlist)}"


def crowding(log: str) -> str:
    """Logic or block RAM, what is taken to the larger part; empty where that is not known."""
    share, scarcest = _scarcest(log, SCARCE)
    return f"{scarcest}, {100 * share:.0f} %" if scarcest else ""


def _scarcest(log: str, names: Sequence[str] = ()) -> tuple[float, str]:
    """The resource, perhaps of some, that a design takes the largest share of; both numbers."""
    rows = re.findall(r"Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s+\d+%", log)
    rows = [row for row in rows if row[0] in (names or row)]
    share = lambda row: int(row[1]) / int(row[2])
    name, used, most = max((row for row in rows if int(row[2])), key=share, default=("", "0", "1"))
    return int(used) / int(most), f"{used} of {most} {name}" if name else ""


def _advice(fabric: "Fabric", share: float, board: Board, netlist: Path | None) -> str:
    """What would fit: as measured, and where that was of other fabrics, by this one's totals."""
    limit = board.limit
    if limit and limit.measured and limit.holds_for(fabric):
        return limit.describe(board.name)
    sides = getattr(fabric.program.topology, "sides", ())
    return advice(sides, share, board, common=_common_share(netlist))


def advice(sides: Sequence[int], share: float, board: Board, *, common: float = 0.0) -> str:
    """What would fit in the place of a torus that does not; parameters as of `largest_sides`."""
    smaller = largest_sides(sides, share, common)
    said = (
        f"by these totals up to {'x'.join(map(str, smaller))} may fit"
        if smaller
        else "fewer bits or flits may fit"
    )
    return "; ".join([said, *([board.limit.describe(board.name)] if board.limit else [])])


def _common_share(netlist: Path | None) -> float:
    """The share of the cells that do not belong to nodes; 0 if that is not known."""
    if netlist is None:
        return 0.0
    try:
        modules = json.loads(netlist.read_text(encoding="utf-8"))["modules"]
        top = next(m for m in modules.values() if int(m["attributes"].get("top", "0"), 2))
    except (OSError, TypeError, ValueError, KeyError, StopIteration):
        return 0.0
    nodes = sum(bool(_OF_NODES.match(name)) for name in top["cells"])
    return 1 - nodes / len(top["cells"]) if nodes else 0.0


def largest_sides(sides: Sequence[int], share: float, common: float = 0.0) -> list[int] | None:
    """The sides of the largest torus that may fit, or None if not even the smallest may.

    What a node takes is counted as the same in a smaller torus, though its memories are smaller
    there: an estimate.

    Parameters
    ----------
    sides : sequence of int
        Of the torus that was tried; empty for another topology, for which nothing is known.
    share : float
        The resources that the whole takes, as a share of those of the device.
    common : float
        The part of that which does not grow with the nodes.
    """
    nodes, smaller = math.prod(sides), list(sides)
    room = nodes * (1 - share * common) / (share * (1 - common))
    room = min(max(int(room), 0), nodes - 1)
    while smaller and math.prod(smaller) > room:
        longest = len(smaller) - 1 - smaller[::-1].index(max(smaller))
        smaller[longest] -= 1
        if smaller[longest] < 2:
            return None
    return smaller or None
