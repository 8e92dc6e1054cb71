"""Clocks of whole fabrics on an ECP5 of speed grade 6, each with its slowest path.

Each fabric of `WHOLE` in `benchmark_counts.py` is placed and routed with several seeds. Routers
are not placed alone, so that the time goes into whole fabrics. The median of the seeds counts,
beside the slowest path of the placement with this median: its ends, the tables (LUTs) between them,
and the share of its time that is spent in wires. "Limit" is the clock if wires took no time.

Rows are kept in ``sim/measured/clocks.json``. The exit status is 2 if a clock is lower than the
kept one by more than `CLOCK_NOISE`, the noise of a placement.

    python sim/clocks.py                      # all fabrics, three seeds: about an hour
    python sim/clocks.py --only wires --seeds 1
    python sim/clocks.py --keep               # keep the measured rows
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark_counts import CLOCK_DEVICE, CLOCK_NOISE, PLACEMENTS, WHOLE, Clock
from rich.console import Console
from rich.table import Table

import torusfabric as tf
from torusfabric.cli.output import print_json, print_notices, progress_bar

KEPT = Path(__file__).parent / "measured" / "clocks.json"

#: Figures of a fabric by name.
Row = dict[str, Any]


def measure(case: Clock, seeds: int, progress: Any) -> Row:
    """Return the figures of a fabric: its clock in MHz, LUTs, and the slowest path."""
    fabric = tf.FabricSpec.parse(case.command).make().fabric
    design = replace(tf.emit(fabric, ram=case.ram), classes={})
    report = tf.synthesize(design, CLOCK_DEVICE, pnr=True, seeds=seeds, progress=progress)
    found = report.fabric
    path = found["slowest_path"] or {}
    delay = path.get("logic_ns", 0) + path.get("wire_ns", 0)
    return {
        "name": case.name,
        "command": case.command,
        "target": CLOCK_DEVICE,
        "ram": case.ram,
        "goal": case.goal,
        "mhz": found["fmax_mhz"],
        "by_seed": found["fmax_by_seed"],
        "limit_mhz": found["logic_mhz"],
        "met": found["fmax_mhz"] is not None and found["fmax_mhz"] >= case.goal,
        "path": path.get("words", found["why"]),
        "tables": path.get("tables"),
        "wire_share": round(path["wire_ns"] / delay, 2) if path else None,
        **{name: found[name] for name in ("luts", "ffs", "brams")},
    }


def read_kept() -> dict[str, Row]:
    """Return the kept rows, by the name of the fabric."""
    rows = json.loads(KEPT.read_text(encoding="utf-8"))["rows"] if KEPT.exists() else []
    return {row["name"]: row for row in rows}


def keep_row(row: Row) -> None:
    """Write a row into the file of kept rows, in place of the row of the same fabric."""
    now = read_kept() | {row["name"]: row}
    rows = [now[case.name] for case in WHOLE if case.name in now]
    KEPT.write_text(json.dumps({"version": 1, "rows": rows}, indent=1) + "\n", "utf-8")


def is_worse(row: Row, kept: dict[str, Row]) -> bool:
    """Return True if a clock is lower than the kept clock by more than the noise."""
    before = kept.get(row["name"], {}).get("mhz")
    return before is not None and (row["mhz"] or 0) < before * (1 - CLOCK_NOISE)


def render(rows: list[Row], kept: dict[str, Row]) -> Table:
    """Return the rows as a table, beside the kept clocks."""
    table = Table(title="clocks of whole fabrics, ECP5 of speed grade 6")
    for head in ("fabric", "goal", "MHz", "of seeds", "kept", "limit", "wires", "slowest path"):
        left = head in ("fabric", "slowest path")
        table.add_column(head, justify="left" if left else "right")
    for row in rows:
        rates = [rate for rate in row["by_seed"] if rate is not None]
        before = kept.get(row["name"], {}).get("mhz")
        numbers = [f"{value:.0f}" if value else "" for value in (row["mhz"], before)]
        table.add_row(
            row["name"],
            str(row["goal"]),
            f"[red]{numbers[0]}[/]" if is_worse(row, kept) else numbers[0],
            f"{min(rates):.0f}-{max(rates):.0f}" if rates else "",
            numbers[1],
            f"{row['limit_mhz']:.0f}" if row["limit_mhz"] else "",
            f"{row['wire_share']:.0%}" if row["wire_share"] else "",
            row["path"],
        )
    return table


def main() -> int:
    """Measure, compare and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="fabrics with this in the name")
    parser.add_argument("--seeds", type=int, default=PLACEMENTS, help="placements of each fabric")
    parser.add_argument("--keep", action="store_true", help="keep the measured rows")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    kept, rows = read_kept(), []
    with print_notices():
        for case in (case for case in WHOLE if arguments.only in case.name):
            with progress_bar(case.name) as progress:
                rows.append(measure(case, arguments.seeds, progress))
            if arguments.keep:
                keep_row(rows[-1])
    if arguments.json:
        print_json({"rows": rows})
    else:
        Console(width=None if sys.stdout.isatty() else 160).print(render(rows, kept))
    return 2 if any(is_worse(row, kept) for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tf.TorusfabricError as error:
        print(f"clocks: {error}", file=sys.stderr)
        sys.exit(1)
