"""A module as text, and what others ask about it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..rtl.modules import SharedModule

__all__ = ["Memory", "ModuleText", "Port", "Structure"]

NONE: Mapping[str, int] = MappingProxyType({})


class Port(NamedTuple):
    """A port of a module.

    Parameters
    ----------
    direction : str
        ``input`` or ``output``.
    width : int
        In bits; 0 where a parameter of the module says it.
    """

    direction: str
    width: int = 1


class Memory(NamedTuple):
    """A memory of a module.

    Parameters
    ----------
    width : int
        Bits of a row.
    rows : tuple of int
        What it holds at first.
    """

    width: int
    rows: tuple[int, ...]


class Structure(NamedTuple):
    """What a module is made of, by the names that the text gives it.

    Parameters
    ----------
    ports : dict of str to Port
        In their order.
    signals : dict of str to int
        The width of each register and wire that is no port.
    clocked : dict of str to int
        The width of each register, ports included.
    """

    ports: Mapping[str, Port]
    signals: Mapping[str, int] = NONE
    memories: Mapping[str, Memory] = MappingProxyType({})
    clocked: Mapping[str, int] = NONE


class ModuleText(NamedTuple):
    """A module as Verilog.

    Parameters
    ----------
    children : dict of str to int
        How many instances of which other modules it has.
    shared : tuple of SharedModule
        Those of the children that many modules share.
    inner : bool
        Whether it counts as part of those that have instances of it.
    """

    text: str
    structure: Structure
    children: dict[str, int]
    shared: tuple[SharedModule, ...] = ()
    inner: bool = False
