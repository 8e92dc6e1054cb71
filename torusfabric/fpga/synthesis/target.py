"""Devices a fabric can be synthesized for, and what a mapped netlist costs on them.

Adding a device of a known family is one line of `TARGETS`; a family is one entry of `FAMILIES`.
Capacities are those nextpnr reports for the device.
"""

import enum
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

from ...errors import WorkFailed
from ...toolchain.hints import no_such

__all__ = ["FAMILIES", "PINS", "TARGETS", "Cost", "Family", "Mapping", "Target",
           "find_mapping", "find_target", "measure"]  # fmt: skip


class Mapping(enum.Enum):
    """What the mapping to cells is for: few tables, or wide multiplexers where there are any."""

    COMPACT = "compact"
    FAST = "fast"


@dataclass(frozen=True)
class Cost:
    """What a netlist uses of a device.

    Parameters
    ----------
    luts : int
        Four-input tables, with those used as adders (two for each ECP5 CCU2C) or as memory (six
        for each ECP5 TRELLIS_DPR16X4: four hold 16 x 4 bits, two give their place to its write
        port; eight for each Gowin RAM16SDP4, beside which the other four of its block cannot be
        used).
    ffs, brams : int
        Flip-flops and block RAMs.
    lutrams : int
        Memories of 16 x 4 bits made of tables.
    carries, muxes : int
        Bits of carry chains and wide multiplexers: both come free with their tables.
    dsps, sprams : int
        Multipliers and single-port RAMs.
    cells : int
        iCE40 only: logic cells of one table and one flip-flop each; a flip-flop shares a cell only
        with the table that feeds it alone, a carry bit only with the table on the same inputs.
    """

    luts: int = 0
    ffs: int = 0
    brams: int = 0
    lutrams: int = 0
    carries: int = 0
    muxes: int = 0
    dsps: int = 0
    sprams: int = 0
    cells: int = 0

    def plus(self, other: "Cost", times: int = 1) -> "Cost":
        """Sum of costs, the other one a number of times."""
        return Cost(*(getattr(self, f.name) + times * getattr(other, f.name) for f in fields(self)))

    def to_json(self) -> dict[str, int]:
        """As a plain dict."""
        return asdict(self)


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
        Its arguments for a design without pin constraints, and for a fast one.
    cells : dict
        Pattern of cell types -> what one costs, first match; other cells are unknown.
    no_pads : str
        What to add to the yosys command for a module whose ports are not pins.
    """

    synth: str
    fast: str
    pnr: str
    pnr_args: tuple[str, ...]
    cells: dict[str, Cost]
    no_pads: str = ""

    def price(self, kind: str) -> Cost | None:
        """What a cell of a type costs, or None if that is not known."""
        found = (price for pattern, price in self.cells.items() if fnmatchcase(kind, pattern))
        return next(found, None)


#: iCE40: with wide functions absent, the compact mapping is the only one. The eight cells of a tile
#: have one clock enable: flip-flops that do not fill a tile with theirs hold their value by their
#: tables instead, and may be placed anywhere.
#: ECP5: PFUMX and L6MUX21 make wide functions of two and four tables; mapped to them, selections
#: take more tables and fewer levels. So do MUX2_LUT5 to 8 of Gowin.
FAMILIES = {
    "ice40": Family(
        "synth_ice40 -dffe_min_ce_use 9",
        "synth_ice40 -dffe_min_ce_use 9",
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


#: The file of pin constraints.
PINS = "pins.cst"


@dataclass(frozen=True)
class Target:
    """A device.

    Parameters
    ----------
    name : str
        What the user calls it.
    family : str
        Of `FAMILIES`.
    device : tuple of str
        Arguments of the place-and-route tool for the device and its package.
    capacity : dict
        Name of a field of `Cost` -> how many there are.
    pins : str
        Where the place-and-route tool needs the pins of the harness: the text of `PINS`.
    """

    name: str
    family: str
    device: tuple[str, ...]
    capacity: dict[str, int] = field(hash=False)
    pins: str = ""

    def over(self, cost: Cost) -> str | None:
        """Why a design does not fit, or None: all that it needs more of than there is."""
        more = [
            f"{getattr(cost, name)} {_WORDS[name]} of {most}"
            for name, most in self.capacity.items()
            if getattr(cost, name) > most
        ]
        return f"does not fit: {', '.join(more)}" if more else None


_WORDS = {
    "luts": "LUTs",
    "ffs": "flip-flops",
    "cells": "logic cells",
    "brams": "block RAMs",
    "lutrams": "LUT RAMs",
    "dsps": "multipliers",
    "sprams": "single-port RAMs",
}


def _ice40(name: str, device: str, package: str, cells: int, **others: int) -> Target:
    capacity = {"luts": cells, "ffs": cells, "cells": cells, "dsps": 0, "sprams": 0, **others}
    return Target(name, "ice40", (f"--{device}", "--package", package), capacity)


def _ecp5(name: str, device: str, package: str, luts: int, **others: int) -> Target:
    capacity = {"luts": luts, "ffs": luts, "lutrams": luts // 8, **others}
    return Target(name, "ecp5", (f"--{device}", "--package", package, "--speed", "6"), capacity)


def _gowin(name: str, device: tuple[str, str], pins: dict[str, int], **capacity: int) -> Target:
    chip, family = device
    options = ("--device", chip, "--vopt", f"family={family}", "--vopt", f"cst={PINS}")
    text = "".join(f'IO_LOC "{pin}" {place};\n' for pin, place in pins.items())
    return Target(name, "gowin", options, capacity, text)


#: Every device, by name.
TARGETS = {
    target.name: target
    for target in (
        _ice40("ice40-hx8k", "hx8k", "ct256", 7680, brams=32),
        _ice40("ice40-up5k", "up5k", "sg48", 5280, brams=30, dsps=8, sprams=4),
        _ecp5("ecp5-25k", "25k", "CABGA381", 24288, brams=56, dsps=28),
        _ecp5("ecp5-45k", "45k", "CABGA381", 43848, brams=108, dsps=72),
        _ecp5("ecp5-85k", "85k", "CABGA381", 83640, brams=208, dsps=156),
        _gowin(  # Tang Nano 9K
            "gowin-gw1nr-9",
            ("GW1NR-LV9QN88PC6/I5", "GW1N-9C"),
            {"clk": 52, "scan": 3, "pin": 10},
            luts=8640,
            ffs=6480,
            brams=26,
            lutrams=270,
            dsps=20,
        ),
    )
}


def find_target(name: str) -> Target:
    """The target of a name.

    Raises
    ------
    InputError
        If there is none.
    """
    if name not in TARGETS:
        raise no_such("Target", name, TARGETS)
    return TARGETS[name]


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


def measure(target: Target, module: dict[str, Any], children: Collection[str]) -> Cost:
    """What a mapped module costs, without its children.

    Parameters
    ----------
    target : Target
        The device it was mapped for.
    module : dict
        The module, from a netlist that yosys wrote as JSON.
    children : collection of str
        The names of modules that may be instantiated in it.

    Returns
    -------
    Cost

    Raises
    ------
    WorkFailed
        If it has a cell whose cost is not known.
    """
    cost = Cost()
    kinds = Counter(cell["type"] for cell in module["cells"].values())
    for kind, count in kinds.items():
        if kind in children or kind == "$scopeinfo":
            continue
        price = FAMILIES[target.family].price(kind)
        if price is None:
            raise WorkFailed(f"Cells must be those of {target.family}, not {kind}")
        cost = cost.plus(price, count)
    return cost.plus(Cost(cells=_logic_cells(module))) if target.family == "ice40" else cost


def _logic_cells(module: dict[str, Any]) -> int:
    """How many iCE40 logic cells the tables, flip-flops and carry bits of a module fill."""
    cells = module["cells"].values()
    readers: dict[object, int] = {}
    for cell in cells:
        for port, direction in cell["port_directions"].items():
            if direction == "input":
                for bit in cell["connections"][port]:
                    readers[bit] = readers.get(bit, 0) + 1
    for port in module["ports"].values():
        for bit in port["bits"]:
            readers[bit] = readers.get(bit, 0) + 1
    tables = [c["connections"] for c in cells if c["type"] == "SB_LUT4"]
    outputs = {t["O"][0] for t in tables if readers.get(t["O"][0]) == 1}
    alone: int = sum(
        c["type"].startswith("SB_DFF") and c["connections"]["D"][0] not in outputs for c in cells
    )
    operands = {(t["I1"][0], t["I2"][0]) for t in tables}
    chained: int = sum(
        (c["connections"]["I0"][0], c["connections"]["I1"][0]) not in operands
        for c in cells
        if c["type"] == "SB_CARRY"
    )
    return len(tables) + alone + chained
