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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import InputError
from ..rtl.modules import SharedModule

__all__ = ["AUTO", "Memory", "MemoryRule", "MemoryRuleEntry", "MemoryStyle", "ModuleText", "Port",
           "Structure", "TOOL_RULE", "guard_initial_contents", "memory_attributes"]  # fmt: skip

#: The rule by which memories suit the device, or are left to the tool if no device is known.
AUTO = "auto"

#: An entry of a memory rule: the style, then the limits of depth, width and number of memories.
_ENTRY = re.compile("([a-z]+)(?::([1-9][0-9]*)(?:x([1-9][0-9]*))?)?(?:@([1-9][0-9]*))?")

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
    style : MemoryStyle or None
        Kind of RAM; None for a ROM.
    """

    width: int
    rows: tuple[int, ...]
    style: MemoryStyle | None = None


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

    ``tool`` leaves the choice to the synthesis tool.
    """

    TOOL = "tool"
    REGISTERS = "registers"
    DISTRIBUTED = "distributed"
    BLOCK = "block"
    ULTRA = "ultra"


@dataclass(frozen=True)
class MemoryRuleEntry:
    """One entry of a memory rule: the kind of RAM for memories up to a depth and a width.

    For example, ``block:4096`` makes memories of up to 4,096 words of block RAM, and ``block@20``
    makes 20 memories of block RAM.

    Parameters
    ----------
    depth : int or None
        The largest number of rows; None for no limit.
    width : int or None
        The largest number of bits of a row; None for no limit.
    count : int or None
        The largest number of memories of the fabric that have their style from this entry; None for
        no limit.
    """

    style: MemoryStyle
    depth: int | None = None
    width: int | None = None
    count: int | None = None

    def covers(self, width: int, depth: int) -> bool:
        """Return True if `depth` words of `width` bits are within the limits of the entry."""
        return (self.depth is None or depth <= self.depth) and (
            self.width is None or width <= self.width
        )

    def __str__(self) -> str:
        size = "" if self.depth is None else f":{self.depth}"
        size += "" if self.width is None else f"x{self.width}"
        return f"{self.style.value}{size}" + ("" if self.count is None else f"@{self.count}")


@dataclass(frozen=True)
class MemoryRule:
    """A rule by which each memory gets a style, the kind of RAM in the device.

    A memory has the style of the first entry whose limits it keeps. An entry with a count serves
    the nodes in order, until the memories of the next node would exceed the count.

    Parameters
    ----------
    entries : tuple of MemoryRuleEntry
        Entries in order of precedence. A memory beyond the limits of all entries has the style
        ``tool``.

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
        """Return the rule written as ``STYLE[:DEPTH[xWIDTH]][@COUNT],..``, as for ``--ram``.

        The style ``auto`` means ``tool``: where no device is known, the tool chooses.

        Raises
        ------
        InputError
            If the text has another form.
        """
        entries = []
        styles = [style.value for style in MemoryStyle]
        for part in text.split(","):
            match = _ENTRY.fullmatch(part)
            if not match or (match[1] not in styles and match[1] != AUTO):
                raise InputError(
                    f"--ram must be STYLE[:DEPTH[xWIDTH]][@COUNT], of {AUTO}, {', '.join(styles)}, "
                    f"several joined by commas, not {part or 'nothing'}"
                )
            style = MemoryStyle(match[1]) if match[1] in styles else MemoryStyle.TOOL
            limits = (int(found) if found else None for found in match.groups()[1:])
            entries.append(MemoryRuleEntry(style, *limits))
        return cls(tuple(entries))

    def __str__(self) -> str:
        return ",".join(map(str, self.entries))

    def choose_style(self, width: int, depth: int, *, at_once: bool = False) -> MemoryStyle:
        """Return the kind of RAM for a memory: the style of the first entry whose limits it keeps.

        Parameters
        ----------
        width, depth : int
            Bits of a row, and number of rows.
        at_once : bool
            True if the memory has an asynchronous read port. No block RAM has one, so that
            ``block`` and ``ultra`` then become ``tool``.
        """
        entry = self._find_entry(width, depth)
        style = entry.style if entry else MemoryStyle.TOOL
        blocks = (MemoryStyle.BLOCK, MemoryStyle.ULTRA)
        return MemoryStyle.TOOL if at_once and style in blocks else style

    def _find_entry(self, width: int, depth: int) -> MemoryRuleEntry | None:
        """Return the first entry whose limits of size the memory keeps, or None."""
        return next((entry for entry in self.entries if entry.covers(width, depth)), None)

    def _count_uses(self, shapes: Iterable[tuple[int, int]]) -> Counter[MemoryRuleEntry | None]:
        """Return the number of memories that have their style from each entry."""
        return Counter(self._find_entry(*shape) for shape in shapes)

    def split_by_count(self, nodes: Iterable[Sequence[tuple[int, int]]]) -> Iterator[MemoryRule]:
        """Yield the rule of each node: the entries whose counts allow the memories of the node.

        Parameters
        ----------
        nodes : iterable of sequence of (int, int)
            For each node, the width and the depth of each of its memories.

        Examples
        --------
        Each node has two memories. The block RAMs of the first entry serve two nodes.

        >>> rule = MemoryRule.parse("block:64@5,distributed")
        >>> [str(each) for each in rule.split_by_count([[(32, 16), (32, 16)]] * 3)]
        ['block:64@5,distributed', 'block:64@5,distributed', 'distributed']
        """
        left = {entry: entry.count for entry in self.entries if entry.count is not None}
        for shapes in nodes:
            rule, used = self, self._count_uses(shapes)
            while over := {entry for entry, most in left.items() if used[entry] > most}:
                rule = MemoryRule(tuple(each for each in rule.entries if each not in over))
                used = rule._count_uses(shapes)
            for entry in left:
                left[entry] -= used[entry]
            yield rule


#: Rule that leaves the style of all memories to the tool.
TOOL_RULE = MemoryRule()

#: Attribute for Quartus and Yosys: no word is used that is read while it is written.
NO_COLLISIONS = 'ramstyle = "no_rw_check"'


def memory_attributes(style: MemoryStyle) -> list[str]:
    """Return the Verilog attributes that give a writable memory its style, line by line.

    Examples
    --------
    A memory that is made of block RAM.

    >>> memory_attributes(MemoryStyle.BLOCK)
    ['(* ram_style = "block", ramstyle = "no_rw_check" *)']
    """
    if style is MemoryStyle.TOOL:
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
