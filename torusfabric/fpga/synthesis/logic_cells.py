"""Logic cells that tables and flip-flops share: how many the cells of a mapped module fill."""

from collections import Counter
from typing import Any

__all__ = ["alms", "ice40_cells"]


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
