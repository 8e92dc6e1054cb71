"""Values of Amaranth as Verilog expressions.

An expression is asked for as a range of bits of a value, and has exactly as many: what a range
goes beyond its value is filled up by zeros or by the sign. So no expression depends on the width of
what stands around it, no carry is lost, and no tool finds a width that it would mention.
"""
# ruff: noqa: SLF001  Amaranth says in private members which signals a value depends on.

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Protocol

import numpy as np
from amaranth.hdl import Signal, Value
from amaranth.hdl import _ast as ast

from ..errors import InputError

__all__ = ["Case", "Expressions", "Names", "bits_of", "concatenated", "condition", "constant",
           "is_wild", "labels", "matches", "no_verilog", "range_of"]  # fmt: skip

#: What a helper is called, by the operator whose value it has.
CALLED = {
    "+": "sum", "-": "difference", "*": "product", "//": "quotient", "%": "remainder",
    "<<": "shifted", ">>": "shifted", "&": "both", "|": "either", "^": "differ", "~": "inverted",
}  # fmt: skip

#: Operators of which each bit depends on that bit of the operands alone.
BITWISE = frozenset("&|^~")

#: Operators of which each bit depends on no higher bit of the operands.
CARRYING = frozenset("+-*")

CONSTANT = re.compile(r"(\d+)'([dh])([0-9a-f]+)")

#: Characters that an expression may have on a line.
LINE = 84

#: The patterns of a case, None of the default, and what it chooses.
Case = tuple[tuple[str, ...] | None, str]

#: Values that a bit which says one of two things is compared with, rather than chosen by a case.
COMPARED = 2

#: Bits of what a case tests if it lists all values.
TABLE_BITS = 6

COMPARING = frozenset(("==", "!=", "<", "<=", ">", ">="))


class Names(Protocol):
    """What knows the names in a module."""

    def of(self, signal: Signal) -> str | None:
        """The name of a signal; None of one that always has its initial value."""

    def helper(self, text: str, width: int, *, called: str) -> str:
        """The name of a wire that is assigned an expression."""

    def chosen(self, test: str, cases: list[Case], width: int) -> str:
        """The name of what is chosen by the value of a test."""


def no_verilog(what: object) -> InputError:
    """The error of what has no Verilog; an operator of a user's own may have anything in it.

    Examples
    --------
    >>> print(no_verilog(Signal(2, name="a")))
    Hardware must be made of logic, registers and memories, not (sig a)
    """
    return InputError(f"Hardware must be made of logic, registers and memories, not {what!r}")


def range_of(width: int) -> str:
    """The range of a declaration, with a space behind it; nothing for a single bit."""
    return f"[{width - 1}:0] " if width > 1 else ""


def constant(value: int, width: int) -> str:
    """A constant of so many bits.

    Examples
    --------
    >>> constant(5, 3), constant(255, 8), constant(-1, 4)
    ("3'd5", "8'hff", "4'd15")
    """
    value &= (1 << width) - 1
    return f"{width}'d{value}" if value < 16 else f"{width}'h{value:x}"


def _plain(text: str) -> bool:
    """Whether an expression needs no parentheses wherever it stands."""
    if text[0] == "{":
        depth = np.cumsum([(char == "{") - (char == "}") for char in text])
        return bool((depth[:-1] > 0).all())
    return re.fullmatch(r"[\w']+(?:\[[\w:]+\])?", text) is not None


def _inside(text: str) -> str:
    return text if _plain(text) else f"({text})"


def _either(test: str, yes: str, no: str) -> str:
    """One expression or another, by a bit."""
    if yes == no:
        return yes
    match yes, no:
        case "1'd1", "1'd0":
            return test
        case "1'd0", "1'd1":
            return f"~{_inside(test)}"
    return f"{_inside(test)} ? {_inside(yes)} : {_inside(no)}"


def _pieces(value: Value, low: int, high: int) -> Iterator[tuple[Value, int, int]]:
    """The parts of nested concatenations and slices, the lowest first, each with its bits."""
    match value:
        case ast.Slice():
            yield from _pieces(value.value, value.start + low, value.start + high)
        case ast.Concat():
            start = 0
            for part in value.parts:
                a, b = max(low - start, 0), min(high - start, len(part))
                if a < b:
                    yield from _pieces(part, a, b)
                start += len(part)
        case _:
            yield value, low, high


def _merged(cases: list[Case], bits: int) -> list[Case]:
    """Cases of which none has the text of another; the default has the text of most.

    The last that is given is the default; no pattern has a bit that does not matter.
    """
    found: dict[str, str] = {}
    for patterns, text in cases[:-1]:
        for pattern in patterns or ():
            found.setdefault(pattern, text)
    rest = cases[-1][1]
    counts = Counter(found.values())
    counts[rest] += 2**bits - len(found)
    if not counts[rest]:
        rest, _ = counts.most_common(1)[0]
    # Of constants synthesis finds the least form if all values are listed, as in a table.
    listed = 1 < bits <= TABLE_BITS and all(map(CONSTANT.fullmatch, counts))
    if listed and len(+counts) > 1:
        found = {pattern: found.get(pattern, rest) for pattern in patterns_of(bits)}
    groups: dict[str, list[str]] = {}
    for pattern, text in found.items():
        if listed or text != rest:
            groups.setdefault(text, []).append(pattern)
    found_cases = [(tuple(patterns), text) for text, patterns in groups.items()]
    return [*found_cases, (None, rest)] if len(+counts) > 1 else [(None, rest)]


def patterns_of(bits: int) -> list[str]:
    """The patterns of all values of so many bits."""
    return [f"{number:0{bits}b}" for number in range(2**bits)]


class Expressions:
    """Writes values as expressions."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def whole(self, value: Value) -> str:
        """All bits of a value."""
        return self.bits(value, 0, len(value))

    def known(self, value: Value) -> str | None:
        """The bits of a value that is a constant; None of any other."""
        if not len(value):
            return ""
        text = self.whole(value)
        return f"{_number(text)[1]:0{len(value)}b}" if CONSTANT.fullmatch(text) else None

    def true(self, value: Value) -> str:
        """Whether any bit of a value is 1."""
        return self.whole(value) if len(value) == 1 else f"|{_inside(self.whole(value))}"

    def bits(self, value: Value, low: int, high: int) -> str:
        """The bits of a value from one up to, and without, another."""
        assert 0 <= low < high, "there is no expression without bits"
        size = len(value)
        if isinstance(value, ast.Const):
            return constant(value.value >> low, high - low)
        if high <= size:
            return self._within(value, low, high)
        signed = value.shape().signed and size > 0
        top = self.bits(value, size - 1, size) if signed else "1'd0"
        above = high - max(low, size)
        filled = f"{{{above}{{{top}}}}}" if signed else constant(0, above)
        if low >= size:
            return filled
        return joined([filled, self._within(value, low, size)])

    def target(self, value: Value) -> str:
        """What an assignment has on its left."""
        match value:
            case ast.Concat():
                return joined([self.target(part) for part in reversed(value.parts) if len(part)])
            case ast.Part(value=ast.Signal()):
                start = self._scaled(value.offset, value.stride)
                return f"{self.target(value.value)}[{start} +: {value.width}]"
            case ast.Signal() | ast.Slice():
                return self.whole(value)
            case ast.Operator(operator="u" | "s"):
                return self.target(value.operands[0])
        raise no_verilog(value)

    def _within(self, value: Value, low: int, high: int) -> str:
        match value:
            case ast.Const():
                return constant(value.value >> low, high - low)
            case ast.Signal():
                name = self._names.of(value)
                if name is None:
                    return constant(value.init >> low, high - low)
                return bits_of(name, low, high - low, len(value))
            case ast.Slice():
                return self._within(value.value, value.start + low, value.start + high)
            case ast.Concat():
                return self._concatenation(value, low, high)
            case ast.SwitchValue():
                return self._switch(value, low, high)
            case ast.Part():
                return self._part(value, low, high)
            case ast.Operator():
                return self._operator(value, low, high)
        raise no_verilog(value)

    def _concatenation(self, value: ast.Concat, low: int, high: int) -> str:
        found: list[tuple[Value, int, int]] = []
        for part, start, stop in _pieces(value, low, high):
            whole, first, last = found[-1] if found else (value, 0, 0)
            if whole is part and last == start and isinstance(part, ast.Signal):
                found[-1] = part, first, stop
            else:
                found.append((part, start, stop))
        return joined([self._within(*piece) for piece in reversed(found)])

    def _switch(self, value: ast.SwitchValue, low: int, high: int) -> str:
        known = self.known(value.test)
        if known is not None:
            matching = (each for patterns, each in value.cases if matches(patterns, known))
            return self.bits(next(matching, ast.Const(0, 1)), low, high)
        (patterns, first), *others = value.cases
        zeros = ("0" * len(value.test),)
        if patterns == zeros and len(others) == 1 and others[0][0] is None:
            yes, no = (self.bits(each, low, high) for each in (others[0][1], first))
            return _either(self.true(value.test), yes, no)
        if not value.test._rhs_signals():
            raise no_verilog(value)
        texts = [(patterns, self.bits(chosen, low, high)) for patterns, chosen in value.cases]
        plain = all("-" not in each for patterns, _ in texts for each in patterns or ())
        if texts[-1][0] is not None:
            texts.append((None, constant(0, high - low)))
        if plain:
            texts = _merged(texts, len(value.test))
        if len(texts) == 1:
            return texts[0][1]
        if plain and len(value.test) == 1:
            (patterns, one), (_, other) = texts
            yes, no = (other, one) if patterns == ("0",) else (one, other)
            return _either(self.whole(value.test), yes, no)
        test = self.whole(value.test)
        different = {text for _, text in texts}
        if plain and len(different) == 2 and high - low == 1:
            patterns, one = min(texts[:-1], key=lambda case: len(case[0] or ()))
            (other,) = different - {one}
            if len(patterns or ()) <= COMPARED:
                return _either(condition(test, patterns or ()), one, other)
        return self._names.chosen(test, texts, high - low)

    def _part(self, value: ast.Part, low: int, high: int) -> str:
        whole, start = value.value, self._scaled(value.offset, value.stride)
        if whole.shape().signed:
            # Behind its end is its sign. An expression is signed where it stands by itself alone.
            size = max(len(whole), high)
            text = f"$signed({self.bits(whole, 0, size)}) >>> {start}"
            name = self._names.helper(text, size, called="selected")
            return name if size == 1 else _indexed(name, low, high)
        return self._cut(
            f"{_inside(self.whole(whole))} >> {start}", len(whole), low, high, "selected"
        )

    def _scaled(self, offset: Value, stride: int) -> str:
        """An offset times a stride, in as many bits as that has."""
        if not stride & stride - 1:
            below = stride.bit_length() - 1
            text = self.whole(offset)
            return f"{{{text}, {constant(0, below)}}}" if below else _inside(text)
        bits = len(offset) + stride.bit_length()
        return f"({self.bits(offset, 0, bits)} * {constant(stride, bits)})"

    def _cut(self, text: str, size: int, low: int, high: int, called: str) -> str:
        """Bits of an expression of a size: a part can be taken of a name alone."""
        if (low, high) == (0, size):
            return text
        if low >= size:
            return constant(0, high - low)
        name = self._names.helper(text, size, called=called)
        found = name if size == 1 else _indexed(name, low, min(high, size))
        return found if high <= size else f"{{{constant(0, high - size)}, {found}}}"

    def _operator(self, value: ast.Operator, low: int, high: int) -> str:
        sign, operands = value.operator, value.operands
        if sign in "us":
            return self._within(operands[0], low, high)
        if sign in BITWISE:
            if sign != "~":
                # What changes nothing is left out.
                neutral = -1 if sign == "&" else 0
                same = constant(neutral, high - low)
                texts = [text for each in operands if (text := self.bits(each, low, high)) != same]
                return f" {sign} ".join(map(_inside, texts)) or same
            if isinstance(operands[0], ast.Operator) and operands[0].operator == "~":
                return self.bits(operands[0].operands[0], low, high)
            text = self.bits(operands[0], low, high)
            if CONSTANT.fullmatch(text):
                return constant(~_number(text)[1], high - low)
            return f"~{_inside(text)}"
        if sign in CARRYING:
            return self._cut(self._carrying(value, high), high, low, high, CALLED[sign])
        if sign in COMPARING:
            return self._comparison(sign, *operands)
        if sign in ("b", "r|", "r&", "r^"):
            if len(operands[0]) == 1:
                return self.whole(operands[0])
            return f"{sign[-1].replace('b', '|')}{_inside(self.whole(operands[0]))}"
        if sign in ("//", "%"):
            return _indexed(self._divided(sign, *operands), low, high)
        a, b = operands
        size = high if sign == "<<" else len(a)
        first, amount = self.bits(a, 0, size), _inside(self.whole(b))
        if sign == ">>" and a.shape().signed:
            # An expression is signed where it stands by itself alone.
            name = self._names.helper(f"$signed({first}) >>> {amount}", size, called="shifted")
            return name if size == 1 else _indexed(name, low, high)
        if sign in ("<<", ">>"):
            return self._cut(f"{_inside(first)} {sign} {amount}", size, low, high, "shifted")
        raise no_verilog(value)

    def _divided(self, sign: str, a: Value, b: Value) -> str:
        """A wire with a quotient that is rounded down, or what is left; 0 where the divisor is 0.

        Verilog rounds towards zero, and knows nothing of what is divided by 0.
        """
        signed = a.shape().signed or b.shape().signed
        # A bit more for unsigned operands, and for the quotient of the least number and -1.
        size = 1 + max(len(each) + (signed and not each.shape().signed) for each in (a, b))
        helper = self._names.helper
        top, bottom = (
            helper(self.bits(each, 0, size), size, called=called)
            for each, called in ((a, "dividend"), (b, "divisor"))
        )
        over, nothing = f"{top} {'/' if sign == '//' else '%'} {bottom}", constant(0, size)
        if signed:
            rest = helper(f"$signed({top}) % $signed({bottom})", size, called="rest")
            below = helper(f"(|{rest}) & ({_indexed(rest, size - 1, size)} ^ "
                           f"{_indexed(bottom, size - 1, size)})", 1, called="below")  # fmt: skip
            over = f"{below} ? ({rest} + {bottom}) : {rest}"
            if sign == "//":
                towards = helper(f"$signed({top}) / $signed({bottom})", size, called="towards_zero")
                over = f"{towards} - {joined([constant(0, size - 1), below])}"
        text = f"(|{bottom}) ? {_inside(over)} : {nothing}"
        return helper(text, size, called=CALLED[sign])

    def _carrying(self, value: ast.Operator, size: int) -> str:
        texts = [_inside(self.bits(each, 0, size)) for each in value.operands]
        return f"-{texts[0]}" if len(texts) == 1 else f" {value.operator} ".join(texts)

    def _comparison(self, sign: str, a: Value, b: Value) -> str:
        signed = a.shape().signed or b.shape().signed
        # Of both, an unsigned one has a bit more when it becomes signed.
        width = max(len(each) + (signed and not each.shape().signed) for each in (a, b))
        texts = [self.bits(each, 0, width) for each in (a, b)]
        if sign == "==" and width == 1 and texts[1] in ("1'd0", "1'd1"):
            return texts[0] if texts[1] == "1'd1" else f"~{_inside(texts[0])}"
        if signed and sign not in ("==", "!="):
            return f" {sign} ".join(f"$signed({text})" for text in texts)
        return f" {sign} ".join(map(_inside, texts))


def joined(parts: Sequence[str]) -> str:
    """A concatenation, the highest part first; on lines of their own if parts are long.

    Examples
    --------
    >>> joined(["a", "{b, c}"]), joined(["a"])
    ('{a, b, c}', 'a')
    """
    if len(parts) == 1:
        return parts[0]
    flat: list[str] = []
    for part in chain.from_iterable(map(_parts, parts)):
        if flat and CONSTANT.fullmatch(flat[-1]) and CONSTANT.fullmatch(part):
            part = _both(flat.pop(), part)
        flat.append(part)
    if len(flat) == 1:
        return flat[0]
    short = ", ".join(flat)
    if len(short) <= LINE and "\n" not in short:
        return f"{{{short}}}"
    lines = ",\n".join(flat).replace("\n", "\n  ")
    return f"{{\n  {lines}\n}}"


def _both(high: str, low: str) -> str:
    """Two constants as one."""
    above, below = _number(high), _number(low)
    return constant(above[1] << below[0] | below[1], above[0] + below[0])


def _number(text: str) -> tuple[int, int]:
    """Bits and value of a constant."""
    width, base, digits = re.split(r"'([dh])", text)
    return int(width), int(digits, 16 if base == "h" else 10)


def _parts(text: str) -> list[str]:
    """The parts of a concatenation on one line, if it is one and has no other in it."""
    inner = text[1:-1]
    plain = text[0] == "{" and not re.search(r"[{}?\n]", inner)
    return inner.split(", ") if plain else [text]


def matches(patterns: tuple[str, ...] | None, bits: str) -> bool:
    """Whether bits are of a case."""
    return patterns is None or any(
        all(a in ("-", b) for a, b in zip(pattern, bits, strict=True)) for pattern in patterns
    )


def labels(patterns: tuple[str, ...] | None) -> str:
    """The labels of a case, all of whose bits matter."""
    if patterns is None:
        return "default"
    return ", ".join(constant(int(each, 2), len(each)) for each in patterns)


def is_wild(patterns: tuple[str, ...] | None) -> bool:
    """Whether some bits of a case do not matter."""
    return any("-" in each for each in patterns or ())


def condition(test: str, patterns: tuple[str, ...]) -> str:
    """Whether a test has one of some patterns, of which bits may not matter.

    Examples
    --------
    >>> condition("test", ("1-0", "011")), condition("{a, b}", ("--",))
    ("((test & 3'd5) == 3'd4) || (test == 3'd3)", "1'd1")
    """
    found = []
    for pattern in patterns:
        bits = len(pattern)
        mask = sum((bit != "-") << k for k, bit in enumerate(reversed(pattern)))
        wanted = constant(int(pattern.replace("-", "0"), 2), bits)
        if not mask:
            return constant(1, 1)
        if mask == 2**bits - 1:
            found.append(f"{_inside(test)} == {wanted}")
        else:
            found.append(f"({_inside(test)} & {constant(mask, bits)}) == {wanted}")
    return found[0] if len(found) == 1 else " || ".join(f"({each})" for each in found)


def concatenated(texts: Sequence[str]) -> str:
    """Names side by side, the most significant first."""
    return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"


def bits_of(name: str, start: int, width: int, of: int) -> str:
    """Bits of a net of so many."""
    return name if width == of else _indexed(name, start, start + width)


def _indexed(name: str, low: int, high: int) -> str:
    return f"{name}[{low}]" if high - low == 1 else f"{name}[{high - 1}:{low}]"
