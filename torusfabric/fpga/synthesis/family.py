"""Families of devices: what a netlist uses of one, and what is known of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from ...toolchain.values import Choice

__all__ = ["Cost", "Family", "Mapping", "alms", "ice40_cells"]


@dataclass(frozen=True)
class Cost:
    """What a netlist uses of a device.

    Parameters
    ----------
    luts : int
        Tables, of four inputs or of as many as the family has, with those used as adders (two for
        each ECP5 CCU2C) or as memory (six for each ECP5 TRELLIS_DPR16X4: four hold 16 x 4 bits, two
        give their place to its write port; eight for each Gowin RAM16SDP4, beside which the other
        four of its block cannot be used).
    ffs, brams : int
        Flip-flops and block RAMs, those of Xilinx and GateMate in halves.
    lutrams : int
        Memories of 16 x 4 bits made of tables; of Xilinx the tables.
    carries, muxes : int
        Bits of carry chains and wide multiplexers: both come free with their tables.
    dsps, sprams : int
        Multipliers and single-port RAMs.
    cells : int
        iCE40: logic cells of one table and one flip-flop each; a flip-flop shares a cell only
        with the table that feeds it alone, a carry bit only with the table on the same inputs.
        Cyclone V: adaptive logic modules, at most.
    urams : int
        Ultra RAMs, of 288 kbit.
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
    urams: int = 0

    def plus(self, other: Cost, times: int = 1) -> Cost:
        """Sum of costs, the other one a number of times."""
        return Cost(*(getattr(self, f.name) + times * getattr(other, f.name) for f in fields(self)))


class Mapping(Choice):
    """What the mapping to cells is for: few tables, or wide multiplexers where there are any."""

    COMPACT = "compact"
    FAST = "fast"


@dataclass(frozen=True)
class Family:
    """Devices with the same cells and the same tools.

    Parameters
    ----------
    synth : str
        The yosys command for speed. Ports are not pins, of no module: it would give pads to those
        inside, too, which are kept apart.
    cells : dict
        What a cell costs -> patterns of the types of such cells; others are unknown.
    compact : str
        What to add to the command for few cells.
    before_registers : tuple of str
        Commands to be carried out before flip-flops are mapped.
    pnr : str or None
        The place-and-route tool; None where only the vendor has one.
    pnr_args : tuple of str
        Its arguments: no pin constraints are needed, and slow paths are placed with care.
    placers : tuple of str
        The placers of that tool, where there is a choice: each is tried if the one before fails or
        is stuck.
    defines : tuple of str
        What is defined for the text to have the form that suits its cells.
    pads : str
        The yosys command that gives pads to a module, whose name follows.
    inputs : int
        Of a table.
    logic_cells : function of (module) -> int, optional
        How many logic cells the tables and flip-flops of a module fill, from a netlist that yosys
        wrote as JSON, where the device has cells of both.
    block_shapes : tuple of (int, int)
        Words and bits that a block RAM may have, where a memory that is made of tables takes many.
    """

    synth: str
    cells: dict[Cost, str]
    compact: str = ""
    before_registers: tuple[str, ...] = ()
    pnr: str | None = None
    pnr_args: tuple[str, ...] = ()
    placers: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    pads: str = ""
    inputs: int = 4
    logic_cells: Callable[[dict[str, Any]], int] | None = None
    block_shapes: tuple[tuple[int, int], ...] = ()

    def blocks(self, width: int, depth: int) -> int:
        """Block RAMs of a memory."""
        return min(-(-depth // words) * -(-width // bits) for words, bits in self.block_shapes)

    def script(self, top: str, mapping: Mapping, *, pads: bool = False) -> str:
        """The yosys commands that map a module, whose ports are pins or not.

        Examples
        --------
        >>> ice40 = Family("synth_ice40", {}, before_registers=("dffunmap",))
        >>> print(ice40.script("node", Mapping.FAST), end="")
        synth_ice40 -top node -run begin:map_ffs
        dffunmap
        synth_ice40 -top node -run map_ffs:
        """
        more = self.compact if mapping is Mapping.COMPACT else ""
        command = f"{self.synth}{more} -top {top}"
        if steps := self.before_registers:
            command = "\n".join(
                (f"{command} -run begin:map_ffs", *steps, f"{command} -run map_ffs:")
            )
        return f"{command}\n" + (f"{self.pads} {top}\n" if pads and self.pads else "")

    def price(self, kind: str) -> Cost | None:
        """What a cell of a type costs, or None if that is not known."""
        for price, patterns in self.cells.items():
            if any(fnmatchcase(kind, pattern) for pattern in patterns.split()):
                return price
        return None


def ice40_cells(module: dict[str, Any]) -> int:
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


#: Halves of an ALM that cells of Cyclone V take, at most: two tables of up to four inputs are in
#: one, and so are two of five that have two inputs in common, which is not counted on. An MLAB of
#: ten ALMs has 20 bits a word.
_HALVES = {
    "MISTRAL_ALUT6": 2,
    "MISTRAL_ALUT5": 2,
    "MISTRAL_ALUT4": 1,
    "MISTRAL_ALUT3": 1,
    "MISTRAL_ALUT2": 1,
    "MISTRAL_ALUT_ARITH": 1,
    "MISTRAL_NOT": 1,
    "MISTRAL_MLAB": 1,
}

#: Flip-flops of an ALM.
_FLIP_FLOPS = 4


def alms(module: dict[str, Any]) -> int:
    """How many adaptive logic modules of Cyclone V a module fills, at most."""
    kinds = Counter(cell["type"] for cell in module["cells"].values())
    halves = sum(size * kinds[kind] for kind, size in _HALVES.items())
    return max(-(-halves // 2), -(-kinds["MISTRAL_FF"] // _FLIP_FLOPS))
