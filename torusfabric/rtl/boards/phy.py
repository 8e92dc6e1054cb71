"""Physical layers of links between boards: what they add to the way of a word."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LVDS", "PARALLEL", "PHYS", "Phy"]


class Phy(NamedTuple):
    """A physical layer.

    Parameters
    ----------
    name : str
    least, most : float
        Cycles that a word takes beyond those of parallel wires.
    """

    name: str
    least: float = 0
    most: float = 0


#: Words and the clock of the board that sends, each bit on a wire of its own.
PARALLEL = Phy("parallel")

#: Differential pairs. A word waits up to 2/3 of a cycle until it is loaded, takes one on
#: the pair, and up to one until it is whole, less what a parallel word waits for its clock. What
#: pins and cables take, up to 11 bits of 24 and seven cycles of the faster clock, is part of the
#: most.
LVDS = Phy("lvds", 1.5, 4)

#: All of them, by name.
PHYS = {phy.name: phy for phy in (PARALLEL, LVDS)}
