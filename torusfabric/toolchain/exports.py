"""Names that a package offers and imports only when they are first used."""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["exported"]


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
