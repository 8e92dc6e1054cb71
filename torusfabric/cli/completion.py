"""The command that writes what a shell needs to complete command lines, by the library shtab."""

import argparse
from argparse import Namespace

from ..algorithms import CATALOGUE
from .output import print_json, print_line
from .parser import Commands, add_command

__all__ = ["add_commands"]

#: Shells, and how each takes the script.
SHELLS = {
    "bash": "torusfabric completion bash > ~/.local/share/bash-completion/completions/torusfabric",
    "zsh": "torusfabric completion zsh > ~/.zfunc/_torusfabric   # a folder of fpath",
    "fish": "torusfabric completion fish > ~/.config/fish/completions/torusfabric.fish",
}


def add_commands(commands: Commands) -> None:
    """Add the command to a parser."""
    parser = add_command(commands, "completion", run_completion)
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run_completion(arguments: Namespace) -> None:
    """Print the script of a shell."""
    import shtab

    from . import make_parser

    parser = make_parser()
    _complete(parser)
    script = shtab.complete(parser, shell=arguments.shell)
    if arguments.json:
        print_json({"shell": arguments.shell, "install": SHELLS[arguments.shell], "script": script})
    else:
        print_line(script)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Say of every argument what completes it: names that we know, files, or folders."""
    import shtab

    from ..collective.definitions import COLLECTIVES
    from ..fpga.synthesis.parts import PARTS
    from ..fpga.synthesis.target import TARGETS

    names = {
        "algorithm": [entry.name for entry in CATALOGUE],
        "collective": sorted(COLLECTIVES),
        "target": sorted([*TARGETS, *PARTS]),
    }
    for action in parser._actions:
        if action.nargs == argparse.PARSER:
            for command in dict(action.choices or ()).values():
                _complete(command)
        elif action.choices is not None or action.dest in names:
            # shtab takes a dictionary for commands.
            action.choices = list(action.choices or names[action.dest])
        elif "FILE" in str(action.metavar):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif "FOLDER" in str(action.metavar) or "DIR" in str(action.metavar):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
