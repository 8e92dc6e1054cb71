"""What the fragments of Amaranth drive, and their statements, in groups that drive the same.

Statements stay as they are written: a register is assigned where its design assigns it, under the
same conditions.
"""
# ruff: noqa: SLF001  Amaranth says in private members what statements and memories are made of.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from amaranth.hdl import ClockDomain, Fragment, Instance, Signal, Value
from amaranth.hdl import _ast as ast
from amaranth.hdl._mem import MemoryInstance

from .expressions import Expressions, no_verilog
from .syntax import constant, decision, guarded, matches

__all__ = ["Process", "Statements", "driven_bits", "driven_by", "driven_within", "is_part", "only",
           "plain_last", "processes"]  # fmt: skip


@dataclass
class Process:
    """Statements of a clock domain, or none, that drive the same signals."""

    domain: ClockDomain | None
    statements: list[ast.Statement]
    signals: list[Signal] = field(default_factory=list)

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
            found |= {id(signal): signal for signal in each._lhs_signals()}
    values: list[Value] = []
    if isinstance(fragment, MemoryInstance):
        values = [port._data for port in fragment._read_ports]
    elif isinstance(fragment, Instance):
        values = [value for value, way in fragment.ports.values() if way == "o"]
    for value in values:
        found |= {id(signal): signal for signal in value._lhs_signals()}
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
    for each in _decided(statements):
        signals = {id(signal): signal for signal in each._lhs_signals()}
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


def _decided(statements: Iterable[ast.Statement]) -> Iterator[ast.Statement]:
    """Statements in which an assignment to one of several targets is a decision between them."""
    for each in statements:
        if isinstance(each, ast.Switch):
            cases = [(p, list(_decided(inner)), where) for p, inner, where in each.cases]
            yield ast.Switch(each.test, cases, src_loc=each.src_loc)
        elif isinstance(each, ast.Assign) and isinstance(each.lhs, ast.SwitchValue):
            targets = [(p, [ast.Assign(one, each.rhs)], None) for p, one in each.lhs.cases]
            yield from _decided([ast.Switch(each.lhs.test, targets, src_loc=each.src_loc)])
        else:
            yield each


def plain_last(processes: list[Process]) -> list[Process]:
    """Processes of a clock domain in which registers that always change are one, the last."""
    plain = [each for each in processes if each.domain is not None and each.plain]
    others = [each for each in processes if each.domain is None or not each.plain]
    if not plain:
        return others
    statements = [each for process in plain for each in process.statements]
    signals = [each for process in plain for each in process.signals]
    return [*others, Process(plain[0].domain, statements, signals)]


def only(statements: Iterable[ast.Statement], signal: Signal) -> list[ast.Statement]:
    """What statements do to one signal."""
    found: list[ast.Statement] = []
    for each in statements:
        if all(id(other) != id(signal) for other in each._lhs_signals()):
            continue
        if isinstance(each, ast.Switch):
            cases = [(p, only(inner, signal), where) for p, inner, where in each.cases]
            found.append(ast.Switch(each.test, cases, src_loc=each.src_loc))
        elif isinstance(each.lhs, ast.Concat):
            start = 0
            for part in each.lhs.parts:
                stop = start + len(part)
                if any(id(other) == id(signal) for other in part._lhs_signals()):
                    value = ast.Slice(each.rhs, min(start, len(each.rhs)), min(stop, len(each.rhs)))
                    found.append(ast.Assign(part, value))
                start = stop
        else:
            found.append(each)
    return found


def is_part(value: Value) -> bool:
    """Whether an assignment drives bits that are known at run time only."""
    return isinstance(value, ast.Part) or (
        isinstance(value, ast.Concat) and any(map(is_part, value.parts))
    )


class Statements:
    """Writes statements as lines."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions

    def assigned(self, assign: ast.Assign, *, at_once: bool = False) -> Iterator[tuple[str, str]]:
        """Targets and values of an assignment: one for each part, unless all change at once."""
        parts = [assign.lhs]
        if not at_once and isinstance(assign.rhs, ast.Concat) and isinstance(parts[0], ast.Concat):
            parts = assign.lhs.parts
        start = 0
        for part in parts:
            stop = start + len(part)
            if stop > start:
                value = self._expressions.bits(assign.rhs, start, stop)
                yield self._expressions.target(part), value
            start = stop

    def lines(self, statements: Iterable[ast.Statement], sign: str) -> list[str]:
        """The lines of statements."""
        lines: list[str] = []
        for each in statements:
            if isinstance(each, ast.Assign):
                found = self.assigned(each, at_once=sign == "=")
                lines += [f"{target} {sign} {value};" for target, value in found]
            elif isinstance(each, ast.Switch):
                lines += self._switch(each, sign)
            else:
                raise no_verilog(each)
        return lines

    def _switch(self, switch: ast.Switch, sign: str) -> list[str]:
        """The lines of a decision: of one with two outcomes, or with several."""
        cases = [(patterns, self.lines(inner, sign)) for patterns, inner, _ in switch.cases]
        if not any(lines for _, lines in cases):
            return []
        known = self._expressions.known(switch.test)
        if known is not None:
            return next((lines for patterns, lines in cases if matches(patterns, known)), [])
        if all(patterns is None or _is_flag(patterns) for patterns, _ in cases):
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


def _is_flag(patterns: tuple[str, ...]) -> bool:
    """Whether patterns look at one bit alone."""
    return len(patterns) == 1 and len(patterns[0].replace("-", "")) == 1
