"""Families of devices: their cells, and the tools that map to them.

A family is one entry of `FAMILIES`, or of `VENDOR_FAMILIES` where nothing here places and routes.
"""

from ...verilog.ecp5 import ECP5
from ...verilog.writer import LUT4
from .cost import Cost
from .family import Family, Recipe
from .logic_cells import ice40_cells
from .placers import ECP5_PLACERS
from .vendor_families import VENDOR_FAMILIES

__all__ = ["FAMILIES"]

#: The eight cells of a tile of iCE40 have one clock enable: flip-flops that do not fill a tile with
#: theirs hold their value by their tables instead, and may be placed anywhere.
SYNTH_ICE40 = "synth_ice40 -dffe_min_ce_use 9"

#: An enable of a word of a memory that is made of flip-flops is decoded, and then has a long way to
#: all of them. So words keep their values by tables, for which a decoder is one input more; these
#: are in the cells of the flip-flops, which have room for them.
WORDS_WITHOUT_ENABLES = ("dffunmap -ce-only w:*[*] %ci1:+[Q]", "simplemap")

RECIPE_ICE40 = Recipe(SYNTH_ICE40, "map_ffs", WORDS_WITHOUT_ENABLES)

#: iCE40: with wide functions absent, the compact mapping is the only one. The default weight of
#: slow paths in its placement is 10.
#: ECP5: PFUMX and L6MUX21 make wide functions of two and four tables; mapped to them, selections
#: take more tables and fewer levels. So do MUX2_LUT5 to 8 of Gowin. Multiplexers for which the text
#: has a form of these cells are of them in either mapping. What nextpnr's static placer places of
#: ours has wires a fifth shorter, and clocks a tenth faster, than that of its default.
FAMILIES = {
    "ice40": Family(
        RECIPE_ICE40,
        RECIPE_ICE40,
        {
            Cost(luts=1): "SB_LUT4",
            Cost(ffs=1): "SB_DFF*",
            Cost(carries=1): "SB_CARRY",
            Cost(brams=1): "SB_RAM40_4K*",
            Cost(sprams=1): "SB_SPRAM256KA",
            Cost(dsps=1): "SB_MAC16",
            Cost(): "SB_IO SB_GB*",
        },
        pnr="nextpnr-ice40",
        pnr_args=("--pcf-allow-unconstrained", "--opt-timing", "--placer-heap-timingweight", "20"),
        defines=(LUT4,),
        logic_cells=ice40_cells,
    ),
    "ecp5": Family(
        Recipe("synth_ecp5 -nowidelut"),
        Recipe("synth_ecp5"),
        {
            Cost(luts=1): "LUT4",
            Cost(ffs=1): "TRELLIS_FF",
            Cost(luts=2, carries=2): "CCU2C",
            Cost(luts=6, lutrams=1): "TRELLIS_DPR16X4",
            Cost(muxes=1): "PFUMX L6MUX21",
            Cost(brams=1): "DP16KD PDPW16KD",
            Cost(dsps=1): "MULT18X18D MULT9X9D",
            Cost(): "TRELLIS_IO GSR",
        },
        pnr="nextpnr-ecp5",
        pnr_args=("--lpf-allow-unconstrained",),
        placers=ECP5_PLACERS,
        defines=(LUT4, ECP5),
        block_shapes=((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
    ),
    "gowin": Family(
        Recipe("synth_gowin -nowidelut"),
        Recipe("synth_gowin"),
        {
            Cost(luts=1): "LUT[1-4]",
            Cost(ffs=1): "DFF*",
            Cost(luts=1, carries=1): "ALU",
            Cost(luts=8, lutrams=1): "RAM16SDP4",
            Cost(muxes=1): "MUX2_LUT[5-8]",
            Cost(brams=1): "SPX9 SDPX9B DPX9B SP SDPB DPB pROM*",
            Cost(dsps=1): "MULT9X9 MULT18X18",
            Cost(dsps=4): "MULT36X36",
            Cost(): "[IO]BUF GND VCC GSR",
        },
        pnr="nextpnr-himbaechel-gowin",
        defines=(LUT4,),
        no_pads=" -noiopads",
    ),
} | VENDOR_FAMILIES
