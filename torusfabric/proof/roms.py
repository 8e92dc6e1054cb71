"""Comparison of ROM contents in the emitted Verilog with those of the netlist.

Why: symbolic runs read only the rows that some run needs. This check covers all rows.

A *row* is here the word of a ROM at one address. *Symbolic runs* are runs that are executed with
symbols in place of data (see `runs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from ..rtl.netlist import Role
from .gates import GateModule
from .report import make_refutation

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.memories import MemoryShape
    from .gates import GateText

__all__ = ["check_roms"]


#: The rows of a ROM, each as a string of bits, the highest bit first.
_Rows: TypeAlias = list[str]


def _rows_of_numbers(rows: Sequence[int], width: int) -> _Rows:
    """Return the rows of a ROM, given as numbers, as strings of `width` bits.

    Examples
    --------
    >>> _rows_of_numbers([1, 6], 3)
    ['001', '110']
    """
    return [f"{row:0{width}b}" for row in rows]


def _rows_of_text(bits: str, width: int) -> _Rows:
    """Return the rows of a ROM, given as one string of all bits with the last row first.

    Each row is a string of `width` bits.

    Examples
    --------
    >>> _rows_of_text("110001", 3)
    ['001', '110']
    """
    return [bits[end - width : end] for end in range(len(bits), 0, -width)]


def _wrong_rows(found: _Rows, wanted: _Rows) -> list[int]:
    """Return the numbers of the rows in which a ROM in the Verilog differs from the netlist.

    `found` are the rows in the Verilog, and `wanted` those of the netlist. A row that the Verilog
    lacks is wrong. Additional rows of the Verilog, at the end, must equal the last row of `wanted`.
    """
    every = zip_longest(found, wanted)
    return [number for number, (row, right) in enumerate(every) if row != (right or wanted[-1])]


def _compare_rows(found: _Rows, wanted: _Rows, name: str) -> int:
    """Check that a ROM in the Verilog has the rows of the netlist; returns the number of rows.

    `found` are the rows in the Verilog, and `wanted` those of the netlist. `Refuted` is raised for
    the first row that differs, with the name `name` of the ROM.
    """
    for row in _wrong_rows(found, wanted):
        right = wanted[min(row, len(wanted) - 1)]
        there = found[row] if row < len(found) else "missing"
        message = f"Row {row} of the ROM {name} must be {right}, not {there}"
        raise make_refutation("rom", f"{name}, row {row}", message)
    return len(found)


def check_roms(fabric: Fabric, text: GateText) -> int:
    """Check the rows of all ROMs, those of nodes and those inside modules; returns their number.

    `text` is the Verilog as gates. Modules that are read as ports only (`gates.PORT_ONLY_ROLES`)
    have no rows to check here.
    """
    count = 0
    for instance in fabric.netlist.instances_with_role(Role.ROM):
        if instance.name in text.instances:
            found = _rows_of_text(text.instances[instance.name].rom, instance.width)
            wanted = _rows_of_numbers(instance.contents, instance.width)
            count += _compare_rows(found, wanted, instance.name)
    for name, make in fabric.netlist.modules.items():
        module = text.modules.get(fabric.prefix + name)
        if module and module.rams:
            count += _check_module_roms(module, make().memory_shapes(), name)
    return count


def _check_module_roms(module: GateModule, memories: Sequence[MemoryShape], name: str) -> int:
    """Check that the ROMs inside a module have the rows of `memories`, those of the netlist.

    Yosys may rename ROMs. So each ROM of `memories` is compared with the most similar ROM of the
    module that has the same shape and has not been compared yet. `name` is the name of the module,
    for messages.
    """
    left = [_rows_of_numbers(each.rows, each.width) for each in memories if not each.is_ram]
    count = 0
    for ram in module.rams:
        if ram.writes or not ram.name:  # Yosys gives cases that become tables no name
            continue
        found = _rows_of_text(ram.initial, ram.width)
        alike = [rows for rows in left if len(rows[0]) == ram.width and len(rows) <= ram.size]
        if not alike:
            message = (
                f"{name} must not have {ram.name}, a ROM of {ram.size} rows of {ram.width} bits"
            )
            raise make_refutation("rom", name, message)
        wanted = min(alike, key=lambda rows: len(_wrong_rows(found, rows)))
        left.remove(wanted)
        count += _compare_rows(found, wanted, f"{ram.name} of {name}")
    return count
