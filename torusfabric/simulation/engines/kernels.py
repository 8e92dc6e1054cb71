"""The C++ of what pieces of registers become, of all instances of a module in a loop."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from amaranth.hdl import _nir as nir

from ...errors import WorkFailed
from .elaborated import NATIVE, Elaborated, Nets, Run, Store, runs_of

__all__ = ["Leaf", "Text", "mask", "size_of", "type_of"]

#: An expression of C++, or a number where it is one.
Word: TypeAlias = str | int


class Leaf(NamedTuple):
    """What a loop reads: a piece of the module itself, part of an input, or a column of a memory.

    Parameters
    ----------
    origin : str
        ``piece``, ``input`` or ``memory``.
    """

    origin: str
    number: int
    part: int


def mask(width: int) -> int:
    """A number with so many ones."""
    return (1 << width) - 1


def size_of(width: int) -> int:
    """Bytes of a word of so many bits."""
    return next(size for size in (1, 2, 4, 8) if width <= 8 * size)


def type_of(width: int) -> str:
    """The type of a variable of so many bits: the narrower, the more of them a vector has."""
    return f"u{8 * size_of(width)}"


def _number(value: int, width: int) -> str:
    return f"{value:#x}u" if width <= 32 else f"{value:#x}ull"


class Text:
    """Lines of a loop, and what they read.

    Parameters
    ----------
    parts : function of str -> list of (number, low, width)
        The parts of an input that come from one place in each instance.

    Attributes
    ----------
    lines : list of str
    leaves : dict of Leaf to int
        What is read, with the number of bits.
    """

    def __init__(
        self, module: Elaborated, parts: Callable[[str], list[tuple[int, int, int]]]
    ) -> None:
        self._module, self._parts = module, parts
        self.lines: list[str] = []
        self.leaves: dict[Leaf, int] = {}
        self._known: dict[object, Word] = {}
        self._ports = sorted((first, width, port) for port, (first, width) in module.inputs.items())

    # Values: any number of bits up to those of a native word.

    def value(self, nets: Nets) -> Word:
        """The value of bits."""
        assert len(nets) <= NATIVE
        at, words = 0, []
        for run in runs_of(nets):
            words.append((at, run.width, self._run(run)))
            at += run.width
        return self._joined(words, len(nets))

    def _joined(self, words: list[tuple[int, int, Word]], width: int) -> Word:
        """Words side by side, each with its lowest bit and width."""
        fixed = sum(word << at for at, _, word in words if isinstance(word, int))
        others = [(at, word) for at, _, word in words if not isinstance(word, int)]
        if not others:
            return fixed
        if len(words) == 1:
            return others[0][1]
        kind = type_of(width)
        pieces = [f"(({kind}){word} << {at})" if at else f"({kind}){word}" for at, word in others]
        if fixed:
            pieces.append(_number(fixed, width))
        return self._variable(" | ".join(pieces), width)

    def _variable(self, text: str, width: int) -> str:
        key = text, width
        if key not in self._known:
            name = f"v{len(self.lines)}"
            self.lines.append(f"const {type_of(width)} {name} = {text};")
            self._known[key] = name
        return str(self._known[key])

    def _cut(self, word: Word, low: int, width: int, of: int) -> Word:
        """Bits of a word of so many bits."""
        if isinstance(word, int):
            return word >> low & mask(width)
        if low == 0 and width == of:
            return word
        text = f"({word} >> {low})" if low else word
        if low + width < of:
            text = f"({text} & {_number(mask(width), of)})"
        return self._variable(f"({type_of(width)}){text}", width)

    def load(self, leaf: Leaf, width: int) -> str:
        """What is read; its name."""
        self.leaves.setdefault(leaf, width)
        return f"{leaf.origin}_{leaf.number}_{leaf.part}"

    def _run(self, run: Run) -> Word:
        if run.cell is None:
            return run.low
        key = run
        if key not in self._known:
            self._known[key] = self._cell(run)
        return self._known[key]

    def _cell(self, run: Run) -> Word:
        module = self._module
        assert run.cell is not None
        if run.cell == 0:
            return self._input(run)
        if run.cell in module.pieces_of:
            words: list[tuple[int, int, Word]] = []
            at = 0
            for number, low, width in module.split(run):
                whole = module.pieces[number].width
                word: Word = self.load(Leaf("piece", number, 0), whole)
                words.append((at, width, self._cut(word, low, width, whole)))
                at += width
            return self._joined(words, run.width)
        cell = module.cells[run.cell]
        if isinstance(cell, nir.Operator):
            return self._operator(cell, run)
        if isinstance(cell, nir.AssignmentList):
            return self._assignments(cell, run)
        if isinstance(cell, nir.Matches):
            return self._matches(cell)
        if isinstance(cell, nir.PriorityMatch):
            bits = [(k, 1, self._first(run.cell, cell, run.low + k)) for k in range(run.width)]
            return self._joined(bits, run.width)
        if isinstance(cell, nir.Part):
            return self._part(cell, run)
        if isinstance(cell, nir.AsyncReadPort):
            return self.stored(module.stores[cell.memory], run.low, run.width, cell.addr)
        raise WorkFailed(f"Module {module.name} must be made of known cells, not {cell}")

    def _input(self, run: Run) -> Word:
        words: list[tuple[int, int, Word]] = []
        for first, width, port in self._ports:
            low, high = max(run.low, first), min(run.low + run.width, first + width)
            if low >= high:
                continue
            for number, at, size in self._parts(port):
                start, end = max(low, first + at), min(high, first + at + size)
                if start < end:
                    word: Word = self.load(Leaf("input", number, 0), size)
                    word = self._cut(word, start - first - at, end - start, size)
                    words.append((start - run.low, end - start, word))
        return self._joined(words, run.width)

    # Memories.

    def stored(self, store: Store, low: int, width: int, address: Nets) -> Word:
        """Bits of the word of a memory at an address."""
        where = there = self.value(address)
        inside: Word = 1
        if store.depth <= mask(len(address)):
            # A word is read in any case, so that a loop has no branch.
            inside = self._variable(f"{where} < {store.depth}u", 1)
            there = self._choice(inside, where, 0, len(address))
        words: list[tuple[int, int, Word]] = []
        for number, column in enumerate(store.columns):
            start, end = max(low, column.low), min(low + width, column.low + column.width)
            if start < end:
                word: Word = self._variable(self.cell_of(store, number, there), column.width)
                word = self._choice(inside, word, 0, column.width)
                word = self._cut(word, start - column.low, end - start, column.width)
                words.append((start - low, end - start, word))
        return self._joined(words, width)

    def cell_of(self, store: Store, number: int, address: Word) -> str:
        """Where a column of a word is."""
        leaf = Leaf("memory", store.cell, number)
        self.leaves.setdefault(leaf, store.columns[number].width)
        name = f"memory_{store.cell}_{number}"
        return (
            f"{name}[(size_t){address} * memory_step + k * memory_own]"
            if store.writers
            else (f"{name}[{address}]")
        )

    def becomes(self, number: int) -> Word:
        """What a piece becomes; of what no register holds, what it is."""
        module = self._module
        piece = module.pieces[number]
        if piece.cell < 0:
            return self.value(piece.nets)
        cell = module.cells[piece.cell]
        if not isinstance(cell, nir.SyncReadPort):
            return self.value(module.data(piece))
        store, enable = module.stores[cell.memory], self.value((cell.en,))
        held = self.load(Leaf("piece", number, 0), piece.width)
        if enable == 0:
            return held
        word = self.stored(store, piece.low, piece.width, cell.addr)
        for writer in cell.transparent_for:
            port = module.cells[writer]
            same = self._equal(cell.addr, port.addr)
            at = slice(piece.low, piece.low + piece.width)
            both = self._variable(f"{same} & {self.value((port.en[piece.low],))}", 1)
            word = self._choice(both, self.value(port.data[at]), word, piece.width)
        return self._choice(enable, word, held, piece.width)

    # Cells.

    def _choice(self, condition: Word, yes: Word, no: Word, width: int) -> Word:
        if isinstance(condition, int):
            return yes if condition else no
        if yes == no:
            return yes
        yes, no = (_number(w, width) if isinstance(w, int) else w for w in (yes, no))
        return self._variable(f"{condition} ? {yes} : {no}", width)

    def _assignments(self, cell: nir.AssignmentList, run: Run) -> Word:
        low, high = run.low, run.low + run.width
        ends = {e for a in cell.assignments for e in (a.start, a.start + len(a.value))}
        cuts = sorted({low, high} | {end for end in ends if low < end < high})
        if len(cuts) > 2:
            parts = [Run(run.cell, a, b - a) for a, b in pairwise(cuts)]
            words = [(part.low - low, part.width, self._run(part)) for part in parts]
            return self._joined(words, run.width)
        covering = [
            a for a in cell.assignments if a.start <= low and high <= a.start + len(a.value)
        ]
        always = [k for k, a in enumerate(covering) if a.cond == 1]
        if always:
            first, covering = covering[always[-1]], covering[always[-1] + 1 :]
            word = self.value(first.value[low - first.start : high - first.start])
        else:
            word = self.value(cell.default[low:high])
        for each in covering:
            value = self.value(each.value[low - each.start : high - each.start])
            word = self._choice(self.value((each.cond,)), value, word, run.width)
        return word

    def _matches(self, cell: nir.Matches) -> Word:
        found = []
        for pattern in cell.patterns:
            bits, tests = pattern[::-1], []
            for at in range(0, len(bits), NATIVE):
                some = bits[at : at + NATIVE]
                care = sum(1 << k for k, bit in enumerate(some) if bit != "-")
                ones = sum(1 << k for k, bit in enumerate(some) if bit == "1")
                if care:
                    word = self.value(cell.value[at : at + NATIVE])
                    if isinstance(word, int):
                        tests.append(str(int(word & care == ones)))
                    else:
                        size = len(some)
                        tests.append(f"(({word} & {_number(care, size)}) == {_number(ones, size)})")
            found.append(" & ".join(tests) or "1u")
        if not found:
            return 0
        return self._variable("(u32)(" + " | ".join(f"({text})" for text in found) + ")", 1)

    def _first(self, number: int, cell: nir.PriorityMatch, bit: int) -> Word:
        """Whether a bit is the first one."""
        left, word = self._left(number, cell, bit), self.value((cell.inputs[bit],))
        return self._binary("&", left, word, 1)

    def _left(self, number: int, cell: nir.PriorityMatch, bit: int) -> Word:
        """Whether none of the bits before one is set."""
        key = "left", number, bit
        if key not in self._known:
            word = self.value((cell.en,))
            if bit:
                unset = self._binary("^", self.value((cell.inputs[bit - 1],)), 1, 1)
                word = self._binary("&", self._left(number, cell, bit - 1), unset, 1)
            self._known[key] = word
        return self._known[key]

    def _part(self, cell: nir.Part, run: Run) -> Word:
        """Bits at an offset: a choice among all that there are."""
        offset, value = self.value(cell.offset), cell.value
        beyond = value[-1] if cell.value_signed else 0
        count = min(-(-len(value) // cell.stride), mask(len(cell.offset)) + 1)

        def at(k: int) -> Word:
            start = k * cell.stride + run.low
            nets = [value[b] if b < len(value) else beyond
                    for b in range(start, start + run.width)]  # fmt: skip
            return self.value(nets)

        if isinstance(offset, int):
            return at(offset)
        rest = at(count) if mask(len(cell.offset)) >= count else at(count - 1)
        word = rest
        for k in range(count):
            word = self._choice(f"({offset} == {k}u)", at(k), word, run.width)
        return word

    def _equal(self, one: Nets, other: Nets) -> Word:
        words = zip(self._words(one), self._words(other), strict=True)
        return self._variable(" & ".join(f"(u32)({a} == {b})" for (a, _), (b, _) in words), 1)

    def _operator(self, cell: nir.Operator, run: Run) -> Word:
        name, inputs = cell.operator, cell.inputs
        some = slice(run.low, run.low + run.width)
        if name == "~":
            return self._binary("^", self.value(inputs[0][some]), mask(run.width), run.width)
        if name in ("&", "|", "^") and len(inputs) == 2:
            one, other = (self.value(value[some]) for value in inputs)
            return self._binary(name, one, other, run.width)
        if name == "m":
            yes, no = (self.value(value[some]) for value in inputs[1:])
            return self._choice(self.value(inputs[0]), yes, no, run.width)
        if name in ("b", "r|", "r&", "r^"):
            return self._reduced(name, inputs[0])
        if name in ("==", "!="):
            same = self._equal(*inputs)
            return same if name == "==" else self._binary("^", same, 1, 1)
        if name in ("<<", "u>>", "s>>"):
            return self._shifted(name, inputs, run)
        if name[1:] in ("<", ">", "<=", ">="):
            return self._compared(name, *inputs)
        if name in ("+", "-"):
            return self._sum(name, inputs, run)
        if name == "*":
            return self._product(inputs, run)
        if name in ("u//", "u%") and len(inputs[0]) <= NATIVE:
            a, b = (self._text(value) for value in inputs)
            sign = "/" if name == "u//" else "%"
            word = self._variable(f"{b} ? {a} {sign} {b} : 0", len(inputs[0]))
            return self._cut(word, run.low, run.width, len(inputs[0]))
        raise WorkFailed(f"Module {self._module.name} must not need operator {name}")

    def _text(self, nets: Nets) -> str:
        word = self.value(nets)
        return _number(word, len(nets)) if isinstance(word, int) else word

    def _words(self, nets: Nets) -> list[tuple[str, int]]:
        """Native words of any number of bits, each with its bits."""
        parts = (nets[at : at + NATIVE] for at in range(0, len(nets), NATIVE))
        return [(self._text(part), len(part)) for part in parts]

    def _binary(self, name: str, a: Word, b: Word, width: int) -> Word:
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
        other = _number(b, width) if isinstance(b, int) else b
        return self._variable(f"{a} {name} {other}", width)

    def _reduced(self, name: str, nets: Nets) -> Word:
        words = self._words(nets)
        if name == "r&":
            tests = (f"(u32)({word} == {_number(mask(size), size)})" for word, size in words)
            return self._variable(" & ".join(tests), 1)
        if name == "r^":
            parities = (f"(u32)__builtin_parityll({word})" for word, _ in words)
            return self._variable(" ^ ".join(parities), 1)
        return self._variable(" | ".join(f"(u32)({word} != 0)" for word, _ in words), 1)

    def _compared(self, name: str, one: Nets, other: Nets) -> Word:
        if name[1] == ">":
            one, other = other, one
            name = name[0] + "<" + name[2:]
        signed, strict = name[0] == "s", name[1:] == "<"
        text = "0u" if strict else "1u"
        words = [*zip(self._words(one), self._words(other), strict=True)]
        for k, ((a, size), (b, _)) in enumerate(words, 1):
            if signed and k == len(words):
                top = _number(1 << size - 1, size)
                a, b = f"({a} ^ {top})", f"({b} ^ {top})"
            below = self._variable(f"(u32)({a} < {b})", 1)
            if text == "0u":
                text = below
            else:
                text = self._variable(f"{below} | ((u32)({a} == {b}) & {text})", 1)
        return text

    def _sum(self, name: str, inputs: Sequence[Nets], run: Run) -> Word:
        """A sum, or a difference; of words beyond the native ones with their carries."""
        negative = len(inputs) == 1
        one, other = ((), inputs[0]) if negative else inputs
        high = run.low + run.width
        if high <= NATIVE:
            a = "0" if negative else self._text(one[:high])
            b = self._text(other[:high])
            word = self._wrapped(f"({type_of(high)}){a} {name} {b}", high)
            return self._cut(word, run.low, run.width, high)
        carry, words = "1" if name == "-" else "0", []
        for at in range(0, high, NATIVE):
            size = min(high - at, NATIVE)
            a = "0" if negative else self._text(one[at : at + size])
            b = self._text(other[at : at + size])
            if name == "-":
                b = f"({b} ^ {_number(mask(size), 64)})"
            total = f"t{len(self.lines)}"
            self.lines.append(f"const u128 {total} = (u128){a} + {b} + {carry};")
            words.append((at, size, self._wrapped(f"(u64){total}", size)))
            carry = f"(u64)({total} >> {size})"
        return self._window(words, run)

    def _window(self, words: list[tuple[int, int, Word]], run: Run) -> Word:
        """A run of bits of words side by side."""
        found = []
        for at, size, word in words:
            low, high = max(at, run.low), min(at + size, run.low + run.width)
            if low < high:
                part = self._cut(word, low - at, high - low, size)
                found.append((low - run.low, high - low, part))
        return self._joined(found, run.width)

    def _wrapped(self, text: str, width: int) -> Word:
        """A value without the bits beyond its width."""
        if width == 8 * size_of(width):
            return self._variable(text, width)
        return self._variable(f"({text}) & {_number(mask(width), width)}", width)

    def _product(self, inputs: Sequence[Nets], run: Run) -> Word:
        high = run.low + run.width
        if high <= NATIVE:
            a, b = (self._text(nets[:high]) for nets in inputs)
            # What is narrower would become an int, which overflows.
            word = self._wrapped(f"({type_of(max(high, 32))}){a} * {b}", high)
            return self._cut(word, run.low, run.width, high)
        count = -(-high // NATIVE)
        total: list[str] = ["0"] * count
        for i in range(count):
            carry = "0"
            for j in range(count - i):
                a, b = (self._text(nets[k * NATIVE : min((k + 1) * NATIVE, high)])
                        for nets, k in zip(inputs, (i, j), strict=True))  # fmt: skip
                name = f"t{len(self.lines)}"
                self.lines.append(
                    f"const u128 {name} = (u128)(u64){a} * (u64){b} + {total[i + j]} + {carry};"
                )
                total[i + j], carry = f"(u64){name}", f"(u64)({name} >> 64)"
        words: list[tuple[int, int, Word]] = [
            (k * NATIVE, NATIVE, self._variable(text, NATIVE)) for k, text in enumerate(total)
        ]
        return self._window(words, run)

    def _shifted(self, name: str, inputs: Sequence[Nets], run: Run) -> Word:
        """A shift, one bit of the number after another."""
        value, amount = inputs
        width, left = len(value), name == "<<"
        beyond = value[-1] if name == "s>>" else 0

        def at(stage: int, low: int, size: int) -> Word:
            key = "shift", run.cell, stage, low, size
            if key in self._known:
                return self._known[key]
            if stage < 0:
                nets = [value[b] if 0 <= b < width else (0 if b < 0 else beyond)
                        for b in range(low, low + size)]  # fmt: skip
                word = self.value(nets)
            else:
                step = min(1 << stage, width) * (-1 if left else 1)
                moved = at(stage - 1, low + step, size)
                word = self._choice(
                    self.value((amount[stage],)), moved, at(stage - 1, low, size), size
                )
            self._known[key] = word
            return word

        if width <= NATIVE and not isinstance(self.value(amount), int):
            a, by = self._text(value), self._text(amount)
            if name == "s>>":
                text = f"(u64)((i64)((u64){a} << {64 - width}) >> ({by} < 63 ? {by} : 63))"
                whole = self._variable(text, 64)
                word = self._cut(whole, 64 - width, width, 64)
            else:
                sign = "<<" if left else ">>"
                text = f"({by} < {width}u ? ({type_of(width)}){a} {sign} {by} : 0)"
                word = self._wrapped(text, width)
            return self._cut(word, run.low, run.width, width)
        return at(len(amount) - 1, run.low, run.width)

    # What is written.

    def write(self, store: Store) -> list[str]:
        """Statements that write into a memory, and note in `any` whether they do."""
        found = []
        for writer in store.writers:
            port = self._module.cells[writer]
            where = self.value(port.addr)
            for number, column in enumerate(store.columns):
                enable = self.value((port.en[column.low],))
                if enable == 0:
                    continue
                data = self.value(port.data[column.low : column.low + column.width])
                target = self.cell_of(store, number, where)
                tests = [str(enable)]
                if store.depth <= mask(len(port.addr)):
                    tests.append(f"{where} < {store.depth}u")
                found.append((" & ".join(f"({test})" for test in tests), f"{target} = {data};"))
        return [f"if ({test}) {{ {text} any = 1; }}" for test, text in found]
