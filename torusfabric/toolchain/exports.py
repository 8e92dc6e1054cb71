"""Names that a package imports only when they are first used, and what other packages offer."""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..errors import InputError

__all__ = ["exported", "read_entry_points"]


def exported(package: str) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package, so that nobody waits for names that he does not use.

    The package imports its names under ``if TYPE_CHECKING:``, relative to itself. When such a name
    is first used, it is imported from there. No name may be that of a module of the package, which
    would take its place.

    Examples
    --------
    >>> exported("torusfabric")("WorkFailed")
    <class 'torusfabric.errors.WorkFailed'>
    """

    @cache
    def find_origins() -> dict[str, tuple[str, str]]:
        """Return the module, and the name in it, of each name that is imported for types."""
        import ast  # here, since `--help` needs no names and these take long
        import inspect

        tree = ast.parse(inspect.getsource(sys.modules[package]))
        blocks = (block.body for block in tree.body if isinstance(block, ast.If))
        imports = [line for block in blocks for line in block if isinstance(line, ast.ImportFrom)]
        return {
            alias.asname or alias.name: ("." * line.level + (line.module or ""), alias.name)
            for line in imports
            for alias in line.names
        }

    def get(name: str) -> Any:
        if name.startswith("__") or name not in find_origins():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inner = find_origins()[name]
        value = getattr(import_module(module, package), inner)
        setattr(sys.modules[package], name, value)
        return value

    return get


def read_entry_points(
    group: str,
    what: str,
    register: Callable[[Any], object],
    *,
    broken: Callable[[InputError], object] | None = None,
) -> None:
    """Register what the entry points of a group name.

    Parameters
    ----------
    what : str
        What each must name, for the message of an error.
    broken : function of (InputError), optional
        Called with the error of an entry point that is left out.

    Raises
    ------
    InputError
        If one of them cannot be imported, or is refused, and none is to be left out.
    """
    from importlib.metadata import entry_points  # here, since few need it

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
