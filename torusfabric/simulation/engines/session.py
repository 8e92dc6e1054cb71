"""A session: the state of a compiled model after reset, and the calls that simulate clock edges.

The state is the *arena*, a byte array with all registers and outputs of modules, and the columns of
all memories. (A *piece* is a part of a register or an output, with at most 64 bits; a *column* is
the same bit range of all words of a memory.) The C++ library in ``model.cc`` works on both.

The value of a net of the fabric, such as an input or output, is passed as an array of 32-bit
chunks, the lowest first. A *tap* makes the library copy bits between the arena and such an array in
every cycle: from the array for an input, into it for other nets.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ...rtl.fabric import Fabric
from ...rtl.netlist import Part
from .base import Job
from .calls import uint64_fields, words_from_chunks, words_to_chunks
from .connections import RESET
from .edges import EdgeRequest, EdgeResult
from .expressions import native_bytes
from .gtkwave import wave_lines
from .model import Model
from .reads import Loop
from .waves import WaveRecorder

__all__ = ["Session"]

#: Words to compute in a cycle from which on threads share the work.
MIN_WORDS_FOR_THREADS = 1 << 16

#: Instances of a loop that a thread computes at a time.
INSTANCES_PER_BLOCK = 1 << 13

#: Bytes of the arena times edges in the first turn of `Session.simulate_in_turns`, and seconds
#: above which the next turn has fewer edges.
FIRST_TURN, TURN = 1 << 28, 0.1

#: Largest default number of threads; more spend most of their time waiting for each other.
MOST_THREADS = 8


def _thread_count() -> int:
    """Return the number of idle processors, from 1 to `MOST_THREADS`.

    Why: a thread without a processor of its own delays all others at the end of each cycle.
    """
    if not hasattr(os, "sched_getaffinity"):
        return min(os.cpu_count() or 1, MOST_THREADS)
    idle = len(os.sched_getaffinity(0)) - round(os.getloadavg()[0])
    return min(max(idle, 1), MOST_THREADS)


class CDesign(ctypes.Structure):
    """The struct `Design` of ``model.cc``, which describes a model and its state."""

    _fields_ = uint64_fields(
        "now* next* loops* at_once registered loop_count spans* readers* inputs* input_count "
        "reset* threads many block record*"
    )


class CTask(ctypes.Structure):
    """The struct `Task` of ``model.cc``: a request to simulate clock edges.

    It has the input values of each edge, and space for the requested output values.
    """

    _fields_ = uint64_fields("rows inputs* input_count given* outputs* output_count shown* busy*")


#: Callback that records waveforms before and after each edge, with the edge number and 1 if the
#: clock is high; a result other than 0 reports a failure.
RECORD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_int)

#: Argument types of the library functions.
ARGUMENTS = {
    "model_open": (ctypes.POINTER(CDesign),),
    **dict.fromkeys(("model_begin", "model_close", "model_refresh"), (ctypes.c_void_p,)),
    "model_watch": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64),
}


class Session:
    """A running model: the state of all registers and memories, and calls that simulate edges.

    Parameters
    ----------
    vcd : file or None
        File for the waveforms.
    threads : int, optional
        Threads of the simulation, see `CompiledEngine`.

    Attributes
    ----------
    inputs : dict of str to ndarray of uint32
        External input -> its value in chunks of 32 bits, the lowest first.
    memories : list of ndarray, shape (depth, instances)
        Words of all memories, as *columns*: an array has the same bit range of all words of one
        memory. If nothing writes the memory, all instances share the words, and the shape is
        (depth, 1).
    now, next : ndarray of uint8
        The *arena*, the byte array of all simulated values, before and after a clock edge.
    """

    def __init__(
        self, model: Model, fabric: Fabric, *, vcd: TextIO | None, threads: int | None = None
    ) -> None:
        self.model = model
        self.library, self._loops = ctypes.CDLL(str(model.library)), ctypes.CDLL(str(model.loops))
        self._kept: list[Any] = []
        self._widths = model.netlist.net_widths | {RESET: 1}
        lines = [] if vcd is None else wave_lines(fabric)
        # One array holds the values of all inputs and of all nets in waveforms.
        names = [*model.netlist.inputs, RESET]
        nets = dict.fromkeys([*names, *(line.part.net for line in lines)])
        ends = np.cumsum([self._chunk_count(net) + 1 for net in nets]).tolist()
        first = dict(zip(nets, [0, *ends], strict=False))
        values = np.zeros(ends[-1], np.uint32)
        self._values = dict(zip(nets, np.split(values, ends[:-1]), strict=True))
        self.inputs = {name: self._values[name] for name in names}
        self.memories = [
            self._memory_column(number) for number in range(len(model.connections.memories))
        ]
        self.now = model.stepped.initial_arena()
        self.next = self.now.copy()
        self._taps: list[tuple[int, ...]] = []
        for net in nets:
            if net not in self.inputs:
                self._add_taps(net)
        self._recorder: WaveRecorder | None = None
        if vcd is not None:
            self._recorder = WaveRecorder(vcd, lines, values, first, RESET)
        self._record = RECORD(self._recorder.record_edge) if self._recorder else RECORD()
        self._design = self._make_design(_thread_count() if threads is None else threads)
        for name, arguments in ARGUMENTS.items():
            getattr(self.library, name).argtypes = arguments
        self.library.model_open.restype = ctypes.c_void_p
        self.handle = int(self.library.model_open(self._design))
        self._pass_taps()
        self.library.model_begin(self.handle)
        if self._recorder:
            self._recorder.flush_or_raise()

    def _memory_column(self, number: int) -> np.ndarray:
        """Return one column of a memory after reset: ndarray, shape (depth, instances).

        A column is the same bit range of all words; `number` is its index in
        `Connections.memories`. If the memory has no write port, all instances share the words, and
        the shape is (depth, 1).
        """
        member, store, k = self.model.connections.memories[number]
        column = store.columns[k]
        ones = (1 << column.width) - 1
        kind = f"u{native_bytes(column.width)}"
        if not any(store.init):
            rows = np.zeros(store.depth, kind)
        else:
            rows = np.array([row >> column.low & ones for row in store.init], kind)
        count = member.count if store.writers else 1
        if not rows.any():
            return np.zeros((store.depth, count), kind)
        return np.ascontiguousarray(np.repeat(rows[:, None], count, axis=1))

    def _make_design(self, threads: int) -> CDesign:
        """Return the description of the model for the C++ library, as tables of 64-bit numbers.

        Parameters
        ----------
        threads : int
            Number of threads that the library may use.
        """
        layout, stepped = self.model.layout, self.model.stepped
        loops = stepped.loops
        readers: dict[int, list[int]] = defaultdict(list)
        for number, loop in enumerate(loops):
            for read in loop.reads:
                readers[read].append(number)
        order: list[int] = []
        c_spans: list[tuple[int, ...]] = []

        def add_span(offset: int, size: int, read: int) -> None:
            c_spans.append((offset, size, len(order), len(order) + len(readers[read])))
            order.extend(readers[read])

        functions = (ctypes.c_void_p * len(stepped.functions)).in_dll(self._loops, "loops")
        c_loops = []
        for loop in loops:
            first = len(c_spans)
            for span in loop.spans:
                add_span(span.start, span.size * loop.count, span.number)
            if loop.memory >= 0:
                add_span(0, 0, -1 - loop.memory)
            function = functions[loop.function] or 0
            c_loops.append((function, self._loop_data(loop), loop.count, first, len(c_spans)))
        taps = []
        for name, value in self.inputs.items():
            for source, low, width, at, _ in self._net_parts(name):
                assert source is not None
                place, size = layout.base[source], layout.size[source]
                taps.append((place, size, low, width, at, value.ctypes.data, len(c_spans)))
                add_span(place, size, source)
        return CDesign(
            now=self.now.ctypes.data,
            next=self.next.ctypes.data,
            loops=self._keep_numbers(c_loops),
            at_once=stepped.combinational,
            registered=stepped.registered,
            loop_count=len(loops),
            spans=self._keep_numbers(c_spans),
            readers=self._keep_numbers(order),
            inputs=self._keep_numbers(taps),
            input_count=len(taps),
            reset=self.inputs[RESET].ctypes.data,
            threads=threads,
            many=MIN_WORDS_FOR_THREADS,
            block=INSTANCES_PER_BLOCK,
            record=ctypes.cast(self._record, ctypes.c_void_p),
        )

    def _keep_numbers(self, numbers: Sequence[Any]) -> int:
        """Keep 64-bit numbers in memory as long as the session exists; returns their address."""
        return self.keep_alive(np.array(numbers, np.uint64))

    def _loop_data(self, loop: Loop) -> int:
        """Return the address of the data of `loop`, as an array of 64-bit numbers for C++.

        Byte offsets stay as they are. In place of an array of numbers, or of a memory, stands its
        address.
        """
        found = []
        for each in loop.data:
            if isinstance(each, np.ndarray):
                found.append(self.keep_alive(each))
            elif isinstance(each, tuple):
                found.append(self.memories[each[1]].ctypes.data)
            else:
                found.append(each)
        return self._keep_numbers(found)

    def _net_parts(self, net: str) -> Iterator[tuple[int | None, int, int, int, int]]:
        """Yield the bit ranges of a net, each driven by one piece of one instance.

        A piece is a part of a register or an output with at most 64 bits. The lowest bits come
        first.

        Yields
        ------
        source : int or None
            Number of the driving piece; None for a constant.
        shift : int
            Lowest bit of the range within the piece; for a constant, the value.
        bits : int
            Number of bits.
        at : int
            Lowest bit of the range within the net.
        instance : int
            Number of the driving instance within its module.
        """
        connections, at = self.model.connections, 0
        for driver, low, size, instance in connections.find_drivers(
            Part(net, 0, self._widths[net])
        ):
            inner = at
            for source, shift, bits in (
                connections.pieces_behind(driver, low, size) if driver else ()
            ):
                yield source, shift, bits, inner, instance
                inner += bits
            at += size

    def _chunk_count(self, net: str) -> int:
        """Return the number of 32-bit chunks of a net."""
        return -(-self._widths[net] // 32)

    def _add_taps(self, net: str) -> None:
        """Make the C++ library copy the value of a net into its array, in every cycle.

        Each copied bit range is one *tap*, a tuple of numbers in `_taps`. Constant bits need no
        tap: they are written into the array here once.
        """
        layout, value = self.model.layout, self._values[net]
        for source, shift, bits, at, instance in self._net_parts(net):
            if source is None:
                fixed = shift << at % 32
                for k in range(0, at % 32 + bits, 32):
                    value[at // 32 + k // 32] |= fixed >> k & 0xFFFFFFFF
            else:
                where = int(layout.piece_addresses(source, np.array(instance)))
                self._taps.append((where, layout.size[source], shift, bits, at,
                                   value.ctypes.data, 0))  # fmt: skip

    def keep_alive(self, array: np.ndarray) -> int:
        """Keep an array in memory as long as the session exists; returns its address."""
        array = np.ascontiguousarray(array)
        self._kept.append(array)
        return int(array.ctypes.data)

    def _pass_taps(self) -> None:
        """Pass all taps that were added since the last call of this method to the C++ library.

        A tap makes the library copy bits of a net into the array of the net in every cycle.
        """
        self.library.model_watch(self.handle, self._keep_numbers(self._taps), len(self._taps))
        self._taps = []

    def set_choices(self, job: Job) -> None:
        """Set the inputs for mode, length, root and operator to the choices of `job`.

        They hold for all following runs.
        """
        for name, value in job.inputs.items():
            self.inputs[name][0] = value

    def simulate_edges(
        self, edges: EdgeRequest, name: str = "model_play", *models: Any
    ) -> EdgeResult:
        """Simulate the requested clock edges, and return the requested output values.

        Parameters
        ----------
        edges : EdgeRequest
            Number of edges, and the input values at each edge.
        name : str
            C function that simulates the edges. Adapters give one of their own library.
        *models
            Arguments of that function before the `CTask`; by default the handle of this session.

        Raises
        ------
        OSError
            If the waveforms cannot be written.
        """
        rows = max([len(values) for values in edges.inputs.values()], default=0)
        columns = [np.zeros((rows, 0), np.uint32)]
        for net, values in edges.inputs.items():
            chunks = words_to_chunks(values, self._widths[net])
            columns.append(np.pad(chunks, ((0, rows - len(chunks)), (0, 0)), "edge"))
        places = [(self.inputs[net].ctypes.data, part.shape[1])
                  for net, part in zip(edges.inputs, columns[1:], strict=True)]  # fmt: skip
        outputs = [(self.net_address(net), self._chunk_count(net)) for net in edges.shows]
        ends = np.cumsum([0, *(chunks for _, chunks in outputs)])
        given, shown = np.hstack(columns), np.zeros((edges.most, ends[-1]), np.uint32)
        tables = [np.array(each, np.uint64) for each in (places, outputs)]
        task = CTask(
            rows=rows, inputs=tables[0].ctypes.data, input_count=len(places),
            given=given.ctypes.data, outputs=tables[1].ctypes.data, output_count=len(outputs),
            shown=shown.ctypes.data, busy=self.net_address(edges.busy) if edges.busy else None,
        )  # fmt: skip
        which = models or (ctypes.c_void_p(self.handle),)
        play = partial(getattr(self.library, name), *which, ctypes.byref(task))
        began = time.thread_time()
        passed = self.simulate_in_turns(play, edges.most, report=edges.report)
        seconds = time.thread_time() - began
        found = {net: words_from_chunks(shown[:passed, first:end], self._widths[net])
                 for net, first, end in zip(edges.shows, ends, ends[1:], strict=False)}  # fmt: skip
        return EdgeResult(passed, found, seconds)

    def simulate_in_turns(
        self,
        call: Callable[[ctypes.c_uint64], int],
        most: int | None = None,
        *,
        report: Callable[[int], object] | None = None,
    ) -> int:
        """Simulate clock edges in turns of about 0.1 s, so that an interrupt takes effect soon.

        Parameters
        ----------
        call : function of int -> int
            Simulates up to that many edges, and returns their number, which is smaller at the end.
        most : int, optional
            Largest number of edges.
        report : function of int, optional
            Called after each turn with the number of edges that have passed.

        Raises
        ------
        OSError
            If the waveforms cannot be written.
        """
        passed, some = 0, max(FIRST_TURN // len(self.now), 1)
        while True:
            asked = some if most is None else min(some, most - passed)
            began = time.perf_counter()
            done = call(ctypes.c_uint64(asked))
            passed += done
            if self._recorder:
                self._recorder.flush_or_raise()
            if report:
                report(passed)
            if done < asked or passed == most:
                return passed
            some = max(some // 2, 1) if time.perf_counter() - began > TURN else 2 * some

    def recompute_loops(self) -> None:
        """Make the library recompute all loops in the next cycle; call after direct writes.

        Why: the library computes only loops whose inputs have changed, and does not see direct
        writes into memories.
        """
        self.library.model_refresh(self.handle)

    def net_address(self, net: str) -> int:
        """Return the memory address of the array that `watch_net` returns, for C functions.

        Parameters
        ----------
        net : str
            Name of the net.
        """
        return int(self.watch_net(net).ctypes.data)

    def watch_net(self, net: str) -> NDArray[np.uint32]:
        """Return the array with the value of a net, in 32-bit chunks, the lowest first.

        From now on the library updates the array in every cycle.
        """
        if net not in self._values:
            self._values[net] = np.zeros(self._chunk_count(net) + 1, np.uint32)
            self._add_taps(net)
        self._pass_taps()
        return self._values[net]

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.model_close(self.handle)
