"""What memories are made of: a rule by their width and depth, and the attributes that say so.

Vivado, Yosys and others read ``ram_style``, Quartus and Yosys ``ramstyle``. No word is used that is
read in the cycle in which it is written, which Quartus and Yosys are told; neither has to build
what would define it.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from ..errors import InputError

__all__ = ["AUTO", "MemoryRule", "MemoryStyle", "for_simulation", "memory_attributes"]


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
            match = re.fullmatch(rf"({styles})(?::([1-9]\d*)(?:x([1-9]\d*))?)?", part)
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
