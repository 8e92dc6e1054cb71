"""Routers in silicon: gate equivalents (GE) of ours, and of any other Verilog by the same commands.

A gate equivalent is the area of a NAND gate of two inputs. Routers of 32 bits are synthesized
alone, without endpoints, as by ``torusfabric synth --target asic``: with cells of no process, and
with the cells of a Liberty file. The area of a router includes the tables that drive it. "Largest"
is the router class with the most GE, and "mean" the mean over all nodes.

Each pair of --verilog and --top is a row for a file that has all modules below its top. The name of
the file, such as ``argo_router.v``, is the name of the row.

    python sim/silicon_costs.py
    python sim/silicon_costs.py --only none --verilog router.v --top router --liberty cells.lib
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import torusfabric as tf
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.verilog import Design

WIDTH, MOST = 32, 16

#: Figures of the routers of a fabric, or of other Verilog, by name.
Row = dict[str, Any]

#: Figures of a router: gate equivalents, flip-flops, and bits of memories that are no flip-flops.
SIZES = ("gates", "ffs", "ram_bits")


def compile_engine(torus: str) -> tf.Program:
    """Return the program of three collectives, with the forms that a command takes."""
    names = ("allgather", "alltoall", "allreduce")
    plans = [tf.plan_forms(torus, name, max_flits=MOST, check=False) for name in names]
    return tf.compile(plans, max_flits=MOST)


#: Name -> function that returns the program of a torus. The all-gathers are of one flit a chunk.
PROGRAMS: dict[str, Callable[[str], tf.Program]] = {
    "hamiltonian": lambda torus: tf.compile(tf.plan(torus, "allgather", algorithm="hamiltonian")),
    "matching": lambda torus: tf.compile(tf.plan(torus, "allgather", algorithm="matching")),
    "engine": compile_engine,
}


def router_design(name: str, torus: str) -> Design:
    """Return the routers of a fabric, with nothing around them."""
    return tf.emit(tf.Fabric(PROGRAMS[name](torus), width=WIDTH)).routers()


def verilog_design(path: Path, top: str) -> Design:
    """Return a file of Verilog as a design."""
    try:
        return Design({top: path.read_text(encoding="utf-8")}, top, {})
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise tf.InputError(f"--verilog: {path} must be a Verilog file: {reason}") from None


def measure_sizes(design: Design, target: str) -> Row:
    """Return the figures of the routers of a design; of the whole design if it has no classes."""
    report = tf.synthesize(design, target)
    classes = report.classes or [{**report.fabric, "nodes": 1}]
    largest = max(classes, key=lambda row: row["gates"])
    nodes = sum(row["nodes"] for row in classes)
    mean = sum(row["nodes"] * row["gates"] for row in classes) / nodes
    return {**{field: largest[field] for field in SIZES}, "mean_gates": round(mean, 2)}


def rows(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each chosen fabric or file, and each library of cells."""
    libraries = {"no process": "asic"}
    if arguments.liberty:
        libraries[Path(arguments.liberty).stem] = f"asic:{arguments.liberty}"
    designs = [
        (f"{name} {arguments.torus}", partial(router_design, name, arguments.torus))
        for name in arguments.only
        if name != "none"
    ]
    designs += [
        (path.stem.replace("_", " "), partial(verilog_design, path, top))
        for path, top in zip(arguments.verilog, arguments.top, strict=True)
    ]
    with progress_bar("synthesizing") as progress:
        for done, (name, design) in enumerate(designs):
            progress(done, len(designs), name)
            made = design()
            for cells, target in libraries.items():
                yield {"name": name, "cells": cells, **measure_sizes(made, target)}


def table(found: list[Row]) -> Table:
    """Return all rows as a table."""
    shown = Table(title=f"routers of {WIDTH} bits in silicon")
    shown.add_column("router")
    shown.add_column("cells")
    for head in ("largest: GE", "FFs", "RAM bits", "mean: GE"):
        shown.add_column(head, justify="right")
    for row in found:
        sizes = (f"{row[field]:,.0f}" for field in (*SIZES, "mean_gates"))
        shown.add_row(row["name"], row["cells"], *sizes)
    return shown


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torus", metavar="SIDES", default="8x8", help="of all fabrics (8x8)")
    parser.add_argument("--only", nargs="+", choices=[*PROGRAMS, "none"], default=[*PROGRAMS],
                        metavar="NAME", help=f"{', '.join(PROGRAMS)}, or none")  # fmt: skip
    parser.add_argument("--liberty", metavar="FILE", help="cells of a process, for more rows")
    parser.add_argument("--verilog", metavar="FILE", type=Path, action="append", default=[],
                        help="other Verilog; repeatable, each with --top")  # fmt: skip
    parser.add_argument("--top", metavar="NAME", action="append", default=[],
                        help="outermost module of that Verilog")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if len(arguments.verilog) != len(arguments.top):
        parser.error("each --verilog needs a --top, the name of its outermost module")
    try:
        with print_notices():
            found = list(rows(arguments))
    except tf.TorusfabricError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.json:
        print_json({"rows": found})
    else:
        Console(width=None if sys.stdout.isatty() else 140).print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
