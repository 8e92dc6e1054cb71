"""Small hardware: LUTs and clocks of routers, and their targets.

Routers are synthesized alone, without endpoints, at 32 bits, for an ECP5 of speed grade 6, with
compact mapping. LUTs are those of the largest router class of a fabric. Clock frequencies are out
of context, in a harness of registers: the median of some placements, shared among up to four
classes. One placement differs from another by a tenth. As the classes differ little, this median
has less noise than that of one class. Beside it stand the lowest median of a class ("worst class"),
the extremes, and the interval that holds the median of all possible placements with 95 %
confidence. A target within this interval is neither surely met nor surely missed.

Where a target is missed, the last column is the best value that the measured netlist allows: the
fewest 4-input LUTs that could select from the words which arrive at each out-port bit, or the clock
frequency if the wires of the slowest path took no time.

Clocks of whole fabrics are measured by `clocks.py`.

The largest router of a fabric with several collectives is compared with the largest router that one
of them needs alone.

    python sim/hardware_targets.py --placements 16
"""

import argparse
import statistics
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

import torusfabric as tf
from torusfabric.cli.output import print_json, print_notices, progress_bar

WIDTH = 32
TARGET = "ecp5-25k"

#: Most router classes of a fabric that are placed and routed.
CLASSES = 4

#: Routers of other networks on chip: LUT4 and MHz, measured once with the same tools at 32 bits,
#: ECP5-6, and quoted here. The router of Mocarabe has three ports.
REFERENCES = {
    "Mocarabe": (272, 148),
    "S4NoC": (539, 184),
    "Argo": (655, 244),
    "FlooNoC": (1193, 76),
    "ProNoC": (2051, 71),
}


@dataclass(frozen=True)
class Case:
    """A fabric whose routers have targets: most LUTs, and least clock frequency.

    Parameters
    ----------
    name : str
        Name in the table.
    topology, collective, algorithm : str
        Schedule of the fabric.
    luts : int, optional
        Most LUTs of a router.
    share : float, optional
        Most LUTs of a router, as a share of a full crossbar of the same ports and width.
    mhz : int, optional
        Least clock frequency in MHz.
    """

    name: str
    topology: str
    collective: str
    algorithm: str
    luts: int | None = None
    share: float | None = None
    mhz: int | None = None


CASES = (
    Case("hard-wired 2-D", "8x8", "allgather", "hamiltonian", luts=141, mhz=400),
    Case("hard-wired 2-D, packets", "8x8", "allgather", "one-packet", luts=141, mhz=400),
    Case("hard-wired 3-D", "4x4x4", "allgather", "hamiltonian", mhz=400),
    Case("table-driven 2-D", "8x8", "allgather", "bufferless", luts=300, mhz=300),
    Case("table-driven 2-D, matching", "8x8", "allgather", "matching", luts=300, mhz=300),
    Case("lee-code gossip", "7x7x7", "allgather", "lee-code", share=0.60),
    Case("lee-code", "7x7x7", "broadcast", "lee-code", share=0.60),
)


@dataclass(frozen=True)
class EngineCase:
    """Several collectives in one fabric, with a target for their router.

    Parameters
    ----------
    name : str
        Name in the table.
    topology : str
        Topology of the fabric.
    collectives : str
        Names of the collectives, separated by commas.
    times : float
        Most LUTs of the largest router, as a multiple of the largest router that one of the
        collectives needs alone.
    """

    name: str
    topology: str
    collectives: str
    times: float


EVERY = "broadcast,scatter,gather,allgather,alltoall,reduce,reduce-scatter,allreduce"

#: Flits of the longest message of an engine.
MOST = 4

ENGINES = (
    EngineCase("two collectives", "8x8", "allgather,alltoall", 1.3),
    EngineCase("all collectives", "8x8", EVERY, 1.6),
)


def engine(topology, collectives):
    """Return the program of several collectives."""
    plans = [tf.plan(topology, name) for name in collectives.split(",")]
    return tf.compile(plans, max_flits=MOST)


def engine_row(case, progress):
    """Return the LUTs of an engine's largest router, and of the largest that one mode needs."""

    def worst(program):
        design = tf.emit(tf.Fabric(program, width=WIDTH)).routers()
        report = tf.synthesize(design, TARGET, progress=progress)
        return max(report.classes, key=lambda row: row["luts"])

    program = engine(case.topology, case.collectives)
    row = worst(program)
    dearest = max(worst(program.part(mode))["luts"] for mode in range(len(program.modes)))
    return {
        "router": case.name,
        "program": f"{case.topology} {case.collectives.replace(',', ', ')}",
        "what": "LUT4",
        "measured": row["luts"],
        "full_crossbar": row["full_crossbar_luts"],
        "share": row["luts"] / row["full_crossbar_luts"],
        "dearest": dearest,
        "parts": row["parts"],
        "limit": row["least_luts"],
        "target": int(case.times * dearest),
        "met": row["luts"] <= case.times * dearest,
    }


def routers(case):
    """Return the routers of a case, as a design with nothing around them."""
    schedule = tf.plan(case.topology, case.collective, algorithm=case.algorithm)
    return tf.emit(tf.Fabric(tf.compile(schedule), width=WIDTH)).routers()


def rows(case, placements, progress):
    """Yield the figures of a case: one row for LUTs, and one for the clock frequency."""
    design = routers(case)
    report = tf.synthesize(design, TARGET, progress=progress)
    worst = max(report.classes, key=lambda row: row["luts"])
    full = worst["full_crossbar_luts"]
    base = {
        "router": case.name,
        "program": f"{case.topology} {case.collective} {case.algorithm}",
        "classes": len(report.classes),
    }
    share = worst["luts"] / full
    cost = {"what": "LUT4", "measured": worst["luts"], "full_crossbar": full, "share": share}
    cost |= {"parts": worst["parts"], "limit": worst["least_luts"], "target": case.luts}
    if case.share is not None:
        cost["target"] = int(case.share * full)
    met = None if cost["target"] is None else cost["measured"] <= cost["target"]
    yield base | cost | {"met": met}
    # Classes differ only in the in-ports that feed each out-port, so that a few stand for all.
    names = [worst["name"], *(row["name"] for row in report.classes if row is not worst)][:CLASSES]
    seeds = range(1, 1 + -(-placements // len(names)))
    timed = tf.synthesize(design.routers(names), TARGET, pnr=True, seeds=seeds, progress=progress)
    rates = [mhz for row in timed.classes for mhz in row["fmax_by_seed"] if mhz is not None]
    limits = [row["logic_mhz"] for row in timed.classes if row["logic_mhz"] is not None]
    measured, limit = (statistics.median(v) if v else None for v in (rates, limits))
    met = None if case.mhz is None else measured is not None and measured >= case.mhz
    spread = [min(rates, default=None), max(rates, default=None)]
    medians = [row["fmax_mhz"] for row in timed.classes if row["fmax_mhz"] is not None]
    rate = {"what": "MHz", "measured": measured, "spread": spread, "placements": len(rates)}
    rate["worst_class"] = min(medians, default=None)
    rate["interval"] = interval(rates)
    yield base | rate | {"target": case.mhz, "limit": limit, "met": met}


def interval(rates):
    """Return the 95 % confidence interval of the median of all placements, from some placements.

    Its ends are order statistics, which hold for any distribution: the number of placements below
    the true median is binomial, with the standard deviation sqrt(n) / 2.
    """
    if not rates:
        return [None, None]
    ordered = sorted(rates)
    low = max(int(len(ordered) / 2 - 1.96 * len(ordered) ** 0.5 / 2) - 1, 0)  # counted from 0
    return [ordered[low], ordered[-1 - low]]


def render(found):
    """Return all rows as a table."""
    table = Table(title=f"routers at {WIDTH} bits, {TARGET}, speed grade 6, compact mapping")
    for head in ("router", "program", "", "target", "measured", "", "limit of the netlist"):
        table.add_column(head, justify="left" if head in ("router", "program", "") else "right")
    for row in found:
        sign, limit = ("<=", ">=") if row["what"] == "LUT4" else (">=", "<=")
        target = "" if row["target"] is None else f"{sign} {row['target']}"
        word = {None: "", True: "met", False: "missed"}[row["met"]] + _doubt(row)
        shown = row["met"] is False and row["limit"] is not None
        bound = f"{limit} {row['limit']:.0f}" if shown else ""
        measured = _measured(row)
        table.add_row(row["router"], row["program"], row["what"], target, measured, word, bound)
    table.add_section()
    for name, (luts, mhz) in REFERENCES.items():
        table.add_row(name, "quoted", "", "", f"{luts} LUT4, {mhz} MHz", "", "")
    return table


def _doubt(row):
    """Return a remark if the target lies within the confidence interval, else ""."""
    low, high = row.get("interval", (None, None))
    if row["target"] is None or low is None or not low <= row["target"] <= high:
        return ""
    return ", within noise"


def _measured(row):
    if row["measured"] is None:
        return "no path"
    if "share" in row:
        more = f"{100 * row['share']:.1f} % of {row['full_crossbar']}"
    else:
        more = "{:.0f}-{:.0f}, median within {:.0f}-{:.0f}, worst class {:.0f}".format(
            *row["spread"], *row["interval"], row["worst_class"]
        )
    return f"{row['measured']:.{0 if 'share' in row else 1}f} ({more})"


def main():
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--placements", type=int, default=16, help="of each fabric (default 16)")
    parser.add_argument("--only", metavar="TEXT", default="", help="routers with this in the name")
    parser.add_argument("--routers", action="store_true", help="single routers, no engines")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    engines = () if arguments.routers else ENGINES
    found = []
    with print_notices():
        for case in (case for case in CASES if arguments.only in case.name):
            with progress_bar(case.name) as bar:
                progress = lambda done, steps, text, b=bar, c=case: b(
                    done, steps, f"{c.name}, {text}"
                )
                found += rows(case, arguments.placements, progress)
        for several in (several for several in engines if arguments.only in several.name):
            with progress_bar(several.name) as bar:
                progress = lambda done, steps, text, b=bar, c=several: b(
                    done, steps, f"{c.name}, {text}"
                )
                found.append(engine_row(several, progress))
    if arguments.json:
        print_json({"rows": found, "references": REFERENCES})
    else:
        Console(width=None if sys.stdout.isatty() else 160).print(render(found))
    return 2 if any(row["met"] is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
