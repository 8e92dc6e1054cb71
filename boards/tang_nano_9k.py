"""Tang Nano 9K by Sipeed: GW1NR-9C at 27 MHz; the serial line is on its USB plug.

The first LED is lit during a run, the second one after it.
"""

from amaranth_boards.tang_nano_9k import TangNano9kPlatform

from torusfabric.fpga.board import COMPACT, Board, Limit

BOARDS = {
    "tang-nano-9k": Board(
        title="Sipeed Tang Nano 9K, GW1NR-9C",
        platform=TangNano9kPlatform,
        program=("openFPGALoader", "-b", "tangnano9k", "fabric.fs"),
        products=("fabric.fs",),
        packer=("nextpnr-himbaechel-gowin", "gowin_pack"),
        port="/dev/ttyUSB1",
        lamps={"running": ("led", 0), "done": ("led", 1)},
        options=COMPACT,
        limit=Limit(side=5, measured="tang-nano-9k"),
        minutes=15,
    ),
}
