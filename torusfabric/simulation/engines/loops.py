"""The loops that compute all pieces of all instances: function texts, and the data for each loop.

A function text depends on the module and on the classes of equal words. It does not depend on the
number of instances or on their addresses; see `model`. A clock edge runs the loops in three
groups::

    loops[0 : combinational]            combinational pieces and gather loops, in dependency order
    loops[combinational : registered]   next values of registers
    loops[registered :]                 writes into memories
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import WorkFailed
from ...topology import IntArray
from .connections import Member, Rom, Sub
from .elaborated import Store
from .expressions import size_of, type_of
from .kernels import Text
from .layout import Layout
from .reads import Frame, Loop, Reads, Span

__all__ = ["Loops"]


class Loops:
    """The loops of a netlist.

    Attributes
    ----------
    loops : list of Loop
        All loops, in the three groups of the module docstring.
    combinational, registered : int
        Index of the first register loop, and of the first loop that writes a memory.
    functions : list of str
        Text of each different function.

    Raises
    ------
    WorkFailed
        If a combinational piece depends on itself.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout, self._connections = layout, layout.connections
        self.loops: list[Loop] = []
        self._reads = Reads(layout, self.loops)
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
            reads = {p for pieces, _ in self.layout.sources(number) for p in pieces}
            alike = frozenset(reads - {number, -1} if len(self.layout.first[number]) > 1 else ())
            groups[id(member), self.layout.slot[number].tobytes(), alike].append(number)
        for rows, numbers in self._levels(waiting):
            self.loops.append(self._loop(numbers, rows))
        registers = [self._loop(some, self.layout.first[some[0]]) for some in groups.values()]
        writes = [self._writes(member, store) for member in self._connections.members.values()
                  for store in member.module.stores.values() if store.writers]  # fmt: skip
        self.combinational = len(self.loops)
        self.registered = self.combinational + len(registers)
        self.loops += registers + writes

    @property
    def bytes(self) -> int:
        """Bytes of the arena, with padding for 64-bit reads at its end."""
        return self._reads.end + 64

    def initial(self) -> np.ndarray:
        """Return the initial arena: all pieces after reset, and all constants."""
        arena = np.zeros(self.bytes, np.uint8)
        for number in range(len(self._connections.pieces)):
            self.layout.words(arena, number)[:] = self._connections.piece(number).init
        for (value, size), at in self._reads.constants.items():
            arena[at : at + size].view(f"u{size}")[:] = value
        return arena

    def _levels(self, waiting: list[int]) -> Iterable[tuple[np.ndarray, list[int]]]:
        """Yield instances and piece numbers of combinational loops, level by level.

        A word has a level above the levels of all combinational words that it reads.
        """
        levels = {number: np.zeros(len(self.layout.first[number]), int) for number in waiting}
        changed = True
        while changed:
            changed = False
            for number in waiting:
                found = self._level(number, levels)
                changed |= bool((found != levels[number]).any())
                levels[number] = found
                if found.max() > sum(map(len, levels.values())):
                    member, _ = self._connections.pieces[number]
                    name = member.name(int(self.layout.first[number][found.argmax()]))
                    raise WorkFailed(
                        f"Instance {name} must not depend on itself without a register"
                    )
        for level in range(1 + max((each.max() for each in levels.values()), default=-1)):
            for number in waiting:
                slots = np.flatnonzero(levels[number] == level)
                for adjacent in np.split(slots, np.flatnonzero(np.diff(slots) != 1) + 1):
                    if len(adjacent):
                        yield self.layout.first[number][adjacent], [number]

    def _level(self, number: int, levels: dict[int, IntArray]) -> IntArray:
        """Return the level of each word of a combinational piece, given the levels so far."""
        member, rows = self._connections.pieces[number][0], self.layout.first[number]
        found = np.zeros(len(rows), int)
        for behind, leaf in self.layout.sources(number):
            for source in behind & levels.keys():
                there, instance = np.ones(len(rows), bool), rows
                if leaf.origin == "input":
                    sub = member.subs[leaf.number]
                    there, instance = sub.source[rows] == source, sub.instance[rows]
                above = levels[source][self.layout.slot[source][instance[there]]] + 1
                found[there] = np.maximum(found[there], above)
        return found

    def _loop(self, numbers: list[int], rows: np.ndarray) -> Loop:
        """Return the loop that computes pieces for the instances `rows`."""
        member = self._connections.pieces[numbers[0]][0]
        text, frame, ends = self._connections.new_text(member), Frame(), []
        for number in numbers:
            k = self._connections.pieces[number][1]
            kind = type_of(self._connections.piece(number).width)
            of_rom = isinstance(member.module, Rom)
            word = self._row(member, k, rows, text, frame) if of_rom else text.becomes(k)
            frame.add_pointer(kind, f"o{k}", self._start(number, rows), "next + ")
            ends.append(f"o{k}[k] = ({kind}){word};")
        reads = self._add_reads(member, text, rows, frame)
        function = self._reads.function(frame.text(text.lines + ends, "0", len(rows)))
        spans = [Span(number, self._start(number, rows), self.layout.size[number])
                 for number in numbers]  # fmt: skip
        return Loop(function, len(rows), spans, reads, frame.data)

    def _start(self, number: int, rows: np.ndarray) -> int:
        slots = self.layout.slot[number][rows]
        assert (np.diff(slots) == 1).all(), "slots must be adjacent"
        return self.layout.base[number] + self.layout.size[number] * int(slots[0])

    def _row(self, member: Member, k: int, rows: IntArray, text: Text, frame: Frame) -> str:
        """Return the expression of a ROM row; declares the contents of all instances."""
        assert member.roms is not None
        piece = member.module.pieces[k]
        words: list[int] = []
        starts, depths = np.zeros((2, len(member.contents)), np.uint32)
        numbers, ones = member.roms[rows], (1 << piece.width) - 1
        for number in np.unique(numbers).tolist():
            starts[number], depths[number] = len(words), len(member.contents[number])
            words += [row >> piece.low & ones for row in member.contents[number]]
        address = text.value(range(2, 2 + member.module.address))
        frame.add_pointer("const u32", f"start{k}", starts[numbers])
        frame.add_pointer("const u32", f"depth{k}", depths[numbers])
        kind = f"const {type_of(piece.width)}"
        frame.add_pointer(kind, f"rows{k}", np.array(words, f"u{size_of(piece.width)}"))
        row = f"({address} < depth{k}[k] ? {address} : depth{k}[k] - 1)"
        return f"rows{k}[start{k}[k] + {row}]"

    def _writes(self, member: Member, store: Store) -> Loop:
        """Return the loop that writes a memory."""
        text, frame, rows = self._connections.new_text(member), Frame(), np.arange(member.count)
        ends = text.write(store)
        reads = self._add_reads(member, text, rows, frame)
        function = self._reads.function(frame.text(text.lines + ends, "any", len(rows)))
        number = self._connections.memory(member, store.cell, 0)
        return Loop(function, len(rows), [], reads, frame.data, memory=number)

    def _add_reads(self, member: Member, text: Text, rows: IntArray, frame: Frame) -> set[int]:
        """Declare all leaves that a text reads, and return the numbers of their spans."""
        reads: set[int] = set()
        loads = []
        for leaf, width in text.leaves.items():
            if leaf.origin == "memory":
                number = self._connections.memory(member, leaf.number, leaf.part)
                name = f"memory_{leaf.number}_{leaf.part}"
                frame.add_pointer(type_of(width), name, ("memory", number))
                if member.module.stores[leaf.number].writers:
                    reads.add(-1 - self._connections.memory(member, leaf.number, 0))
                continue
            if leaf.origin == "piece":
                none = np.zeros(len(rows), np.int64)
                source = np.full(len(rows), member.first_piece + leaf.number)
                sub = Sub(0, width, source, rows, none, none)
            else:
                low, width, *each = member.subs[leaf.number]
                sub = Sub(low, width, *(every[rows] for every in each))
            name = f"{leaf.origin}_{leaf.number}_{leaf.part}"
            load, behind = self._reads.read(name, sub, frame)
            loads.append(load)
            reads |= behind
        if any(leaf.origin == "memory" for leaf in text.leaves):
            frame.add("const size_t memory_step = $, memory_own = 1;", member.count)
        text.lines[:0] = [load for load in loads if load]
        return reads
