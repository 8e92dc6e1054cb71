"""C++ expressions for words of at most 64 bits, and the lines that compute each expression once.

A word holds no bits above its width. A wider value is a list of native words, the lowest first. A
value known at build time is a Python integer and needs no line.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["NATIVE", "Lines", "Native", "Part", "Word", "literal", "mask", "size_of", "type_of"]

#: Bits of a native word.
NATIVE = 64

#: A C++ expression, or an integer if the value is known at build time.
Word: TypeAlias = str | int


class Part(NamedTuple):
    """A word within a concatenation: its lowest bit there, its width, and its value."""

    at: int
    width: int
    word: Word


class Native(NamedTuple):
    """A C++ expression of a native word, and its width in bits."""

    text: str
    width: int


def mask(width: int) -> int:
    """Return a number of `width` ones."""
    return (1 << width) - 1


def size_of(width: int) -> int:
    """Return the bytes of the smallest native word with at least `width` bits."""
    return next(size for size in (1, 2, 4, 8) if width <= 8 * size)


def type_of(width: int) -> str:
    """Return the narrowest C++ type for `width` bits; a vector holds more narrow values."""
    return f"u{8 * size_of(width)}"


def literal(value: int, width: int) -> str:
    """Return a C++ literal of `width` bits."""
    return f"{value:#x}u" if width <= 32 else f"{value:#x}ull"


class Lines:
    """C++ lines that compute words, without common subexpressions.

    Attributes
    ----------
    lines : list of str
        Declarations of variables, in order.
    known : dict of object to Word
        Computed words by their keys: an expression with its width, a run of bits, or a shift stage.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[object, Word] = {}

    def variable(self, text: str, width: int) -> str:
        """Return the variable that holds an expression; adds a line for a new expression."""
        key = text, width
        if key not in self.known:
            name = f"v{len(self.lines)}"
            self.lines.append(f"const {type_of(width)} {name} = {text};")
            self.known[key] = name
        return str(self.known[key])

    def _total(self, text: str) -> str:
        """Return the name of a new 128-bit variable."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"const u128 {name} = {text};")
        return name

    def joined(self, parts: Sequence[Part], width: int) -> Word:
        """Return the concatenation of words."""
        fixed = sum(word << at for at, _, word in parts if isinstance(word, int))
        others = [(at, word) for at, _, word in parts if not isinstance(word, int)]
        if not others:
            return fixed
        if len(parts) == 1:
            return others[0][1]
        kind = type_of(width)
        pieces = [f"(({kind}){word} << {at})" if at else f"({kind}){word}" for at, word in others]
        if fixed:
            pieces.append(literal(fixed, width))
        return self.variable(" | ".join(pieces), width)

    def cut(self, word: Word, low: int, width: int, of: int) -> Word:
        """Return `width` bits, from bit `low` on, of a word of `of` bits."""
        if isinstance(word, int):
            return word >> low & mask(width)
        if low == 0 and width == of:
            return word
        text = f"({word} >> {low})" if low else word
        if low + width < of:
            text = f"({text} & {literal(mask(width), of)})"
        return self.variable(f"({type_of(width)}){text}", width)

    def window(self, parts: Sequence[Part], low: int, width: int) -> Word:
        """Return `width` bits, from bit `low` on, of a concatenation of words."""
        found = []
        for at, size, word in parts:
            start, end = max(at, low), min(at + size, low + width)
            if start < end:
                part = self.cut(word, start - at, end - start, size)
                found.append(Part(start - low, end - start, part))
        return self.joined(found, width)

    def wrapped(self, text: str, width: int) -> Word:
        """Return a value reduced modulo 2^width."""
        if width == 8 * size_of(width):
            return self.variable(text, width)
        return self.variable(f"({text}) & {literal(mask(width), width)}", width)

    def choice(self, condition: Word, yes: Word, no: Word, width: int) -> Word:
        """Return `yes` if the condition is 1, otherwise `no`."""
        if isinstance(condition, int):
            return yes if condition else no
        if yes == no:
            return yes
        yes, no = (literal(w, width) if isinstance(w, int) else w for w in (yes, no))
        return self.variable(f"{condition} ? {yes} : {no}", width)

    def binary(self, name: str, a: Word, b: Word, width: int) -> Word:
        """Return the result of the operator ``&``, ``|`` or ``^``, simplified for constants."""
        ones = mask(width)
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int):
            assert isinstance(b, int)
            return {"&": a & b, "|": a | b, "^": a ^ b}[name]
        if name == "&" and b in (0, ones):
            return a if b else 0
        if name == "|" and b in (0, ones):
            return ones if b else a
        if name == "^" and b == 0:
            return a
        other = literal(b, width) if isinstance(b, int) else b
        return self.variable(f"{a} {name} {other}", width)

    # Operations on values of any width: lists of native words, the lowest first.

    def equal(self, one: Sequence[Native], other: Sequence[Native]) -> Word:
        """Return 1 if two values are equal."""
        words = zip(one, other, strict=True)
        return self.variable(" & ".join(f"(u32)({a} == {b})" for (a, _), (b, _) in words), 1)

    def reduced(self, name: str, words: Sequence[Native]) -> Word:
        """Return the AND (``r&``), parity (``r^``) or OR (``r|``, ``b``) of all bits of a value."""
        if name == "r&":
            tests = (f"(u32)({word} == {literal(mask(size), size)})" for word, size in words)
            return self.variable(" & ".join(tests), 1)
        if name == "r^":
            parities = (f"(u32)__builtin_parityll({word})" for word, _ in words)
            return self.variable(" ^ ".join(parities), 1)
        return self.variable(" | ".join(f"(u32)({word} != 0)" for word, _ in words), 1)

    def below(
        self, one: Sequence[Native], other: Sequence[Native], *, signed: bool, or_equal: bool
    ) -> Word:
        """Return 1 if `one` is less than `other`, or, with `or_equal`, equal to it."""
        text = "1u" if or_equal else "0u"
        words = [*zip(one, other, strict=True)]
        for k, ((a, size), (b, _)) in enumerate(words, 1):
            if signed and k == len(words):
                top = literal(1 << size - 1, size)
                a, b = f"({a} ^ {top})", f"({b} ^ {top})"
            less = self.variable(f"(u32)({a} < {b})", 1)
            if text == "0u":
                text = less
            else:
                text = self.variable(f"{less} | ((u32)({a} == {b}) & {text})", 1)
        return text

    def sum(self, name: str, one: Sequence[Native], other: Sequence[Native]) -> list[Part]:
        """Return the sum or difference of two values of equal width, carries included."""
        if len(other) == 1:
            width = other[0].width
            text = f"({type_of(width)}){one[0].text} {name} {other[0].text}"
            return [Part(0, width, self.wrapped(text, width))]
        carry, parts = "1" if name == "-" else "0", list[Part]()
        for k, ((a, size), (b, _)) in enumerate(zip(one, other, strict=True)):
            if name == "-":
                b = f"({b} ^ {literal(mask(size), 64)})"
            total = self._total(f"(u128){a} + {b} + {carry}")
            parts.append(Part(k * NATIVE, size, self.wrapped(f"(u64){total}", size)))
            carry = f"(u64)({total} >> {size})"
        return parts

    def product(self, one: Sequence[Native], other: Sequence[Native]) -> list[Part]:
        """Return the product of two values, truncated to their width."""
        if len(one) == 1:
            width = one[0].width
            # A narrower operand would be promoted to int, whose overflow is undefined.
            text = f"({type_of(max(width, 32))}){one[0].text} * {other[0].text}"
            return [Part(0, width, self.wrapped(text, width))]
        count = len(one)
        totals = ["0"] * count
        for i, (a, _) in enumerate(one):
            carry = "0"
            for j, (b, _) in enumerate(other[: count - i]):
                name = self._total(f"(u128)(u64){a} * (u64){b} + {totals[i + j]} + {carry}")
                totals[i + j], carry = f"(u64){name}", f"(u64)({name} >> 64)"
        return [Part(k * NATIVE, NATIVE, self.variable(each, NATIVE))
                for k, each in enumerate(totals)]  # fmt: skip
