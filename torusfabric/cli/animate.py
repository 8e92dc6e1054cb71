"""The command that writes a page on which a schedule plays: animate."""

from argparse import Namespace

from ..analysis.facts import in_words, schedule_facts
from ..planning import compile
from .arguments import PAGE, add_force, check_output
from .command import Commands, add_command
from .hardware_options import add_flits_option
from .output import print_facts, print_json, progress_bar
from .selection_options import add_selection
from .several import add_mode, choose_mode

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command to a parser."""
    animate = add_command(commands, "animate", run_animate)
    add_selection(animate, several=True)
    add_mode(animate)
    add_flits_option(animate)
    animate.add_argument(
        "-o", "--output", metavar="FILE.html", required=True, help="the file to write"
    )
    add_force(animate)


def run_animate(arguments: Namespace) -> None:
    """Write the page."""
    from ..draw.animate import animation, check_size
    from ..toolchain.files import write_file

    check_output(arguments, arguments.output, PAGE)
    before = lambda topology, _: check_size(topology)
    schedule = choose_mode(arguments, flits=arguments.flits, before=before).schedule
    with progress_bar("checking") as progress:
        facts = schedule_facts(schedule, progress)
    with progress_bar("writing the page"):
        program = compile(schedule, flits=arguments.flits)
        text = animation(program)
    write_file(arguments.output, text)
    facts = {"file": arguments.output, "bytes": len(text.encode())} | facts
    if arguments.json:
        print_json(facts)
    else:
        print_facts(in_words(facts))
