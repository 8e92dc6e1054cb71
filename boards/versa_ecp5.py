"""ECP5 Versa board by Lattice: LFE5UM-45F at 100 MHz; the serial line is on its USB plug.

The first three of its lamps tell that something runs, a pass and a failure.
"""

from amaranth_boards.versa_ecp5 import VersaECP5Platform

from torusfabric.board import COMPACT, Board, Limit

BOARDS = {
    "versa-ecp5": Board(
        title="Lattice ECP5 Versa, LFE5UM-45F",
        platform=VersaECP5Platform,
        program=(
            "openocd",
            "-f",
            "selftest-openocd.cfg",
            "-c",
            "transport select jtag; init; svf -quiet selftest.svf; exit",
        ),
        products=("selftest.bit", "selftest.svf", "selftest-openocd.cfg"),
        packer=("nextpnr-ecp5", "ecppack"),
        lamps={"running": ("led", 0), "passed": ("led", 1), "failed": ("led", 2)},
        options=COMPACT,
        limit=Limit(side=10),
    ),
}
