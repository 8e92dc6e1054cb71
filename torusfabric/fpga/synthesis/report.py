"""The outcome of a synthesis, for programs and for people."""

import io
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.table import Table

from .cost import Cost

__all__ = ["SynthesisReport", "per_bit"]

#: What an out-port bit may cost, in LUTs or flip-flops, before the report says where it goes.
_LEAN = 1.1

#: Classes with a column of their own where the table shows where the LUTs go.
_SHOWN = 3

#: ROMs that the tables list.
_LARGEST = 10


@dataclass(frozen=True)
class SynthesisReport:
    """What a design costs; `to_json` and `render` are its two forms.

    Parameters
    ----------
    interface : str
        That of the top of the fabric: ``host`` or ``core``; empty where there is no fabric.
    classes : list of dict
        One a node class: name, nodes, luts, ffs, brams and the other costs, fmax_mhz, and where
        the design names the router's out-ports, what each of their bits costs. Where ROMs drive
        the routers of a class, all this is with the dearest contents, and ``roms`` names their
        instances.
    fabric : dict
        The same for all of it, with the device's capacity and whether it fits.
    parts : dict
        Part of the fabric -> its LUTs in all, the most first; they add up to those of the fabric.
    roms : list of dict
        One for each different ROM: name, instances, rows, width, bits of all instances together,
        and what one costs; the most bits first. Where a ROM is inside a module, its name follows
        that of the module, and its costs are not known apart.
    modules : list of dict
        One a module: name, instances, and its costs without its children.
    seeds : list of int
        Of place and route; empty without it.
    runs : list of dict
        What each run of a tool took: tool, what, seed and seconds. Runs that were not repeated,
        because their results were kept, have what they took at the time.
    tools : dict
        Tool -> version.
    """

    target: str
    mapping: str
    interface: str
    classes: list[dict[str, Any]]
    fabric: dict[str, Any]
    parts: dict[str, int]
    roms: list[dict[str, Any]]
    modules: list[dict[str, Any]]
    seeds: list[int]
    runs: list[dict[str, Any]]
    tools: dict[str, str]

    @property
    def fmax_mhz(self) -> float | None:
        """The clock that place and route reaches; None without it."""
        found: float | None = self.fabric.get("fmax_mhz")
        return found

    def to_json(self) -> dict[str, Any]:
        """As a plain dict."""
        return dict(vars(self))

    def _repr_html_(self) -> str:
        """The same tables, as a notebook shows them."""
        console = Console(record=True, file=io.StringIO(), width=110, force_jupyter=False)
        console.print(self.render())
        shape = '<pre style="line-height:1.2">{code}</pre>'
        return console.export_html(inline_styles=True, code_format=shape)

    def render(self) -> Group:
        """As tables for people: print it with a `rich` console."""
        table = Table(
            title=f"{self.target}, {self.mapping} mapping"
            + (f", {self.interface} top" if self.interface else ""),
            caption="\n".join(self._notes()) or None,
            caption_justify="left",
            collapse_padding=True,
            pad_edge=False,
        )
        several = len(self.seeds) > 1
        table.add_column("", no_wrap=True)
        heads = ("nodes", "LUTs", "FFs", "BRAMs", "MHz", *(["min-max"] * several))
        for head in (*heads, "LUT/bit", "FF/bit"):
            table.add_column(head, justify="right")
        for row in self.classes:
            table.add_row(row["name"], str(row["nodes"]), *_numbers(row, several=several))
        nodes = sum(row["nodes"] for row in self.classes)
        table.add_section()
        table.add_row("fabric", str(nodes), *_numbers(self.fabric, several=several))
        table.add_row("of the device", "", *map(self._share, ("luts", "ffs", "brams")))
        more = (self._where(), self._largest_roms(), self._against_full(), self._time())
        return Group(table, *(part for part in more if part))

    def _where(self) -> Table | None:
        """Where the LUTs go, as a table."""
        luts = self.fabric["luts"]
        parts = {part: count for part, count in self.parts.items() if count}
        if not luts or set(parts) <= {"other"}:
            return None
        table = Table(title="where the LUTs go")
        table.add_column("")
        for head in ("LUTs", "share", *(row["name"] for row in self._split()[:_SHOWN])):
            table.add_column(head, justify="right")
        for part, count in parts.items():
            inside = [str(row["parts"].get(part, "")) for row in self._split()[:_SHOWN]]
            table.add_row(part, str(count), f"{100 * count / luts:.1f} %", *inside)
        return table

    def _largest_roms(self) -> Table | None:
        """The largest ROMs, as a table; equal ones are a row."""
        if not self.roms:
            return None
        bits = sum(row["bits"] for row in self.roms)
        few = self.roms[:_LARGEST]
        names = "the ROM" if len(self.roms) == 1 else f"{len(few)} of {len(self.roms)} ROMs"
        table = Table(title=f"{names}, of {bits} bits in all")
        for head in ("", "instances", "rows", "width", "bits", "LUTs", "BRAMs"):
            table.add_column(head, justify="right" if head else "left")
        for row in few:
            keys = ("instances", "rows", "width", "bits", "luts", "brams")
            table.add_row(row["name"], *("" if row[k] is None else str(row[k]) for k in keys))
        return table

    def _split(self) -> list[dict[str, Any]]:
        return [row for row in self.classes if row.get("parts")]

    def _against_full(self) -> Table | None:
        """LUTs saved against full crossbars, as a table."""
        if "saved_luts" not in self.fabric:
            return None
        table = Table(title="routers against full crossbars")
        for head in ("", "LUTs", "full crossbar", "saved", "share"):
            table.add_column(head, justify="right" if head else "left")
        rows = [(row["name"], row["luts"], row) for row in self.classes]
        routers = sum(row["luts"] * row["nodes"] for row in self.classes)
        for name, luts, row in (*rows, ("all routers", routers, self.fabric)):
            numbers = luts, row["full_crossbar_luts"], row["saved_luts"]
            table.add_row(name, *map(str, numbers), f"{100 * row['saved_share']:.1f} %")
        return table

    def _time(self) -> str:
        """What the tools took, as a line."""
        times: dict[str, list[float]] = {}
        for run in self.runs:
            times.setdefault(run["tool"], []).append(run["seconds"])
        return "; ".join(
            f"{tool}: {len(seconds)} runs, {sum(seconds):.1f} s, longest {max(seconds):.1f} s"
            for tool, seconds in times.items()
        )

    def _share(self, name: str) -> str:
        most = self.fabric["capacity"].get(name)
        return f"{100 * self.fabric[name] / most:.1f} %" if most else ""

    def _notes(self) -> list[str]:
        rows = [*self.classes, {"name": "fabric", **self.fabric}]
        notes = [
            f"{row['name']}: with the contents of {' and '.join(row['roms'])}, the dearest"
            for row in self.classes
            if row.get("roms")
        ]
        notes += [
            f"{row['name']}: slowest path {row['slowest_path']['words']}"
            for row in rows
            if row.get("slowest_path")
        ]
        return notes + [f"{row['name']}: {row['why']}" for row in rows if row.get("why")]


def _numbers(row: dict[str, Any], *, several: bool) -> tuple[str, ...]:
    """The numbers of a row of the table, as text; those not known are left blank."""
    least, most = row.get("fmax_min_mhz"), row.get("fmax_max_mhz")
    spread = f"{least:.0f}-{most:.0f}" if least is not None else ""
    return (
        *(str(row[name]) for name in ("luts", "ffs", "brams")),
        _number(row, "fmax_mhz", ".1f"),
        *([spread] * several),
        *(_number(row, name, ".2f") for name in ("luts_per_bit", "ffs_per_bit")),
    )


def _number(row: dict[str, Any], name: str, form: str) -> str:
    return "" if row.get(name) is None else format(row[name], form)


def per_bit(cost: Cost, outports: dict[str, int]) -> dict[str, Any]:
    """What a router costs for each bit of its out-ports.

    A router that only forwards by wire needs one LUT (forward or inject) and one flip-flop a bit.
    Where it needs noticeably more, `why` says how much of it drives out-ports and how much does
    not.

    Parameters
    ----------
    cost : Cost
        Of the router with its children.
    outports : dict
        Numbers of the bits of out-ports, and of the LUTs and flip-flops that drive them.
    """
    bits = outports["bits"]
    if not bits:
        return {"outport_bits": 0, "luts_per_bit": None, "ffs_per_bit": None, "why": None}
    luts, ffs = cost.luts / bits, cost.ffs / bits
    why = None
    if max(luts, ffs) > _LEAN:
        why = (
            f"{luts:.2f} LUTs and {ffs:.2f} flip-flops an out-port bit "
            f"({bits} bits): {outports['luts']} LUTs and "
            f"{outports['ffs']} flip-flops drive out-ports; "
            f"{cost.luts - outports['luts']} LUTs and {cost.ffs - outports['ffs']} flip-flops are "
            "control, selection before the last LUT, and the node's own ports, shared by all bits"
        )
    return {
        "outport_bits": bits,
        "luts_per_bit": round(luts, 4),
        "ffs_per_bit": round(ffs, 4),
        "why": why,
    }
