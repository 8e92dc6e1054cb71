"""The commands ``doctor``, ``cache`` and ``completion``, which concern this installation."""

import argparse
import importlib.metadata
import platform
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..contract.options import add_options
from ..errors import MissingTool, WorkFailed
from ..toolchain import cxx, tools
from ..toolchain.extras import EXTRAS, install_command
from ..toolchain.tools import TOOLS, Tool
from ..toolchain.version import __version__
from .output import print_facts, print_json, print_line, print_report, print_table
from .parser import Commands, add_command

__all__ = ["add_commands", "find_packages"]

#: The command that installs the completion script, for each shell.
SHELLS = {
    "bash": "torusfabric completion bash > ~/.local/share/bash-completion/completions/torusfabric",
    "zsh": "torusfabric completion zsh > ~/.zfunc/_torusfabric   # a folder of fpath",
    "fish": "torusfabric completion fish > ~/.config/fish/completions/torusfabric.fish",
}

#: Parts of a requirement in the metadata of this package: name, versions and marker. The marker may
#: name an extra and an operating system.
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<versions>[^;]*)(?P<marker>;.*)?")
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")
_SYSTEM = re.compile(r"sys_platform (==|!=) ['\"](\w+)['\"]")


def add_commands(commands: Commands) -> None:
    """Add the commands ``doctor``, ``cache`` and ``completion`` and their arguments.

    `commands` has the parser of each command.
    """
    add_command(commands, "doctor", run_doctor)
    cache = add_command(commands, "cache", run_cache)
    add_options(cache, "--clear: Remove all entries; later commands make again what they need.\n")
    completion = add_command(commands, "completion", run_completion)
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


@dataclass(frozen=True)
class Dependency:
    """An external tool or a Python package, with its version if it is installed.

    Parameters
    ----------
    name : str
        Name of the tool or package.
    serves : str
        Purpose of the tool or package.
    version : str or None
        Installed version; None if it is missing.
    install : str
        Command that installs it.
    required : bool
        True for a package without which torusfabric does not work.
    problem : str or None
        Reason why an installed tool does not run.
    """

    name: str
    serves: str
    version: str | None
    install: str
    required: bool
    problem: str | None = None


def _find_program(tool: Tool) -> Dependency:
    """Look for a tool, and run it to ask for its version."""
    version = problem = None
    try:
        version = _tool_version(tool.name)
        # Some tools print their usage when asked for their version.
        version = version if re.search(r"\d\.\d", version) else "installed"
    except MissingTool:
        pass
    except WorkFailed as error:
        problem = str(error)
    return Dependency(
        tool.name, tool.serves, version, tool.install, required=False, problem=problem
    )


def _tool_version(name: str) -> str:
    """Return the version of the tool `name`; for ``g++``, of the C++ compiler that is installed."""
    if name == "g++":
        return cxx.compiler_version(tuple(cxx.compiler_command()))
    return tools.version(name)


def find_packages() -> list[Dependency]:
    """Return every Python package that torusfabric or one of its extras requires, each once."""
    found: dict[str, Dependency] = {}
    order = ["", *EXTRAS]
    for name, extra in sorted(_parse_requirements(), key=lambda entry: order.index(entry[1])):
        install = install_command(extra) if extra else f"pip install {name}"
        serves = EXTRAS.get(extra, extra) if extra else "everything"
        found.setdefault(
            name, Dependency(name, serves, _installed_version(name), install, required=not extra)
        )
    return [*found.values()]


def _parse_requirements() -> Iterator[tuple[str, str]]:
    """Yield the package and the extra of each requirement of torusfabric on this platform.

    The extra is empty for a package that torusfabric always requires.
    """
    for line in importlib.metadata.requires("torusfabric") or ():
        match = _REQUIREMENT.fullmatch(line)
        marker = (match and match["marker"]) or ""
        extra, system = _EXTRA.search(marker), _SYSTEM.search(marker)
        elsewhere = system and (sys.platform == system[2]) is not (system[1] == "==")
        # An extra that includes other extras requires torusfabric itself.
        if match and match["name"] != "torusfabric" and not elsewhere and (extra or not marker):
            yield match["name"], extra[1] if extra else ""


def _installed_version(name: str) -> str | None:
    """Return the version of the Python package `name`; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def run_doctor(arguments: Namespace) -> int:
    """Run ``doctor``: list tools and packages; return status 3 if a required one is missing."""
    programs, packages = list(map(_find_program, TOOLS.values())), find_packages()
    both = (*programs, *packages)
    missing = [found.name for found in both if found.required and not found.version]
    facts: dict[str, Any] = {
        "torusfabric": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    if arguments.json:
        rows = {"tools": [*map(asdict, programs)], "packages": [*map(asdict, packages)]}
        print_json(facts | rows | {"missing": missing})
        return MissingTool.status if missing else 0
    print_facts(facts)
    _print_dependencies("tool", programs)
    _print_dependencies("package", packages)
    print_line()
    if missing:
        names = ", ".join(missing)
        print_line(f"missing, though required: {names} (pip install --upgrade torusfabric)")
        return MissingTool.status
    print_line(
        "All required tools and packages are installed; each other one is needed only for the "
        "purpose in its row."
    )
    return 0


def _print_dependencies(kind: str, rows: Iterable[Dependency]) -> None:
    """Print a table of tools or packages, the required ones first.

    `kind` is the head of the first column, and `rows` has the tools or packages.
    """
    print_line()
    table = []
    for found in sorted(rows, key=lambda found: (not found.required, found.serves)):
        problem = f"does not run: {found.problem}" if found.problem else ""
        state = problem or found.version or "missing"
        table.append((found.name, found.serves, state, "" if found.version else found.install))
    print_table((kind, "for", "version", "to get it"), table)


def run_cache(arguments: Namespace) -> None:
    """Run ``cache``: print the size of the cache, or clear it."""
    from rich.filesize import decimal

    from ..toolchain.cache import LIMIT_VARIABLE, Cache, size_limit

    cache, limit = Cache(), size_limit()
    removed = cache.clear() if arguments.clear else None
    folder, found = cache.folder, cache.usage()
    facts = {"folder": str(folder), **found._asdict(), "limit": limit}
    shown = {
        "folder": f"{folder} (TORUSFABRIC_CACHE names another)",
        "entries": found.entries,
        "size": decimal(found.bytes),
        "limit": f"{decimal(limit)} ({LIMIT_VARIABLE} sets another)",
    }
    if removed:
        facts["removed"] = removed._asdict()
        shown["removed"] = f"{removed.entries} entries, {decimal(removed.bytes)}"
    print_report(arguments, facts, shown)


def run_completion(arguments: Namespace) -> None:
    """Run ``completion``: print the completion script of a shell, made by the package shtab."""
    import shtab

    from . import make_parser

    parser = make_parser()
    _set_completions(parser)
    script = shtab.complete(parser, shell=arguments.shell)
    if arguments.json:
        print_json({"shell": arguments.shell, "install": SHELLS[arguments.shell], "script": script})
    else:
        print_line(script)


def _set_completions(parser: argparse.ArgumentParser) -> None:
    """Set the completions of all arguments of a parser: known names, files, or folders."""
    import shtab

    from ..algorithms import CATALOGUE
    from ..collective.definitions import COLLECTIVES
    from ..fpga.synthesis.target import PARTS, TARGETS

    names = {
        "algorithm": [entry.name for entry in CATALOGUE],
        "collective": sorted(COLLECTIVES),
        "target": sorted([*TARGETS, *PARTS]),
    }
    for action in parser._actions:
        if action.nargs == argparse.PARSER:
            for command in dict(action.choices or ()).values():
                _set_completions(command)
        elif action.choices is not None or action.dest in names:
            # A list, because shtab takes a dictionary for subcommands.
            action.choices = list(action.choices or names[action.dest])
        elif "FILE" in str(action.metavar):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif "FOLDER" in str(action.metavar) or "DIR" in str(action.metavar):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
