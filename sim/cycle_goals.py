"""Cycles of collectives beside their goals, for messages of any length.

The goal is 1.03 times the flits on the busiest link, plus k times the diameter, plus 8 cycles: k
is 1, and more for a broadcast and for sums. Six tori, eight collectives and five lengths make 240
cases. Random cases are rings, tori with odd sides and sides of 2 and 3, and any lengths.

    python sim/cycle_goals.py                             # all of them: a minute or two
    python sim/cycle_goals.py --only scatter,gather
    python sim/cycle_goals.py --tori 3x9,2x2x5 --lengths 1,7,100
    python sim/cycle_goals.py --kept                      # the kept counts, without new ones
    python sim/cycle_goals.py --random 400                # random tori and lengths: some minutes

The status is 2 if a goal is missed.
"""

import argparse
import json
import math
import random
import sys
from fractions import Fraction
from math import floor
from typing import NamedTuple

import benchmark_counts as counts
import benchmarks
from rich.console import Console
from rich.table import Table

import torusfabric as tf
from torusfabric.analysis.volume import least_time
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.errors import InputError, TorusfabricError

#: Terms of a goal: factor of the flits on the busiest link, and constant in cycles.
OF_VOLUME, CONSTANT = Fraction(103, 100), 8

#: Most nodes and flits of a random case.
MOST_NODES, MOST_FLITS = 64, 400

#: Factor k of the diameter, for the collectives whose k is not 1.
HOPS = {"broadcast": 1.5, "reduce-scatter": 2, "reduce": 4}


class Case(NamedTuple):
    """The cycles of a case beside its goal.

    Parameters
    ----------
    torus, collective : str
        Names of the topology and of the collective.
    length : int
        Flits of a message.
    cycles, goal : int
        Clock cycles of the planned fabric, and the largest number that meets the goal.
    """

    torus: str
    collective: str
    length: int
    cycles: int
    goal: int

    @property
    def met(self) -> bool:
        """True if the goal is met."""
        return self.cycles <= self.goal


def goal(torus: str, collective: str, length: int) -> int:
    """Return the goal of a case in clock cycles.

    Examples
    --------
    >>> goal("8x8", "scatter", 4)
    80
    """
    topology = tf.parse_topology(torus)
    volume = least_time(topology, tf.parse_collective(collective)) * length
    hops = HOPS.get(collective, 1)
    if collective == "allreduce":
        hops = 2 if length == 1 else 3 if length <= 4 else 4
    return floor(OF_VOLUME * volume + Fraction(hops) * topology.diameter + CONSTANT)


def table(collective: str, cases: list[Case], lengths: list[int]) -> Table:
    """Return the table of the cases of a collective."""
    shown = Table(title=f"{collective}: cycles / goal, by flits of a message")
    shown.add_column("torus")
    for length in lengths:
        shown.add_column(str(length), justify="right")
    for torus in dict.fromkeys(case.torus for case in cases):
        row = [case for case in cases if case.torus == torus]
        shown.add_row(torus, *(cell(case) for case in row))
    return shown


def cell(case: Case) -> str:
    """Return cycles and goal of a case, red if the case misses its goal."""
    text = f"{case.cycles} / {case.goal}"
    return text if case.met else f"[red]{text}[/]"


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="COLLECTIVE,..", default=",".join(counts.COLLECTIVES))
    parser.add_argument("--tori", metavar="SIDES,..", default=",".join(counts.TORI))
    lengths = ",".join(map(str, counts.LENGTHS))
    parser.add_argument("--lengths", metavar="FLITS,..", default=lengths)
    parser.add_argument("--random", metavar="N", type=int, help="N random cases in place of these")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="seed of random cases")
    parser.add_argument("--kept", action="store_true", help="count nothing, take what is kept")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def draw(number: int, seed: int, collectives: list[str]) -> list[tuple[str, str, int]]:
    """Return `number` random cases: a torus of at most 64 nodes, a collective, and a length."""
    chance, found = random.Random(seed), list[tuple[str, str, int]]()
    while len(found) < number:
        sides = [chance.choice((2, 3, *range(2, 17))) for _ in range(chance.choice((1, 2, 2, 3)))]
        if not 2 < math.prod(sides) <= MOST_NODES:
            continue
        length = round(MOST_FLITS ** chance.random())
        found.append(("x".join(map(str, sides)), chance.choice(collectives), length))
    return found


def count(arguments: argparse.Namespace, lengths: list[int]) -> list[Case]:
    """Return all requested cases."""
    kept = json.loads(benchmarks.KEPT.read_text())["cycles"] if arguments.kept else None
    collectives = arguments.only.split(",")
    asked = [
        (torus, collective, length)
        for collective in collectives
        for torus in arguments.tori.split(",")
        for length in lengths
    ]
    if arguments.random is not None:
        asked = draw(arguments.random, arguments.seed, collectives)
    cases = []
    with print_notices(), progress_bar("counting cycles") as progress:
        for done, case in enumerate(asked):
            name = "{} {} {}".format(*case)
            progress(done, len(asked), name)
            if kept is not None and name not in kept:
                raise InputError(f"Case must be one that is kept, not {name}")
            cycles = kept[name] if kept else counts.cycles_of(*case)
            cases.append(Case(*case, cycles, goal(*case)))
    return cases


def main() -> int:
    """Count, compare and print; return the exit status."""
    arguments = parse()
    if not all(length.isdecimal() and int(length) for length in arguments.lengths.split(",")):
        raise InputError(f"Lengths must be numbers of flits, not {arguments.lengths}")
    lengths = [int(length) for length in arguments.lengths.split(",")]
    cases = count(arguments, lengths)
    met, status = sum(case.met for case in cases), 2 * any(not case.met for case in cases)
    if arguments.json:
        rows = [case._asdict() | {"met": case.met} for case in cases]
        print_json({"cases": rows, "met": met, "status": status})
        return status
    console = Console(width=None if sys.stdout.isatty() else 140)
    if arguments.random is not None:
        for case in cases:
            if not case.met:
                console.print("{} {} {}: ".format(*case), cell(case))
    for collective in arguments.only.split(",") if arguments.random is None else ():
        mine = [case for case in cases if case.collective == collective]
        console.print(table(collective, mine, lengths))
        console.print(f"{collective}: {sum(case.met for case in mine)} of {len(mine)} met\n")
    console.print(f"{met} of {len(cases)} met")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TorusfabricError as error:
        print(f"cycle_goals: {error}", file=sys.stderr)
        sys.exit(1)
