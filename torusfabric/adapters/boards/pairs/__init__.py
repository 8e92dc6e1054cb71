"""Links between boards on differential pairs or transceivers of an ECP5.

A *pair* is two wires that carry a serial signal in one direction. A *bundle* is all pairs to one
neighbour. A pair carries one word in each cycle of the fabric clock, as several *units* of a faster
clock, which are bits or bytes (`words`). A `PhysicalLayer` connects the units to pins: `LvdsLayer`
to differential pairs, `SerdesLayer` to transceivers.
"""

from collections.abc import Callable
from typing import Any

from ..hardware import BoardSystem
from .links import PairLinks, PhysicalLayer
from .lvds import LvdsLayer
from .serdes import SerdesLayer

__all__ = ["LAYERS", "PairLinks", "pair_links"]

#: Constructor of each physical layer for a platform, by the name of the layer.
LAYERS: dict[str, Callable[[Any], PhysicalLayer]] = {"lvds": LvdsLayer, "serdes": SerdesLayer}


def pair_links(
    system: BoardSystem, board: int, platform: Any, given: int | None = None
) -> PairLinks:
    """Return the hardware between the link ports of a board and the pins of its platform.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards; it names the physical layer.
    board : int
        Number of the board in the system.
    platform : Platform
        Platform of an ECP5 board, with a resource for each bundle.
    given : int, optional
        Data pairs to use in each bundle (all pairs to one neighbour); by default as many as are
        needed.

    Raises
    ------
    InputError
        If the platform has no suitable pairs or its clock is too fast; see `PairLinks`.
    """
    return PairLinks(system, board, LAYERS[system.phy.name](platform), platform, given)
