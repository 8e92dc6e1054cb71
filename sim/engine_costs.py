"""What engines cost: look-up tables of pairs of collectives, of three, and of shorter messages.

Engines of 32 bits for messages of up to 16 flits, on an ECP5, with the forms that a command takes.

    python sim/engine_costs.py                            # all pairs on 4x4, and what is below
    python sim/engine_costs.py --tori 8x8 --only reduce-scatter,alltoall
    python sim/engine_costs.py --tori '' --whole          # the fabrics of 8x8 alone

Granted are 1,000 tables a node for a pair; on 8x8, 80,000 for three collectives, and 40,000 for an
all-reduce with all forms; never more for shorter messages, and no router that is dearer than a full
crossbar of the same inputs. The status is 2 if any is missed.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import benchmark_counts as counts
from rich.console import Console
from rich.table import Table

import torusfabric as tf
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.errors import TorusfabricError

WIDTH, TARGET, MOST = 32, "ecp5-85k", 16

#: What is found of an engine.
Row = dict[str, Any]

#: Tables of a node for any two collectives.
OF_PAIR = 1000


class Engine(NamedTuple):
    """Collectives in a fabric, and how many tables they may take.

    Parameters
    ----------
    torus : str
    collectives : tuple of str
    most : int
        Flits of the longest message.
    luts : int or None
        What is granted; None where that is what the engine before took, of longer messages.
    forms : str
    """

    torus: str
    collectives: tuple[str, ...]
    most: int
    luts: int | None
    forms: str = "auto"


THREE = ("allgather", "alltoall", "allreduce")

#: Whole fabrics: three collectives, of shorter messages, too, and all forms of one.
WHOLE = (
    Engine("8x8", THREE, 16, 80_000),
    Engine("8x8", THREE, 8, None),
    Engine("8x8", ("allreduce",), 16, 40_000, "all"),
)


def pairs(tori: Sequence[str], only: Sequence[str]) -> Iterator[Engine]:
    """All pairs of some collectives."""
    for torus in tori:
        nodes = tf.parse_topology(torus).nodes
        for pair in combinations([name for name in counts.COLLECTIVES if name in only], 2):
            yield Engine(torus, pair, MOST, OF_PAIR * nodes)


def measured(engine: Engine) -> Row:
    """What an engine takes: tables of all, and of its worst router beside a full crossbar."""
    plans = [
        tf.plan_forms(engine.torus, name, max_flits=engine.most, forms=engine.forms, check=False)
        for name in engine.collectives
    ]
    fabric = tf.Fabric(tf.compile(plans, max_flits=engine.most), width=WIDTH)
    report = tf.synthesize(fabric, TARGET)
    worst = max(report.classes, key=lambda row: row["luts"] - row["full_crossbar_luts"])
    return {
        **engine._asdict(),
        "granted": engine.luts,
        "luts": report.fabric["luts"],
        "brams": report.fabric["brams"],
        "of_node": report.fabric["luts"] / fabric.nodes,
        "router": worst["luts"],
        "full_crossbar": worst["full_crossbar_luts"],
        "forms": [len(mode.forms) for mode in fabric.program.modes],
    }


def rows(engines: Sequence[Engine]) -> Iterator[Row]:
    """What each takes, and whether that is within what is granted."""
    longer = 0
    with print_notices(), progress_bar("synthesizing") as progress:
        for done, engine in enumerate(engines):
            progress(done, len(engines), f"{engine.torus} {','.join(engine.collectives)}")
            row = measured(engine)
            granted = row["granted"] = engine.luts or longer
            longer = row["luts"]
            fits = longer <= granted and row["router"] <= row["full_crossbar"]
            yield row | {"met": fits}


def table(found: Sequence[Row]) -> Table:
    """All rows."""
    shown = Table(title=f"engines of {WIDTH} bits, {TARGET}")
    shown.add_column("torus")
    shown.add_column("collectives")
    heads = ("flits", "LUTs", "granted", "a node", "BRAMs", "dearest router", "full crossbar", "")
    for head in heads:
        shown.add_column(head, justify="right")
    for row in found:
        shown.add_row(
            row["torus"],
            ", ".join(f"{name}" for name in row["collectives"]),
            *(str(row[name]) for name in ("most", "luts", "granted")),
            f"{row['of_node']:.0f}",
            *(str(row[name]) for name in ("brams", "router", "full_crossbar")),
            "met" if row["met"] else "[red]missed[/]",
        )
    return shown


def main() -> int:
    """Measure and print; returns the status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tori", metavar="SIDES,..", default="4x4")
    parser.add_argument("--only", metavar="COLLECTIVE,..", default=",".join(counts.COLLECTIVES))
    parser.add_argument("--whole", action="store_true", help="whole fabrics of 8x8, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    tori = [torus for torus in arguments.tori.split(",") if torus]
    try:
        engines = [*pairs(tori, arguments.only.split(",")), *(WHOLE * arguments.whole)]
        found = list(rows(engines))
    except TorusfabricError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.json:
        print_json({"rows": found})
    else:
        Console(width=None if sys.stdout.isatty() else 140).print(table(found))
    return 2 if not all(row["met"] for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
