"""Amaranth statements as Verilog: clocked ones as lines of ``always`` blocks, logic as expressions.

The user is the writer. `group_into_processes` groups the statements of a clock domain,
`StatementWriter` writes clocked groups, and `assigned_values` computes an expression for each
signal of a group of logic.

Clocked statements keep their form: a register is assigned where its design assigns it, under the
same conditions.

Logic becomes one continuous assignment for each *piece*, which is a range of bits of a signal that
the statements always assign together. Why no ``always @*`` block: a block waits for a change of its
inputs. In simulators that initialise declarations before they start processes (the rule of
SystemVerilog), an input that keeps its first value never changes, so that the block never runs and
its signals stay unknown. A continuous assignment is evaluated at the start.

The *target* of an assignment is its left side: a signal, or some of the bits of a signal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from amaranth.hdl import ClockDomain, Signal, Value

from ..rtl.amaranth_private import assigned_signals, ast
from ..rtl.modules import UNMERGED
from .expressions import Case, ExpressionWriter, no_verilog_error, pieces_of
from .syntax import (
    bits_of,
    choice_lines,
    constant,
    is_one_bit_test,
    matches_case,
    parenthesize,
    statement_block,
)

__all__ = ["Process", "StatementWriter", "assigned_values", "merge_plain_processes",
           "group_into_processes"]  # fmt: skip


#: ``id`` of a signal, its first bit, and the bit after its last.
Piece = tuple[int, int, int]

#: Expression of each piece.
Values = dict[Piece, str]


@dataclass
class Process:
    """Statements of one clock domain, or of combinational logic, that drive the same signals.

    Parameters
    ----------
    domain : ClockDomain or None
        Clock domain; None for combinational logic.
    statements : list of Statement
        Statements in the order of the design.
    signals : list of Signal
        Signals that the statements drive.
    """

    domain: ClockDomain | None
    statements: list[ast.Statement]
    signals: list[Signal] = field(default_factory=list)

    @property
    def is_unmerged(self) -> bool:
        """True if synthesis must not merge these registers with registers of equal value."""
        return all(UNMERGED.items() <= each.attrs.items() for each in self.signals)

    @property
    def is_plain(self) -> bool:
        """True if every register is assigned without a condition and has no reset."""
        return all(isinstance(each, ast.Assign) for each in self.statements) and all(
            each.reset_less for each in self.signals
        )


def group_into_processes(
    domain: ClockDomain | None, statements: Iterable[ast.Statement]
) -> list[Process]:
    """Return processes: groups of statements, so that each signal is driven by one group only.

    They are in the order of their first statements.

    Parameters
    ----------
    domain : ClockDomain or None
        Clock domain of the statements; None for combinational logic.
    statements : iterable of Statement
        All statements of the domain.
    """
    groups: list[Process] = []
    group_of: dict[int, Process] = {}
    for each in _resolve_targets(statements, parts=domain is None):
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


def _resolve_targets(
    statements: Iterable[ast.Statement], *, parts: bool = False
) -> Iterator[ast.Statement]:
    """Yield all statements, changed so that no left side of an assignment depends on a signal.

    An assignment to an element of an array becomes a switch on the index, with one assignment to
    each element. With `parts`, an assignment to bits at a variable position becomes a switch on the
    position.
    """
    for each in statements:
        if isinstance(each, ast.Switch):
            cases = [
                (p, list(_resolve_targets(inner, parts=parts)), w) for p, inner, w in each.cases
            ]
            yield ast.Switch(each.test, cases, src_loc=each.src_loc)
            continue
        switch = _target_switch(each, parts=parts) if isinstance(each, ast.Assign) else None
        if switch is None:
            yield each
        else:
            yield from _resolve_targets([switch], parts=parts)


def _target_switch(assign: ast.Assign, *, parts: bool) -> ast.Switch | None:
    """Return a switch with a case for each possible left side of `assign`; None if it is fixed.

    The left side of an assignment can be an array element with a variable index. With `parts`, bits
    at a variable position count, too.
    """
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


def merge_plain_processes(processes: list[Process]) -> list[Process]:
    """Return the processes of a clock domain, with all plain ones merged into one at the end.

    A process is plain if it assigns its registers without conditions or reset. Why: one ``always``
    block is shorter than one for each register. Registers that synthesis must not merge have a
    plain process of their own.
    """
    found = [each for each in processes if each.domain is None or not each.is_plain]
    plain = [each for each in processes if each.domain is not None and each.is_plain]
    for apart in (True, False):
        joined = [each for each in plain if each.is_unmerged == apart]
        if joined:
            statements = [each for process in joined for each in process.statements]
            signals = [each for process in joined for each in process.signals]
            found.append(Process(joined[0].domain, statements, signals))
    return found


class StatementWriter:
    """Writer of clocked statements as lines of an ``always`` block."""

    def __init__(self, expressions: ExpressionWriter) -> None:
        self._expressions = expressions

    def _target_value_pairs(self, assign: ast.Assign) -> Iterator[tuple[str, str]]:
        """Yield the Verilog of both sides of an assignment: ``("count", "count + 2'd1")``.

        An assignment of a concatenation to a concatenation is split into one for each part.
        """
        parts = [assign.lhs]
        if isinstance(assign.rhs, ast.Concat) and isinstance(parts[0], ast.Concat):
            parts = assign.lhs.parts
        start = 0
        for part in parts:
            stop = start + len(part)
            if stop > start:
                value = self._expressions.bits(assign.rhs, start, stop)
                yield self._expressions.assignment_target(part), value
            start = stop

    def statement_lines(self, statements: Iterable[ast.Statement]) -> list[str]:
        """Return the Verilog of clocked statements, line by line."""
        lines: list[str] = []
        for each in statements:
            if isinstance(each, ast.Assign):
                lines += [
                    f"{target} <= {value};" for target, value in self._target_value_pairs(each)
                ]
            elif isinstance(each, ast.Switch):
                lines += self._switch_lines(each)
            else:
                raise no_verilog_error(each)
        return lines

    def _switch_lines(self, switch: ast.Switch) -> list[str]:
        """Return the Verilog of a switch, line by line.

        It is an ``if`` chain if each case tests one bit, and a ``case`` otherwise. If the tested
        value is a constant, only the statements of the matching case remain.
        """
        cases = [(patterns, self.statement_lines(inner)) for patterns, inner, _ in switch.cases]
        if not any(lines for _, lines in cases):
            return []
        known = self._expressions.constant_bits(switch.test)
        if known is not None:
            return next((lines for patterns, lines in cases if matches_case(patterns, known)), [])
        if all(patterns is None or is_one_bit_test(patterns) for patterns, _ in cases):
            return self._condition_lines(switch.test, cases)
        return choice_lines(self._expressions.all_bits(switch.test), cases)

    def _condition_lines(
        self, test: Value, cases: list[tuple[tuple[str, ...] | None, list[str]]]
    ) -> list[str]:
        """Return the lines of an ``if``, ``else if``, ``else`` chain.

        Each of `cases` is a pair: patterns, which test one bit of `test`, and the lines to execute
        if it matches. None in place of patterns stands for ``else``.
        """
        lines: list[str] = []
        head = ""
        for patterns, inner in cases:
            if patterns is None:
                if not head:
                    return inner
                return [*lines, *statement_block("else", inner)] if inner else lines
            asked, wanted = self._expressions.flag_bit(test, patterns)
            if asked == constant(wanted, 1):
                return [*lines, *(statement_block("else", inner) if head else inner)]
            if asked == constant(not wanted, 1):
                continue
            asked = asked if wanted else f"!({asked})"
            lines += statement_block(f"{head}if ({asked})", inner)
            head = "else "
        return lines


def assigned_values(process: Process, expressions: ExpressionWriter) -> Iterator[tuple[str, str]]:
    """Yield the assignments of combinational logic, as pairs of left side and value in Verilog.

    A signal is assigned in *pieces*: ranges of bits that the statements always assign together. A
    bit that no statement assigns has its initial value.

    Parameters
    ----------
    process : Process
        Statements of combinational logic.
    expressions : ExpressionWriter
        Writer of the values.
    """
    logic = _SymbolicValues(process, expressions)
    for (key, low, high), text in logic.execute(process.statements, logic.initial).items():
        signal = logic.signals[key]
        yield bits_of(expressions.assignment_target(signal), low, high - low, len(signal)), text


def _target_pieces(statements: Iterable[ast.Statement]) -> Iterator[Piece]:
    """Yield the bit range on the left side of each assignment, also inside switches.

    A range is ``(id of the signal, first bit, bit after the last)``.
    """
    for each in statements:
        if isinstance(each, ast.Assign):
            for value, low, high in pieces_of(each.lhs, 0, len(each.lhs)):
                yield id(value), low, high
        elif isinstance(each, ast.Switch):
            for _, inner, _ in each.cases:
                yield from _target_pieces(inner)


class _SymbolicValues:
    """Symbolic execution of combinational statements: the value of each signal as an expression.

    Signals are handled in *pieces*, ranges of bits that the statements always assign together:
    ``(id of the signal, first bit, bit after the last)``.

    Attributes
    ----------
    signals : dict of int to Signal
        The signals that the process drives, by their ``id``.
    initial : dict of Piece to str
        The values of all pieces before the first statement.
    """

    def __init__(self, process: Process, expressions: ExpressionWriter) -> None:
        self.signals = {id(signal): signal for signal in process.signals}
        self._expressions = expressions
        cuts = {key: {0, len(signal)} for key, signal in self.signals.items()}
        for key, low, high in _target_pieces(process.statements):
            cuts[key] |= {low, high}
        self._cuts = {key: sorted(bits) for key, bits in cuts.items()}
        self.initial = {
            (key, low, high): constant(signal.init >> low, high - low)
            for key, signal in self.signals.items()
            for _, low, high in self._split_pieces((key, 0, len(signal)))
        }

    def execute(self, statements: Iterable[ast.Statement], before: Values) -> Values:
        """Return the values after some statements, given the values `before`.

        Values are a dictionary: range of bits of a signal -> Verilog expression.
        """
        values = dict(before)
        for each in statements:
            if isinstance(each, ast.Assign):
                values |= self._execute_assignment(each)
            elif isinstance(each, ast.Switch):
                values |= self._execute_switch(each, values)
            else:
                raise no_verilog_error(each)
        return values

    def _split_pieces(self, target: Piece) -> Iterator[Piece]:
        """Yield the pieces of `target`, a range of bits of a signal.

        A piece is a range of bits that all statements assign together.
        """
        key, low, high = target
        cuts = self._cuts[key]
        for start, stop in pairwise(cuts[bisect_left(cuts, low) : bisect_left(cuts, high) + 1]):
            yield key, start, stop

    def _execute_assignment(self, assign: ast.Assign) -> Values:
        """Return the values that an assignment sets: bit range of a signal -> expression."""
        starts: dict[Piece, int] = {}
        end = 0
        for signal, low, high in pieces_of(assign.lhs, 0, len(assign.lhs)):
            target = id(signal), low, high
            starts |= {each: end + each[1] - low for each in self._split_pieces(target)}
            end += high - low
        bits = self._expressions.bits
        if len(starts) > 1 and isinstance(assign.rhs, ast.Operator | ast.SwitchValue | ast.Part):
            # Verilog selects bits of a name only, not of an expression.
            name = self._expressions.helper_wire(bits(assign.rhs, 0, end), end, called="value")
            return {
                each: bits_of(name, first, each[2] - each[1], end) for each, first in starts.items()
            }
        return {
            each: bits(assign.rhs, first, first + each[2] - each[1])
            for each, first in starts.items()
        }

    def _execute_switch(self, switch: ast.Switch, values: Values) -> Values:
        """Return the values after a switch, for each bit range of a signal that some case assigns.

        `values` has the values before the switch.
        """
        driven = dict.fromkeys(
            each for t in _target_pieces([switch]) for each in self._split_pieces(t)
        )
        before = {each: self._value_before(switch, each, values[each]) for each in driven}
        cases = [(patterns, self.execute(inner, before)) for patterns, inner, _ in switch.cases]
        if cases[-1][0] is not None:
            cases.append((None, before))
        found: Values = {}
        for each in driven:
            texts: list[Case] = [(patterns, after[each]) for patterns, after in cases]
            found[each] = self._expressions.choose_case(switch.test, texts, each[2] - each[1])
        return found

    def _value_before(self, switch: ast.Switch, piece: Piece, text: str) -> str:
        """Return an expression for the value of a bit range before a switch.

        `text` is the expression of this value. If several cases would repeat it, and it is not just
        a name, a new wire takes its value.
        """
        if text == parenthesize(text) or self._count_uses([switch], piece) < 2:
            return text
        called = f"{self.signals[piece[0]].name}_before"
        return self._expressions.helper_wire(text, piece[2] - piece[1], called=called)

    def _count_uses(self, statements: Iterable[ast.Statement], piece: Piece) -> int:
        """Return the number of paths through the statements on which a bit range is not assigned.

        On each of these paths, the resulting expression repeats the value that `piece`, a bit range
        of a signal, had before.
        """
        uses = 1
        for each in statements:
            if isinstance(each, ast.Assign):
                uses *= all(
                    piece not in self._split_pieces(target) for target in _target_pieces([each])
                )
            elif isinstance(each, ast.Switch):
                branches = sum(self._count_uses(inner, piece) for _, inner, _ in each.cases)
                uses *= branches + (each.cases[-1][0] is not None)
        return uses
