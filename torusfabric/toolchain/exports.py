"""Names that a package imports only when they are first used, and what other packages offer."""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from ..errors import InputError

__all__ = ["exported", "read_entry_points"]


def exported(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Make what a package has as ``__getattr__``, so that nobody waits for what he does not use.

    No name may be that of a module of the package, which would take its place.

    Parameters
    ----------
    homes : mapping of str to iterable of str
        The names in each module, named as in relative imports; ``name=inner`` where it
        is ``inner`` there.

    Examples
    --------
    >>> exported("torusfabric", {".errors": ("InputError", "WorkFailed")})("WorkFailed")
    <class 'torusfabric.errors.WorkFailed'>
    """
    origins: dict[str, tuple[str, str]] = {}
    for module, entries in homes.items():
        for entry in entries:
            public, _, inner = entry.partition("=")
            origins[public] = module, inner or public

    def get(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inner = origins[name]
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
