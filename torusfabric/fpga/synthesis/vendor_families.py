"""Families for which yosys maps, and only the tools of the vendor place and route.

Figures are those of cells, so that fabrics and forms can be compared; the vendor's own synthesis
finds others.
"""

from ...verilog.lut6 import LUT6
from ...verilog.writer import LUT4
from .cost import Cost
from .family import Family, Recipe
from .logic_cells import alms

__all__ = ["VENDOR_FAMILIES"]

#: Cells of Xilinx since the sixth series. Memories are made of tables of 64 bits, two of which
#: share a read port where the word is written at another address.
_XILINX = {
    Cost(luts=1): "LUT[1-6] INV",
    Cost(ffs=1): "FD[RSCP]E*",
    Cost(carries=4): "CARRY4",
    Cost(carries=8): "CARRY8",
    Cost(muxes=1): "MUXF[789]",
    Cost(luts=1, lutrams=1): "SRL* RAM32X1S* RAM64X1S*",
    Cost(luts=2, lutrams=2): "RAM32X1D* RAM64X1D* RAM128X1S* RAM32X2S*",
    Cost(luts=4, lutrams=4): "RAM128X1D* RAM256X1S* RAM32M RAM64M",
    Cost(luts=8, lutrams=8): "RAM256X1D* RAM512X1S* RAM32X16DR8 RAM64X8SW RAM32M16* RAM64M8*",
    Cost(brams=1): "RAMB18E*",
    Cost(brams=2): "RAMB36E*",
    Cost(urams=1): "URAM288*",
    Cost(dsps=1): "DSP48E*",
    Cost(): "[IO]BUF* BUFG*",
}


def _xilinx(family: str) -> Family:
    synth = f"synth_xilinx -family {family} -flatten"
    return Family(
        Recipe(f"{synth} -nowidelut"),
        Recipe(synth),
        _XILINX,
        defines=(LUT6,),
        no_pads=" -noiopad -noclkbuf",
        inputs=6,
    )


_CYCLONE_V = Recipe("synth_intel_alm -family cyclonev")
_EFINIX = Recipe("synth_efinix")

#: Each by the name that targets begin with.
VENDOR_FAMILIES = {
    "xilinx-7": _xilinx("xc7"),
    "xilinx-us": _xilinx("xcup"),
    "cyclone-v": Family(
        _CYCLONE_V,
        _CYCLONE_V,
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
        no_pads=" -noiopad -noclkbuf",
        inputs=6,
        logic_cells=alms,
    ),
    "nexus": Family(
        Recipe("synth_nexus -nowidelut"),
        Recipe("synth_nexus"),
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
        defines=(LUT4,),
        no_pads=" -noiopad",
    ),
    "gatemate": Family(
        Recipe("synth_gatemate -nomult -nomx8 -nomx4"),
        Recipe("synth_gatemate -nomult"),
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
        no_pads=" -noiopad -noclkbuf",
    ),
    "efinix": Family(
        _EFINIX,
        _EFINIX,
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
