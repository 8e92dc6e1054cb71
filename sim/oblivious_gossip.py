"""Oblivious all-gathers: claims of the paper, bounds, planned steps and hardware cycles.

U. Meyer, J. F. Sibeyn, "Oblivious Gossiping on Tori", J. Algorithms 42 (2002).

Table I: running times by the formulas of section 5, beside the printed values; an asterisk marks
values that differ. (The printed values for d = 3 follow with 0.333 for 1/3 and 0.1666 for 1/6.) A
fourth row also counts double receives, which the formula for the one-packet algorithm omits.

Steps: as claimed, the lower bound, as planned and checked, and clock cycles of the hardware in
simulation, with every word compared. "data" is the data on the busiest link, in messages; it
compares schedules whose steps differ in size. The last column is the size of a step. An oblivious
fabric takes three cycles more than it has steps. One-packet plans exceed the claimed steps by their
double receives: for three axes the paper counts none, and for two odd sides it gives no
construction.

Figures 1 to 5 are drawn with -o. The size of figure 3 is not printed; 5x6 is drawn, and 6x6x4 for
figures 4 and 5, layer by layer.

    python sim/oblivious_gossip.py
    python sim/oblivious_gossip.py --largest 64 -o figures/
"""

import argparse
import math
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from hardware_cycles import simulated_cycles
from paper_costs import time_dependent, time_hamiltonian, time_one_packet

import torusfabric as tf
from torusfabric.algorithms.oblivious.one_packet.plan import rod_feed
from torusfabric.algorithms.oblivious.redistribute import Rectangle, forwarding_tables
from torusfabric.analysis.cost import step_length
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.collective import parse_collective
from torusfabric.draw import make_picture
from torusfabric.draw.page import paint_picture
from torusfabric.errors import TorusfabricError
from torusfabric.schedule import Pattern, Switching
from torusfabric.toolchain.files import require_writable, write_text_file
from torusfabric.topology import Torus

ALLGATHER = parse_collective("allgather")

RATIOS = (Fraction(1, 100), Fraction(1, 10), Fraction(1))

#: Table I as printed: for each side, a list for each of the three algorithms, with d = 2 and d = 3
#: for each ratio.
PRINTED = {
    4: ([4, 11, 4, 12, 8, 21], [4, 11, 5, 14, 12, 43], [6, 19, 7, 21, 12, 37]),
    16: ([65, 689, 70, 751, 128, 1365], [65, 702, 77, 887, 192, 2730],
         [73, 818, 79, 891, 144, 1620]),
    64: ([1034, 44110, 1126, 48041, 2048, 87346], [1044, 44958, 1229, 56754, 3072, 174719],
         [1067, 46152, 1162, 50264, 2112, 91390]),
}  # fmt: skip

FORMULAS = {"T_stv": time_dependent, "T_opt": time_hamiltonian, "T_one": time_one_packet}

CASES = {
    "hamiltonian": "4x4 5x5 4x5 6x7 6x8 8x8 9x9 16x16 32x32 3x3x3 3x4x5 4x4x4 6x6x6 3x3x3x3 "
    "4x4x4x4",
    "redistribute": "4x3 4x5 6x5 6x7 8x9 12x11 20x3",
    "one-packet": "4x4 5x5 4x5 6x7 7x7 8x8 9x9 16x16 32x32 3x3x3 3x3x4 6x6x3 6x6x6 9x9x9 4x4x4x4",
}


def nearest(value):
    """Return the nearest integer, halves rounded up."""
    return math.floor(value + Fraction(1, 2))


def table_1():
    """Yield a row of Table I, printed and recomputed, for each side and algorithm."""
    todo = [(d, r) for r in RATIOS for d in (2, 3)]
    for n, rows in PRINTED.items():
        for (name, formula), printed in zip(FORMULAS.items(), rows, strict=True):
            values = [nearest(formula(n, d, r, 1)) for d, r in todo]
            yield {"side": n, "algorithm": name, "values": values, "printed": printed}
        exact = [nearest(time_one_packet(n, d, r, 1, exact=True)) for d, r in todo]
        yield {"side": n, "algorithm": "in full", "values": exact, "printed": None}


def print_table_1(rows):
    """Print Table I: recomputed values, printed ones below where any differs."""
    print("Table I: times in units of s t_feed, for d = 2 and d = 3 (* differs from the print)\n")
    heads = [f"r = {float(r):g}, d = {d}" for r in RATIOS for d in (2, 3)]
    print(f"{'n':>3} {'':10}", " ".join(f"{head:>15}" for head in heads))
    differing = 0
    for row in rows:
        values, printed = row["values"], row["printed"]
        if printed is None:
            line(row["side"], "  in full", [f"{v} " for v in values])
            continue
        marks = ["*" if a != b else " " for a, b in zip(values, printed, strict=True)]
        differing += marks.count("*")
        cells = [f"{v}{mark}" for v, mark in zip(values, marks, strict=True)]
        line(row["side"], row["algorithm"], cells)
        if "*" in marks:
            line("", "  printed", [f"{v} " for v in printed])
    print(f"\n{differing} of 54 entries differ, all of them for d = 3.")


def line(n, name, cells):
    """Print a row of Table I."""
    print(f"{n:>3} {name:10}", " ".join(f"{cell:>15}" for cell in cells))


def claimed(algorithm, sides):
    """Return the steps that the paper claims, rounded up; None if it gives leading terms only."""
    nodes, d = math.prod(sides), len(sides)
    if algorithm == "hamiltonian":
        return nodes // 2
    if algorithm == "redistribute":
        odd = next(side for side in sides if side % 2)
        return nodes // 2 + 1 + odd
    if d == 2:
        rods = sides[0] if sides[0] % 2 == 0 else sides[1]
        return math.floor(Fraction(nodes, 4) + Fraction(rods, 2) + Fraction(nodes // rods, 2) + 2)
    if d == 3 and len(set(sides)) == 1:
        return math.ceil(Fraction(nodes, 2 * d) + Fraction(nodes, 2 * sides[0]) + 2)
    return None


def steps(largest, progress):
    """Yield the steps of each algorithm and torus: claimed, bounded, planned and simulated."""
    todo = [(algorithm, name) for algorithm, names in CASES.items() for name in names.split()]
    for done, (algorithm, name) in enumerate(todo):
        progress(done, len(todo), f"{name}, {algorithm}")
        torus = Torus([int(side) for side in name.split("x")])
        schedule = tf.plan(torus, ALLGATHER, algorithm=algorithm, check=False)
        report = tf.check(schedule)
        yield {
            "algorithm": algorithm,
            "torus": name,
            "claimed": claimed(algorithm, torus.sides),
            "bound": tf.bound(schedule, report),
            "planned": report.rounds,
            "cycles": simulated_cycles(schedule) if torus.nodes <= largest else None,
            "data": sum(report.round_blocks) / schedule.chunks,
            "step": step_length(schedule, report),
        }


def print_steps(rows):
    """Print the rows of `steps` as soon as they are computed."""
    heads = ["claimed", "bound", "planned", "cycles", "data"]
    print("\nSteps, and what crosses the busiest link, in messages")
    print("(cycles: of one flit a block, simulated, all words right; - where not simulated)\n")
    print(f"{'algorithm':13} {'torus':>9}", *(f"{head:>8}" for head in heads), " in steps of")
    for row in rows:
        cells = [
            row["claimed"] or "O(.)",
            row["bound"],
            row["planned"],
            "-" if row["cycles"] is None else row["cycles"],
            f"{float(row['data']):.2f}",
        ]
        text = [f"{row['algorithm']:13} {row['torus']:>9}", *(f"{cell:>8}" for cell in cells)]
        print(*text, f" {row['step']}", flush=True)


def pattern(sides, algorithm, feed, inject, count):
    """Return a pattern schedule that a figure shows."""
    torus = Torus(sides)
    return Pattern(
        topology=torus, collective=ALLGATHER, algorithm=algorithm,
        switching=Switching.STORE_AND_FORWARD, ports=torus.ports,
        chunks=int(inject.max()) + 1, steps=count, feed=feed, inject=inject,
    )  # fmt: skip


def figure_1():
    """A Hamiltonian cycle on a 6x8 torus, black, and its complement, gray: one as well."""
    picture = make_picture(tf.plan("6x8", ALLGATHER, algorithm="hamiltonian"))
    first, second = (key.colours[0] for key in picture.keys)
    paper = {first: "#202124", second: "#b8bcc2"}
    return recoloured(picture, lambda colour: paper[colour])


def figure_2():
    """Partial Hamiltonian cycles on a 6x7 torus; nodes of column 5 lie on one of them."""
    torus = Torus((6, 7))
    feed, start = forwarding_tables(torus, Rectangle.from_torus(torus))
    inject = start - 2 * np.arange(torus.nodes)[:, None]
    count = tf.plan(torus, ALLGATHER, algorithm="redistribute").steps
    return make_picture(pattern((6, 7), "redistribute", feed, inject, count))


def figure_3():
    """Two cycles, each of which comes within distance one of all nodes, on a 5x6 torus."""
    feed = rod_feed(5, 6)
    count = tf.plan("5x6", ALLGATHER, algorithm="one-packet").steps
    return make_picture(pattern((5, 6), "one-packet", feed, np.zeros(feed.shape, int), count))


def figure_5():
    """All cycles of the one-packet algorithm on a 6x6x4 torus, without the copies."""
    picture = make_picture(tf.plan("6x6x4", ALLGATHER, algorithm="one-packet"))
    return only(picture, [key.colours[0] for key in picture.keys if key.text.startswith("cycle")])


def figure_4():
    """One cycle of the one-packet algorithm on a 6x6x4 torus."""
    picture = figure_5()
    return only(picture, [picture.keys[0].colours[0]])


def recoloured(picture, change):
    """Return a picture in other colours."""
    panels = [
        replace(p, strokes=[replace(s, colour=change(s.colour)) for s in p.strokes])
        for p in picture.panels
    ]
    keys = [replace(key, colours=list(map(change, key.colours))) for key in picture.keys]
    return replace(picture, panels=panels, keys=keys)


def only(picture, colours):
    """Return a picture with the cycles of some colours alone, without arrows."""
    panels = [
        replace(p, strokes=[s for s in p.strokes if s.colour in colours and not s.arrow])
        for p in picture.panels
    ]
    keys = [key for key in picture.keys if key.colours[0] in colours]
    return replace(picture, panels=panels, keys=keys)


def figures(folder):
    """Draw the figures into a folder, and return their paths."""
    paths = []
    for number, figure in enumerate((figure_1, figure_2, figure_3, figure_4, figure_5), 1):
        picture = figure()
        words = (figure.__doc__ or "").split(".")[0]
        path = Path(folder) / f"figure-{number}.svg"
        write_text_file(
            path, paint_picture(replace(picture, title=f"Figure {number}", subtitle=words))
        )
        paths.append(path)
    return paths


def main():
    """Print both tables, and draw the figures if a folder is given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--largest", type=int, default=30, metavar="N", help="nodes simulated at most (default 30)"
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for figures 1 to 5, as SVG")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    began = time.perf_counter()
    if arguments.output:
        try:
            Path(arguments.output).mkdir(parents=True, exist_ok=True)
            require_writable(Path(arguments.output) / "figure-1.svg")
        except (OSError, TorusfabricError) as error:
            parser.error(str(error))
    with print_notices(), progress_bar("planning") as progress:
        found = steps(arguments.largest, progress)
        if arguments.json:
            print_json({"table_1": list(table_1()), "steps": list(found)})
        else:
            print_table_1(table_1())
            print_steps(found)
    if arguments.output:
        paths = figures(arguments.output)
        if not arguments.json:
            print("", *paths, sep="\n")
    if not arguments.json:
        print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
