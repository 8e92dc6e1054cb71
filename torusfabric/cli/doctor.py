"""The command that says what is installed, and how to get what is missing."""

import platform
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ..errors import MissingTool
from ..toolchain.installation import Found, packages_found, tools_found
from ..toolchain.version import __version__
from .output import print_facts, print_json, print_line, print_table
from .parser import Commands, add_command

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command to a parser."""
    add_command(commands, "doctor", run_doctor)


def run_doctor(arguments: Namespace) -> int:
    """Look at tools and packages; the status is that of a missing tool if one is required."""
    tools, packages = tools_found(), packages_found()
    missing = [found.name for found in (*tools, *packages) if found.required and not found.version]
    facts: dict[str, Any] = {
        "torusfabric": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    if arguments.json:
        rows = {"tools": [*map(asdict, tools)], "packages": [*map(asdict, packages)]}
        print_json(facts | rows | {"missing": missing})
    else:
        print_facts(facts)
        _print_found("tool", tools)
        _print_found("package", packages)
        print_line()
        print_line(_verdict(missing))
    return MissingTool.status if missing else 0


def _print_found(kind: str, rows: Iterable[Found]) -> None:
    """A table of tools or packages, what comes along first."""
    print_line()
    ordered = sorted(rows, key=lambda found: (not found.required, found.serves))
    print_table(
        (kind, "for", "version", "to get it"),
        [(f.name, f.serves, _state(f), "" if f.version else f.install) for f in ordered],
    )


def _state(found: Found) -> str:
    """A version, or what there is in its place."""
    if found.problem:
        return f"does not run: {found.problem}"
    return found.version or "missing"


def _verdict(missing: list[str]) -> str:
    """What the tables amount to."""
    if missing:
        return f"missing, though required: {', '.join(missing)} (pip install --upgrade torusfabric)"
    return (
        "All that is required is installed; what else is missing is needed only for what it says."
    )
