"""The driver of streams of a compiled model: one call of a library runs all traffic."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....errors import WorkFailed
from ....simulation.engines.calls import fields, from_chunks, to_chunks, watched
from .beats import Arrival, Log

if TYPE_CHECKING:
    from ....simulation.engines.base import Progress
    from ....simulation.engines.session import Session
    from .traffic import StreamTraffic

__all__ = ["run_compiled"]

#: Words that are kept of a stream beyond those that must come.
MORE = 16

#: Numbers of which a stall is a part: those of 32 bits.
ALL = 1 << 32


class CSignals(ctypes.Structure):
    """As `Signals` in ``streams.cc``."""

    _fields_ = fields(
        "valid* ready* data* keep* last* tag* chunks data_bits keep_chunks keep_bits tag_bits"
    )


class CSource(ctypes.Structure):
    """As `Source` in ``streams.cc``."""

    _fields_ = [("signals", CSignals), *fields("beats* count sent stall")]


class CSink(ctypes.Structure):
    """As `Sink` in ``streams.cc``."""

    _fields_ = [("signals", CSignals), *fields("beats* expected capacity count stall")]


class CStreamTask(ctypes.Structure):
    """As `StreamTask` in ``streams.cc``."""

    _fields_ = fields(
        "sources* source_count sinks* sink_count busy* cycles* runs* run_capacity run_count "
        "error* errors* error_capacity error_count patience settling seed clocks "
        "unsteady done stop file_error"
    )


def run_compiled(
    session: Session, traffic: StreamTraffic, progress: Progress | None
) -> tuple[Log, int]:
    """Run all traffic; returns what came, and the number of beats that were not taken."""
    netlist = session.model.netlist
    widths = netlist.inputs | netlist.outputs

    def signals_of(prefix: str, tag: str) -> CSignals:
        """The addresses of the signals of a stream, and their widths."""
        kinds = ("tvalid", "tready", "tdata", "tkeep", "tlast", tag)
        names = [f"{prefix}_{kind}" for kind in kinds]
        data, keep, tag_bits = (widths.get(names[k], 0) for k in (2, 3, 5))
        places = (session.address(name) if name in widths else None for name in names)
        return CSignals(*places, -(-data // 32), data, -(-keep // 32), keep, tag_bits)

    sources, sinks, rooms = list[CSource](), list[CSink](), list[np.ndarray]()
    for source in traffic.sources:
        signals, rows = signals_of(source.prefix, "tdest"), np.zeros((0, 3), np.uint32)
        if source.beats:
            columns = [to_chunks([[beat.word for beat in source.beats]], signals.data_bits)[0]]
            if signals.keep_bits:
                columns += [to_chunks([[beat.keep for beat in source.beats]], signals.keep_bits)[0]]
            columns.append(np.array([beat[1:3] for beat in source.beats]))
            rows = np.hstack(columns).astype(np.uint32)
        stall = round(source.stall * ALL)
        sources.append(CSource(signals, session.keep(rows), len(source.beats), 0, stall))
    for sink in traffic.sinks:
        signals, stall = signals_of(sink.prefix, "tid"), round(sink.stall * ALL)
        chunks = signals.chunks + signals.keep_chunks
        rooms.append(room := np.zeros((sink.expected + MORE, chunks + 3), np.uint32))
        sinks.append(CSink(signals, room.ctypes.data, sink.expected, len(room), 0, stall))
    c_sources, c_sinks = (CSource * len(sources))(*sources), (CSink * len(sinks))(*sinks)
    runs = np.zeros((sum(len(s.beats) for s in traffic.sources) + MORE, 2), np.uint32)
    errors = np.zeros(len(runs), np.uint32)
    task = CStreamTask(
        sources=ctypes.addressof(c_sources), source_count=len(sources),
        sinks=ctypes.addressof(c_sinks), sink_count=len(sinks),
        busy=session.address("busy"), cycles=session.address("cycles"),
        runs=runs.ctypes.data, run_capacity=len(runs),
        error=session.address("error"), errors=errors.ctypes.data, error_capacity=len(errors),
        patience=traffic.patience, settling=traffic.settling, seed=traffic.seed,
    )  # fmt: skip
    report = (lambda done: progress(done, traffic.beats)) if progress else None
    call = partial(session.library.model_run_streams, ctypes.c_void_p(session.handle))
    if watched(lambda task: call(ctypes.byref(task)), task, report):
        raise WorkFailed("Fabric must come to an end, not be stopped")
    log = Log(clocks=task.clocks)
    log.runs = [tuple(run) for run in runs[: task.run_count].tolist()]
    log.errors = errors[: task.error_count].tolist()
    for sink, made, room in zip(traffic.sinks, c_sinks, rooms, strict=True):
        came, signals = room[None, : min(made.count, made.capacity)], made.signals
        words, keeps, others = np.split(came, [signals.chunks, -3], axis=2)
        kept = [0] * came.shape[1]
        if signals.keep_bits:
            kept = from_chunks(keeps, signals.keep_bits)[0].tolist()
        beats = zip(
            from_chunks(words, signals.data_bits)[0].tolist(), kept, others[0].tolist(), strict=True
        )
        log.arrivals[sink.prefix] = [
            Arrival(word, bool(last), number, cycle, keep)
            for word, keep, (last, number, cycle) in beats
        ]
    if task.unsteady:
        log.unsteady = traffic.sinks[task.unsteady - 1].prefix
    return log, sum(source.count - source.sent for source in c_sources)
