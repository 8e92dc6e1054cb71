"""The outcome of a synthesis, for programs and for people."""

from dataclasses import dataclass

from rich.table import Table

__all__ = ["Report", "per_bit"]

#: What an out-port bit may cost, in LUTs or flip-flops, before the report says where it goes.
_LEAN = 1.1


@dataclass(frozen=True)
class Report:
    """What a design costs; `to_json` and `render` are its two forms.

    Parameters
    ----------
    target, mapping : str
    classes : list of dict
        One a node class: name, nodes, luts, ffs, brams and the other costs, fmax_mhz, and where
        the design names the router's out-ports, what each of their bits costs.
    fabric : dict
        The same for all of it, with the device's capacity and whether it fits.
    modules : list of dict
        One a module: name, instances, and its costs without its children.
    seeds : list of int
        Of place and route; empty without it.
    tools : dict
        Tool -> version.
    """

    target: str
    mapping: str
    classes: list[dict]
    fabric: dict
    modules: list[dict]
    seeds: list[int]
    tools: dict[str, str]

    def to_json(self):
        """As a plain dict."""
        return dict(vars(self))

    def render(self):
        """As a table for people: print it with a `rich` console."""
        table = Table(
            title=f"{self.target}, {self.mapping} mapping",
            caption="\n".join(self._notes()) or None,
            caption_justify="left",
        )
        for head in ("", "nodes", "LUTs", "FFs", "BRAMs", "MHz", "LUT/bit", "FF/bit"):
            table.add_column(head, justify="right" if head else "left")
        for row in self.classes:
            table.add_row(row["name"], str(row["nodes"]), *_numbers(row))
        nodes = sum(row["nodes"] for row in self.classes)
        table.add_section()
        table.add_row("fabric", str(nodes), *_numbers(self.fabric))
        table.add_row("of the device", "", *map(self._share, ("luts", "ffs", "brams")))
        return table

    def _share(self, name):
        most = self.fabric["capacity"].get(name)
        return f"{100 * self.fabric[name] / most:.1f} %" if most else ""

    def _notes(self):
        rows = [*self.classes, {"name": "fabric", **self.fabric}]
        return [f"{row['name']}: {row['why']}" for row in rows if row.get("why")]


def _numbers(row):
    """The numbers of a row of the table, as text; those not known are left blank."""
    return (
        *(str(row[name]) for name in ("luts", "ffs", "brams")),
        *(
            "" if row.get(name) is None else format(row[name], form)
            for name, form in (("fmax_mhz", ".1f"), ("luts_per_bit", ".2f"), ("ffs_per_bit", ".2f"))
        ),
    )


def per_bit(cost, outports):
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
