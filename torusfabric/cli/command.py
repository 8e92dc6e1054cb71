"""How every command is added to the command line."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..toolchain.notices import LOGGER
from .parser import Parser

__all__ = ["CommandParser", "Commands", "add_command"]

#: The parsers of all commands, by name.
Commands: TypeAlias = Mapping[str, ArgumentParser]


class CommandParser(Parser):
    """A parser that has its arguments only once it parses: what adds them takes long to import.

    Parameters
    ----------
    complete : function of ()
        Adds the arguments, if they are missing.
    """

    def __init__(self, *args: Any, complete: Callable[[], None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._complete = complete

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the arguments, and parse."""
        self._complete()
        return super().parse_known_args(args, namespace)


def add_command(
    commands: Commands, name: str, run: Callable[[Namespace], int | None]
) -> ArgumentParser:
    """Give a command what runs it, and the arguments that all commands have.

    Parameters
    ----------
    run : function of (Namespace) -> int or None
        Does the work; returns the exit status.

    Returns
    -------
    ArgumentParser
        That of the command, to which the module adds more.
    """
    parser = commands[name]
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    much = parser.add_mutually_exclusive_group()
    much.add_argument(
        "--quiet", action="store_true", help="say nothing on standard error but errors"
    )
    much.add_argument(
        "--verbose",
        action="store_true",
        help="say on standard error what each part is estimated to take, and what it took",
    )

    def run_at_level(arguments: Namespace) -> int | None:
        LOGGER.setLevel(_level(arguments))
        return run(arguments)

    parser.set_defaults(run=run_at_level)
    return parser


def _level(arguments: Namespace) -> int:
    """What is said: errors alone, what takes long too, or all there is."""
    if arguments.quiet:
        return logging.ERROR
    return logging.DEBUG if arguments.verbose else logging.INFO
