"""ECPIX-5 by LambdaConcept: ECP5-5G at 100 MHz; the serial line is on its USB plug.

The first of its coloured LEDs is blue during a run and green after it. Why the first router of
nextpnr: on the 45F it brought a 10x10 all-gather of 8 bits to 117 MHz, the second router only to
95. 11x11 needs more block RAMs than the 45F has. The limit of the 85F is an estimate from its block
RAMs; its clock may set a lower limit.
"""

from typing import Any

from amaranth.build import DiffPairs, Resource, Subsignal
from amaranth_boards.ecpix5 import ECPIX545Platform, ECPIX585Platform

from torusfabric.fpga.board import COMPACT, Board, Limit

#: Transceiver of the SATA plug: the pair that sends, and the pair that receives.
SERDES = Resource(
    "serdes",
    0,
    Subsignal("tx", DiffPairs("AD16", "AD17", dir="o")),
    Subsignal("rx", DiffPairs("AF15", "AF16", dir="i")),
)


def _board(size: str, platform: type[Any], limit: Limit) -> Board:
    return Board(
        title=f"LambdaConcept ECPIX-5, LFE5UM5G-{size}",
        platform=platform,
        program=("openFPGALoader", "-c", "ft2232", "-m", "fabric.bit"),
        products=("fabric.bit",),
        packer=("nextpnr-ecp5", "ecppack"),
        port="/dev/ttyUSB1",
        resources=(SERDES,),
        transceivers=((1, 0),),
        lamps={"running": ("rgb_led", 0, "b"), "done": ("rgb_led", 0, "g")},
        options=COMPACT,
        routers=("router1",),
        limit=limit,
    )


BOARDS = {
    "ecpix5-45f": _board("45F", ECPIX545Platform, Limit(side=10, measured="ecpix5-45f")),
    "ecpix5-85f": _board("85F", ECPIX585Platform, Limit(side=14)),
}
