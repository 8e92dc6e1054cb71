"""Calls of libraries in C: their structures, words as they have them, and how long calls are made.

A call of a library may take long. It is made in a thread, so that the one that waits for it can
report how far it is, and be interrupted.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

import numpy as np

from .base import Messages

__all__ = ["fields", "from_chunks", "to_chunks", "watched"]

#: A task of any library.
_Task = TypeVar("_Task", bound=ctypes.Structure)


def fields(names: str) -> list[tuple[str, Any]]:
    """The fields of a structure of C: numbers of 64 bits, and where a star follows, addresses."""
    kinds = {True: ctypes.c_void_p, False: ctypes.c_uint64}
    return [(name.rstrip("*"), kinds[name.endswith("*")]) for name in names.split()]


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


def watched(
    call: Callable[[_Task], int], task: _Task, progress: Callable[[int], object] | None
) -> int:
    """Call from a thread, so that this one can report how far it is, and be interrupted.

    The task has ``done``, a number that grows, and ``stop``, which asks it to end.
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
