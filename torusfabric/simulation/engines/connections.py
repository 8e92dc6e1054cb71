"""Connections of all instances: the origin of each input bit in each instance.

The modules are the elaborated modules of the netlist and two kinds of modules without logic
(`ExternalModule`): ROMs, and the external inputs of the fabric. Every piece of a module (see
`elaborated`) exists once in each instance. The pieces of all modules are numbered in one sequence,
the *piece number*; the instances of a module are its *rows*.

A *part* (`InputPart`) of an input is a bit range that is driven by one piece in every instance.
Different instances may have different drivers::

    input of router       bits 0..31   (part 0)           bits 32..63  (part 1)
    instance 0            piece 7 of instance 12          piece 7 of instance 3
    instance 1            piece 7 of instance 13          constant 0
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...rtl.arrays import Array, Constant, Constants, Part, Slice, SliceChoice, Source
from ...rtl.netlist import ROM, Netlist
from ...topology import IntArray
from .elaborated import ElaboratedModule, ModuleMemory, Piece, cut_range
from .kernels import KernelText

__all__ = ["INPUTS", "RESET", "Connections", "ModuleInstances", "RomModule", "InputPart"]

#: Name of the `ExternalModule` whose output ports are the external inputs of the fabric.
INPUTS = "inputs"

#: The external input that resets all modules.
RESET = "rst"


class ExternalModule:
    """A module without logic, whose output ports are pieces with values from elsewhere.

    Parameters
    ----------
    cell : int
        Value for `Piece.cell` of all pieces: -2 for the external inputs, which no loop computes; 0
        for ROMs, whose words are computed at each clock edge, as those of registers.
    ports : dict of str to int
        Output ports and their widths in bits.

    Attributes
    ----------
    inputs : dict of str to (int, int)
        The first bit and the number of bits of each input, as in `ElaboratedModule`.
    pieces : list of Piece
        Pieces of at most 64 bits, port by port.
    """

    def __init__(self, name: str, cell: int, ports: dict[str, int]) -> None:
        self.name = name
        self.inputs: dict[str, tuple[int, int]] = {}
        self.stores: dict[int, ModuleMemory] = {}
        self.pieces: list[Piece] = []
        self._shown: dict[str, list[tuple[int, int, int]]] = {}
        for port, width in ports.items():
            cuts = cut_range(width, set(), 0)
            first = len(self.pieces)
            self._shown[port] = [(first + k, 0, size) for k, (_, size) in enumerate(cuts)]
            self.pieces += [Piece(cell, low, size, 0) for low, size in cuts]

    def output_parts(self, port: str) -> list[tuple[int, int, int]]:
        """Return the pieces of a port: piece, lowest bit, and width, as in `ElaboratedModule`."""
        return self._shown[port]


class RomModule(ExternalModule):
    """All ROMs of one data width and one address width; each instance has contents of its own."""

    def __init__(self, width: int, address: int) -> None:
        super().__init__(f"{ROM} {width} {address}", 0, {"data": width})
        self.inputs = {"address": (2, address)}
        self.address = address


class InputPart(NamedTuple):
    """A bit range of an input that in each instance comes from one piece, or is constant.

    Parameters
    ----------
    low, width : int
        The lowest bit within the input, and the number of bits.
    source : ndarray of int, shape (instances,)
        Piece number of the driver; -1 for a constant.
    instance : ndarray of int, shape (instances,)
        Row of the driver: the number of the driving instance within its module.
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
class ModuleInstances:
    """A module with all of its instances.

    Parameters
    ----------
    module : ElaboratedModule or ExternalModule
    arrays : list of (int, Array)
        Arrays of instances, each with the row of its first instance.
    count : int
        Number of instances.
    first_piece : int
        Number of the first piece of the module among all pieces.
    parts : dict of str to (list of int)
        For each input, the indices of its parts in `subs`, the lowest first.
    subs : list of InputPart
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
    subs: list[InputPart] = field(default_factory=list)
    roms: np.ndarray | None = None
    contents: list[tuple[int, ...]] = field(default_factory=list)

    def append_array(self, array: Array) -> None:
        """Append an array of instances, which get the next rows."""
        self.arrays.append((self.count, array))
        self.count += len(array)

    @property
    def node_numbers(self) -> np.ndarray:
        """The node of each instance, for a module whose instances belong to nodes."""
        return np.concatenate([array.nodes for _, array in self.arrays if array.nodes is not None])

    def instance_name(self, number: int) -> str:
        """Return the name, in the netlist, of the instance in row `number`."""
        first, array = next(each for each in reversed(self.arrays) if each[0] <= number)
        return array.name.format(array.index[number - first])


class InputColumn(NamedTuple):
    """The drivers of a bit range of an input, for all instances of one array.

    Only used while inputs are cut into parts. It has nothing to do with `MemoryColumn`.

    Parameters
    ----------
    shape : ndarray of int
        For each instance, the number that `Connections` gives to the triple (driver, lowest bit,
        width); see `_number_shape`. A driver is a module and its output port, or None.
    row : ndarray of int
        For each instance, the row of the driving instance within its module.
    value : int or ndarray of int
        The constant, for a range without a driver.
    """

    shape: np.ndarray
    row: np.ndarray
    value: int | np.ndarray


class NetFamily(NamedTuple):
    """Drivers of all nets with one name pattern, such as ``sent_{}`` for ``sent_0``, ``sent_1``.

    A net whose name matches no pattern is a family with the single number 0.

    Parameters
    ----------
    drivers : list of (str, str)
        Driving modules, each with its port.
    which : ndarray of int
        For each net number, the index in `drivers`; -1 for a missing net.
    row : ndarray of int
        For each net number, the row of the driving instance within its module.
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
    members : dict of str to ModuleInstances
        Modules with their instances, by module name.
    pieces : list of (ModuleInstances, int)
        Module and index within the module, for each piece number.
    memories : list of (ModuleInstances, ModuleMemory, int)
        All columns of all memories: module, memory, and index of the column in the memory. The
        index in this list is the *memory number* of the column.
    """

    def __init__(self, netlist: Netlist, word: int) -> None:
        self.netlist = netlist
        self.members: dict[str, ModuleInstances] = {}
        self._shapes: dict[tuple[Any, ...], int] = {}
        self._families: dict[str, NetFamily] = {}
        self._collect_instances(word)
        for name in (*netlist.inputs, RESET):
            self._add_driver(name, (INPUTS, name), np.array([0]), 0)
        self._number_pieces()
        for member in self.members.values():
            for port, (_, width) in member.module.inputs.items():
                if port != "clk":
                    member.parts[port] = []
                    self._connect_port(member, port, width)
        self._texts: dict[int, KernelText] = {}

    def _collect_instances(self, word: int) -> None:
        """Collect the modules, the instances of each, and the drivers of all nets.

        `word` is the number of bits of a flit; registers are cut into pieces at its multiples.
        """
        self.members[INPUTS] = ModuleInstances(
            ExternalModule(INPUTS, -2, self.netlist.inputs | {RESET: 1}), count=1
        )
        for array in self.netlist.arrays:
            name = array.module
            if array.roms is not None:
                address, width = (
                    sum(part.width for part in array.inputs["address"]),
                    array.roms.width,
                )
                name = f"{ROM} {width} {address}"
                if name not in self.members:
                    self.members[name] = ModuleInstances(RomModule(width, address))
            elif name not in self.members:
                self.members[name] = ModuleInstances(
                    ElaboratedModule(name, self.netlist.modules[name](), word)
                )
            self._register_drivers(name, self.members[name].count, array)
            self.members[name].append_array(array)
        for member in self.members.values():
            if not isinstance(member.module, RomModule):
                continue
            known: dict[tuple[int, ...], int] = {}
            found = []
            for _, array in member.arrays:
                assert array.roms is not None
                numbers = [known.setdefault(each, len(known)) for each in array.roms.contents]
                found.append(np.array(numbers)[array.roms.which])
            member.roms, member.contents = np.concatenate(found), [*known]

    def _register_drivers(self, name: str, first: int, array: Array) -> None:
        """Register the instances of an array as the drivers of the nets at their outputs.

        Parameters
        ----------
        name : str
            Module of the array.
        first : int
            Index of the first instance of the array among all instances of the module.
        """
        for port, (net, _) in array.outputs.items():
            self._add_driver(
                net, (name, port), array.index if "{}" in net else np.array([0]), first
            )

    def _add_driver(self, net: str, driver: tuple[str, str], index: IntArray, first: int) -> None:
        """Register rows ``first``, ``first + 1``, .. of a module as drivers of a family of nets.

        Parameters
        ----------
        net : str
            Name of the net, or name pattern of the family.
        driver : tuple of (str, str)
            Driving module and its output port.
        index : ndarray of int
            For each driving row, the number of the driven net in the family.
        first : int
            The first driving row.
        """
        size = 1 + int(index.max())
        family = self._families.get(net, NetFamily([], np.zeros(0, int), np.zeros(0, int)))
        which, row = (
            np.pad(each, (0, max(size - len(each), 0)), constant_values=-1) for each in family[1:]
        )
        which[index] = len(family.drivers)
        row[index] = first + np.arange(len(index))
        self._families[net] = NetFamily([*family.drivers, driver], which, row)

    def _find_family(self, net: str) -> tuple[NetFamily, int]:
        """Return the family of a net and the number of the net within the family."""
        if "{}" in net and net not in self._families:
            self._families[net] = self._match_pattern(net)
        if net in self._families:
            return self._families[net], 0
        for found in re.finditer(r"(?<=_)\d+(?=_|$)", net):
            family = self._families.get(f"{net[: found.start()]}{{}}{net[found.end() :]}")
            number = int(found[0])
            if family and number < len(family.which) and family.which[number] >= 0:
                return family, number
        raise KeyError(net)

    def _match_pattern(self, net: str) -> NetFamily:
        """Return the family of all nets that match the pattern `net`, such as ``sent_{}``.

        The nets are those that were registered one by one, by their full names.
        """
        pattern = re.compile(re.escape(net).replace(r"\{\}", r"(\d+)"))
        every = [found for found in map(pattern.fullmatch, self._families) if found]
        family = NetFamily([], *np.full((2, 1 + max(int(found[1]) for found in every)), -1))
        for found in every:
            one, number = self._families[found[0]], int(found[1])
            family.which[number], family.row[number] = len(family.drivers), one.row[0]
            family.drivers.append(one.drivers[one.which[0]])
        return family

    def _number_pieces(self) -> None:
        """Number all pieces and columns.

        It is called after every connected output has added its pieces.
        """
        for family in self._families.values():
            for name, port in family.drivers:
                self.members[name].module.output_parts(port)
        self.pieces: list[tuple[ModuleInstances, int]] = []
        for member in self.members.values():
            member.first_piece = len(self.pieces)
            self.pieces += [(member, k) for k in range(len(member.module.pieces))]
        self.memories: list[tuple[ModuleInstances, ModuleMemory, int]] = []
        self._memory: dict[tuple[int, int, int], int] = {}
        for member in self.members.values():
            for store in member.module.stores.values():
                for column in range(len(store.columns)):
                    key = id(member), store.cell, column
                    self._memory[key] = len(self.memories)
                    self.memories.append((member, store, column))

    def piece_at(self, number: int) -> Piece:
        """Return the piece with a piece number."""
        member, k = self.pieces[number]
        return member.module.pieces[k]

    def memory_number(self, member: ModuleInstances, cell: int, column: int) -> int:
        """Return the memory number of a column: its index in `memories`.

        Parameters
        ----------
        member : ModuleInstances
            Module that has the memory.
        cell : int
            Cell of the memory in the module.
        column : int
            Index of the column in the memory.
        """
        return self._memory[id(member), cell, column]

    def find_drivers(self, part: Part | Constant) -> list[tuple[Any, int, int, int]]:
        """Return the drivers of `part`, bits of a net or a constant, the lowest bits first.

        Returns
        -------
        list of (driver, int, int, int)
            Module and port of the driver, lowest bit in that port, width, and driving row. For a
            constant the driver is None, and the second entry is the value.
        """
        if isinstance(part, Constant):
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
                    found += self.find_drivers(inner)
                place += piece.width
            return found
        family, number = self._find_family(part.net)
        driver = family.drivers[family.which[number]]
        return [(driver, part.start, part.width, int(family.row[number]))]

    def pieces_behind(
        self, driver: tuple[str, str], start: int, width: int
    ) -> Iterator[tuple[int | None, int, int]]:
        """Yield the pieces that make up the bits of an output from `start` on, the lowest first.

        Parameters
        ----------
        driver : (str, str)
            Module of the output, and name of the output.
        start : int
            First bit of the output.
        width : int
            Number of bits.

        Yields
        ------
        number : int or None
            Piece number; None for constant bits.
        low : int
            Lowest bit within the piece; the value, for constant bits.
        width : int
            Number of bits.
        """
        name, port = driver
        member, place = self.members[name], 0
        for number, low, size in member.module.output_parts(port):
            a, b = max(start, place), min(start + width, place + size)
            if a < b:
                if number is None:
                    yield None, low >> a - place & (1 << b - a) - 1, b - a
                else:
                    yield member.first_piece + number, low + a - place, b - a
            place += size

    def _connect_port(self, member: ModuleInstances, port: str, width: int) -> None:
        """Find the origin of each bit of an input in each instance, and cut the input into parts.

        Parameters
        ----------
        member : ModuleInstances
            Module that the input belongs to.
        port : str
            The input, a port of the module.
        width : int
            Bits of the input.
        """
        missing: Source = Slice(RESET, None, 0, 1) if port == RESET else Constant(0, width)
        # Each entry: lowest bit, width, piece or None, lowest bit in the piece, instances, and the
        # driving rows or constants.
        found: list[tuple[int, int, int | None, int, IntArray, Any]] = []
        for first, array in member.arrays:
            columns = [column for part in array.inputs.get(port, (missing,))
                       for column in self._source_columns(part, len(array))]  # fmt: skip
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
                    for source, start, bits in self.pieces_behind(driver, low, size):
                        what = start if source is None else column.row[rows]
                        found.append(
                            (at, bits, source, 0 if source is None else start, there, what)
                        )
                        at += bits
        for low, size in cut_range(width, {at for at, *_ in found}, 0):
            count = member.count
            sub = InputPart(low, size, np.full(count, -1), np.zeros(count, np.int64),
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

    def _source_columns(self, part: Source, count: int) -> list[InputColumn]:
        """Return the drivers of `part`, one of the sources whose bits form an input.

        The result has an `InputColumn` for each bit range, with a driver for each of the `count`
        instances of the array.
        """
        none = np.zeros(count, int)
        if isinstance(part, Constant):
            return [self._make_column(None, 0, part.width, none, part.value)]
        if isinstance(part, Constants):
            return [self._make_column(None, 0, part.width, none, part.values)]
        if isinstance(part, Slice) and part.number is None and isinstance(part.start, int):
            return [
                self._make_column(driver, low if driver else 0, size, np.full(count, instance),
                             0 if driver else low)
                for driver, low, size, instance in
                self.find_drivers(Part(part.net, part.start, part.width))
            ]  # fmt: skip
        shape, row = np.empty(count, int), np.empty(count, int)
        every = part.used_slices() if isinstance(part, SliceChoice) else [(np.arange(count), part)]
        for rows, each in every:
            family, one = self._find_family(each.net)
            number = np.full(len(rows), one) if each.number is None else each.number
            row[rows] = family.row[number]
            key = family.which[number] * (1 << 32) + each.start
            used, alike = np.unique(key, return_inverse=True)
            numbers = [self._number_shape(family.drivers[k >> 32], k & 0xFFFFFFFF, each.width)
                       for k in used.tolist()]  # fmt: skip
            shape[rows] = np.array(numbers)[alike.ravel()]
        return [InputColumn(shape, row, 0)]

    def _number_shape(self, driver: tuple[str, str] | None, low: int, size: int) -> int:
        """Return the number of the triple (driver, lowest bit, width), for `InputColumn.shape`.

        `low` is the lowest bit, and `size` the width. A triple that has no number yet gets the next
        one.
        """
        return self._shapes.setdefault((driver, low, size), len(self._shapes))

    def _make_column(
        self, driver: tuple[str, str] | None, low: int, size: int, row: IntArray, value: Any
    ) -> InputColumn:
        """Return the `InputColumn` of a bit range whose driving port is the same in every instance.

        Parameters
        ----------
        driver : tuple of (str, str) or None
            Driving module and its output port; None for a constant.
        low, size : int
            The lowest bit within the port, and the number of bits.
        row : ndarray of int
            For each instance, the row of the driving instance.
        value : int or ndarray of int
            The constant.
        """
        return InputColumn(np.full_like(row, self._number_shape(driver, low, size)), row, value)

    def next_value_lines(self, number: int) -> KernelText:
        """Return the C++ lines for the next value of the piece `number`; made once, then cached."""
        if number not in self._texts:
            member, k = self.pieces[number]
            made = self._texts[number] = self.make_kernel_text(member)
            if isinstance(member.module, ElaboratedModule):
                made.next_value(k)
            elif isinstance(member.module, RomModule):
                made.value_of(range(2, 2 + member.module.address))
        return self._texts[number]

    def make_kernel_text(self, member: ModuleInstances) -> KernelText:
        """Return a `KernelText` for the module of `member`, to which no lines have been added yet.

        It knows the parts of all inputs of the module.
        """

        def input_parts(port: str) -> list[tuple[int, int, int]]:
            return [(k, member.subs[k].low, member.subs[k].width) for k in member.parts[port]]

        return KernelText(member.module, input_parts)
