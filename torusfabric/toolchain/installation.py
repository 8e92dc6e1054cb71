"""What of the tools and packages that may be needed is installed, and how to get the rest."""

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import MissingTool, WorkFailed
from . import cxx, tools
from .extras import EXTRAS, how_to_install
from .tools import TOOLS, Tool

__all__ = ["Found", "packages_found", "tools_found"]

#: A requirement of ours: the package, which versions, and the extra that asks for it.
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<versions>[^;]*)(?P<marker>;.*)?")
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")
_SYSTEM = re.compile(r"sys_platform (==|!=) ['\"](\w+)['\"]")


@dataclass(frozen=True)
class Found:
    """A tool or a package.

    Parameters
    ----------
    serves : str
        What it is needed for.
    version : str or None
        None if it is not installed.
    problem : str or None
        Why it does not run although it is installed.
    install : str
        How to get it.
    required : bool
        Whether it is needed in any case, and comes with torusfabric.
    """

    name: str
    serves: str
    version: str | None
    install: str
    required: bool
    problem: str | None = None


def tools_found() -> list[Found]:
    """Every external program that may be run."""
    return [_tool(tool) for tool in TOOLS.values()]


def _tool(tool: Tool) -> Found:
    """Whether a program is there and runs."""
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
    """Every Python package that torusfabric and its extras ask for, each once."""
    found: dict[str, Found] = {}
    order = ["", *EXTRAS]
    for name, extra in sorted(_requirements(), key=lambda entry: order.index(entry[1])):
        install = how_to_install(extra) if extra else f"pip install {name}"
        serves = EXTRAS.get(extra, extra) if extra else "everything"
        found.setdefault(name, Found(name, serves, _installed(name), install, required=not extra))
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


def _installed(name: str) -> str | None:
    """The version of a package, None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
