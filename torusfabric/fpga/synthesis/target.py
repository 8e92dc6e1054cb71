"""Devices a fabric can be synthesized for.

Adding a device of a known family is one line of `TARGETS`, with the capacities that nextpnr reports
for it; or one of `PARTS`, where only the vendor places and routes.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from ...errors import WorkFailed
from ...toolchain.hints import no_such
from .cost import Cost
from .family import Family
from .parts import PARTS

__all__ = ["PINS", "TARGETS", "Target", "find_target"]

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

    @property
    def tools(self) -> Family:
        """The cells of its family, and the tools that map to them."""
        from .families import FAMILIES  # here: it knows the text, and so Amaranth; names do not

        return FAMILIES[self.family]

    def measure(self, module: dict[str, Any], children: Collection[str]) -> Cost:
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
        cost, tools = Cost(), self.tools
        kinds = Counter(cell["type"] for cell in module["cells"].values())
        for kind, count in kinds.items():
            if kind in children or kind == "$scopeinfo":
                continue
            price = tools.price(kind)
            if price is None:
                raise WorkFailed(f"Cells must be those of {self.family}, not {kind}")
            cost = cost.plus(price, count)
        return cost.plus(Cost(cells=tools.logic_cells(module))) if tools.logic_cells else cost

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
    "urams": "ultra RAMs",
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
        *(
            Target(f"{family}-{part.name}", family, (), part.capacity)
            for family, parts in PARTS.items()
            for part in parts
        ),
    )
}


def find_target(name: str) -> Target:
    """The target of a name; a family of which parts are known is the largest of them.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> find_target("xilinx-us").name
    'xilinx-us-vu13p'
    """
    if isinstance(name, str) and name in PARTS:
        name = f"{name}-{PARTS[name][-1].name}"
    if not isinstance(name, str) or name not in TARGETS:
        raise no_such("Target", name, [*TARGETS, *PARTS])
    return TARGETS[name]
