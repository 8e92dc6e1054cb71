"""One Verilog module: its text, its structure, and the RAM styles of its memories.

Users are the writer, which makes a `ModuleText` for each module, and `Design`.

A RAM style becomes an attribute of the memory: Vivado and Yosys read ``ram_style``, Quartus and
Yosys read ``ramstyle``. Every attribute has ``no_rw_check`` for Quartus and Yosys. It says that no
design uses a word read in the cycle in which the same word is written, so that these tools need not
build logic that defines its value.

A *row* of a memory is the word at one address.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InputError
from ..rtl.modules import SharedModule

__all__ = ["AUTO_RULE", "Memory", "MemoryRule", "MemoryStyle", "ModuleText", "Port", "Structure",
           "guard_initial_contents", "memory_attributes"]  # fmt: skip

#: Empty default of the fields of `Structure`. Why a plain dict: designs can then be pickled.
EMPTY: Mapping[str, Any] = {}


class Port(NamedTuple):
    """A port of a module.

    Parameters
    ----------
    direction : str
        ``input`` or ``output``.
    width : int
        Width in bits; 0 if a parameter of the module sets it.
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
        Initial contents, one number a row.
    """

    width: int
    rows: tuple[int, ...]


class Structure(NamedTuple):
    """The ports, signals and memories of a module, by their names in the Verilog.

    Parameters
    ----------
    ports : dict of str to Port
        Ports in the order of their declaration.
    signals : dict of str to int
        Width in bits of each register and wire that is no port.
    memories : dict of str to Memory
        Memories, ROMs included.
    clocked : dict of str to int
        Width in bits of each register, output ports included.
    """

    ports: Mapping[str, Port]
    signals: Mapping[str, int] = EMPTY
    memories: Mapping[str, Memory] = EMPTY
    clocked: Mapping[str, int] = EMPTY


class ModuleText(NamedTuple):
    """A module as Verilog, with its ports and signals and the modules inside.

    Parameters
    ----------
    text : str
        The Verilog of the module alone, from its comment to ``endmodule``.
    children : dict of str to int
        Child module -> number of instances.
    shared : tuple of SharedModule
        The children that several modules share.
    inner : bool
        True if reports count the module as part of its parents.
    """

    text: str
    structure: Structure
    children: dict[str, int]
    shared: tuple[SharedModule, ...] = ()
    inner: bool = False


class MemoryStyle(enum.Enum):
    """The resource that a memory is made of; the value is that of Vivado's attribute ``ram_style``.

    ``auto`` leaves the choice to the tool.
    """

    AUTO = "auto"
    REGISTERS = "registers"
    DISTRIBUTED = "distributed"
    BLOCK = "block"
    ULTRA = "ultra"


@dataclass(frozen=True)
class MemoryRuleEntry:
    """One entry of a memory rule: the kind of RAM for memories up to a depth and a width.

    For example, ``block:4096`` makes memories of up to 4,096 words of block RAM.

    Parameters
    ----------
    depth : int or None
        The largest number of rows; None for no limit.
    width : int or None
        The largest number of bits of a row; None for no limit.
    """

    style: MemoryStyle
    depth: int | None = None
    width: int | None = None

    def covers(self, width: int, depth: int) -> bool:
        """Return True if `depth` words of `width` bits are within the limits of the entry."""
        return (self.depth is None or depth <= self.depth) and (
            self.width is None or width <= self.width
        )


@dataclass(frozen=True)
class MemoryRule:
    """A rule by which each memory gets a style, the kind of RAM in the device.

    A memory has the style of the first entry whose limits it keeps.

    Parameters
    ----------
    entries : tuple of MemoryRuleEntry
        Entries in order of precedence. A memory beyond the limits of all entries has the style
        ``auto``.

    Examples
    --------
    64 words of 72 bits are distributed RAM, 65 words block RAM. 64 words of 80 bits are too wide
    for the first entry.

    >>> rule = MemoryRule.parse("distributed:64x72,block:4096,ultra")
    >>> [rule.choose_style(72, depth).value for depth in (64, 65, 4097)], rule.choose_style(80,
    ...     64).value
    (['distributed', 'block', 'ultra'], 'block')
    """

    entries: tuple[MemoryRuleEntry, ...] = ()

    @classmethod
    def parse(cls, text: str) -> MemoryRule:
        """Return the rule written as ``STYLE[:DEPTH[xWIDTH]],..``, as for the option ``--ram``.

        Raises
        ------
        InputError
            If the text has another form.
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
            entries.append(MemoryRuleEntry(MemoryStyle(match[1]), depth, width))
        return cls(tuple(entries))

    def choose_style(self, width: int, depth: int, *, at_once: bool = False) -> MemoryStyle:
        """Return the kind of RAM for a memory: the style of the first entry whose limits it keeps.

        Parameters
        ----------
        width, depth : int
            Bits of a row, and number of rows.
        at_once : bool
            True if the memory has an asynchronous read port. No block RAM has one, so that
            ``block`` and ``ultra`` then become ``auto``.
        """
        found = (entry.style for entry in self.entries if entry.covers(width, depth))
        style = next(found, MemoryStyle.AUTO)
        blocks = (MemoryStyle.BLOCK, MemoryStyle.ULTRA)
        return MemoryStyle.AUTO if at_once and style in blocks else style


#: Rule that leaves the style of all memories to the tool.
AUTO_RULE = MemoryRule()

#: Attribute for Quartus and Yosys: no word is used that is read while it is written.
NO_COLLISIONS = 'ramstyle = "no_rw_check"'


def memory_attributes(style: MemoryStyle, better: str | None = None) -> list[str]:
    """Return the Verilog attributes that give a writable memory its style, line by line.

    Parameters
    ----------
    better : str, optional
        Style to use if `style` is ``auto``.

    Examples
    --------
    A memory that is made of block RAM.

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
    # MLAB, Quartus' name of distributed memory, is unknown to Yosys.
    quartus = f'(* {chosen}, ramstyle = "MLAB, no_rw_check" *)'
    return ["`ifdef YOSYS", plain, "`else", quartus, "`endif"]


def guard_initial_contents(style: MemoryStyle | None, contents: list[str]) -> list[str]:
    """Return the lines that set initial contents; those of an ultra RAM are for simulation only.

    Why: an ultra RAM has no initial contents in hardware.

    Parameters
    ----------
    style : MemoryStyle or None
        Style of the memory; None for a memory without write ports.
    contents : list of str
        Lines that set the initial contents.
    """
    if style is not MemoryStyle.ULTRA:
        return contents
    return ["`ifndef SYNTHESIS", *contents, "`endif"]
