"""A fabric on several connected boards, run through the bridge of each board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....errors import InputError, WorkFailed
from ....fpga.bridge.board import ConnectedBoard, job_for_words
from ....fpga.bridge.bus_access import BusAccess
from ....simulation.engines import EngineRun, Job
from ....simulation.engines.base import Messages
from ....simulation.engines.cells import as_words
from ..drive import RunOutcome, SystemReport, make_jobs, run_jobs
from ..hardware import Block

__all__ = ["WITHDRAW_BIT", "ConnectedBoards"]

#: Bit of the register `abort` that withdraws a start.
WITHDRAW_BIT = 1 << 1

#: Default number of random runs.
DEFAULT_JOBS = 4


class ConnectedBoards:
    """A fabric on several boards, each behind its bridge; `torusfabric.connect` makes it.

    Parameters
    ----------
    blocks : sequence of Block
        Expected fabric of each board (a block of the whole), with links to the other boards.
    accesses : sequence of BusAccess
        Open bridge to each board, in the order of the blocks.

    Attributes
    ----------
    system : BoardSystem
        The fabric on all boards.
    fabric : Fabric
        The same fabric on one chip.
    boards : list of ConnectedBoard
        The boards, each with its own block.

    Raises
    ------
    InputError
        If the number of bridges differs from the number of boards.
    WorkFailed
        If a board has no fabric, or a different block.
    """

    def __init__(self, blocks: Sequence[Block], accesses: Sequence[BusAccess]) -> None:
        self.system = blocks[0].system
        self.fabric = self.system.fabric
        if len(accesses) != len(blocks):
            raise InputError(
                f"Ports must be {len(blocks)}, one for each of {self.system.boards} boards and "
                f"joined by commas, not {len(accesses)}"
            )
        pairs = zip(blocks, accesses, strict=True)
        self.boards = [ConnectedBoard(block, access) for block, access in pairs]
        #: The words that each node received in the last run.
        self._words: NDArray[Any] = np.zeros(0, int)

    @property
    def name(self) -> str:
        """Names of the bridges, separated by commas."""
        return ",".join(board.access.name for board in self.boards)

    @property
    def loaded(self) -> int | None:
        """First 32 bits of the digest of the program that all boards have loaded.

        The result is 0 if boards differ, and None if their tables are fixed.
        """
        found = {board.loaded for board in self.boards}
        return found.pop() if len(found) == 1 else 0

    def load(self, image: Any) -> None:
        """Load an image into all boards. Each board keeps the tables of its own nodes.

        Parameters
        ----------
        image : Image
            Tables for the whole fabric.

        Raises
        ------
        InputError
            If the image is for another fabric, or a run takes too long for these boards.
        WorkFailed
            If a board refuses the image.

        Examples
        --------
        A fabric on two boards, built for an all-gather, runs an all-to-all.

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
        """Run jobs on all boards, and check every received word and the cycles of every board.

        Parameters
        ----------
        jobs : sequence of Job or int, optional
            Runs to execute, or a number of random runs; by default 4 random runs.
        seed : int
            Seed of random jobs and payloads.
        progress : function of (done, total), optional
            Called after each run.

        Returns
        -------
        SystemReport
            Result of each run, and totals.

        Examples
        --------
        Four nodes receive four messages of two words, and both boards count the same cycles.

        >>> import torusfabric as tf
        >>> boards = tf.connect("sim:4 allgather --boards 2 --width 8")
        >>> report = boards.run([tf.Job(length=2)])
        >>> report.passed, report.words_checked, len(set(report.jobs[0].cycles))
        (True, 32, 1)
        """
        drawn = make_jobs(self.system, jobs or DEFAULT_JOBS, seed)
        return run_jobs(self.system, self._execute, drawn, seed=seed, progress=progress)

    def carry(self, words: ArrayLike, job: Job | None = None) -> tuple[NDArray[Any], SystemReport]:
        """Execute one run on given words of all nodes, and return the received words and a report.

        Parameters
        ----------
        words : array_like
            Words that the nodes of the whole torus send, shape (nodes, words).
        job : Job, optional
            Choices of the run (mode, length, root, operator). By default the length follows from
            the number of words.
        """
        job, own = job_for_words(self.fabric, np.asarray(words), job or Job())
        report = run_jobs(self.system, self._execute, [job], messages=own)
        return self._words, report

    def _execute(self, messages: Messages, job: Job) -> RunOutcome:
        """Write the messages of all nodes, start all boards in turn, and read the results.

        `messages` has the message of each node of the torus, and `job` the choices of the run.
        """
        engines = [board.engine for board in self.boards]
        sent = as_words(self.fabric, messages)
        for engine in engines:
            engine.write_messages(sent, job)
        for engine in engines:
            engine.start(job)
        try:
            errors = [engine.wait_for_end(job) for engine in engines]
        except WorkFailed:
            # A board that still waits would refuse the next start: withdraw this one.
            for engine in engines:
                engine.write_register("abort", WITHDRAW_BIT)
            raise
        cycles, failed, status = (
            [engine.read_register(name) for engine in engines]
            for name in ("cycles", "failed", "status")
        )
        self._words = np.bitwise_or.reduce([engine.read_messages(job) for engine in engines])
        run = EngineRun(self._words, cycles[0], cycles[0], cycles[0], 0.0)
        return RunOutcome(
            "bridge", run, cycles, errors, failed, [value >> 8 & 0xFF for value in status]
        )

    def __repr__(self) -> str:
        return f"<ConnectedBoards {self.name}: {self.fabric.program!r}>"
