"""iCEstick by Lattice: iCE40HX1K at 12 MHz; the serial line is on its USB plug.

The first of its five LEDs is lit during a run, the second one after it. With 1280 logic cells the
board holds only the smallest fabrics.
"""

from amaranth_boards.icestick import ICEStickPlatform

from torusfabric.fpga.board import Board, Limit

BOARDS = {
    "icestick": Board(
        title="Lattice iCEstick, iCE40HX1K",
        platform=ICEStickPlatform,
        program=("iceprog", "fabric.bin"),
        products=("fabric.bin",),
        packer=("nextpnr-ice40", "icepack"),
        port="/dev/ttyUSB1",
        lamps={"running": ("led", 0), "done": ("led", 1)},
        limit=Limit(side=2, measured="icestick", width=3),
        minutes=15,
    ),
}
