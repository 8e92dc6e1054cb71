"""The command ``torusfabric``: `main` parses a command line and runs the command.

`purposes.py` lists all commands. Each other module here adds the arguments of some commands and
runs them. A module is imported when one of its commands is chosen, so that a command does not wait
for imports that only other commands need.
"""

import argparse
import functools
import sys
from collections.abc import Sequence
from importlib import import_module

from ..toolchain.amaranth_schemas import postpone_schema_checks
from ..toolchain.extras import name_missing_extra
from ..toolchain.processes import interrupt_on_signals
from ..toolchain.version import __version__
from .failures import failure_of, flush_or_drop, prepare_streams, writes_to_standard_output
from .output import facts_on_standard_error, flush_output, print_error, print_notices
from .parser import CommandHelpFormatter, CommandParser, Parser, add_adapter_options
from .purposes import PURPOSES

__all__ = ["main"]

EPILOG = """\
examples:
  torusfabric algorithms
  torusfabric plan 6x8 allgather -o plan.json
  torusfabric simulate 8x8 allgather --width 32 --flits 4

exit status: 0 done, 1 bad input, 2 the work failed, 3 a tool is missing,
  130 interrupted, 143 terminated
errors: one line; with --verbose a second one names a section of docs/reference/errors.md
"""


def make_parser(*, complete: bool = True) -> argparse.ArgumentParser:
    """Return the parser of all commands.

    Parameters
    ----------
    complete : bool
        True to add the arguments of all commands now. If False, the arguments of a command are
        added when it is chosen, so that only the module of that command is imported.
    """
    parser = Parser(
        prog="torusfabric",
        description="Switch fabrics, free of contention, for collectives on torus networks.",
        epilog=EPILOG,
        formatter_class=CommandHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"torusfabric {__version__}")
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        title="commands",
        parser_class=CommandParser,
    )

    @functools.cache
    def add_arguments(module: str) -> None:
        import_module(f".{module}", __name__).add_commands(commands.choices)
        for name, command in listed:
            if command.module == module:
                add_adapter_options(commands.choices[name], name)

    listed = [entry for group in PURPOSES.values() for entry in group.items()]
    for name, command in listed:
        commands.add_parser(
            name,
            help=command.text,
            description=f"{command.text[0].upper()}{command.text[1:]}.",
            epilog="\n  ".join(["examples:", *command.examples]),
            formatter_class=CommandHelpFormatter,
            complete=functools.partial(add_arguments, command.module),
        )
    for _, command in listed if complete else ():
        add_arguments(command.module)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``torusfabric``; by default those of this process.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with interrupt_on_signals():
            prepare_streams()
            with print_notices():
                return _run_command(words)
    except BrokenPipeError:
        return 0  # the reader of standard output has ended, as ``head`` does
    except (Exception, KeyboardInterrupt) as error:
        found = failure_of(error)
        if found is None:
            raise
        print_error(found, words)
        return found.status
    finally:
        flush_or_drop()


def _run_command(words: list[str]) -> int:
    """Parse the words of a command line, run the command, and return its exit status.

    An error about a missing package names the extra that brings the package.
    """
    commands = {name: command for group in PURPOSES.values() for name, command in group.items()}
    extra = next((commands[word].extra for word in words if word in commands), "")
    postpone_schema_checks()
    with name_missing_extra(extra):
        try:
            arguments = make_parser(complete=False).parse_args(words)
        except SystemExit:  # after --help
            flush_output()
            raise
        with facts_on_standard_error(apart=writes_to_standard_output(arguments)):
            status = arguments.run(arguments) or 0
        flush_output()
        return status


if __name__ == "__main__":
    sys.exit(main())
