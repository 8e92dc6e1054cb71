"""LUTs of engines: pairs of collectives, three collectives, and shorter messages.

Engines of 32 bits for messages of up to 16 flits, on an ECP5, with the forms that a command takes.

    python sim/engine_costs.py                            # all pairs on 4x4
    python sim/engine_costs.py --tori 8x8 --only reduce-scatter,alltoall
    python sim/engine_costs.py --tori '' --whole          # the fabrics of 8x8 alone

Goals: at most 1,000 LUTs a node for a pair; on 8x8 at most 80,000 LUTs for three collectives, and
40,000 for an all-reduce with all forms. An engine for shorter messages may not be larger than the
same engine for longer ones, and no router may be larger than a full crossbar of the same inputs.
The status is 2 if a goal is missed.
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

#: Figures of an engine by name.
Row = dict[str, Any]

#: Most LUTs a node for any two collectives.
OF_PAIR = 1000


class Engine(NamedTuple):
    """Collectives of one fabric, with their goal in LUTs.

    Parameters
    ----------
    torus : str
        Name of the topology.
    collectives : tuple of str
        Names of the collectives.
    most : int
        Flits of the longest message.
    luts : int or None
        Largest number of LUTs that meets the goal; None for the LUTs of the engine before, which is
        the same engine for longer messages.
    forms : str
        Forms of each mode, as for `tf.plan_forms`.
    """

    torus: str
    collectives: tuple[str, ...]
    most: int
    luts: int | None
    forms: str = "auto"


THREE = ("allgather", "alltoall", "allreduce")

#: Whole fabrics: three collectives for two lengths of messages, and one collective in all forms.
WHOLE = (
    Engine("8x8", THREE, 16, 80_000),
    Engine("8x8", THREE, 8, None),
    Engine("8x8", ("allreduce",), 16, 40_000, "all"),
)


def pairs(tori: Sequence[str], only: Sequence[str]) -> Iterator[Engine]:
    """Yield all pairs of some collectives on each torus."""
    for torus in tori:
        nodes = tf.parse_topology(torus).nodes
        for pair in combinations([name for name in counts.COLLECTIVES if name in only], 2):
            yield Engine(torus, pair, MOST, OF_PAIR * nodes)


def measured(engine: Engine) -> Row:
    """Return the LUTs of an engine, and those of its worst router beside a full crossbar.

    The worst router is the one with the largest excess over the full crossbar of its inputs.
    """
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
    """Yield the figures of each engine, with "met" True if the engine meets its goals."""
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
    """Return all rows as a table."""
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
    """Measure and print; return the exit status."""
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
