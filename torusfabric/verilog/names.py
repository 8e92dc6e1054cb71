"""Names of signals in a Verilog module: all different, and none a keyword of the language.

A *fragment* is the hardware of an Amaranth component after elaboration; its subfragments are the
components inside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from amaranth.hdl import Fragment, Instance, Signal, Value
from amaranth.lib.cdc import AsyncFFSynchronizer, FFSynchronizer

from ..rtl.amaranth_private import MemoryInstance, assigned_signals, ast, describe_memory

__all__ = ["KEYWORDS", "UsedNames", "SignalNames", "all_driven_signals",
           "multiply_driven_signals"]  # fmt: skip


def driven_signals(fragment: Fragment) -> list[Signal]:
    """Return the signals that a component itself drives, without the components inside.

    A fragment is the hardware of a component after elaboration by Amaranth. Signals are in the
    order of the statements.
    """
    found: dict[int, Signal] = {}
    for statements in fragment.statements.values():
        for each in statements:
            found |= {id(signal): signal for signal in assigned_signals(each)}
    values: list[Value] = []
    if isinstance(fragment, MemoryInstance):
        values = [port.data for port in describe_memory(fragment).reads]
    elif isinstance(fragment, Instance):
        values = [value for value, way in fragment.ports.values() if way == "o"]
    for value in values:
        found |= {id(signal): signal for signal in assigned_signals(value)}
    return list(found.values())


def all_driven_signals(fragment: Fragment) -> list[Signal]:
    """Return the signals that a component and all components inside drive."""
    found = driven_signals(fragment)
    for inner, _, _ in fragment.subfragments:
        found += all_driven_signals(inner)
    return list({id(signal): signal for signal in found}.values())


def multiply_driven_signals(fragment: Fragment) -> list[Signal]:
    """Return the signals of which some bits are driven in one clock domain, others in another.

    Logic counts as a domain, each component has domains of its own, and the outputs of all
    instances together count as one domain.
    """
    found: dict[int, Signal] = {}
    drivers: dict[int, set[object]] = {}

    def add_drivers(inner: Fragment) -> None:
        targets: list[tuple[object, Any]] = [
            ((id(inner), domain), each)
            for domain, statements in inner.statements.items()
            for each in statements
        ]
        if isinstance(inner, Instance):
            targets += [(None, value) for value, way in inner.ports.values() if way == "o"]
        for driver, target in targets:
            for signal in assigned_signals(target):
                found[id(signal)] = signal
                drivers.setdefault(id(signal), set()).add(driver)
        for each, _, _ in inner.subfragments:
            add_drivers(each)

    add_drivers(fragment)
    return [signal for key, signal in found.items() if len(drivers[key]) > 1]


#: Keywords of Verilog and SystemVerilog, which cannot be names.
KEYWORDS = frozenset(
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


class UsedNames:
    """The names that are in use in a module.

    Examples
    --------
    The name ``later`` is taken, ``table`` is a keyword, and ``a.b`` is no name in Verilog.

    >>> naming = UsedNames()
    >>> naming.reserve("later")
    >>> [naming.new_name(wanted) for wanted in ("later", "later", "table", "a.b")]
    ['later_2', 'later_3', 'table_', 'a_b']
    """

    def __init__(self) -> None:
        self._taken, self._counts = set[str](), Counter[str]()

    def reserve(self, name: str) -> None:
        """Mark a name as used, so that `new_name` does not return it."""
        self._taken.add(name)

    def new_name(self, wanted: str) -> str:
        """Return `wanted`, or a similar name if that is in use or a keyword; mark it as used.

        A number is appended if the name is taken, an underscore if it is a keyword.
        """
        base = re.sub(r"[\W_]+", "_", wanted).strip("_") or "value"
        name = base = f"{base}_" if base in KEYWORDS else base
        while name in self._taken:
            self._counts[base] += 1
            name = f"{base.rstrip('_')}_{self._counts[base] + 1}"
        self._taken.add(name)
        return name


class SignalNames(UsedNames):
    """The names that are in use in a module, and the name of each of its signals.

    Parameters
    ----------
    ports : dict of str to Signal
        Ports by name.
    outer : iterable of Signal
        All signals that enter the module: ports, and clocks and resets that are not among `ports`.
    fragment : Fragment
        Hardware inside the module.

    Attributes
    ----------
    clocks : list of str
        Names of the clocks and resets that are not among `ports`.
    read : set of (str or None)
        Names of signals that some expression reads. None stands for signals that nothing drives.
    joined : set of int
        ``id`` of each output that has the same name as an inner signal, because both are always
        equal. Such an output needs no assignment.
    synchronizers : set of int
        ``id`` of each register of a synchronizer, which samples a signal of another clock.
    """

    def __init__(
        self, ports: Mapping[str, Signal], outer: Iterable[Signal], fragment: Fragment
    ) -> None:
        super().__init__()
        self._names: dict[int, str] = {}
        self.read = set[str | None]()
        self.joined, self.synchronizers = set[int](), set[int]()
        for name, port in ports.items():
            self.reserve(name)
            self._names.setdefault(id(port), name)
        clocks = [signal for signal in outer if id(signal) not in self._names]
        self.clocks = [signal.name for signal in clocks]
        for signal in clocks:
            self.reserve(signal.name)
            self._names[id(signal)] = signal.name
        outputs = {id(port) for port in ports.values()}
        self._alias_outputs(
            fragment, outputs, {id(signal) for signal in all_driven_signals(fragment)}
        )
        self._name_signals(fragment, "")

    def __getitem__(self, signal: Signal) -> str:
        """Return the name of a signal that is a port or driven."""
        return self._names[id(signal)]

    def name_for_reading(self, signal: Signal) -> str | None:
        """Return the name of a signal that an expression reads; None if nothing drives the signal.

        The name is added to `read`.
        """
        name = self._names.get(id(signal))
        self.read.add(name)
        return name

    def _alias_outputs(self, fragment: Fragment, outputs: set[int], driven: set[int]) -> None:
        """Give one name to an output and the inner signal that is always assigned to it, if any.

        Such an output needs no assignment, and its ``id`` is added to `joined`.

        Parameters
        ----------
        fragment : Fragment
            The fragment whose assignments are searched.
        outputs : set of int
            ``id`` of each port.
        driven : set of int
            ``id`` of each signal that something in the module drives.
        """
        for statement in fragment.statements.get("comb", ()):
            if not isinstance(statement, ast.Assign):
                continue
            output, same = statement.lhs, statement.rhs
            if (
                isinstance(output, Signal)
                and isinstance(same, Signal)
                and id(output) in outputs
                and len(output) == len(same)
                and id(same) in driven
                and id(same) not in self._names
            ):
                self._names[id(same)] = self._names[id(output)]
                self.joined.add(id(output))
        for inner, _, _ in fragment.subfragments:
            self._alias_outputs(inner, outputs, driven)

    def _name_signals(self, fragment: Fragment, prefix: str) -> None:
        """Name all signals without a name that are driven by a component or the components inside.

        A name begins with `prefix` and the names of the components around the signal.
        """
        if any(isinstance(o, FFSynchronizer | AsyncFFSynchronizer) for o in fragment.origins or ()):
            clocked = (each for domain, each in fragment.statements.items() if domain != "comb")
            self.synchronizers |= {
                id(signal) for each in clocked for s in each for signal in assigned_signals(s)
            }
        for signal in driven_signals(fragment):
            if id(signal) not in self._names:
                self._names[id(signal)] = self.new_name(prefix + signal.name)
        for inner, name, _ in fragment.subfragments:
            apart = name and not isinstance(inner, Instance)
            self._name_signals(inner, f"{prefix}{name}_" if apart else prefix)
