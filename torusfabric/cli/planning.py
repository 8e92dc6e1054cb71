"""The commands ``algorithms``, ``plan``, ``check``, ``draw`` and ``animate``.

They plan schedules or read them from files, check them, and show them. They make no hardware.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..algorithms import CATALOGUE
from ..algorithms.spreading import Spreading, explain_spread, find_collisions
from ..analysis.facts import facts_text, merge_facts, schedule_facts
from ..collective import Operator, split_names
from ..contract.options import add_options, parse_non_negative_int
from ..errors import InputError, ScheduleError, TorusfabricError
from ..fabric.choose import (
    ModeChoice,
    PlanPurpose,
    choose_mode,
    choose_schedules,
    operators_of_spec,
)
from ..fabric.options import (
    FILE_OR_TOPOLOGY,
    add_flits_option,
    add_operator_options,
    add_selection_arguments,
)
from ..fabric.spec import FabricSpec
from ..planning.selection import with_faults
from ..schedule import Rounds, Schedule
from ..schedule.file import BEGINNING, save
from ..toolchain.files import write_text_file
from .arguments import FORCE, PAGES, check_drawing, check_output, node_pair
from .output import print_json, print_report, print_table, progress_bar
from .parser import Commands, add_command
from .selection import checked_facts, topology_as_file

if TYPE_CHECKING:
    from ..program import Program
    from ..rtl.word_path import PathStage
    from ..topology.boards import Boards

__all__ = ["add_commands"]

#: Declaration of the option for the mode to draw.
MODE_OPTION = """
--mode K: Which of several collectives or files is shown: its number, from 0, or its name.
    Example: allgather.
"""

#: Declaration of the option for the boards to draw.
BOARDS_OPTION = """
--boards AxB: Draw frames around this many equal blocks along each axis, each on a board, and bars
    across the links between boards. Default: none. Example: 2x1.
"""

#: Declaration of the option that mends a schedule.
SPREAD_OPTION = """
--spread FILE[,FILE..]: Delay transfers that meet on a link or come too early, until none do, and
    write the schedule to this file. Several schedules take one file each. Example: right.json.
"""

#: The most collisions in the output of a command: for people, and in JSON.
MOST_PRINTED, MOST_LISTED = 5, 1000


def add_commands(commands: Commands) -> None:
    """Add the commands ``algorithms``, ``plan``, ``check``, ``draw`` and ``animate``.

    Their arguments are added, too. `commands` has the parser of each command.
    """
    add_command(commands, "algorithms", run_algorithms)
    plan = add_command(commands, "plan", run_plan)
    add_selection_arguments(plan, plan=False, several=True)
    _add_message_options(plan)
    text = """-o --output FILE[,FILE..]: File for the schedule, as JSON (compressed if its name ends
        in .gz); several collectives take one file each. Default: none is written.
    """
    add_options(plan, text, FORCE)
    picture = add_command(commands, "draw", run_draw)
    add_selection_arguments(picture, several=True)
    _add_message_options(picture)
    add_options(
        picture.add_argument_group("picture"),
        MODE_OPTION,
        """
        --links: Draw a heat map of the links: which is idle in which step.
        --moving NODE: Draw how the message of this node spreads, as a picture that moves. Example:
            0.
        -o --output FILE: File for the picture: FILE.svg (compressed: FILE.svgz), FILE.pdf or
            FILE.png.
        """,
        BOARDS_OPTION,
        FORCE,
        moving=parse_non_negative_int,
        output={"required": True},
    )
    animate = add_command(commands, "animate", run_animate)
    add_selection_arguments(animate, several=True)
    _add_message_options(animate)
    _add_cycle_options(animate)
    text = "-o --output FILE.html: File for the page.\n"
    shown = animate.add_argument_group("picture")
    add_options(shown, MODE_OPTION, BOARDS_OPTION, text, FORCE, output={"required": True})
    checker = add_command(commands, "check", run_check)
    add_selection_arguments(checker, several=True, topology_help=FILE_OR_TOPOLOGY)
    _add_message_options(checker)
    add_options(checker, SPREAD_OPTION, FORCE)


def run_algorithms(arguments: Namespace) -> None:
    """Run ``algorithms``: print the list of all algorithms."""
    rows = [
        {
            "name": entry.name,
            "collectives": list(entry.collectives),
            "summary": entry.summary,
            "source": entry.source,
            "options": list(entry.options),
        }
        for entry in CATALOGUE
    ]
    if arguments.json:
        print_json({"algorithms": rows})
    else:
        print_table(
            ("algorithm", "collectives", "what it does", "source"),
            [(r["name"], " ".join(r["collectives"]), r["summary"], r["source"]) for r in rows],
        )


def run_plan(arguments: Namespace) -> None:
    """Run ``plan``: plan one schedule or several, check them, and write them to files."""
    began = time.perf_counter()
    files = _output_files(arguments)
    spec = FabricSpec.of(vars(arguments))
    chosen = choose_schedules(spec, PlanPurpose(arguments.flits))
    operators = _chosen_operators(spec, chosen)
    found = [_choice_facts(arguments, one, operators) for one in chosen]
    for one, facts, file in zip(chosen, found, files, strict=False):
        with progress_bar("writing the schedule"):
            save(one.schedule, file, force=arguments.force)
        facts["file"] = file
    facts = merge_facts(found) | _elapsed_seconds(began)
    print_report(arguments, facts, facts_text(facts))


def _add_message_options(parser: ArgumentParser) -> None:
    """Add the options for the length of messages, and for the operators of reductions."""
    add_flits_option(parser)
    add_operator_options(parser)


def _chosen_operators(spec: FabricSpec, chosen: Sequence[ModeChoice]) -> tuple[Operator, ...]:
    """Return the operators that the user names; none by default, unlike in a fabric."""
    operators = operators_of_spec(spec, (one.schedule.collective for one in chosen))
    return operators if spec.op or spec.signed else ()


def _choice_facts(
    arguments: Namespace, chosen: ModeChoice, operators: Sequence[Operator]
) -> dict[str, Any]:
    """Check the schedule of the mode `chosen`; return the names and values about it to print.

    `arguments` has the length of a message. `operators` are those of reductions.
    """
    return checked_facts(chosen.schedule, operators, flits=arguments.flits, why=chosen.why)


def _output_files(arguments: Namespace) -> list[str]:
    """Return the files to write, one for each collective, or none without ``--output``."""
    if not arguments.output:
        return []
    count = len(split_names(arguments.collective))
    files: list[str] = arguments.output.split(",") if count > 1 else [arguments.output]
    if len(set(files)) != count:
        raise InputError(
            f"--output must be {count} different files joined by commas, one for each of "
            f"{arguments.collective}, not {arguments.output}"
        )
    for file in files:
        check_output(arguments, file, BEGINNING)
    return files


def _spread_files(arguments: Namespace, count: int) -> list[str]:
    """Return the files of ``--spread``, one for each of `count` schedules, or none without it."""
    if arguments.spread is None:
        return []
    files: list[str] = arguments.spread.split(",") if count > 1 else [arguments.spread]
    if len(set(files)) != count:
        raise InputError(
            f"--spread must be {count} different files joined by commas, one for each schedule, "
            f"not {arguments.spread}"
        )
    for file in files:
        check_output(arguments, file, BEGINNING)
    return files


def _elapsed_seconds(began: float) -> dict[str, float]:
    """Return the entry ``seconds`` of the output: the time since the command began.

    `began` is the value of `time.perf_counter` at the beginning.
    """
    return {"seconds": round(time.perf_counter() - began, 3)}


def run_draw(arguments: Namespace) -> None:
    """Run ``draw``: plan a schedule, check it, and write a picture of it."""
    from ..draw import check_size
    from ..draw.files import FILE_SIGNATURES, require_converter, write_picture

    began = time.perf_counter()
    formats = (".svg", ".svgz") if arguments.moving is not None else (*FILE_SIGNATURES,)
    check_drawing(arguments, arguments.output, {name: FILE_SIGNATURES[name] for name in formats})
    require_converter(arguments.output)
    before = lambda topology, _: check_size(topology)
    spec = FabricSpec.of(vars(arguments))
    chosen = choose_mode(spec, arguments.mode, PlanPurpose(arguments.flits, before=before))
    schedule = chosen.schedule
    if arguments.links and arguments.moving is not None:
        raise InputError(
            "--moving and --links exclude each other, because --links shows all messages at "
            "once; leave one of them out"
        )
    if arguments.boards is not None and (arguments.links or arguments.moving is not None):
        raise InputError(
            "--boards excludes --links and --moving; leave out either --boards or the others"
        )
    boards = _framed_boards(arguments, schedule)
    with progress_bar("drawing"):
        text = _picture_text(schedule, arguments, boards)
    facts = _choice_facts(arguments, chosen, _chosen_operators(spec, [chosen]))
    write_picture(arguments.output, text)
    facts |= _elapsed_seconds(began) | {"file": arguments.output}
    print_report(arguments, facts, facts_text(facts))


def _framed_boards(arguments: Namespace, schedule: Schedule) -> "Boards | None":
    """Return the boards that get frames in the picture; None without ``--boards``."""
    from ..topology.boards import Boards

    given = arguments.boards
    return None if given is None else Boards.parse(given, schedule.topology)


def _picture_text(schedule: Schedule, arguments: Namespace, boards: "Boards | None") -> str:
    """Return the SVG text of the picture of `schedule` that the options in `arguments` select.

    The picture has a frame around each board of `boards`; no frames if this is None.
    """
    from ..draw import draw, heat_map

    if arguments.links:
        return heat_map(schedule)
    if arguments.moving is None:
        return draw(schedule, boards)
    from ..draw.moving import moving_picture
    from ..planning import compile

    return moving_picture(compile(schedule), arguments.moving)


def run_check(arguments: Namespace) -> None:
    """Run ``check``: check schedule files, or plan schedules and check them.

    Broken links with a file mean that they broke after planning: the schedule must not use them.
    """
    began = time.perf_counter()
    topology_as_file(arguments)
    links = _take_broken_links(arguments)
    spec = FabricSpec.of(vars(arguments))
    chosen = choose_schedules(spec, PlanPurpose(arguments.flits))
    operators = _chosen_operators(spec, chosen)
    if links:
        chosen = tuple(replace(one, schedule=_without_links(one.schedule, links)) for one in chosen)
    files = _spread_files(arguments, len(chosen))
    mended = [_mended_schedule(one.schedule) for one in chosen] if files else []
    if files:
        pairs = zip(chosen, mended, strict=True)
        chosen = tuple(replace(one, schedule=each.schedule) for one, each in pairs)
    found = [_facts_or_hint(arguments, one, operators) for one in chosen]
    for one, facts, file, each in zip(chosen, found, files, mended, strict=False):
        with progress_bar("writing the schedule"):
            save(one.schedule, file, force=arguments.force)
        facts |= {"file": file, "spread": each.to_json(MOST_LISTED)}
    facts = merge_facts(found) | _elapsed_seconds(began)
    shown = {name: value for name, value in facts.items() if name != "spread"}
    print_report(arguments, facts, facts_text(shown) | _spread_texts(mended))


def _mended_schedule(schedule: Schedule) -> Spreading:
    """Return a schedule without collisions, and where its transfers met."""
    with progress_bar("searching for rounds") as progress:
        return explain_spread(schedule, progress=progress)


def _facts_or_hint(
    arguments: Namespace, chosen: ModeChoice, operators: Sequence[Operator]
) -> dict[str, Any]:
    """Return the result of `_choice_facts`; an error that ``--spread`` mends says so.

    Raises
    ------
    ScheduleError
        If the schedule of the mode `chosen` has a fault.
    """
    try:
        return _choice_facts(arguments, chosen, operators)
    except ScheduleError as error:
        try:
            count = len(find_collisions(chosen.schedule))
        except TorusfabricError:
            raise error from None
        raise ScheduleError(
            f"{error}; {count} such fault{'s' * (count != 1)} in all, which `check --spread FILE` "
            "mends by delays"
        ) from error


def _spread_texts(mended: list[Spreading]) -> dict[str, str]:
    """Return lines about schedules that were spread, for people.

    ``mended[k]`` is the result for mode k.
    """
    lines: dict[str, str] = {}
    for number, each in enumerate(mended):
        name = f"spread {number}" if len(mended) > 1 else "spread"
        if each.bounds is None:
            lines[name] = "nothing to mend: no transfers meet, and the schedule is unchanged"
            continue
        before, after, bounds = each.rounds_before, each.schedule.round_count, each.bounds
        lines[name] = (
            f"{before} {each.schedule.switching.unit}{'s' * (before != 1)} before, {after} now; "
            f"these transfers take at least {bounds.rounds}"
        )
        lines[f"{name}: limits"] = (
            f"{bounds.load} for the busiest link or port ({each.busiest}), {bounds.chain} for the "
            "longest chain of transfers"
        )
        counts = ", ".join(f"{count} {kind}" for kind, count in each.kind_counts.items())
        lines[f"{name}: collisions"] = f"{len(each.collisions)} ({counts})"
        for place, collision in enumerate(each.collisions[:MOST_PRINTED], 1):
            lines[f"{name}: no. {place}"] = str(collision)
    return lines


def _take_broken_links(arguments: Namespace) -> list[str | Path]:
    """Return the broken links that ``check`` must test a schedule file for, and remove them.

    They are removed from the arguments, because the schedule was planned for the network with these
    links. Without a file (``--plan``), planning itself avoids broken links, and the result is
    empty.
    """
    if arguments.plan is None:
        return []
    links = [*arguments.broken_link, *map(Path, filter(None, [arguments.broken_links]))]
    arguments.broken_link, arguments.broken_links = [], None
    return links


def _without_links(schedule: Schedule, links: list[str | Path]) -> Rounds:
    """Return a schedule with the same transfers, on its network without the links in `links`.

    Its check fails if a transfer uses one of these links.
    """
    head = schedule.head | {"topology": with_faults(schedule.topology, links)}
    return Rounds(**head, transfers=tuple(schedule.rounds()))


def _add_cycle_options(parser: ArgumentParser) -> None:
    """Add to `parser` the options to follow one flit through the hardware."""
    group = parser.add_argument_group("cycles")
    add_options(
        group,
        """
        --cycles: Follow one flit through the hardware, cycle by cycle, with the code of each stage.
        --word ORIGIN:DESTINATION: with --cycles: nodes between which the flit goes. Default: those
            of a message with the longest path. Example: 0:21.
        --flit K: with --cycles: number of the flit in its message, from 0. Default: 0.
        """,
        word=node_pair,
        flit=parse_non_negative_int,
    )


def run_animate(arguments: Namespace) -> None:
    """Run ``animate``: write an HTML page that plays a schedule."""
    from ..draw import check_size
    from ..draw.animate import animation_page
    from ..planning import compile

    check_drawing(arguments, arguments.output, PAGES)
    before = lambda topology, _: check_size(topology, "Animation")
    spec = FabricSpec.of(vars(arguments))
    chosen = choose_mode(spec, arguments.mode, PlanPurpose(arguments.flits, before=before))
    schedule, operators = chosen.schedule, _chosen_operators(spec, [chosen])
    boards = _framed_boards(arguments, schedule)
    with progress_bar("checking") as progress:
        facts = schedule_facts(schedule, progress, operators)
    with progress_bar("writing the page"):
        program = compile(schedule, flits=arguments.flits, operators=operators)
        stages, code = _word_stages(program, arguments) if arguments.cycles else ([], {})
        text = animation_page(program, stages, code, boards)
    write_text_file(arguments.output, text)
    facts = {"file": arguments.output, "bytes": len(text.encode())} | facts
    if arguments.cycles:
        facts["word"] = f"{stages[0].node}:{stages[-1].node}"
    said = {"stages": [stage._asdict() for stage in stages]} if arguments.cycles else {}
    print_report(arguments, facts | said, facts_text(facts))


def _word_stages(
    program: "Program", arguments: Namespace
) -> tuple[list["PathStage"], dict[str, str]]:
    """Return the data for a page that follows one flit through the hardware.

    Returns
    -------
    stages : list of PathStage
        The hardware stages that the flit passes.
    code : dict of str to str
        The source code of the stages, by ``file:line``.
    """
    from ..program.follow import farthest_pair
    from ..rtl.word_path import stage_code, word_path  # here, since it imports all of the hardware

    origin, destination = arguments.word or farthest_pair(program)
    stages = word_path(program, origin, destination, arguments.flit or 0)
    return stages, stage_code(stages)
