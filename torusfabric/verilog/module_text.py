"""A module as text, and beside it, as data, what others ask about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from ..rtl.modules import SharedModule

__all__ = ["NOTHING", "Memory", "ModuleText", "Naming", "Port", "Structure", "declared", "filled"]

#: Characters that lists of nets and pins may have on a line.
LINE = 98

NONE: Mapping[str, int] = MappingProxyType({})

#: The number of a node in the name of one of its ports.
NUMBER = re.compile(r"(?<=_)\d+(?=_|$)")

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
