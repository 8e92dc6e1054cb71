"""The host port of C++ engines: one call of a library moves many words, or runs a collective."""

import ctypes
import enum
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ...errors import WorkFailed
from ...rtl.fabric import Fabric
from .base import PATIENCE, EngineRun, Job, Progress
from .calls import fields, from_chunks, to_chunks, watched
from .words import Cells, PortWords, Words

__all__ = ["CTask", "PortRuns", "Step"]


class Step(enum.IntEnum):
    """What a task does; as `Step` in ``drive.h``."""

    WRITE = 0
    RUN = 1
    READ = 2


class CTask(ctypes.Structure):
    """Words to write or read through the host port, or a run; as `Task` in ``drive.h``."""

    _fields_ = fields(
        "step chunks latency patience count nodes* addresses* words* cycles edges clocks "
        "nanoseconds done stop file_error"
    )


#: Runs a task; returns 0, or why it did not come to an end.
Call: TypeAlias = Callable[[CTask], int]


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
        task = CTask(
            step=step, chunks=chunks.shape[1], count=which.number,
            latency=self._fabric.hold if step is Step.WRITE else self._read_latency,
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
