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
    count_cells = target.tools.logic_cells
    return cost.plus(Cost(cells=count_cells(module))) if count_cells else cost
