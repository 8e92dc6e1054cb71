"""Physical layers of links between boards: what they add to the way of a word."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LVDS", "PARALLEL", "PHYS", "SERDES", "Phy"]


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

#: Transceivers of an ECP5 at 2.5 Gbit/s, with five cycles of their clock in one of the fabric. They
#: themselves take 17 to 22.5 of these, with words of 10 bits and both codes bypassed
#: (FPGA-DS-02012, table 3.26), or 3.4 to 4.5 of the fabric. A word waits 0.2 to 0.8 until it is
#: loaded, takes 0.8 to be coded, 0.8 to be decoded and found, and one to be whole; what is left of
#: the most is for the place of bits and the cable.
SERDES = Phy("serdes", 6, 8.5)

#: All of them, by name.
PHYS = {phy.name: phy for phy in (PARALLEL, LVDS, SERDES)}
