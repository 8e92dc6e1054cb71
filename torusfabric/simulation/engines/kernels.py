"""C++ lines for the next values of pieces, for one instance inside a loop over all instances.

`Text` translates the cells that Amaranth's elaboration yields into expressions of native words.
`loops` adds the loop and the declarations around these lines.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from ...errors import WorkFailed
from ...rtl.amaranth_private import nir
from .elaborated import Elaborated, Nets, Run, Store, runs_of
from .expressions import NATIVE, Lines, Native, Part, Word, literal, mask

__all__ = ["Leaf", "Text"]


class Leaf(NamedTuple):
    """A value that a loop reads from the arena or from a memory.

    Parameters
    ----------
    origin : str
        ``piece`` (a piece of the module itself), ``input`` (a part of an input) or ``memory``.
    number : int
        Index of the piece, index of the input part, or cell of the memory.
    part : int
        Index of the column, for a memory; otherwise 0.
    """

    origin: str
    number: int
    part: int


class Text(Lines):
    """C++ lines for pieces of one module, and the leaves that they read.

    Parameters
    ----------
    parts : function of str -> list of (number, low, width)
        Parts of an input.

    Attributes
    ----------
    leaves : dict of Leaf to int
        Width of each leaf that the lines read.
    """

    def __init__(
        self, module: Elaborated, parts: Callable[[str], list[tuple[int, int, int]]]
    ) -> None:
        super().__init__()
        self._module, self._parts = module, parts
        self.leaves: dict[Leaf, int] = {}
        self._ports = sorted((first, width, port) for port, (first, width) in module.inputs.items())

    # Values of at most 64 bits.

    def value(self, nets: Nets) -> Word:
        """Return the value of at most 64 bits."""
        assert len(nets) <= NATIVE
        at, parts = 0, []
        for run in runs_of(nets):
            parts.append(Part(at, run.width, self._run(run)))
            at += run.width
        return self.joined(parts, len(nets))

    def load(self, leaf: Leaf, width: int) -> str:
        """Return the variable that holds a leaf, and note that the lines read the leaf."""
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
        """Return `width` bits, from bit `low` on, of the memory word at an address.

        The result is 0 for an address past the end of the memory.
        """
        where = there = self.value(address)
        inside: Word = 1
        if store.depth <= mask(len(address)):
            # Word 0 is read for an address past the end, so that the loop needs no branch.
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
        """Return the C++ expression of a memory cell: a column of the word at an address."""
        leaf = Leaf("memory", store.cell, number)
        self.leaves.setdefault(leaf, store.columns[number].width)
        name = f"memory_{store.cell}_{number}"
        return (
            f"{name}[(size_t){address} * memory_step + k * memory_own]"
            if store.writers
            else (f"{name}[{address}]")
        )

    def becomes(self, number: int) -> Word:
        """Return the next value of a piece of a register, or the value of a combinational piece."""
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
        """Return one bit for each input: 1 for the first input that is 1, if enabled."""
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
            # Bits above the requested ones cannot affect these, so the operands are truncated.
            words = [self._words(nets[: run.low + run.width]) for nets in inputs]
            if len(words) == 1:  # negation is 0 minus the operand
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
        """Return a value of any width as native words, the lowest first."""
        parts = (nets[at : at + NATIVE] for at in range(0, len(nets), NATIVE))
        return [Native(self._text(part), len(part)) for part in parts]

    def _compared(self, name: str, one: Nets, other: Nets) -> Word:
        """Return the result of an ordering operator; its name begins with ``s`` if it is signed."""
        if name[1] == ">":
            one, other = other, one
        words = self._words(one), self._words(other)
        return self.below(*words, signed=name[0] == "s", or_equal=name.endswith("="))

    def _shifted(self, run: Run, value: Nets, amount: Nets, unit: int, beyond: int = 0) -> Word:
        """Return a value shifted by a variable amount: a barrel shifter, one stage per amount bit.

        Parameters
        ----------
        run : Run
            Requested bits of the result.
        value, amount : sequence of int
            Bits of the value and of the shift amount.
        unit : int
            Bits per step of the amount; negative for a shift to the left.
        beyond : int
            The bit that fills in from above.
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

    # Writes.

    def write(self, store: Store) -> list[str]:
        """Return the statements that write a memory and set `any` if they do."""
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
