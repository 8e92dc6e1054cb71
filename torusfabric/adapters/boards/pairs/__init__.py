"""Links between boards on differential pairs of an ECP5."""

from collections.abc import Callable
from typing import Any

from ..hardware import BoardSystem
from .links import Layer, PairLinks
from .lvds import LvdsLayer
from .serdes import SerdesLayer

__all__ = ["LAYERS", "PairLinks", "pair_links"]

#: What makes each physical layer for a platform, by its name.
LAYERS: dict[str, Callable[[Any], Layer]] = {"lvds": LvdsLayer, "serdes": SerdesLayer}


def pair_links(
    system: BoardSystem, board: int, platform: Any, given: int | None = None
) -> PairLinks:
    """The links of a board at the pins of its platform; parameters and errors of `PairLinks`."""
    return PairLinks(system, board, LAYERS[system.phy.name](platform), platform, given)
