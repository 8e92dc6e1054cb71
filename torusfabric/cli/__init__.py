"""The command line."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

from .. import __version__
from ..errors import TorusfabricError
from ..toolchain.processes import Interrupted, ending_signals
from . import board, compare, hardware, monitor, planning, simulation, sweep
from .notices import notices_shown
from .parser import Parser

__all__ = ["main"]

EPILOG = """\
examples:
  torusfabric algorithms
  torusfabric plan 6x8 allgather -o plan.json
  torusfabric simulate 8x8 allgather --width 32 --flits 4

exit status: 0 done, 1 bad input, 2 the work failed, 3 a tool is missing,
  130 interrupted, 143 terminated
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(
        prog="torusfabric",
        description="Switch fabrics, free of contention, for collectives on torus networks.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"torusfabric {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    planning.add_commands(commands)
    compare.add_commands(commands)
    simulation.add_commands(commands)
    hardware.add_commands(commands)
    board.add_commands(commands)
    monitor.add_commands(commands)
    sweep.add_commands(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    try:
        with ending_signals(), notices_shown():
            arguments = make_parser().parse_args(argv)
            return arguments.run(arguments) or 0
    except TorusfabricError as error:
        print(f"torusfabric: {error}", file=sys.stderr)
        return error.status
    except Interrupted as error:
        # Amaranth complains of components that are left unused.
        warnings.filterwarnings("ignore", message=".* created but never used")
        print(f"torusfabric: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("torusfabric: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone; nothing must be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
