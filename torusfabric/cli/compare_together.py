"""The command compare, of several collectives in one fabric."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..draw.charts import bar_charts
from ..draw.files import write_picture
from ..planning import Selection, require_hardware
from ..toolchain.extras import how_to_install
from ..topology import faults_within, shared_network
from .hardware_options import operators_of
from .output import print_json, print_line, print_table, progress_bar
from .selection import parse_selection
from .several import each_selection
from .table_files import check_table, write_table

if TYPE_CHECKING:
    from ..collective import Collective
    from ..sweep.compare import Costs, Hardware, Together

__all__ = ["HEADS", "compare_fabrics", "hardware_of", "heads_for", "print_uncounted"]

#: The columns of a table of costs, by the fields of a row, and those of them that need a target.
HEADS = {
    "inputs": "crossbar inputs",
    "classes": "classes",
    "rom_bits": "ROM bits",
    "memories": "memories a node",
    "memory_bits": "memory bits",
    "node_luts": "LUTs a node",
    "luts": "LUTs",
    "ffs": "FFs",
    "brams": "BRAMs",
}
SYNTHESIZED = ("node_luts", "luts", "ffs", "brams")


def hardware_of(arguments: Namespace, collective: Collective) -> Hardware:
    """What hardware is compared, of a collective, or of several the first that is a reduction."""
    from ..sweep.compare import Hardware

    operators = operators_of(arguments, collective)
    most, target = arguments.max_flits, arguments.target
    return Hardware(arguments.width, arguments.flits, operators, target, max_flits=most)


def heads_for(target: str | None, heads: Mapping[str, str] = HEADS) -> dict[str, str]:
    """The columns that there are, with a target or without."""
    return {name: head for name, head in heads.items() if target or name not in SYNTHESIZED}


def compare_fabrics(arguments: Namespace) -> None:
    """Compare fabrics of several collectives, and print a table."""
    from ..sweep.compare import compare_together

    selections = [parse_selection(one) for one in each_selection(arguments)]
    check_table(arguments, _head(selections[0]))
    collectives = [selection.collective for selection in selections]
    for selection in selections:
        most = arguments.max_flits or arguments.flits
        require_hardware(selection.topology, selection.collective, flits=most)
    reducing = next((one for one in collectives if one.reducing), collectives[0])
    hardware = hardware_of(arguments, reducing)
    with progress_bar("planning") as progress:
        fabrics, flits = compare_together(selections, hardware, progress=progress)
    network = shared_network(selection.topology for selection in selections)
    faults = [faults_within(network, selection.topology) for selection in selections]
    topology, names = str(network), ", ".join(map("{}{}".format, collectives, faults))
    title = f"{topology} {names}: {arguments.width} bits a flit, up to {flits} flits a message"
    if arguments.plot:
        write_picture(arguments.plot, _plot(title, selections, fabrics))
    table = _table(selections, fabrics, arguments.target)
    if arguments.table:
        write_table(arguments.table, *table)
    if arguments.json:
        print_json(
            {
                "topology": topology,
                "collective": ",".join(map("{0.name}{1}".format, collectives, faults)),
                "width": arguments.width,
                "max_flits": flits,
                "target": arguments.target,
                "fabrics": [fabric.to_json() for fabric in fabrics],
            }
        )
        return
    print_line(title)
    print_table(*table)
    for fabric in fabrics:
        if fabric.reason:
            print_line(f"no hardware by {', '.join(fabric.algorithms)}: {fabric.reason}")
    print_uncounted(fabrics)


def _head(selection: Selection) -> str:
    """The head of the column of a mode."""
    return f"{selection.collective} by, cycles"


def _table(
    selections: list[Selection], fabrics: list[Together], target: str | None
) -> tuple[list[str], list[list[object]]]:
    """Heads and a row a fabric: the algorithm and cycles of each mode, then what it takes."""
    heads, rows = heads_for(target), []
    for fabric in fabrics:
        cycles = fabric.cycles or ("-",) * len(fabric.algorithms)
        modes = [f"{name} {n}" for name, n in zip(fabric.algorithms, cycles, strict=True)]
        known = [getattr(fabric, name) for name in heads]
        rows.append([*modes, *("-" if value is None else value for value in known)])
    return [*map(_head, selections), *heads.values()], rows


def print_uncounted(rows: Iterable[Costs]) -> None:
    """Say what would count the hardware, where nothing that is installed does."""
    if any(row.classes is None and row.reason is None for row in rows):
        print_line(f"classes, ROMs and memories are counted after {how_to_install('hardware')}")


def _plot(title: str, selections: list[Selection], fabrics: list[Together]) -> str:
    """The figures of all fabrics as bars."""
    charts: dict[str, list[float | None]] = {
        f"cycles of {selection.collective}": [
            fabric.cycles[mode] if fabric.cycles else None for fabric in fabrics
        ]
        for mode, selection in enumerate(selections)
    }
    charts |= {
        HEADS[name]: [getattr(fabric, name) for fabric in fabrics]
        for name in ("inputs", "memory_bits", "luts")
    }
    return bar_charts(
        title,
        [", ".join(fabric.algorithms) for fabric in fabrics],
        {name: values for name, values in charts.items() if any(values)},
    )
