"""Expressions of C++ for words of few bits, and lines that work them out, each once.

Words have up to as many bits as a native word has, and none beyond these; more bits are several
words, the lowest first. What is known beforehand is a number, and takes no line.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["NATIVE", "Lines", "Native", "Part", "Word", "literal", "mask", "size_of", "type_of"]

#: Bits of a native word.
NATIVE = 64

#: An expression of C++, or a number where it is one.
Word: TypeAlias = str | int


class Part(NamedTuple):
    """A word among others side by side: its lowest bit there, and its bits."""

    at: int
    width: int
    word: Word


class Native(NamedTuple):
    """An expression of a native word, and its bits."""

    text: str
    width: int


def mask(width: int) -> int:
    """A number with so many ones."""
    return (1 << width) - 1


def size_of(width: int) -> int:
    """Bytes of a word of so many bits."""
    return next(size for size in (1, 2, 4, 8) if width <= 8 * size)


def type_of(width: int) -> str:
    """The type of a variable of so many bits: the narrower, the more of them a vector has."""
    return f"u{8 * size_of(width)}"


def literal(value: int, width: int) -> str:
    """A number of so many bits in C++."""
    return f"{value:#x}u" if width <= 32 else f"{value:#x}ull"


class Lines:
    """Lines that work out words.

    Attributes
    ----------
    lines : list of str
    known : dict of object to Word
        What has been worked out, by what it is.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[object, Word] = {}

    def variable(self, text: str, width: int) -> str:
        """A name for an expression."""
        key = text, width
        if key not in self.known:
            name = f"v{len(self.lines)}"
            self.lines.append(f"const {type_of(width)} {name} = {text};")
            self.known[key] = name
        return str(self.known[key])

    def _total(self, text: str) -> str:
        """A name for a sum of more bits than a native word has."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"const u128 {name} = {text};")
        return name

    def joined(self, parts: Sequence[Part], width: int) -> Word:
        """Words side by side."""
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
        """Bits of a word of so many bits."""
        if isinstance(word, int):
            return word >> low & mask(width)
        if low == 0 and width == of:
            return word
        text = f"({word} >> {low})" if low else word
        if low + width < of:
            text = f"({text} & {literal(mask(width), of)})"
        return self.variable(f"({type_of(width)}){text}", width)

    def window(self, parts: Sequence[Part], low: int, width: int) -> Word:
        """Bits of words side by side."""
        found = []
        for at, size, word in parts:
            start, end = max(at, low), min(at + size, low + width)
            if start < end:
                part = self.cut(word, start - at, end - start, size)
                found.append(Part(start - low, end - start, part))
        return self.joined(found, width)

    def wrapped(self, text: str, width: int) -> Word:
        """A value without the bits beyond its width."""
        if width == 8 * size_of(width):
            return self.variable(text, width)
        return self.variable(f"({text}) & {literal(mask(width), width)}", width)

    def choice(self, condition: Word, yes: Word, no: Word, width: int) -> Word:
        """One of two words."""
        if isinstance(condition, int):
            return yes if condition else no
        if yes == no:
            return yes
        yes, no = (literal(w, width) if isinstance(w, int) else w for w in (yes, no))
        return self.variable(f"{condition} ? {yes} : {no}", width)

    def binary(self, name: str, a: Word, b: Word, width: int) -> Word:
        """A word of the operator ``&``, ``|`` or ``^``."""
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

    # Of any number of bits: native words, the lowest first.

    def equal(self, one: Sequence[Native], other: Sequence[Native]) -> Word:
        """A bit that is high if all words are the same."""
        words = zip(one, other, strict=True)
        return self.variable(" & ".join(f"(u32)({a} == {b})" for (a, _), (b, _) in words), 1)

    def reduced(self, name: str, words: Sequence[Native]) -> Word:
        """A bit that is high if all bits are, an odd number, or any, by Amaranth's operator."""
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
        """A bit that is high if a number is less than another, or, if `or_equal`, the same."""
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
        """A sum or a difference; of several words, with their carries."""
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
        """A product of as many words as each has; of several, with their carries."""
        if len(one) == 1:
            width = one[0].width
            # What is narrower would become an int, which overflows.
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
