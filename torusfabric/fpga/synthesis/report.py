"""`SynthesisReport`: the result of a synthesis, as JSON for programs and as tables for people.

A *row* is a dictionary about one router class, module, ROM or run of a tool. To *map* a module is
to translate its Verilog into cells of the device, such as LUTs. The *children* of a module are the
modules of its instances, and the *contents* of a ROM are the words in it.
"""

import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from ...verilog import Design
from ...verilog.design import RouterClass, count_instances
from ...verilog.module_text import AUTO
from .family import Cost

__all__ = ["SynthesisReport", "class_row", "luts_by_part", "module_rows", "cost_per_bit",
           "rom_rows", "total_savings"]  # fmt: skip

#: Fields of `Cost` in tables and their heads, for FPGAs and for silicon (GE: gate equivalents).
_FPGA_COLUMNS = {"luts": "LUTs", "ffs": "FFs", "brams": "BRAMs"}
_SILICON_COLUMNS = {"gates": "GE", "ffs": "FFs", "ram_bits": "RAM bits"}

#: LUTs or flip-flops of an out-port bit above which the report explains the number.
_LEAN_COST = 1.1

#: Most router classes with a column of their own in the table of LUTs by part.
_MOST_CLASSES = 3

#: Most ROMs in a table.
_MOST_ROMS = 10


@dataclass(frozen=True)
class SynthesisReport:
    """The costs and clock rates of a design; `to_json` and `render` are its two forms.

    Parameters
    ----------
    target, mapping : str
        Name of the device, and aim of the mapping.
    interface : str
        Interface of the top, ``host`` or ``core``; empty for a design that is no fabric.
    classes : list of dict
        A row for each router class: ``name``, ``nodes``, fields of `Cost`, ``fmax_mhz``, and costs
        of each out-port bit if the design names the out-ports. If ROMs drive the routers, the
        figures include the ROMs with the contents of the highest cost, whose names are in ``roms``.
    fabric : dict
        Costs and clock rate of the whole fabric, ``capacity`` of the device, and ``fits``.
    parts : dict of str to int
        Part of the fabric -> LUTs of all its instances, or gate equivalents of silicon, the most
        first. Together they are the LUTs of the fabric.
    roms : list of dict
        A row for each different ROM: ``name``, ``instances``, ``rows``, ``width``, ``bits`` of all
        instances together, and costs of one instance; the most bits first. A ROM inside a module
        has a name of the form ``module.rom`` and no costs of its own.
    modules : list of dict
        A row for each module: ``name``, ``instances``, and costs without children.
    seeds : list of int
        Seeds of place and route; empty without it.
    runs : list of dict
        A row for each run of a tool: ``tool``, ``what`` (the module), ``seed`` and ``seconds``. A
        cached result has the seconds of the original run.
    tools : dict of str to str
        Tool -> version.
    ram : str
        Memory rule in the notation of `MemoryRule.parse`, by which memories have their kind of RAM.
    memories : list of dict
        A row for each size and kind of RAM: ``width`` in bits, ``depth`` in words, ``style``, and
        the number of ``memories``.
    """

    target: str
    mapping: str
    interface: str
    classes: list[dict[str, Any]]
    fabric: dict[str, Any]
    parts: dict[str, float]
    roms: list[dict[str, Any]]
    modules: list[dict[str, Any]]
    seeds: list[int]
    runs: list[dict[str, Any]]
    tools: dict[str, str]
    ram: str = AUTO
    memories: list[dict[str, Any]] = field(default_factory=list)

    @property
    def fmax_mhz(self) -> float | None:
        """Clock rate of the whole fabric by place and route, in MHz; None without it."""
        found: float | None = self.fabric.get("fmax_mhz")
        return found

    @property
    def cost_columns(self) -> dict[str, str]:
        """Fields of `Cost` in tables and their heads; the first one is the logic."""
        if self.fabric.get("gates"):
            return _SILICON_COLUMNS
        return _FPGA_COLUMNS | ({"cells": "cells"} if self.fabric.get("cells") else {})

    def to_json(self) -> dict[str, Any]:
        """Return the report as a plain dict."""
        return dict(vars(self))

    def _repr_html_(self) -> str:
        """Return the tables as HTML, for notebooks."""
        console = Console(record=True, file=io.StringIO(), width=110, force_jupyter=False)
        console.print(self.render())
        shape = '<pre style="line-height:1.2">{code}</pre>'
        return console.export_html(inline_styles=True, code_format=shape)

    def render(self) -> Group:
        """Return the report as tables, to be printed with a `rich` console."""
        table = Table(
            title=f"{self.target}, {self.mapping} mapping"
            + (f", {self.interface} top" if self.interface else ""),
            caption="\n".join(self._note_lines()) or None,
            caption_justify="left",
            collapse_padding=True,
            pad_edge=False,
        )
        several = len(self.seeds) > 1
        table.add_column("", no_wrap=True)
        columns = self.cost_columns
        logic = next(iter(columns.values())).removesuffix("s")
        heads = ("nodes", *columns.values(), "MHz", *(["min-max"] * several))
        for head in (*heads, f"{logic}/bit", "FF/bit"):
            table.add_column(head, justify="right")
        for row in self.classes:
            table.add_row(
                row["name"], str(row["nodes"]), *_number_cells(row, columns, several=several)
            )
        nodes = sum(row["nodes"] for row in self.classes)
        table.add_section()
        table.add_row("fabric", str(nodes), *_number_cells(self.fabric, columns, several=several))
        if self.fabric["capacity"]:
            table.add_row("of the device", "", *map(self._capacity_share, columns))
        rule = f"--ram {self.ram}" if self.memories else None
        more = (
            self._part_table(),
            self._memory_table(),
            rule,
            self._rom_table(),
            self._crossbar_table(),
            self._tool_times(),
        )
        return Group(table, *(part for part in more if part))

    def _part_table(self) -> Table | None:
        """Return the table of logic by part of the fabric; None if no parts are known."""
        field, noun = next(iter(self.cost_columns.items()))
        logic = self.fabric[field]
        parts = {part: count for part, count in self.parts.items() if count}
        if not logic or set(parts) <= {"other"}:
            return None
        few = [row for row in self.classes if row.get("parts")][:_MOST_CLASSES]
        names = [row["name"] for row in few]
        table = _empty_table(f"where the {noun} go", noun, "share", *names)
        for part, count in parts.items():
            inside = [str(row["parts"].get(part, "")) for row in few]
            table.add_row(part, f"{count:.0f}", f"{100 * count / logic:.1f} %", *inside)
        return table

    def _memory_table(self) -> Table | None:
        """Return the table of the memories by size and kind of RAM; None without memories."""
        if not self.memories:
            return None
        table = _empty_table("memories by kind of RAM", "words", "bits", "memories")
        for row in self.memories:
            table.add_row(row["style"], *(str(row[k]) for k in ("depth", "width", "memories")))
        return table

    def _rom_table(self) -> Table | None:
        """Return the table of the ROMs with the most bits; ROMs with equal contents share a row."""
        if not self.roms:
            return None
        bits = sum(row["bits"] for row in self.roms)
        few = self.roms[:_MOST_ROMS]
        names = "the ROM" if len(self.roms) == 1 else f"{len(few)} of {len(self.roms)} ROMs"
        costs = {name: head for name, head in self.cost_columns.items() if name in self.roms[0]}
        keys = ("instances", "rows", "width", "bits", *costs)
        table = _empty_table(f"{names}, of {bits} bits in all", *keys[:4], *costs.values())
        for row in few:
            table.add_row(row["name"], *("" if row[k] is None else str(row[k]) for k in keys))
        return table

    def _crossbar_table(self) -> Table | None:
        """Return the table of LUTs saved against full crossbars; None if not compared."""
        if "saved_luts" not in self.fabric:
            return None
        heads = ("LUTs", "full crossbar", "saved", "share")
        table = _empty_table("routers against full crossbars", *heads)
        rows = [(row["name"], row["luts"], row) for row in self.classes]
        routers = sum(row["luts"] * row["nodes"] for row in self.classes)
        for name, luts, row in (*rows, ("all routers", routers, self.fabric)):
            numbers = luts, row["full_crossbar_luts"], row["saved_luts"]
            table.add_row(name, *map(str, numbers), f"{100 * row['saved_share']:.1f} %")
        return table

    def _tool_times(self) -> str:
        """Return one line of text with the number of runs and the seconds of each tool."""
        times: dict[str, list[float]] = {}
        for run in self.runs:
            times.setdefault(run["tool"], []).append(run["seconds"])
        return "; ".join(
            f"{tool}: {len(seconds)} runs, {sum(seconds):.1f} s, longest {max(seconds):.1f} s"
            for tool, seconds in times.items()
        )

    def _capacity_share(self, name: str) -> str:
        most = self.fabric["capacity"].get(name)
        return f"{100 * self.fabric[name] / most:.1f} %" if most else ""

    def _note_lines(self) -> list[str]:
        rows = [*self.classes, {"name": "fabric", **self.fabric}]
        notes = [
            f"{row['name']}: with the contents of {' and '.join(row['roms'])}, the largest"
            for row in self.classes
            if row.get("roms")
        ]
        notes += [
            f"{row['name']}: slowest path {row['slowest_path']['words']}"
            for row in rows
            if row.get("slowest_path")
        ]
        return notes + [f"{row['name']}: {row['why']}" for row in rows if row.get("why")]


def _empty_table(title: str, *heads: str) -> Table:
    """Return an empty table, called `title`, with a name and numbers in each row.

    `heads` are the titles of the columns of numbers.
    """
    table = Table(title=title)
    table.add_column("")
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _number_cells(row: dict[str, Any], columns: Iterable[str], *, several: bool) -> tuple[str, ...]:
    """Return the costs and the clock rate in a row of the report as text, for cells of a table.

    `row` is a dictionary about one router class or the fabric. `columns` are the fields of `Cost`
    in the table. Unknown numbers are blank. With `several`, there is a further cell for the lowest
    and the highest clock rate of several seeds.
    """
    text = lambda name, form: "" if row.get(name) is None else format(row[name], form)
    spread = f"{text('fmax_min_mhz', '.0f')}-{text('fmax_max_mhz', '.0f')}".strip("-")
    return (
        *(f"{row[name]:.0f}" for name in columns),
        text("fmax_mhz", ".1f"),
        *([spread] * several),
        *(text(f"{name}_per_bit", ".2f") for name in (next(iter(columns)), "ffs")),
    )


def cost_per_bit(cost: Cost, outports: dict[str, int]) -> dict[str, Any]:
    """Return the cost of a router divided by the number of bits of its out-ports.

    The least is one flip-flop a bit, and on an FPGA one LUT, which selects a forwarded word or a
    word of the node. If a router of an FPGA needs noticeably more, the entry ``why`` says for which
    purposes.

    Parameters
    ----------
    cost : Cost
        Cost of the router with all modules inside of it.
    outports : dict of str to int
        ``bits`` of the out-ports, and the ``luts`` and ``ffs`` that drive them, by
        `lut_purposes.count_luts_by_purpose`.

    Returns
    -------
    dict
        ``outport_bits``: the number of bits. ``luts_per_bit`` (``gates_per_bit`` on silicon) and
        ``ffs_per_bit``: LUTs and flip-flops for each of them. ``why``: a text, or None.
    """
    bits = outports["bits"]
    if not bits:
        return {"outport_bits": 0, "luts_per_bit": None, "ffs_per_bit": None, "why": None}
    if cost.gates:
        each = {"gates": cost.gates, "ffs": cost.ffs}
        found = {f"{name}_per_bit": round(value / bits, 4) for name, value in each.items()}
        return {"outport_bits": bits, **found, "why": None}
    luts, ffs = cost.luts / bits, cost.ffs / bits
    why = (
        f"{luts:.2f} LUTs and {ffs:.2f} flip-flops an out-port bit ({bits} bits): "
        f"{outports['luts']} LUTs and {outports['ffs']} flip-flops drive out-ports; "
        f"{cost.luts - outports['luts']} LUTs and {cost.ffs - outports['ffs']} flip-flops are "
        "control, selection before the last LUT, and the node's own ports, shared by all bits"
    )
    each = {"luts_per_bit": round(luts, 4), "ffs_per_bit": round(ffs, 4)}
    return {"outport_bits": bits, **each, "why": why if max(luts, ffs) > _LEAN_COST else None}


def class_row(
    name: str,
    router: RouterClass,
    ports: dict[str, Any],
    cost: Cost,
    *,
    roms: list[str],
    clock: dict[str, Any],
    full: int | None,
) -> dict[str, Any]:
    """Return the row of a router class: an entry of `SynthesisReport.classes`.

    It has the number of nodes, the costs and the clock rate of the routers of this class.

    Parameters
    ----------
    name : str
        Name of the class.
    router : RouterClass
        Number of its nodes, shape and out-ports.
    ports : dict
        Result of `lut_purposes.count_luts_by_purpose` for the router.
    cost : Cost
        Cost of a router with its ROMs.
    roms : list of str
        Names of the contents of these ROMs, those of the highest cost.
    clock : dict
        Keys and values about the clock rate, which become a part of the row.
    full : int, optional
        LUTs of a full crossbar with as many inputs, out-ports, bits and settings.
    """
    row: dict[str, Any] = {"name": name, "nodes": router.nodes, **vars(cost)}
    reasons = [clock["why"]]
    if router.outports:
        bits = cost_per_bit(cost, ports)
        reasons.insert(0, bits.pop("why"))
        row |= bits
    if ports["parts"]:
        inside = round(cost.logic_size - sum(ports["parts"].values()), 2)  # those of its ROMs
        settings = ports["parts"].get("settings", 0) + inside
        row |= {"parts": {**ports["parts"], "settings": settings}, "least_luts": ports["limit"]}
    row |= ({"roms": roms} if roms else {}) | clock
    if full is not None:
        row |= crossbar_savings(cost.luts, full)
    return row | {"why": "; ".join(filter(None, reasons)) or None}


def crossbar_savings(luts: int, full: int) -> dict[str, Any]:
    """Return the report entries that compare routers with full crossbars.

    Parameters
    ----------
    luts, full : int
        LUTs of the routers, and of full crossbars in their place.

    Returns
    -------
    dict
        ``full_crossbar_luts``, ``saved_luts`` and ``saved_share``, the last from 0 to 1.
    """
    saved = full - luts
    share = round(saved / full, 4) if full else 0.0
    return {"full_crossbar_luts": full, "saved_luts": saved, "saved_share": share}


def total_savings(classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the entries of `crossbar_savings` for all routers of a fabric together.

    The result is empty if a router class was not compared with a full crossbar.

    Parameters
    ----------
    classes : list of dict
        Rows of all router classes.
    """
    if not classes or any("saved_luts" not in row for row in classes):
        return {}
    full = sum(row["full_crossbar_luts"] * row["nodes"] for row in classes)
    return crossbar_savings(sum(row["luts"] * row["nodes"] for row in classes), full)


def luts_by_part(
    design: Design, mapped: dict[str, dict[str, Any]], modules: list[dict[str, Any]]
) -> dict[str, float]:
    """Return the logic of each part of the fabric, such as ``host``, the most first.

    Logic is LUTs, or gate equivalents of silicon. That of routers is split by purpose, such as
    ``crossbar``.

    Parameters
    ----------
    design : Design
        The Verilog of the fabric, which says the part of each module.
    mapped : dict of str to dict
        Module -> result of `Flow.map_modules`.
    modules : list of dict
        Result of `module_rows`.
    """
    parts: dict[str, float] = {}
    for row in modules:
        inside = mapped[row["name"]].get("outports", {}).get("parts")
        logic = row["luts"] or row["gates"]
        split = inside or {design.parts.get(row["name"], "other"): logic}
        for part, size in split.items():
            parts[part] = parts.get(part, 0) + size * row["instances"]
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def module_rows(design: Design, mapped: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows `SynthesisReport.modules`: number of instances and costs of each module.

    The costs do not include those of modules inside of it.

    Parameters
    ----------
    design : Design
        The Verilog of the fabric, from which instances are counted.
    mapped : dict of str to dict
        Module -> result of `Flow.map_modules`.
    """
    times = count_instances(design)
    return [
        {"name": name, "instances": times.get(name, 0), **result["cost"]}
        for name, result in mapped.items()
    ]


def rom_rows(design: Design, mapped: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows `SynthesisReport.roms`: size and costs of each ROM, the most bits first.

    ROMs with the same contents share a row. A ROM inside a module has no costs of its own, because
    they are part of the module's.

    Parameters
    ----------
    design : Design
        The Verilog of the fabric, which has the contents and the instances.
    mapped : dict of str to dict
        Name of the contents -> its entry of the result of `Flow.map_roms`.
    """
    times = count_instances(design)
    rows: list[tuple[str, str, Any, dict[str, Any]]] = []
    for name, contents in design.contents.items():
        rows.append((name, name, contents, mapped[name]["cost"]))
    for module, structure in design.structures.items():
        for name, memory in structure.memories.items():
            if any(memory.rows):
                rows.append((module, f"{module}.{name}", memory, {}))
    found = []
    for module, name, rom, cost in rows:
        size = {"instances": times.get(module, 0), "rows": len(rom.rows), "width": rom.width}
        costs = {field: cost.get(field) for field in ("luts", "gates", "brams")}
        found.append({"name": name, **size, **costs, "bits": math.prod(size.values())})
    return sorted(found, key=lambda row: (-row["bits"], row["name"]))
