"""Clocks in project files: their periods, and the connections between registers of two clocks."""

from collections.abc import Mapping
from typing import Any

from ...rtl.fabric import Fabric

__all__ = ["CHIP_PERIOD", "clock_names", "crossing_modules", "period_constraints"]

#: Period, in nanoseconds, of every clock of a fabric that is compiled by itself for an FPGA.
PERIOD = "4.000"

#: The same for a chip.
CHIP_PERIOD = 20.0


def clock_names(manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the clock ports of a fabric, given its manifest."""
    return [name for name, port in manifest["ports"].items() if port["role"] == "clock"]


def period_constraints(manifest: Mapping[str, Any]) -> str:
    """Return the constraints, in the language of SDC files, that give all clocks their period."""
    return "\n".join(
        f"create_clock -name {name} -period {PERIOD} [get_ports {name}]"
        for name in clock_names(manifest)
    )


def crossing_modules(fabric: Fabric) -> list[str]:
    """Return the names of the modules with clock crossings; none if nodes have no own clocks."""
    names = fabric.netlist.modules
    return [fabric.prefix + name for name in names if name.endswith("_crossing")]
