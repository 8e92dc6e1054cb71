"""A module as text, what others ask about it, and what its memories are made of.

Vivado, Yosys and others read ``ram_style``, Quartus and Yosys ``ramstyle``. No word is used that is
read in the cycle in which it is written, which Quartus and Yosys are told; neither has to build
what would define it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InputError
from ..rtl.modules import SharedModule

__all__ = ["AUTO", "Memory", "MemoryRule", "MemoryStyle", "ModuleText", "Port", "Structure",
           "for_simulation", "memory_attributes"]  # fmt: skip

#: What a module has none of; a plain dict, so that designs can be pickled.
NONE: Mapping[str, Any] = {}


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
    memories: Mapping[str, Memory] = NONE
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


class MemoryStyle(enum.Enum):
    """What a memory is made of: by the value of Vivado's attribute; ``auto`` leaves it open."""

    AUTO = "auto"
    REGISTERS = "registers"
    DISTRIBUTED = "distributed"
    BLOCK = "block"
    ULTRA = "ultra"


@dataclass(frozen=True)
class Entry:
    """What memories are made of up to a depth and a width; None where there is no limit."""

    style: MemoryStyle
    depth: int | None = None
    width: int | None = None

    def takes(self, width: int, depth: int) -> bool:
        """Whether it says what a memory is made of."""
        return (self.depth is None or depth <= self.depth) and (
            self.width is None or width <= self.width
        )


@dataclass(frozen=True)
class MemoryRule:
    """What memories are made of: the first entry that is wide and deep enough says it.

    Parameters
    ----------
    entries : tuple of Entry
        What none of them takes is left to the tool.

    Examples
    --------
    >>> rule = MemoryRule.parse("distributed:64x72,block:4096,ultra")
    >>> [rule.style(72, depth).value for depth in (64, 65, 4097)], rule.style(80, 64).value
    (['distributed', 'block', 'ultra'], 'block')
    """

    entries: tuple[Entry, ...] = ()

    @classmethod
    def parse(cls, text: str) -> MemoryRule:
        """The rule of a text: ``STYLE[:DEPTH[xWIDTH]],..``.

        Raises
        ------
        InputError
            If it is none.
        """
        entries = []
        styles = "|".join(style.value for style in MemoryStyle)
        for part in text.split(","):
            match = re.fullmatch(rf"({styles})(?::([1-9][0-9]*)(?:x([1-9][0-9]*))?)?", part)
            if not match:
                raise InputError(
                    f"--ram must be STYLE[:DEPTH[xWIDTH]], of {styles.replace('|', ', ')}, "
                    f"several joined by commas, not {part or 'nothing'}"
                )
            depth, width = (int(found) if found else None for found in match.groups()[1:])
            entries.append(Entry(MemoryStyle(match[1]), depth, width))
        return cls(tuple(entries))

    def style(self, width: int, depth: int, *, at_once: bool = False) -> MemoryStyle:
        """What a memory is made of; of what is read at once, none is a block."""
        found = (entry.style for entry in self.entries if entry.takes(width, depth))
        style = next(found, MemoryStyle.AUTO)
        blocks = (MemoryStyle.BLOCK, MemoryStyle.ULTRA)
        return MemoryStyle.AUTO if at_once and style in blocks else style


#: The rule that leaves all memories to the tool.
AUTO = MemoryRule()

#: How Quartus and Yosys are told that no word is used that was read as it was written.
NO_COLLISIONS = 'ramstyle = "no_rw_check"'


def memory_attributes(style: MemoryStyle, better: str | None = None) -> list[str]:
    """The attributes of a memory that is written, line by line.

    Parameters
    ----------
    better : str, optional
        Of which style it had better be where that is left open.

    Examples
    --------
    >>> memory_attributes(MemoryStyle.BLOCK)
    ['(* ram_style = "block", ramstyle = "no_rw_check" *)']
    """
    if style is MemoryStyle.AUTO and better:
        style = MemoryStyle(better)
    if style is MemoryStyle.AUTO:
        return [f"(* {NO_COLLISIONS} *)"]
    chosen = f'ram_style = "{style.value}"'
    plain = f"(* {chosen}, {NO_COLLISIONS} *)"
    if style is not MemoryStyle.DISTRIBUTED:
        return [plain]
    # Yosys does not know what Quartus calls them.
    quartus = f'(* {chosen}, ramstyle = "MLAB, no_rw_check" *)'
    return ["`ifdef YOSYS", plain, "`else", quartus, "`endif"]


def for_simulation(style: MemoryStyle | None, contents: list[str]) -> list[str]:
    """What a memory holds at first; ultra RAMs cannot be told, so that simulation alone is."""
    if style is not MemoryStyle.ULTRA:
        return contents
    return ["`ifndef SYNTHESIS", *contents, "`endif"]
