"""The host port of C++ engines: one call of a library moves all words of a collective."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeAlias, TypeVar

import numpy as np

from ...errors import WorkFailed
from ...rtl.fabric import Fabric
from .base import (
    PATIENCE,
    EngineRun,
    Job,
    Messages,
    PhaseTimes,
    Progress,
    gathered,
    spread,
    words_moved,
)

__all__ = ["NO_FILE", "CTask", "from_chunks", "measure_tasks", "run_task", "to_chunks", "watched"]


class CTask(ctypes.Structure):
    """What to load, run and read; as `Task` in ``drive.h``."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("chunks", "send_base", "send_words", "recv_base",
                                               "recv_words", "latency", "write_latency",
                                               "patience")),
        ("send", ctypes.c_void_p),
        ("recv", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("cycles", "edges", "clocks", "load_ns", "run_ns",
                                               "read_ns", "done", "stop", "file_error")),
    ]  # fmt: skip


#: A task of any library.
_Task = TypeVar("_Task", bound=ctypes.Structure)

#: The outcome of a task whose waves could not be written.
NO_FILE = 4

#: Runs a task; returns 0, or why it did not come to an end.
Call: TypeAlias = Callable[[CTask], int]


def to_chunks(messages: Messages, width: int) -> np.ndarray:
    """Words as chunks of 32 bits, the lowest first.

    Parameters
    ----------
    messages : sequence of (sequence of int)
    width : int
        Bits of a word.

    Returns
    -------
    ndarray of uint32, shape (nodes, words, chunks)
    """
    chunks = -(-width // 32)
    if width <= 64:
        words = np.asarray(messages, np.uint64)
        halves = words[..., None] >> np.arange(0, 32 * chunks, 32).astype(np.uint64)
        return np.ascontiguousarray(halves.astype(np.uint32))
    size = 4 * chunks
    raw = b"".join(int(word).to_bytes(size, "little") for row in messages for word in row)
    return np.frombuffer(raw, "<u4").reshape(len(messages), -1, chunks).copy()


def from_chunks(chunks: np.ndarray, width: int) -> np.ndarray:
    """Chunks of 32 bits as words: uint64, or Python integers if they are wider.

    Parameters
    ----------
    chunks : ndarray of uint32, shape (nodes, words, chunks)
    width : int

    Returns
    -------
    ndarray, shape (nodes, words)
    """
    if width <= 32:
        return chunks[..., 0].astype(np.uint64)
    if width <= 64:
        low, high = (chunks[..., k].astype(np.uint64) for k in (0, 1))
        return low | high << np.uint64(32)
    words, size = np.empty(chunks.shape[:2], object), 4 * chunks.shape[2]
    raw = np.ascontiguousarray(chunks, "<u4").tobytes()
    flat = [int.from_bytes(raw[k : k + size], "little") for k in range(0, len(raw), size)]
    words.ravel()[:] = flat
    return words


def run_task(
    call: Call,
    fabric: Fabric,
    messages: Messages,
    job: Job,
    *,
    progress: Progress | None = None,
    done: int = 0,
    total: int | None = None,
) -> EngineRun:
    """Run a collective.

    Parameters
    ----------
    call : function of (CTask) -> int
        Runs it; returns 0, or why it did not come to an end.
    fabric : Fabric
    messages : sequence of (sequence of int)
    job : Job
    progress : function of (done, total), optional
    done, total : int
        Words moved before, and in all.

    Returns
    -------
    EngineRun

    Raises
    ------
    OSError
        If the waves cannot be written.
    WorkFailed
        If the fabric does not come to an end.
    """
    layout, nodes = fabric.layouts[job.mode or 0], fabric.nodes
    send = to_chunks(spread(fabric, messages, job), fabric.width)
    expected = fabric.program.cycles(job.length, mode=job.mode)
    recv = np.empty((nodes, layout.recv_words, send.shape[2]), np.uint32)
    task = CTask(
        chunks=send.shape[2], send_base=layout.send_base, send_words=layout.send_words,
        recv_base=layout.recv_base, recv_words=layout.recv_words, latency=fabric.read_latency,
        write_latency=fabric.write_latency, patience=expected + PATIENCE,
        send=send.ctypes.data, recv=recv.ctypes.data,
    )  # fmt: skip
    words = total or words_moved(fabric)
    outcome = watched(call, task, progress and (lambda moved: progress(done + moved, words)))
    if outcome == NO_FILE:
        raise OSError(task.file_error, os.strerror(task.file_error))
    if outcome:
        state = {1: "busy", 2: "idle"}.get(outcome, "stopped")
        raise WorkFailed(
            f"Fabric must be done {expected} edges after its start, not {state} after {task.edges}"
        )
    phases = PhaseTimes(task.load_ns / 1e9, task.run_ns / 1e9, task.read_ns / 1e9)
    received = gathered(fabric, from_chunks(recv, fabric.width), job)
    return EngineRun(received, task.cycles, task.edges, task.clocks, phases)


def measure_tasks(call: Call, fabric: Fabric, runs: int) -> tuple[int, float]:
    """Run collectives on whatever is in memory; returns all cycles, and seconds."""
    cycles, spent = 0, 0
    for _ in range(runs):
        task = CTask(chunks=1, patience=fabric.predicted_cycles + PATIENCE)
        if watched(call, task, None):
            raise WorkFailed(
                f"Fabric must be done {fabric.predicted_cycles} edges after its start, not later"
            )
        cycles, spent = cycles + task.edges, spent + task.run_ns
    return cycles, spent / 1e9


def watched(
    call: Callable[[_Task], int], task: _Task, progress: Callable[[int], object] | None
) -> int:
    """Call from a thread, so that this one can report the words moved, and be interrupted.

    The task has ``done``, the words moved, and ``stop``, which asks it to end.
    """
    if progress is None and threading.current_thread() is not threading.main_thread():
        return call(task)
    outcome: Future[int] = Future()
    try:
        threading.Thread(target=_carry_out, args=(call, task, outcome)).start()
        over = False
        # Reported at least once, even if it is over before this thread looks for the first time.
        while not over:
            over = bool(wait([outcome], 0.1).done)
            if progress:
                progress(task.done)
    finally:
        # The task's memory may go only once nothing works in it any more, whatever comes meanwhile.
        while not outcome.done():
            with contextlib.suppress(KeyboardInterrupt):
                task.stop = 1
                outcome.cancel()  # where it has not begun
                wait([outcome])
    return outcome.result()


def _carry_out(call: Callable[[_Task], int], task: _Task, outcome: "Future[int]") -> None:
    """Call, and note the outcome: unlike the end of a thread, it is not taken for there too soon.

    A `threading.Thread.join` that an interrupt ends may mark the thread as stopped.
    """
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(call(task))
    except BaseException as error:
        outcome.set_exception(error)
