"""Schedules of other systems: import and export."""

import time
from argparse import Namespace, _ActionsContainer
from typing import Any

from ..analysis.facts import in_words, schedule_facts
from ..planning.foreign import best_plan, import_placed
from ..schedule import Schedule, Switching
from ..schedule.file import BEGINNING, save
from ..schedule.foreign.export import BEGINNINGS, FORMATS, export_schedule
from .arguments import add_force, add_options, check_output, natural
from .output import print_report, progress_bar
from .parser import Commands, add_command
from .selection import checked_facts, choose_file_or_selection
from .selection_options import FILE_OR_TOPOLOGY, TOPOLOGY, add_selection

__all__ = ["add_commands", "add_import_options"]


#: Of more ranks not every node is printed; JSON has all.
MOST_RANKS = 64


def add_commands(commands: Commands) -> None:
    """Add the commands to a parser."""
    _add_import(commands)
    _add_export(commands)


def _add_import(commands: Commands) -> None:
    """Add import."""
    command = add_command(commands, "import", run_import)
    command.add_argument("file", metavar="FILE", help="MSCCL XML (compressed if it ends in .gz)")
    add_import_options(command)
    add_options(
        command,
        """
        --root RANK: the rank that broadcasts or reduces, if the file does not say so
        -o --output FILE: write the schedule there, as JSON (compressed if it ends in .gz)
        """,
        root=natural,
    )
    add_force(command)


def _add_export(commands: Commands) -> None:
    """Add export."""
    command = add_command(commands, "export", run_export)
    add_selection(command, topology_help=FILE_OR_TOPOLOGY)
    add_options(
        command,
        """
        --format: msccl (default): XML for MSCCL, RCCL and ASTRA-sim's converter; csv: a row for
            each block on a link
        -o --output FILE: write the file there (compressed if it ends in .gz)
        """,
        format={"choices": tuple(FORMATS), "default": "msccl"},
        output={"required": True},
    )
    add_force(command)


def add_import_options(parser: _ActionsContainer) -> None:
    """Add the options that say how a schedule of another system lies on a topology."""
    add_options(
        parser,
        f"""
        --topology TOPOLOGY: {TOPOLOGY}, with a node for each rank; may be left out for a file that
            export wrote
        --map MAP: which node each rank is: identity (default), gray (bits of a rank are Gray codes
            of coordinates: for recursive doubling on sides of 2 and 4), auto (look for a map under
            which all transfers are one hop), or a file with a node a line
        --switching: circuit: transfers between nodes that are not neighbours take paths that are
            held (default store-and-forward)
        """,
        topology={"dest": "onto"},
        map={"dest": "placement", "default": "identity"},
        switching={"choices": tuple(map(str, Switching)), "default": "store-and-forward"},
    )


def run_import(arguments: Namespace) -> None:
    """Import, check, and write a schedule."""
    began = time.perf_counter()
    if arguments.output:
        check_output(arguments, arguments.output, BEGINNING)
    with progress_bar("importing"):
        schedule, nodes = import_placed(
            arguments.file,
            arguments.onto,
            placement=arguments.placement,
            switching=arguments.switching,
            root=arguments.root,
        )
    facts = checked_facts(schedule)
    facts |= {"map": nodes.tolist(), "ours": _ours(schedule)}
    facts["seconds"] = round(time.perf_counter() - began, 3)
    if arguments.output:
        with progress_bar("writing the schedule"):
            save(schedule, arguments.output, force=arguments.force)
        facts["file"] = arguments.output
    shown = in_words(facts)
    shown |= {"map": _map_in_words(facts["map"]), "ours": _in_words(facts["ours"])}
    print_report(arguments, facts, shown)


def run_export(arguments: Namespace) -> None:
    """Plan or read, check, and write a schedule for another system."""
    began = time.perf_counter()
    check_output(arguments, arguments.output, BEGINNINGS[arguments.format])
    schedule = choose_file_or_selection(arguments).schedule
    facts = checked_facts(schedule)
    with progress_bar("exporting"):
        export_schedule(schedule, arguments.output, arguments.format, force=arguments.force)
    facts |= {"format": arguments.format, "file": arguments.output}
    facts["seconds"] = round(time.perf_counter() - began, 3)
    print_report(arguments, facts, in_words(facts))


def _ours(schedule: Schedule) -> dict[str, Any] | None:
    """What is to be known of our own best plan; None if there is none."""
    best = best_plan(schedule)
    if best is None:
        return None
    facts = schedule_facts(best)
    return {name: facts[name] for name in ("algorithm", "switching", "rounds", "unit", "tau")}


def _map_in_words(nodes: list[int]) -> str:
    """Which node each rank is, for people; the first of them where they are many."""
    if nodes == list(range(len(nodes))):
        return "rank r is node r"
    some = ", ".join(map(str, nodes[:MOST_RANKS]))
    return f"ranks 0, 1, .. are nodes {some}" + (", .." if len(nodes) > MOST_RANKS else "")


def _in_words(ours: dict[str, Any] | None) -> str:
    """Our own plan for people."""
    if ours is None:
        return "no plan"
    name, _, length = ours["unit"].partition(" of ")
    return (
        f"{ours['rounds']} {name} of {length} by {ours['algorithm']}: {ours['tau']} message times"
    )
