"""The command that runs a fabric cycle by cycle: simulate."""

from argparse import ArgumentParser, Namespace

from ..errors import InputError
from .arguments import add_force, natural, positive, real
from .hardware_options import add_fabric_options, add_top_options
from .host_simulation import run_host
from .parser import Commands, add_command
from .selection_options import add_selection
from .several_boards import add_boards_options, add_error_option, check_one_chip, run_boards
from .stream_simulation import run_streams
from .tables import add_fabric_file, add_tables_options

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the commands to a parser."""
    simulate = add_command(commands, "simulate", run_simulate)
    add_selection(simulate, several=True)
    add_fabric_options(simulate, any_length=True)
    add_top_options(simulate, "host", "stream")
    add_tables_options(simulate)
    add_fabric_file(simulate)
    simulate.add_argument(
        "--image", metavar="FILE", help="with --fabric, the image to load and to run"
    )
    _add_runs(simulate)
    simulate.add_argument(
        "--engine",
        choices=("auto", "amaranth", "compiled"),
        default="auto",
        help="what runs it (default auto: by the size of the work)",
    )
    simulate.add_argument(
        "--wave",
        "--vcd",
        metavar="FILE.vcd|.fst",
        help="write the waves there, and a save file for GTKWave beside them (.gtkw)",
    )
    simulate.add_argument(
        "--trace",
        metavar="FILE",
        help="write what arrives where and when there, as JSON lines (compressed if it ends in "
        ".gz)",
    )
    add_force(simulate)
    add_boards_options(simulate)
    add_error_option(simulate)


def _add_runs(simulate: ArgumentParser) -> None:
    """Add the arguments that say what is run."""
    simulate.add_argument(
        "--data-seed",
        metavar="N",
        type=natural,
        default=1,
        help="seed of the random payloads (default 1)",
    )
    simulate.add_argument(
        "--repeat",
        metavar="K",
        type=positive,
        default=1,
        help="collectives to run one after another, with fresh data and no reset (default 1)",
    )
    simulate.add_argument(
        "--through-port",
        action="store_true",
        help="move all words through the host port; by default a sample of 1,000 words a run each "
        "way, the others are put into the memories of nodes and taken from there",
    )
    simulate.add_argument(
        "--jobs",
        metavar="N",
        type=natural,
        help="runs of random length, root and operator after the usual ones, where --max-flits or "
        "several operators leave a choice, and always with --top stream (default 20)",
    )
    simulate.add_argument(
        "--stall",
        metavar="P",
        type=real,
        help="with --top stream: how likely it is that a port rests in a cycle, 0 to 0.95 "
        "(default 0)",
    )
    simulate.add_argument(
        "--faults",
        metavar="P",
        type=real,
        help="with --top stream: how likely it is that a packet of a run, or its command, is no "
        "good, so that the fabric must drop it, 0 to 1 (default 0)",
    )


def run_simulate(arguments: Namespace) -> None:
    """Simulate; the status is 2 if a word is wrong or the cycles are not those predicted."""
    if arguments.boards is not None:
        run_boards(arguments)
        return
    check_one_chip(arguments)
    if arguments.fabric and _has_streams(arguments.fabric):
        arguments.top = "stream"
    if arguments.through_port and arguments.top == "stream":
        raise InputError(
            "--through-port must be left out with --top stream, where all words go through ports"
        )
    if arguments.top == "stream":
        run_streams(arguments)
    elif arguments.stall is not None:
        raise InputError("--stall must come with --top stream, whose ports can rest")
    elif arguments.faults is not None:
        raise InputError("--faults must come with --top stream, which drops what is no good")
    else:
        run_host(arguments)


def _has_streams(fabric: str) -> bool:
    """Whether nodes of a fabric that exists have streams."""
    from ..rtl.loaded.image import read_fabric

    return read_fabric(fabric).frame.streams
