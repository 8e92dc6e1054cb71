"""All device families, with their cells and tools.

The users are `Target` and the synthesis flow. A family is one entry of `FAMILIES`. For some
families only the vendor has a place-and-route tool. Reports for these have the resources that yosys
counts: good for comparing fabrics, but the vendor's own synthesis gives other numbers.
"""

from ...verilog.ecp5 import ECP5
from ...verilog.lut6 import LUT6
from ...verilog.writer import LUT4
from .family import Cost, Family, count_alms, count_dual_luts, count_ice40_cells
from .nextpnr import ECP5_PLACERS

__all__ = ["FAMILIES"]

#: Yosys commands that replace the clock enables of memory words in flip-flops by LUTs. Why: an
#: enable is decoded and then reaches all flip-flops of the word over long wires. A LUT that keeps
#: the old value needs only one more input for the decoder, and fits into the cell of its flip-flop.
WORDS_WITHOUT_ENABLES = ("dffunmap -ce-only w:*[*] %ci1:+[Q]", "simplemap")

#: Cells of Xilinx devices since series 6. LUT memories consist of LUTs of 64 bits. They take more
#: than one LUT a bit if words are written at another address than they are read.
_XILINX = {
    Cost(luts=1): "LUT[1-6] INV",
    Cost(ffs=1): "FD[RSCP]E*",
    Cost(carries=4): "CARRY4",
    Cost(carries=8): "CARRY8",
    Cost(muxes=1): "MUXF[789]",
    Cost(luts=1, lutrams=1, cells=1): "SRL* RAM32X1S* RAM64X1S*",
    Cost(luts=2, lutrams=2, cells=2): "RAM32X1D* RAM64X1D* RAM128X1S* RAM32X2S*",
    Cost(luts=4, lutrams=4, cells=4): "RAM128X1D* RAM256X1S* RAM32M RAM64M",
    Cost(
        luts=8, lutrams=8, cells=8
    ): "RAM256X1D* RAM512X1S* RAM32X16DR8 RAM64X8SW RAM32M16* RAM64M8*",
    Cost(brams=1): "RAMB18E*",
    Cost(brams=2): "RAMB36E*",
    Cost(urams=1): "URAM288*",
    Cost(dsps=1): "DSP48E*",
    Cost(): "[IO]BUF* BUFG*",
}


def _xilinx_family(family: str) -> Family:
    return Family(
        f"synth_xilinx -family {family} -flatten -noiopad -noclkbuf",
        _XILINX,
        compact=" -nowidelut",
        # This stage reads a long list of block RAMs, which takes half of the time for one router.
        memory_stage=("map_memory", "map_ffram"),
        defines=(LUT6,),
        inputs=6,
        module_costs=count_dual_luts,
    )


#: Family by the name with which its targets begin.
FAMILIES = {
    # iCE40 has no wide multiplexers, so that compact is its only mapping. The default weight of
    # slow paths in its placement is 10.
    "ice40": Family(
        # The eight cells of a tile share one clock enable. So an enable of eight flip-flops or
        # fewer is moved into LUTs, and these flip-flops can be placed anywhere.
        "synth_ice40 -dffe_min_ce_use 9",
        {
            Cost(luts=1): "SB_LUT4",
            Cost(ffs=1): "SB_DFF*",
            Cost(carries=1): "SB_CARRY",
            Cost(brams=1): "SB_RAM40_4K*",
            Cost(sprams=1): "SB_SPRAM256KA",
            Cost(dsps=1): "SB_MAC16",
            Cost(): "SB_IO SB_GB*",
        },
        before_registers=WORDS_WITHOUT_ENABLES,
        pnr="nextpnr-ice40",
        pnr_args=("--pcf-allow-unconstrained", "--opt-timing", "--placer-heap-timingweight", "20"),
        defines=(LUT4,),
        module_costs=count_ice40_cells,
    ),
    # PFUMX and L6MUX21 make wide multiplexers of two and four LUTs; selections mapped to them take
    # more LUTs and fewer levels. Multiplexers whose Verilog has a body of ECP5 cells use these
    # cells in both mappings. Measured on our fabrics, nextpnr's static placer gives wires a fifth
    # shorter, and clocks a tenth faster, than its default placer.
    "ecp5": Family(
        "synth_ecp5",
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
        compact=" -nowidelut",
        pnr="nextpnr-ecp5",
        pnr_args=("--lpf-allow-unconstrained",),
        placers=ECP5_PLACERS,
        defines=(LUT4, ECP5),
        block_shapes=((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
        lut_memory=(6, 16, 4),
    ),
    # MUX2_LUT5 to MUX2_LUT8 are wide multiplexers, with the effect of those of ECP5.
    "gowin": Family(
        "synth_gowin -noiopads",
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
        compact=" -nowidelut",
        pnr="nextpnr-himbaechel-gowin",
        defines=(LUT4,),
        pads="iopadmap -bits -inpad IBUF O:I -outpad OBUF I:O",
    ),
    "xilinx-7": _xilinx_family("xc7"),
    "xilinx-us": _xilinx_family("xcup"),
    "cyclone-v": Family(
        "synth_intel_alm -family cyclonev -noiopad -noclkbuf",
        {
            Cost(luts=1): "MISTRAL_ALUT[2-6] MISTRAL_NOT",
            Cost(luts=1, carries=1): "MISTRAL_ALUT_ARITH",
            Cost(ffs=1): "MISTRAL_FF",
            Cost(luts=1, lutrams=1): "MISTRAL_MLAB",
            Cost(brams=1): "MISTRAL_M10K",
            Cost(dsps=1): "MISTRAL_MUL*",
            Cost(): "MISTRAL_IB MISTRAL_OB MISTRAL_CLKBUF",
        },
        defines=(LUT6,),
        inputs=6,
        module_costs=count_alms,
    ),
    "nexus": Family(
        "synth_nexus -noiopad",
        {
            Cost(luts=1): "LUT4 INV",
            Cost(luts=2, muxes=1): "WIDEFN9",
            Cost(luts=2, carries=2): "CCU2",
            Cost(ffs=1): "FD1P3*",
            Cost(luts=6, lutrams=1): "DPR16X4",
            Cost(brams=1): "PDP16K* PDPSC16K* DP16K* SP16K*",
            Cost(sprams=1): "*SC512K*",
            Cost(dsps=1): "MULT9X9* MULT18X18*",
            Cost(dsps=4): "MULT36X36*",
            Cost(): "[IO]B VHI VLO",
        },
        compact=" -nowidelut",
        defines=(LUT4,),
    ),
    "gatemate": Family(
        "synth_gatemate -nomult -noiopad -noclkbuf",
        {
            Cost(luts=1): "CC_LUT[1-4] CC_MX2",
            Cost(luts=2, muxes=1): "CC_MX4",
            Cost(luts=4, muxes=1): "CC_MX8",
            Cost(luts=1, carries=1): "CC_ADDF",
            Cost(ffs=1): "CC_DFF",
            Cost(brams=1): "CC_BRAM_20K",
            Cost(brams=2): "CC_BRAM_40K",
            Cost(): "CC_[IO]BUF CC_BUFG",
        },
        defines=(LUT4,),
    ),
    "efinix": Family(
        "synth_efinix",
        {
            Cost(luts=1): "EFX_LUT4",
            Cost(luts=1, carries=1): "EFX_ADD",
            Cost(ffs=1): "EFX_FF",
            Cost(brams=1): "EFX_RAM_5K",
            Cost(): "EFX_GBUFCE",
        },
        defines=(LUT4,),
    ),
}
