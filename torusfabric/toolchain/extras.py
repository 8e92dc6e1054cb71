"""Optional dependencies: the extras of the package, and messages that name a missing one.

An *extra* is a named group of packages, installed by ``pip install 'torusfabric[EXTRA]'``, that
only some commands need.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import MissingTool

__all__ = ["EXTRAS", "MODULES", "name_missing_extra", "install_command", "is_installed",
           "missing_package_message"]  # fmt: skip

#: The purpose of each extra. A package of several extras is counted to the first of them.
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

#: Modules that may be missing, each with the extra that installs it.
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


def install_command(extra: str) -> str:
    """Return the command that installs an extra.

    Examples
    --------
    >>> install_command("hardware")
    "pip install 'torusfabric[hardware]'"
    """
    return f"pip install 'torusfabric[{extra}]'"


def is_installed(module: str) -> bool:
    """Return True if a module can be imported; it is only searched for, not imported."""
    return importlib.util.find_spec(module) is not None


def missing_package_message(error: ModuleNotFoundError, extra: str = "") -> str | None:
    """Return the message about a module that an extra would install; None for any other module.

    Parameters
    ----------
    error : ModuleNotFoundError
        Error of the import that failed.
    extra : str
        Extra to name in place of ``hardware``, for commands that need a larger extra which includes
        ``hardware``.

    Examples
    --------
    >>> missing_package_message(ModuleNotFoundError("No module", name="amaranth"))
    "Package amaranth was not found: pip install 'torusfabric[hardware]'"
    """
    name = error.name
    if name not in MODULES:
        return None
    brought_by = MODULES[name]
    if extra and brought_by == "hardware":
        brought_by = extra
    return f"Package {name} was not found: {install_command(brought_by)}"


@contextmanager
def name_missing_extra(extra: str = "") -> Iterator[None]:
    """Context manager: an import error in its ``with`` block names the extra to install.

    The error of a missing module becomes a `MissingTool`, if an extra of torusfabric has the
    module.

    Parameters
    ----------
    extra : str
        Parameter `extra` of `missing_package_message`.

    Examples
    --------
    >>> with name_missing_extra():
    ...     raise ModuleNotFoundError("No module", name="z3")
    Traceback (most recent call last):
    torusfabric.errors.MissingTool: Package z3 was not found: pip install 'torusfabric[prove]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if missing := missing_package_message(error, extra):
            raise MissingTool(missing) from None
        raise
