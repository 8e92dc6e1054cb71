"""Amaranth values as Verilog expressions.

The users are the writer and the statements. The central method is `ExpressionWriter.bits`: it
returns the expression of a range of bits of a value, with exactly as many bits as the range. Bits
beyond the value are zeros or copies of the sign bit. Why so exact: no expression then depends on
the width of its context, no carry is lost, and no tool warns of a width.

A *helper* is a wire for an intermediate value that needs a name. A *case* is a branch of a choice:
patterns that a *test*, a value, is compared with, and the expression that is then chosen.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice

from amaranth.hdl import Value

from ..errors import InputError
from ..rtl.amaranth_private import ast
from .names import SignalNames
from .syntax import (
    CONSTANT,
    as_operand,
    bits_of,
    choice_lines,
    comma_list,
    concatenate,
    conditional,
    constant,
    indent_lines,
    is_one_bit_test,
    join_operands,
    match_condition,
    matches_case,
    parenthesize,
    parse_constant,
    range_of,
    select_bits,
)

__all__ = ["Case", "ExpressionWriter", "no_verilog_error", "pieces_of"]

#: Name of a helper, by the operator whose result it holds.
HELPER_NAMES = {
    "+": "sum", "-": "difference", "*": "product", "//": "quotient", "%": "remainder",
    "<<": "shifted", ">>": "shifted", "&": "both", "|": "either", "^": "differ", "~": "inverted",
}  # fmt: skip

#: Operators in which bit k of the result depends on bits k of the operands only.
BITWISE = frozenset("&|^")

#: Operators in which bit k of the result depends on bits 0 to k of the operands only.
CARRYING = frozenset("+-*")

#: A case of a switch: its patterns (None for the default), and the expression that it chooses.
Case = tuple[tuple[str, ...] | None, str]

#: Most patterns of a one-bit choice that is written as comparisons rather than as a ``case``.
MOST_PATTERNS = 2

#: Most bits of a test whose ``case`` lists all values.
TABLE_BITS = 6

COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
             ">": operator.gt, ">=": operator.ge}  # fmt: skip


def no_verilog_error(what: object) -> InputError:
    """Return the error for hardware without a Verilog form, such as in an operator of a user.

    Parameters
    ----------
    what : object
        The hardware, as Amaranth represents it: a value or a statement.

    Examples
    --------
    >>> from amaranth.hdl import Signal
    >>> print(no_verilog_error(Signal(2, name="a")))
    Hardware must be made of logic, registers and memories, not (sig a)
    """
    return InputError(f"Hardware must be made of logic, registers and memories, not {what!r}")


def pieces_of(value: Value, low: int, high: int) -> Iterator[tuple[Value, int, int]]:
    """Yield the parts of bits `low` to ``high - 1`` of a value, lowest bits first.

    Concatenations and slices in the value are resolved: bits 2 to 5 of the concatenation of a and
    b, with 4 bits each, are bits 2 to 3 of a, then bits 0 to 1 of b.

    Yields
    ------
    part : Value
        A value that is neither a concatenation nor a slice.
    low, high : int
        First bit in `part`, and the bit after the last one.
    """
    match value:
        case ast.Slice():
            yield from pieces_of(value.value, value.start + low, value.start + high)
        case ast.Concat():
            start = 0
            for part in value.parts:
                a, b = max(low - start, 0), min(high - start, len(part))
                if a < b:
                    yield from pieces_of(part, a, b)
                start += len(part)
        case ast.Operator(operator="u" | "s"):
            yield from pieces_of(value.operands[0], low, high)
        case _:
            yield value, low, high


def scale_offset(offset: Value, stride: int) -> Value:
    """Return the position of entry number `offset`, where entries are `stride` bits apart.

    The result is the product ``offset * stride``. If the stride is a power of two, no multiplier
    is needed.
    """
    if stride & stride - 1:
        return offset * stride
    return ast.Concat([ast.Const(0, stride.bit_length() - 1), offset]) if stride > 1 else offset


def _merge_cases(cases: list[Case], bits: int) -> list[Case]:
    """Return fewer cases that choose alike: cases with the same expression become one.

    A case is a pair of patterns, such as ``("01", "11")``, and the expression that is chosen if the
    tested value matches one of them. The expression that most values choose becomes the default,
    which comes last.

    Parameters
    ----------
    cases : list of Case
        Cases in order of precedence, the default last. Patterns have no wildcards (``-``).
    bits : int
        Bits of the tested value.
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
    # If all expressions are constants, synthesis finds the least logic when all values are listed.
    listed = 1 < bits <= TABLE_BITS and all(map(CONSTANT.fullmatch, counts))
    if listed and len(+counts) > 1:
        every = (f"{number:0{bits}b}" for number in range(2**bits))
        found = {pattern: found.get(pattern, rest) for pattern in every}
    groups: dict[str, list[str]] = {}
    for pattern, text in found.items():
        if listed or text != rest:
            groups.setdefault(text, []).append(pattern)
    found_cases = [(tuple(patterns), text) for text, patterns in groups.items()]
    return [*found_cases, (None, rest)] if len(+counts) > 1 else [(None, rest)]


class ExpressionWriter:
    """Writer of Amaranth values as Verilog expressions.

    Methods return an expression. If it needs further wires or functions (helpers), they are added
    to `nets` and `body`.

    Attributes
    ----------
    nets : dict of str to (list of str)
        Beginning of a declaration, such as ``wire [7:0]`` -> names of the nets that it declares.
    body : list of str
        Text between the declarations and the end of the module: functions and assignments.
    """

    def __init__(self, names: SignalNames) -> None:
        self._names = names
        self.nets: dict[str, list[str]] = {}
        self.body: list[str] = []
        self._helpers: dict[str, str] = {}
        self._arguments: list[str] = []

    def helper_wire(self, text: str, width: int, *, called: str) -> str:
        """Return the name of a wire of `width` bits with the value of the expression `text`.

        Equal expressions share a wire. A new one is named after `called`.
        """
        if text not in self._helpers:
            self._helpers[text] = name = self._names.new_name(called)
            self.nets.setdefault(f"wire {range_of(width)}", []).append(name)
            self.body.append(f"assign {name} = {text};")
        return self._helpers[text]

    def _choose_by_function(self, test: str, cases: list[Case], width: int) -> str:
        """Return the name of a new wire with the value of the first of `cases` that matches `test`.

        A case is a pair of patterns and an expression of `width` bits. A Verilog function makes the
        choice; its arguments are the test and all expressions that are no constants. Why: a
        simulator evaluates the function again only when an argument changes.
        """
        texts = [text for _, text in cases if not CONSTANT.fullmatch(text)]
        test_name, *names = islice(self._argument_names(), 1 + len({*texts}))
        arguments = dict(zip(dict.fromkeys(texts), names, strict=True))
        bits = next(len(pattern) for patterns, _ in cases for pattern in patterns or ())
        named = [(each, [f"NAME = {arguments.get(text, text)};"]) for each, text in cases]
        inputs = [f"input reg {range_of(width)}{name}" for name in arguments.values()]
        inputs = [f"input reg {range_of(bits)}{test_name}", *inputs]
        head = comma_list(f"function {range_of(width)}NAME(", inputs, ");")
        text = "\n".join([head, *indent_lines(choice_lines(test_name, named)), "endfunction"])
        if text not in self._helpers:
            self._helpers[text] = name = self._names.new_name("choose")
            self.body.append(text.replace("NAME", name))
        chosen = comma_list(f"{self._helpers[text]}(", [test, *arguments], ")")
        return self.helper_wire(chosen, width, called="by_" + test)

    def _argument_names(self) -> Iterator[str]:
        """Yield names for the arguments of a Verilog function, first that of the test.

        No net has one of these names.
        """
        for number in count():
            if number == len(self._arguments):
                self._arguments.append(
                    self._names.new_name(f"option_{number}" if number else "test")
                )
            yield self._arguments[number]

    def all_bits(self, value: Value) -> str:
        """Return the expression of all bits of a value."""
        return self.bits(value, 0, len(value))

    def constant_bits(self, value: Value) -> str | None:
        """Return the bits of a constant as a binary string; None for any other value."""
        if not len(value):
            return ""
        text = self.all_bits(value)
        return f"{parse_constant(text)[1]:0{len(value)}b}" if CONSTANT.fullmatch(text) else None

    def any_bit_set(self, value: Value) -> str:
        """Return an expression that is 1 if any bit of the value is 1."""
        return self.all_bits(value) if len(value) == 1 else f"|{parenthesize(self.all_bits(value))}"

    def bits(self, value: Value, low: int, high: int) -> str:
        """Return the expression of bits `low` to ``high - 1`` of a value.

        Bits beyond the value are zeros, or copies of the sign bit if the value is signed.
        """
        assert 0 <= low < high, "there is no expression without bits"
        size = len(value)
        if isinstance(value, ast.Const):
            return constant(value.value >> low, high - low)
        if high <= size:
            return self._bits_within(value, low, high)
        signed = value.shape().signed and size > 0
        top = self.bits(value, size - 1, size) if signed else "1'd0"
        above = high - max(low, size)
        filled = constant(0, above)
        if signed:
            filled = f"{{{above}{{{top}}}}}" if above > 1 else top
        if low >= size:
            return filled
        return concatenate([filled, self._bits_within(value, low, size)])

    def assignment_target(self, value: Value) -> str:
        """Return the Verilog of a value on the left of an assignment, such as ``word[3:0]``."""
        match value:
            case ast.Concat():
                return concatenate(
                    [self.assignment_target(part) for part in reversed(value.parts) if len(part)]
                )
            case ast.Part(value=ast.Signal()):
                start = self.all_bits(scale_offset(value.offset, value.stride))
                return f"{self.assignment_target(value.value)}[{start} +: {value.width}]"
            case ast.Signal() | ast.Slice():
                return self.all_bits(value)
            case ast.Operator(operator="u" | "s"):
                return self.assignment_target(value.operands[0])
        raise no_verilog_error(value)

    def _bits_within(self, value: Value, low: int, high: int) -> str:
        match value:
            case ast.Signal():
                name = self._names.name_for_reading(value)
                if name is None:
                    return constant(value.init >> low, high - low)
                return bits_of(name, low, high - low, len(value))
            case ast.Slice():
                return self.bits(value.value, value.start + low, value.start + high)
            case ast.Concat():
                return self._concatenation_bits(value, low, high)
            case ast.SwitchValue():
                return self._switch_bits(value, low, high)
            case ast.Part():
                return self.bits(value.value >> scale_offset(value.offset, value.stride), low, high)
            case ast.Operator():
                return self._operator_bits(value, low, high)
        raise no_verilog_error(value)

    def _concatenation_bits(self, value: ast.Concat, low: int, high: int) -> str:
        found: list[tuple[Value, int, int]] = []
        for part, start, stop in pieces_of(value, low, high):
            whole, first, last = found[-1] if found else (value, 0, 0)
            if whole is part and last == start and isinstance(part, ast.Signal):
                found[-1] = part, first, stop
            else:
                found.append((part, start, stop))
        return concatenate([self.bits(*piece) for piece in reversed(found)])

    def _switch_bits(self, value: ast.SwitchValue, low: int, high: int) -> str:
        cases = [(patterns, self.bits(each, low, high)) for patterns, each in value.cases]
        return self.choose_case(value.test, cases, high - low)

    def choose_case(self, test: Value, cases: list[Case], width: int) -> str:
        """Return the expression of the first case that `test` matches; 0 if it matches none.

        Parameters
        ----------
        test : Value
            Value that is compared with the patterns.
        cases : list of Case
            Pairs of patterns and an expression, in order of precedence.
        width : int
            Bits of the expression of each case.
        """
        known = self.constant_bits(test)
        if known is not None:
            matching = (text for patterns, text in cases if matches_case(patterns, known))
            return next(matching, constant(0, width))
        if cases[-1][0] is not None:
            cases = [*cases, (None, constant(0, width))]
        if cases[0][0] == ("0" * len(test),) and len(cases) == 2:
            return conditional(self.any_bit_set(test), cases[1][1], cases[0][1])
        plain = all("-" not in each for patterns, _ in cases for each in patterns or ())
        if plain:
            cases = _merge_cases(cases, len(test))
        if all(patterns is None or is_one_bit_test(patterns) for patterns, _ in cases):
            return self._conditional_chain(test, cases)
        text = self.all_bits(test)
        different = {each for _, each in cases}
        if plain and len(different) == 2 and width == 1:
            patterns, one = min(cases[:-1], key=lambda case: len(case[0] or ()))
            (other,) = different - {one}
            if len(patterns or ()) <= MOST_PATTERNS:
                return conditional(match_condition(text, patterns or ()), one, other)
        return self._choose_by_function(text, cases, width)

    def _conditional_chain(self, test: Value, cases: list[Case]) -> str:
        """Return the choice among cases as ``flag ? first : other ? second : last``.

        Each of `cases` but the last tests one bit of `test`.
        """
        text = cases[-1][1]
        for patterns, each in reversed(cases[:-1]):
            flag, wanted = self.flag_bit(test, patterns or ())
            text = conditional(flag, each, text) if wanted else conditional(flag, text, each)
        return text

    def flag_bit(self, test: Value, patterns: tuple[str, ...]) -> tuple[str, bool]:
        """Return the bit of `test` that decides if a case matches, for a case that tests one bit.

        Parameters
        ----------
        test : Value
            The tested value.
        patterns : tuple of str
            One pattern with a single 0 or 1, such as ``("--1",)``.

        Returns
        -------
        flag : str
            Expression of the tested bit.
        wanted : bool
            True if the case matches a 1, False if it matches a 0.
        """
        (pattern,) = patterns
        wanted = "1" in pattern
        place = len(pattern) - 1 - pattern.index("1" if wanted else "0")
        return self.bits(test, place, place + 1), wanted

    def _select_bits(self, text: str, size: int, low: int, high: int, called: str) -> str:
        """Return bits `low` to ``high - 1`` of the expression `text`, which has `size` bits.

        Unless all bits are wanted, a wire named after `called` gets the value of the expression.
        Why: Verilog selects bits of a name only, not of an expression.
        """
        if (low, high) == (0, size):
            return text
        if low >= size:
            return constant(0, high - low)
        name = self.helper_wire(text, size, called=called)
        found = name if size == 1 else select_bits(name, low, min(high, size))
        return found if high <= size else f"{{{constant(0, high - size)}, {found}}}"

    def _operator_bits(self, value: ast.Operator, low: int, high: int) -> str:
        sign, operands = value.operator, value.operands
        if sign in "us":
            return self.bits(operands[0], low, high)
        if sign == "~":
            return self._invert_bits(operands[0], low, high)
        if sign in BITWISE:
            return self._bitwise_operation(sign, self._chain_operands(value, low, high), high - low)
        if sign in CARRYING:
            texts = [self.bits(each, 0, high) for each in operands]
            if sign == "*" and constant(0, high) in texts:
                return constant(0, high - low)
            text = join_operands(sign, texts) if len(texts) > 1 else f"-{parenthesize(texts[0])}"
            return self._select_bits(text, high, low, high, HELPER_NAMES[sign])
        if sign in COMPARISONS:
            return self._compare_values(sign, *operands)
        if sign in ("b", "r|", "r&", "r^"):
            if not len(operands[0]):
                return constant(int(sign == "r&"), 1)
            if len(operands[0]) == 1:
                return self.all_bits(operands[0])
            if sign == "r&" and isinstance(operands[0], ast.Concat):
                parts = [(part, self.all_bits(part)) for part in operands[0].parts if len(part)]
                bits = [
                    text if len(part) == 1 else f"&{parenthesize(text)}"
                    for part, text in parts
                    if text != constant(-1, len(part))
                ]
                return join_operands("&", bits) if bits else constant(1, 1)
            return f"{sign[-1].replace('b', '|')}{parenthesize(self.all_bits(operands[0]))}"
        if sign in ("//", "%"):
            return select_bits(self._divide_values(sign, *operands), low, high)
        a, b = operands
        if isinstance(b, ast.Const) and sign in ("<<", ">>"):
            # A shift by a constant selects bits, so that no tool warns of a shift beyond the width.
            if sign == ">>":
                return self.bits(a, low + b.value, high + b.value)
            first = min(max(b.value, low), high)
            found = [self.bits(a, first - b.value, high - b.value)] if first < high else []
            return concatenate(found + [constant(0, first - low)] * (first > low))
        size = high if sign == "<<" else len(a)
        first, amount = self.bits(a, 0, size), as_operand(self.all_bits(b))
        if sign == ">>" and a.shape().signed:
            # In a larger expression, an unsigned operand would make the shift unsigned.
            name = self.helper_wire(f"$signed({first}) >>> {amount}", size, called="shifted")
            return name if size == 1 else select_bits(name, low, high)
        if sign in ("<<", ">>"):
            return self._select_bits(
                f"{as_operand(first)} {sign} {amount}", size, low, high, "shifted"
            )
        raise no_verilog_error(value)

    def _invert_bits(self, value: Value, low: int, high: int) -> str:
        """Return the expression of the inverse of bits `low` to ``high - 1`` of `value`.

        The inverse of an inversion is the value inside.
        """
        if isinstance(value, ast.Operator) and value.operator == "~":
            return self.bits(value.operands[0], low, high)
        text = self.bits(value, low, high)
        if CONSTANT.fullmatch(text):
            return constant(~parse_constant(text)[1], high - low)
        return f"~{parenthesize(text)}"

    def _chain_operands(self, value: ast.Operator, low: int, high: int) -> list[str]:
        """Return the operands of nested operations with one operator: a, b and c for ``a & b & c``.

        Each operand is the expression of its bits `low` to ``high - 1``.
        """
        first, last = value.operands
        same = isinstance(first, ast.Operator) and first.operator == value.operator
        before = self._chain_operands(first, low, high) if same and high <= len(first) else None
        return [*(before or [self.bits(first, low, high)]), self.bits(last, low, high)]

    def _bitwise_operation(self, sign: str, texts: list[str], bits: int) -> str:
        """Return the expression of a bitwise operation on several operands, such as ``a & b``.

        `sign` is the operator, and `texts` are expressions of `bits` bits each. Constant operands
        that change nothing are left out.
        """
        same, fixed = (-1, 0) if sign == "&" else (0, -1)
        if sign != "^" and constant(fixed, bits) in texts:
            return constant(fixed, bits)
        texts = [text for text in texts if text != constant(same, bits)]
        return join_operands(sign, texts) if texts else constant(same, bits)

    def _divide_values(self, sign: str, a: Value, b: Value) -> str:
        """Return the name of a wire with the quotient or the remainder of a and b, as in Amaranth.

        `sign` is ``//`` or ``%``. Amaranth rounds the quotient down, and the result is 0 if b is 0.
        Verilog rounds towards zero, and gives X if b is 0; this is why more logic is needed.
        """
        signed = a.shape().signed or b.shape().signed
        # One more bit: an unsigned operand becomes signed, and -2^(n-1) / -1 needs n + 1 bits.
        size = 1 + max(len(each) + (signed and not each.shape().signed) for each in (a, b))
        helper = self.helper_wire
        top, bottom = (
            helper(self.bits(each, 0, size), size, called=called)
            for each, called in ((a, "dividend"), (b, "divisor"))
        )
        over, nothing = f"{top} {'/' if sign == '//' else '%'} {bottom}", constant(0, size)
        if signed:
            rest = helper(f"$signed({top}) % $signed({bottom})", size, called="rest")
            below = helper(
                f"(|{rest}) & ({select_bits(rest, size - 1, size)} ^ "
                f"{select_bits(bottom, size - 1, size)})",
                1,
                called="below",
            )
            over = f"{below} ? ({rest} + {bottom}) : {rest}"
            if sign == "//":
                towards = helper(f"$signed({top}) / $signed({bottom})", size, called="towards_zero")
                over = f"{towards} - {concatenate([constant(0, size - 1), below])}"
        text = f"(|{bottom}) ? {as_operand(over)} : {nothing}"
        return helper(text, size, called=HELPER_NAMES[sign])

    def _compare_values(self, sign: str, a: Value, b: Value) -> str:
        signed = a.shape().signed or b.shape().signed
        # An unsigned operand needs one more bit to become signed.
        width = max(len(each) + (signed and not each.shape().signed) for each in (a, b))
        texts = [self.bits(each, 0, width) for each in (a, b)]
        if not signed and all(map(CONSTANT.fullmatch, texts)):
            return constant(COMPARISONS[sign](*(parse_constant(text)[1] for text in texts)), 1)
        if sign in ("==", "!=") and width == 1 and texts[1] in ("1'd0", "1'd1"):
            same = (sign == "==") == (texts[1] == "1'd1")
            return texts[0] if same else f"~{parenthesize(texts[0])}"
        if signed and sign not in ("==", "!="):
            return f" {sign} ".join(f"$signed({text})" for text in texts)
        return join_operands(sign, texts)
