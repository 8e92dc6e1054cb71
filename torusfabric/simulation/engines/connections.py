"""How instances are connected: where each bit of an input of each instance comes from.

Modules are those of the netlist as they are elaborated, and two that are data: ROMs, and the inputs
of the whole. Their registers, and what they show at once, are pieces of native words, numbered
among all; instances of a module are rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...rtl.netlist import ROM, Fixed, Netlist, Part, Role
from .elaborated import Elaborated, Piece, Store, cut
from .kernels import Text

__all__ = ["INPUTS", "RESET", "Connections", "Member", "Rom"]

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
class Member:
    """A module with its instances."""

    module: Any
    instances: np.ndarray
    first_piece: int = 0
    parts: dict[str, list[int]] = field(default_factory=dict)
    subs: list[Sub] = field(default_factory=list)
    roms: np.ndarray | None = None


class Connections:
    """All instances of a netlist, and how they are connected.

    Parameters
    ----------
    elaborate : function of str -> Elaborated
        Makes a module.

    Attributes
    ----------
    pieces : list of (member, number of the piece in its module)
        In the order of their numbers among all.
    memories : list of (member, store, number of column)
        In the order of their numbers.
    """

    def __init__(self, netlist: Netlist, elaborate: Callable[[str], Elaborated]) -> None:
        self.netlist = netlist
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

    def _gather(self, elaborate: Callable[[str], Elaborated]) -> None:
        """Find the modules, and the instances of each."""
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

    def memory(self, member: Member, cell: int, column: int) -> int:
        """The number of a column of a memory of a module."""
        return self._memory[id(member), cell, column]

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
        """Find where all inputs come from."""
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
            made = self._texts[number] = self.new_text(member)
            if isinstance(member.module, Elaborated):
                made.becomes(k)
            elif isinstance(member.module, Rom):
                made.value(range(2, 2 + member.module.address))
        return self._texts[number]

    def new_text(self, member: Member) -> Text:
        """An empty text of a module."""

        def parts(port: str) -> list[tuple[int, int, int]]:
            return [(k, member.subs[k].low, member.subs[k].width) for k in member.parts[port]]

        return Text(member.module, parts)
