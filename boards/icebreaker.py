"""iCEBreaker by 1BitSquared: iCE40UP5K at 12 MHz; the serial line is on its USB plug.

The red LED is lit during a run, the green one after it.
"""

from amaranth_boards.icebreaker import ICEBreakerPlatform

from torusfabric.fpga.board import Board, Limit

BOARDS = {
    "icebreaker": Board(
        title="1BitSquared iCEBreaker, iCE40UP5K",
        platform=ICEBreakerPlatform,
        program=("iceprog", "fabric.bin"),
        products=("fabric.bin",),
        packer=("nextpnr-ice40", "icepack"),
        port="/dev/ttyUSB1",
        lamps={"running": ("led_r", 0), "done": ("led_g", 0)},
        limit=Limit(side=3, measured="icebreaker"),
        minutes=15,
    ),
}
