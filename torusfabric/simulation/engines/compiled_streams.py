"""Streams in the compiled simulation: one call of a library carries out all traffic."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import WorkFailed
from ...rtl.fabric import Fabric
from .base import Progress
from .calls import fields, from_chunks, to_chunks, watched
from .session import Session
from .traffic import Arrival, Beat, Log, Sink, Source, Traffic, check_end

__all__ = ["run_streams"]

#: Words that are kept of a stream beyond those that must come.
MORE = 16

#: Numbers of which a stall is a part: those of 32 bits.
ALL = 1 << 32


class CSignals(ctypes.Structure):
    """As `Signals` in ``streams.h``."""

    _fields_ = fields(
        "valid* ready* data* keep* last* tag* chunks data_bits keep_chunks keep_bits tag_bits"
    )


class CSource(ctypes.Structure):
    """As `Source` in ``streams.h``."""

    _fields_ = [("signals", CSignals), *fields("beats* count sent stall")]


class CSink(ctypes.Structure):
    """As `Sink` in ``streams.h``."""

    _fields_ = [("signals", CSignals), *fields("beats* expected capacity count stall")]


class CStreamTask(ctypes.Structure):
    """As `StreamTask` in ``streams.h``."""

    _fields_ = fields(
        "sources* source_count sinks* sink_count busy* cycles* runs* run_capacity run_count "
        "error* errors* error_capacity error_count patience settling seed clocks "
        "unsteady done stop file_error"
    )


def _chunks(bits: int) -> int:
    """Chunks of 32 bits."""
    return -(-bits // 32)


def run_streams(
    session: Session, fabric: Fabric, traffic: Traffic, progress: Progress | None
) -> Log:
    """Carry out all traffic; see `Engine.stream`."""
    made = _Task(session, fabric, traffic)
    task = made.task
    report = (lambda done: progress(done, traffic.beats)) if progress else None
    if watched(session.run_streams, task, report):
        raise WorkFailed("Fabric must come to an end, not be stopped")
    log = made.log()
    check_end(traffic, log, unsent=made.unsent)
    return log


class _Task:
    """All traffic as C has it, and what has come of it."""

    def __init__(self, session: Session, fabric: Fabric, traffic: Traffic) -> None:
        self._session, self._traffic = session, traffic
        self._widths = fabric.netlist.inputs | fabric.netlist.outputs
        sources = [self._source(source) for source in traffic.sources]
        self._received = [self._room(sink) for sink in traffic.sinks]
        sinks = [
            CSink(self._signals(sink.prefix, "tid"), room.ctypes.data, sink.expected, len(room), 0,
                  round(sink.stall * ALL))
            for sink, room in zip(traffic.sinks, self._received, strict=True)
        ]  # fmt: skip
        self._sources = (CSource * len(sources))(*sources)
        self._sinks = (CSink * len(sinks))(*sinks)
        self._runs = np.zeros((sum(len(s.beats) for s in traffic.sources) + MORE, 2), np.uint32)
        self._errors = np.zeros(len(self._runs), np.uint32)
        self.task = CStreamTask(
            sources=ctypes.addressof(self._sources), source_count=len(sources),
            sinks=ctypes.addressof(self._sinks), sink_count=len(sinks),
            busy=session.address("busy"), cycles=session.address("cycles"),
            runs=self._runs.ctypes.data, run_capacity=len(self._runs),
            error=session.address("error"), errors=self._errors.ctypes.data,
            error_capacity=len(self._errors),
            patience=traffic.patience, settling=traffic.settling, seed=traffic.seed,
        )  # fmt: skip

    @property
    def unsent(self) -> int:
        """Beats that were not taken."""
        return sum(source.count - source.sent for source in self._sources)

    def log(self) -> Log:
        """What has come."""
        task, traffic = self.task, self._traffic
        log = Log(clocks=task.clocks)
        log.runs = [tuple(run) for run in self._runs[: task.run_count].tolist()]
        log.errors = self._errors[: task.error_count].tolist()
        for sink, made, room in zip(traffic.sinks, self._sinks, self._received, strict=True):
            count = min(made.count, made.capacity)
            log.arrivals[sink.prefix] = self._arrivals(sink.prefix, room[:count])
        if task.unsteady:
            log.unsteady = traffic.sinks[task.unsteady - 1].prefix
        return log

    def _arrivals(self, prefix: str, rows: np.ndarray) -> list[Arrival]:
        """Words that have come, given in chunks."""
        if not len(rows):
            return []
        bits, keep_bits = self._bits(prefix)
        chunks = _chunks(bits)
        words = from_chunks(rows[None, :, :chunks], bits)[0].tolist()
        keeps: list[int] = [0] * len(rows)
        if keep_bits:
            keeps = from_chunks(rows[None, :, chunks:-3], keep_bits)[0].tolist()
        others = rows[:, -3:].tolist()
        return [
            Arrival(word, bool(last), number, cycle, keep)
            for word, keep, (last, number, cycle) in zip(words, keeps, others, strict=True)
        ]

    def _bits(self, prefix: str) -> tuple[int, int]:
        """Bits of the data of a stream, and bytes of which it says whether they are kept."""
        return self._widths[f"{prefix}_tdata"], self._widths.get(f"{prefix}_tkeep", 0)

    def _source(self, source: Source) -> CSource:
        signals = self._signals(source.prefix, "tdest")
        beats = self._session.keep(self._rows(source.beats, *self._bits(source.prefix)))
        return CSource(signals, beats, len(source.beats), 0, round(source.stall * ALL))

    def _room(self, sink: Sink) -> np.ndarray:
        """Room for the words of a stream."""
        chunks = sum(map(_chunks, self._bits(sink.prefix)))
        return np.zeros((sink.expected + MORE, chunks + 3), np.uint32)

    def _signals(self, prefix: str, tag: str) -> CSignals:
        """Where the signals of a stream are."""
        kinds = ("tvalid", "tready", "tdata", "tkeep", "tlast", tag)
        names = {name: f"{prefix}_{name}" for name in kinds}
        places: dict[str, Any] = {
            name: self._session.address(port) if port in self._widths else None
            for name, port in names.items()
        }
        bits, keep_bits = self._bits(prefix)
        return CSignals(
            places["tvalid"], places["tready"], places["tdata"], places["tkeep"], places["tlast"],
            places[tag], _chunks(bits), bits, _chunks(keep_bits), keep_bits,
            self._widths.get(names[tag], 0),
        )  # fmt: skip

    @staticmethod
    def _rows(beats: Sequence[Beat], width: int, keep_bits: int) -> np.ndarray:
        """Beats as C has them."""
        if not beats:
            return np.zeros((0, 3), np.uint32)
        columns = [to_chunks([[beat.word for beat in beats]], width)[0]]
        if keep_bits:
            columns.append(to_chunks([[beat.keep for beat in beats]], keep_bits)[0])
        columns.append(np.array([beat[1:3] for beat in beats]))
        return np.hstack(columns).astype(np.uint32)
