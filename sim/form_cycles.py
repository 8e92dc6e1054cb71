"""Cycles of an engine beside the cycles of fabrics made for one collective and one length.

The engine has all eight collectives, for messages of any length. Each collective has forms, and the
length of the messages selects one. Beside the engine's cycles stand the cycles of a fabric for that
collective and length alone, planned by `tf.plan`.

    python sim/form_cycles.py                             # 4x4 and 8x8: a minute
    python sim/form_cycles.py --tori 3x5 --most 64
    python sim/form_cycles.py --root any                  # engines of any root

The status is 2 if an engine exceeds a fabric for one collective by more cycles than are granted.
"""

import argparse
import sys

import benchmark_counts as counts
from rich.console import Console
from rich.table import Table

import torusfabric as tf
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.errors import TorusfabricError

#: Cycles by which an engine may be slower. They pay for the choice of a form when a run starts.
GRANTED = 6

LENGTHS = (1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256)


def engine(torus: str, most: int, root: str | None) -> tf.Program:
    """Return the program of an engine of all collectives, for messages of up to `most` flits."""
    rooted = {name: tf.parse_collective(name).rooted for name in counts.COLLECTIVES}
    plans = [
        tf.plan_forms(
            torus,
            name,
            max_flits=most,
            root=root if rooted[name] else None,
            forms="all",
            check=False,
        )
        for name in counts.COLLECTIVES
    ]
    return tf.compile(plans, max_flits=most, root=root)


def alone(torus: str, collective: str, length: int) -> int:
    """Return the cycles of a fabric for one collective and one length."""
    schedule = tf.plan(torus, collective, flits=length, check=False)
    return tf.compile(schedule, flits=length).cycles()


def rows_of(torus: str, arguments: argparse.Namespace) -> list[dict[str, object]]:
    """Return the cycles of each collective on a torus, in the engine and alone."""
    lengths = [length for length in LENGTHS if length <= arguments.most]
    with print_notices(), progress_bar(torus) as progress:
        program = engine(torus, arguments.most, arguments.root)
        rows: list[dict[str, object]] = []
        for number, name in enumerate(counts.COLLECTIVES):
            progress(number, len(counts.COLLECTIVES))
            mode = program.modes[number]
            rows.append(
                {
                    "torus": torus,
                    "collective": name,
                    "forms": [
                        f"{start}: {mode.forms[form].schedule.algorithm}"
                        for start, form in mode.ranges
                    ],
                    "cycles": {n: program.cycles(n, mode=number) for n in lengths},
                    "alone": {n: alone(torus, name, n) for n in lengths},
                }
            )
    return rows


def more(row: dict[str, object]) -> int:
    """Return the largest number of cycles by which the engine is slower, over all lengths."""
    cycles, single = row["cycles"], row["alone"]
    assert isinstance(cycles, dict)
    assert isinstance(single, dict)
    return max(cycles[length] - single[length] for length in cycles)


def table(torus: str, rows: list[dict[str, object]]) -> Table:
    """Return the rows of a torus as a table."""
    shown = Table(title=f"{torus}: cycles in the engine / alone, by flits of a message")
    shown.add_column("collective")
    lengths = list(rows[0]["alone"])  # type: ignore[call-overload]
    for length in lengths:
        shown.add_column(str(length), justify="right")
    shown.add_column("most more", justify="right")
    shown.add_column("forms")
    for row in rows:
        cells = [f"{row['cycles'][n]} / {row['alone'][n]}" for n in lengths]  # type: ignore[index]
        most = more(row)
        forms = ", ".join(row["forms"])  # type: ignore[arg-type]
        shown.add_row(
            str(row["collective"]),
            *cells,
            f"[red]{most}[/]" if most > GRANTED else str(most),
            forms,
        )
    return shown


def main() -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tori", metavar="SIDES,..", default="4x4,8x8")
    parser.add_argument("--most", metavar="FLITS", type=int, default=256)
    parser.add_argument("--root", choices=("any",))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        found = {torus: rows_of(torus, arguments) for torus in arguments.tori.split(",")}
    except TorusfabricError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.json:
        print_json(found)
    else:
        console = Console(width=max(Console().width, 180))
        for torus, rows in found.items():
            console.print(table(torus, rows))
    most = max(more(row) for rows in found.values() for row in rows)
    print(f"largest difference: {most} cycles, at most {GRANTED} are granted", file=sys.stderr)
    return 2 if most > GRANTED else 0


if __name__ == "__main__":
    sys.exit(main())
