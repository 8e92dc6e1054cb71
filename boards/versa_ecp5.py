"""ECP5 Versa board by Lattice: LFE5UM-45F at 100 MHz; the serial line is on its USB plug.

The first LED is lit during a run, the second one after it. The limit is an estimate from block
RAMs: 10x10 was placed and routed at 117 MHz on an ECPIX-5, whose device has the same size but is
another type.
"""

from amaranth.build import DiffPairs, Resource, Subsignal
from amaranth_boards.versa_ecp5 import VersaECP5Platform

from torusfabric.fpga.board import COMPACT, Board, Limit

#: First transceiver of the PCI Express plug: the pair that sends, and the pair that receives.
SERDES = Resource(
    "serdes",
    0,
    Subsignal("tx", DiffPairs("W4", "W5", dir="o")),
    Subsignal("rx", DiffPairs("Y5", "Y6", dir="i")),
)

BOARDS = {
    "versa-ecp5": Board(
        title="Lattice ECP5 Versa, LFE5UM-45F",
        platform=VersaECP5Platform,
        program=(
            "openocd",
            "-f",
            "fabric-openocd.cfg",
            "-c",
            "transport select jtag; init; svf -quiet fabric.svf; exit",
        ),
        products=("fabric.bit", "fabric.svf", "fabric-openocd.cfg"),
        packer=("nextpnr-ecp5", "ecppack"),
        port="/dev/ttyUSB1",
        resources=(SERDES,),
        transceivers=((0, 0),),
        lamps={"running": ("led", 0), "done": ("led", 1)},
        options=COMPACT,
        routers=("router1",),
        limit=Limit(side=10),
    ),
}
