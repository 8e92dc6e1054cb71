"""Circuit-switched all-gathers: claims of the paper, bounds, planned and simulated figures.

O. Delmas, S. Perennes, "Circuit-switched gossiping in the 3-dimensional torus networks", INRIA
research report 2930, 1996. In the cost model a round takes alpha, plus delta for each hop of its
longest path, plus tau for each unit of its longest message. A unit is the message of one node.
Each coefficient has a table: rounds (alpha), hops (delta) and units (tau).

Variants: "short" is for short messages (Propositions 5.8 and 5.17), "large" is for long messages,
delivered in pieces (6.3 and 6.4). The closed forms that the paper prints for tau agree with its own
recurrence only for sides of 7 and 49; the column "recurrence" solves the recurrence. Planned values
are measured on the checked schedule. Bounds: rounds by the load of arcs (Propositions 4.4, 4.5 and
4.7, not relaxed), hops by the diameter, units by the six ports through which a node receives.

Clock cycles of the hardware: one to start a round, one a hop, one a flit, and three more in all, of
which two lead from the sequencer to the nodes. They are predicted and simulated, with all words of
all nodes compared.

    python sim/circuit_gossip.py
    python sim/circuit_gossip.py --long              # with 343x343x343, planned and checked
    python sim/circuit_gossip.py --flits 4
"""

import argparse
import time
from fractions import Fraction
from math import ceil

from hardware_cycles import simulated_cycles
from paper_costs import tau_large, tau_short

import torusfabric as tf
from torusfabric.analysis.cost import schedule_cost
from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.program.timing import DISTRIBUTION
from torusfabric.topology import Torus

#: Largest i for which a torus with sides 7^i is planned by default.
PLANNED = 2


def claimed(i, large):
    """Return rounds, hops and units by the closed forms that the paper prints."""
    seventh = Fraction(1, 7)
    if large:
        rounds, ninths, factor, second = 5 * i, 13, Fraction(22, 49), 19 * 7
    else:
        rounds, ninths, factor, second = 4 * i, 12, Fraction(57, 49), 7**3
    diameter, nodes = 3 * (7**i // 2), 7 ** (3 * i)
    bracket = factor * (7 ** (i - 1) - 1) + second * seventh ** (2 * i) - seventh ** (3 * i)
    return rounds, Fraction(ninths * diameter, 9), bracket * nodes / 6


def case(i, large, deepest, largest, flits):
    """Return the figures of one torus and variant by name, without those that are not computed."""
    torus, recurrence = Torus((7**i,) * 3), (tau_large if large else tau_short)(i)
    schedule = tf.plan(torus, "allgather", algorithm="lee-code", large=large, check=False)
    found = dict(zip(("rounds", "hops", "units"), claimed(i, large), strict=True))
    found |= {"topology": str(torus), "variant": "large" if large else "short"}
    found |= {"recurrence": recurrence, "floor hops": torus.diameter}
    found["floor units"] = ceil(Fraction(torus.nodes - 1, torus.ports))
    if i > deepest:
        return found | {"floor rounds": tf.bound(schedule)}
    traffic = tf.check(schedule)
    cost = schedule_cost(schedule, traffic)
    found |= {"floor rounds": tf.bound(schedule, traffic), "planned rounds": cost.rounds}
    found |= {"planned hops": cost.delta, "planned units": cost.tau}
    found["predicted"] = cost.rounds + cost.delta + cost.tau * flits + 1 + DISTRIBUTION
    if torus.nodes <= largest:
        found["simulated"] = simulated_cycles(schedule, flits, width=32)
    return found


#: The tables: title, and for each column its heading, its width and the name of its figure.
TABLES = [
    (f"{title}:", [("claimed", 14, name), *extra, ("bound", 12, f"floor {name}"),
                   ("planned", 14, f"planned {name}")])
    for title, name, extra in (
        ("Rounds (alpha)", "rounds", []),
        ("Hops of the longest paths (delta)", "hops", []),
        ("Units of the longest messages (tau)", "units", [("recurrence", 14, "recurrence")]),
    )
]  # fmt: skip


def print_table(title, columns, cases):
    """Print one table; a dash stands for a figure that is not computed."""
    print(f"\n{title}\n")
    heads = "".join(f"{head:>{width}}" for head, width, _ in columns)
    print(f"{'torus':>12} {'variant':>8}{heads}")
    for found in cases:
        cells = "".join(f"{plain(found.get(name)):>{width}}" for _, width, name in columns)
        print(f"{found['topology']:>12} {found['variant']:>8}{cells}")


def plain(value):
    """Return a figure as text, whole or with two decimals."""
    if value is None:
        return "-"
    return str(int(value)) if value == int(value) else f"{float(value):.2f}"


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flits", type=int, default=1, metavar="L", help="flits of a message")
    parser.add_argument(
        "--largest",
        type=int,
        default=343,
        metavar="N",
        help="nodes simulated at most (default 343)",
    )
    parser.add_argument(
        "--long", action="store_true", help="plan and check 343x343x343 too: a minute, 1.5 GB"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.flits < 1:
        parser.error(f"Flits must be 1 or more, not {arguments.flits}")
    began = time.perf_counter()
    deepest = PLANNED + arguments.long
    todo = [(i, large) for i in (1, 2, 3) for large in (False, True)]
    cases: list[dict[str, object]] = []
    with print_notices(), progress_bar("planning") as progress:
        for i, large in todo:
            progress(len(cases), len(todo), f"{7**i}x{7**i}x{7**i}{', large' * large}")
            cases.append(case(i, large, deepest, arguments.largest, arguments.flits))
    if arguments.json:
        print_json({"flits": arguments.flits, "cases": cases})
        return
    for title, columns in TABLES:
        print_table(title, columns, cases)
    columns = [("predicted", 14, "predicted"), ("simulated", 14, "simulated")]
    length = f"{arguments.flits} flit{'s' * (arguments.flits > 1)}"
    print_table(f"Clock cycles for messages of {length}:", columns, cases)
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
