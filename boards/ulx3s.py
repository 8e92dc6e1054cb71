"""ULX3S by Radiona: ECP5 at 25 MHz; the serial line is on the USB plug US1.

The first of its eight LEDs is lit during a run, the second one after it. On the 25F, a 9x9
all-gather of 8 bits takes nearly all LUTs; the second router of nextpnr ends after some minutes,
the first one had not ended after 20. 10x10 needs more block RAMs than the 25F has. The limit of the
85F is an estimate from its block RAMs.
"""

from typing import Any

from amaranth.build import Attrs, DiffPairs, Resource, Subsignal
from amaranth_boards.ulx3s import ULX3S_25F_Platform, ULX3S_85F_Platform

from torusfabric.fpga.board import COMPACT, ECP5_PLACERS, ECP5_ROUTERS, Board, Limit


def _pairs(numbers: str, direction: str) -> DiffPairs:
    """Return pins of the header in pairs, by their numbers."""
    names = numbers.split()
    plus, minus = (" ".join(f"{name}{sign}" for name in names) for sign in "+-")
    return DiffPairs(plus, minus, conn=("gpio", 0), dir=direction)


#: A bundle of pairs to another board. Banks 2 and 3, which send, need 2.5 V.
LVDS = Resource(
    "lvds",
    0,
    Subsignal("tx_clk", _pairs("14", "o")),
    Subsignal("tx", _pairs("15 16 17 18 19", "o")),
    Subsignal("rx_clk", _pairs("12", "i")),
    Subsignal("rx", _pairs("8 9 10 11 13", "i")),
    Attrs(IO_TYPE="LVDS"),
)


def _board(size: str, platform: type[Any], limit: Limit) -> Board:
    return Board(
        title=f"Radiona ULX3S, LFE5U-{size}",
        platform=platform,
        program=("openFPGALoader", "-b", "ulx3s", "-m", "fabric.bit"),
        products=("fabric.bit",),
        packer=("nextpnr-ecp5", "ecppack"),
        resources=(LVDS,),
        lamps={"running": ("led", 0), "done": ("led", 1)},
        options=COMPACT,
        routers=ECP5_ROUTERS,
        placers=ECP5_PLACERS,
        limit=limit,
    )


BOARDS = {
    "ulx3s-25f": _board("25F", ULX3S_25F_Platform, Limit(side=9, measured="ulx3s-25f")),
    "ulx3s-85f": _board("85F", ULX3S_85F_Platform, Limit(side=14)),
}
