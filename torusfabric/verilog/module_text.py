"""A module as text, and beside it, as data, what others ask about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from ..rtl.modules import SharedModule

__all__ = ["NOTHING", "Memory", "ModuleText", "Port", "Structure", "declared", "filled"]

#: Characters that lists of nets and pins may have on a line.
LINE = 98

NONE: Mapping[str, int] = MappingProxyType({})

#: The number of a node in the name of one of its ports.
NUMBER = re.compile(r"(?<=_)\d+(?=_|$)")

#: No text.
NOTHING: Mapping[str, str] = MappingProxyType({})


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
    bare : str
        The text without what memories hold at first, if that is another.
    """

    text: str
    structure: Structure
    children: dict[str, int]
    shared: tuple[SharedModule, ...] = ()
    inner: bool = False
    bare: str = ""


def declared(ports: Mapping[str, str]) -> Iterator[str]:
    """The lines of the declarations of ports, those of a node side by side.

    Examples
    --------
    >>> for line in declared({"clk": "input clk", "a_1": "input a_1", "b_1": "input b_1"}):
    ...     print(line)
      input clk,
      input a_1, input b_1
    """
    last = [*ports][-1]
    for _, each in groupby(ports, lambda name: NUMBER.findall(name) or name):
        names = [*each]
        yield from filled("  ", [ports[name] for name in names], "" if names[-1] == last else ",")


def filled(head: str, items: Sequence[str], end: str) -> list[str]:
    """A list behind a head, on as few lines as have room for it; each has at least one of it."""
    deeper = " " * (len(head) - len(head.lstrip()) + 2)
    lines, line, start = [], head, head
    for number, item in enumerate(items):
        piece = item + (end if number == len(items) - 1 else ",")
        if line != start and len(line) + len(piece) >= LINE:
            lines.append(line.rstrip())
            line = start = deeper
        line += f"{piece} "
    return [*lines, line.rstrip()]
