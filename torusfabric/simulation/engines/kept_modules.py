"""Elaborated modules, kept in the cache under the digest of all that they depend on.

A module that is made of plain values, as routers, endpoints and what distributes control are, is
elaborated once, in whichever fabric it is; others each time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from ...collective import OPERATORS, SIGNED, Operator
from ...rtl.netlist import Leaf
from ...toolchain.cache import Cache, digest, source_digest
from .elaborated import Elaborated

__all__ = ["elaborated", "stated"]

#: The rooms on which modules, and what is kept of them, depend.
ROOMS = ("collective", "program", "rtl", "simulation")


def elaborated(name: str, make: Callable[[], Leaf], word: int) -> Elaborated:
    """Elaborate a module, or take it from the cache.

    Parameters
    ----------
    make : function of () -> Leaf
        Of what is partially applied to plain values, the module is kept.
    word : int
        Bits of a flit.
    """
    try:
        key = digest("module", stated(make), word, source_digest(*ROOMS), version("amaranth"))
    except LookupError:
        return Elaborated(name, make(), word)
    cache = Cache()
    made: Elaborated | None = cache.get_object(key)
    if made is not None:
        made.name = name
        return made
    made = Elaborated(name, make(), word)
    cache.put_object(key, made)
    return made


def stated(value: Any) -> Any:
    """All that a value is, in terms of JSON; raises LookupError if that cannot be said."""
    made = type(value)
    named = f"{made.__module__}.{made.__qualname__}"
    if isinstance(value, enum.Enum):
        return [named, value.name]
    if value is None or made in (bool, int, str):
        return value
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        return [named, value.dtype.str, value.tolist()]
    if made in (tuple, list) or isinstance(value, tuple):
        return [named, *map(stated, value)]
    if isinstance(value, dict):
        return [named, [[stated(key), stated(each)] for key, each in value.items()]]
    if isinstance(value, partial):
        return [stated(value.func), stated(value.args), stated(value.keywords)]
    if isinstance(value, Operator):
        # Of one that comes from elsewhere the name does not say what it is.
        if any(value is Operator.parse(name) for name in (*OPERATORS, *SIGNED)):
            return [named, value.name]
        raise LookupError(named)
    if is_dataclass(value) and not isinstance(value, type):
        return [named, [stated(getattr(value, each.name)) for each in fields(value)]]
    if isinstance(value, type) and value.__module__.startswith("torusfabric.rtl."):
        return [named, value.__module__, value.__qualname__]
    raise LookupError(named)
