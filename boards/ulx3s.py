"""ULX3S by Radiona: ECP5 at 25 MHz; the serial line is on the USB plug US1.

The first two of its eight lamps show that a run is under way, or over. On the 25F, a 9x9 all-gather
of 8 bits takes nearly all tables; nextpnr's second router ends after some minutes, where its first
one had not after 20. 10x10 needs more block RAMs than there are. What the 85F holds is an estimate
from its block RAMs.
"""

from typing import Any

from amaranth_boards.ulx3s import ULX3S_25F_Platform, ULX3S_85F_Platform

from torusfabric.fpga.board import COMPACT, ECP5_PLACERS, ECP5_ROUTERS, Board, Limit


def _board(size: str, platform: type[Any], limit: Limit) -> Board:
    return Board(
        title=f"Radiona ULX3S, LFE5U-{size}",
        platform=platform,
        program=("openFPGALoader", "-b", "ulx3s", "-m", "fabric.bit"),
        products=("fabric.bit",),
        packer=("nextpnr-ecp5", "ecppack"),
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
