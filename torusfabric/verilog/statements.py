"""Statements: those of a clock domain as lines, those of logic as values.

Statements of a clock domain stay as they are written: a register is assigned where its design
assigns it, under the same conditions.

Of logic each bit has one expression. Why no ``always @*`` block: a block waits for a change of its
inputs. In simulators that initialise declarations before they start processes (the rule of
SystemVerilog), an input that keeps its first value never changes, so that the block never runs and
its signals stay unknown. A continuous assignment is evaluated at the start.

A *piece* is a range of bits of a signal that statements of logic always assign together.
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


#: Identity of a signal, its first bit, and the bit behind its last.
Piece = tuple[int, int, int]

#: Expression of each piece.
Values = dict[Piece, str]


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
    """Yield the target and the value of each piece of the signals that a process drives.

    Parameters
    ----------
    process : Process
        Statements without a clock. A bit that no statement assigns has its initial value.
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
    """Computes the values of pieces by symbolic execution of statements.

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
        """Return the values after statements, given those before."""
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
        """Yield the pieces of the target of an assignment."""
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
            # A part can be taken of a name alone.
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
        """Return a value before a switch: a wire if branches would repeat a long expression."""
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
