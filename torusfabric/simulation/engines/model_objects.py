"""The words of a compiled model in memory, and the functions of its library."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...rtl.fabric import Fabric
from ...rtl.netlist import Part, Role
from ...topology import IntArray
from .calls import fields
from .connections import RESET
from .elaborated import runs_of
from .expressions import size_of
from .model import Model
from .reads import Loop
from .words import Cells, as_words

__all__ = ["CDesign", "CNet", "CompiledCells", "Objects"]


class CSpan(ctypes.Structure):
    """As `Span` in ``model.cc``."""

    _fields_ = fields("offset bytes first last")


class CLoop(ctypes.Structure):
    """As `Loop` in ``model.cc``."""

    _fields_ = fields("function* data* count first last")


class CTap(ctypes.Structure):
    """As `Tap` in ``model.cc``."""

    _fields_ = [
        ("offset", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("size", "shift", "width", "at")),
        ("value", ctypes.c_void_p),
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
        *fields(
            "now* next* loops* at_once registered loop_count spans* readers* inputs* input_spans* "
            "input_count reset* places* busy* done* cycles* host_rdata* threads many block nets* "
            "net_count"
        ),
        ("wave", ctypes.c_char_p),
    ]


class Objects:
    """The words of a model, all in their initial state.

    Attributes
    ----------
    library : CDLL
    inputs : dict of str to ndarray of uint32
        The inputs of the whole, in chunks of 32 bits.
    memories : list of ndarray, shape (depth, instances)
        The columns of all memories; of one that nothing writes, shape (depth, 1).
    now, next : ndarray of uint8
        All words of registers.
    """

    def __init__(self, model: Model) -> None:
        self.library = ctypes.CDLL(str(model.library))
        self._loops = ctypes.CDLL(str(model.loops))
        self._model = model
        self._kept: list[Any] = []
        netlist = model.netlist
        self.inputs = {
            name: np.zeros(-(-width // 32) + 1, np.uint32)
            for name, width in (netlist.inputs | {RESET: 1}).items()
        }
        self.memories = [self._memory(number) for number in range(len(model.connections.memories))]
        self.now = model.stepped.initial()
        self.next = self.now.copy()
        self._values: dict[str, np.ndarray] = {}

    def _memory(self, number: int) -> np.ndarray:
        member, store, k = self._model.connections.memories[number]
        column = store.columns[k]
        ones = (1 << column.width) - 1
        kind = f"u{size_of(column.width)}"
        if not any(store.init):
            rows = np.zeros(store.depth, kind)
        else:
            rows = np.array([row >> column.low & ones for row in store.init], kind)
        count = member.count if store.writers else 1
        if not rows.any():
            return np.zeros((store.depth, count), kind)
        return np.ascontiguousarray(np.repeat(rows[:, None], count, axis=1))

    def design(self, **others: Any) -> CDesign:
        """The design as C++ has it."""
        layout, stepped, netlist = self._model.layout, self._model.stepped, self._model.netlist
        loops = stepped.loops
        readers: dict[int, list[int]] = defaultdict(list)
        for number, loop in enumerate(loops):
            for read in loop.reads:
                readers[read].append(number)
        spans: list[tuple[int, int, int]] = []
        for loop in loops:
            spans += [(span.start, span.size * loop.count, span.number) for span in loop.spans]
            if loop.memory >= 0:
                spans.append((0, 0, -1 - loop.memory))
        taps, input_spans = [], []
        for name, value in self.inputs.items():
            for source, low, width, at, _ in self._parts(name, (netlist.inputs | {RESET: 1})[name]):
                assert source is not None
                input_spans.append(len(spans))
                spans.append((layout.base[source], layout.size[source], source))
                taps.append(CTap(layout.base[source], layout.size[source], low, width, at,
                                 value.ctypes.data))  # fmt: skip
        order: list[int] = []
        c_spans = (CSpan * len(spans))()
        for k, (offset, size, read) in enumerate(spans):
            c_spans[k] = CSpan(offset, size, len(order), len(order) + len(readers[read]))
            order += readers[read]
        functions = (ctypes.c_void_p * len(stepped.functions)).in_dll(self._loops, "loops")
        c_loops, place = (CLoop * len(loops))(), 0
        for k, loop in enumerate(loops):
            count = len(loop.spans) + (loop.memory >= 0)
            c_loops[k] = CLoop(functions[loop.function], self._data(loop), loop.count, place,
                               place + count)  # fmt: skip
            place += count
        return CDesign(
            now=self.now.ctypes.data, next=self.next.ctypes.data,
            loops=self._array(c_loops), at_once=stepped.combinational,
            registered=stepped.registered, loop_count=len(loops), spans=self._array(c_spans),
            readers=self.keep(np.array(order, np.uint32)),
            inputs=self._array((CTap * len(taps))(*taps)),
            input_spans=self.keep(np.array(input_spans, np.uint64)), input_count=len(taps),
            reset=self.inputs[RESET].ctypes.data,
            **others,
        )  # fmt: skip

    def _array(self, array: Any) -> int:
        self._kept.append(array)
        return ctypes.addressof(array)

    def _data(self, loop: Loop) -> int:
        """What goes with the text of a loop."""
        found = []
        for each in loop.data:
            if isinstance(each, np.ndarray):
                found.append(self.keep(each))
            elif isinstance(each, tuple):
                found.append(self.memories[each[1]].ctypes.data)
            else:
                found.append(each)
        return self.keep(np.array(found, np.uint64))

    def _parts(self, net: str, width: int) -> Iterator[tuple[int | None, int, int, int, int]]:
        """Bits of a net: piece, its lowest bit, width, bit in the net, and instance.

        For constants, None in place of the piece, and the value for its bit.
        """
        connections, at = self._model.connections, 0
        for driver, low, size, instance in connections.resolved(Part(net, 0, width)):
            inner = at
            for source, shift, bits in connections.parts_of(driver, low, size) if driver else ():
                yield source, shift, bits, inner, instance
                inner += bits
            at += size

    def value(self, net: str) -> tuple[np.ndarray, list[CTap]]:
        """Where the value of a net is shown, in chunks of 32 bits, and the taps that it needs."""
        if net in self.inputs:
            return self.inputs[net], []
        if net in self._values:
            return self._values[net], []
        layout, width, taps = self._model.layout, self._model.netlist.nets[net], []
        value = self._values[net] = np.zeros(-(-width // 32) + 1, np.uint32)
        for source, shift, bits, at, instance in self._parts(net, width):
            if source is None:
                fixed = shift << at % 32
                for k in range(0, at % 32 + bits, 32):
                    value[at // 32 + k // 32] |= fixed >> k & 0xFFFFFFFF
            else:
                where = int(layout.addresses(source, np.array(instance)))
                taps.append(CTap(where, layout.size[source], shift, bits, at, value.ctypes.data))
        return value, taps

    def keep(self, array: np.ndarray) -> int:
        """Keep an array as long as the objects; returns its address."""
        array = np.ascontiguousarray(array)
        self._kept.append(array)
        return array.ctypes.data


class CompiledCells(Cells):
    """The words of the memories of endpoints, as a model holds them."""

    def __init__(self, objects: Objects, model: Model, fabric: Fabric) -> None:
        super().__init__(fabric)
        self._width = fabric.width
        #: Of each module and memory, where its words are: one list of parts for each copy.
        self._copies: dict[tuple[int, int], list[list[_Bits]]] = {}
        self._member = np.full(fabric.nodes, -1)
        self._instance = np.zeros(fabric.nodes, np.int64)
        for number, (name, member) in enumerate(model.connections.members.items()):
            if model.netlist.roles.get(name) is not Role.ENDPOINT:
                continue
            nodes = member.nodes
            self._member[nodes], self._instance[nodes] = number, np.arange(len(nodes))
            for memory, copies in member.module.banks.items():
                self.exists[nodes, memory] = True
                found = [_bits_of(objects, model, name, bank, fabric.width) for bank in copies]
                if all(found):
                    self.reached[nodes, memory] = True
                    self._copies[number, memory] = found

    def put(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Put words into memories, in all copies of these."""
        for copies, at in self._groups(nodes, memory):
            for parts in copies:
                for part in parts:
                    part.put(self._instance[nodes[at]], address[at], words[at])

    def take(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Take words from memories."""
        words = as_words(self._fabric, np.zeros(len(nodes), np.uint8))
        for copies, at in self._groups(nodes, memory):
            instance, there = self._instance[nodes[at]], address[at]
            first, *others = (part.take(instance, there, words.dtype) for part in copies[0])
            words[at] = first
            for other in others:
                words[at] |= other
        return words

    def _groups(
        self, nodes: IntArray, memory: IntArray
    ) -> Iterator[tuple[list[list[_Bits]], IntArray]]:
        """Words by their module and memory."""
        member = self._member[nodes]
        key = member * (int(memory.max(initial=0)) + 1) + memory
        for number in np.flatnonzero(np.bincount(key)).tolist():
            at = np.flatnonzero(key == number)
            yield self._copies[int(member[at[0]]), int(memory[at[0]])], at


class _Bits:
    """Bits of a word, in the words of columns of a memory, or of registers."""

    def __init__(self, arrays: list[np.ndarray], slot: np.ndarray | None, low: int, at: int,
                 width: int) -> None:  # fmt: skip
        self._arrays, self._slot = arrays, slot
        self._low, self._at, self._width = low, at, width

    def put(self, instance: IntArray, address: IntArray, words: NDArray[Any]) -> None:
        """Put the bits of words there."""
        ones = (1 << self._width) - 1
        for array in self._arrays:
            kind, of = array.dtype.type, int if words.dtype == object else words.dtype.type
            bits = (words >> of(self._at) & of(ones)).astype(kind)
            where = (address, instance) if self._slot is None else (self._slot[instance],)
            keep = kind(~(ones << self._low) & (1 << 8 * array.itemsize) - 1)
            array[where] = (array[where] & keep) | (bits << kind(self._low))

    def take(self, instance: IntArray, address: IntArray, kind: Any) -> NDArray[Any]:
        """The bits of words from there."""
        array = self._arrays[0]
        if self._slot is None:
            bits = array.reshape(-1).take(address * array.shape[1] + instance).astype(np.uint64)
        else:
            bits = array[self._slot[instance]].astype(np.uint64)
        if self._width < 8 * array.itemsize:
            bits = bits >> np.uint64(self._low) & np.uint64((1 << self._width) - 1)
        bits = bits.astype(kind, copy=False)
        return (
            bits << (self._at if kind == np.dtype(object) else np.uint64(self._at))
            if self._at
            else bits
        )


def _bits_of(objects: Objects, model: Model, name: str, bank: Any, width: int) -> list[_Bits]:
    """Where a word of a bank is; nothing if it cannot be reached."""
    connections, layout = model.connections, model.layout
    member = connections.members[name]
    module = member.module
    found = []
    for store in module.stores.values():
        if (store.name, store.width, store.depth) == (bank.name, bank.width, bank.depth):
            for k, column in enumerate(store.columns):
                low, high = (max(bank.low, column.low),
                             min(bank.low + width, column.low + column.width))  # fmt: skip
                if low < high:
                    number = connections.memory(member, store.cell, k)
                    found.append(_Bits([objects.memories[number]], None, low - column.low,
                                       low - bank.low, high - low))  # fmt: skip
            return found
    nets = module.signals.get(bank.name, ())
    if bank.depth > 1 or len(nets) != bank.width:
        return []
    at = 0
    for run in runs_of(nets[bank.low : bank.low + width]):
        if run.cell not in module.pieces_of:
            return []
        for k, low, size in module.split(run):
            number = member.first_piece + k
            arrays = [layout.words(each, number) for each in (objects.now, objects.next)]
            found.append(_Bits(arrays, layout.slot[number], low, at, size))
            at += size
    return found
