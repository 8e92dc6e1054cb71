"""Silicon: a `Family` from the cells of a Liberty file, whose costs are areas.

The users are `Target.device_family` and `find_target`. A *Liberty file* describes the cells of a
process: their functions and areas. Areas are given in gate equivalents, multiples of the area of a
NAND gate of two inputs, so that processes can be compared.

Read-only memories become gates. A memory that is written stays a memory, whose bits are counted
apart: its area depends on a memory compiler. Flip-flops are made of memories of few words, and with
``--ram registers`` of all.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...verilog.one_hot import ASIC
from .family import Cost, Family

__all__ = ["family_of_liberty"]

#: Cells of no process, with areas in NAND gates. They are rounded from the NanGate open cell
#: library for 45 nm.
GENERIC_CELLS = Path(__file__).with_name("generic_cells.lib")

#: Name of the Liberty file in the folder in which tools run.
_CELLS = "cells.lib"

#: Most words of a memory that becomes flip-flops, because memory compilers make no smaller ones.
_REGISTER_WORDS = 8

#: Commands of abc that map logic to cells with the least area, whatever the delay.
_MAP = "+strash;ifraig;scorr;dc2;strash;dch;map,-a"

#: Yosys commands behind ``synth -nordff -run begin:fine``, which leaves memories as they are, and
#: registers of read-only memories at their addresses. `memory_dff` then merges those of RAMs.
_AFTER = (
    f"read_liberty -lib {_CELLS}",
    "memory_map -rom-only",
    "memory_map a:ram_style=registers",
    f"memory_map t:$mem_v2 r:SIZE<={_REGISTER_WORDS} %i",
    "memory_dff",
    "opt -fast -full",
    "techmap",
    "opt -fast",
    f"dfflibmap -liberty {_CELLS}",
    f"abc -liberty {_CELLS} -script {_MAP}",
    "setundef -zero",
    "opt_clean -purge",
)

#: In a Liberty file: the name of a cell, its area, and the group of a flip-flop or latch.
_CELL = re.compile(r'\bcell\s*\(\s*"?([^")\s]+)"?\s*\)')
_AREA = re.compile(r"\barea\s*:\s*([0-9.eE+-]+)")
_STATE = re.compile(r"\b(?:ff|latch|ff_bank|latch_bank)\s*\(")

#: Names of NAND gates of two inputs, such as ``NAND2X1`` and ``sky130_fd_sc_hd__nand2_1``.
_NAND = re.compile(r"(?:^|_)NAND2(?=$|_|X)", re.IGNORECASE)


@cache
def family_of_liberty(path: str | None = None) -> Family:
    """Return the family with the cells of a Liberty file.

    Parameters
    ----------
    path : str, optional
        The Liberty file. The default is `GENERIC_CELLS`.

    Raises
    ------
    InputError
        If the file cannot be read, or has no cells with areas and no NAND gate of two inputs.

    Examples
    --------
    A flip-flop has the area of 5.67 NAND gates.

    >>> family_of_liberty().cell_cost("DFF").gates
    5.67
    """
    try:
        text = Path(path or GENERIC_CELLS).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"Liberty file {path} must be a readable file: {error.strerror}") from None
    _, *parts = _CELL.split(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    bodies = dict(zip(parts[::2], parts[1::2], strict=True))
    areas = {name: float(area[1]) for name, body in bodies.items() if (area := _AREA.search(body))}
    nand = min((size for name, size in areas.items() if _NAND.search(name)), default=0)
    if not nand:
        raise InputError(
            f"Liberty file {path} must have a cell NAND2 with an area, the unit of gate "
            f"equivalents; it has {len(areas)} cells with areas"
        )
    costs: dict[Cost, str] = {}
    for name, size in areas.items():
        ffs = int(bool(_STATE.search(bodies[name])))
        cost = Cost(gates=round(size / nand, 4), ffs=ffs)
        costs[cost] = f"{costs.get(cost, '')} {name}".strip()
    return Family(
        "synth -flatten -nordff -run begin:fine",
        costs | {Cost(): "$mem_v2"},
        after=_AFTER,
        files=((_CELLS, text),),
        defines=(ASIC,),
        inputs=0,
        module_costs=_count_ram_bits,
    )


def _count_ram_bits(module: dict[str, Any]) -> Cost:
    """Count the bits of the memories in a module that are no cells."""
    sizes = [
        [int(str(cell["parameters"][name]), 2) for name in ("WIDTH", "SIZE")]
        for cell in module["cells"].values()
        if cell["type"] == "$mem_v2"
    ]
    return Cost(ram_bits=sum(width * rows for width, rows in sizes))
