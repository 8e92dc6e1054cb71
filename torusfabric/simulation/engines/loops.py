"""The loops that compute all pieces of all instances: function texts, and the data for each loop.

A *piece* is a part of a register or an output, with at most 64 bits. A loop is a call of a C++
function with data such as addresses. The text of the function does not depend on the number of
instances or on their addresses, so that it can be reused; see `model`. A clock edge runs the loops
in three groups::

    loops[0 : combinational]            combinational pieces and gather loops, in dependency order
    loops[combinational : registered]   next values of registers
    loops[registered :]                 writes into memories

The *arena* is the byte array of all simulated values (see `layout`). A *gather loop* copies
scattered words of it side by side (see `reads`).
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import WorkFailed
from ...topology import IntArray
from .connections import InputPart, ModuleInstances, RomModule
from .elaborated import ModuleMemory
from .expressions import cpp_type, native_bytes
from .kernels import KernelText
from .layout import ArenaLayout
from .reads import Loop, LoopHead, ReadDeclarations, Span

__all__ = ["Loops"]


class Loops:
    """The loops of a netlist, which together compute all values of one clock edge.

    Each loop is one call of a C++ function, which computes registers or outputs of a module, copies
    words, or writes a memory, for many instances.

    Attributes
    ----------
    loops : list of Loop
        Loops in the order of execution: first combinational values, then registers, then memories.
    combinational, registered : int
        Index in `loops` of the first loop that computes registers, and of the first loop that
        writes a memory.
    functions : list of str
        Text of each different C++ function.

    Raises
    ------
    WorkFailed
        If a combinational value depends on itself.
    """

    def __init__(self, layout: ArenaLayout) -> None:
        self.layout, self._connections = layout, layout.connections
        self.loops: list[Loop] = []
        self._reads = ReadDeclarations(layout, self.loops)
        self.functions = self._reads.functions
        groups: dict[Any, list[int]] = defaultdict(list)
        waiting: list[int] = []
        for number, (member, k) in enumerate(self._connections.pieces):
            piece = member.module.pieces[k]
            if piece.cell == -2:
                continue
            if piece.cell == -1:
                waiting.append(number)
                continue
            # Registers with equal sources share a loop, because they need recomputing together.
            # Single-word pieces of a module share one loop: a test costs more than their words.
            reads = {p for pieces, _ in self.layout.reads_with_drivers(number) for p in pieces}
            alike = frozenset(reads - {number, -1} if len(self.layout.first[number]) > 1 else ())
            groups[id(member), self.layout.slot[number].tobytes(), alike].append(number)
        for rows, numbers in self._loops_by_level(waiting):
            self.loops.append(self._make_loop(numbers, rows))
        registers = [self._make_loop(some, self.layout.first[some[0]]) for some in groups.values()]
        writes = [self._write_loop(member, store) for member in self._connections.members.values()
                  for store in member.module.stores.values() if store.writers]  # fmt: skip
        self.combinational = len(self.loops)
        self.registered = self.combinational + len(registers)
        self.loops += registers + writes

    @property
    def arena_bytes(self) -> int:
        """Bytes of the array of all simulated values, with padding for 64-bit reads at its end."""
        return self._reads.end + 64

    def initial_arena(self) -> np.ndarray:
        """Return the byte array of all simulated values, as it is after a reset."""
        arena = np.zeros(self.arena_bytes, np.uint8)
        for number in range(len(self._connections.pieces)):
            self.layout.piece_words(arena, number)[:] = self._connections.piece_at(number).init
        for (value, size), at in self._reads.constants.items():
            arena[at : at + size].view(f"u{size}")[:] = value
        return arena

    def _loops_by_level(self, waiting: list[int]) -> Iterable[tuple[np.ndarray, list[int]]]:
        """Yield the loops for combinational outputs, each after the loops whose results it reads.

        The order is by *levels*. The level of a word is above the levels of all combinational words
        that the word depends on.

        Parameters
        ----------
        waiting : list of int
            Piece numbers of all combinational pieces (parts of outputs of combinational logic).

        Yields
        ------
        rows : ndarray of int
            Instances for which the loop computes the pieces.
        numbers : list of int
            Piece numbers of the pieces.
        """
        levels = {number: np.zeros(len(self.layout.first[number]), int) for number in waiting}
        changed = True
        while changed:
            changed = False
            for number in waiting:
                found = self._levels_of_piece(number, levels)
                changed |= bool((found != levels[number]).any())
                levels[number] = found
                if found.max() > sum(map(len, levels.values())):
                    member, _ = self._connections.pieces[number]
                    name = member.instance_name(int(self.layout.first[number][found.argmax()]))
                    raise WorkFailed(
                        f"Instance {name} must not depend on itself without a register"
                    )
        for level in range(1 + max((each.max() for each in levels.values()), default=-1)):
            for number in waiting:
                slots = np.flatnonzero(levels[number] == level)
                for adjacent in np.split(slots, np.flatnonzero(np.diff(slots) != 1) + 1):
                    if len(adjacent):
                        yield self.layout.first[number][adjacent], [number]

    def _levels_of_piece(self, number: int, levels: dict[int, IntArray]) -> IntArray:
        """Return the level of each word of a combinational piece; the loops run in order of levels.

        Parameters
        ----------
        number : int
            Piece number. A combinational piece is a part of an output of combinational logic.
        levels : dict of int to ndarray
            Piece number -> levels of its words so far.

        Returns
        -------
        ndarray of int, shape (words,)
            One more than the highest level of the combinational words that this word depends on; 0
            if there are none.
        """
        member, rows = self._connections.pieces[number][0], self.layout.first[number]
        found = np.zeros(len(rows), int)
        for behind, leaf in self.layout.reads_with_drivers(number):
            for source in behind & levels.keys():
                there, instance = np.ones(len(rows), bool), rows
                if leaf.origin == "input":
                    sub = member.subs[leaf.number]
                    there, instance = sub.source[rows] == source, sub.instance[rows]
                above = levels[source][self.layout.slot[source][instance[there]]] + 1
                found[there] = np.maximum(found[there], above)
        return found

    def _make_loop(self, numbers: list[int], rows: np.ndarray) -> Loop:
        """Return the loop that computes some pieces for the instances in `rows`.

        `numbers` are the piece numbers. The pieces, parts of registers or outputs, are in one
        module.
        """
        member = self._connections.pieces[numbers[0]][0]
        text, frame, ends = self._connections.make_kernel_text(member), LoopHead(), []
        for number in numbers:
            k = self._connections.pieces[number][1]
            kind = cpp_type(self._connections.piece_at(number).width)
            of_rom = isinstance(member.module, RomModule)
            word = self._rom_row(member, k, rows, text, frame) if of_rom else text.next_value(k)
            frame.declare_pointer(kind, f"o{k}", self._start_offset(number, rows), "next + ")
            ends.append(f"o{k}[k] = ({kind}){word};")
        reads = self._add_reads(member, text, rows, frame)
        function = self._reads.function_index(
            frame.function_text(text.lines + ends, "0", len(rows))
        )
        spans = [Span(number, self._start_offset(number, rows), self.layout.size[number])
                 for number in numbers]  # fmt: skip
        return Loop(function, len(rows), spans, reads, frame.data)

    def _start_offset(self, number: int, rows: np.ndarray) -> int:
        """Return the byte offset of the first word that a loop writes, in the array of all values.

        The loop computes the piece `number`, a part of a register or an output, for the instances
        in `rows`. Their words must be adjacent.
        """
        slots = self.layout.slot[number][rows]
        assert (np.diff(slots) == 1).all(), "slots must be adjacent"
        return self.layout.base[number] + self.layout.size[number] * int(slots[0])

    def _rom_row(
        self, member: ModuleInstances, k: int, rows: IntArray, text: KernelText, frame: LoopHead
    ) -> str:
        """Return the C++ expression for a part of the word that a ROM outputs after the clock edge.

        Parameters
        ----------
        member : ModuleInstances
            Module of the ROMs, with their contents.
        k : int
            Index of the piece, that is, of the part of the word.
        rows : ndarray of int
            ROM instances that the loop is over.
        text : KernelText
            Lines of the loop, to which the computation of the address is added.
        frame : LoopHead
            Head of the loop, in which the contents of the ROMs are declared.
        """
        assert member.roms is not None
        piece = member.module.pieces[k]
        words: list[int] = []
        starts, depths = np.zeros((2, len(member.contents)), np.uint32)
        numbers, ones = member.roms[rows], (1 << piece.width) - 1
        for number in np.unique(numbers).tolist():
            starts[number], depths[number] = len(words), len(member.contents[number])
            words += [row >> piece.low & ones for row in member.contents[number]]
        address = text.value_of(range(2, 2 + member.module.address))
        frame.declare_pointer("const u32", f"start{k}", starts[numbers])
        frame.declare_pointer("const u32", f"depth{k}", depths[numbers])
        kind = f"const {cpp_type(piece.width)}"
        frame.declare_pointer(kind, f"rows{k}", np.array(words, f"u{native_bytes(piece.width)}"))
        row = f"({address} < depth{k}[k] ? {address} : depth{k}[k] - 1)"
        return f"rows{k}[start{k}[k] + {row}]"

    def _write_loop(self, member: ModuleInstances, store: ModuleMemory) -> Loop:
        """Return the loop that executes the write ports of memory `store`, in all instances.

        `member` is the module that has the memory, with its instances.
        """
        text, frame, rows = (
            self._connections.make_kernel_text(member),
            LoopHead(),
            np.arange(member.count),
        )
        ends = text.write_statements(store)
        reads = self._add_reads(member, text, rows, frame)
        function = self._reads.function_index(
            frame.function_text(text.lines + ends, "any", len(rows))
        )
        number = self._connections.memory_number(member, store.cell, 0)
        return Loop(function, len(rows), [], reads, frame.data, memory=number)

    def _add_reads(
        self, member: ModuleInstances, text: KernelText, rows: IntArray, frame: LoopHead
    ) -> set[int]:
        """Add the declarations of all values that a loop reads to `frame`, the head of the loop.

        Parameters
        ----------
        member : ModuleInstances
            Module whose values the loop computes.
        text : KernelText
            Lines of the loop, with the values that they read.
        rows : ndarray of int
            Instances that the loop is over.

        Returns
        -------
        set of int
            Numbers of the spans (adjacent words) and memories that the loop reads, as in
            `Loop.reads`.
        """
        reads: set[int] = set()
        loads = []
        for leaf, width in text.leaves.items():
            if leaf.origin == "memory":
                number = self._connections.memory_number(member, leaf.number, leaf.part)
                name = f"memory_{leaf.number}_{leaf.part}"
                frame.declare_pointer(cpp_type(width), name, ("memory", number))
                if member.module.stores[leaf.number].writers:
                    reads.add(-1 - self._connections.memory_number(member, leaf.number, 0))
                continue
            if leaf.origin == "piece":
                none = np.zeros(len(rows), np.int64)
                source = np.full(len(rows), member.first_piece + leaf.number)
                sub = InputPart(0, width, source, rows, none, none)
            else:
                low, width, *each = member.subs[leaf.number]
                sub = InputPart(low, width, *(every[rows] for every in each))
            name = f"{leaf.origin}_{leaf.number}_{leaf.part}"
            load, behind = self._reads.declare_read(name, sub, frame)
            loads.append(load)
            reads |= behind
        if any(leaf.origin == "memory" for leaf in text.leaves):
            frame.declare("const size_t memory_step = $, memory_own = 1;", member.count)
        text.lines[:0] = [load for load in loads if load]
        return reads
