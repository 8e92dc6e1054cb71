"""A module as text, with a rule of what its memories are made of, and what others ask about it.

The rule goes by their width and depth, and becomes attributes that tools take. Vivado, Yosys and
others read ``ram_style``, Quartus and Yosys ``ramstyle``. No word is used that is read in the cycle
in which it is written, which Quartus and Yosys are told; neither has to build what would define it.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from ..errors import InputError
from ..rtl.modules import SharedModule

__all__ = ["AUTO", "NOTHING", "Memory", "MemoryRule", "MemoryStyle", "ModuleText", "Naming",
           "Port", "Structure", "for_simulation", "memory_attributes"]  # fmt: skip

NONE: Mapping[str, int] = MappingProxyType({})

#: The words of Verilog and SystemVerilog, which are no names.
WORDS = frozenset(
    """accept_on alias always always_comb always_ff always_latch and assert assign assume automatic
    before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell
    chandle checker class clocking cmos config const constraint context continue cover
    covergroup coverpoint cross deassign default defparam design disable dist do edge else
    end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup
    endinterface endmodule endpackage endprimitive endprogram endproperty endspecify
    endsequence endtable endtask enum event eventually expect export extends extern final
    first_match for force foreach forever fork forkjoin function generate genvar global
    highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir
    include initial inout input inside instance int integer interconnect interface intersect
    join join_any join_none large let liblist library local localparam logic longint
    macromodule matches medium modport module nand negedge nettype new nexttime nmos nor
    noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge
    primitive priority program property protected pull0 pull1 pulldown pullup
    pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real
    realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0
    rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared sequence
    shortint shortreal showcancelled signed small soft solve specify specparam static string
    strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table
    tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0
    tri1 triand trior trireg type typedef union unique unique0 unsigned until until_with
    untyped use uwire var vectored virtual void wait wait_order wand weak weak0 weak1 while
    wildcard wire with within wor xnor xor""".split()  # noqa: SIM905
)

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
    """

    text: str
    structure: Structure
    children: dict[str, int]
    shared: tuple[SharedModule, ...] = ()
    inner: bool = False


class Naming:
    """The names that a module has so far.

    Examples
    --------
    >>> naming = Naming()
    >>> naming.take("later")
    >>> [naming.new(wanted) for wanted in ("later", "later", "table", "a.b")]
    ['later_2', 'later_3', 'table_', 'a_b']
    """

    def __init__(self) -> None:
        self._taken, self._counts = set[str](), Counter[str]()

    def take(self, name: str) -> None:
        """Keep a name for what has it already."""
        self._taken.add(name)

    def new(self, wanted: str) -> str:
        """A name that nothing has: a number follows what several would have."""
        base = re.sub(r"[\W_]+", "_", wanted).strip("_") or "value"
        name = base = f"{base}_" if base in WORDS else base
        while name in self._taken:
            self._counts[base] += 1
            name = f"{base.rstrip('_')}_{self._counts[base] + 1}"
        self._taken.add(name)
        return name


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
