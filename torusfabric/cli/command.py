"""How every command is added to the command line."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Protocol

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
        name, help=text, description=text.capitalize() + ".", epilog=f"example: {example}"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    parser.set_defaults(run=run)
    return parser
