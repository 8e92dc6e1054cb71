"""Families of devices: their cells, and the tools that map to them.

A family is one entry of `FAMILIES`.
"""

import enum
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...toolchain.hints import no_such
from .cost import Cost

__all__ = ["FAMILIES", "Family", "Mapping", "find_mapping"]


class Mapping(enum.Enum):
    """What the mapping to cells is for: few tables, or wide multiplexers where there are any."""

    COMPACT = "compact"
    FAST = "fast"


def find_mapping(name: str | Mapping) -> Mapping:
    """The mapping of a name.

    Raises
    ------
    InputError
        If there is none.
    """
    try:
        return Mapping(name)
    except ValueError:
        raise no_such("Mapping", name, [mapping.value for mapping in Mapping]) from None


@dataclass(frozen=True)
class Family:
    """Devices with the same cells and the same tools.

    Parameters
    ----------
    synth : str
        The yosys command for few cells.
    fast : str
        The one for speed.
    pnr : str
        The place-and-route tool.
    pnr_args : tuple of str
        Its arguments: no pin constraints are needed, and slow paths are placed with care.
    cells : dict
        Pattern of cell types -> what one costs, first match; other cells are unknown.
    placers : tuple of str
        The placers of that tool, where there is a choice: each is tried if the one before does not
        come to an end.
    no_pads : str
        What to add to the yosys command for a module whose ports are not pins.
    """

    synth: str
    fast: str
    pnr: str
    pnr_args: tuple[str, ...]
    cells: dict[str, Cost]
    placers: tuple[str, ...] = ()
    no_pads: str = ""

    def price(self, kind: str) -> Cost | None:
        """What a cell of a type costs, or None if that is not known."""
        found = (price for pattern, price in self.cells.items() if fnmatchcase(kind, pattern))
        return next(found, None)


#: The eight cells of a tile of iCE40 have one clock enable: flip-flops that do not fill a tile with
#: theirs hold their value by their tables instead, and may be placed anywhere.
SYNTH_ICE40 = "synth_ice40 -dffe_min_ce_use 9"

#: iCE40: with wide functions absent, the compact mapping is the only one.
#: ECP5: PFUMX and L6MUX21 make wide functions of two and four tables; mapped to them, selections
#: take more tables and fewer levels. So do MUX2_LUT5 to 8 of Gowin. What nextpnr's static placer
#: places of ours has wires a fifth shorter, and clocks a tenth faster, than that of its default.
FAMILIES = {
    "ice40": Family(
        SYNTH_ICE40,
        SYNTH_ICE40,
        "nextpnr-ice40",
        ("--pcf-allow-unconstrained", "--opt-timing"),
        {
            "SB_LUT4": Cost(luts=1),
            "SB_DFF*": Cost(ffs=1),
            "SB_CARRY": Cost(carries=1),
            "SB_RAM40_4K*": Cost(brams=1),
            "SB_SPRAM256KA": Cost(sprams=1),
            "SB_MAC16": Cost(dsps=1),
            "SB_IO": Cost(),
            "SB_GB*": Cost(),
        },
    ),
    "ecp5": Family(
        "synth_ecp5 -nowidelut",
        "synth_ecp5",
        "nextpnr-ecp5",
        ("--lpf-allow-unconstrained",),
        {
            "LUT4": Cost(luts=1),
            "TRELLIS_FF": Cost(ffs=1),
            "CCU2C": Cost(luts=2, carries=2),
            "TRELLIS_DPR16X4": Cost(luts=6, lutrams=1),
            "PFUMX": Cost(muxes=1),
            "L6MUX21": Cost(muxes=1),
            "DP16KD": Cost(brams=1),
            "PDPW16KD": Cost(brams=1),
            "MULT18X18D": Cost(dsps=1),
            "MULT9X9D": Cost(dsps=1),
            "TRELLIS_IO": Cost(),
            "GSR": Cost(),
        },
        placers=("static", "heap"),
    ),
    "gowin": Family(
        "synth_gowin -nowidelut",
        "synth_gowin",
        "nextpnr-himbaechel-gowin",
        (),
        {
            "LUT[1-4]": Cost(luts=1),
            "DFF*": Cost(ffs=1),
            "ALU": Cost(luts=1, carries=1),
            "RAM16SDP4": Cost(luts=8, lutrams=1),
            "MUX2_LUT[5-8]": Cost(muxes=1),
            "SPX9": Cost(brams=1),
            "SDPX9B": Cost(brams=1),
            "DPX9B": Cost(brams=1),
            "SP": Cost(brams=1),
            "SDPB": Cost(brams=1),
            "DPB": Cost(brams=1),
            "pROM*": Cost(brams=1),
            "MULT9X9": Cost(dsps=1),
            "MULT18X18": Cost(dsps=1),
            "MULT36X36": Cost(dsps=4),
            "[IO]BUF": Cost(),
            "GND": Cost(),
            "VCC": Cost(),
            "GSR": Cost(),
        },
        no_pads=" -noiopads",
    ),
}
