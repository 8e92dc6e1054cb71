"""`HostPort`, which drives a host port: it writes words, starts a run, and reads words.

Every method is a generator of `Edges`: inputs for a number of clock edges, and the outputs to
record. A simulation engine runs the edges, and sends the recorded outputs back. So one driver
serves all engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import WorkFailed
from ....rtl.fabric import Fabric
from ....simulation.engines.base import PATIENCE, EngineRun, Job, Messages, Progress, words_moved
from ....simulation.engines.cells import Cells
from ....simulation.engines.edges import Access, Edges, Passed
from .words import PortWords, Words

__all__ = ["HostPort", "host_runs"]


class HostPort:
    """Driver of the host port of one fabric.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host``.
    cells : Cells, optional
        Direct access to the memories of the simulated nodes, if the engine has it. Only a sample of
        the words then passes through the port, which is faster.
    progress : Progress, optional
        Function that is called with the words that have moved, and with all words of all runs.
    runs : int
        Number of runs, by which the progress is scaled.
    """

    def __init__(
        self,
        fabric: Fabric,
        cells: Cells | None = None,
        *,
        progress: Progress | None = None,
        runs: int = 1,
    ) -> None:
        self._fabric, self._cells = fabric, cells
        self._progress, self._done, self._total = progress, 0, runs * words_moved(fabric)
        self._clocks = 0
        self._read_latency = fabric.read_latency

    def _pass(self, edges: Edges) -> Access[Passed]:
        """Have the engine run edges, and count them."""
        passed = yield edges
        self._clocks += passed.edges
        return passed

    def run(self, words: Words, job: Job) -> Access[EngineRun]:
        """Load a message into every node, execute a run, and take the received words.

        Raises
        ------
        WorkFailed
            If `done` is low `PATIENCE` edges after the predicted end.
        """
        self._clocks, before = 0, self._done
        yield from self.load(words)
        self._advance(before + words.messages.size)
        cycles, edges, seconds = yield from self.collect(job)
        yield from self.take(words)
        self._advance(before + words.messages.size + words.received.size)
        return EngineRun(words.received, cycles, edges, self._clocks, seconds,
                         words.through_port, words.direct)  # fmt: skip

    def load(self, words: Words) -> Access[None]:
        """Load a message into every node."""
        written = words.put(self._cells)
        yield from self.write(written, words.beats(written))

    def take(self, words: Words) -> Access[None]:
        """Take the received words of every node."""
        for asked in words.asked(self._cells):
            words.fill(asked, (yield from self.read(asked)))

    def write(self, which: PortWords, words: np.ndarray) -> Access[None]:
        """Write words into send memories, one with each edge, and wait until a run may begin."""
        if not which.number:
            return
        count = which.number + self._fabric.hold
        enables = np.arange(count) < which.number
        inputs = {"host_we": enables, "host_node": which.nodes, "host_addr": which.addresses,
                  "host_wdata": words}  # fmt: skip
        yield from self._pass(Edges(count, inputs, report=self._moved(which.number)))

    def collect(self, job: Job) -> Access[tuple[int, int, float]]:
        """Start a run, and wait until it is done.

        Returns
        -------
        cycles : int
            The output `cycles` of the fabric.
        edges : int
            Clock edges from start to done, as the engine counts them.
        seconds : float
            Wall-clock seconds of these edges.
        """
        chosen = {name: [value] for name, value in job.inputs.items()}
        yield from self._pass(Edges(1, {"host_we": [0], "start": [1], **chosen}))
        # During the run every choice is inverted, to test that the fabric sampled it at the start.
        widths = self._fabric.netlist.inputs
        others = {n: [~value & (1 << widths[n]) - 1] for n, value in job.inputs.items()}
        expected = self._fabric.program.cycles(job.length, mode=job.mode)
        most = max(expected + PATIENCE, 0)
        run = yield from self._pass(Edges(most, {"start": [0], **others}, busy="busy"))
        last = yield from self._pass(Edges(1, {}, ["done", "cycles", "busy"]))
        done, cycles, busy = (int(values[0]) for values in last.shown.values())
        if not done:
            raise WorkFailed(
                f"The fabric was {'busy' if busy else 'idle'} {run.edges} clock edges after its "
                f"start, but runs of this length end after {expected}"
            )
        return cycles, run.edges, run.seconds

    def read(self, which: PortWords) -> Access[np.ndarray]:
        """Read words from receive memories, one with each edge."""
        if not which.number:
            return np.zeros(0, np.uint64)
        inputs = {"host_node": which.nodes, "host_addr": which.addresses}
        late = self._read_latency
        report = self._moved(which.number)
        passed = yield from self._pass(
            Edges(which.number + late, inputs, ["host_rdata"], report=report)
        )
        return passed.shown["host_rdata"][late:]

    def _moved(self, most: int) -> Callable[[int], object] | None:
        """Return a function that reports progress where one word moves with each edge."""
        if not self._progress:
            return None
        before, progress = self._done, self._progress
        self._done += most
        return lambda edges: progress(before + min(edges, most), self._total)

    def _advance(self, done: int) -> None:
        """Report that `done` words have moved."""
        self._done = done
        if self._progress:
            self._progress(done, self._total)


def host_runs(
    fabric: Fabric,
    batches: Sequence[Messages],
    jobs: Sequence[Job],
    *,
    cells: Cells | None,
    through_port: bool,
    progress: Progress | None,
) -> Access[list[EngineRun]]:
    """Execute several runs one after another; see `Engine.run_many`.

    Loadable tables that are empty after reset are loaded first.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host``.
    batches : sequence of Messages
        The messages of each run.
    jobs : sequence of Job
        Mode, length, root and operator of each run.
    cells : Cells or None
        Direct access to the memories of the simulated nodes, if the engine has it.
    through_port : bool
        True if all words pass through the host port, even with `cells`.
    progress : Progress or None
        Function that is called with the words that have moved, and with all words of all runs.
    """
    port = HostPort(fabric, cells, progress=progress, runs=len(batches))
    if fabric.tables and fabric.tables.empty:
        yield from fabric.tables.load()
    runs = []
    for messages, job in zip(batches, jobs, strict=True):
        words = Words(fabric, messages, job, through_port=through_port)
        runs.append((yield from port.run(words, job)))
    return runs
