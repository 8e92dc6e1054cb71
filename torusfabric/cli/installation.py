"""The commands about this installation: doctor, cache, completion (by the library shtab)."""

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
from ..toolchain.extras import EXTRAS, how_to_install
from ..toolchain.tools import TOOLS, Tool
from ..toolchain.version import __version__
from .output import print_facts, print_json, print_line, print_report, print_table
from .parser import Commands, add_command

__all__ = ["add_commands", "packages_found"]

#: Shells, and how each takes the script.
SHELLS = {
    "bash": "torusfabric completion bash > ~/.local/share/bash-completion/completions/torusfabric",
    "zsh": "torusfabric completion zsh > ~/.zfunc/_torusfabric   # a folder of fpath",
    "fish": "torusfabric completion fish > ~/.config/fish/completions/torusfabric.fish",
}

#: A requirement of ours: the package, which versions, and the extra that asks for it.
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<versions>[^;]*)(?P<marker>;.*)?")
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")
_SYSTEM = re.compile(r"sys_platform (==|!=) ['\"](\w+)['\"]")


def add_commands(commands: Commands) -> None:
    """Add the commands to a parser."""
    add_command(commands, "doctor", run_doctor)
    cache = add_command(commands, "cache", run_cache)
    add_options(cache, "--clear: remove all entries; what is needed is made again\n")
    completion = add_command(commands, "completion", run_completion)
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


@dataclass(frozen=True)
class Found:
    """A tool or a package.

    Parameters
    ----------
    serves : str
        Purpose of the tool or package.
    version : str or None
        None if it is not installed.
    problem : str or None
        Why it does not run although it is installed.
    install : str
        Command that installs it.
    required : bool
        True if it is needed in any case, and comes with torusfabric.
    """

    name: str
    serves: str
    version: str | None
    install: str
    required: bool
    problem: str | None = None


def _find_program(tool: Tool) -> Found:
    """Look for a program, and run it."""
    version = problem = None
    try:
        version = _version(tool.name)
        # Some print their usage when they are asked for their version.
        version = version if re.search(r"\d\.\d", version) else "installed"
    except MissingTool:
        pass
    except WorkFailed as error:
        problem = str(error)
    return Found(tool.name, tool.serves, version, tool.install, required=False, problem=problem)


def _version(name: str) -> str:
    """The version of a program; of the C++ compiler, of whichever there is."""
    if name == "g++":
        return cxx.compiler_version(tuple(cxx.compiler()))
    return tools.version(name)


def packages_found() -> list[Found]:
    """Return every Python package that torusfabric and its extras ask for, each once."""
    found: dict[str, Found] = {}
    order = ["", *EXTRAS]
    for name, extra in sorted(_requirements(), key=lambda entry: order.index(entry[1])):
        install = how_to_install(extra) if extra else f"pip install {name}"
        serves = EXTRAS.get(extra, extra) if extra else "everything"
        found.setdefault(
            name, Found(name, serves, _installed_version(name), install, required=not extra)
        )
    return [*found.values()]


def _requirements() -> Iterator[tuple[str, str]]:
    """Package and extra of each requirement that holds for this Python."""
    for line in importlib.metadata.requires("torusfabric") or ():
        match = _REQUIREMENT.fullmatch(line)
        marker = (match and match["marker"]) or ""
        extra, system = _EXTRA.search(marker), _SYSTEM.search(marker)
        elsewhere = system and (sys.platform == system[2]) is not (system[1] == "==")
        # Extras that bring others ask for torusfabric itself.
        if match and match["name"] != "torusfabric" and not elsewhere and (extra or not marker):
            yield match["name"], extra[1] if extra else ""


def _installed_version(name: str) -> str | None:
    """The version of a package, None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def run_doctor(arguments: Namespace) -> int:
    """Look at tools and packages; the status is that of a missing tool if one is required."""
    programs, packages = list(map(_find_program, TOOLS.values())), packages_found()
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
    _print_found("tool", programs)
    _print_found("package", packages)
    print_line()
    if missing:
        names = ", ".join(missing)
        print_line(f"missing, though required: {names} (pip install --upgrade torusfabric)")
        return MissingTool.status
    print_line(
        "All that is required is installed; what else is missing is needed only for what it says."
    )
    return 0


def _print_found(kind: str, rows: Iterable[Found]) -> None:
    """A table of tools or packages, what comes along first."""
    print_line()
    table = []
    for found in sorted(rows, key=lambda found: (not found.required, found.serves)):
        problem = f"does not run: {found.problem}" if found.problem else ""
        state = problem or found.version or "missing"
        table.append((found.name, found.serves, state, "" if found.version else found.install))
    print_table((kind, "for", "version", "to get it"), table)


def run_cache(arguments: Namespace) -> None:
    """Show what the cache holds, or remove it."""
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
                _complete(command)
        elif action.choices is not None or action.dest in names:
            # shtab takes a dictionary for commands.
            action.choices = list(action.choices or names[action.dest])
        elif "FILE" in str(action.metavar):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif "FOLDER" in str(action.metavar) or "DIR" in str(action.metavar):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
