"""Mutants of a module: changes of an operator, a constant, a statement or a pair of arguments.

A mutant replaces a piece of text, so that the rest of the module stays as it is written. Some code
has no mutants: code without an effect on a run (annotations, docstrings, assertions, the argument
`strict` of `zip`), and code that only makes messages (f-strings, arguments of a raised exception).
"""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from pathlib import Path

__all__ = ["Mutant", "mutants_of", "sample"]

#: Replacement of each operator, by the usual names of the operators of mutation.
COMPARE = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
ARITHMETIC = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "//",
    ast.Pow: "*", ast.LShift: ">>", ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&",
    ast.BitXor: "&", ast.MatMult: "*",
}  # fmt: skip

#: Functions whose arguments have no order: swapping them changes nothing.
SYMMETRIC = {"max", "min", "maximum", "minimum"}

#: Statements whose removal leaves a module that can be imported.
REMOVABLE = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Parameters
    ----------
    path : str
        The module, from the root of the tree.
    operator : str
        Kind of the change: compare, arithmetic, constant, boolean, statement or arguments.
    lines : range
        Lines of the changed statement, from 1.
    before : bytes
        The text of the module.
    start, end : int
        First byte of the replaced piece, and the byte behind it.
    replacement : bytes
        The new piece.
    function : tuple of str and int, or None
        Name and first line of the outermost function in which the change lies; None if the
        statement runs when the module is imported.
    """

    path: str
    operator: str
    lines: range
    before: bytes
    start: int
    end: int
    replacement: bytes
    function: tuple[str, int] | None

    @property
    def after(self) -> bytes:
        """Text of the module with the change."""
        return self.before[: self.start] + self.replacement + self.before[self.end :]

    @property
    def line(self) -> int:
        """Number of the line in which the change begins."""
        return self.before.count(b"\n", 0, self.start) + 1

    @cached_property
    def change(self) -> tuple[str, str]:
        """Changed lines, before and after.

        They have no line numbers, so that a mutant stays the same when its module changes
        elsewhere.
        """
        first = self.before.rfind(b"\n", 0, self.start) + 1
        last = self.before.find(b"\n", self.end)
        old = self.before[first:last]
        new = self.before[first : self.start] + self.replacement + self.before[self.end : last]
        return _squeezed(old), _squeezed(new)

    @property
    def digest(self) -> str:
        """Identifier of the mutant, independent of changes elsewhere in the tree."""
        return hashlib.sha256(repr((self.path, self.change)).encode()).hexdigest()


def _squeezed(text: bytes) -> str:
    return " ".join(text.decode().split())


def sample(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return a random sample with the same number of mutants of each operator.

    The order follows digests. A change of one module therefore leaves the choice in other modules
    as it is.
    """
    salt = str(seed).encode()
    order = {hashlib.sha256(salt + mutant.digest.encode()).digest(): mutant for mutant in mutants}
    queues: dict[str, list[Mutant]] = {}
    for key in sorted(order):
        queues.setdefault(order[key].operator, []).append(order[key])
    turns = zip_longest(*(queues[operator] for operator in sorted(queues)))
    return [mutant for turn in turns for mutant in turn if mutant][:count]


def mutants_of(path: str, root: Path) -> list[Mutant]:
    """Return all mutants of a module."""
    text = (root / path).read_bytes()
    return list(_Finder(path, text).found())


class _Finder:
    """Generator of the mutants of one module, which keeps track of the enclosing function."""

    def __init__(self, path: str, text: bytes) -> None:
        self.path, self.text = path, text
        self.function: tuple[str, int] | None = None
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def found(self) -> Iterator[Mutant]:
        """Yield all mutants, in the order of the text."""
        yield from self._statements(ast.parse(self.text).body)

    def _statements(self, body: list[ast.stmt]) -> Iterator[Mutant]:
        for statement in body:
            yield from self._statement(statement)

    def _statement(self, node: ast.stmt) -> Iterator[Mutant]:
        """Yield the mutants of a statement and of the statements within it."""
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
            if isinstance(node, ast.Raise) and "AssertionError" not in ast.unparse(node):
                yield self._mutant(node, "statement", self._span(node), "pass")
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, REMOVABLE):
            yield self._mutant(node, "statement", self._span(node), "pass")
        inner: list[ast.stmt] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                inner.append(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                inner += child.body
                if isinstance(child, ast.match_case) and child.guard:
                    yield from self._expression(child.guard, child.guard)
            elif isinstance(child, ast.expr) and not self._is_words(node, child):
                yield from self._expression(child, _head(node))
            elif isinstance(child, ast.arguments):
                for default in (*child.defaults, *filter(None, child.kw_defaults)):
                    yield from self._expression(default, default)
            elif isinstance(child, ast.withitem):
                yield from self._expression(child.context_expr, child.context_expr)
        outer = self.function
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            self.function = outer or (node.name, first)
        yield from self._statements(inner)
        self.function = outer

    def _is_words(self, node: ast.stmt, child: ast.expr) -> bool:
        """Return True for an annotation, a decorator or base class, or the list of public names."""
        if isinstance(node, ast.AnnAssign):
            return child is node.annotation
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return True
        return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"

    def _expression(self, node: ast.AST, statement: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of an expression and of the expressions within it."""
        if isinstance(node, ast.JoinedStr):
            return
        for operator, span, text in self._changes(node):
            yield self._mutant(statement, operator, span, text)
        for child in ast.iter_child_nodes(node):
            if not (isinstance(child, ast.keyword) and child.arg == "strict"):
                yield from self._expression(child, statement)

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, tuple[int, int], str]]:
        """Yield each change of a node: an operator, a piece of text, and its replacement."""
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for (left, right), sign in zip(pairwise(sides), node.ops, strict=True):
                    yield "compare", self._between(left, right), f" {COMPARE[type(sign)]} "
            case ast.BinOp():
                other = f" {ARITHMETIC[type(node.op)]} "
                yield "arithmetic", self._between(node.left, node.right), other
            case ast.BoolOp():
                other = " or " if isinstance(node.op, ast.And) else " and "
                for left, right in pairwise(node.values):
                    yield "boolean", self._between(left, right), other
            case ast.UnaryOp(op=ast.Not()):
                yield "boolean", self._span(node), self._text(node.operand)
            case ast.IfExp():
                yield "boolean", self._span(node.test), f"not ({self._text(node.test)})"
            case ast.Constant(value=bool(value)):
                yield "constant", self._span(node), str(not value)
            case ast.Constant(value=int(value)):
                yield "constant", self._span(node), str(value + 1)
                if value > 1:
                    yield "constant", self._span(node), str(value - 1)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SYMMETRIC:
                return
            case ast.Call() if not any(isinstance(arg, ast.Starred) for arg in node.args):
                for left, right in pairwise(node.args):
                    between = self._text_at(*self._between(left, right))
                    span = self._span(left)[0], self._span(right)[1]
                    text = f"{self._text(right)}{between}{self._text(left)}"
                    if text != self._text_at(*span):
                        yield "arguments", span, text

    def _between(self, left: ast.AST, right: ast.AST) -> tuple[int, int]:
        """Return the span between two expressions, without the brackets around either."""
        start, end = self._span(left)[1], self._span(right)[0]
        text = self.text[start:end].decode()
        closing = len(text) - len(text.lstrip(") \n"))
        closing = len(text[:closing].rstrip())
        opening = len(text) - len(text.rstrip("( \n"))
        opening = len(text[len(text) - opening :].lstrip())
        return start + closing, end - opening

    def _span(self, node: ast.AST) -> tuple[int, int]:
        lines, columns = (node.lineno, node.end_lineno), (node.col_offset, node.end_col_offset)  # type: ignore[attr-defined]
        start, end = (self.starts[n - 1] + c for n, c in zip(lines, columns, strict=True))
        return start, end

    def _text(self, node: ast.AST) -> str:
        return self._text_at(*self._span(node))

    def _text_at(self, start: int, end: int) -> str:
        return self.text[start:end].decode()

    def _mutant(
        self, statement: ast.AST, operator: str, span: tuple[int, int], text: str
    ) -> Mutant:
        first, last = statement.lineno, statement.end_lineno  # type: ignore[attr-defined]
        lines = range(first, last + 1)
        return Mutant(self.path, operator, lines, self.text, *span, text.encode(), self.function)


def _head(node: ast.stmt) -> ast.AST:
    """Return the part of a statement that runs before the statements within it."""
    for name in ("test", "iter", "subject"):
        if hasattr(node, name):
            return getattr(node, name)
    return node
