"""Circuit-switched broadcasts with a limit on ports: claims of the paper, bounds, plans and cycles.

S.-Y. Wang, Y.-C. Tseng, S.-Y. Ni, J.-P. Sheu, "Circuit-switched broadcasting in multi-port
multi-dimensional torus networks", The Journal of Supercomputing 20, 2001. A node sends up to alpha
messages, and receives up to alpha, in a round. The columns, in rounds unless another unit is named:

    bound      ceil(log(N) / log(alpha + 1)), Lemma 1
    theorem    the claim of Theorems 1 to 9; - above three dimensions, where they claim nothing
    diagonal   plan by the paper's method, its gaps filled; checked
    max-flow   plan by maximum flows; checked
    cycles     clock cycles of the hardware for one flit, predicted and simulated, all words right;
               first of diagonal, then of max-flow; - for a torus that is not simulated

An asterisk marks a plan with more rounds than the theorem's claim; no plan should have one. A +
marks a plan with more rounds than the bound.

    python sim/circuit_broadcast.py
    python sim/circuit_broadcast.py 5x5 6x8 --largest 100
    python sim/circuit_broadcast.py --long
"""

import argparse
import time
from math import prod

from paper_costs import theorem_rounds

import torusfabric as tf
from torusfabric.analysis.bounds import spread_rounds
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.errors import InputError
from torusfabric.simulation.engines import AmaranthEngine
from torusfabric.topology import parse_topology

ALGORITHMS = ("diagonal", "max-flow")

#: Tori of a short run. A long run takes the tori of both lists.
SHORT = (
    "4x6", "5x5", "5x7", "6x8", "7x7", "8x8", "7x13", "10x50", "20x100",
    "3x3x3", "3x5x7", "5x5x5", "4x6x8", "5x9x9", "10x20x30", "3x3x3x3",
)  # fmt: skip
LONG = (
    "16x16", "25x25", "32x32", "50x50", "51x100", "125x125",
    "7x7x7", "6x9x20", "20x30x40", "3x4x5x6", "5x5x5x5",
)  # fmt: skip


def cycles(schedule):
    """Return clock cycles as predicted and as simulated.

    Raises
    ------
    AssertionError
        If a word is wrong.
    """
    fabric = tf.Fabric(tf.compile(schedule), width=8)
    report = tf.simulate(fabric, engine=AmaranthEngine(fabric))
    assert not report.words_wrong, report
    return report.predicted_cycles, report.cycles


def row(topology, ports, largest):
    """Return the figures of a torus with a limit on ports, by name.

    "theorem" is None where the theorems claim nothing. Cycles are None for a torus with more than
    `largest` nodes, which is not simulated.
    """
    found = {
        "torus": str(topology),
        "ports": ports,
        "bound": spread_rounds(topology.nodes, ports),
        "theorem": theorem_rounds(topology.sides, ports),
    }
    for algorithm in ALGORITHMS:
        schedule = tf.plan(topology, "broadcast", algorithm=algorithm, ports=ports)
        run = None if topology.nodes > largest else cycles(schedule)
        found[algorithm] = {
            "rounds": schedule.round_count,
            "predicted_cycles": run and run[0],
            "cycles": run and run[1],
        }
    return found


def cells(found):
    """Yield the cells of one line of the table."""
    least, claim = found["bound"], found["theorem"]
    yield from (least, "-" if claim is None else claim)
    plans = [found[algorithm] for algorithm in ALGORITHMS]
    for plan in plans:
        count = plan["rounds"]
        above = "*" if claim is not None and count > claim else "+" if count > least else " "
        yield f"{count}{above}"
    for plan in plans:
        run = plan["predicted_cycles"], plan["cycles"]
        yield "-" if run[0] is None else "{}, {}".format(*run)


def rows(names, largest, progress):
    """Yield the rows of all tori, one for each number of ports."""
    todo = [(topology, ports) for topology in map(parse_topology, names)
            for ports in range(1, topology.ports + 1)]  # fmt: skip
    for done, (topology, ports) in enumerate(todo):
        progress(done, len(todo), f"{topology}, {ports} ports")
        yield row(topology, ports, largest)


def print_line(torus, ports, values):
    """Print one line of the table."""
    widths = (6, 8, 9, 9, 12, 12)
    print(f"{torus:>10} {ports:>5}", *map("{:>{}}".format, values, widths), flush=True)


def tori(names):
    """Return names of tori in order of their dimensions, then of their size.

    Raises
    ------
    InputError
        If a name is no torus, or has a side below 3.
    """
    found = {}
    for name in names:
        topology = parse_topology(name)
        sides = getattr(topology, "sides", (0,))
        if min(sides) < 3:
            raise InputError(f"Topology must be a torus with sides of 3 or more, not {name}")
        found[name] = len(sides), prod(sides)
    return sorted(found, key=found.__getitem__)


def main():
    """Print the table for the tori that the user chooses."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tori", nargs="*", metavar="SIDES", help="by default a selection")
    parser.add_argument(
        "--largest", type=int, metavar="N", help="nodes simulated at most (default 50, long 150)"
    )
    parser.add_argument("--long", action="store_true", help="more tori, and larger: minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    began, longer = time.perf_counter(), arguments.long
    try:
        names = tori(arguments.tori or SHORT + LONG * longer)
    except InputError as error:
        parser.error(str(error))
    found = []
    if not arguments.json:
        heads = ("bound", "theorem", "diagonal", "max-flow", "cycles", "cycles")
        print_line("torus", "ports", heads)
    with print_notices(), progress_bar("planning") as progress:
        for one in rows(names, arguments.largest or (150 if longer else 50), progress):
            found.append(one)
            if not arguments.json:
                print_line(one["torus"], one["ports"], cells(one))
    if arguments.json:
        print_json({"rows": found})
    else:
        print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
