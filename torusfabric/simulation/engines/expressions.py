"""C++ expressions for words of at most 64 bits, and the lines that compute each expression once.

A word holds no bits above its width. A wider value is a list of native words, the lowest first. A
value known at build time is a Python integer and needs no line.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["NATIVE_BITS", "CppLines", "NativeWord", "WordPart", "Word", "literal", "mask",
           "native_bytes", "cpp_type"]  # fmt: skip

#: Bits of a native word.
NATIVE_BITS = 64

#: A C++ expression, or an integer if the value is known at build time.
Word: TypeAlias = str | int


class WordPart(NamedTuple):
    """A word within a concatenation.

    Its fields are its lowest bit in the concatenation, its width, and its value: a C++ variable or
    an integer.
    """

    at: int
    width: int
    word: Word


class NativeWord(NamedTuple):
    """A C++ expression whose value fits into 64 bits, and its width in bits."""

    text: str
    width: int


def mask(width: int) -> int:
    """Return the number whose lowest `width` bits are 1 and whose other bits are 0."""
    return (1 << width) - 1


def native_bytes(width: int) -> int:
    """Return the bytes of the smallest native word with at least `width` bits."""
    return next(size for size in (1, 2, 4, 8) if width <= 8 * size)


def cpp_type(width: int) -> str:
    """Return the narrowest C++ type for `width` bits, such as ``u16`` for 9 bits.

    Why: a vector register of the processor holds more values of a narrow type.
    """
    return f"u{8 * native_bytes(width)}"


def literal(value: int, width: int) -> str:
    """Return `value` as a C++ literal of at least `width` bits.

    It is, for example, ``0x5u`` up to 32 bits, and ``0x5ull`` above.
    """
    return f"{value:#x}u" if width <= 32 else f"{value:#x}ull"


class CppLines:
    """Collector of C++ lines, each of which computes one word of at most 64 bits.

    Each method that returns a word adds the lines that compute it, unless an earlier call has
    computed the same word. A word is returned as the name of a C++ variable, or as an integer if
    its value is constant.

    Attributes
    ----------
    lines : list of str
        Declarations of variables, in order.
    known : dict of object to Word
        Words that have a line already. A key is, for example, a C++ expression with its width.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[object, Word] = {}

    def add_variable(self, text: str, width: int) -> str:
        """Return the C++ variable with the value of the expression `text`, such as ``v0``.

        A line that declares the variable is added if the expression is new. `width` is the number
        of bits of the value.
        """
        key = text, width
        if key not in self.known:
            name = f"v{len(self.lines)}"
            self.lines.append(f"const {cpp_type(width)} {name} = {text};")
            self.known[key] = name
        return str(self.known[key])

    def _add_wide_variable(self, text: str) -> str:
        """Add a variable of 128 bits for the expression `text`, and return its name."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"const u128 {name} = {text};")
        return name

    def concatenate(self, parts: Sequence[WordPart], width: int) -> Word:
        """Return one word of `width` bits that consists of all `parts`, each at its position."""
        fixed = sum(word << at for at, _, word in parts if isinstance(word, int))
        others = [(at, word) for at, _, word in parts if not isinstance(word, int)]
        if not others:
            return fixed
        if len(parts) == 1:
            return others[0][1]
        kind = cpp_type(width)
        pieces = [f"(({kind}){word} << {at})" if at else f"({kind}){word}" for at, word in others]
        if fixed:
            pieces.append(literal(fixed, width))
        return self.add_variable(" | ".join(pieces), width)

    def extract_bits(self, word: Word, low: int, width: int, of: int) -> Word:
        """Return `width` bits, from bit `low` on, of a word of `of` bits."""
        if isinstance(word, int):
            return word >> low & mask(width)
        if low == 0 and width == of:
            return word
        text = f"({word} >> {low})" if low else word
        if low + width < of:
            text = f"({text} & {literal(mask(width), of)})"
        return self.add_variable(f"({cpp_type(width)}){text}", width)

    def extract_from_parts(self, parts: Sequence[WordPart], low: int, width: int) -> Word:
        """Return `width` bits, from bit `low` on, of the concatenation of the words in `parts`."""
        found = []
        for at, size, word in parts:
            start, end = max(at, low), min(at + size, low + width)
            if start < end:
                part = self.extract_bits(word, start - at, end - start, size)
                found.append(WordPart(start - low, end - start, part))
        return self.concatenate(found, width)

    def truncate(self, text: str, width: int) -> Word:
        """Return the lowest `width` bits of the expression `text`."""
        if width == 8 * native_bytes(width):
            return self.add_variable(text, width)
        return self.add_variable(f"({text}) & {literal(mask(width), width)}", width)

    def choose_word(self, condition: Word, yes: Word, no: Word, width: int) -> Word:
        """Return `yes` if the condition is 1, otherwise `no`; both have `width` bits."""
        if isinstance(condition, int):
            return yes if condition else no
        if yes == no:
            return yes
        yes, no = (literal(w, width) if isinstance(w, int) else w for w in (yes, no))
        return self.add_variable(f"{condition} ? {yes} : {no}", width)

    def apply_bitwise(self, name: str, a: Word, b: Word, width: int) -> Word:
        """Return `a` & `b`, `a` | `b` or `a` ^ `b`, according to `name`; both have `width` bits.

        If a word is constant, the expression is simplified: ``a & 0`` becomes 0.
        """
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
        return self.add_variable(f"{a} {name} {other}", width)

    # Operations on values of any width: lists of native words, the lowest first.

    def compare_equal(self, one: Sequence[NativeWord], other: Sequence[NativeWord]) -> Word:
        """Return a word of one bit: 1 if the values `one` and `other` are equal.

        Each value is a list of words, the lowest first. Values of no bits are equal, such as the
        addresses of a memory of one word.
        """
        words = zip(one, other, strict=True)
        tests = " & ".join(f"(u32)({a} == {b})" for (a, _), (b, _) in words)
        return self.add_variable(tests, 1) if tests else 1

    def reduce_bits(self, name: str, words: Sequence[NativeWord]) -> Word:
        """Return a word of one bit: the AND, XOR or OR of all bits in `words`.

        `name` is the operator in Amaranth's netlists: ``r&`` is AND, ``r^`` is XOR; ``r|`` and
        ``b`` (conversion to a boolean) are OR. Of no bits the AND is 1, and the others are 0.
        """
        if not words:
            return int(name == "r&")
        if name == "r&":
            tests = (f"(u32)({word} == {literal(mask(size), size)})" for word, size in words)
            return self.add_variable(" & ".join(tests), 1)
        if name == "r^":
            parities = (f"(u32)__builtin_parityll({word})" for word, _ in words)
            return self.add_variable(" ^ ".join(parities), 1)
        return self.add_variable(" | ".join(f"(u32)({word} != 0)" for word, _ in words), 1)

    def less_than(
        self,
        one: Sequence[NativeWord],
        other: Sequence[NativeWord],
        *,
        signed: bool,
        or_equal: bool,
    ) -> Word:
        """Return a word of one bit: 1 if `one` is less than `other`.

        With `or_equal`, it is 1 for equal values, too. Each value is a list of words, the lowest
        first; with `signed`, it is in two's complement.
        """
        text = "1u" if or_equal else "0u"
        words = [*zip(one, other, strict=True)]
        for k, ((a, size), (b, _)) in enumerate(words, 1):
            if signed and k == len(words):
                top = literal(1 << size - 1, size)
                a, b = f"({a} ^ {top})", f"({b} ^ {top})"
            less = self.add_variable(f"(u32)({a} < {b})", 1)
            if text == "0u":
                text = less
            else:
                text = self.add_variable(f"{less} | ((u32)({a} == {b}) & {text})", 1)
        return text

    def add_or_subtract(
        self, name: str, one: Sequence[NativeWord], other: Sequence[NativeWord]
    ) -> list[WordPart]:
        """Return the sum or difference of two values of equal width, modulo 2^width.

        `name` is ``+`` or ``-``. Values are lists of words, the lowest first. The carry out of each
        word is added to the next one.
        """
        if len(other) == 1:
            width = other[0].width
            text = f"({cpp_type(width)}){one[0].text} {name} {other[0].text}"
            return [WordPart(0, width, self.truncate(text, width))]
        carry, parts = "1" if name == "-" else "0", list[WordPart]()
        for k, ((a, size), (b, _)) in enumerate(zip(one, other, strict=True)):
            if name == "-":
                b = f"({b} ^ {literal(mask(size), 64)})"
            total = self._add_wide_variable(f"(u128){a} + {b} + {carry}")
            parts.append(WordPart(k * NATIVE_BITS, size, self.truncate(f"(u64){total}", size)))
            carry = f"(u64)({total} >> {size})"
        return parts

    def multiply(self, one: Sequence[NativeWord], other: Sequence[NativeWord]) -> list[WordPart]:
        """Return the product of two values of equal width, truncated to this width.

        Values are lists of words, the lowest first.
        """
        if len(one) == 1:
            width = one[0].width
            # A narrower operand would be promoted to int, whose overflow is undefined.
            text = f"({cpp_type(max(width, 32))}){one[0].text} * {other[0].text}"
            return [WordPart(0, width, self.truncate(text, width))]
        count = len(one)
        totals = ["0"] * count
        for i, (a, _) in enumerate(one):
            carry = "0"
            for j, (b, _) in enumerate(other[: count - i]):
                name = self._add_wide_variable(
                    f"(u128)(u64){a} * (u64){b} + {totals[i + j]} + {carry}"
                )
                totals[i + j], carry = f"(u64){name}", f"(u64)({name} >> 64)"
        return [WordPart(k * NATIVE_BITS, NATIVE_BITS, self.add_variable(each, NATIVE_BITS))
                for k, each in enumerate(totals)]  # fmt: skip
