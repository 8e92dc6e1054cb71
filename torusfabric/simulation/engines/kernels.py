"""The C++ of what pieces of registers become, of all instances of a module in a loop."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from ...errors import WorkFailed
from ...rtl.amaranth_private import nir
from .elaborated import Elaborated, Nets, Run, Store, runs_of
from .expressions import NATIVE, Lines, Native, Part, Word, literal, mask

__all__ = ["Leaf", "Text"]


class Leaf(NamedTuple):
    """A read of a loop: a piece of the module itself, part of an input, or a column of a memory.

    Parameters
    ----------
    origin : str
        ``piece``, ``input`` or ``memory``.
    """

    origin: str
    number: int
    part: int


class Text(Lines):
    """Lines of a loop, and what they read.

    Parameters
    ----------
    parts : function of str -> list of (number, low, width)
        The parts of an input that come from one place in each instance.

    Attributes
    ----------
    leaves : dict of Leaf to int
        What is read, with the number of bits.
    """

    def __init__(
        self, module: Elaborated, parts: Callable[[str], list[tuple[int, int, int]]]
    ) -> None:
        super().__init__()
        self._module, self._parts = module, parts
        self.leaves: dict[Leaf, int] = {}
        self._ports = sorted((first, width, port) for port, (first, width) in module.inputs.items())

    # Values: any number of bits up to those of a native word.

    def value(self, nets: Nets) -> Word:
        """The value of bits."""
        assert len(nets) <= NATIVE
        at, parts = 0, []
        for run in runs_of(nets):
            parts.append(Part(at, run.width, self._run(run)))
            at += run.width
        return self.joined(parts, len(nets))

    def load(self, leaf: Leaf, width: int) -> str:
        """Return the name of a leaf that is read."""
        self.leaves.setdefault(leaf, width)
        return f"{leaf.origin}_{leaf.number}_{leaf.part}"

    def _run(self, run: Run) -> Word:
        if run.cell is None:
            return run.low
        if run not in self.known:
            self.known[run] = self._cell(run)
        return self.known[run]

    def _cell(self, run: Run) -> Word:
        module = self._module
        assert run.cell is not None
        if run.cell == 0:
            return self._input(run)
        if run.cell in module.pieces_of:
            words: list[Part] = []
            at = 0
            for number, low, width in module.split(run):
                whole = module.pieces[number].width
                word: Word = self.load(Leaf("piece", number, 0), whole)
                words.append(Part(at, width, self.cut(word, low, width, whole)))
                at += width
            return self.joined(words, run.width)
        cell = module.cells[run.cell]
        if isinstance(cell, nir.Operator):
            return self._operator(cell, run)
        if isinstance(cell, nir.AssignmentList):
            return self._assignments(cell, run)
        if isinstance(cell, nir.Matches):
            return self._matches(cell)
        if isinstance(cell, nir.PriorityMatch):
            some = self._first(cell)[run.low : run.low + run.width]
            return self.joined([Part(k, 1, bit) for k, bit in enumerate(some)], run.width)
        if isinstance(cell, nir.Part):
            above = cell.value[-1] if cell.value_signed else 0
            return self._shifted(run, cell.value, cell.offset, cell.stride, above)
        if isinstance(cell, nir.AsyncReadPort):
            return self.stored(module.stores[cell.memory], run.low, run.width, cell.addr)
        raise WorkFailed(f"Module {module.name} must be made of known cells, not {cell}")

    def _input(self, run: Run) -> Word:
        words: list[Part] = []
        for first, width, port in self._ports:
            low, high = max(run.low, first), min(run.low + run.width, first + width)
            if low >= high:
                continue
            for number, at, size in self._parts(port):
                start, end = max(low, first + at), min(high, first + at + size)
                if start < end:
                    word: Word = self.load(Leaf("input", number, 0), size)
                    word = self.cut(word, start - first - at, end - start, size)
                    words.append(Part(start - run.low, end - start, word))
        return self.joined(words, run.width)

    # Memories.

    def stored(self, store: Store, low: int, width: int, address: Nets) -> Word:
        """Bits of the word of a memory at an address."""
        where = there = self.value(address)
        inside: Word = 1
        if store.depth <= mask(len(address)):
            # A word is read in any case, so that a loop has no branch.
            inside = self.variable(f"{where} < {store.depth}u", 1)
            there = self.choice(inside, where, 0, len(address))
        words: list[Part] = []
        for number, column in enumerate(store.columns):
            start, end = max(low, column.low), min(low + width, column.low + column.width)
            if start < end:
                word: Word = self.variable(self.cell_of(store, number, there), column.width)
                word = self.choice(inside, word, 0, column.width)
                word = self.cut(word, start - column.low, end - start, column.width)
                words.append(Part(start - low, end - start, word))
        return self.joined(words, width)

    def cell_of(self, store: Store, number: int, address: Word) -> str:
        """Return the place of a column of a word."""
        leaf = Leaf("memory", store.cell, number)
        self.leaves.setdefault(leaf, store.columns[number].width)
        name = f"memory_{store.cell}_{number}"
        return (
            f"{name}[(size_t){address} * memory_step + k * memory_own]"
            if store.writers
            else (f"{name}[{address}]")
        )

    def becomes(self, number: int) -> Word:
        """Return the next value of a piece, or, without a register, its value."""
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
            same = self.equal(self._words(cell.addr), self._words(port.addr))
            at = slice(piece.low, piece.low + piece.width)
            both = self.variable(f"{same} & {self.value((port.en[piece.low],))}", 1)
            word = self.choice(both, self.value(port.data[at]), word, piece.width)
        return self.choice(enable, word, held, piece.width)

    # Cells.

    def _assignments(self, cell: nir.AssignmentList, run: Run) -> Word:
        low, high = run.low, run.low + run.width
        ends = {e for a in cell.assignments for e in (a.start, a.start + len(a.value))}
        cuts = sorted({low, high} | {end for end in ends if low < end < high})
        if len(cuts) > 2:
            parts = [Run(run.cell, a, b - a) for a, b in pairwise(cuts)]
            words = [Part(part.low - low, part.width, self._run(part)) for part in parts]
            return self.joined(words, run.width)
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
            word = self.choice(self.value((each.cond,)), value, word, run.width)
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
                        tests.append(f"(({word} & {literal(care, size)}) == {literal(ones, size)})")
            found.append(" & ".join(tests) or "1u")
        if not found:
            return 0
        return self.variable("(u32)(" + " | ".join(f"({text})" for text in found) + ")", 1)

    def _first(self, cell: nir.PriorityMatch) -> list[Word]:
        """Return for each bit a bit that is high if it is the first one that is set."""
        left, found = self.value((cell.en,)), list[Word]()
        for net in cell.inputs:
            word = self.value((net,))
            found.append(self.binary("&", left, word, 1))
            left = self.binary("&", left, self.binary("^", word, 1, 1), 1)
        return found

    def _operator(self, cell: nir.Operator, run: Run) -> Word:
        name, inputs = cell.operator, cell.inputs
        some = slice(run.low, run.low + run.width)
        if name == "~":
            return self.binary("^", self.value(inputs[0][some]), mask(run.width), run.width)
        if name in ("&", "|", "^") and len(inputs) == 2:
            one, other = (self.value(value[some]) for value in inputs)
            return self.binary(name, one, other, run.width)
        if name == "m":
            yes, no = (self.value(value[some]) for value in inputs[1:])
            return self.choice(self.value(inputs[0]), yes, no, run.width)
        if name in ("b", "r|", "r&", "r^"):
            return self.reduced(name, self._words(inputs[0]))
        if name in ("==", "!="):
            same = self.equal(*map(self._words, inputs))
            return same if name == "==" else self.binary("^", same, 1, 1)
        if name in ("<<", "u>>", "s>>"):
            value, amount = inputs
            above = value[-1] if name == "s>>" else 0
            return self._shifted(run, value, amount, -1 if name == "<<" else 1, above)
        if name[1:] in ("<", ">", "<=", ">="):
            return self._compared(name, *inputs)
        if name in ("+", "-", "*"):
            # Bits of a sum, a difference, or a product; those above them do not matter.
            words = [self._words(nets[: run.low + run.width]) for nets in inputs]
            if len(words) == 1:  # the negative
                words.insert(0, [Native("0", width) for _, width in words[0]])
            parts = self.product(*words) if name == "*" else self.sum(name, *words)
            return self.window(parts, run.low, run.width)
        if name in ("u//", "u%") and len(inputs[0]) <= NATIVE:
            a, b = (self._text(value) for value in inputs)
            sign = "/" if name == "u//" else "%"
            word = self.variable(f"{b} ? {a} {sign} {b} : 0", len(inputs[0]))
            return self.cut(word, run.low, run.width, len(inputs[0]))
        raise WorkFailed(f"Module {self._module.name} must not need operator {name}")

    def _text(self, nets: Nets) -> str:
        word = self.value(nets)
        return literal(word, len(nets)) if isinstance(word, int) else word

    def _words(self, nets: Nets) -> list[Native]:
        """Native words of any number of bits."""
        parts = (nets[at : at + NATIVE] for at in range(0, len(nets), NATIVE))
        return [Native(self._text(part), len(part)) for part in parts]

    def _compared(self, name: str, one: Nets, other: Nets) -> Word:
        """Return a bit that is high if a number is less or greater than another, or the same."""
        if name[1] == ">":
            one, other = other, one
        words = self._words(one), self._words(other)
        return self.below(*words, signed=name[0] == "s", or_equal=name.endswith("="))

    def _shifted(self, run: Run, value: Nets, amount: Nets, unit: int, beyond: int = 0) -> Word:
        """Bits of a value that has moved down by so many units, one bit of their number at a time.

        Parameters
        ----------
        unit : int
            Bits of a unit; negative where the value moves up.
        beyond : int
            The bit above the value.
        """
        width = len(value)

        def at(stage: int, low: int, size: int) -> Word:
            key = "shift", run.cell, stage, low, size
            if key not in self.known:
                if stage < 0:
                    nets = [value[b] if 0 <= b < width else beyond * (b > 0)
                            for b in range(low, low + size)]  # fmt: skip
                    self.known[key] = self.value(nets)
                else:
                    moved = at(stage - 1, low + max(-width, min(unit << stage, width)), size)
                    stays, chosen = at(stage - 1, low, size), self.value((amount[stage],))
                    self.known[key] = self.choice(chosen, moved, stays, size)
            return self.known[key]

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
