"""TinyFPGA BX: iCE40LP8K at 16 MHz.

The USB plug is wired to the device itself. The serial line therefore needs an adapter of 3.3 V: pin
1 of the board receives, pin 2 sends. The only LED is lit after a run.
"""

from amaranth.build import Attrs
from amaranth_boards.resources import UARTResource
from amaranth_boards.tinyfpga_bx import TinyFPGABXPlatform

from torusfabric.fpga.board import Board, Limit

BOARDS = {
    "tinyfpga-bx": Board(
        title="TinyFPGA BX, iCE40LP8K",
        platform=TinyFPGABXPlatform,
        program=("tinyprog", "-p", "fabric.bin"),
        products=("fabric.bin",),
        packer=("nextpnr-ice40", "icepack"),
        pins="an adapter of 3.3 V: pin 1 receives, pin 2 sends",
        lamps={"done": ("led", 0)},
        resources=(
            UARTResource(
                0,
                rx="1",
                tx="2",
                conn=("gpio", 0),
                attrs=Attrs(IO_STANDARD="SB_LVCMOS", PULLUP=1),
            ),
        ),
        limit=Limit(side=4, measured="tinyfpga-bx"),
        minutes=15,
    ),
}
