"""Nothing gets slower, larger or later unseen: counts beside those kept, timings beside a commit.

Counts are cycles (all collectives on six tori, five lengths of messages, beside the physical limit)
and hardware (tables and registers of whole fabrics and engines). Clocks take place and route, and
so long that they are measured only if named. All these are compared with what is kept in
``sim/measured/``. Seconds are compared with those of another commit, measured in the same run.

What is worse by more than its noise is red, and the status is 2.

    bash scripts/benchmarks                       # counts
    bash scripts/benchmarks --against HEAD~1      # counts, and seconds of both commits
    bash scripts/benchmarks --only clocks         # clocks of routers and whole fabrics
    bash scripts/benchmarks --keep                # keep what is measured, and say why
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import benchmark_counts as counts
import benchmark_times as times
from rich.console import Console
from rich.table import Table

from torusfabric.cli.output import notices_shown, print_json, progress_bar
from torusfabric.errors import InputError, TorusfabricError

KEPT = Path(__file__).parent / "measured" / "counts.json"

#: Sections that are compared with what is kept, and those that are compared with a commit.
COUNTED = ("cycles", "hardware", "clocks")
TIMED = tuple(dict.fromkeys(timed.section for timed in times.TIMED))

#: By how much a clock frequency may be lower for nothing but another placement.
CLOCK_NOISE = 0.1

#: Times the limit that are thought to be good.
NEAR = 1.5


class Figure(NamedTuple):
    """A count beside the one that is kept; None if there is none.

    Parameters
    ----------
    section, name : str
    value, kept : float or None
    """

    section: str
    name: str
    value: float | None
    kept: float | None

    @property
    def verdict(self) -> str:
        """``worse``, ``better``, ``same``, ``new`` or ``gone``."""
        if self.value is None:
            return "gone"
        if self.kept is None:
            return "new"
        if self.section == "clocks":
            change = self.kept / self.value - 1
            return (
                "worse" if change > CLOCK_NOISE else "better" if change < -CLOCK_NOISE else "same"
            )
        return "worse" if self.value > self.kept else "better" if self.value < self.kept else "same"


def figures(section: str, measured: dict[str, float], kept: dict[str, float]) -> list[Figure]:
    """What was measured beside what is kept; a figure that is gone is one too."""
    names = dict.fromkeys([*measured, *kept])
    return [Figure(section, name, measured.get(name), kept.get(name)) for name in names]


def failed(found: list[Figure], timed: list[times.Comparison]) -> bool:
    """Whether anything is worse, or not measured any more."""
    return any(each.verdict in ("worse", "gone") for each in found) or any(
        each.worse for each in timed
    )


def measure(section: str, progress: times.Progress) -> dict[str, float]:
    """The figures of a section by name."""
    if section == "cycles":
        return dict(counts.count_cycles(progress))
    if section == "hardware":
        return dict(counts.count_hardware(progress))
    return clocks(progress)


def clocks(progress: times.Progress) -> dict[str, float]:
    """Clock frequencies of single routers and of whole fabrics, in MHz."""
    import hardware_targets as targets

    found = {}
    for done, fabric in enumerate(targets.FABRICS):
        progress(done, len(targets.FABRICS), fabric.name)
        row = targets.fabric_row(fabric, lambda *_: None)
        found[f"{fabric.name}, MHz"] = row["measured"]
    return found


def read_kept(path: Path) -> dict[str, Any]:
    """What is kept: the figures of each section, and the version of Yosys."""
    return json.loads(path.read_text()) if path.exists() else {"version": 1}


def keep(path: Path, kept: dict[str, Any], found: list[Figure], sections: list[str]) -> None:
    """Keep what was measured of some sections, and leave the others as they are."""
    for section in sections:
        kept[section] = {
            each.name: each.value
            for each in found
            if each.section == section and each.value is not None
        }
    if "hardware" in sections:
        kept["yosys"] = counts.yosys()
    path.write_text(json.dumps(kept, indent=1) + "\n")


def cycles_table(found: list[Figure]) -> Table:
    """Cycles of each torus and collective by length, and how many times the limit they are."""
    table = Table(title="cycles, and times the physical limit, by flits of a message")
    for name in ("torus", "collective"):
        table.add_column(name)
    for length in counts.LENGTHS:
        table.add_column(str(length), justify="right")
    limits, cells = counts.limits(), {each.name: each for each in found}
    for torus in counts.TORI:
        for collective in counts.COLLECTIVES:
            names = [f"{torus} {collective} {length}" for length in counts.LENGTHS]
            row = [cell(cells[name], limits[name]) for name in names]
            table.add_row(torus, collective, *row)
        table.add_section()
    return table


def cell(figure: Figure, limit: int) -> str:
    """Cycles, and what they were, in words."""
    assert figure.value is not None
    text = f"{figure.value:.0f} ({figure.value / limit:.2g})"
    return coloured(text + changed(figure), figure.verdict)


def changed(figure: Figure) -> str:
    """What is kept, where it differs."""
    return f", not {figure.kept:g}" if figure.verdict in ("worse", "better") else ""


def coloured(text: str, verdict: str) -> str:
    """A text in the colour of a verdict."""
    colour = {"worse": "red", "gone": "red", "better": "green"}.get(verdict)
    return f"[{colour}]{text}[/]" if colour else text


def counts_table(section: str, found: list[Figure]) -> Table:
    """Other figures, each in a row."""
    table = Table(title=section)
    for name in ("what", "measured", "kept"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for each in found:
        shown = ["" if value is None else f"{value:g}" for value in (each.value, each.kept)]
        table.add_row(each.name, coloured(shown[0] or "gone", each.verdict), shown[1])
    return table


def times_table(commit: str, found: list[times.Comparison]) -> Table:
    """Commands of this commit and of another."""
    table = Table(title=f"seconds of processor time, or node cycles a second, against {commit}")
    for name in ("section", "command", "here", commit, "ratio", "of pairs"):
        table.add_column(name, justify="left" if name in ("section", "command") else "right")
    for each in found:
        medians = [
            "fails" if value is None else f"{value:.3g}" for value in (each.here, each.there)
        ]
        spread = f"{min(each.ratios):.2f}-{max(each.ratios):.2f}" if each.ratios else ""
        ratio = "" if each.ratio is None else f"{each.ratio:.2f}"
        better = each.ratio is not None and each.ratio < 1 - times.NOISE
        verdict = "worse" if each.worse else "better" if better else "same"
        table.add_row(each.timed.section, each.timed.command, *medians,
                      coloured(ratio or "new", verdict), spread)  # fmt: skip
    return table


def summary(section: str, found: list[Figure]) -> str:
    """How many figures of a section are worse, and better."""
    number = {name: sum(each.verdict == name for each in found)
              for name in ("worse", "better", "new", "gone")}  # fmt: skip
    text = f"{section}: {len(found)} figures, " + ", ".join(
        coloured(f"{count} {name}", name if count else "same") for name, count in number.items()
    )
    if section == "cycles":
        limits = counts.limits()
        near = sum(each.value <= NEAR * limits[each.name] for each in found if each.value)
        text += f"; {near} within {NEAR} times the limit"
    return text


def chosen_sections(arguments: argparse.Namespace) -> list[str]:
    """The sections that are measured."""
    sections = arguments.only.split(",") if arguments.only else ["cycles", "hardware"]
    if arguments.against and not arguments.only:
        sections = [*sections, *TIMED]
    for section in sections:
        if section not in COUNTED + TIMED:
            known = ", ".join(COUNTED + TIMED)
            raise InputError(f"Section must be one of {known}, not {section!r}")
        if section in TIMED and not arguments.against:
            raise InputError(f"Section {section} must come with --against COMMIT")
    return sections


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT", help="compare seconds with this commit")
    parser.add_argument("--only", metavar="SECTION,..", help=", ".join(COUNTED + TIMED))
    parser.add_argument("--pairs", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--keep", action="store_true", help="keep the counts that are measured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def main() -> int:
    """Measure, compare and print."""
    arguments = parse()
    sections = chosen_sections(arguments)
    kept, found = read_kept(KEPT), []
    with notices_shown(), progress_bar("measuring") as progress:
        for section in sections:
            if section in COUNTED:
                found += figures(section, measure(section, progress), kept.get(section, {}))
        timed = []
        if arguments.against:
            timed = times.compare(arguments.against, {*sections}, arguments.pairs, progress)
    status = 2 if failed(found, timed) else 0
    if arguments.keep:
        keep(KEPT, kept, found, [name for name in sections if name in COUNTED])
    if arguments.json:
        rows = [each._asdict() | {"verdict": each.verdict} for each in found]
        pairs = [each._asdict() | {"ratio": each.ratio, "worse": each.worse} for each in timed]
        print_json({"counts": rows, "seconds": pairs, "status": status})
        return status
    console = Console(width=None if sys.stdout.isatty() else 140)
    for section in (name for name in COUNTED if name in sections):
        mine = [each for each in found if each.section == section]
        whole = section == "cycles" and all(each.value is not None for each in mine)
        console.print(cycles_table(mine) if whole else counts_table(section, mine))
    if timed:
        console.print(times_table(arguments.against, timed))
    if "hardware" in sections and kept.get("yosys", counts.yosys()) != counts.yosys():
        console.print(f"[yellow]Hardware was counted by {kept['yosys']}, not {counts.yosys()}[/]")
    for section in (name for name in COUNTED if name in sections):
        console.print(summary(section, [each for each in found if each.section == section]))
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TorusfabricError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(1)
