"""The contents of ROMs, as the text has them, compared with those of the netlist.

Why: whole runs compare the rows that some run reads, and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from ..rtl.netlist import Role
from .gates import GateModule
from .report import refuted

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.memories import MemoryShape
    from .gates import GateText

__all__ = ["check_roms"]


class _Rom(NamedTuple):
    """The rows of a ROM, each as its bits, the highest first."""

    rows: list[str]
    width: int

    @classmethod
    def from_numbers(cls, rows: Sequence[int], width: int) -> _Rom:
        """The ROM that a netlist has."""
        return cls([f"{row:0{width}b}" for row in rows], width)

    @classmethod
    def from_text(cls, bits: str, width: int) -> _Rom:
        """The ROM that a text has, given all bits, those of the last row first."""
        return cls([bits[end - width : end] for end in range(len(bits), 0, -width)], width)

    def differences(self, wanted: _Rom) -> list[int]:
        """Return the rows that are wrong; past the end, the last row goes on."""
        every = zip_longest(self.rows, wanted.rows, fillvalue=wanted.rows[-1])
        return [number for number, (row, right) in enumerate(every) if row != right]

    def check(self, wanted: _Rom, name: str) -> int:
        """Return the number of rows; raise `Refuted` unless all are as wanted."""
        for row in self.differences(wanted):
            right = wanted.rows[min(row, len(wanted.rows) - 1)]
            message = f"Row {row} of the ROM {name} must be {right}, not {self.rows[row]}"
            raise refuted("rom", f"{name}, row {row}", message)
        return len(self.rows)


def check_roms(fabric: Fabric, text: GateText) -> int:
    """Check, and count, the rows of all ROMs: those of nodes, and those inside modules.

    Modules of which nothing is read but the ports are left out.
    """
    count = 0
    for instance in fabric.netlist.having(Role.ROM):
        if instance.name in text.instances:
            found = _Rom.from_text(text.instances[instance.name].rom, instance.width)
            wanted = _Rom.from_numbers(instance.contents, instance.width)
            count += found.check(wanted, instance.name)
    for name, make in fabric.netlist.modules.items():
        module = text.modules.get(fabric.prefix + name)
        if module and module.rams:
            count += _check_inside(module, make().memories(), name)
    return count


def _check_inside(module: GateModule, memories: Sequence[MemoryShape], name: str) -> int:
    """Check the ROMs inside a module; of several of one shape, the most similar one is meant."""
    left = [_Rom.from_numbers(each.rows, each.width) for each in memories if not each.written]
    count = 0
    for ram in module.rams:
        if ram.writes or not ram.name:  # Yosys gives cases that become tables no name
            continue
        found = _Rom.from_text(ram.initial, ram.width)
        alike = [rom for rom in left if rom.width == ram.width and len(rom.rows) <= ram.size]
        if not alike:
            message = (
                f"{name} must not have {ram.name}, a ROM of {ram.size} rows of {ram.width} bits"
            )
            raise refuted("rom", name, message)
        wanted = min(alike, key=lambda rom: len(found.differences(rom)))
        left.remove(wanted)
        count += found.check(wanted, f"{ram.name} of {name}")
    return count
