"""OrangeCrab r0.2: ECP5 at 48 MHz.

The USB plug is wired to the device itself. The serial line therefore needs an adapter of 3.3 V: pin
0 of the board (RX) receives, pin 1 (TX) sends. The LED is blue during a run and green after it. To
load a bitstream, hold the button while you plug the board in.
"""

from typing import Any

from amaranth.build import Attrs
from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_25FPlatform, OrangeCrabR0_2_85FPlatform
from amaranth_boards.resources import UARTResource

from torusfabric.fpga.board import COMPACT, ECP5_PLACERS, ECP5_ROUTERS, Board, Limit


def _board(size: str, platform: type[Any], limit: Limit) -> Board:
    class WithoutSuffix(platform):  # type: ignore[misc]
        """Platform without the check of the file suffix, whose tool dfu-util does not need."""

        @property
        def command_templates(self) -> list[str]:
            """Commands of the platform, without the one for the suffix."""
            return [text for text in super().command_templates if "dfu-suffix" not in text]

    return Board(
        title=f"OrangeCrab r0.2, LFE5U-{size}",
        platform=WithoutSuffix,
        program=("dfu-util", "-d", "1209:5af0", "-a", "0", "-D", "fabric.bit"),
        products=("fabric.bit",),
        packer=("nextpnr-ecp5", "ecppack"),
        pins="an adapter of 3.3 V: pin 0 (RX) receives, pin 1 (TX) sends",
        lamps={"running": ("rgb_led", 0, "b"), "done": ("rgb_led", 0, "g")},
        resources=(
            UARTResource(
                0,
                rx="0",
                tx="1",
                conn=("io", 0),
                attrs=Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP"),
            ),
        ),
        options=COMPACT,
        routers=ECP5_ROUTERS,
        placers=ECP5_PLACERS,
        limit=limit,
    )


BOARDS = {
    "orangecrab-25f": _board(
        "25F", OrangeCrabR0_2_25FPlatform, Limit(side=9, measured="ulx3s-25f")
    ),
    "orangecrab-85f": _board("85F", OrangeCrabR0_2_85FPlatform, Limit(side=14)),
}
