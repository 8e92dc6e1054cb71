"""How every command is added to the command line."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Protocol

from ..toolchain.notices import LOGGER

__all__ = ["Commands", "add_command"]


class Commands(Protocol):
    """What `ArgumentParser.add_subparsers` returns."""

    def add_parser(self, name: str, *, help: str, description: str, epilog: str) -> ArgumentParser:
        """Add a command."""


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[Namespace], int | None],
    text: str,
    example: str,
) -> ArgumentParser:
    """Add a command.

    Parameters
    ----------
    commands : Commands
    name : str
    run : function of (Namespace) -> int or None
        Does the work; returns the exit status.
    text : str
        What it does, in a few words.
    example : str
        A command line, for the help text.

    Returns
    -------
    ArgumentParser
    """
    parser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"example: {example}"
    )
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
