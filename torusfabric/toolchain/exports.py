"""Lazy imports of a package's public names, and plug-ins from other packages."""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..errors import InputError

__all__ = ["lazy_exports", "load_entry_points"]


def lazy_exports(package: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package, which imports each public name at its first use.

    The package lists its public names as relative imports under ``if TYPE_CHECKING:``. The returned
    function reads this list from the source of the package, and imports a name from there when it
    is asked for. Why: importing the package stays fast, since a user waits for the used names only.

    A public name must differ from the names of the package's modules: importing a module sets an
    attribute with the module's name, which would hide the public name.

    Parameters
    ----------
    package : str
        Dotted name of the package.

    Examples
    --------
    >>> lazy_exports("torusfabric")("WorkFailed")
    <class 'torusfabric.errors.WorkFailed'>
    """

    @cache
    def find_origins() -> dict[str, tuple[str, str]]:
        """Return the module of each public name, and its name there, as a dict.

        An entry is, for example, ``WorkFailed`` -> (``.errors``, ``WorkFailed``).
        """
        import ast  # here, because `--help` needs no names, and these two imports are slow
        import inspect

        tree = ast.parse(inspect.getsource(sys.modules[package]))
        blocks = (block.body for block in tree.body if isinstance(block, ast.If))
        imports = [line for block in blocks for line in block if isinstance(line, ast.ImportFrom)]
        return {
            alias.asname or alias.name: ("." * line.level + (line.module or ""), alias.name)
            for line in imports
            for alias in line.names
        }

    def import_name(name: str) -> Any:
        if name.startswith("__") or name not in find_origins():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inner = find_origins()[name]
        value = getattr(import_module(module, package), inner)
        setattr(sys.modules[package], name, value)
        return value

    return import_name


def load_entry_points(
    group: str,
    what: str,
    register: Callable[[Any], object],
    *,
    broken: Callable[[InputError], object] | None = None,
) -> None:
    """Load the entry points of a group, which other packages offer, and register each.

    Parameters
    ----------
    group : str
        Name of the group of entry points.
    what : str
        Noun for the object that an entry point must name, for error messages.
    register : function of (object)
        Registers a loaded object, or raises an error to refuse it.
    broken : function of (InputError), optional
        Called with the error of a broken entry point, which is then skipped.

    Raises
    ------
    InputError
        If an entry point cannot be imported or is refused, and `broken` is left out.
    """
    from importlib.metadata import entry_points  # here, because few commands need it

    for point in entry_points(group=group):
        try:
            register(point.load())
        except Exception as error:
            refusal = InputError(
                f"Entry point {point.name} of {group} must name {what}, "
                f"not {point.value!r}: {error}"
            )
            if broken is None:
                raise refusal from error
            broken(refusal)
