"""The commands ``import`` and ``export``: schedules in file formats of other systems."""

import time
from argparse import Namespace, _ActionsContainer

from ..analysis.facts import facts_text, schedule_facts
from ..contract.options import add_options, parse_non_negative_int
from ..fabric.choose import PlanPurpose, choose_schedules
from ..fabric.options import FILE_OR_TOPOLOGY, TOPOLOGY, add_selection_arguments
from ..fabric.spec import FabricSpec
from ..planning.foreign import best_own_schedule, import_with_placement
from ..schedule import Switching
from ..schedule.file import BEGINNING, save
from ..schedule.foreign.export import BEGINNINGS, FORMATS, export_schedule
from .arguments import FORCE, check_output
from .output import print_report, progress_bar
from .parser import Commands, add_command
from .selection import checked_facts, topology_as_file

__all__ = ["add_commands", "add_import_options"]


#: Most ranks whose nodes are printed; the JSON output has all.
MOST_RANKS = 64


def add_commands(commands: Commands) -> None:
    """Add the commands ``import`` and ``export`` and their arguments.

    `commands` has the parser of each command.
    """
    command = add_command(commands, "import", run_import)
    command.add_argument(
        "file", metavar="FILE", help="MSCCL XML file (compressed if its name ends in .gz)."
    )
    add_import_options(command)
    add_options(
        command,
        """
        --root RANK: Rank that broadcasts or reduces. Default: the one that the file names or
            implies.
        -o --output FILE: File for the schedule, as JSON (compressed if its name ends in .gz).
            Default: none is written.
        """,
        FORCE,
        root=parse_non_negative_int,
    )
    command = add_command(commands, "export", run_export)
    add_selection_arguments(command, topology_help=FILE_OR_TOPOLOGY)
    add_options(
        command,
        """
        --format: Format of the file: msccl is XML for MSCCL, RCCL and ASTRA-sim's converter, csv
            has a row for each block on a link. Default: msccl.
        -o --output FILE: File to write (compressed if its name ends in .gz).
        """,
        FORCE,
        format={"choices": tuple(FORMATS), "default": "msccl"},
        output={"required": True},
    )


def add_import_options(parser: _ActionsContainer) -> None:
    """Add to `parser` the options for the placement of an imported schedule on a topology."""
    add_options(
        parser,
        f"""
        --topology TOPOLOGY: {TOPOLOGY} It has a node for each rank. Default: the topology that is
            named in a file of torusfabric export.
        --map MAP: Node of each rank: identity, gray (bits of a rank are Gray codes of coordinates,
            for recursive doubling on sides of 2 and 4), auto (look for a map under which all
            transfers are one hop), or a file with one node a line. Default: identity.
        --switching: Switching of transfers between nodes that are not neighbours: circuit holds
            their paths. Default: store-and-forward, which refuses them.
        """,
        topology={"dest": "onto"},
        map={"dest": "placement", "default": "identity"},
        switching={"choices": tuple(map(str, Switching)), "default": "store-and-forward"},
    )


def run_import(arguments: Namespace) -> None:
    """Run ``import``: read a schedule of another system, check it, and write it in our format."""
    began = time.perf_counter()
    if arguments.output:
        check_output(arguments, arguments.output, BEGINNING)
    with progress_bar("importing"):
        schedule, nodes = import_with_placement(
            arguments.file,
            arguments.onto,
            placement=arguments.placement,
            switching=arguments.switching,
            root=arguments.root,
        )
    facts = checked_facts(schedule)
    best, ours, in_short = best_own_schedule(schedule), None, "no plan"
    if best is not None:
        known = schedule_facts(best)
        names = ("algorithm", "switching", "rounds", "unit", "message_times", "tau")
        ours = {name: known[name] for name in names}
        unit, _, length = known["unit"].partition(" of ")
        steps = f"{ours['rounds']} {unit} of {length}"
        in_short = f"{steps} by {ours['algorithm']}: {ours['tau']} message times"
    facts |= {"map": nodes.tolist(), "ours": ours}
    facts["seconds"] = round(time.perf_counter() - began, 3)
    if arguments.output:
        with progress_bar("writing the schedule"):
            save(schedule, arguments.output, force=arguments.force)
        facts["file"] = arguments.output
    some = ", ".join(map(str, facts["map"][:MOST_RANKS]))
    where = f"ranks 0, 1, .. are nodes {some}" + ", .." * (len(nodes) > MOST_RANKS)
    if facts["map"] == list(range(len(nodes))):
        where = "rank r is node r"
    print_report(arguments, facts, facts_text(facts) | {"map": where, "ours": in_short})


def run_export(arguments: Namespace) -> None:
    """Run ``export``: plan or read a schedule, check it, and write it for another system."""
    began = time.perf_counter()
    check_output(arguments, arguments.output, BEGINNINGS[arguments.format])
    topology_as_file(arguments)
    (chosen,) = choose_schedules(FabricSpec.of(vars(arguments)), PlanPurpose())
    schedule = chosen.schedule
    facts = checked_facts(schedule)
    with progress_bar("exporting"):
        export_schedule(schedule, arguments.output, arguments.format, force=arguments.force)
    facts |= {"format": arguments.format, "file": arguments.output}
    facts["seconds"] = round(time.perf_counter() - began, 3)
    print_report(arguments, facts, facts_text(facts))
