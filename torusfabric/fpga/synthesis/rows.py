"""The rows of a report: classes of nodes, the fabric, its parts and its modules."""

from typing import Any

from ...verilog import Design
from .cost import Cost
from .report import per_bit
from .target import Target

__all__ = ["class_row", "fabric_row", "luts_by_part", "module_rows", "rom_rows", "savings",
           "savings_in_all"]  # fmt: skip


def class_row(
    design: Design, name: str, nodes: int, mapped: dict[str, Any], cost: Cost
) -> dict[str, Any]:
    """The report of a node class, clock rates aside."""
    ports = mapped["outports"]
    row: dict[str, Any] = {"name": name, "nodes": nodes, **cost.to_json()}
    if name in design.outports:
        bits = per_bit(cost, ports)
        row |= {"bits_why": bits.pop("why"), **bits}
    if ports["parts"]:
        inside = cost.luts - sum(ports["parts"].values())  # those of its ROMs
        settings = ports["parts"].get("settings", 0) + inside
        row |= {"parts": {**ports["parts"], "settings": settings}, "least_luts": ports["limit"]}
    return row


def savings(total: Cost, full: int | None) -> dict[str, Any]:
    """How a router compares with the full crossbar of its shape."""
    if full is None:
        return {}
    saved = full - total.luts
    share = round(saved / full, 4) if full else 0.0
    return {"full_crossbar_luts": full, "saved_luts": saved, "saved_share": share}


def savings_in_all(classes: list[dict[str, Any]]) -> dict[str, Any]:
    """The same for all routers of the fabric."""
    if not classes or any("saved_luts" not in row for row in classes):
        return {}
    full = sum(row["full_crossbar_luts"] * row["nodes"] for row in classes)
    saved = sum(row["saved_luts"] * row["nodes"] for row in classes)
    share = round(saved / full, 4) if full else 0.0
    return {"full_crossbar_luts": full, "saved_luts": saved, "saved_share": share}


def fabric_row(
    device: Target, total: Cost, over: str | None, clock: dict[str, Any]
) -> dict[str, Any]:
    """The report of the whole fabric."""
    return {**total.to_json(), "fits": over is None, "capacity": device.capacity, **clock}


def luts_by_part(
    design: Design, mapped: dict[str, dict[str, Any]], modules: list[dict[str, Any]]
) -> dict[str, int]:
    """LUTs of each part of the fabric; routers are split by what their tables do."""
    parts: dict[str, int] = {}
    for row in modules:
        inside = mapped[row["name"]].get("outports", {}).get("parts")
        split = inside or {design.parts.get(row["name"], "other"): row["luts"]}
        for part, luts in split.items():
            parts[part] = parts.get(part, 0) + luts * row["instances"]
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def module_rows(design: Design, mapped: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The report of each module: how often it is there, and what it costs without its children."""
    times = _times(design)
    return [
        {"name": name, "instances": times.get(name, 0), **result["cost"]}
        for name, result in mapped.items()
    ]


def rom_rows(design: Design, mapped: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The report of each ROM, the largest of the whole fabric first.

    ROMs with the same contents are one row. What one costs is known of those that are modules;
    of those inside others it is part of these.
    """
    times = _times(design)
    rows = []
    for name, contents in design.contents.items():
        cost = mapped[name]["cost"]
        size = {"rows": len(contents.rows), "width": contents.width}
        rows.append({"name": name, "instances": times.get(name, 0), **size,
                     "luts": cost["luts"], "brams": cost["brams"]})  # fmt: skip
    for module, structure in design.structures.items():
        for name, memory in structure.memories.items():
            if any(memory.rows):
                size = {"rows": len(memory.rows), "width": memory.width}
                rows.append({"name": f"{module}.{name}", "instances": times.get(module, 0), **size,
                             "luts": None, "brams": None})  # fmt: skip
    for row in rows:
        row["bits"] = row["instances"] * row["rows"] * row["width"]
    return sorted(rows, key=lambda row: (-row["bits"], row["name"]))


def _times(design: Design) -> dict[str, int]:
    """How often each module is there, and contents are."""
    times = {design.top: 1}
    for name in reversed(design.modules):  # parents come before their children
        for child, count in design.instances.get(name, {}).items():
            times[child] = times.get(child, 0) + count * times.get(name, 0)
    return times
