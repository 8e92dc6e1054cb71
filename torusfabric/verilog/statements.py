"""Amaranth statements as Verilog: clocked ones as lines of ``always`` blocks, logic as expressions.

The user is the writer. `processes` groups the statements of a clock domain, `Statements` writes
clocked groups, and `assigned_values` computes an expression for each signal of a group of logic.

Clocked statements keep their form: a register is assigned where its design assigns it, under the
same conditions.

Logic becomes one continuous assignment for each *piece*, which is a range of bits of a signal that
the statements always assign together. Why no ``always @*`` block: a block waits for a change of its
inputs. In simulators that initialise declarations before they start processes (the rule of
SystemVerilog), an input that keeps its first value never changes, so that the block never runs and
its signals stay unknown. A continuous assignment is evaluated at the start.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from amaranth.hdl import ClockDomain, Signal, Value

from ..rtl.amaranth_private import assigned_signals, ast
from ..rtl.modules import APART
from .expressions import Case, Expressions, no_verilog, pieces_of
from .syntax import atom, bits_of, constant, decision, guarded, is_flag, matches

__all__ = ["Process", "Statements", "assigned_values", "plain_last", "processes"]


#: ``id`` of a signal, its first bit, and the bit after its last.
Piece = tuple[int, int, int]

#: Expression of each piece.
Values = dict[Piece, str]


@dataclass
class Process:
    """Statements of one clock domain that drive the same signals.

    Parameters
    ----------
    domain : ClockDomain or None
        Clock domain; None for logic.
    statements : list of Statement
        Statements in the order of the design.
    signals : list of Signal
        Signals that the statements drive.
    """

    domain: ClockDomain | None
    statements: list[ast.Statement]
    signals: list[Signal] = field(default_factory=list)

    @property
    def apart(self) -> bool:
        """True if synthesis must not merge the registers with equal registers."""
        return all(APART.items() <= each.attrs.items() for each in self.signals)

    @property
    def plain(self) -> bool:
        """True if every register is assigned unconditionally and has no reset."""
        return all(isinstance(each, ast.Assign) for each in self.statements) and all(
            each.reset_less for each in self.signals
        )


def processes(domain: ClockDomain | None, statements: Iterable[ast.Statement]) -> list[Process]:
    """Return statements grouped into processes, so that each signal is driven by one process.

    Groups are in the order of their first statements.
    """
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
    """Yield statements without assignments to a chosen target.

    An assignment to one of several targets becomes a switch between assignments. With `parts`, an
    assignment to bits at a variable offset becomes a switch on the offset.
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
    """Return the switch equivalent to an assignment to a chosen target; None for a fixed target."""
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
    """Return processes of a clock domain with all plain ones merged into one, at the end.

    Registers that synthesis must keep apart have a plain process of their own.
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
    """Writer of clocked statements."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions

    def _assigned(self, assign: ast.Assign) -> Iterator[tuple[str, str]]:
        """Yield target and value of an assignment; two concatenations are assigned part by part."""
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
        """Return the lines of clocked statements."""
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
        """Return the lines of a switch.

        It becomes an ``if`` chain if each case tests one bit, a ``case`` otherwise. A constant test
        leaves the lines of the matching case only.
        """
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
        """Return the lines of an ``if``, ``else if``, ``else`` chain; each case tests one bit."""
        lines: list[str] = []
        head = ""
        for patterns, inner in cases:
            if patterns is None:
                if not head:
                    return inner
                return [*lines, *guarded("else", inner)] if inner else lines
            asked, wanted = self._expressions.flag(test, patterns)
            if asked == constant(wanted, 1):
                return [*lines, *(guarded("else", inner) if head else inner)]
            if asked == constant(not wanted, 1):
                continue
            asked = asked if wanted else f"!({asked})"
            lines += guarded(f"{head}if ({asked})", inner)
            head = "else "
        return lines


def assigned_values(process: Process, expressions: Expressions) -> Iterator[tuple[str, str]]:
    """Yield target and value, as Verilog, of each piece of the signals that a process drives.

    Parameters
    ----------
    process : Process
        Statements of logic. A bit that no statement assigns has its initial value.
    """
    logic = _Logic(process, expressions)
    for (key, low, high), text in logic.after(process.statements, logic.initial).items():
        signal = logic.signals[key]
        yield bits_of(expressions.target(signal), low, high - low, len(signal)), text


def _targets(statements: Iterable[ast.Statement]) -> Iterator[Piece]:
    """Yield the ranges of bits that assignments have as their targets."""
    for each in statements:
        if isinstance(each, ast.Assign):
            for value, low, high in pieces_of(each.lhs, 0, len(each.lhs)):
                yield id(value), low, high
        elif isinstance(each, ast.Switch):
            for _, inner, _ in each.cases:
                yield from _targets(inner)


class _Logic:
    """The values of pieces, by symbolic execution of the statements of a process.

    Attributes
    ----------
    signals : dict of int to Signal
        The signals that the process drives, by their identities.
    initial : dict of Piece to str
        The values of all pieces before the first statement.
    """

    def __init__(self, process: Process, expressions: Expressions) -> None:
        self.signals = {id(signal): signal for signal in process.signals}
        self._expressions = expressions
        cuts = {key: {0, len(signal)} for key, signal in self.signals.items()}
        for key, low, high in _targets(process.statements):
            cuts[key] |= {low, high}
        self._cuts = {key: sorted(bits) for key, bits in cuts.items()}
        self.initial = {
            (key, low, high): constant(signal.init >> low, high - low)
            for key, signal in self.signals.items()
            for _, low, high in self._divide((key, 0, len(signal)))
        }

    def after(self, statements: Iterable[ast.Statement], before: Values) -> Values:
        """Return the values after statements, given the values before them."""
        values = dict(before)
        for each in statements:
            if isinstance(each, ast.Assign):
                values |= self._assign(each)
            elif isinstance(each, ast.Switch):
                values |= self._switch(each, values)
            else:
                raise no_verilog(each)
        return values

    def _divide(self, target: Piece) -> Iterator[Piece]:
        """Yield the pieces of a range of bits."""
        key, low, high = target
        cuts = self._cuts[key]
        for start, stop in pairwise(cuts[bisect_left(cuts, low) : bisect_left(cuts, high) + 1]):
            yield key, start, stop

    def _assign(self, assign: ast.Assign) -> Values:
        """Return the values of the pieces that an assignment drives."""
        starts: dict[Piece, int] = {}
        end = 0
        for signal, low, high in pieces_of(assign.lhs, 0, len(assign.lhs)):
            target = id(signal), low, high
            starts |= {each: end + each[1] - low for each in self._divide(target)}
            end += high - low
        bits = self._expressions.bits
        if len(starts) > 1 and isinstance(assign.rhs, ast.Operator | ast.SwitchValue | ast.Part):
            # Verilog selects bits of a name only, not of an expression.
            name = self._expressions.helper(bits(assign.rhs, 0, end), end, called="value")
            return {
                each: bits_of(name, first, each[2] - each[1], end) for each, first in starts.items()
            }
        return {
            each: bits(assign.rhs, first, first + each[2] - each[1])
            for each, first in starts.items()
        }

    def _switch(self, switch: ast.Switch, values: Values) -> Values:
        """Return the values of the pieces that a switch drives."""
        driven = dict.fromkeys(each for t in _targets([switch]) for each in self._divide(t))
        before = {each: self._shared(switch, each, values[each]) for each in driven}
        cases = [(patterns, self.after(inner, before)) for patterns, inner, _ in switch.cases]
        if cases[-1][0] is not None:
            cases.append((None, before))
        found: Values = {}
        for each in driven:
            texts: list[Case] = [(patterns, after[each]) for patterns, after in cases]
            found[each] = self._expressions.choice(switch.test, texts, each[2] - each[1])
        return found

    def _shared(self, switch: ast.Switch, piece: Piece, text: str) -> str:
        """Return the value of a piece before a switch.

        If branches would repeat a long expression, it becomes a wire.
        """
        if text == atom(text) or self._uses([switch], piece) < 2:
            return text
        called = f"{self.signals[piece[0]].name}_before"
        return self._expressions.helper(text, piece[2] - piece[1], called=called)

    def _uses(self, statements: Iterable[ast.Statement], piece: Piece) -> int:
        """Count the branches through statements in which a piece keeps the value from before."""
        uses = 1
        for each in statements:
            if isinstance(each, ast.Assign):
                uses *= all(piece not in self._divide(target) for target in _targets([each]))
            elif isinstance(each, ast.Switch):
                branches = sum(self._uses(inner, piece) for _, inner, _ in each.cases)
                uses *= branches + (each.cases[-1][0] is not None)
        return uses
