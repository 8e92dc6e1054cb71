"""Tables of Fragopoulou and Akl, recomputed beside the printed values.

P. Fragopoulou, S. G. Akl, "A Framework for Optimal Communication on the Multidimensional Torus
Network", Technical Report 94-363, Queen's University, Kingston, 1994.

Table 1: steps of the four collectives, by formula and as planned and checked here. (Its broadcast
is 2 too many: the text of section 5.2 has M + n floor(k / 2) - 1, as the plan has.)
Table 4: necklaces and subtrees. The necklaces of a torus with at most --limit nodes are built; for
a larger torus they are counted by the fixed points of rotations (Burnside). An asterisk marks a
value that differs from the printed one.

    python sim/necklace_tables.py
    python sim/necklace_tables.py --limit 100000 --largest 600
"""

import argparse
from math import gcd

import numpy as np

import torusfabric as tf
from torusfabric.algorithms.table.necklace.trees import Necklaces
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.topology import Torus

#: Table 4 as printed: n, k, nodes, nodes of nonfull necklaces, necklaces, smallest and largest
#: subtree, "k^n / 2n", ratio. (The column "k^n / 2n" is in fact (k^n - 1) / 2n.)
PRINTED = """
4 3 81 1 11 10 10 10.00 1.00
4 4 256 16 36 30 35 31.88 1.10
4 5 625 1 79 78 78 78.00 1.00
4 6 1296 16 166 160 165 161.88 1.10
4 7 2401 1 301 300 300 300.00 1.00
5 3 243 3 26 24 25 24.20 1.03
5 4 1024 34 108 99 107 102.30 1.04
5 5 3125 5 315 312 314 312.40 1.00
5 6 7776 36 784 774 783 777.50 1.01
5 7 16807 7 1684 1680 1683 1680.60 1.00
6 3 729 9 63 60 62 60.67 1.02
6 4 4096 76 352 335 351 341.25 1.03
6 5 15625 25 1307 1300 1306 1302.00 1.00
6 6 46656 96 3902 3880 3901 3887.92 1.00
6 7 117649 49 9813 9800 9812 9804.00 1.00
7 3 2187 3 158 156 157 156.14 1.00
7 4 16384 130 1182 1161 1181 1170.21 1.01
7 5 78125 5 5583 5580 5582 5580.29 1.00
7 6 279936 132 20008 19986 20007 19995.36 1.00
7 7 823543 7 58828 58824 58827 58824.43 1.00
8 3 6561 1 411 410 410 410.00 1.00
8 4 65536 256 4116 4080 4115 4095.94 1.00
8 5 390625 1 24415 24414 24414 24414.00 1.00
8 6 1679616 256 104996 104960 104995 104975.94 1.00
8 7 5764801 1 360301 360300 360300 360300.00 1.00
9 3 19683 27 1098 1092 1097 1093.44 1.00
9 4 262144 568 14602 14532 14601 14563.50 1.00
9 5 1953125 125 108523 108500 108522 108506.89 1.00
9 6 10077696 720 559928 559832 559927 559871.94 1.00
"""

#: Number of axes n and side k of each row of Table 1.
CASES = [(2, 3), (2, 4), (2, 5), (2, 6), (2, 7), (2, 8), (3, 2), (3, 3), (3, 4), (3, 5), (4, 2),
         (4, 3), (4, 4), (5, 3)]  # fmt: skip


def built(axes, side):
    """Return the figures of a torus from its built necklaces.

    The figures are nodes in nonfull necklaces, number of necklaces, and sizes of the smallest and
    of the largest subtree.
    """
    necklaces = Necklaces(Torus((side,) * axes))
    subtrees = np.bincount(necklaces.displacement[1:], minlength=necklaces.n_ports_used)
    nonfull = int((necklaces.necklace_period < necklaces.n_ports_used).sum())
    return nonfull, len(necklaces.generators) + 1, int(subtrees.min()), int(subtrees.max())


def counted(axes, side):
    """Return the figures of `built` for a side k >= 3, counted by Moebius inversion.

    The inversion takes the numbers of nodes that i rotations leave in place. i rotations permute
    the n digits in gcd(i, n) cycles of length n / gcd(i, n). Along a cycle the sign changes i /
    gcd(i, n) times. A digit that must equal its negative is 0, or k / 2.
    """
    exact: dict[int, int] = {}
    for period in (p for p in range(1, 2 * axes + 1) if 2 * axes % p == 0):
        cycles = gcd(period, axes)
        base = side if period // cycles % 2 == 0 else 2 - side % 2
        shorter = sum(count for p, count in exact.items() if period % p == 0)
        exact[period] = base**cycles - shorter
    full = exact[2 * axes] // (2 * axes)
    necklaces = sum(count // period for period, count in exact.items())
    return side**axes - exact[2 * axes], necklaces, full, necklaces - 1


def mark(value, printed):
    """Return a recomputed value as text, with an asterisk if it differs from the printed one."""
    return f"{value}{' ' if str(value) == printed else '*'}"


#: Names and headings of the columns of Table 4.
HEADS = {"axes": "n", "side": "k", "nodes": "nodes", "nonfull": "nonfull",
         "necklaces": "necklaces", "smallest": "smallest", "largest": "largest",
         "share": "(N-1)/2n", "ratio": "ratio"}  # fmt: skip


def table_4(limit, progress):
    """Yield the rows of Table 4, recomputed, as text in the form in which they are printed."""
    lines = PRINTED.strip().splitlines()
    for done, text in enumerate(lines):
        printed = text.split()
        axes, side = int(printed[0]), int(printed[1])
        progress(done, len(lines), f"necklaces for n = {axes}, k = {side}")
        nodes = side**axes
        by = built if nodes <= limit else counted
        counts = by(axes, side)
        share = (nodes - 1) / (2 * axes)
        values = [axes, side, nodes, *counts, f"{share:.2f}", f"{counts[3] / share:.2f}"]
        found = dict(zip(HEADS, map(str, values), strict=True))
        yield {**found, "by": by.__name__, "printed": dict(zip(HEADS, printed, strict=True))}


def print_table_4(rows):
    """Print Table 4, with printed values below a row where any differs."""
    print("\nTable 4: necklaces and subtrees (* differs from the printed value)\n")
    print(" ".join(f"{head:>11}" for head in HEADS.values()), "        by")
    for row in rows:
        printed = row["printed"]
        cells = [mark(row[name], printed[name]) for name in HEADS]
        print(" ".join(f"{cell:>11}" for cell in cells), f"{row['by']:>10}")
        if any(cell.endswith("*") for cell in cells):
            print(" ".join(f"{was + ' ':>11}" for was in printed.values()), f"{'printed':>10}")


def formulas(axes, side, chunks, ports):
    """Return the steps by Table 1 for M chunks (1 for a broadcast).

    The factor 2n of the formulas is read as the number of ports.
    """
    nodes = side**axes
    hops = axes * side ** (axes - 1) * (side * side // 4)
    return {
        "broadcast": 1 + axes * (side // 2) + 1,
        "allgather": -(-chunks * (nodes - 1) // ports),
        "scatter": -(-chunks * (nodes - 1) // ports),
        "alltoall": -(-chunks * hops // ports),
    }


#: The collectives of Table 1.
KINDS = ("broadcast", "allgather", "scatter", "alltoall")


def table_1(largest, progress):
    """Yield the rows of Table 1: steps as printed, and of planned schedules."""
    todo = [(axes, side) for axes, side in CASES if side**axes <= largest]
    for done, (axes, side) in enumerate(todo):
        progress(done, len(todo), f"steps for n = {axes}, k = {side}")
        torus = Torus((side,) * axes)
        necklaces = Necklaces(torus)
        chunks = necklaces.even_chunks
        planned = {kind: tf.plan(torus, kind, algorithm="necklace").round_count for kind in KINDS}
        printed = formulas(axes, side, chunks, necklaces.n_ports_used)
        yield {"axes": axes, "side": side, "chunks": chunks, "printed": printed,
               "planned": planned}  # fmt: skip


def print_table_1(rows):
    """Print the steps of planned schedules beside the formulas of Table 1."""
    print("Table 1: steps as printed / as planned and checked (broadcast: M = 1)\n")
    print(f"{'n':>3} {'k':>3} {'M':>3}", " ".join(f"{kind:>15}" for kind in KINDS))
    for row in rows:
        printed, planned = row["printed"], row["planned"]
        cells = [f"{printed[k]} / {mark(planned[k], str(printed[k]))}" for k in KINDS]
        numbers = f"{row['axes']:3} {row['side']:3} {row['chunks']:3}"
        print(numbers, " ".join(f"{cell:>15}" for cell in cells))


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=int, default=300_000, help="largest torus built (Table 4)")
    parser.add_argument("--largest", type=int, default=300, help="largest torus planned (Table 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with print_notices(), progress_bar("planning") as progress:
        first = list(table_1(arguments.largest, progress))
        if not arguments.json:
            print_table_1(first)
        fourth = list(table_4(arguments.limit, progress))
    if arguments.json:
        print_json({"table_1": first, "table_4": fourth})
    else:
        print_table_4(fourth)


if __name__ == "__main__":
    main()
