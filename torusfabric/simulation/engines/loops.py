"""The loops that step all instances: their text, and the data that goes with it.

The text depends on a module and on which of its words are alike, not on how many instances there
are or where they lie; see `model`.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from ...errors import WorkFailed
from ...topology import IntArray
from .connections import Member, Rom
from .elaborated import Store
from .kernels import Text, type_of
from .layout import Layout, size_of

__all__ = ["Loop", "Loops"]


@dataclass
class Loop:
    """What is stepped together: pieces of a module, or the writes into a memory.

    Parameters
    ----------
    outputs : list of int
        The numbers of pieces among all.
    reads : set of int
        The pieces that it reads, and memories (as ``-1 - number``).
    data : list
        What goes with the text: offsets, arrays, or memories.
    """

    function: int
    count: int
    outputs: list[int]
    reads: set[int]
    data: list[Any]
    starts: list[int] = field(default_factory=list)
    memory: int = -1


class Loops:
    """The loops of a netlist that is laid out.

    Raises
    ------
    WorkFailed
        If instances read from each other in a circle without a register.

    Attributes
    ----------
    loops : list of Loop
        First what follows from registers at once, in order; then what these become, and the writes
        into memories.
    combinational, registered : int
        Where registers, and where writes begin in this list.
    functions : list of str
        The text of each function.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout, self._connections = layout, layout.connections
        self._end = layout.end
        self._constants: dict[tuple[int, int], int] = {}
        self.functions: list[str] = []
        self._functions: dict[str, int] = {}
        self.loops: list[Loop] = []
        groups: dict[Any, list[int]] = defaultdict(list)
        waiting: list[int] = []
        for number, (member, k) in enumerate(self._connections.pieces):
            piece = member.module.pieces[k]
            if piece.cell == -2:
                continue
            if piece.cell == -1:
                waiting.append(number)
                continue
            groups[id(member), self.layout.slot[number].tobytes()].append(number)
        for rows, numbers in self._levels(waiting):
            self.loops.append(self._loop(numbers, rows))
        self.combinational = len(self.loops)
        for numbers in groups.values():
            for alike in self._alike(numbers):
                self.loops.append(self._loop(alike, self.layout.first[alike[0]]))
        self.registered = len(self.loops)
        for member in self._connections.members.values():
            for store in member.module.stores.values():
                if store.writers:
                    self.loops.append(self._writes(member, store))

    @property
    def bytes(self) -> int:
        """How large the arena is."""
        return self._end + 64

    def initial(self) -> np.ndarray:
        """All words as they are at first."""
        arena = np.zeros(self.bytes, np.uint8)
        for number in range(len(self._connections.pieces)):
            self.layout.words(arena, number)[:] = self._connections.piece(number).init
        for (value, size), at in self._constants.items():
            arena[at : at + size].view(f"u{size}")[:] = value
        return arena

    def _constant(self, value: int, size: int) -> int:
        """Where a constant lies."""
        key = value, size
        if key not in self._constants:
            at = -(-self._end // size) * size
            self._constants[key] = at
            self._end = at + size
        return self._constants[key]

    def start(self, loop: Loop, number: int) -> int:
        """Where the words of a piece begin that a loop works out."""
        return loop.starts[loop.outputs.index(number)]

    def _reads(self, number: int) -> set[int]:
        """The pieces and memories that a piece depends on."""
        member, _ = self._connections.pieces[number]
        found = {p for pieces, _ in self.layout.sources(number) for p in pieces if p != number}
        found |= {member.first_piece + leaf.number for leaf in self._connections.text(number).leaves
                  if leaf.origin == "piece"}  # fmt: skip
        return found - {-1}

    def _alike(self, numbers: list[int]) -> list[list[int]]:
        """Pieces that depend on much the same, which change at the same time.

        Of what a module has once, all together: to work it out costs less than to look.
        """
        if len(self.layout.first[numbers[0]]) == 1:
            return [numbers]
        groups: list[tuple[set[Any], list[int]]] = []
        for number in numbers:
            reads = {*self._reads(number)} - {number}
            for group, members in groups:
                if 2 * len(group & reads) >= len(group | reads):
                    group |= reads
                    members.append(number)
                    break
            else:
                groups.append((reads, [number]))
        return [members for _, members in groups]

    def _levels(self, waiting: list[int]) -> Iterable[tuple[np.ndarray, list[int]]]:
        """What follows at once, in an order in which all that is read has been worked out."""
        places = set(waiting)
        graph: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for number in waiting:
            member, _ = self._connections.pieces[number]
            for slot, row in enumerate(self.layout.first[number]):
                below = set()
                for leaf in self._connections.text(number).leaves:
                    if leaf.origin == "input":
                        sub = member.subs[leaf.number]
                        source = int(sub.source[row])
                        if source in places:
                            below.add((source, int(self.layout.slot[source][sub.instance[row]])))
                    elif leaf.origin == "piece":
                        source = member.first_piece + leaf.number
                        if source in places:
                            below.add((source, int(self.layout.slot[source][row])))
                graph[number, slot] = below
        order = TopologicalSorter(graph)
        try:
            order.prepare()
        except CycleError as error:
            number, slot = error.args[1][0]
            member, _ = self._connections.pieces[number]
            name = member.name(int(self.layout.first[number][slot]))
            raise WorkFailed(
                f"Instance {name} must not depend on itself without a register"
            ) from None
        while order.is_active():
            level = sorted(order.get_ready())
            order.done(*level)
            found: dict[int, list[int]] = defaultdict(list)
            for number, slot in level:
                found[number].append(slot)
            for number, slots in found.items():
                for adjacent in np.split(slots, np.flatnonzero(np.diff(slots) != 1) + 1):
                    yield self.layout.first[number][adjacent], [number]

    def _function(self, text: str) -> int:
        """The number of a function of this text."""
        if text not in self._functions:
            self._functions[text] = len(self.functions)
            self.functions.append(text)
        return self._functions[text]

    def _loop(self, numbers: list[int], rows: np.ndarray) -> Loop:
        """The loop of some pieces over some instances."""
        member = self._connections.pieces[numbers[0]][0]
        text = self._connections.new_text(member)
        heads: list[str] = []
        data: list[Any] = []
        ends = []
        for number in numbers:
            k = self._connections.pieces[number][1]
            width = self._connections.piece(number).width
            if isinstance(member.module, Rom):
                word: str | int = self._row(member, k, rows, text, heads, data)
            else:
                word = text.becomes(k)
            kind = f"u{8 * size_of(width)}"
            heads.append(f"{kind} *__restrict o{k} = ({kind} *)(next + T[{len(data)}]);")
            data.append(self._start(number, rows))
            ends.append(f"o{k}[k] = ({kind}){word};")
        reads = set().union(*map(self._reads, numbers))
        reads |= self._heads(member, text, rows, heads, data)
        function = self._function(_function_text(heads, text.lines + ends, "0", len(rows)))
        starts = [self._start(number, rows) for number in numbers]
        return Loop(function, len(rows), numbers, reads, data, starts)

    def _start(self, number: int, rows: np.ndarray) -> int:
        slots = self.layout.slot[number][rows]
        assert (np.diff(slots) == 1).all(), "slots must be adjacent"
        return self.layout.base[number] + self.layout.size[number] * int(slots[0])

    def _row(
        self,
        member: Member,
        k: int,
        rows: IntArray,
        text: Text,
        heads: list[str],
        data: list[Any],
    ) -> str:
        """The row of a ROM."""
        assert member.roms is not None
        piece = member.module.pieces[k]
        kind = f"u{8 * size_of(piece.width)}"
        words: list[int] = []
        starts, depths = np.zeros((2, len(member.contents)), np.uint32)
        numbers, ones = member.roms[rows], (1 << piece.width) - 1
        for number in np.unique(numbers).tolist():
            starts[number], depths[number] = len(words), len(member.contents[number])
            words += [row >> piece.low & ones for row in member.contents[number]]
        address = text.value(range(2, 2 + member.module.address))
        for name, array in (("start", starts[numbers]), ("depth", depths[numbers])):
            heads.append(f"const u32 *__restrict {name}{k} = (const u32 *)T[{len(data)}];")
            data.append(array)
        heads.append(f"const {kind} *__restrict rows{k} = (const {kind} *)T[{len(data)}];")
        data.append(np.array(words, f"u{size_of(piece.width)}"))
        row = f"({address} < depth{k}[k] ? {address} : depth{k}[k] - 1)"
        return f"rows{k}[start{k}[k] + {row}]"

    def _writes(self, member: Member, store: Store) -> Loop:
        """The loop that writes into a memory."""
        text = self._connections.new_text(member)
        heads: list[str] = []
        data: list[Any] = []
        ends = text.write(store)
        rows = np.arange(member.count)
        reads = self._heads(member, text, rows, heads, data)
        text_of = _function_text(heads, text.lines + ends, "any", len(rows))
        function = self._function(text_of)
        number = self._connections.memory(member, store.cell, 0)
        return Loop(function, len(rows), [], reads, data, memory=number)

    def _heads(
        self, member: Member, text: Text, rows: IntArray, heads: list[str], data: list[Any]
    ) -> set[int]:
        """Declare what a loop reads; returns the pieces and memories behind."""
        reads: set[int] = set()
        loads = []
        for leaf, width in text.leaves.items():
            if leaf.origin == "memory":
                number = self._connections.memory(member, leaf.number, leaf.part)
                kind = f"u{8 * size_of(width)}"
                name = f"memory_{leaf.number}_{leaf.part}"
                heads.append(f"{kind} *__restrict {name} = ({kind} *)T[{len(data)}];")
                data.append(("memory", number))
                if member.module.stores[leaf.number].writers:
                    reads.add(-1 - self._connections.memory(member, leaf.number, 0))
                continue
            name = f"{leaf.origin}_{leaf.number}_{leaf.part}"
            if leaf.origin == "piece":
                source = np.full(len(rows), member.first_piece + leaf.number)
                instance, shift = rows, np.zeros(len(rows), np.int64)
                value = np.zeros(len(rows), np.uint64)
            else:
                sub = member.subs[leaf.number]
                source, instance, shift, value = (
                    each[rows] for each in (sub.source, sub.instance, sub.shift, sub.value)
                )
            reads |= {*np.unique(source).tolist()} - {-1}
            loads.append(self._read(name, width, (source, instance, shift, value), heads, data))
        if any(leaf.origin == "memory" for leaf in text.leaves):
            heads.append(f"const size_t memory_step = T[{len(data)}], memory_own = 1;")
            data.append(member.count)
        text.lines[:0] = [load for load in loads if load]
        return reads

    def _read(
        self,
        name: str,
        width: int,
        sources: tuple[IntArray, IntArray, IntArray, np.ndarray],
        heads: list[str],
        data: list[Any],
    ) -> str:
        """Declare how a leaf is read; returns the statement in the loop, if there is one."""
        source, instance, shift, value = sources
        kinds = {*np.unique(source).tolist()}
        sizes = {self.layout.size[k] for k in kinds if k >= 0} or {size_of(width)}
        size = max(sizes)
        at = np.empty(len(source), np.int64)
        for k in kinds:
            here = source == k
            if k >= 0:
                at[here] = self.layout.addresses(k, instance[here])
            else:
                numbers, back = np.unique(value[here], return_inverse=True)
                places = [self._constant(int(v), size) for v in numbers]
                at[here] = np.array(places)[back.reshape(-1)]
        kind, mine = type_of(width), f"u{8 * size}"
        alike = len(sizes) == 1 and (shift == shift[0]).all()
        bits = int(shift[0])
        whole = 8 * size
        if alike:
            cut_text = "" if bits == 0 else f" >> {bits}"
            source_width = max(
                (self._connections.piece(k).width for k in kinds if k >= 0), default=width
            )
            ones = f" & {(1 << width) - 1:#x}ull" if bits + width < min(source_width, whole) else ""
            if (at == at[0]).all():
                word = f"*(const {mine} *)(now + T[{len(data)}]){cut_text}{ones}"
                heads.append(f"const {kind} {name} = ({kind})({word});")
                data.append(int(at[0]))
                return ""
            if (np.diff(at) == size).all():
                heads.append(
                    f"const {mine} *__restrict x{name} = (const {mine} *)(now + T[{len(data)}]);"
                )
                data.append(int(at[0]))
                return f"const {kind} {name} = ({kind})(x{name}[k]{cut_text}{ones});"
            if (at % size == 0).all():
                heads.append(f"const {mine} *__restrict x{name} = (const {mine} *)now;")
                heads.append(f"const int *__restrict i{name} = (const int *)T[{len(data)}];")
                data.append((at // size).astype(np.int32))
                return f"const {kind} {name} = ({kind})(x{name}[i{name}[k]]{cut_text}{ones});"
        heads.append(f"const u32 *__restrict i{name} = (const u32 *)T[{len(data)}];")
        data.append(at.astype(np.uint32))
        heads.append(f"const u8 *__restrict s{name} = (const u8 *)T[{len(data)}];")
        data.append(shift.astype(np.uint8))
        ones = f"{(1 << width) - 1:#x}ull"
        return f"const {kind} {name} = ({kind})(any_word(now + i{name}[k]) >> s{name}[k] & {ones});"


def _function_text(heads: list[str], lines: list[str], outcome: str, count: int) -> str:
    """A loop as a function; of a single instance it is none."""
    loop = "const size_t k = 0; {" if count == 1 else "for (size_t k = first; k < end; k++) {"
    return "\n".join([
        "(LOOP_ARGUMENTS) {",
        *(f"    {head}" for head in heads),
        "    int any = 0;",
        f"    {loop}",
        *(f"        {line}" for line in lines),
        "    }",
        f"    return {outcome};",
        "}",
    ])  # fmt: skip
