"""iCEBreaker by 1BitSquared: iCE40UP5K at 12 MHz; the serial line is on its USB plug.

Its red and green lamps show a failure and a pass.
"""

from amaranth_boards.icebreaker import ICEBreakerPlatform

from torusfabric.fpga.board import Board, Limit

BOARDS = {
    "icebreaker": Board(
        title="1BitSquared iCEBreaker, iCE40UP5K",
        platform=ICEBreakerPlatform,
        program=("iceprog", "selftest.bin"),
        products=("selftest.bin",),
        packer=("nextpnr-ice40", "icepack"),
        port="/dev/ttyUSB1",
        lamps={"passed": ("led_g", 0), "failed": ("led_r", 0)},
        limit=Limit(side=3, measured="icebreaker"),
        minutes=15,
    ),
}
