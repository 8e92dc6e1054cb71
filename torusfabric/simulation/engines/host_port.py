"""The host port of C++ engines: one call of a library moves many words, or runs a collective."""

import contextlib
import ctypes
import enum
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ...errors import WorkFailed
from ...rtl.fabric import Fabric
from .base import PATIENCE, EngineRun, Job, Messages, Progress
from .words import Cells, PortWords, Words

__all__ = [
    "CTask",
    "PortRuns",
    "Step",
    "fields",
    "from_chunks",
    "to_chunks",
    "watched",
]


class Step(enum.IntEnum):
    """What a task does; as `Step` in ``drive.h``."""

    WRITE = 0
    RUN = 1
    READ = 2


def fields(names: str) -> list[tuple[str, Any]]:
    """The fields of a structure of C: numbers of 64 bits, and where a star follows, addresses."""
    kinds = {True: ctypes.c_void_p, False: ctypes.c_uint64}
    return [(name.rstrip("*"), kinds[name.endswith("*")]) for name in names.split()]


class CTask(ctypes.Structure):
    """Words to write or read through the host port, or a run; as `Task` in ``drive.h``."""

    _fields_ = fields(
        "step chunks latency patience count nodes* addresses* words* cycles edges clocks "
        "nanoseconds done stop file_error"
    )


#: A task of any library.
_Task = TypeVar("_Task", bound=ctypes.Structure)

#: The outcome of a task whose waves could not be written.
NO_FILE = 4

#: Runs a task; returns 0, or why it did not come to an end.
Call: TypeAlias = Callable[[CTask], int]


def to_chunks(words: Messages, width: int) -> np.ndarray:
    """Words as chunks of 32 bits, the lowest first.

    Parameters
    ----------
    width : int
        Bits of a word.

    Returns
    -------
    ndarray of uint32, shape (.., chunks)
    """
    chunks = -(-width // 32)
    if width <= 64:
        words = np.asarray(words, np.uint64)
        halves = words[..., None] >> np.arange(0, 32 * chunks, 32).astype(np.uint64)
        return np.ascontiguousarray(halves.astype(np.uint32))
    words = np.asarray(words, object)
    raw = b"".join(int(word).to_bytes(4 * chunks, "little") for word in words.ravel())
    return np.frombuffer(raw, "<u4").reshape(*words.shape, chunks).copy()


def from_chunks(chunks: np.ndarray, width: int) -> np.ndarray:
    """Chunks of 32 bits as words: uint64, or Python integers if they are wider.

    Parameters
    ----------
    chunks : ndarray of uint32, shape (.., chunks)

    Returns
    -------
    ndarray, shape (..)
    """
    if width <= 32:
        return chunks[..., 0].astype(np.uint64)
    if width <= 64:
        low, high = (chunks[..., k].astype(np.uint64) for k in (0, 1))
        return low | high << np.uint64(32)
    words, size = np.empty(chunks.shape[:-1], object), 4 * chunks.shape[-1]
    raw = np.ascontiguousarray(chunks, "<u4").tobytes()
    flat = [int.from_bytes(raw[k : k + size], "little") for k in range(0, len(raw), size)]
    words.ravel()[:] = flat
    return words


class PortRuns:
    """Runs of a fabric through the host port of a library.

    Parameters
    ----------
    call : function of (CTask) -> int
        Carries a task out; returns 0, or why it did not come to an end.
    cells : Cells, optional
        The words of memories, where these can be reached.
    total : int
        Words moved in all runs.
    """

    def __init__(
        self,
        call: Call,
        fabric: Fabric,
        *,
        cells: Cells | None = None,
        progress: Progress | None = None,
        total: int = 0,
    ) -> None:
        self._call, self._fabric, self._cells = call, fabric, cells
        self._progress, self._done, self._total = progress, 0, total
        self._clocks = 0
        self._read_latency = fabric.read_latency

    def run(self, words: Words, job: Job) -> EngineRun:
        """Load a message into every node, start, wait for done, and take what every node has.

        Raises
        ------
        OSError
            If the waves cannot be written.
        WorkFailed
            If the fabric does not come to an end.
        """
        self._clocks, before = 0, self._done
        self.load(words)
        self._advance(before + words.messages.size)
        task = self.collect(job)
        for asked in words.asked(self._cells):
            words.fill(asked, self._move(Step.READ, asked))
        self._advance(before + words.messages.size + words.received.size)
        return EngineRun(words.received, task.cycles, task.edges, self._clocks,
                         task.nanoseconds / 1e9, words.through_port, words.direct)  # fmt: skip

    def load(self, words: Words) -> None:
        """Load a message into every node."""
        written = words.put(self._cells)
        self._move(Step.WRITE, written, words.beats(written))

    def collect(self, job: Job) -> CTask:
        """Start, and wait for done."""
        expected = self._fabric.program.cycles(job.length, mode=job.mode)
        task = CTask(step=Step.RUN, patience=expected + PATIENCE)
        outcome = self._carry_out(task)
        if outcome:
            state = {1: "busy", 2: "idle"}.get(outcome, "stopped")
            raise WorkFailed(
                f"Fabric must be done {expected} edges after its start, "
                f"not {state} after {task.edges}"
            )
        return task

    def _move(self, step: Step, which: PortWords, words: np.ndarray | None = None) -> np.ndarray:
        """Write words through the port, or read them; returns them."""
        width = self._fabric.beat * self._fabric.width
        if words is None:
            chunks = np.empty((which.number, -(-width // 32)), np.uint32)
        else:
            chunks = to_chunks(words, width)
        nodes, addresses = (
            np.ascontiguousarray(part, np.uint32) for part in (which.nodes, which.addresses)
        )
        write, read = self._fabric.write_latency, self._read_latency
        task = CTask(
            step=step, chunks=chunks.shape[1], count=which.number,
            latency=write if step is Step.WRITE else read,
            nodes=nodes.ctypes.data, addresses=addresses.ctypes.data, words=chunks.ctypes.data,
        )  # fmt: skip
        if which.number and self._carry_out(task):
            raise WorkFailed("Words of the host port must all be moved, not left where they are")
        return from_chunks(chunks, width)

    def _carry_out(self, task: CTask) -> int:
        """Carry a task out, and report the words that it has moved."""
        outcome = watched(self._call, task, self._progress and self._moved)
        self._clocks += task.clocks
        return outcome

    def _moved(self, words: int) -> None:
        """Report words that a task has moved."""
        assert self._progress
        self._progress(self._done + words, self._total)

    def _advance(self, done: int) -> None:
        """Report so many words as moved."""
        self._done = done
        if self._progress:
            self._progress(done, self._total)


def watched(
    call: Callable[[_Task], int], task: _Task, progress: Callable[[int], object] | None
) -> int:
    """Call from a thread, so that this one can report the words moved, and be interrupted.

    The task has ``done``, the words moved, and ``stop``, which asks it to end. Raises `OSError` if
    waves cannot be written.
    """
    if progress is None and threading.current_thread() is not threading.main_thread():
        return _written(call(task), task)
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
    return _written(outcome.result(), task)


def _written(outcome: int, task: ctypes.Structure) -> int:
    """An outcome, if waves could be written."""
    if outcome == NO_FILE:
        raise OSError(task.file_error, os.strerror(task.file_error))
    return outcome


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
