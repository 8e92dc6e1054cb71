"""iCEstick by Lattice: iCE40HX1K at 12 MHz; the serial line is on its USB plug.

The first three of its five lamps show that something runs, a pass and a failure. With 1280 logic
cells it holds the smallest fabrics only.
"""

from amaranth_boards.icestick import ICEStickPlatform

from torusfabric.fpga.board import Board, Limit

BOARDS = {
    "icestick": Board(
        title="Lattice iCEstick, iCE40HX1K",
        platform=ICEStickPlatform,
        program=("iceprog", "selftest.bin"),
        products=("selftest.bin",),
        packer=("nextpnr-ice40", "icepack"),
        port="/dev/ttyUSB1",
        lamps={"running": ("led", 0), "passed": ("led", 1), "failed": ("led", 2)},
        limit=Limit(side=2, measured="icestick", width=3),
        minutes=15,
    ),
}
