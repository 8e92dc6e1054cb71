"""Connections of all instances: the origin of each input bit in each instance.

The modules are the elaborated modules of the netlist and two kinds of data modules: ROMs, and the
external inputs of the fabric. All pieces of all modules are numbered in one sequence. An instance
is a row, so the instances of a module form one array for each piece.

A *part* (`Sub`) of an input is a bit range that is driven by one piece in every instance. Different
instances may have different drivers::

    input of router       bits 0..31   (part 0)           bits 32..63  (part 1)
    instance 0            piece 7 of instance 12          piece 7 of instance 3
    instance 1            piece 7 of instance 13          constant 0
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...rtl.arrays import Array, Fixed, Numbers, OneOf, Part, Slice, Source
from ...rtl.netlist import ROM, Netlist
from ...topology import IntArray
from .elaborated import Elaborated, Piece, Store, cut
from .kernels import Text

__all__ = ["INPUTS", "RESET", "Connections", "Member", "Rom", "Sub"]

#: Name of the data module that holds the external inputs of the fabric.
INPUTS = "inputs"

#: The external input that resets all modules.
RESET = "rst"


class Data:
    """A module without logic: its output ports show pieces whose values come from elsewhere.

    Parameters
    ----------
    cell : int
        Number that all pieces have as their cell.
    ports : dict of str to int
        Output ports and their widths.

    Attributes
    ----------
    inputs : dict of str to (int, int)
        The first bit and the number of bits of each input, as in `Elaborated`.
    pieces : list of Piece
    """

    def __init__(self, name: str, cell: int, ports: dict[str, int]) -> None:
        self.name = name
        self.inputs: dict[str, tuple[int, int]] = {}
        self.stores: dict[int, Store] = {}
        self.pieces: list[Piece] = []
        self._shown: dict[str, list[tuple[int, int, int]]] = {}
        for port, width in ports.items():
            cuts = cut(width, set(), 0)
            first = len(self.pieces)
            self._shown[port] = [(first + k, 0, size) for k, (_, size) in enumerate(cuts)]
            self.pieces += [Piece(cell, low, size, 0) for low, size in cuts]

    def shown(self, port: str) -> list[tuple[int, int, int]]:
        """Return the pieces of a port: piece, lowest bit, and width, as in `Elaborated`."""
        return self._shown[port]


class Rom(Data):
    """All ROMs of one data width and one address width; each instance has contents of its own."""

    def __init__(self, width: int, address: int) -> None:
        super().__init__(f"{ROM} {width} {address}", 0, {"data": width})
        self.inputs = {"address": (2, address)}
        self.address = address


class Sub(NamedTuple):
    """A part of an input: in each instance its bits come from one piece, or are constant.

    Parameters
    ----------
    low, width : int
        The lowest bit within the input, and the number of bits.
    source : ndarray of int, shape (instances,)
        Number of the driving piece; -1 for a constant.
    instance : ndarray of int, shape (instances,)
        Instance of the driving module.
    shift : ndarray of int, shape (instances,)
        The lowest bit within the driving piece.
    value : ndarray of uint64, shape (instances,)
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
    """A module with all of its instances.

    Parameters
    ----------
    module : Elaborated or Data
    arrays : list of (int, Array)
        Arrays of instances, each with the number of its first instance.
    count : int
        Number of instances.
    first_piece : int
        Number of the first piece of the module among all pieces.
    parts : dict of str to (list of int)
        For each input, the indices of its parts in `subs`, the lowest first.
    subs : list of Sub
        Parts of all inputs.
    roms : ndarray of int, shape (instances,), or None
        For a ROM, the index in `contents` for each instance.
    contents : list of (tuple of int)
        Different contents of the ROM instances.
    """

    module: Any
    arrays: list[tuple[int, Array]] = field(default_factory=list)
    count: int = 0
    first_piece: int = 0
    parts: dict[str, list[int]] = field(default_factory=dict)
    subs: list[Sub] = field(default_factory=list)
    roms: np.ndarray | None = None
    contents: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, array: Array) -> None:
        """Append an array of instances."""
        self.arrays.append((self.count, array))
        self.count += len(array)

    @property
    def nodes(self) -> np.ndarray:
        """The node of each instance, for a module whose instances belong to nodes."""
        return np.concatenate([array.nodes for _, array in self.arrays if array.nodes is not None])

    def name(self, number: int) -> str:
        """Return the name of an instance."""
        first, array = next(each for each in reversed(self.arrays) if each[0] <= number)
        return array.name.format(array.index[number - first])


class Column(NamedTuple):
    """A bit range of an input, over the instances of one array.

    Parameters
    ----------
    shape : ndarray of int
        For each instance, the number of the triple (driver, lowest bit, width) in `_shapes`.
    row : ndarray of int
        For each instance, the instance of the driving module.
    value : int or ndarray of int
        The constant, for a range without a driver.
    """

    shape: np.ndarray
    row: np.ndarray
    value: int | np.ndarray


class Family(NamedTuple):
    """Drivers of the nets that share a name pattern such as ``sent_{}``, by the number in the name.

    A net with a name of its own is a family with the single number 0.

    Parameters
    ----------
    drivers : list of (str, str)
        Driving modules, each with its port.
    which : ndarray of int
        For each net number, the index in `drivers`; -1 for a missing net.
    row : ndarray of int
        For each net number, the instance of the driving module.
    """

    drivers: list[tuple[str, str]]
    which: np.ndarray
    row: np.ndarray


class Connections:
    """All instances of a netlist and the origin of each of their input bits.

    Parameters
    ----------
    word : int
        Bits of a flit.

    Attributes
    ----------
    members : dict of str to Member
        Modules with their instances.
    pieces : list of (Member, int)
        Module and index within the module, for each piece number.
    memories : list of (Member, Store, int)
        Module, memory and index of the column, for each column number.
    """

    def __init__(self, netlist: Netlist, word: int) -> None:
        self.netlist = netlist
        self.members: dict[str, Member] = {}
        self._shapes: dict[tuple[Any, ...], int] = {}
        self._families: dict[str, Family] = {}
        self._gather(word)
        for name in (*netlist.inputs, RESET):
            self._add_driver(name, (INPUTS, name), np.array([0]), 0)
        self._number()
        for member in self.members.values():
            for port, (_, width) in member.module.inputs.items():
                if port != "clk":
                    member.parts[port] = []
                    self._connect_port(member, port, width)
        self._texts: dict[int, Text] = {}

    def _gather(self, word: int) -> None:
        """Collect the modules, the instances of each, and the drivers of all nets."""
        self.members[INPUTS] = Member(Data(INPUTS, -2, self.netlist.inputs | {RESET: 1}), count=1)
        for array in self.netlist.arrays:
            name = array.module
            if array.roms is not None:
                address, width = (
                    sum(part.width for part in array.inputs["address"]),
                    array.roms.width,
                )
                name = f"{ROM} {width} {address}"
                if name not in self.members:
                    self.members[name] = Member(Rom(width, address))
            elif name not in self.members:
                self.members[name] = Member(Elaborated(name, self.netlist.modules[name](), word))
            self._drive(name, self.members[name].count, array)
            self.members[name].add(array)
        for member in self.members.values():
            if not isinstance(member.module, Rom):
                continue
            known: dict[tuple[int, ...], int] = {}
            found = []
            for _, array in member.arrays:
                assert array.roms is not None
                numbers = [known.setdefault(each, len(known)) for each in array.roms.contents]
                found.append(np.array(numbers)[array.roms.which])
            member.roms, member.contents = np.concatenate(found), [*known]

    def _drive(self, name: str, first: int, array: Array) -> None:
        """Register the nets that the instances of an array drive."""
        for port, (net, _) in array.outputs.items():
            self._add_driver(
                net, (name, port), array.index if "{}" in net else np.array([0]), first
            )

    def _add_driver(self, net: str, driver: tuple[str, str], index: IntArray, first: int) -> None:
        """Register a port as the driver of nets `index`; `first` is the first driving row."""
        size = 1 + int(index.max())
        family = self._families.get(net, Family([], np.zeros(0, int), np.zeros(0, int)))
        which, row = (
            np.pad(each, (0, max(size - len(each), 0)), constant_values=-1) for each in family[1:]
        )
        which[index] = len(family.drivers)
        row[index] = first + np.arange(len(index))
        self._families[net] = Family([*family.drivers, driver], which, row)

    def _family(self, net: str) -> tuple[Family, int]:
        """Return the family of a net and the number of the net within the family."""
        if "{}" in net and net not in self._families:
            self._families[net] = self._named_alike(net)
        if net in self._families:
            return self._families[net], 0
        for found in re.finditer(r"(?<=_)\d+(?=_|$)", net):
            family = self._families.get(f"{net[: found.start()]}{{}}{net[found.end() :]}")
            number = int(found[0])
            if family and number < len(family.which) and family.which[number] >= 0:
                return family, number
        raise KeyError(net)

    def _named_alike(self, net: str) -> Family:
        """Return a family of nets with names of their own that match a pattern with ``{}``."""
        pattern = re.compile(re.escape(net).replace(r"\{\}", r"(\d+)"))
        every = [found for found in map(pattern.fullmatch, self._families) if found]
        family = Family([], *np.full((2, 1 + max(int(found[1]) for found in every)), -1))
        for found in every:
            one, number = self._families[found[0]], int(found[1])
            family.which[number], family.row[number] = len(family.drivers), one.row[0]
            family.drivers.append(one.drivers[one.which[0]])
        return family

    def _number(self) -> None:
        """Number all pieces and columns, after every connected output has added its pieces."""
        for family in self._families.values():
            for name, port in family.drivers:
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
        """Return a piece, given its number."""
        member, k = self.pieces[number]
        return member.module.pieces[k]

    def memory(self, member: Member, cell: int, column: int) -> int:
        """Return the number of a column of a memory."""
        return self._memory[id(member), cell, column]

    def resolved(self, part: Part | Fixed) -> list[tuple[Any, int, int, int]]:
        """Return the drivers of a net or constant, the lowest bits first.

        Returns
        -------
        list of (driver, int, int, int)
            Module and port of the driver, lowest bit, width, and instance; for a constant the
            driver is None and its value stands for the lowest bit.
        """
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
        family, number = self._family(part.net)
        driver = family.drivers[family.which[number]]
        return [(driver, part.start, part.width, int(family.row[number]))]

    def parts_of(
        self, driver: tuple[str, str], start: int, width: int
    ) -> Iterator[tuple[int | None, int, int]]:
        """Yield the pieces behind bits of an output: piece number, lowest bit, and width.

        A constant has None for the piece and its value for the lowest bit.
        """
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

    def _connect_port(self, member: Member, port: str, width: int) -> None:
        """Find the origin of each bit of an input in each instance, and cut it into parts."""
        missing: Source = Slice(RESET, None, 0, 1) if port == RESET else Fixed(0, width)
        # Each entry: lowest bit, width, piece or None, lowest bit in the piece, instances, and the
        # driving rows or constants.
        found: list[tuple[int, int, int | None, int, IntArray, Any]] = []
        for first, array in member.arrays:
            columns = [column for part in array.inputs.get(port, (missing,))
                       for column in self._columns(part, len(array))]  # fmt: skip
            shapes = np.stack([column.shape for column in columns])
            different, alike = np.unique(shapes, axis=1, return_inverse=True)
            every = [*self._shapes]
            for number, each in enumerate(different.T.tolist()):
                rows, at = np.flatnonzero(alike.ravel() == number), 0
                for column, shape in zip(columns, each, strict=True):
                    driver, low, size = every[shape]
                    there = first + rows
                    if driver is None:
                        value = np.broadcast_to(column.value, len(array))[rows]
                        found.append((at, size, None, 0, there, value))
                        at += size
                        continue
                    for source, start, bits in self.parts_of(driver, low, size):
                        what = start if source is None else column.row[rows]
                        found.append(
                            (at, bits, source, 0 if source is None else start, there, what)
                        )
                        at += bits
        for low, size in cut(width, {at for at, *_ in found}, 0):
            count = member.count
            sub = Sub(low, size, np.full(count, -1), np.zeros(count, np.int64),
                      np.zeros(count, np.int64), np.zeros(count, np.uint64))  # fmt: skip
            for at, bits, source, start, here, what in found:
                if not at <= low < at + bits:
                    continue
                if source is None:
                    sub.value[here] = what >> low - at & (1 << size) - 1
                else:
                    sub.source[here], sub.shift[here] = source, start + low - at
                    sub.instance[here] = what
            member.parts[port].append(len(member.subs))
            member.subs.append(sub)

    def _columns(self, part: Source, count: int) -> list[Column]:
        """Return the columns of one source of an input, over `count` instances."""
        none = np.zeros(count, int)
        if isinstance(part, Fixed):
            return [self._column(None, 0, part.width, none, part.value)]
        if isinstance(part, Numbers):
            return [self._column(None, 0, part.width, none, part.values)]
        if isinstance(part, Slice) and part.number is None and isinstance(part.start, int):
            return [
                self._column(driver, low if driver else 0, size, np.full(count, instance),
                             0 if driver else low)
                for driver, low, size, instance in
                self.resolved(Part(part.net, part.start, part.width))
            ]  # fmt: skip
        shape, row = np.empty(count, int), np.empty(count, int)
        every = part.each() if isinstance(part, OneOf) else [(np.arange(count), part)]
        for rows, each in every:
            family, one = self._family(each.net)
            number = np.full(len(rows), one) if each.number is None else each.number
            row[rows] = family.row[number]
            key = family.which[number] * (1 << 32) + each.start
            used, alike = np.unique(key, return_inverse=True)
            numbers = [self._shape(family.drivers[k >> 32], k & 0xFFFFFFFF, each.width)
                       for k in used.tolist()]  # fmt: skip
            shape[rows] = np.array(numbers)[alike.ravel()]
        return [Column(shape, row, 0)]

    def _shape(self, driver: tuple[str, str] | None, low: int, size: int) -> int:
        """Return the number of a driver together with its lowest bit and width."""
        return self._shapes.setdefault((driver, low, size), len(self._shapes))

    def _column(
        self, driver: tuple[str, str] | None, low: int, size: int, row: IntArray, value: Any
    ) -> Column:
        """Return the column of bits that have the same driver in every instance."""
        return Column(np.full_like(row, self._shape(driver, low, size)), row, value)

    def text(self, number: int) -> Text:
        """Return the C++ lines for the next value of one piece."""
        if number not in self._texts:
            member, k = self.pieces[number]
            made = self._texts[number] = self.new_text(member)
            if isinstance(member.module, Elaborated):
                made.becomes(k)
            elif isinstance(member.module, Rom):
                made.value(range(2, 2 + member.module.address))
        return self._texts[number]

    def new_text(self, member: Member) -> Text:
        """Return an empty `Text` for a module, which knows how its inputs are cut into parts."""

        def parts(port: str) -> list[tuple[int, int, int]]:
            return [(k, member.subs[k].low, member.subs[k].width) for k in member.parts[port]]

        return Text(member.module, parts)
