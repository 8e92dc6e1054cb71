"""Instances as vectors: where each register of all nodes lies, and the loops that step them.

Of each piece of a register, the instances of a module that always hold the same have one word
together, however many they are: what control gives to all nodes alike is worked out once. Which
these are is found as states of automata are minimized: pieces begin alike where they begin with the
same value, and are told apart until all that are alike depend on what is alike. Pieces that differ
lie side by side, in the order of nodes, so that a loop over them is one over adjacent words.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np

from ...errors import WorkFailed
from ...rtl.netlist import ROM, Fixed, Netlist, Part, Role
from ...topology import IntArray
from .elaborated import Elaborated, Piece, Store, cut
from .kernels import Leaf, Text, type_of

__all__ = ["RESET", "Loop", "Vectors"]

#: The pseudo-module of the inputs of the whole.
INPUTS = "inputs"

#: The reset of all modules, which is an input of the whole.
RESET = "rst"


class Rom:
    """The ROMs of one width whose addresses have as many bits; contents are data."""

    def __init__(self, width: int, address: int) -> None:
        self.stores: dict[int, Store] = {}
        self.name = f"{ROM} {width} {address}"
        self.inputs = {"address": (2, address)}
        self.pieces = [Piece(0, low, size, 0) for low, size in cut(width, set(), 0)]
        self.address = address

    def shown(self, port: str) -> list[tuple[int | None, int, int]]:
        """The pieces of the row."""
        return [(number, 0, piece.width) for number, piece in enumerate(self.pieces)]


class Given:
    """The inputs of the whole, as registers that nobody but the driver of the model changes."""

    name = INPUTS

    def __init__(self, inputs: dict[str, int]) -> None:
        self.stores: dict[int, Store] = {}
        self.inputs: dict[str, tuple[int, int]] = {}
        self.pieces: list[Piece] = []
        self._shown: dict[str, list[tuple[int | None, int, int]]] = {}
        for port, width in inputs.items():
            parts: list[tuple[int | None, int, int]] = []
            for low, size in cut(width, set(), 0):
                parts.append((len(self.pieces), 0, size))
                self.pieces.append(Piece(-2, low, size, 0))
            self._shown[port] = parts

    def shown(self, port: str) -> list[tuple[int | None, int, int]]:
        """The pieces of an input."""
        return self._shown[port]


class Sub(NamedTuple):
    """Part of an input that comes from one piece in each instance, or is constant there.

    Parameters
    ----------
    source : ndarray of int
        The piece by its number among all, or -1 for a constant.
    instance : ndarray of int
        The instance of the module of the piece.
    shift : ndarray of int
        The lowest bit there.
    value : ndarray of uint64
        The constant.
    """

    low: int
    width: int
    source: np.ndarray
    instance: np.ndarray
    shift: np.ndarray
    value: np.ndarray


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


@dataclass
class Member:
    """A module with its instances."""

    module: Any
    instances: np.ndarray
    first_piece: int = 0
    parts: dict[str, list[int]] = field(default_factory=dict)
    subs: list[Sub] = field(default_factory=list)
    roms: np.ndarray | None = None


def _mixed(values: np.ndarray) -> np.ndarray:
    """Numbers that look drawn at random, equal for what is equal."""
    values = values.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ values >> np.uint64(shift)) * np.uint64(factor)
    return values ^ values >> np.uint64(31)


def size_of(width: int) -> int:
    """Bytes of a word of so many bits."""
    return next(size for size in (1, 2, 4, 8) if width <= 8 * size)


class Vectors:
    """All instances of a netlist as vectors.

    Parameters
    ----------
    elaborate : function of str -> Elaborated
        Makes a module.
    apart : function of (module, piece) -> bool
        Whether a piece may be changed from outside, at each instance for itself.

    Attributes
    ----------
    loops : list of Loop
        First what follows from registers at once, in order; then what these become.
    functions : list of str
        The text of each function.
    memories : list of (member, store, number of column)
        In the order of their numbers.
    """

    def __init__(
        self,
        netlist: Netlist,
        elaborate: Callable[[str], Elaborated],
        apart: Callable[[Elaborated, Piece], bool],
    ) -> None:
        self.netlist, self._apart = netlist, apart
        self.members: dict[str, Member] = {}
        self._place: list[tuple[str, int]] = []
        self._gather(elaborate)
        self._drivers = {net: (self._place[k], port)
                         for net, (k, port) in netlist.drivers().items()}  # fmt: skip
        for name in (*netlist.inputs, RESET):
            self._drivers[name] = (INPUTS, 0), name
        self._number()
        self._connect()
        self._texts: dict[int, Text] = {}
        self._classes = self._refine()
        self._lay_out()
        self._loops()

    # Which modules there are.

    def _gather(self, elaborate: Callable[[str], Elaborated]) -> None:
        numbers: dict[str, list[int]] = defaultdict(list)
        modules: dict[str, Any] = {INPUTS: Given(self.netlist.inputs | {RESET: 1})}
        for k, instance in enumerate(self.netlist.instances):
            name = instance.module
            if instance.role is Role.ROM:
                address = sum(part.width for part in instance.inputs["address"])
                name = f"{ROM} {instance.width} {address}"
                if name not in modules:
                    modules[name] = Rom(instance.width, address)
            elif name not in modules:
                modules[name] = elaborate(name)
            self._place.append((name, len(numbers[name])))
            numbers[name].append(k)
        numbers[INPUTS] = [-1]
        for name, module in modules.items():
            member = self.members[name] = Member(module, np.array(numbers[name]))
            if isinstance(module, Rom):
                known: dict[tuple[int, ...], int] = {}
                found = [known.setdefault(self.netlist.instances[k].contents, len(known))
                         for k in numbers[name]]  # fmt: skip
                member.roms = np.array(found)

    def _number(self) -> None:
        """Number all pieces, once it is known what modules show."""
        for (name, _), port in self._drivers.values():
            self.members[name].module.shown(port)
        self.pieces: list[tuple[Member, int]] = []
        for member in self.members.values():
            member.first_piece = len(self.pieces)
            self.pieces += [(member, k) for k in range(len(member.module.pieces))]
        self.memories: list[tuple[Member, Store, int]] = []
        self._memory: dict[tuple[int, int, int], int] = {}
        for member in self.members.values():
            for store in member.module.stores.values():
                for column in range(len(store.columns)):
                    key = id(member), store.cell, column
                    self._memory[key] = len(self.memories)
                    self.memories.append((member, store, column))

    def piece(self, number: int) -> Piece:
        """A piece by its number among all."""
        member, k = self.pieces[number]
        return member.module.pieces[k]

    # How they are connected.

    def resolved(self, part: Part | Fixed) -> list[tuple[Any, int, int, int]]:
        """Parts of a source: driver or None, its lowest bit or value, width, instance."""
        if isinstance(part, Fixed):
            return [(None, part.value & (1 << part.width) - 1, part.width, 0)]
        if part.net in self.netlist.wired:
            found, place = [], 0
            for piece in self.netlist.wired[part.net]:
                low, high = (
                    max(part.start, place),
                    min(part.start + part.width, place + piece.width),
                )
                if low < high:
                    inner = Part(piece.net, piece.start + low - place, high - low)
                    found += self.resolved(inner)
                place += piece.width
            return found
        (name, instance), port = self._drivers[part.net]
        return [((name, port), part.start, part.width, instance)]

    def parts_of(
        self, driver: tuple[str, str], start: int, width: int
    ) -> Iterator[tuple[int | None, int, int]]:
        """Bits of what a module shows as (piece among all or None, low bit or value, width)."""
        name, port = driver
        member, place = self.members[name], 0
        for number, low, size in member.module.shown(port):
            a, b = max(start, place), min(start + width, place + size)
            if a < b:
                if number is None:
                    yield None, low >> a - place & (1 << b - a) - 1, b - a
                else:
                    yield member.first_piece + number, low + a - place, b - a
            place += size

    def _connect(self) -> None:
        for member in self.members.values():
            for port, (_, width) in member.module.inputs.items():
                if port != "clk":
                    member.parts[port] = []
                    self._connect_port(member, port, width)

    def _connect_port(self, member: Member, port: str, width: int) -> None:
        """Find where each bit of an input comes from, in each instance."""
        shapes: dict[tuple[Any, ...], int] = {}
        missing: Part | Fixed = Part(RESET, 0, 1) if port == RESET else Fixed(0, width)
        of_row: list[int] = []
        places: list[list[int]] = []
        fixed: list[list[int]] = []
        for k in member.instances:
            given = self.netlist.instances[k].inputs.get(port, (missing,))
            parts = [piece for part in given for piece in self.resolved(part)]
            shape = tuple([(driver, low if driver else 0, size) for driver, low, size, _ in parts])
            of_row.append(shapes.setdefault(shape, len(shapes)))
            places.append([instance for *_, instance in parts])
            fixed.append([low if driver is None else 0 for driver, low, *_ in parts])
        found = [[*self._pieces_of(shape)] for shape in shapes]
        cuts = {at for pieces in found for at, *_ in pieces}
        rows = [np.flatnonzero(np.array(of_row) == number) for number in range(len(shapes))]
        for low, size in cut(width, cuts, 0):
            count = len(member.instances)
            sub = Sub(low, size, np.full(count, -1), np.zeros(count, np.int64),
                      np.zeros(count, np.int64), np.zeros(count, np.uint64))  # fmt: skip
            for here, pieces in zip(rows, found, strict=True):
                for at, bits, source, first, part in pieces:
                    if not at <= low < at + bits:
                        continue
                    if source is None:
                        ones = (1 << size) - 1
                        sub.value[here] = [
                            (first + fixed[row][part] >> low - at) & ones for row in here
                        ]
                    else:
                        sub.source[here], sub.shift[here] = source, first + low - at
                        sub.instance[here] = [places[row][part] for row in here]
            member.parts[port].append(len(member.subs))
            member.subs.append(sub)

    def _pieces_of(self, shape: tuple[Any, ...]) -> Iterator[tuple[int, int, int | None, int, int]]:
        """An input as pieces: lowest bit, width, piece or None, its lowest bit or value, part."""
        at = 0
        for part, (driver, low, size) in enumerate(shape):
            if driver is None:
                yield at, size, None, 0, part
            else:
                inner = at
                for source, first, bits in self.parts_of(driver, low, size):
                    yield inner, bits, source, first, part
                    inner += bits
            at += size

    def text(self, number: int) -> Text:
        """What a piece becomes, alone."""
        if number not in self._texts:
            member, k = self.pieces[number]
            made = self._texts[number] = self._new_text(member)
            if isinstance(member.module, Elaborated):
                made.becomes(k)
            elif isinstance(member.module, Rom):
                made.value(range(2, 2 + member.module.address))
        return self._texts[number]

    def _new_text(self, member: Member) -> Text:
        def parts(port: str) -> list[tuple[int, int, int]]:
            return [(k, member.subs[k].low, member.subs[k].width) for k in member.parts[port]]

        return Text(member.module, parts)

    # What is alike.

    def _refine(self) -> list[np.ndarray]:
        """Which instances hold the same, piece by piece."""
        classes: list[np.ndarray] = []
        counts: list[int] = []
        for number, (member, k) in enumerate(self.pieces):
            module, total = member.module, len(member.instances)
            own = np.zeros(total, np.int64)
            if member.roms is not None:
                own = member.roms
            elif isinstance(module, Elaborated) and total > 1:
                held = any(
                    leaf.origin == "memory" and module.stores[leaf.number].writers
                    for leaf in self.text(number).leaves
                )
                if held or self._apart(module, module.pieces[k]):
                    own = np.arange(total)
            classes.append(own | number << 32)
            counts.append(len(np.unique(own)))
        changed = set(range(len(classes)))
        while changed:
            before, changed = changed, set()
            for number, (member, _) in enumerate(self.pieces):
                total = len(member.instances)
                if counts[number] == total or member.module.name == INPUTS:
                    continue
                sources = [*self._sources(number)]
                if not any(s & before for s, _ in sources):
                    continue
                mixed = _mixed(classes[number])
                for k, (_, leaf) in enumerate(sources):
                    of_leaf = self._class_of(member, leaf, classes)
                    mixed = _mixed(mixed + of_leaf * np.uint64(2 * k + 3))
                kept, found = np.unique(mixed, return_inverse=True)
                if len(kept) != counts[number]:
                    counts[number] = len(kept)
                    classes[number] = found.reshape(-1).astype(np.int64) | number << 32
                    changed.add(number)
        return classes

    def _sources(self, number: int) -> Iterable[tuple[set[int], Leaf]]:
        """The leaves of a piece, each with the pieces behind it; constants behind -1."""
        member, _ = self.pieces[number]
        for leaf in self.text(number).leaves:
            if leaf.origin == "piece":
                yield {member.first_piece + leaf.number}, leaf
            elif leaf.origin == "input":
                key = id(member), leaf.number
                if key not in self._behind:
                    found = {*np.unique(member.subs[leaf.number].source).tolist()}
                    self._behind[key] = found
                # Constants count at first.
                yield self._behind[key] | {number}, leaf

    @property
    def _behind(self) -> dict[tuple[int, int], set[int]]:
        return self.__dict__.setdefault("_behind_leaves", {})

    def _class_of(self, member: Member, leaf: Leaf, classes: list[np.ndarray]) -> np.ndarray:
        if leaf.origin == "piece":
            return classes[member.first_piece + leaf.number].astype(np.uint64)
        sub = member.subs[leaf.number]
        found = _mixed(sub.value) | np.uint64(1 << 63)
        for source in self._behind[id(member), leaf.number]:
            if source >= 0:
                at = sub.source == source
                shifted = sub.shift[at].astype(np.uint64) << np.uint64(56)
                found[at] = classes[source][sub.instance[at]].astype(np.uint64) ^ shifted
        return found

    # Where they lie.

    def _lay_out(self) -> None:
        """Give each piece its words, one for all instances that hold the same."""
        self.slot: list[np.ndarray] = []
        self.first: list[np.ndarray] = []
        self.base: list[int] = []
        self.size: list[int] = []
        at = 0
        for number, classes in enumerate(self._classes):
            _, first, found = np.unique(classes, return_index=True, return_inverse=True)
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            self.slot.append(rank[found.reshape(-1)])
            self.first.append(first[order])
            size = size_of(self.piece(number).width)
            self.base.append(at)
            self.size.append(size)
            at = -(-(at + size * len(order)) // 64) * 64
        self._end = at
        self._constants: dict[tuple[int, int], int] = {}

    @property
    def bytes(self) -> int:
        """How large the arena is."""
        return self._end + 64

    def initial(self) -> np.ndarray:
        """All words as they are at first."""
        arena = np.zeros(self.bytes, np.uint8)
        for number in range(len(self.pieces)):
            self.words(arena, number)[:] = self.piece(number).init
        for (value, size), at in self._constants.items():
            arena[at : at + size].view(f"u{size}")[:] = value
        return arena

    def words(self, arena: np.ndarray, number: int) -> np.ndarray:
        """The words of a piece in an arena."""
        size, base = self.size[number], self.base[number]
        end = base + size * len(self.first[number])
        return arena[base:end].view(f"u{size}")

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

    def memory(self, name: str, cell: int, column: int) -> int:
        """The number of a column of a memory of a module."""
        return self._memory[id(self.members[name]), cell, column]

    @staticmethod
    def kind_of(width: int) -> str:
        """The type of words of so many bits, as numpy names it."""
        return f"u{size_of(width)}"

    def address(self, number: int, instance: int) -> int:
        """Where a piece of an instance lies."""
        return self.base[number] + self.size[number] * int(self.slot[number][instance])

    # The loops.

    def _loops(self) -> None:
        self.functions: list[str] = []
        self._functions: dict[str, int] = {}
        self.loops: list[Loop] = []
        groups: dict[Any, list[int]] = defaultdict(list)
        waiting: list[int] = []
        for number, (member, k) in enumerate(self.pieces):
            piece = member.module.pieces[k]
            if piece.cell == -2:
                continue
            if piece.cell == -1:
                waiting.append(number)
                continue
            groups[id(member), self.slot[number].tobytes()].append(number)
        for rows, numbers in self._levels(waiting):
            self.loops.append(self._loop(numbers, rows))
        self.combinational = len(self.loops)
        for numbers in groups.values():
            for alike in self._alike(numbers):
                self.loops.append(self._loop(alike, self.first[alike[0]]))
        self.registered = len(self.loops)
        for member in self.members.values():
            for store in member.module.stores.values():
                if store.writers:
                    self.loops.append(self._writes(member, store))

    def _reads(self, number: int) -> set[int]:
        """The pieces and memories that a piece depends on."""
        member, _ = self.pieces[number]
        found = {p for pieces, _ in self._sources(number) for p in pieces if p != number}
        found |= {member.first_piece + leaf.number for leaf in self.text(number).leaves
                  if leaf.origin == "piece"}  # fmt: skip
        return found - {-1}

    def _alike(self, numbers: list[int]) -> list[list[int]]:
        """Pieces that depend on much the same, which change at the same time.

        Of what a module has once, all together: to work it out costs less than to look.
        """
        if len(self.first[numbers[0]]) == 1:
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
            member, _ = self.pieces[number]
            for slot, row in enumerate(self.first[number]):
                below = set()
                for leaf in self.text(number).leaves:
                    if leaf.origin == "input":
                        sub = member.subs[leaf.number]
                        source = int(sub.source[row])
                        if source in places:
                            below.add((source, int(self.slot[source][sub.instance[row]])))
                    elif leaf.origin == "piece":
                        source = member.first_piece + leaf.number
                        if source in places:
                            below.add((source, int(self.slot[source][row])))
                graph[number, slot] = below
        order = TopologicalSorter(graph)
        try:
            order.prepare()
        except CycleError as error:
            number, slot = error.args[1][0]
            member, _ = self.pieces[number]
            instance = self.netlist.instances[member.instances[self.first[number][slot]]]
            raise WorkFailed(
                f"Instance {instance.name} must not depend on itself without a register"
            ) from None
        while order.is_active():
            level = sorted(order.get_ready())
            order.done(*level)
            found: dict[int, list[int]] = defaultdict(list)
            for number, slot in level:
                found[number].append(slot)
            for number, slots in found.items():
                for adjacent in np.split(slots, np.flatnonzero(np.diff(slots) != 1) + 1):
                    yield self.first[number][adjacent], [number]

    def _function(self, text: str) -> int:
        """The number of a function of this text."""
        if text not in self._functions:
            self._functions[text] = len(self.functions)
            self.functions.append(text)
        return self._functions[text]

    def _loop(self, numbers: list[int], rows: np.ndarray) -> Loop:
        """The loop of some pieces over some instances."""
        member = self.pieces[numbers[0]][0]
        text = self._new_text(member)
        heads: list[str] = []
        data: list[Any] = []
        ends = []
        for number in numbers:
            k = self.pieces[number][1]
            width = self.piece(number).width
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
        slots = self.slot[number][rows]
        assert (np.diff(slots) == 1).all(), "slots must be adjacent"
        return self.base[number] + self.size[number] * int(slots[0])

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
        instances = [self.netlist.instances[n] for n in member.instances[rows]]
        piece = member.module.pieces[k]
        kind = f"u{8 * size_of(piece.width)}"
        known: dict[tuple[int, ...], int] = {}
        words: list[int] = []
        starts, depths = [], []
        for instance in instances:
            if instance.contents not in known:
                known[instance.contents] = len(words)
                ones = (1 << piece.width) - 1
                words += [row >> piece.low & ones for row in instance.contents]
            starts.append(known[instance.contents])
            depths.append(len(instance.contents))
        address = text.value(range(2, 2 + member.module.address))
        for name, array in (("start", np.array(starts, np.uint32)),
                            ("depth", np.array(depths, np.uint32))):  # fmt: skip
            heads.append(f"const u32 *__restrict {name}{k} = (const u32 *)T[{len(data)}];")
            data.append(array)
        heads.append(f"const {kind} *__restrict rows{k} = (const {kind} *)T[{len(data)}];")
        data.append(np.array(words, f"u{size_of(piece.width)}"))
        row = f"({address} < depth{k}[k] ? {address} : depth{k}[k] - 1)"
        return f"rows{k}[start{k}[k] + {row}]"

    def _writes(self, member: Member, store: Store) -> Loop:
        """The loop that writes into a memory."""
        text = self._new_text(member)
        heads: list[str] = []
        data: list[Any] = []
        ends = text.write(store)
        rows = np.arange(len(member.instances))
        reads = self._heads(member, text, rows, heads, data)
        text_of = _function_text(heads, text.lines + ends, "any", len(rows))
        function = self._function(text_of)
        number = self._memory[id(member), store.cell, 0]
        return Loop(function, len(rows), [], reads, data, memory=number)

    def _heads(
        self, member: Member, text: Text, rows: IntArray, heads: list[str], data: list[Any]
    ) -> set[int]:
        """Declare what a loop reads; returns the pieces and memories behind."""
        reads: set[int] = set()
        loads = []
        for leaf, width in text.leaves.items():
            if leaf.origin == "memory":
                number = self._memory[id(member), leaf.number, leaf.part]
                kind = f"u{8 * size_of(width)}"
                name = f"memory_{leaf.number}_{leaf.part}"
                heads.append(f"{kind} *__restrict {name} = ({kind} *)T[{len(data)}];")
                data.append(("memory", number))
                if member.module.stores[leaf.number].writers:
                    reads.add(-1 - self._memory[id(member), leaf.number, 0])
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
            data.append(len(member.instances))
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
        sizes = {self.size[k] for k in kinds if k >= 0} or {size_of(width)}
        size = max(sizes)
        at = np.empty(len(source), np.int64)
        for k in kinds:
            here = source == k
            if k >= 0:
                at[here] = self.base[k] + self.size[k] * self.slot[k][instance[here]]
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
            source_width = max((self.piece(k).width for k in kinds if k >= 0), default=width)
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
    loop = "const size_t k = 0; {" if count == 1 else "for (size_t k = 0; k < count; k++) {"
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
