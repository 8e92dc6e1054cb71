"""Colorlight 5A-75B r7.0, an LED panel driver: ECP5 at 25 MHz.

All pins of the panel connectors are outputs. The serial line therefore needs an adapter of 3.3 V on
J19: the board sends on DATA_LED-, the pin of its LED, and receives on KEY+, the pin of its button.
No LED is left for a run. The board is loaded with a JTAG adapter of type FT232.
"""

from amaranth_boards.colorlight_5a75b_r7_0 import Colorlight_5A75B_R70Platform

from torusfabric.fpga.board import COMPACT, ECP5_PLACERS, ECP5_ROUTERS, Board, Limit

BOARDS = {
    "colorlight-5a75b": Board(
        title="Colorlight 5A-75B r7.0, LFE5U-25F",
        platform=Colorlight_5A75B_R70Platform,
        program=("openFPGALoader", "-c", "ft232", "-m", "fabric.bit"),
        products=("fabric.bit",),
        packer=("nextpnr-ecp5", "ecppack"),
        pins="an adapter of 3.3 V on J19: KEY+ receives, DATA_LED- sends",
        options=COMPACT,
        routers=ECP5_ROUTERS,
        placers=ECP5_PLACERS,
        limit=Limit(side=9, measured="ulx3s-25f"),
    ),
}
