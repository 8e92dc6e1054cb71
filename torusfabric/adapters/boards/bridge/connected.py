"""Several boards that are connected: a fabric that is run over all of their bridges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....errors import InputError, WorkFailed
from ....fpga.bridge.board import ConnectedBoard, taken
from ....fpga.bridge.bus_access import BusAccess
from ....simulation.engines import EngineRun, Job
from ....simulation.engines.base import Messages
from ....simulation.engines.words import as_words
from ..drive import SystemReport, jobs_of, run_jobs
from ..hardware import Block

__all__ = ["WITHDRAW", "ConnectedBoards"]

#: The bit of the register `abort` that takes a start back.
WITHDRAW = 1 << 1

#: Runs where nobody says how many.
JOBS = 4


class _Runs:
    """Runs on all boards."""

    name = "bridge"

    #: What is changed on links cannot be known.
    changed = 0

    def __init__(self, boards: Sequence[ConnectedBoard]) -> None:
        self._boards, self.cycles, self._errors = boards, list[int](), list[int]()
        #: What each node received in the last run.
        self.words: NDArray[Any] = np.zeros(0, int)

    def carry_out(self, messages: Messages, job: Job) -> EngineRun:
        """Start all boards, one after another, and wait until all are done."""
        engines = [board.engine for board in self._boards]
        sent = as_words(engines[0].fabric, messages)
        for engine in engines:
            engine.send(sent, job)
        for engine in engines:
            engine.start(job)
        try:
            self._errors = [engine.wait(job) for engine in engines]
        except WorkFailed:
            # Boards that still wait would refuse the next start.
            for engine in engines:
                engine.write("abort", WITHDRAW)
            raise
        self.cycles = self.said("cycles")
        self.words = np.bitwise_or.reduce([engine.received(job) for engine in engines])
        return EngineRun(self.words, self.cycles[0], self.cycles[0], self.cycles[0], 0.0)

    def said(self, name: str) -> list[int]:
        """What a register of each board shows."""
        if name == "error":
            return self._errors
        if name == "attempts":
            return [status >> 8 & 0xFF for status in self.said("status")]
        return [board.engine.shown(name) for board in self._boards]


class ConnectedBoards:
    """A fabric on several boards, each behind its bridge; `torusfabric.connect` makes it.

    Parameters
    ----------
    blocks : sequence of Block
        What must be on each, whose link ports lead to the others.

    Attributes
    ----------
    fabric : Fabric
        The whole.

    Raises
    ------
    InputError
        If there are too few ports, or too many.
    WorkFailed
        If a board has no fabric, or another block.
    """

    def __init__(self, blocks: Sequence[Block], accesses: Sequence[BusAccess]) -> None:
        self.system = blocks[0].system
        self.fabric = self.system.fabric
        if len(accesses) != len(blocks):
            raise InputError(
                f"Ports must be {len(blocks)}, one for each of {self.system.boards} boards, not "
                f"{len(accesses)}"
            )
        pairs = zip(blocks, accesses, strict=True)
        self.boards = [ConnectedBoard(block, access) for block, access in pairs]
        self._runs = _Runs(self.boards)

    @property
    def name(self) -> str:
        """The names of the ports."""
        return ",".join(board.access.name for board in self.boards)

    def run(
        self,
        jobs: Sequence[Job] | int | None = None,
        *,
        seed: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> SystemReport:
        """As `ConnectedBoard.run`, with the cycles of every board; by default jobs are drawn.

        Examples
        --------
        >>> import torusfabric as tf
        >>> boards = tf.connect("sim:4 allgather --boards 2 --width 8")
        >>> report = boards.run([tf.Job(length=2)])
        >>> report.passed, report.words_checked, len(set(report.jobs[0].cycles))
        (True, 32, 1)
        """
        drawn = jobs_of(self.system, jobs or JOBS, seed)
        return run_jobs(self.system, self._runs, drawn, seed=seed, progress=progress)

    def carry(self, words: ArrayLike, job: Job | None = None) -> tuple[NDArray[Any], SystemReport]:
        """As `ConnectedBoard.carry`, of the nodes of all boards."""
        job, own = taken(self.fabric, np.asarray(words), job or Job())
        report = run_jobs(self.system, self._runs, [job], messages=own)
        return self._runs.words, report

    def __repr__(self) -> str:
        return f"<ConnectedBoards {self.name}: {self.fabric.program!r}>"
