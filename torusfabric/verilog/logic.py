"""Combinational statements as values: each bit of a signal has one expression.

Why expressions and no ``always @*`` block: a block waits for a change of its inputs. In simulators
that initialise declarations before they start processes (the rule of SystemVerilog), an input that
keeps its first value never changes, so that the block never runs and its signals stay unknown.
A continuous assignment is evaluated at the start.

A *piece* is a range of bits of a signal that statements always assign together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise

from ..rtl.amaranth_private import ast
from .expressions import Case, Expressions, no_verilog, pieces_of
from .statements import Process
from .syntax import atom, bits_of, constant

__all__ = ["assigned_values"]

#: Identity of a signal, its first bit, and the bit behind its last.
Piece = tuple[int, int, int]

#: Expression of each piece.
Values = dict[Piece, str]


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
