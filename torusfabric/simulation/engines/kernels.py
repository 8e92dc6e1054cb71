"""C++ lines for the next values of pieces, for one instance inside a loop over all instances.

`KernelText` translates the cells that Amaranth's elaboration yields into expressions of native
words (integers of at most 64 bits). `loops` adds the loop and the declarations around these lines.

A *piece* is a part of a register or of an output, with at most 64 bits: one native word. A *column*
is a bit range of all words of a memory, with one write enable (both see `elaborated`).

A *read* (`LoopRead`) is a value that the lines take from outside: a piece, a part of an input, or a
column of a memory. Names in the code call a read a *leaf*, because it is a leaf of the tree of
expressions: a value that no line of the loop computes.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from ...errors import WorkFailed
from ...rtl.amaranth_private import nir
from .elaborated import BitRun, ElaboratedModule, ModuleMemory, Nets, adjacent_runs
from .expressions import NATIVE_BITS, CppLines, NativeWord, Word, WordPart, literal, mask

__all__ = ["LoopRead", "KernelText"]


class LoopRead(NamedTuple):
    """A value that a loop reads: a piece, a part of an input, or a column of a memory.

    A piece is a part of a register or an output with at most 64 bits. A column is one bit range of
    all words of a memory.

    Parameters
    ----------
    origin : str
        ``piece`` (a piece of the module itself), ``input`` (a part of an input) or ``memory``.
    number : int
        Index of the piece in the module, index of the input part in `ModuleInstances.subs`, or cell
        of the memory.
    part : int
        Index of the column, for a memory; otherwise 0.
    """

    origin: str
    number: int
    part: int


class KernelText(CppLines):
    """C++ lines that compute registers and outputs of one module, for one of its instances.

    The lines compute *pieces*: parts of registers and outputs with at most 64 bits. Each value that
    they need is either computed by another line or a *read*, a value from outside of the lines.

    Parameters
    ----------
    parts : function of str -> list of (number, low, width)
        Returns the parts of an input, given its name: index in `ModuleInstances.subs`, lowest bit
        within the input, and number of bits.

    Attributes
    ----------
    leaves : dict of LoopRead to int
        Read -> its width in bits.
    """

    def __init__(
        self, module: ElaboratedModule, parts: Callable[[str], list[tuple[int, int, int]]]
    ) -> None:
        super().__init__()
        self._module, self._parts = module, parts
        self.leaves: dict[LoopRead, int] = {}
        self._ports = sorted((first, width, port) for port, (first, width) in module.inputs.items())

    # Values of at most 64 bits.

    def value_of(self, nets: Nets) -> Word:
        """Return a C++ variable or a constant with the value of the bits `nets`, at most 64.

        The lines that compute the value are added.
        """
        assert len(nets) <= NATIVE_BITS
        at, parts = 0, []
        for run in adjacent_runs(nets):
            parts.append(WordPart(at, run.width, self._run_word(run)))
            at += run.width
        return self.concatenate(parts, len(nets))

    def add_read(self, leaf: LoopRead, width: int) -> str:
        """Enter a value from outside in `leaves`, and return the C++ variable that holds it.

        `leaf` says which value is read, and `width` is its number of bits. The name of a variable
        is, for example, ``piece_3_0`` for piece 3 of the module.
        """
        self.leaves.setdefault(leaf, width)
        return f"{leaf.origin}_{leaf.number}_{leaf.part}"

    def _run_word(self, run: BitRun) -> Word:
        if run.cell is None:
            return run.low
        if run not in self.known:
            self.known[run] = self._cell_word(run)
        return self.known[run]

    def _cell_word(self, run: BitRun) -> Word:
        module = self._module
        assert run.cell is not None
        if run.cell == 0:
            return self._input_word(run)
        if run.cell in module.pieces_of:
            words: list[WordPart] = []
            at = 0
            for number, low, width in module.split_run(run):
                whole = module.pieces[number].width
                word: Word = self.add_read(LoopRead("piece", number, 0), whole)
                words.append(WordPart(at, width, self.extract_bits(word, low, width, whole)))
                at += width
            return self.concatenate(words, run.width)
        cell = module.cells[run.cell]
        if isinstance(cell, nir.Operator):
            return self._operator_word(cell, run)
        if isinstance(cell, nir.AssignmentList):
            return self._assigned_word(cell, run)
        if isinstance(cell, nir.Matches):
            return self._match_word(cell)
        if isinstance(cell, nir.PriorityMatch):
            some = self._first_match(cell)[run.low : run.low + run.width]
            return self.concatenate([WordPart(k, 1, bit) for k, bit in enumerate(some)], run.width)
        if isinstance(cell, nir.Part):
            above = cell.value[-1] if cell.value_signed else 0
            return self._shift_word(run, cell.value, cell.offset, cell.stride, above)
        if isinstance(cell, nir.AsyncReadPort):
            return self.memory_word(module.stores[cell.memory], run.low, run.width, cell.addr)
        raise WorkFailed(f"Module {module.name} must be made of known cells, not {cell}")

    def _input_word(self, run: BitRun) -> Word:
        words: list[WordPart] = []
        for first, width, port in self._ports:
            low, high = max(run.low, first), min(run.low + run.width, first + width)
            if low >= high:
                continue
            for number, at, size in self._parts(port):
                start, end = max(low, first + at), min(high, first + at + size)
                if start < end:
                    word: Word = self.add_read(LoopRead("input", number, 0), size)
                    word = self.extract_bits(word, start - first - at, end - start, size)
                    words.append(WordPart(start - run.low, end - start, word))
        return self.concatenate(words, run.width)

    # Memories.

    def memory_word(self, store: ModuleMemory, low: int, width: int, address: Nets) -> Word:
        """Return a C++ variable with bits ``low`` to ``low + width - 1`` of one word of a memory.

        `store` is the memory, and `address` are the bits of the address. The value is 0 for an
        address past the end of the memory.
        """
        where = there = self.value_of(address)
        inside: Word = 1
        if store.depth <= mask(len(address)):
            # Word 0 is read for an address past the end, so that the loop needs no branch.
            inside = self.add_variable(f"{where} < {store.depth}u", 1)
            there = self.choose_word(inside, where, 0, len(address))
        words: list[WordPart] = []
        for number, column in enumerate(store.columns):
            start, end = max(low, column.low), min(low + width, column.low + column.width)
            if start < end:
                word: Word = self.add_variable(self.memory_cell(store, number, there), column.width)
                word = self.choose_word(inside, word, 0, column.width)
                word = self.extract_bits(word, start - column.low, end - start, column.width)
                words.append(WordPart(start - low, end - start, word))
        return self.concatenate(words, width)

    def memory_cell(self, store: ModuleMemory, number: int, address: Word) -> str:
        """Return the C++ expression for one column of one word of a memory.

        A column is a bit range of all words. `store` is the memory, `number` the index of the
        column, and `address` a C++ variable or an integer.
        """
        leaf = LoopRead("memory", store.cell, number)
        self.leaves.setdefault(leaf, store.columns[number].width)
        name = f"memory_{store.cell}_{number}"
        return (
            f"{name}[(size_t){address} * memory_step + k * memory_own]"
            if store.writers
            else (f"{name}[{address}]")
        )

    def next_value(self, number: int) -> Word:
        """Add the lines for the next value of a piece, and return the variable with this value.

        A piece is a part of a register or an output; `number` is its index in the module. The next
        value is the one after the next clock edge for a register or the output register of a
        memory. For an output of combinational logic it is the value in this cycle.
        """
        module = self._module
        piece = module.pieces[number]
        if piece.cell < 0:
            return self.value_of(piece.nets)
        cell = module.cells[piece.cell]
        if not isinstance(cell, nir.SyncReadPort):
            return self.value_of(module.next_bits(piece))
        store, enable = module.stores[cell.memory], self.value_of((cell.en,))
        held = self.add_read(LoopRead("piece", number, 0), piece.width)
        if enable == 0:
            return held
        word = self.memory_word(store, piece.low, piece.width, cell.addr)
        for writer in cell.transparent_for:
            port = module.cells[writer]
            same = self.compare_equal(self._native_words(cell.addr), self._native_words(port.addr))
            at = slice(piece.low, piece.low + piece.width)
            both = self.add_variable(f"{same} & {self.value_of((port.en[piece.low],))}", 1)
            word = self.choose_word(both, self.value_of(port.data[at]), word, piece.width)
        return self.choose_word(enable, word, held, piece.width)

    # Cells.

    def _assigned_word(self, cell: nir.AssignmentList, run: BitRun) -> Word:
        low, high = run.low, run.low + run.width
        ends = {e for a in cell.assignments for e in (a.start, a.start + len(a.value))}
        cuts = sorted({low, high} | {end for end in ends if low < end < high})
        if len(cuts) > 2:
            parts = [BitRun(run.cell, a, b - a) for a, b in pairwise(cuts)]
            words = [WordPart(part.low - low, part.width, self._run_word(part)) for part in parts]
            return self.concatenate(words, run.width)
        covering = [
            a for a in cell.assignments if a.start <= low and high <= a.start + len(a.value)
        ]
        always = [k for k, a in enumerate(covering) if a.cond == 1]
        if always:
            first, covering = covering[always[-1]], covering[always[-1] + 1 :]
            word = self.value_of(first.value[low - first.start : high - first.start])
        else:
            word = self.value_of(cell.default[low:high])
        for each in covering:
            value = self.value_of(each.value[low - each.start : high - each.start])
            word = self.choose_word(self.value_of((each.cond,)), value, word, run.width)
        return word

    def _match_word(self, cell: nir.Matches) -> Word:
        found = []
        for pattern in cell.patterns:
            bits, tests = pattern[::-1], []
            for at in range(0, len(bits), NATIVE_BITS):
                some = bits[at : at + NATIVE_BITS]
                care = sum(1 << k for k, bit in enumerate(some) if bit != "-")
                ones = sum(1 << k for k, bit in enumerate(some) if bit == "1")
                if care:
                    word = self.value_of(cell.value[at : at + NATIVE_BITS])
                    if isinstance(word, int):
                        tests.append(str(int(word & care == ones)))
                    else:
                        size = len(some)
                        tests.append(f"(({word} & {literal(care, size)}) == {literal(ones, size)})")
            found.append(" & ".join(tests) or "1u")
        if not found:
            return 0
        return self.add_variable("(u32)(" + " | ".join(f"({text})" for text in found) + ")", 1)

    def _first_match(self, cell: nir.PriorityMatch) -> list[Word]:
        """Return the output bits of a priority cell: 1 for the first input that is 1, otherwise 0.

        All bits are 0 if the enable input of the cell is 0.
        """
        left, found = self.value_of((cell.en,)), list[Word]()
        for net in cell.inputs:
            word = self.value_of((net,))
            found.append(self.apply_bitwise("&", left, word, 1))
            left = self.apply_bitwise("&", left, self.apply_bitwise("^", word, 1, 1), 1)
        return found

    def _operator_word(self, cell: nir.Operator, run: BitRun) -> Word:
        name, inputs = cell.operator, cell.inputs
        some = slice(run.low, run.low + run.width)
        if name == "~":
            return self.apply_bitwise(
                "^", self.value_of(inputs[0][some]), mask(run.width), run.width
            )
        if name in ("&", "|", "^") and len(inputs) == 2:
            one, other = (self.value_of(value[some]) for value in inputs)
            return self.apply_bitwise(name, one, other, run.width)
        if name == "m":
            yes, no = (self.value_of(value[some]) for value in inputs[1:])
            return self.choose_word(self.value_of(inputs[0]), yes, no, run.width)
        if name in ("b", "r|", "r&", "r^"):
            return self.reduce_bits(name, self._native_words(inputs[0]))
        if name in ("==", "!="):
            same = self.compare_equal(*map(self._native_words, inputs))
            return same if name == "==" else self.apply_bitwise("^", same, 1, 1)
        if name in ("<<", "u>>", "s>>"):
            value, amount = inputs
            above = value[-1] if name == "s>>" else 0
            return self._shift_word(run, value, amount, -1 if name == "<<" else 1, above)
        if name[1:] in ("<", ">", "<=", ">="):
            return self._compare_words(name, *inputs)
        if name in ("+", "-", "*"):
            # Bits above the requested ones cannot affect these, so the operands are truncated.
            words = [self._native_words(nets[: run.low + run.width]) for nets in inputs]
            if len(words) == 1:  # negation is 0 minus the operand
                words.insert(0, [NativeWord("0", width) for _, width in words[0]])
            parts = self.multiply(*words) if name == "*" else self.add_or_subtract(name, *words)
            return self.extract_from_parts(parts, run.low, run.width)
        if name in ("u//", "u%") and len(inputs[0]) <= NATIVE_BITS:
            a, b = (self._native_value(value) for value in inputs)
            sign = "/" if name == "u//" else "%"
            word = self.add_variable(f"{b} ? {a} {sign} {b} : 0", len(inputs[0]))
            return self.extract_bits(word, run.low, run.width, len(inputs[0]))
        raise WorkFailed(f"Module {self._module.name} must not need operator {name}")

    def _native_value(self, nets: Nets) -> str:
        word = self.value_of(nets)
        return literal(word, len(nets)) if isinstance(word, int) else word

    def _native_words(self, nets: Nets) -> list[NativeWord]:
        """Return a value of any width as words of 64 bits at most, the lowest first.

        `nets` are the bits of the value.
        """
        parts = (nets[at : at + NATIVE_BITS] for at in range(0, len(nets), NATIVE_BITS))
        return [NativeWord(self._native_value(part), len(part)) for part in parts]

    def _compare_words(self, name: str, one: Nets, other: Nets) -> Word:
        """Return a word of one bit: 1 if the comparison `name` of `one` with `other` holds.

        `name` is ``<``, ``>``, ``<=`` or ``>=``, preceded by ``s`` for signed and by ``u`` for
        unsigned values: ``u<`` compares unsigned values.
        """
        if name[1] == ">":
            one, other = other, one
        words = self._native_words(one), self._native_words(other)
        return self.less_than(*words, signed=name[0] == "s", or_equal=name.endswith("="))

    def _shift_word(
        self, run: BitRun, value: Nets, amount: Nets, unit: int, beyond: int = 0
    ) -> Word:
        """Return bits of a value that is shifted by a variable amount.

        The lines form a barrel shifter, with one stage for each bit of the amount.

        Parameters
        ----------
        run : BitRun
            Bits of the result that are needed.
        value, amount : sequence of int
            Bits of the value and of the shift amount, as in `Nets`.
        unit : int
            Positions by which an amount of 1 shifts; negative for a shift to the left.
        beyond : int
            The bit that a shift to the right fills in from above: 0, or the sign bit as in `Nets`.
        """
        width = len(value)

        def stage_word(stage: int, low: int, size: int) -> Word:
            key = "shift", run.cell, stage, low, size
            if key not in self.known:
                if stage < 0:
                    nets = [value[b] if 0 <= b < width else beyond * (b > 0)
                            for b in range(low, low + size)]  # fmt: skip
                    self.known[key] = self.value_of(nets)
                else:
                    moved = stage_word(
                        stage - 1, low + max(-width, min(unit << stage, width)), size
                    )
                    stays, chosen = (
                        stage_word(stage - 1, low, size),
                        self.value_of((amount[stage],)),
                    )
                    self.known[key] = self.choose_word(chosen, moved, stays, size)
            return self.known[key]

        return stage_word(len(amount) - 1, run.low, run.width)

    # Writes.

    def write_statements(self, store: ModuleMemory) -> list[str]:
        """Return the C++ statements that execute the write ports of memory `store`.

        The statements set the variable ``any`` to 1 if they write a word.
        """
        found = []
        for writer in store.writers:
            port = self._module.cells[writer]
            where = self.value_of(port.addr)
            for number, column in enumerate(store.columns):
                enable = self.value_of((port.en[column.low],))
                if enable == 0:
                    continue
                data = self.value_of(port.data[column.low : column.low + column.width])
                target = self.memory_cell(store, number, where)
                tests = [str(enable)]
                if store.depth <= mask(len(port.addr)):
                    tests.append(f"{where} < {store.depth}u")
                found.append((" & ".join(f"({test})" for test in tests), f"{target} = {data};"))
        return [f"if ({test}) {{ {text} any = 1; }}" for test, text in found]
