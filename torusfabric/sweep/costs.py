"""What the hardware of a fabric takes, for comparisons."""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from ..program import Program
from ..toolchain.extras import installed

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["Costs", "take_costs"]


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a fabric takes; None is what does not exist, or was not asked for.

    Parameters
    ----------
    classes : int or None
        Router classes.
    rom_bits, memories, memory_bits : int or None
        See `Inventory`.
    router_luts : int or None
        Of the largest router.
    node_luts : int or None
        Of the whole fabric, divided among its nodes: routers, endpoints and memories.
    luts, ffs, brams : int or None
        Of the whole fabric, host port included.
    reason : str or None
        Why there is no hardware.
    """

    classes: int | None = None
    rom_bits: int | None = None
    memories: int | None = None
    memory_bits: int | None = None
    router_luts: int | None = None
    node_luts: int | None = None
    luts: int | None = None
    ffs: int | None = None
    brams: int | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data, the costs last."""
        costs = {field.name for field in fields(Costs)}
        return dict(sorted(asdict(self).items(), key=lambda item: item[0] in costs))


def take_costs(program: Program, width: int, target: str | None) -> dict[str, Any]:
    """What the fabric of a program takes, by the names of `Costs`.

    Nothing is known where the extra ``hardware`` is not installed and no target is asked for.

    Parameters
    ----------
    width : int
        Bits of a flit.
    target : str or None
        Device to synthesize for, if any.

    Raises
    ------
    InputError
        If there is no such fabric.
    """
    if not target and not installed("amaranth"):
        return {}
    from ..rtl import Fabric
    from ..rtl.inventory import take_inventory

    fabric = Fabric(program, width=width)
    return {
        "classes": len(fabric.router_classes),
        **take_inventory(fabric.netlist)._asdict(),
        **(_synthesized(fabric, target) if target else {}),
    }


def _synthesized(fabric: "Fabric", target: str) -> dict[str, Any]:
    """What a fabric costs on a device."""
    from ..fpga.synthesis.synthesize import synthesize

    report = synthesize(fabric, target).to_json()
    return {
        "router_luts": max(row["luts"] for row in report["classes"]),
        "node_luts": round(report["fabric"]["luts"] / fabric.nodes),
        **{name: report["fabric"][name] for name in ("luts", "ffs", "brams")},
    }
