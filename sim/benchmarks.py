"""Benchmarks: counts beside the kept counts, or counts and timings beside another commit.

Counts are cycles (all collectives on six tori, five lengths of messages, beside the physical limit)
and hardware (LUTs, flip-flops, block RAMs and cycles of 15 whole fabrics). Costs of all collectives
on two tori, also in silicon, and clocks are measured only on request, because synthesis takes
minutes and place and route longer. By default all these are compared with the values kept in
``sim/measured/``, and none may be worse.

With --against, counts are compared with the counts of another commit: the cycles that it keeps, and
hardware and clocks that its own commands measure in the same run. Seconds of commands are measured
in the same way. Each figure is printed beside its allowance, the amount by which it may be worse.

A figure that is worse by more than its noise or its allowance is red, and the status is 2.

    bash scripts/benchmarks                       # counts
    bash scripts/benchmarks --against HEAD~1      # counts, and seconds of both commits
    bash scripts/benchmarks --against             # beside a fixed earlier commit
    bash scripts/benchmarks --only costs          # the page "What it costs"
    bash scripts/benchmarks --only clocks         # clocks of whole fabrics
    bash scripts/benchmarks --keep                # keep the measured counts; say why
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import benchmark_counts as counts
import benchmark_times as times
from rich.console import Console
from rich.table import Table

from torusfabric.cli.output import print_json, print_notices, progress_bar
from torusfabric.errors import InputError, TorusfabricError

KEPT = Path(__file__).parent / "measured" / "counts.json"

#: Sections that are compared with kept values, and sections that need another commit.
COUNTED = ("cycles", "hardware", "costs", "clocks")
TIMED = tuple(dict.fromkeys(timed.section for timed in times.TIMED))

#: Share by which a clock frequency may be below that of another commit.
CLOCK_ALLOWANCE = 0.05

#: Growth of LUTs that is allowed against another commit: of one fabric, and of all together. The
#: fabrics called "wires" may not grow.
LUT_ALLOWANCE, SUM_ALLOWANCE, ALL = 0.15, 0.05, "all fabrics, LUTs"

#: Multiple of the cycle limit up to which the summary counts a case as near.
NEAR = 1.5


class Allowance(NamedTuple):
    """The amount by which a figure may be worse.

    Parameters
    ----------
    share : float
        Share of the figure of comparison.
    extra : int
        Absolute amount, added to the share.
    """

    share: float = 0.0
    extra: int = 0

    def __str__(self) -> str:
        words = [f"{self.share:.0%}"] * bool(self.share) + [f"{self.extra}"] * bool(self.extra)
        return " and ".join(words) or "none"


#: NONE: the allowance of a count. ANY: the allowance of a figure that is only printed.
NONE, ANY = Allowance(), Allowance(float("inf"))


class Figure(NamedTuple):
    """A measured figure beside its figure of comparison, kept or of another commit.

    Parameters
    ----------
    section, name : str
        Section of the benchmarks, and name of the figure within the section.
    value : float or None
        Measured value; None for a figure that is no longer measured.
    kept : float or None
        Value of comparison; None for a new figure.
    allowance : Allowance
        Amount by which the value may be worse.
    """

    section: str
    name: str
    value: float | None
    kept: float | None
    allowance: Allowance = NONE

    @property
    def verdict(self) -> str:
        """Verdict in one word: ``worse``, ``better``, ``same``, ``new`` or ``gone``."""
        if self.value is None:
            return "gone"
        if self.kept is None:
            return "new"
        share, extra = self.allowance
        if self.section == "clocks":
            change = self.kept / self.value - 1
            return "worse" if change > share else "better" if change < -share else "same"
        if self.value > self.kept + self.kept * share + extra:
            return "worse"
        return "better" if self.value < self.kept else "same"


def figures(
    section: str,
    measured: dict[str, float],
    kept: dict[str, float],
    allowance: Callable[[str], Allowance] | Allowance = NONE,
) -> list[Figure]:
    """Return all figures that are measured or kept, each with its allowance."""
    allowed = allowance if callable(allowance) else lambda _: allowance
    names = dict.fromkeys([*measured, *kept])
    return [
        Figure(section, name, measured.get(name), kept.get(name), allowed(name)) for name in names
    ]


def figures_against(section: str, commit: str, progress: times.Progress) -> list[Figure]:
    """Return the figures of a section beside the figures of another commit."""
    mine = measure(section, progress)
    if section == "cycles":
        known = json.loads(times.git("show", f"{commit}:{KEPT.relative_to(times.ROOT)}"))
        return figures(section, mine, known["cycles"])
    program = times.installed(commit)
    theirs = MEASURES[section](progress, program)
    if section == "clocks":
        return figures(section, mine, theirs, Allowance(CLOCK_ALLOWANCE))
    for of in (mine, theirs):
        of[ALL] = sum(luts for name, luts in of.items() if name.endswith(", LUTs"))
    return figures(section, mine, theirs, hardware_allowance)


def failed(found: list[Figure], timed: list[times.Comparison]) -> bool:
    """Return True if a figure or a timing is worse than allowed, or a figure is gone."""
    return any(each.verdict in ("worse", "gone") for each in found) or any(
        each.worse for each in timed
    )


def hardware_allowance(name: str) -> Allowance:
    """Return the allowance of a hardware figure against another commit."""
    fabric, _, unit = name.rpartition(", ")
    if name == ALL:
        return Allowance(SUM_ALLOWANCE)
    if unit in ("LUTs", "GE"):
        return Allowance(0 if fabric.startswith("wires") else LUT_ALLOWANCE)
    if unit == "cycles":
        return Allowance(extra={case.name: case.cycles for case in counts.HARDWARE}.get(fabric, 0))
    return NONE if unit == "block RAMs" else ANY


#: Functions that measure the sections of hardware, given the program of a commit.
MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "hardware": counts.count_hardware,
    "costs": counts.count_costs,
    "clocks": counts.measure_clocks,
}


def measure(section: str, progress: times.Progress) -> dict[str, float]:
    """Return the figures of a section by name."""
    measured: dict[str, float] = MEASURES.get(section, counts.count_cycles)(progress)
    return measured


def read_kept(path: Path) -> dict[str, Any]:
    """Return the kept values: the figures of each section, and the version of Yosys."""
    return json.loads(path.read_text()) if path.exists() else {"version": 1}


def keep(path: Path, kept: dict[str, Any], found: list[Figure], sections: list[str]) -> None:
    """Write the measured values of some sections, and leave the other sections as they are."""
    for section in sections:
        kept[section] = {
            each.name: each.value
            for each in found
            if each.section == section and each.value is not None and each.name != ALL
        }
    if "hardware" in sections:
        kept["yosys"] = counts.yosys()
    path.write_text(json.dumps(kept, indent=1) + "\n")


def cycles_table(found: list[Figure]) -> Table:
    """Return cycles of each torus and collective by length, with their ratio to the cycle limit."""
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
    """Return cycles, their ratio to the limit, and the kept cycles if these differ."""
    assert figure.value is not None
    text = f"{figure.value:.0f} ({figure.value / limit:.2g})"
    return coloured(text + changed(figure), figure.verdict)


def changed(figure: Figure) -> str:
    """Return the kept value in words if the measured one differs, else an empty string."""
    return f", not {figure.kept:g}" if figure.verdict in ("worse", "better") else ""


def coloured(text: str, verdict: str) -> str:
    """Return a text in the colour of a verdict."""
    colour = {"worse": "red", "gone": "red", "better": "green"}.get(verdict)
    return f"[{colour}]{text}[/]" if colour else text


def counts_table(section: str, found: list[Figure], commit: str | None) -> Table:
    """Return the figures of a section, one a row; with allowances if there is another commit."""
    table = Table(title=section)
    for name in (
        ("what", "here", commit, "change", "allowed") if commit else ("what", "measured", "kept")
    ):
        table.add_column(name, justify="left" if name == "what" else "right")
    for each in found:
        here, kept = ("" if value is None else f"{value:.10g}" for value in (each.value, each.kept))
        row = [each.name, coloured(here or "gone", each.verdict), kept]
        if commit:
            change = f"{each.value / each.kept - 1:+.1%}" if each.value and each.kept else ""
            row += [change, "any" if each.allowance == ANY else str(each.allowance)]
        table.add_row(*row)
    return table


def times_table(commit: str, found: list[times.Comparison]) -> Table:
    """Return the timings of commands in this commit and in another."""
    table = Table(title=f"seconds of processor time, or node cycles a second, against {commit}")
    for name in ("section", "command", "here", commit, "ratio", "of pairs", "allowed"):
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
                      coloured(ratio or "new", verdict), spread,
                      f"{1 + each.allowed:.2f}")  # fmt: skip
    return table


def summary(section: str, found: list[Figure]) -> str:
    """Return the numbers of worse, better, new and gone figures of a section in one line."""
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
    """Return the sections to measure."""
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
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--against",
        nargs="?",
        const=times.START,
        metavar="COMMIT",
        help=f"compare with this commit, and seconds, too (default {times.START})",
    )
    parser.add_argument("--only", metavar="SECTION,..", help=", ".join(COUNTED + TIMED))
    parser.add_argument("--pairs", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--keep", action="store_true", help="keep the counts that are measured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def main() -> int:
    """Measure, compare and print; return the exit status."""
    arguments = parse()
    sections = chosen_sections(arguments)
    kept, found = read_kept(KEPT), []
    with print_notices(), progress_bar("measuring") as progress:
        for section in sections:
            if section in COUNTED and arguments.against:
                found += figures_against(section, arguments.against, progress)
            elif section in COUNTED:
                noise = Allowance(counts.CLOCK_NOISE if section == "clocks" else 0)
                measured = measure(section, progress)
                found += figures(section, measured, kept.get(section, {}), noise)
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
        table = cycles_table(mine) if whole else counts_table(section, mine, arguments.against)
        console.print(table)
    if timed:
        console.print(times_table(arguments.against, timed))
    counted_by = kept.get("yosys", counts.yosys())
    if "hardware" in sections and not arguments.against and counted_by != counts.yosys():
        console.print(f"[yellow]Hardware was counted by {counted_by}, not {counts.yosys()}[/]")
    for section in (name for name in COUNTED if name in sections):
        console.print(summary(section, [each for each in found if each.section == section]))
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TorusfabricError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(1)
