"""Connections of all instances: the origin of each input bit in each instance.

The modules are the elaborated modules of the netlist and two kinds of modules without logic
(`ExternalModule`): ROMs, and the external inputs of the fabric. A *piece* is a part of a register
or an output, with at most 64 bits (see `elaborated`). Every piece of a module exists once in each
instance. The pieces of all modules are numbered in one sequence, which gives the *piece number*.
The instances of a module are numbered as well; this number is the *row* of the instance.

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
    """A module that the compiled model does not compute from cells: a ROM, or all external inputs.

    Like other modules it has pieces, that is, parts of its output ports with at most 64 bits each.

    Parameters
    ----------
    cell : int
        Value for `Piece.cell` of all pieces. It is -2 for the external inputs, whose values the
        engine sets, and 0 for ROMs, whose words change at clock edges like registers.
    ports : dict of str to int
        Output port -> its width in bits.

    Attributes
    ----------
    inputs : dict of str to (int, int)
        Input -> its first bit, and its number of bits, as in `ElaboratedModule`.
    pieces : list of Piece
        Pieces of the first port, then those of the second port, and so on.
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
        """Return the pieces that form a port, the lowest first.

        Each is a tuple: index of the piece in `pieces`, lowest used bit of the piece, and number of
        bits. A port of 80 bits gives ``[(0, 0, 64), (1, 0, 16)]``.
        """
        return self._shown[port]


class RomModule(ExternalModule):
    """The module of all ROMs with the same data width and the same address width.

    Each of these ROMs is an instance of the module, with contents of its own.
    """

    def __init__(self, width: int, address: int) -> None:
        super().__init__(f"{ROM} {width} {address}", 0, {"data": width})
        self.inputs = {"address": (2, address)}
        self.address = address


class InputPart(NamedTuple):
    """A bit range of an input that comes from one piece in each instance, or is constant there.

    A piece is a part of a register or an output with at most 64 bits. All arrays have one entry for
    each instance of the module that has the input.

    Parameters
    ----------
    low, width : int
        The lowest bit within the input, and the number of bits.
    source : ndarray of int, shape (instances,)
        Number of the driving piece among the pieces of all modules; -1 for a constant.
    instance : ndarray of int, shape (instances,)
        Number of the driving instance within its module.
    shift : ndarray of int, shape (instances,)
        Bit of the driving piece that is bit `low` of the input.
    value : ndarray of uint64, shape (instances,)
        The constant, for instances with `source` -1.
    """

    low: int
    width: int
    source: np.ndarray
    instance: np.ndarray
    shift: np.ndarray
    value: np.ndarray


@dataclass
class ModuleInstances:
    """A module with all of its instances, and the drivers of their inputs.

    The instances are numbered 0, 1, ..; this number is the *row* of the instance.

    Parameters
    ----------
    module : ElaboratedModule or ExternalModule
    arrays : list of (int, Array)
        Arrays of instances in the netlist, each with the row of its first instance.
    count : int
        Number of instances.
    first_piece : int
        Number of the first piece (part of a register or an output) of the module, among the pieces
        of all modules.
    parts : dict of str to (list of int)
        Input -> indices in `subs` of the parts that form the input, the lowest first.
    subs : list of InputPart
        Parts of all inputs. A part is a bit range with one driver in each instance.
    roms : ndarray of int, shape (instances,), or None
        For ROMs, the index in `contents` for each instance.
    contents : list of (tuple of int)
        For ROMs, the different contents; each is a tuple of all words.
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
        """Append the instances of an array of the netlist, numbered after the instances so far."""
        self.arrays.append((self.count, array))
        self.count += len(array)

    @property
    def node_numbers(self) -> np.ndarray:
        """The number of the node of each instance, for a module whose instances belong to nodes."""
        return np.concatenate([array.nodes for _, array in self.arrays if array.nodes is not None])

    def instance_name(self, number: int) -> str:
        """Return the name that the instance with the number `number` has in the netlist."""
        first, array = next(each for each in reversed(self.arrays) if each[0] <= number)
        return array.name.format(array.index[number - first])


class InputColumn(NamedTuple):
    """The driver of a bit range of an input, in each instance of one array of the netlist.

    It is used only while inputs are cut into parts, and is not related to `MemoryColumn`.

    Parameters
    ----------
    shape : ndarray of int, shape (instances,)
        One number for each triple of driving port, lowest driving bit of this port, and width of
        the range. Equal triples have equal numbers, see `Connections._number_shape`.
    row : ndarray of int, shape (instances,)
        Number of the driving instance within its module.
    value : int or ndarray of int, shape (instances,)
        The constant, for a range without a driver.
    """

    shape: np.ndarray
    row: np.ndarray
    value: int | np.ndarray


class NetFamily(NamedTuple):
    """Drivers of all nets with one name pattern, such as ``sent_{}`` for ``sent_0``, ``sent_1``.

    The number in the name (0 and 1 here) is the index in the arrays. A net whose name matches no
    pattern is a family with the single number 0.

    Parameters
    ----------
    drivers : list of (str, str)
        The different drivers, each as the name of a module and of its output port.
    which : ndarray of int
        For each number in a name, the index in `drivers`; -1 if there is no such net.
    row : ndarray of int
        For each number in a name, the number of the driving instance within its module.
    """

    drivers: list[tuple[str, str]]
    which: np.ndarray
    row: np.ndarray


class Connections:
    """All instances of a netlist and the origin of each of their input bits.

    A *piece* is a part of a register or an output with at most 64 bits. A *column* is one bit range
    of all words of a memory.

    Parameters
    ----------
    word : int
        Bits of a flit.

    Attributes
    ----------
    members : dict of str to ModuleInstances
        Module name -> the module with its instances.
    pieces : list of (ModuleInstances, int)
        Pieces of all modules: module, and index of the piece within the module. The index in this
        list is the *piece number*.
    memories : list of (ModuleInstances, ModuleMemory, int)
        Columns of all memories: module, memory, and index of the column within the memory. The
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
        """Collect the modules, the instances of each module, and the drivers of all nets.

        `word` is the number of bits of a flit. A register of several flits becomes one piece for
        each flit.
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
            Number of the first instance of the array among all instances of the module.
        array : Array
            Array of instances in the netlist.
        """
        for port, (net, _) in array.outputs.items():
            self._add_driver(
                net, (name, port), array.index if "{}" in net else np.array([0]), first
            )

    def _add_driver(self, net: str, driver: tuple[str, str], index: IntArray, first: int) -> None:
        """Register instances ``first``, ``first + 1``, .. of a module as drivers of nets.

        Parameters
        ----------
        net : str
            Name of the net, or a pattern such as ``sent_{}`` for several nets.
        driver : tuple of (str, str)
            Name of the driving module, and of its output port.
        index : ndarray of int
            For each driving instance, the number in the name of the net that it drives: with 3 and
            5, instance `first` drives ``sent_3``, and instance ``first + 1`` drives ``sent_5``.
        first : int
            Number of the first driving instance within the module.
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
        """Return the drivers of all nets with the name pattern of `net`, and the number in `net`.

        For the net ``sent_3``, these are the `NetFamily` of ``sent_{}`` and 3. For a pattern, or
        for a net without a pattern, the number is 0.
        """
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
        """Return the `NetFamily` of the pattern `net`, such as ``sent_{}``, from single nets.

        It joins the families of ``sent_0``, ``sent_1``, .., which were registered one by one, each
        under its full name.
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
        """Number the pieces of all modules, and the columns of all memories.

        First, each output that drives a net gets its combinational pieces, because these are
        numbered, too.
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
        """Return the piece with the number `number`: a part of a register or of an output."""
        member, k = self.pieces[number]
        return member.module.pieces[k]

    def memory_number(self, member: ModuleInstances, cell: int, column: int) -> int:
        """Return the index in `memories` of one column (bit range of all words) of a memory.

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
        """Return the drivers of some bits of a net, or of a constant, the lowest bits first.

        Parameters
        ----------
        part : Part or Constant
            The bits, or the constant.

        Returns
        -------
        list of (driver, int, int, int)
            For each bit range: the driver as (module, output port), the lowest bit in this port,
            the width, and the number of the driving instance within its module. For a constant, the
            driver is None, and the value stands in place of the lowest bit.
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
        """Yield the pieces that hold bits ``start`` to ``start + width - 1`` of an output port.

        A piece is a part of a register or an output with at most 64 bits. The piece with the lowest
        bits comes first.

        Parameters
        ----------
        driver : (str, str)
            Name of the module, and of its output port.
        start : int
            First bit of the output.
        width : int
            Number of bits.

        Yields
        ------
        number : int or None
            Piece number; None for constant bits.
        low : int
            Lowest bit within the piece; for constant bits, their value.
        width : int
            Number of bits from this piece.
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
        """Find the driver of each bit of an input in each instance of a module.

        The results are parts of the input, which are added to `member`. A part is a bit range that
        has, in each instance, a single driver (a piece of some instance) or a constant value.

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
        """Return the drivers of some bits of an input, for all instances of an array.

        Parameters
        ----------
        part : Source
            These bits as the netlist has them: a constant, or bits of a net. The net may be a
            different one for each instance.
        count : int
            Number of instances in the array of the netlist.

        Returns
        -------
        list of InputColumn
            One entry for each bit range, the lowest first, with the driver for each instance.
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
        """Return one number for the triple (driver, low, size); equal triples get equal numbers.

        The triple describes the origin of a bit range of an input. `driver` is (module, output
        port), or None for a constant. `low` is the lowest driving bit of this port, and `size` the
        number of bits. `InputColumn.shape` has such a number for each instance.
        """
        return self._shapes.setdefault((driver, low, size), len(self._shapes))

    def _make_column(
        self, driver: tuple[str, str] | None, low: int, size: int, row: IntArray, value: Any
    ) -> InputColumn:
        """Return the driver of a bit range of an input, in each of many instances.

        In all instances, the same output port of the same module drives the range, but instances
        may be driven by different instances of this module. Without a driver, the range is
        constant.

        Parameters
        ----------
        driver : tuple of (str, str) or None
            Driving module and its output port; None for a constant.
        low, size : int
            The lowest bit within the port, and the number of bits.
        row : ndarray of int
            For each instance, the number of the driving instance within its module.
        value : int or ndarray of int
            The constant.
        """
        return InputColumn(np.full_like(row, self._number_shape(driver, low, size)), row, value)

    def next_value_lines(self, number: int) -> KernelText:
        """Return the C++ lines that compute the next value of a piece, with the reads they need.

        A piece is a part of a register or an output; `number` is its piece number. The lines are
        made at the first call and then cached. For a ROM they compute the address only.
        """
        if number not in self._texts:
            member, k = self.pieces[number]
            made = self._texts[number] = self.make_kernel_text(member)
            if isinstance(member.module, ElaboratedModule):
                made.next_value(k)
            elif isinstance(member.module, RomModule):
                made.value_of(range(2, 2 + member.module.address))
        return self._texts[number]

    def make_kernel_text(self, member: ModuleInstances) -> KernelText:
        """Return an empty `KernelText`: a collector of C++ lines that compute values of a module.

        `member` is the module. The lines can read all inputs of the module.
        """

        def input_parts(port: str) -> list[tuple[int, int, int]]:
            return [(k, member.subs[k].low, member.subs[k].width) for k in member.parts[port]]

        return KernelText(member.module, input_parts)
