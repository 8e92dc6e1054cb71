"""iCE40-HX8K breakout board by Lattice: iCE40HX8K at 12 MHz; the serial line is on its USB plug.

The first LED is lit during a run, the second one after it. The bitstream is loaded into the device
itself (jumpers J6 as for `iceprog -S`) and is lost when the power goes.
"""

from amaranth_boards.ice40_hx8k_b_evn import ICE40HX8KBEVNPlatform

from torusfabric.fpga.board import Board, Limit

BOARDS = {
    "ice40-hx8k": Board(
        title="Lattice iCE40-HX8K breakout board, iCE40HX8K",
        platform=ICE40HX8KBEVNPlatform,
        program=("iceprog", "-S", "fabric.bin"),
        products=("fabric.bin",),
        packer=("nextpnr-ice40", "icepack"),
        port="/dev/ttyUSB1",
        lamps={"running": ("led", 0), "done": ("led", 1)},
        limit=Limit(side=4, measured="ice40-hx8k"),
        minutes=15,
    ),
}
