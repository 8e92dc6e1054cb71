"""The words of a compiled model from their initial state on, and what drives them."""

from __future__ import annotations

import ctypes
import errno
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import WorkFailed
from ...rtl.fabric import Fabric
from ...rtl.netlist import Part
from .base import Job, image_edges
from .calls import fields
from .connections import RESET
from .expressions import size_of
from .gtkwave import WaveLine, wave_lines
from .host_port import CTask
from .model import Model
from .reads import Loop

__all__ = ["INPUTS", "OUTPUTS", "Session"]

INPUTS = ("start", "host_we", "host_node", "host_addr", "host_wdata")
OUTPUTS = ("busy", "done", "cycles", "host_rdata")

#: Words that are worked out in a cycle from which on threads share them.
MANY = 1 << 16

#: Instances of a loop that a thread works out at a time.
BLOCK = 1 << 13

#: More threads than this wait for each other more than they do.
MOST_THREADS = 8


def _threads() -> int:
    """Threads for the processors that nothing else uses: to wait for one that does costs more."""
    if not hasattr(os, "sched_getaffinity"):
        return min(os.cpu_count() or 1, MOST_THREADS)
    idle = len(os.sched_getaffinity(0)) - round(os.getloadavg()[0])
    return min(max(idle, 1), MOST_THREADS)


class CSpan(ctypes.Structure):
    """The struct `Span` of ``model.cc``."""

    _fields_ = fields("offset bytes first last")


class CLoop(ctypes.Structure):
    """The struct `Loop` of ``model.cc``."""

    _fields_ = fields("function* data* count first last")


class CTap(ctypes.Structure):
    """The struct `Tap` of ``model.cc``."""

    _fields_ = [
        ("offset", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("size", "shift", "width", "at")),
        ("value", ctypes.c_void_p),
    ]


class CNet(ctypes.Structure):
    """The struct `Net` of ``model.cc``."""

    _fields_ = [
        ("scope", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("value", ctypes.c_void_p),
        ("low", ctypes.c_uint64),
        ("width", ctypes.c_uint64),
    ]


class CDesign(ctypes.Structure):
    """The struct `Design` of ``model.cc``."""

    _fields_ = [
        *fields(
            "now* next* loops* at_once registered loop_count spans* readers* inputs* input_spans* "
            "input_count reset* places* busy* done* cycles* host_rdata* threads many block nets* "
            "net_count"
        ),
        ("wave", ctypes.c_char_p),
    ]


#: What the functions of the library are given: a model, and what else.
ARGUMENTS = {
    "model_open": (ctypes.POINTER(CDesign),),
    **dict.fromkeys(("model_begin", "model_tick", "model_close"), (ctypes.c_void_p,)),
    "model_watch": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64),
    "model_run": (ctypes.c_void_p, ctypes.POINTER(CTask)),
}


class Session:
    """The words of a model, from their initial state on.

    Parameters
    ----------
    vcd : str or None
        File for the waves.
    threads : int, optional
        As of `CompiledEngine`.

    Attributes
    ----------
    inputs : dict of str to ndarray of uint32
        The inputs of the whole, in chunks of 32 bits.
    memories : list of ndarray, shape (depth, instances)
        The columns of all memories; of one that nothing writes, shape (depth, 1).
    now, next : ndarray of uint8
        All words of registers.
    """

    def __init__(
        self, model: Model, fabric: Fabric, *, vcd: str | None, threads: int | None = None
    ) -> None:
        self._fabric, self.model = fabric, model
        self._library, self._loops = ctypes.CDLL(str(model.library)), ctypes.CDLL(str(model.loops))
        self._kept: list[Any] = []
        self._values: dict[str, np.ndarray] = {}
        self._widths = model.netlist.inputs | {RESET: 1}
        self.inputs = {name: np.zeros(-(-width // 32) + 1, np.uint32)
                       for name, width in self._widths.items()}  # fmt: skip
        self.memories = [self._memory(number) for number in range(len(model.connections.memories))]
        self.now = model.stepped.initial()
        self.next = self.now.copy()
        self._taps: list[CTap] = []
        lines = [] if vcd is None else wave_lines(fabric)
        self._nets = nets = (CNet * len(lines))(*map(self._net, lines))
        # Of a top without a host port there are none.
        places = [self.inputs[name].ctypes.data if name in self.inputs else 0
                  for name in INPUTS]  # fmt: skip
        shown = {name: self._value(name).ctypes.data
                 for name in OUTPUTS if name in model.netlist.nets}  # fmt: skip
        self._design = self._laid_out(
            places=self.keep(np.array(places, np.uintp)), nets=ctypes.addressof(nets),
            net_count=len(nets), wave=None if vcd is None else os.fsencode(vcd),
            threads=_threads() if threads is None else threads, many=MANY, block=BLOCK, **shown,
        )  # fmt: skip
        for name, arguments in ARGUMENTS.items():
            getattr(self._library, name).argtypes = arguments
        self._library.model_open.restype = ctypes.c_void_p
        self._handle = self._library.model_open(self._design)
        if not self._handle:
            raise OSError(errno.EIO, "it cannot be opened")
        self._watch()
        self._library.model_begin(self._handle)

    def _memory(self, number: int) -> np.ndarray:
        member, store, k = self.model.connections.memories[number]
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

    def _laid_out(self, **others: Any) -> CDesign:
        """The design as C++ has it."""
        layout, stepped = self.model.layout, self.model.stepped
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
            for source, low, width, at, _ in self._parts(name, self._widths[name]):
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
        """Return the data beside the text of a loop."""
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
        connections, at = self.model.connections, 0
        for driver, low, size, instance in connections.resolved(Part(net, 0, width)):
            inner = at
            for source, shift, bits in connections.parts_of(driver, low, size) if driver else ():
                yield source, shift, bits, inner, instance
                inner += bits
            at += size

    def _value(self, net: str) -> NDArray[np.uint32]:
        """The array in which the value of a net will be shown, in chunks of 32 bits."""
        if net in self.inputs:
            return self.inputs[net]
        if net in self._values:
            return self._values[net]
        layout, width = self.model.layout, self.model.netlist.nets[net]
        value = self._values[net] = np.zeros(-(-width // 32) + 1, np.uint32)
        for source, shift, bits, at, instance in self._parts(net, width):
            if source is None:
                fixed = shift << at % 32
                for k in range(0, at % 32 + bits, 32):
                    value[at // 32 + k // 32] |= fixed >> k & 0xFFFFFFFF
            else:
                where = int(layout.addresses(source, np.array(instance)))
                self._taps.append(CTap(where, layout.size[source], shift, bits, at,
                                       value.ctypes.data))  # fmt: skip
        return value

    def keep(self, array: np.ndarray) -> int:
        """Keep an array as long as the session; returns its address."""
        array = np.ascontiguousarray(array)
        self._kept.append(array)
        return int(array.ctypes.data)

    def _watch(self) -> None:
        """Show what is asked for from now on."""
        taps = (CTap * len(self._taps))(*self._taps)
        self._library.model_watch(self._handle, ctypes.addressof(taps), len(taps))
        self._taps = []

    def _net(self, line: WaveLine) -> CNet:
        """Return the location of a line in memory."""
        scope, name, part = line.scope.encode(), line.name.encode(), line.part
        place = self._value(part.net).ctypes.data + part.start // 32 * 4
        return CNet(scope, name, place, part.start % 32, part.width)

    def choose(self, job: Job) -> None:
        """Choose what runs do from now on; whoever takes it reads it when the start comes."""
        for name, value in job.inputs.items():
            self.inputs[name][0] = value

    def load(self) -> None:
        """Load the image of a fabric into which nothing is built in.

        Raises
        ------
        WorkFailed
            If the fabric refuses it.
        """
        if not self._fabric.empty:
            return
        loaded = self.shown("loaded")
        for inputs in image_edges(self._fabric.image):
            for name, value in inputs.items():
                self.inputs[name][0] = value
            self._library.model_tick(self._handle)
        if not loaded[0]:
            raise WorkFailed("Image must be taken by the fabric, not refused")

    def run(self, task: CTask) -> int:
        """Carry a task out."""
        return int(self._library.model_run(self._handle, task))

    @property
    def handle(self) -> int:
        """The model, for functions of its library."""
        return int(self._handle)

    @property
    def library(self) -> ctypes.CDLL:
        """The library, which may have further functions; see `build_model`."""
        return self._library

    def address(self, net: str) -> int:
        """Return the address at which the value of a net is shown."""
        return int(self.shown(net).ctypes.data)

    def shown(self, net: str) -> NDArray[np.uint32]:
        """The value of a net from now on, in chunks of 32 bits."""
        value = self._value(net)
        self._watch()
        return value

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.model_close(self._handle)
