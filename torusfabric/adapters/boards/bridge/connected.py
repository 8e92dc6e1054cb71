"""Several boards that are connected: a fabric that is run over all of their bridges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....errors import InputError, WorkFailed
from ....fpga.bridge.board import ConnectedBoard, taken
from ....fpga.bridge.bus_access import BusAccess
from ....simulation.engines import EngineRun, Job
from ....simulation.engines.base import Messages
from ....simulation.engines.cells import as_words
from ..drive import Outcome, SystemReport, jobs_of, run_jobs
from ..hardware import Block

__all__ = ["WITHDRAW", "ConnectedBoards"]

#: The bit of the register `abort` that takes a start back.
WITHDRAW = 1 << 1

#: Runs where nobody says how many.
JOBS = 4


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
        #: The words that each node received in the last run.
        self._words: NDArray[Any] = np.zeros(0, int)

    @property
    def name(self) -> str:
        """The names of the ports."""
        return ",".join(board.access.name for board in self.boards)

    @property
    def loaded(self) -> int | None:
        """The beginning of the digest of the program that all boards hold; 0 if they differ."""
        found = {board.loaded for board in self.boards}
        return found.pop() if len(found) == 1 else 0

    def load(self, image: Any) -> None:
        """Load an image into all boards, each of which keeps the tables of its own nodes.

        Raises
        ------
        InputError
            If it is for another fabric, or a run takes too long for these boards.
        WorkFailed
            If a board does not take it.

        Examples
        --------
        >>> import torusfabric as tf
        >>> boards = tf.connect("sim:2 allgather --boards 2 --width 8 --max-flits 1 --tables ram")
        >>> boards.load(tf.image(boards.fabric, "alltoall"))
        >>> boards.run([tf.Job()]).passed
        True
        """
        system = replace(self.system, fabric=self.fabric.holding(image))
        for board in self.boards:
            board.write_image(image)
        self.system, self.fabric = system, system.fabric
        self.boards = [
            ConnectedBoard(Block(system, number, links=board.fabric.links), board.access)
            for number, board in enumerate(self.boards)
        ]

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
        return run_jobs(self.system, self._carry_out, drawn, seed=seed, progress=progress)

    def carry(self, words: ArrayLike, job: Job | None = None) -> tuple[NDArray[Any], SystemReport]:
        """As `ConnectedBoard.carry`, of the nodes of all boards."""
        job, own = taken(self.fabric, np.asarray(words), job or Job())
        report = run_jobs(self.system, self._carry_out, [job], messages=own)
        return self._words, report

    def _carry_out(self, messages: Messages, job: Job) -> Outcome:
        """Start all boards, one after another, and wait until all are done."""
        engines = [board.engine for board in self.boards]
        sent = as_words(self.fabric, messages)
        for engine in engines:
            engine.send(sent, job)
        for engine in engines:
            engine.start(job)
        try:
            errors = [engine.wait(job) for engine in engines]
        except WorkFailed:
            # Boards that still wait would refuse the next start.
            for engine in engines:
                engine.write("abort", WITHDRAW)
            raise
        cycles, failed, status = (
            [engine.shown(name) for engine in engines] for name in ("cycles", "failed", "status")
        )
        self._words = np.bitwise_or.reduce([engine.received(job) for engine in engines])
        run = EngineRun(self._words, cycles[0], cycles[0], cycles[0], 0.0)
        return Outcome(
            "bridge", run, cycles, errors, failed, [value >> 8 & 0xFF for value in status]
        )

    def __repr__(self) -> str:
        return f"<ConnectedBoards {self.name}: {self.fabric.program!r}>"
