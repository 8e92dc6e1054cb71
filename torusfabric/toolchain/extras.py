"""The extras of the package: what brings the modules and programs that only some commands need."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import MissingTool

__all__ = ["EXTRAS", "MODULES", "extras_named", "how_to_install", "installed", "missing_package"]

#: What each extra is for. A package belongs to the first that asks for it.
EXTRAS = {
    "hardware": "Verilog and simulation",
    "synthesis": "synthesis, place and route",
    "boards": "bitstreams that test themselves, and talk to boards",
    "gowin": "Gowin devices",
    "prove": "proofs",
    "foreign": "schedules of other systems",
    "plots": "pictures as PDF and PNG",
    "dask": "sweeps on a cluster",
    "completion": "completion in shells",
    "all": "all commands",
    "litex": "SoCs of LiteX",
    "serdes": "links between boards on transceivers",
    "notebook": "notebooks",
    "docs": "the documentation",
    "test": "tests",
}

#: Modules that may be missing, and the extra that brings each.
MODULES = {
    "amaranth": "hardware",
    "amaranth_boards": "boards",
    "cairosvg": "plots",
    "defusedxml": "foreign",
    "distributed": "dask",
    "liteiclink": "serdes",
    "litex": "serdes",
    "migen": "serdes",
    "serial": "boards",
    "shtab": "completion",
    "vcd": "hardware",
    "z3": "prove",
}


def how_to_install(extra: str) -> str:
    """What a user does to get an extra.

    Examples
    --------
    >>> how_to_install("hardware")
    "pip install 'torusfabric[hardware]'"
    """
    return f"pip install 'torusfabric[{extra}]'"


def installed(module: str) -> bool:
    """Whether a module is there; it is not imported."""
    return importlib.util.find_spec(module) is not None


def missing_package(error: ModuleNotFoundError, extra: str = "") -> str | None:
    """What is said of a module of an extra that is not installed; None of any other module.

    Parameters
    ----------
    extra : str
        What the command needs in all, if that is more than the hardware of which this is a part.

    Examples
    --------
    >>> missing_package(ModuleNotFoundError("No module", name="amaranth"))
    "Package amaranth was not found: pip install 'torusfabric[hardware]'"
    """
    name = error.name
    if name not in MODULES:
        return None
    brought_by = MODULES[name]
    if extra and brought_by == "hardware":
        brought_by = extra
    return f"Package {name} was not found: {how_to_install(brought_by)}"


@contextmanager
def extras_named(extra: str = "") -> Iterator[None]:
    """Say of a module that is not installed which extra brings it; see `missing_package`.

    Examples
    --------
    >>> with extras_named():
    ...     raise ModuleNotFoundError("No module", name="z3")
    Traceback (most recent call last):
    torusfabric.errors.MissingTool: Package z3 was not found: pip install 'torusfabric[prove]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if missing := missing_package(error, extra):
            raise MissingTool(missing) from None
        raise
