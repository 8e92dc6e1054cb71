"""The driver of streams for a compiled model: one call of a library simulates all traffic.

The library, ``streams.cc``, has sources and sinks of its own. This module lays out their beats as
arrays and reads the results back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....simulation.engines.calls import uint64_fields, words_from_chunks, words_to_chunks
from .beats import SIGNALS, Beat, Sink, Source, StreamLog

if TYPE_CHECKING:
    from ....simulation.engines.base import Progress
    from ....simulation.engines.session import Session
    from .traffic import StreamTraffic

__all__ = ["run_compiled_traffic"]

#: Places in the arrays for words beyond the expected ones, so that excess words are noticed.
SPARE_BEATS = 16

#: The scale of a stall probability: a number of 32 bits.
STALL_SCALE = 1 << 32


class CStream(ctypes.Structure):
    """The C struct ``Stream`` of ``streams.cc``: one stream with the beats that it moves."""

    _fields_ = uint64_fields("valid* ready* fields* field_count beats* row capacity passed stall")


class CStreamTask(ctypes.Structure):
    """The C struct ``StreamTask`` of ``streams.cc``: all streams of a simulation, and results."""

    _fields_ = uint64_fields(
        "sources* source_count sinks* sink_count busy* cycles* runs* run_capacity run_count "
        "error* errors* error_capacity error_count beats patience settling seed clocks "
        "unsteady done"
    )


class CompiledStream:
    """The beats of one sender or receiver, as an array that the C++ library reads or fills.

    The array has a row for each beat, of numbers with 32 bits.

    ::

        row of a source:  | tdata | tlast | tkeep | tdest |
        row of a sink:    | tdata | tlast | tkeep | tid   | cycle |

    A signal has as many numbers as its bits need, the lowest first; a signal that the stream lacks
    has none.

    Parameters
    ----------
    session : Session
        The running model of the fabric.
    end : Source or Sink
        The sender (source) or receiver (sink).
    sent : sequence of Beat
        The beats to send; empty for a sink.
    room : int
        Number of beats that a sink can store, each in a row of the array; 0 for a source.

    Attributes
    ----------
    in_c : CStream
        The C struct with the addresses of the array and of the signals.
    """

    def __init__(
        self, session: Session, end: Source | Sink, sent: Sequence[Beat] = (), room: int = 0
    ) -> None:
        widths = session.model.netlist.inputs | session.model.netlist.outputs
        self._bits = {name: widths[port] for name in SIGNALS
                      if (port := f"{end.prefix}_{name}") in widths}  # fmt: skip
        self._chunks = [-(-bits // 32) for bits in self._bits.values()]
        self._rows = np.zeros((room, sum(self._chunks) + 1), np.uint32)
        if sent:
            columns = (
                words_to_chunks([getattr(beat, SIGNALS[name]) for beat in sent], bits)
                for name, bits in self._bits.items()
            )
            self._rows = np.hstack([*columns])
        names = ("tvalid", "tready", *self._bits)
        valid, ready, *values = (session.net_address(f"{end.prefix}_{name}") for name in names)
        # The struct ``Field`` of ``streams.cc`` consists of numbers and addresses of 64 bits.
        listed = np.array([values, self._chunks, [*self._bits.values()]], np.uint64).T
        self.in_c = CStream(
            valid, ready, session.keep_alive(listed), len(listed), self._rows.ctypes.data,
            sum(self._chunks), len(self._rows), 0, round(end.stall * STALL_SCALE),
        )  # fmt: skip

    def received_beats(self, count: int) -> list[Beat]:
        """Return the first `count` beats that were received."""
        rows = self._rows[:count]
        *columns, cycles = np.split(rows, np.cumsum(self._chunks), axis=1)
        found = {"cycle": cycles[:, 0].tolist()}
        for column, (name, bits) in zip(columns, self._bits.items(), strict=True):
            found[SIGNALS[name]] = words_from_chunks(column, bits).tolist()
        return [*map(Beat, *(found.get(name, [0] * len(rows)) for name in Beat._fields))]


def run_compiled_traffic(
    session: Session, traffic: StreamTraffic, progress: Progress | None
) -> tuple[StreamLog, int]:
    """Simulate all beats with a compiled model; return the log, and the number of unsent beats.

    `session` is the running model. `progress`, if given, is called with the number of transferred
    beats and the number of all beats.
    """
    sources = [CompiledStream(session, each, each.beats) for each in traffic.sources]
    sinks = [
        CompiledStream(session, each, room=each.expected + SPARE_BEATS) for each in traffic.sinks
    ]
    c_sources, c_sinks = (
        (CStream * len(made))(*(each.in_c for each in made)) for made in (sources, sinks)
    )
    runs = np.zeros((sum(len(each.beats) for each in traffic.sources) + SPARE_BEATS, 2), np.uint32)
    errors = np.zeros(len(runs), np.uint32)
    task = CStreamTask(
        sources=ctypes.addressof(c_sources), source_count=len(sources),
        sinks=ctypes.addressof(c_sinks), sink_count=len(sinks),
        busy=session.net_address("busy"), cycles=session.net_address("cycles"),
        runs=runs.ctypes.data, run_capacity=len(runs),
        error=session.net_address("error"), errors=errors.ctypes.data, error_capacity=len(errors),
        beats=traffic.n_beats, patience=traffic.patience, settling=traffic.settling,
        seed=traffic.seed,
    )  # fmt: skip
    library, report = session.library, None
    if progress:
        report = lambda _: progress(task.done, traffic.n_beats)
    library.streams_open.restype = ctypes.c_void_p
    opened = ctypes.c_void_p(library.streams_open(ctypes.c_void_p(session.handle),
                                                  ctypes.byref(task)))  # fmt: skip
    try:
        session.simulate_in_turns(partial(library.streams_run, opened), report=report)
    finally:
        library.streams_close(opened)
    log = StreamLog(clocks=task.clocks)
    log.runs = [tuple(run) for run in runs[: task.run_count].tolist()]
    log.errors = errors[: task.error_count].tolist()
    for sink, made, c_sink in zip(traffic.sinks, sinks, c_sinks, strict=True):
        log.arrivals[sink.prefix] = made.received_beats(c_sink.passed)
    if task.unsteady:
        log.unsteady = traffic.sinks[task.unsteady - 1].prefix
    return log, sum(source.capacity - source.passed for source in c_sources)
