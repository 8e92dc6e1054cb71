"""The command that writes a page on which a schedule plays: animate."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..analysis.facts import in_words, schedule_facts
from ..errors import InputError
from ..planning import compile
from .arguments import PAGE, add_force, add_options, check_drawing, natural, node_pair
from .hardware_options import add_flits_option
from .output import print_report, progress_bar
from .parser import Commands, add_command
from .selection_options import add_selection
from .several import add_mode, choose_mode
from .several_boards import add_drawn_boards, drawn_boards

if TYPE_CHECKING:
    from ..program import Program
    from ..rtl.word_path import Stage

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command to a parser."""
    animate = add_command(commands, "animate", run_animate)
    add_selection(animate, several=True)
    add_mode(animate)
    add_flits_option(animate)
    _add_cycles(animate)
    add_drawn_boards(animate)
    add_options(animate, "-o --output FILE.html: the file to write\n", output={"required": True})
    add_force(animate)


def _add_cycles(parser: ArgumentParser) -> None:
    """Add the options by which one word is followed through the hardware."""
    group = parser.add_argument_group("cycles")
    add_options(
        group,
        """
        --cycles: follow one flit through the hardware, cycle by cycle, with the code that makes
            each stage
        --word ORIGIN:DESTINATION: with --cycles: the nodes between which it goes (default those of
            a message with the longest path)
        --flit K: with --cycles: which flit of the message, from 0 (default 0)
        """,
        word=node_pair,
        flit=natural,
    )


def run_animate(arguments: Namespace) -> None:
    """Write the page."""
    from ..draw.animate import animation, check_size
    from ..toolchain.files import write_file

    check_drawing(arguments, arguments.output, PAGE)
    for name in ("word", "flit"):
        if getattr(arguments, name) is not None and not arguments.cycles:
            raise InputError(f"--{name} must come with --cycles")
    before = lambda topology, _: check_size(topology)
    schedule = choose_mode(arguments, flits=arguments.flits, before=before).schedule
    boards = drawn_boards(arguments, schedule.topology)
    with progress_bar("checking") as progress:
        facts = schedule_facts(schedule, progress)
    with progress_bar("writing the page"):
        program = compile(schedule, flits=arguments.flits)
        stages, code = _word(program, arguments) if arguments.cycles else ([], {})
        text = animation(program, stages, code, boards)
    write_file(arguments.output, text)
    facts = {"file": arguments.output, "bytes": len(text.encode())} | facts
    if arguments.cycles:
        facts["word"] = f"{stages[0].node}:{stages[-1].node}"
    said = {"stages": [stage._asdict() for stage in stages]} if arguments.cycles else {}
    print_report(arguments, facts | said, in_words(facts))


def _word(program: "Program", arguments: Namespace) -> tuple[list["Stage"], dict[str, str]]:
    """The stages of the word that is followed, and the code that makes them."""
    from ..program.follow import farthest
    from ..rtl.word_path import code_of, word_path  # here, since it imports all of the hardware

    origin, destination = arguments.word or farthest(program)
    stages = word_path(program, origin, destination, arguments.flit or 0)
    return stages, code_of(stages)
