"""What a mapped netlist costs on a device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from ...errors import WorkFailed

if TYPE_CHECKING:
    from .target import Target

__all__ = ["Cost", "measure"]


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

    def plus(self, other: Cost, times: int = 1) -> Cost:
        """Sum of costs, the other one a number of times."""
        return Cost(*(getattr(self, f.name) + times * getattr(other, f.name) for f in fields(self)))

    def to_json(self) -> dict[str, int]:
        """As a plain dict."""
        return asdict(self)


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
        price = target.tools.price(kind)
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
