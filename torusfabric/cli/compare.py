"""The command that puts algorithms side by side."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..analysis.facts import steps_in_words
from ..analysis.volume import limit
from ..draw.charts import bar_charts, curve_chart
from ..draw.files import BEGINNINGS, require_converter, write_picture
from ..errors import InputError
from ..planning import Selection, import_schedule, require_hardware, select
from ..planning.choice import candidates
from ..program.program import require_width
from ..schedule import Schedule, Switching
from ..schedule.file import load
from ..toolchain.reading import listed_files
from .arguments import add_force, add_options, check_drawing
from .compare_together import HEADS, compare_fabrics, hardware_of, heads_for, print_uncounted
from .foreign import add_import_options
from .hardware_options import add_fabric_options, operators_of
from .output import print_json, print_line, print_table, progress_bar
from .parser import Commands, add_command
from .selection import parse_plan, parse_selection
from .selection_options import add_selection
from .table_files import add_table, check_table, write_table

if TYPE_CHECKING:
    from ..sweep.compare import Comparison, Entry
    from ..sweep.fault_costs import FaultCost

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command to a parser."""
    compare = add_command(commands, "compare", run_compare)
    add_selection(compare, algorithm=False, several=True)
    add_fabric_options(compare, compared=True)
    add_import_options(compare.add_argument_group("MSCCL XML after --plan"))
    text = """--plot FILE: draw the figures as bars, those of files first, over several lengths as
        curves; into FILE.svg, FILE.pdf or FILE.png
    """
    add_options(compare, text)
    add_table(compare)
    add_force(compare)
    text = "--target NAME: synthesize too, for this device; see the synth command\n"
    add_options(compare, text)


def run_compare(arguments: Namespace) -> None:
    """Compare, and print a table."""
    from ..sweep.compare import compare
    from ..sweep.fault_costs import fault_costs

    if arguments.target:
        from ..fpga.synthesis.target import find_target

        find_target(arguments.target)
    if arguments.plot:
        check_drawing(arguments, arguments.plot, BEGINNINGS)
        require_converter(arguments.plot)
    if arguments.flits is not None and arguments.max_flits is not None:
        raise InputError("--flits must be left out with --max-flits: give one of them")
    if not any(map(_is_foreign, listed_files(arguments.plan or ""))):
        for attribute, name in arguments.parser.given(arguments):
            if attribute in ("onto", "placement", "switching"):
                raise InputError(f"{name} must come with --plan and a file of MSCCL, FILE.xml")
    if isinstance(arguments.flits, tuple):
        _compare_lengths(arguments)
        return
    if arguments.plan is None and "," in (arguments.collective or ""):
        compare_fabrics(arguments)
        return
    check_table(arguments, ENTRY)
    selection, files = _selected(arguments)
    collective = selection.collective
    most = arguments.max_flits or arguments.flits
    require_hardware(selection.topology, collective, flits=most)
    hardware = hardware_of(arguments, collective)
    with progress_bar("planning") as progress:
        found = compare(selection, hardware, files=files, progress=progress)
        measured = hardware if hardware.max_flits else replace(hardware, flits=found.flits)
        faults = fault_costs(selection, measured, progress=progress)
    if arguments.plot:
        write_picture(arguments.plot, _plot(selection, found))
    if arguments.table:
        write_table(arguments.table, *_table(found.entries, arguments.target))
    _print_comparison(arguments, selection, found, faults)


def _print_comparison(
    arguments: Namespace, selection: Selection, found: "Comparison", faults: Sequence["FaultCost"]
) -> None:
    """Print what algorithms make of a selection, as a table or as JSON."""
    collective = selection.collective
    least = limit(selection.topology, collective, found.flits)
    if arguments.json:
        print_json(
            {
                "topology": str(selection.topology),
                "collective": collective.name,
                "width": arguments.width,
                "flits": found.flits,
                "limit": least,
                "target": arguments.target,
                "algorithms": [entry.to_json() for entry in found.entries],
                "misfits": found.misfits,
                **({"faults": [fault.to_json() for fault in faults]} if faults else {}),
            }
        )
        return
    lengths = f"{arguments.width} bits a flit, {found.flits} flits a message"
    print_line(f"{selection.topology} {collective}: {lengths}")
    times = min(entry.tau_bound for entry in found.entries)
    print_line(
        f"no schedule takes less than {times} message times, each what a link takes for a whole "
        f"message; no run less than {least} cycles"
    )
    print_table(*_table(found.entries, arguments.target))
    for entry in found.entries:
        if entry.reason:
            print_line(f"no hardware by {entry.algorithm}: {entry.reason}")
    print_uncounted(found.entries)
    for name, needs in found.misfits.items():
        print_line(f"{name} needs {needs}")
    if faults:
        print_line(f"what faults cost, by what takes the fewest cycles for {found.flits} flits:")
        luts = "LUTs a node" if arguments.target else "estimated LUTs a node"
        heads = ["faults", "algorithm", "steps or rounds", "message times", "cycles", luts]
        rows = []
        for one in faults:
            steps = steps_in_words({"rounds": one.rounds, "unit": one.unit})
            counts = [str(count) for count in (one.tau, one.cycles, one.node_luts)]
            rows.append([one.faults or "none", one.algorithm, steps, *counts])
        print_table(heads, rows)


def _compare_lengths(arguments: Namespace) -> None:
    """Compare cycles over several lengths."""
    if arguments.plan is not None or "," in (arguments.collective or ""):
        raise InputError("--flits must be one number for plans or several collectives, not a range")
    if arguments.target:
        raise InputError(f"--target must be left out with a range of flits, not {arguments.target}")
    check_table(arguments, LENGTH)
    selection, lengths = parse_selection(arguments), arguments.flits
    topology, collective = selection.topology, selection.collective
    require_width(arguments.width, operators_of(arguments, collective))
    require_hardware(topology, collective, flits=lengths[-1])
    curves: dict[str, list[int | None]] = {}
    with progress_bar("planning") as progress:
        for place, length in enumerate(lengths):
            progress(place, len(lengths), f"{length} flits")
            for row in candidates(selection, length):
                name = " ".join([row.algorithm, *row.options])
                curves.setdefault(name, [None] * len(lengths))[place] = row.cycles
    least = [limit(topology, collective, length) for length in lengths]
    title = f"{topology} {collective}: cycles from start to done"
    heads = [LENGTH, "limit", *curves]
    columns = zip(lengths, least, *curves.values(), strict=True)
    table = [["-" if value is None else str(value) for value in row] for row in columns]
    if arguments.table:
        write_table(arguments.table, heads, table, unit="cycles")
    if arguments.plot:
        write_picture(arguments.plot, curve_chart(title, lengths, curves, least))
    if arguments.json:
        print_json(
            {
                "topology": str(topology),
                "collective": collective.name,
                "flits": lengths,
                "limit": least,
                "cycles": curves,
            }
        )
        return
    print_line(title)
    print_table(heads, table)


def _selected(arguments: Namespace) -> tuple[Selection, dict[str, Schedule]]:
    """What is compared: a selection, and perhaps schedules of files, by their names."""
    plan = parse_plan(arguments, several=True)
    if plan is None:
        return parse_selection(arguments), {}
    paths = listed_files(plan)
    if len(set(paths)) < len(paths):
        raise InputError(f"Plans must be different files, not {plan}")
    files = {path: _read(arguments, path) for path in paths}
    first, *others = files
    schedule = files[first]
    for other in others:
        for what in ("topology", "collective"):
            mine, theirs = getattr(schedule, what), getattr(files[other], what)
            if mine != theirs:
                raise InputError(
                    f"{what.capitalize()} of {other} must be that of {first}, {mine}, not {theirs}"
                )
    return select(schedule.topology, schedule.collective), files


def _read(arguments: Namespace, path: str) -> Schedule:
    """The schedule of a file: ours, or MSCCL XML by its name."""
    if _is_foreign(path):
        return import_schedule(
            path, arguments.onto, placement=arguments.placement, switching=arguments.switching
        )
    return load(path)


def _is_foreign(path: str) -> bool:
    """Whether a file is MSCCL XML."""
    return path.removesuffix(".gz").endswith(".xml")


def _plot(selection: Selection, found: "Comparison") -> str:
    """The figures of all entries as bars."""
    entries = found.entries
    charts: dict[str, list[float | None]] = {
        "message times": [float(entry.tau) for entry in entries],
        "cycles": [entry.cycles for entry in entries],
        "LUTs": [entry.luts for entry in entries],
        "link time used (%)": [100 * entry.links["use"] for entry in entries],
    }
    return bar_charts(
        f"{selection.topology} {selection.collective}, {found.flits} flits a message",
        [entry.algorithm for entry in entries],
        {name: values for name, values in charts.items() if any(values)},
        marked=sum(entry.plan is not None for entry in entries),
    )


#: The columns of the table, by the fields of an entry.
COLUMNS = {
    "length": "of",
    "chunks": "chunks",
    "rounds": "steps or rounds",
    "limit": "bound",
    "delta": "delta",
    "tau": "message times",
    "stream": "as a stream",
    "use": "links used",
    "busiest": "busiest link",
    "unused": "idle links",
    "cycles": "cycles",
    **{name: head for name, head in HEADS.items() if name not in ("inputs", "memory_bits")},
}

#: The head of the first column, and of that over a range of lengths.
ENTRY, LENGTH = "algorithm", "flits"


def _table(entries: Sequence["Entry"], target: str | None) -> tuple[list[str], list[list[str]]]:
    """Heads and a row an algorithm; rounds of circuits and steps of one hop have other names."""
    heads, rows = heads_for(target, COLUMNS), []
    if all(entry.stream is None for entry in entries):
        del heads["stream"]
    for entry in entries:
        cells = {name: "-" if value is None else str(value) for name, value in vars(entry).items()}
        links = entry.links
        cells["use"] = f"{100 * links['use']:.1f} %"
        cells["busiest"] = f"{links['busiest']} in {links['busiest_rounds']}"
        cells["unused"] = f"{links['unused']} of {links['arcs']}"
        cells["length"] = entry.unit.partition(" of ")[2]
        cells["limit"] = f"{entry.bound}" + (f" ({entry.bound_where})" if entry.bound_where else "")
        name = entry.algorithm + (f" ({entry.plan})" if entry.plan else "")
        by = "steps" if entry.switching == Switching.STORE_AND_FORWARD else "circuits"
        rows.append([name, by, *(cells[head] for head in heads)])
    return [ENTRY, "by", *heads.values()], rows
