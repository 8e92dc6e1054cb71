"""Verilog syntax as text: constants, bit ranges, concatenations, conditions, blocks, long lines.

The users are all other modules of this folder that write Verilog. Expressions are plain strings;
these functions add parentheses where precedence needs them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, groupby

__all__ = ["CONSTANT", "parenthesize", "bits_of", "join_operands", "concatenate_names",
           "match_condition", "constant", "constant_lines", "choice_lines", "declare_ports",
           "conditional", "statement_block", "indent_lines", "select_bits", "is_one_bit_test",
           "has_wildcards", "concatenate", "case_labels", "comma_list", "matches_case",
           "parse_constant", "as_operand", "range_of", "declare_wires", "wrap_lines"]  # fmt: skip

#: A constant with its width, as `constant` writes it.
CONSTANT = re.compile(r"(\d+)'([dh])([0-9a-f]+)")

#: Most characters of a line.
LINE_CHARACTERS = 98

#: The part of a long line that stays on it. The line breaks before a pin if possible, otherwise
#: after a comma or an operator outside an index. Without such a break within `LINE_CHARACTERS`
#: characters, it breaks at the first one beyond.
LINE_BEGINNING = re.compile(
    rf".{{,{LINE_CHARACTERS - 2}}}, (?=\.)"
    rf"|.{{,{LINE_CHARACTERS - 2}}}[,&|^?:=+<>*-] (?![^\[\]]*\])"
    r"|.*?[,&|^?:=+<>*-] (?![^\[\]]*\])"
)

#: The number of a node in the name of a port.
NODE_NUMBER = re.compile(r"(?<=_)\d+(?=_|$)")

#: Bits of a long constant on one line.
LINE_BITS = 320

#: Lines of a constant in one pair of braces. Why: Verilator's time grows with the square of the
#: items in a pair of braces: 4.1 s for 480,000 bits in one pair, 0.25 s in nested groups.
LINES_IN_BRACES = 32


def range_of(width: int) -> str:
    """Return the bit range for a declaration of `width` bits, with a space after it: ``[7:0]``.

    It is empty for a single bit.
    """
    return f"[{width - 1}:0] " if width > 1 else ""


def constant(value: int, width: int) -> str:
    """Return `value` as a constant of `width` bits; a negative value is in two's complement.

    Examples
    --------
    >>> constant(5, 3), constant(255, 8), constant(-1, 4)
    ("3'd5", "8'hff", "4'd15")
    """
    value &= (1 << width) - 1
    return f"{width}'d{value}" if value < 16 else f"{width}'h{value:x}"


def constant_lines(value: int, bits: int) -> str:
    """Return `value` as a constant of `bits` bits on several lines.

    Why: tools limit the length of a line.
    """
    digits, some = f"{value:0{-(-bits // 4)}x}", LINE_BITS // 4
    first = len(digits) % some or some
    texts = [digits[:first], *(digits[k : k + some] for k in range(first, len(digits), some))]
    high = bits - LINE_BITS * (len(texts) - 1)
    sizes = [high, *[LINE_BITS] * (len(texts) - 1)]
    every = [f"{size}'h{text.lstrip('0') or '0'}" for size, text in zip(sizes, texts, strict=True)]
    while len(every) > 1:
        joined = (every[k : k + LINES_IN_BRACES] for k in range(0, len(every), LINES_IN_BRACES))
        every = ["{" + ",\n    ".join(each) + "}" for each in joined]
    return every[0]


def parse_constant(text: str) -> tuple[int, int]:
    """Return width and value of a constant in Verilog: ``(3, 5)`` for ``3'd5``."""
    width, base, digits = re.split(r"'([dh])", text)
    return int(width), int(digits, 16 if base == "h" else 10)


def parenthesize(text: str) -> str:
    """Return the expression `text` in parentheses; a name, constant or concatenation needs none."""
    if text[0] == "{":
        depths = accumulate((char == "{") - (char == "}") for char in text[:-1])
        return text if min(depths) > 0 else f"({text})"
    return text if re.fullmatch(r"[\w']+(?:\[[\w:]+\])?", text) else f"({text})"


def as_operand(text: str) -> str:
    """Return the expression `text` as an operand of a binary operator, in parentheses if needed.

    Unlike `parenthesize`, it leaves an inverted name without parentheses.

    Examples
    --------
    An operand needs parentheses unless it is a name or its inverse.

    >>> as_operand("~a[0]"), parenthesize("~a[0]"), as_operand("~a & b")
    ('~a[0]', '(~a[0])', '(~a & b)')
    """
    return text if text[0] == "~" and parenthesize(text[1:]) == text[1:] else parenthesize(text)


def join_operands(sign: str, texts: Sequence[str]) -> str:
    """Return the operands `texts` joined by the binary operator `sign`.

    Examples
    --------
    The operand with an operator of its own gets parentheses.

    >>> join_operands("&", ["a", "b | c", "~d"])
    'a & (b | c) & ~d'
    """
    return texts[0] if len(texts) == 1 else f" {sign} ".join(map(as_operand, texts))


def conditional(test: str, yes: str, no: str) -> str:
    """Return the expression ``test ? yes : no``.

    It is simplified if `test` is constant, or if `yes` and `no` are equal, or 1 and 0.
    """
    if yes == no:
        return yes
    if CONSTANT.fullmatch(test):
        return yes if parse_constant(test)[1] else no
    match yes, no:
        case "1'd1", "1'd0":
            return test
        case "1'd0", "1'd1":
            return f"~{parenthesize(test)}"
    return f"{as_operand(test)} ? {as_operand(yes)} : {as_operand(no)}"


def bits_of(name: str, start: int, width: int, of: int) -> str:
    """Return the Verilog of `width` bits, from bit `start` on, of a net: ``tx[7:4]``.

    `of` is the number of bits of the net. If all of them are selected, the result is `name` alone.
    """
    return name if width == of else select_bits(name, start, start + width)


def select_bits(name: str, low: int, high: int) -> str:
    """Return the expression of bits `low` to ``high - 1`` of a net, such as ``tx[7:4]``."""
    return f"{name}[{low}]" if high - low == 1 else f"{name}[{high - 1}:{low}]"


def concatenate_names(texts: Sequence[str]) -> str:
    """Return a concatenation such as ``{b, a}``, the most significant first.

    A single name is returned as it is.
    """
    return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"


def concatenate(parts: Sequence[str]) -> str:
    """Return a concatenation of expressions, in which nested concatenations are dissolved.

    Adjacent constants become one, and repeated names a replication.

    Parameters
    ----------
    parts : sequence of str
        The expressions, the most significant first.

    Examples
    --------
    >>> concatenate(["a", "{b, c}"]), concatenate(["a"]), concatenate(["a", "a", "b"])
    ('{a, b, c}', 'a', '{{2{a}}, b}')
    """
    if len(parts) == 1:
        return parts[0]
    flat: list[str] = []
    for part in chain.from_iterable(map(_concatenation_parts, parts)):
        if flat and CONSTANT.fullmatch(flat[-1]) and CONSTANT.fullmatch(part):
            (above, high), (below, low) = parse_constant(flat.pop()), parse_constant(part)
            part = constant(high << below | low, above + below)
        flat.append(part)
    if len(flat) == 1:
        return flat[0]
    return concatenate_names([text for _, same in groupby(flat) for text in _replicate([*same])])


def _replicate(same: list[str]) -> list[str]:
    """Return the equal parts `same` of a concatenation as one replication, such as ``{2{a}}``.

    Expressions that are no names stay as they are. Why: Yosys would map each copy of an expression
    separately.
    """
    name = len(same) > 1 and re.fullmatch(r"\w+(?:\[\w+\])?", same[0])
    return [f"{{{len(same)}{{{same[0]}}}}}"] if name else same


def _concatenation_parts(text: str) -> list[str]:
    """Return the parts of a concatenation: ``["b", "c"]`` for ``{b, c}``.

    Any other expression is one part. A concatenation that contains another one, or a condition, is
    one part, too.
    """
    inner = text[1:-1]
    plain = text[0] == "{" and not re.search(r"[{}?]", inner)
    return inner.split(", ") if plain else [text]


def matches_case(patterns: tuple[str, ...] | None, bits: str) -> bool:
    """Return True if the binary number `bits` matches a pattern of a ``case``, such as ``1-0``.

    A ``-`` matches any bit. None in place of patterns matches always.
    """
    return patterns is None or any(
        all(a in ("-", b) for a, b in zip(pattern, bits, strict=True)) for pattern in patterns
    )


def case_labels(patterns: tuple[str, ...] | None) -> list[str]:
    """Return the labels of an item of a ``case``: ``["2'd1", "2'd3"]`` for the patterns 01 and 11.

    None in place of patterns stands for ``default``.
    """
    if patterns is None:
        return ["default"]
    return [constant(int(each, 2), len(each)) for each in patterns]


def has_wildcards(patterns: tuple[str, ...] | None) -> bool:
    """Return True if one of the patterns of a case has a ``-``, which matches 0 and 1."""
    return any("-" in each for each in patterns or ())


def is_one_bit_test(patterns: tuple[str, ...]) -> bool:
    """Return True if there is a single pattern that tests a single bit, as ``--1`` does."""
    return len(patterns) == 1 and len(patterns[0].replace("-", "")) == 1


def match_condition(test: str, patterns: tuple[str, ...]) -> str:
    """Return an expression that is 1 if the value `test` matches one of the patterns.

    A ``-`` in a pattern matches any bit.

    Examples
    --------
    >>> match_condition("test", ("1-0", "011")), match_condition("{a, b}", ("--",))
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
            found.append(f"{as_operand(test)} == {wanted}")
        else:
            found.append(f"({as_operand(test)} & {constant(mask, bits)}) == {wanted}")
    return found[0] if len(found) == 1 else " || ".join(f"({each})" for each in found)


def declare_ports(ports: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of port declarations; ports of the same node share a line.

    Examples
    --------
    The ports of node 1 share a line.

    >>> for line in declare_ports({"clk": "input clk", "a_1": "input a_1", "b_1": "input b_1"}):
    ...     print(line)
      input clk,
      input a_1, input b_1
    """
    last = [*ports][-1]
    for _, each in groupby(ports, lambda name: NODE_NUMBER.findall(name) or name):
        names = [*each]
        end = "" if names[-1] == last else ","
        yield comma_list("  ", [ports[name] for name in names], end)


def comma_list(head: str, items: Iterable[str], end: str) -> str:
    """Return ``head``, the items separated by commas, and ``end``, as one line."""
    return f"{head}{', '.join(items)}{end}"


def wrap_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of Verilog; long ones are broken, and their continuation lines are indented."""
    for line in "\n".join(lines).split("\n"):
        deeper, rest = " " * (len(line) - len(line.lstrip()) + 2), line
        while (
            len(rest) > LINE_CHARACTERS
            and "//" not in rest
            and (stays := LINE_BEGINNING.match(rest))
        ):
            yield stays[0].rstrip()
            rest = deeper + rest[stays.end() :]
        yield rest


def declare_wires(indent: str, widths: Mapping[str, int]) -> Iterator[str]:
    """Yield declarations of wires; those of equal width share a declaration.

    Parameters
    ----------
    indent : str
        Spaces before each declaration.
    widths : dict of str to int
        Name of each wire -> its bits.
    """
    for width in dict.fromkeys(widths.values()):
        nets = [net for net, each in widths.items() if each == width]
        yield comma_list(f"{indent}wire {range_of(width)}", nets, ";")


def indent_lines(lines: Iterable[str]) -> list[str]:
    """Return lines indented by one step."""
    return [f"  {part}" if part else part for line in lines for part in line.split("\n")]


def statement_block(head: str, lines: Sequence[str]) -> list[str]:
    """Return `lines` of Verilog behind a head such as ``if (reset)``, in a block if needed.

    Several statements, or a nested condition, stand between ``begin`` and ``end``. Why a block
    around a nested condition: an ``else`` belongs to the last ``if`` before it.
    """
    nested = bool(lines) and lines[0].startswith("if") and head.startswith(("if", "else"))
    if len(lines) == 1 and not nested:
        return [f"{head} {lines[0]}"]
    return [f"{head} begin", *indent_lines(lines), "end"]


def choice_lines(test: str, cases: Sequence[tuple[tuple[str, ...] | None, list[str]]]) -> list[str]:
    """Return the lines of a choice: a ``case``, or an ``if`` chain if a pattern has wildcards.

    Parameters
    ----------
    test : str
        Expression that the patterns are compared with.
    cases : sequence of (patterns, lines)
        Patterns such as ``("1-0",)``, or None for the default, and the lines to execute if the
        expression matches one of them. The first match counts.
    """
    cases = [case for case in cases if case[0] != ()]
    if not any(has_wildcards(patterns) for patterns, _ in cases):
        lines = []
        for patterns, inner in cases:
            label = comma_list("", case_labels(patterns), ":")
            lines += statement_block(label, inner) if inner else [f"{label} ;"]
        if all(patterns is not None for patterns, _ in cases):
            lines.append("default: ;")
        return [f"case ({test})", *indent_lines(lines), "endcase"]
    lines, head = [], ""
    for patterns, inner in cases:
        if patterns is None:
            return [*lines, *statement_block("else", inner)] if inner else lines
        # An empty statement, because the next line would otherwise belong to this condition.
        lines += statement_block(f"{head}if ({match_condition(test, patterns)})", inner or [";"])
        head = "else "
    return lines
