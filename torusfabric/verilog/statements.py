"""What fragments of Amaranth drive, how that is called, and statements that drive the same.

Statements stay as they are written: a register is assigned where its design assigns it, under the
same conditions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from amaranth.hdl import ClockDomain, Fragment, Instance, Signal, Value
from amaranth.lib.cdc import AsyncFFSynchronizer, FFSynchronizer

from ..rtl.amaranth_private import MemoryInstance, assigned_signals, ast, describe_memory
from ..rtl.modules import APART
from .expressions import Expressions, no_verilog
from .syntax import constant, decision, guarded, is_flag, matches

__all__ = ["Naming", "Process", "SignalNames", "Statements", "driven_bits", "driven_by",
           "driven_within", "plain_last", "processes"]  # fmt: skip


@dataclass
class Process:
    """Statements of a clock domain, or none, that drive the same signals."""

    domain: ClockDomain | None
    statements: list[ast.Statement]
    signals: list[Signal] = field(default_factory=list)

    @property
    def apart(self) -> bool:
        """Whether synthesis makes its registers one with no others."""
        return all(APART.items() <= each.attrs.items() for each in self.signals)

    @property
    def plain(self) -> bool:
        """Whether registers change in every cycle, with no reset."""
        return all(isinstance(each, ast.Assign) for each in self.statements) and all(
            each.reset_less for each in self.signals
        )


def driven_bits(value: Value) -> Iterator[tuple[int, int]]:
    """The bits that an assignment drives, each by its signal and place."""
    match value:
        case ast.Signal():
            yield from ((id(value), k) for k in range(len(value)))
        case ast.Slice():
            yield from list(driven_bits(value.value))[value.start : value.stop]
        case ast.Concat():
            for part in value.parts:
                yield from driven_bits(part)
        case ast.Part() | ast.Operator():
            yield from driven_bits(
                value.value if isinstance(value, ast.Part) else value.operands[0]
            )


def driven_by(fragment: Fragment) -> list[Signal]:
    """The signals that a fragment itself drives, in the order of its statements."""
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


def driven_within(fragment: Fragment) -> list[Signal]:
    """The signals that a fragment drives, and all inside it."""
    found = driven_by(fragment)
    for inner, _, _ in fragment.subfragments:
        found += driven_within(inner)
    return list({id(signal): signal for signal in found}.values())


def processes(domain: ClockDomain | None, statements: Iterable[ast.Statement]) -> list[Process]:
    """Statements in groups of those that drive the same signals, in the order of the first."""
    groups: list[Process] = []
    group_of: dict[int, Process] = {}
    for each in _decided(statements, parts=domain is None):
        signals = {id(signal): signal for signal in assigned_signals(each)}
        joined = list({id(group_of[k]): group_of[k] for k in signals if k in group_of}.values())
        first = joined[0] if joined else Process(domain, [])
        if not joined:
            groups.append(first)
        for other in joined[1:]:
            first.statements += other.statements
            first.signals += other.signals
            groups.remove(other)
        first.statements.append(each)
        first.signals += [s for k, s in signals.items() if group_of.get(k) is None]
        for signal in first.signals:
            group_of[id(signal)] = first
    return groups


def _decided(
    statements: Iterable[ast.Statement], *, parts: bool = False
) -> Iterator[ast.Statement]:
    """Statements in which an assignment to one of several targets is a switch between targets.

    With `parts`, an assignment to bits at an offset is a switch between the values of the offset.
    """
    for each in statements:
        if isinstance(each, ast.Switch):
            cases = [(p, list(_decided(inner, parts=parts)), w) for p, inner, w in each.cases]
            yield ast.Switch(each.test, cases, src_loc=each.src_loc)
            continue
        switch = _target_switch(each, parts=parts) if isinstance(each, ast.Assign) else None
        if switch is None:
            yield each
        else:
            yield from _decided([switch], parts=parts)


def _target_switch(assign: ast.Assign, *, parts: bool) -> ast.Switch | None:
    """The switch between the targets of an assignment; None if it has one target."""
    match assign.lhs:
        case ast.SwitchValue(test=test, cases=cases):
            targets = [(p, [ast.Assign(one, assign.rhs)], None) for p, one in cases]
        case ast.Part(value=whole, offset=test, stride=stride, width=width) if parts:
            targets = []
            for k in range(min(2 ** len(test), -(-len(whole) // stride))):
                target = whole[k * stride : k * stride + width]
                targets.append(((f"{k:0{len(test)}b}",), [ast.Assign(target, assign.rhs)], None))
        case _:
            return None
    return ast.Switch(test, targets, src_loc=assign.src_loc)


def plain_last(processes: list[Process]) -> list[Process]:
    """Processes of a clock domain in which registers that always change are one, the last.

    There are two of them where some registers are to be apart.
    """
    found = [each for each in processes if each.domain is None or not each.plain]
    plain = [each for each in processes if each.domain is not None and each.plain]
    for apart in (True, False):
        joined = [each for each in plain if each.apart == apart]
        if joined:
            statements = [each for process in joined for each in process.statements]
            signals = [each for process in joined for each in process.signals]
            found.append(Process(joined[0].domain, statements, signals))
    return found


class Statements:
    """Writes statements as lines."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions

    def _assigned(self, assign: ast.Assign) -> Iterator[tuple[str, str]]:
        """Targets and values of an assignment: one for each part of two concatenations."""
        parts = [assign.lhs]
        if isinstance(assign.rhs, ast.Concat) and isinstance(parts[0], ast.Concat):
            parts = assign.lhs.parts
        start = 0
        for part in parts:
            stop = start + len(part)
            if stop > start:
                value = self._expressions.bits(assign.rhs, start, stop)
                yield self._expressions.target(part), value
            start = stop

    def lines(self, statements: Iterable[ast.Statement]) -> list[str]:
        """The lines of statements of a clock domain."""
        lines: list[str] = []
        for each in statements:
            if isinstance(each, ast.Assign):
                lines += [f"{target} <= {value};" for target, value in self._assigned(each)]
            elif isinstance(each, ast.Switch):
                lines += self._switch(each)
            else:
                raise no_verilog(each)
        return lines

    def _switch(self, switch: ast.Switch) -> list[str]:
        """The lines of a decision: of one with two outcomes, or with several."""
        cases = [(patterns, self.lines(inner)) for patterns, inner, _ in switch.cases]
        if not any(lines for _, lines in cases):
            return []
        known = self._expressions.known(switch.test)
        if known is not None:
            return next((lines for patterns, lines in cases if matches(patterns, known)), [])
        if all(patterns is None or is_flag(patterns) for patterns, _ in cases):
            return self._conditions(switch.test, cases)
        return decision(self._expressions.whole(switch.test), cases)

    def _conditions(
        self, test: Value, cases: list[tuple[tuple[str, ...] | None, list[str]]]
    ) -> list[str]:
        """The lines of if, else if, .., else: each case looks at one bit of a test."""
        lines: list[str] = []
        head = ""
        for patterns, inner in cases:
            if patterns is None:
                if not head:
                    return inner
                return [*lines, *guarded("else", inner)] if inner else lines
            (pattern,) = patterns
            wanted = "1" in pattern
            place = len(pattern) - 1 - pattern.index("1" if wanted else "0")
            asked = self._expressions.bits(test, place, place + 1)
            if asked == constant(wanted, 1):
                return [*lines, *(guarded("else", inner) if head else inner)]
            if asked == constant(not wanted, 1):
                continue
            asked = asked if wanted else f"!({asked})"
            lines += guarded(f"{head}if ({asked})", inner)
            head = "else "
        return lines


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


class SignalNames(Naming):
    """The names that a module has so far, and those of its signals.

    Parameters
    ----------
    outer : iterable of Signal
        What is given to the module from outside, clocks and resets that no port brings included.
    fragment : Fragment
        What is inside it.

    Attributes
    ----------
    clocks : list of str
        Those clocks and resets.
    read : set of (str or None)
        The names of signals that are read.
    joined : set of int
        The identities of outputs with whose names other signals are called.
    synchronizers : set of int
        The identities of registers that take what comes from another clock.
    """

    def __init__(
        self, ports: Mapping[str, Signal], outer: Iterable[Signal], fragment: Fragment
    ) -> None:
        super().__init__()
        self._names: dict[int, str] = {}
        self.read = set[str | None]()
        self.joined, self.synchronizers = set[int](), set[int]()
        for name, port in ports.items():
            self.take(name)
            self._names.setdefault(id(port), name)
        clocks = [signal for signal in outer if id(signal) not in self._names]
        self.clocks = [signal.name for signal in clocks]
        for signal in clocks:
            self.take(signal.name)
            self._names[id(signal)] = signal.name
        outputs = {id(port) for port in ports.values()}
        self._join(fragment, outputs, {id(signal) for signal in driven_within(fragment)})
        self._name(fragment, "")

    def __getitem__(self, signal: Signal) -> str:
        """The name of a signal that is driven, or a port."""
        return self._names[id(signal)]

    def of(self, signal: Signal) -> str | None:
        """The name of a signal that is read; None of one that nothing drives."""
        name = self._names.get(id(signal))
        self.read.add(name)
        return name

    def _join(self, fragment: Fragment, outputs: set[int], driven: set[int]) -> None:
        """Let an output, and the signal that it always equals, be one with its name."""
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
            self._join(inner, outputs, driven)

    def _name(self, fragment: Fragment, prefix: str) -> None:
        """Name what a fragment drives, and what is inside it."""
        if any(isinstance(o, FFSynchronizer | AsyncFFSynchronizer) for o in fragment.origins or ()):
            clocked = (each for domain, each in fragment.statements.items() if domain != "comb")
            self.synchronizers |= {
                id(signal) for each in clocked for s in each for signal in assigned_signals(s)
            }
        for signal in driven_by(fragment):
            if id(signal) not in self._names:
                self._names[id(signal)] = self.new(prefix + signal.name)
        for inner, name, _ in fragment.subfragments:
            apart = name and not isinstance(inner, Instance)
            self._name(inner, f"{prefix}{name}_" if apart else prefix)
