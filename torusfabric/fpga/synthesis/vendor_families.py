"""Families for which yosys maps, and only the tools of the vendor place and route.

Figures are those of cells, so that fabrics and forms can be compared; the vendor's own synthesis
finds others.
"""

from ...verilog.writer import LUT4
from .cost import Cost
from .family import Family, Recipe
from .logic_cells import alms

__all__ = ["VENDOR_FAMILIES"]

#: Cells of Xilinx since the sixth series. Memories are made of tables of 64 bits, two of which
#: share a read port where the word is written at another address.
_XILINX = {
    "LUT[1-6]": Cost(luts=1),
    "INV": Cost(luts=1),
    "FD[RSCP]E*": Cost(ffs=1),
    "CARRY4": Cost(carries=4),
    "CARRY8": Cost(carries=8),
    "MUXF[789]": Cost(muxes=1),
    "SRL*": Cost(luts=1, lutrams=1),
    "RAM32X1D*": Cost(luts=2, lutrams=2),
    "RAM64X1D*": Cost(luts=2, lutrams=2),
    "RAM128X1D*": Cost(luts=4, lutrams=4),
    "RAM256X1D*": Cost(luts=8, lutrams=8),
    "RAM32X1S*": Cost(luts=1, lutrams=1),
    "RAM64X1S*": Cost(luts=1, lutrams=1),
    "RAM128X1S*": Cost(luts=2, lutrams=2),
    "RAM256X1S*": Cost(luts=4, lutrams=4),
    "RAM512X1S*": Cost(luts=8, lutrams=8),
    "RAM32X2S*": Cost(luts=2, lutrams=2),
    "RAM32X16DR8": Cost(luts=8, lutrams=8),
    "RAM64X8SW": Cost(luts=8, lutrams=8),
    "RAM32M16*": Cost(luts=8, lutrams=8),
    "RAM64M8*": Cost(luts=8, lutrams=8),
    "RAM32M": Cost(luts=4, lutrams=4),
    "RAM64M": Cost(luts=4, lutrams=4),
    "RAMB18E*": Cost(brams=1),
    "RAMB36E*": Cost(brams=2),
    "URAM288*": Cost(urams=1),
    "DSP48E*": Cost(dsps=1),
    "[IO]BUF*": Cost(),
    "BUFG*": Cost(),
}


def _xilinx(family: str) -> Family:
    synth = f"synth_xilinx -family {family} -flatten"
    return Family(
        Recipe(f"{synth} -nowidelut"),
        Recipe(synth),
        None,
        (),
        _XILINX,
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
        None,
        (),
        {
            "MISTRAL_ALUT[2-6]": Cost(luts=1),
            "MISTRAL_NOT": Cost(luts=1),
            "MISTRAL_ALUT_ARITH": Cost(luts=1, carries=1),
            "MISTRAL_FF": Cost(ffs=1),
            "MISTRAL_MLAB": Cost(luts=1, lutrams=1),
            "MISTRAL_M10K": Cost(brams=1),
            "MISTRAL_MUL*": Cost(dsps=1),
            "MISTRAL_IB": Cost(),
            "MISTRAL_OB": Cost(),
            "MISTRAL_CLKBUF": Cost(),
        },
        no_pads=" -noiopad -noclkbuf",
        inputs=6,
        logic_cells=alms,
    ),
    "nexus": Family(
        Recipe("synth_nexus -nowidelut"),
        Recipe("synth_nexus"),
        None,
        (),
        {
            "LUT4": Cost(luts=1),
            "INV": Cost(luts=1),
            "WIDEFN9": Cost(luts=2, muxes=1),
            "CCU2": Cost(luts=2, carries=2),
            "FD1P3*": Cost(ffs=1),
            "DPR16X4": Cost(luts=6, lutrams=1),
            "PDP16K*": Cost(brams=1),
            "PDPSC16K*": Cost(brams=1),
            "DP16K*": Cost(brams=1),
            "SP16K*": Cost(brams=1),
            "*SC512K*": Cost(sprams=1),
            "MULT9X9*": Cost(dsps=1),
            "MULT18X18*": Cost(dsps=1),
            "MULT36X36*": Cost(dsps=4),
            "[IO]B": Cost(),
            "VHI": Cost(),
            "VLO": Cost(),
        },
        defines=(LUT4,),
        no_pads=" -noiopad",
    ),
    "gatemate": Family(
        Recipe("synth_gatemate -nomult -nomx8 -nomx4"),
        Recipe("synth_gatemate -nomult"),
        None,
        (),
        {
            "CC_LUT[1-4]": Cost(luts=1),
            "CC_MX2": Cost(luts=1),
            "CC_MX4": Cost(luts=2, muxes=1),
            "CC_MX8": Cost(luts=4, muxes=1),
            "CC_ADDF": Cost(luts=1, carries=1),
            "CC_DFF": Cost(ffs=1),
            "CC_BRAM_20K": Cost(brams=1),
            "CC_BRAM_40K": Cost(brams=2),
            "CC_[IO]BUF": Cost(),
            "CC_BUFG": Cost(),
        },
        defines=(LUT4,),
        no_pads=" -noiopad -noclkbuf",
    ),
    "efinix": Family(
        _EFINIX,
        _EFINIX,
        None,
        (),
        {
            "EFX_LUT4": Cost(luts=1),
            "EFX_ADD": Cost(luts=1, carries=1),
            "EFX_FF": Cost(ffs=1),
            "EFX_RAM_5K": Cost(brams=1),
            "EFX_GBUFCE": Cost(),
        },
        defines=(LUT4,),
    ),
}
