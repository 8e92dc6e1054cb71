"""The command ``compare``: a table of algorithms for one collective, or of fabrics for several.

There are four comparisons. `_compare_algorithms` has a row for each algorithm, with costs of
hardware. `_compare_collectives` has a row for each collective, by its best algorithm in a fabric of
its own. `_compare_fabrics` has a row for each choice of algorithms for several collectives in one
fabric. `_compare_lengths` has a row for each message length and a column for each algorithm.
"""

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis.facts import steps_text
from ..analysis.volume import cycle_limit
from ..collective import COLLECTIVES, split_names
from ..contract.options import add_options
from ..draw.charts import bar_charts, curve_chart
from ..draw.files import FILE_SIGNATURES, require_converter, write_picture
from ..errors import InputError
from ..fabric.choose import operators_of_spec, parse_selection, schedule_path, split_modes
from ..fabric.options import add_fabric_options, add_selection_arguments
from ..fabric.spec import FabricSpec
from ..planning import Selection, import_schedule, make_selection, require_hardware_memory
from ..planning.choice import rank_candidates
from ..program.program import require_width
from ..schedule import Schedule, Switching
from ..schedule.file import load
from ..toolchain.extras import install_command
from ..toolchain.reading import split_file_names
from ..topology import extra_faults, shared_network
from .arguments import FORCE, check_drawing
from .foreign import add_import_options
from .output import print_json, print_line, print_table, progress_bar
from .parser import Commands, add_command
from .table_files import check_table, write_table

if TYPE_CHECKING:
    from ..sweep.compare import HardwareSettings

__all__ = ["add_commands"]

#: Heads of the columns of hardware costs (GE: gate equivalents).
HEADS = {
    "inputs": "crossbar inputs",
    "classes": "classes",
    "rom_bits": "ROM bits",
    "memories": "memories a node",
    "memory_bits": "memory bits",
    "node_luts": "LUTs a node",
    "luts": "LUTs",
    "ffs": "FFs",
    "brams": "BRAMs",
    "fmax_mhz": "MHz",
    "node_gates": "GE a node",
    "gates": "GE",
}

#: Columns of synthesis, which are left out if no entry has them.
SYNTHESIZED = ("node_luts", "luts", "ffs", "brams", "fmax_mhz", "node_gates", "gates")

#: Device of ``--cost``.
COST_TARGET = "ecp5-85k"

#: Heads of the columns of a comparison of algorithms, by the keys of an entry.
COLUMNS = {
    "by": "by",
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

#: Heads of the columns of a comparison of collectives, by the keys of an entry.
COLLECTIVE_COLUMNS = {
    "algorithm": "algorithm",
    **{name: COLUMNS[name] for name in ("rounds", "limit", "use")},
    "cycle_limit": "cycle limit",
    "cycles": "cycles",
    **{name: head for name, head in HEADS.items() if name not in ("inputs", "node_gates")},
}

#: Head of the first column, in a comparison of algorithms, of collectives and of lengths.
ALGORITHM_HEAD, COLLECTIVE_HEAD, LENGTH_HEAD = "algorithm", "collective", "flits"

#: Word in the position of COLLECTIVE for each collective that needs no further data of the user.
ALL = "all"


class _TitledTable(NamedTuple):
    """A table with its column heads (`columns`), and lines of text to print above it (`lines`).

    `unit` is the unit of all columns except the first.
    """

    lines: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    unit: str = ""


class _Comparison(NamedTuple):
    """The result of a comparison: a JSON object, the SVG text of a picture, tables and notes.

    `faults` is a table of cycles and LUTs with each fault of the network; None without faults.
    """

    facts: Mapping[str, Any]
    picture: str
    table: _TitledTable
    notes: Sequence[str] = ()
    faults: _TitledTable | None = None


def add_commands(commands: Commands) -> None:
    """Add the command ``compare`` and its arguments; `commands` has the parser of each command."""
    compare = add_command(commands, "compare", run_compare)
    add_selection_arguments(compare, algorithm=False, several=True)
    add_fabric_options(compare, compared=True)
    add_import_options(compare.add_argument_group("MSCCL"))
    add_options(
        compare,
        """
        --plot FILE: Draw the figures as bars, files first, or over several lengths as curves; into
            FILE.svg, FILE.pdf or FILE.png.
        --table FILE.csv|.tex: Write the table as CSV or as LaTeX, by the ending of the file name.
        --target NAME[,asic]: Synthesize each fabric for this device, as the synth command does, and
            with asic for silicon as well. Example: ecp5-25k,asic.
        --cost: Synthesize each fabric for an FPGA (ecp5-85k or --target) with its clock, and for
            silicon.
        """,
        FORCE,
    )


def run_compare(arguments: Namespace) -> None:
    """Run ``compare``: compare, print a table, and write the picture and the table file."""
    arguments.targets = _parse_targets(arguments)
    if arguments.plot:
        check_drawing(arguments, arguments.plot, FILE_SIGNATURES)
        require_converter(arguments.plot)
    if arguments.flits is not None and arguments.max_flits is not None:
        raise InputError("--flits and --max-flits exclude each other; give one of them")
    if not any(map(_is_foreign, split_file_names(arguments.plan or ""))):
        for attribute, name in arguments.parser.changed_arguments(arguments):
            if attribute in ("onto", "placement", "switching"):
                raise InputError(
                    f"{name} is for a file of MSCCL; give it by --plan FILE.xml, or leave {name} "
                    "out"
                )
    every = arguments.plan is None and arguments.collective == ALL
    if every:
        arguments.collective = ",".join(name for name in COLLECTIVES if name != "pattern")
    if isinstance(arguments.flits, tuple):
        found = _compare_lengths(arguments)
    elif every:
        found = _compare_collectives(arguments)
    elif arguments.plan is None and len(split_names(arguments.collective or "")) > 1:
        found = _compare_fabrics(arguments)
    else:
        found = _compare_algorithms(arguments)
    if arguments.plot:
        write_picture(arguments.plot, found.picture)
    if arguments.table:
        write_table(arguments.table, *found.table[1:])
    if arguments.json:
        print_json(found.facts)
        return
    _print_with_title(found.table)
    for line in found.notes:
        print_line(line)
    if found.faults:
        _print_with_title(found.faults)


def _parse_targets(arguments: Namespace) -> tuple[str, ...]:
    """Return the targets of ``--target`` and ``--cost``: an FPGA, silicon, both, or none.

    Raises
    ------
    InputError
        If a target is unknown, there are several FPGAs, or ``--cost`` has an FPGA without a clock.
    """
    if not arguments.target and not arguments.cost:
        return ()
    from ..fpga.synthesis.target import SILICON, find_target

    names = arguments.target.split(",") if arguments.target else []
    silicon = [name for name in names if find_target(name).family == SILICON]
    devices = [name for name in names if name not in silicon]
    if len(silicon) > 1 or len(devices) > 1:
        raise InputError(
            f"--target must be one FPGA, {SILICON} or both, such as {COST_TARGET},{SILICON}, not "
            f"{arguments.target}"
        )
    if arguments.cost:
        devices, silicon = devices or [COST_TARGET], silicon or [SILICON]
        if find_target(devices[0]).device_family.pnr is None:
            raise InputError(
                "--cost needs a --target that nextpnr knows, for the clock, not "
                f"{arguments.target}; leave --target out, which means {COST_TARGET}"
            )
    return (*devices, *silicon)


def _print_with_title(table: _TitledTable) -> None:
    """Print a table and the lines above it."""
    for line in table.lines:
        print_line(line)
    print_table(table.columns, table.rows)


def _targets_text(arguments: Namespace) -> str | None:
    """Return the targets in one word, such as ``ecp5-85k,asic``; None without a target."""
    return ",".join(arguments.targets) or None


def _comparison_hardware(
    arguments: Namespace, selections: Sequence[Selection]
) -> "HardwareSettings":
    """Return the choices about hardware, such as the width, with which each schedule is built.

    Raises
    ------
    InputError
        If the fabric of one of the collectives would be too large for this machine.
    """
    from ..sweep.compare import HardwareSettings

    most = arguments.max_flits
    for one in selections:
        require_hardware_memory(one.topology, one.collective, flits=most or arguments.flits)
    spec = FabricSpec.of(vars(arguments))
    operators = operators_of_spec(spec, (one.collective for one in selections))
    return HardwareSettings(
        arguments.width,
        arguments.flits,
        operators,
        arguments.targets,
        max_flits=most,
        pnr=bool(arguments.cost),
    )


def _compare_algorithms(arguments: Namespace) -> _Comparison:
    """Compare the algorithms for one collective, and schedules from files if there are any."""
    from ..sweep.compare import compare
    from ..sweep.fault_costs import fault_costs

    check_table(arguments, ALGORITHM_HEAD)
    selection, files = _selection_and_files(arguments)
    topology, collective = selection.topology, selection.collective
    hardware, target = _comparison_hardware(arguments, [selection]), _targets_text(arguments)
    with progress_bar("planning") as progress:
        entries, flits, misfits = compare(selection, hardware, files=files, progress=progress)
        measured = hardware if hardware.max_flits else replace(hardware, flits=flits)
        faults = fault_costs(selection, measured, progress=progress)
    least = cycle_limit(topology, collective, flits)
    facts = {
        "topology": str(topology),
        "collective": collective.name,
        "width": arguments.width,
        "flits": flits,
        "limit": least,
        "target": target,
        "algorithms": entries,
        "misfits": misfits,
        **({"faults": faults} if faults else {}),
    }
    lengths = f"{arguments.width} bits a flit, {flits} flits a message"
    lines = [
        f"{topology} {collective}: {lengths}",
        f"no schedule takes less than {min(entry['tau_bound'] for entry in entries)} message times "
        f"(a link carries one message in 1 message time); the cycle limit is {least} cycles",
    ]
    names = [entry["algorithm"] for entry in entries]
    charts = {
        "message times": [float(entry["tau"]) for entry in entries],
        "cycles": [entry["cycles"] for entry in entries],
        "LUTs": [entry["luts"] for entry in entries],
        "GE": [entry["gates"] for entry in entries],
        "link time used (%)": [100 * entry["links"]["use"] for entry in entries],
    }
    title = f"{topology} {collective}, {flits} flits a message"
    notes = [
        *_hardware_notes(names, entries),
        *(f"{name} needs {misfits[name]}" for name in misfits),
    ]
    return _Comparison(
        facts,
        _bar_picture(title, names, charts, marked=len(files)),
        _TitledTable(lines, *_algorithm_table(entries)),
        notes,
        _fault_table(faults, flits, target) if faults else None,
    )


def _fault_table(
    faults: Sequence[Mapping[str, Any]], flits: int, target: str | None
) -> _TitledTable:
    """Return a table of cycles and LUTs: a row without faults, one for each fault, one for all.

    `faults` has the entries of `fault_costs`, one for each row, and `flits` is the length of a
    message. `target` is the device for which the LUTs were synthesized; if it is None, they are
    estimates.
    """
    luts = "LUTs a node" if target else "estimated LUTs a node"
    heads = ["faults", "algorithm", "steps or rounds", "message times", "cycles", luts]
    rows = []
    for one in faults:
        counts = (one["tau"], one["cycles"], one["node_luts"])
        rows.append([one["faults"] or "none", one["algorithm"], steps_text(one), *counts])
    title = f"cost of faults, by the algorithm with the fewest cycles for {flits} flits:"
    return _TitledTable([title], heads, rows)


def _compare_collectives(arguments: Namespace) -> _Comparison:
    """Compare collectives, each by its best algorithm in a fabric of its own."""
    from ..sweep.compare import compare_collectives

    check_table(arguments, COLLECTIVE_HEAD)
    selections = [parse_selection(one) for one in split_modes(FabricSpec.of(vars(arguments)))]
    hardware = _comparison_hardware(arguments, selections)
    with progress_bar("planning") as progress:
        entries, flits, misfits = compare_collectives(selections, hardware, progress=progress)
    topology = selections[0].topology
    named = {str(one.collective): one.collective for one in selections}
    for entry in entries:
        entry["cycle_limit"] = cycle_limit(topology, named[entry["collective"]], flits)
    facts = {
        "topology": str(topology),
        "width": arguments.width,
        "flits": flits,
        "target": _targets_text(arguments),
        "collectives": entries,
        "misfits": misfits,
    }
    names = [entry["collective"] for entry in entries]
    heads = _column_heads(entries, COLLECTIVE_COLUMNS)
    rows = [[entry["collective"], *_row_cells(entry | _entry_words(entry), heads)]
            for entry in entries]  # fmt: skip
    charts = {
        "cycles": [entry["cycles"] for entry in entries],
        **{HEADS[name]: [entry[name] for entry in entries] for name in ("luts", "gates")},
    }
    title = f"{topology}: {arguments.width} bits a flit, {flits} flits a message"
    return _Comparison(
        facts,
        _bar_picture(title, names, charts),
        _TitledTable([title], [COLLECTIVE_HEAD, *heads.values()], rows),
        [*_hardware_notes(names, entries), *(f"no {name}: {misfits[name]}" for name in misfits)],
    )


def _compare_fabrics(arguments: Namespace) -> _Comparison:
    """Compare fabrics of several collectives, which differ in their algorithms."""
    from ..sweep.compare import compare_fabrics

    spec = FabricSpec.of(vars(arguments))
    selections = [parse_selection(one) for one in split_modes(spec)]
    modes = [f"{one.collective} by, cycles" for one in selections]
    check_table(arguments, modes[0])
    hardware = _comparison_hardware(arguments, selections)
    with progress_bar("planning") as progress:
        fabrics, flits = compare_fabrics(selections, hardware, progress=progress)
    network = shared_network(one.topology for one in selections)
    faults = [extra_faults(network, one.topology) for one in selections]
    collectives = [one.collective for one in selections]
    facts = {
        "topology": str(network),
        "collective": ",".join(map("{0.name}{1}".format, collectives, faults)),
        "width": arguments.width,
        "max_flits": flits,
        "target": _targets_text(arguments),
        "fabrics": fabrics,
    }
    names = ", ".join(map("{}{}".format, collectives, faults))
    title = f"{network} {names}: {arguments.width} bits a flit, up to {flits} flits a message"
    rows, charts = [], dict[str, list[Any]]()
    heads = _column_heads(fabrics, HEADS)
    for fabric in fabrics:
        cycles = fabric["cycles"] or ["-"] * len(modes)
        by = [f"{name} {n}" for name, n in zip(fabric["algorithms"], cycles, strict=True)]
        rows.append([*by, *_row_cells(fabric, heads)])
    for mode, collective in enumerate(collectives):
        known = (fabric["cycles"] for fabric in fabrics)
        charts[f"cycles of {collective}"] = [cycles and cycles[mode] for cycles in known]
    for name in ("inputs", "memory_bits", "luts", "gates"):
        charts[HEADS[name]] = [fabric[name] for fabric in fabrics]
    algorithms = [", ".join(fabric["algorithms"]) for fabric in fabrics]
    return _Comparison(
        facts,
        _bar_picture(title, algorithms, charts),
        _TitledTable([title], [*modes, *heads.values()], rows),
        list(_hardware_notes(algorithms, fabrics)),
    )


def _compare_lengths(arguments: Namespace) -> _Comparison:
    """Compare the cycles of all algorithms at several message lengths."""
    if arguments.plan is not None or len(split_names(arguments.collective or "")) > 1:
        raise InputError("--flits must be one number for plans or several collectives, not a range")
    if arguments.target:
        raise InputError(
            "--target compares hardware for one length; give --flits one number in place of a "
            f"range, or leave --target {arguments.target} out"
        )
    check_table(arguments, LENGTH_HEAD)
    spec, lengths = FabricSpec.of(vars(arguments)), arguments.flits
    selection = parse_selection(spec)
    topology, collective = selection.topology, selection.collective
    require_width(arguments.width, operators_of_spec(spec, [collective]))
    require_hardware_memory(topology, collective, flits=lengths[-1])
    curves: dict[str, list[int | None]] = {}
    with progress_bar("planning") as progress:
        for place, length in enumerate(lengths):
            progress(place, len(lengths), f"{length} flits")
            for row in rank_candidates(selection, length):
                name = " ".join([row.algorithm, *row.options])
                curves.setdefault(name, [None] * len(lengths))[place] = row.cycles
    least = [cycle_limit(topology, collective, length) for length in lengths]
    title = f"{topology} {collective}: cycles from start to done"
    heads = [LENGTH_HEAD, "cycle limit", *curves]
    columns = zip(lengths, least, *curves.values(), strict=True)
    table = [["-" if value is None else str(value) for value in row] for row in columns]
    facts = {
        "topology": str(topology),
        "collective": collective.name,
        "flits": lengths,
        "limit": least,
        "cycles": curves,
    }
    picture = curve_chart(title, lengths, curves, least)
    return _Comparison(facts, picture, _TitledTable([title], heads, table, "cycles"))


def _selection_and_files(arguments: Namespace) -> tuple[Selection, dict[str, Schedule]]:
    """Return the selection to compare for, and the schedules in the files of ``--plan``.

    Returns
    -------
    selection : Selection
        Topology and collective of the user, or of the files.
    files : dict of str to Schedule
        The schedule in each file, by the path of the file; empty without ``--plan``.
    """
    spec = FabricSpec.of(vars(arguments))
    plan = schedule_path(spec, several=True)
    if plan is None:
        return parse_selection(spec), {}
    paths = split_file_names(plan)
    if len(set(paths)) < len(paths):
        raise InputError(f"Plans must be different files, not {plan}")
    files = {path: _read_schedule(arguments, path) for path in paths}
    first, *others = files
    schedule = files[first]
    for other in others:
        for what in ("topology", "collective"):
            mine, theirs = getattr(schedule, what), getattr(files[other], what)
            if mine != theirs:
                raise InputError(
                    f"{what.capitalize()} of {other} must be {mine}, as in {first}, not {theirs}"
                )
    return make_selection(schedule.topology, schedule.collective), files


def _read_schedule(arguments: Namespace, path: str) -> Schedule:
    """Read the schedule of the file `path`, in our format, or in MSCCL XML if its name ends so.

    For MSCCL XML, `arguments` has the topology, the placement of ranks, and the switching.
    """
    if _is_foreign(path):
        return import_schedule(
            path, arguments.onto, placement=arguments.placement, switching=arguments.switching
        )
    return load(path)


def _is_foreign(path: str) -> bool:
    """Return True if `path` is named like an MSCCL XML file: plan.xml or plan.xml.gz."""
    return path.removesuffix(".gz").endswith(".xml")


def _bar_picture(
    title: str, names: Sequence[str], charts: Mapping[str, list[float | None]], *, marked: int = 0
) -> str:
    """Return a picture with a bar chart for each quantity in `charts` that has a known value.

    `title` is the title of the picture. Each chart has a bar for each of `names`; the first
    `marked` bars have a different colour.
    """
    known = {figure: values for figure, values in charts.items() if any(values)}
    return bar_charts(title, names, known, marked=marked)


def _hardware_notes(names: Iterable[str], entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield notes below a table of algorithms, as text.

    For each entry without hardware, a note gives the reason; `names` has the names of the entries.
    Classes, ROMs and memories can be counted only if the extra ``hardware`` is installed; without
    it, a note gives the command that installs the extra.
    """
    for name, entry in zip(names, entries, strict=True):
        if entry["reason"]:
            yield f"no hardware by {name}: {entry['reason']}"
    if any(entry["classes"] is None and entry["reason"] is None for entry in entries):
        yield f"classes, ROMs and memories are counted after {install_command('hardware')}"


def _column_heads(entries: Sequence[Mapping[str, Any]], heads: Mapping[str, str]) -> dict[str, str]:
    """Return the heads of the columns to print, keyed by the name of the fact in each column.

    These are `heads`, without the columns of synthesis that no entry has.
    """
    unknown = {name for name in SYNTHESIZED if all(one[name] is None for one in entries)}
    return {name: head for name, head in heads.items() if name not in unknown}


def _row_cells(entry: Mapping[str, Any], names: Iterable[str]) -> list[object]:
    """Return the values in `entry` of the columns `names`, with a dash for an unknown value."""
    return ["-" if entry[name] is None else entry[name] for name in names]


def _algorithm_table(
    entries: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[list[object]]]:
    """Return the column heads, and the cells of each row, of a comparison of algorithms.

    `entries` has the facts about one schedule each, by their keys in JSON.
    """
    heads, rows = _column_heads(entries, COLUMNS), []
    if all(entry["stream"] is None for entry in entries):
        del heads["stream"]
    for entry in entries:
        name = entry["algorithm"] + (f" ({entry['plan']})" if entry["plan"] else "")
        rows.append([name, *_row_cells({**entry, **_entry_words(entry)}, heads)])
    return [ALGORITHM_HEAD, *heads.values()], rows


def _entry_words(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of an entry that a table shows in words, by the names of their columns."""
    links, where = entry["links"], entry["bound_where"]
    return {
        "by": "steps" if entry["switching"] == Switching.STORE_AND_FORWARD else "circuits",
        "use": f"{100 * links['use']:.1f} %",
        "busiest": f"{links['busiest']} in {links['busiest_rounds']}",
        "unused": f"{links['unused']} of {links['arcs']}",
        "length": entry["unit"].partition(" of ")[2],
        "limit": f"{entry['bound']}" + (f" ({where})" if where else ""),
    }
