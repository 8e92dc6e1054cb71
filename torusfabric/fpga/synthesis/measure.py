"""What a mapped netlist costs on a device."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from ...errors import WorkFailed
from .cost import Cost
from .target import Target

__all__ = ["measure"]


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
