"""The objects of a compiled model in memory, and the functions of its library."""

import ctypes
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...rtl.endpoint_shape import Bank
from ...rtl.fabric import Fabric
from ...rtl.netlist import Role
from ...topology import IntArray
from .host_port import from_chunks, to_chunks
from .model import Column, Group, Model, Source
from .words import Cells

__all__ = ["CDesign", "CNet", "CWatch", "CompiledCells", "Lists", "Objects", "Watches"]


class Lists(ctypes.Structure):
    """Lists of numbers, one after another."""

    _fields_ = [("start", ctypes.c_void_p), ("items", ctypes.c_void_p)]


class CWatch(ctypes.Structure):
    """As `Watch` in ``model.cc``."""

    _fields_ = [
        ("value", ctypes.c_void_p),
        ("old", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("chunks", "first", "last")),
    ]


class Watches(ctypes.Structure):
    """As `Watches` in ``model.cc``."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("start", "watches", "items")]


class CGroup(ctypes.Structure):
    """As `Group` in ``model.cc``."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("type", "instances", "rows", "shared")),
        *((name, ctypes.c_uint64) for name in ("count", "first", "common")),
    ]


class CNet(ctypes.Structure):
    """As `Net` in ``model.cc``."""

    _fields_ = [
        ("scope", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("value", ctypes.c_void_p),
        ("low", ctypes.c_uint64),
        ("width", ctypes.c_uint64),
    ]


class CDesign(ctypes.Structure):
    """As `Design` in ``model.cc``."""

    _fields_ = [
        ("groups", ctypes.c_void_p),
        ("group_count", ctypes.c_uint64),
        ("nodes", ctypes.c_uint64),
        ("of_node", Lists),
        ("at_once", Watches),
        ("next_time", Watches),
        ("of_input", Lists),
        ("inputs", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("busy", "done", "cycles", "host_rdata")),
        *((name, ctypes.c_uint64) for name in ("settle", "gated")),
        ("nets", ctypes.c_void_p),
        ("net_count", ctypes.c_uint64),
        ("wave", ctypes.c_char_p),
    ]


class CClass(ctypes.Structure):
    """As `Class` in ``model.h``."""

    _fields_ = [
        ("make", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)),
        ("destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("output", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                    ctypes.c_size_t)),
        ("bank", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, *(ctypes.c_size_t,) * 3)),
        ("eval", ctypes.c_void_p),
        ("commit", ctypes.c_void_p),
        ("reset", ctypes.c_void_p),
    ]  # fmt: skip


INPUTS = ("start", "host_we", "host_node", "host_addr", "host_wdata")


class Objects:
    """The objects of a model, all in their initial state, and where each net lies.

    Attributes
    ----------
    library : CDLL
    inputs : dict of str to ndarray of uint32
        The inputs of the whole, in chunks of 32 bits.
    address : dict of str to int
        Where each net lies.
    number : ndarray of int
        The number of each instance, counted group by group.
    groups : array of CGroup
    """

    def __init__(self, model: Model) -> None:
        self.library = ctypes.CDLL(str(model.library))
        self._model = model
        self._kept: list[np.ndarray] = []
        self._memory: list[tuple[Any, int]] = []
        #: The objects of each group, and the functions of their class.
        self._made: list[tuple[Any, int]] = []
        self._contents: dict[tuple[tuple[int, ...], int], int] = {}
        netlist = model.netlist
        self.inputs = {
            name: np.zeros(-(-width // 32) + 1, np.uint32) for name, width in netlist.inputs.items()
        }
        self.address = {name: array.ctypes.data for name, array in self.inputs.items()}
        self.number = np.empty(len(netlist.instances), np.int64)
        names = list(dict.fromkeys(group.name for group in model.groups))
        self._types = {name: f"class_{k}_type" for k, name in enumerate(names)}
        first = 0
        made = []
        for group in model.groups:
            made.append(self._make(group))
            self.number[group.instances] = np.arange(first, first + len(group.instances))
            first += len(group.instances)
        self.groups = (CGroup * len(model.groups))(*map(self._fill, model.groups, made))

    def _make(self, group: Group) -> tuple[int, int]:
        """Make the objects of a group, and note where their outputs are."""
        kind = CClass.in_dll(self.library, self._types[group.name])
        objects = kind.make(len(group.instances))
        self._memory.append((kind.destroy, objects))
        self._made.append((kind, objects))
        for k, port in enumerate(self._model.classes[group.name].outputs):
            start = kind.output(objects, 0, k)
            step = kind.output(objects, 1, k) - start
            for place, number in enumerate(group.instances):
                instance = self._model.netlist.instances[number]
                if port in instance.outputs:
                    self.address[instance.outputs[port]] = start + place * step
        return ctypes.addressof(kind), objects

    def banks(self) -> Iterator[tuple[int, str, list[int]]]:
        """Where the first words of the banks of endpoints lie.

        Yields
        ------
        instance : int
        bank : str
        addresses : list of int
            One; of a register two, that of what it becomes as well.
        """
        for group, (kind, objects) in zip(self._model.groups, self._made, strict=True):
            for number, name in enumerate(self._model.banks[group.name]):
                for place, instance in enumerate(group.instances):
                    found = [kind.bank(objects, place, number, copy) for copy in range(2)]
                    yield instance, name, [address for address in found if address]

    def _fill(self, group: Group, made: tuple[int, int]) -> CGroup:
        """Note for the objects of a group where their inputs come from, and what ROMs hold."""
        columns = self._model.columns[group.name]
        shared: list[int] = []
        rows: list[list[int]] = []
        sources = [self._model.sources[number] for number in group.instances]
        for column, place in zip(columns, _places(columns), strict=True):
            pieces = [source[column.port][place] for source in sources]
            if column.shared:
                shared.append(self._where(pieces[0]))
                continue
            rows.append([self._where(piece) for piece in pieces])
            if column.shift is None:
                rows.append([piece.start % 32 for piece in pieces])
        if self._model.classes[group.name].rom:
            roms = [self._model.netlist.instances[number] for number in group.instances]
            rows.append([self._rows(rom.contents, rom.width) for rom in roms])
            rows.append([len(rom.contents) for rom in roms])
        table = np.array(rows, np.uintp).reshape(len(rows), len(sources)).T
        common = self._model.netlist.instances[group.instances[0]].node is None
        return CGroup(
            *made, self.keep(table), self.keep(np.array(shared, np.uintp)),
            len(sources), int(self.number[group.instances[0]]), common,
        )  # fmt: skip

    def _rows(self, contents: tuple[int, ...], width: int) -> int:
        """The address of the rows of a ROM, each in chunks of 32 bits."""
        key = contents, width
        if key not in self._contents:
            size = 4 * -(-width // 32)
            raw = b"".join(row.to_bytes(size, "little") for row in contents)
            self._contents[key] = self.keep(np.frombuffer(raw, "<u4"))
        return self._contents[key]

    def _where(self, piece: Source) -> int:
        """The address of the first bits of a source."""
        if piece.net not in self.address:
            value, size = int(piece.net), -(-piece.width // 32) + 1
            words = [value >> 32 * k & 0xFFFFFFFF for k in range(size)]
            self.address[piece.net] = self.keep(np.array(words, np.uint32))
        return self.address[piece.net] + piece.start // 32 * 4

    def keep(self, array: np.ndarray) -> int:
        """Keep an array as long as the objects; returns its address."""
        array = np.ascontiguousarray(array)
        self._kept.append(array)
        return array.ctypes.data

    def close(self) -> None:
        """Give the memory back."""
        for destroy, objects in self._memory:
            destroy(objects)
        self._memory = []


def _places(columns: list[Column]) -> Iterator[int]:
    """The place of each column among those of its input."""
    seen: dict[str, int] = defaultdict(int)
    for column in columns:
        yield seen[column.port]
        seen[column.port] += 1


class CompiledCells(Cells):
    """The words of the memories of endpoints, as the objects of a model hold them."""

    def __init__(self, objects: Objects, fabric: Fabric) -> None:
        super().__init__(fabric)
        self._move, self._width = objects.library.model_move, fabric.width
        self._move.argtypes = [ctypes.c_bool, *(ctypes.c_void_p,) * 2,
                               *(ctypes.c_uint64,) * 2, ctypes.c_void_p]  # fmt: skip
        self._move.restype = None
        netlist, shape = fabric.netlist, self.exists.shape
        #: Where each memory of each node begins, once for each place that holds its words.
        self._first: list[IntArray] = []
        #: Bytes of a word there, and its first bit.
        self._bytes, self._low = np.zeros(shape, np.uint64), np.zeros(shape, np.uint32)
        places: dict[int, dict[str, list[int]]] = defaultdict(dict)
        for number, name, addresses in objects.banks():
            places[number][name] = addresses
        modules = {instance.module for instance in netlist.having(Role.ENDPOINT)}
        banks = {module: netlist.modules[module]().banks for module in modules}
        for number, instance in enumerate(netlist.instances):
            found, node = places[number], instance.node
            for memory, copies in banks.get(instance.module, {}).items():
                assert node is not None
                self.exists[node, memory] = True
                if all(bank.name in found for bank in copies):
                    addresses = [place for bank in copies for place in found[bank.name]]
                    self._note((node, memory), addresses, copies[0])

    def _note(self, at: tuple[int, int], addresses: list[int], bank: Bank) -> None:
        """Note where a memory of a node is."""
        self.reached[at] = True
        self._bytes[at], self._low[at] = 4 * -(-bank.width // 32), bank.low
        while len(self._first) < len(addresses):
            self._first.append(np.zeros(self.reached.shape, np.uint64))
        for first, address in zip(self._first, addresses, strict=False):
            first[at] = address

    def put(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Put words into memories, in all copies of these."""
        chunks = to_chunks(words, self._width)
        for first in self._first:
            there = first[nodes, memory] > 0
            at = nodes[there], memory[there], address[there]
            self._call(first, *at, np.ascontiguousarray(chunks[there]), put=True)

    def take(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Take words from memories."""
        chunks = np.empty((len(nodes), -(-self._width // 32)), np.uint32)
        if len(nodes):
            self._call(self._first[0], nodes, memory, address, chunks, put=False)
        return from_chunks(chunks, self._width)

    def _call(
        self,
        first: IntArray,
        nodes: IntArray,
        memory: IntArray,
        address: IntArray,
        chunks: NDArray[np.uint32],
        *,
        put: bool,
    ) -> None:
        """Move words between places and chunks."""
        at = nodes, memory
        places = first[at] + self._bytes[at] * address.astype(np.uint64)
        low = np.ascontiguousarray(self._low[at])
        self._move(put, places.ctypes.data, low.ctypes.data, len(places), self._width,
                   chunks.ctypes.data)  # fmt: skip
