"""`HostPortDriver`, which drives a simulated host port: it writes, starts a run, and reads.

A method that moves words is a generator of `EdgeRequest`: inputs for a number of clock edges, and
the outputs to record. A simulator runs the edges, and sends the recorded outputs back. So one
driver serves all simulators. A *sample* of the words of a run passes through the
port; the others are written and read directly in the simulated memories (`RunWords`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....errors import WorkFailed
from ....rtl.fabric import Fabric
from ....simulation.engines.base import (
    TIMEOUT_CYCLES,
    EngineRun,
    Job,
    Messages,
    Progress,
    n_words_moved,
)
from ....simulation.engines.cells import MemoryCells
from ....simulation.engines.edges import Access, EdgeRequest, EdgeResult
from .words import PortAccesses, RunWords

__all__ = ["HostPortDriver", "execute_runs"]


class HostPortDriver:
    """Driver of the host port of a simulated fabric: it writes messages, starts runs, reads words.

    A method that moves words is a generator. It yields requests (`EdgeRequest`) for clock edges
    with given inputs; the simulator executes them, and sends the outputs back.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host``.
    cells : MemoryCells, optional
        Direct access to the memories of the simulated nodes, if the simulator has it. Only a sample
        of the words then passes through the port, which is faster.
    progress : Progress, optional
        Function that is called with two counts: the words that have moved so far, and the words
        that all runs will move.
    runs : int
        Number of runs that the driver will execute, for the second count of `progress`.
    """

    def __init__(
        self,
        fabric: Fabric,
        cells: MemoryCells | None = None,
        *,
        progress: Progress | None = None,
        runs: int = 1,
    ) -> None:
        self._fabric, self._cells = fabric, cells
        self._progress, self._done, self._total = progress, 0, runs * n_words_moved(fabric)
        self._clocks = 0
        self._read_latency = fabric.read_latency

    def _run_edges(self, edges: EdgeRequest) -> Access[EdgeResult]:
        """Have the simulator execute the clock edges of a request, and return the recorded outputs.

        The edges are added to the count of the run.
        """
        passed = yield edges
        self._clocks += passed.edges
        return passed

    def run(self, words: RunWords, job: Job) -> Access[EngineRun]:
        """Write a message to every node, execute a run, and read the received words into `words`.

        `words` has the messages, `job` the choices of the run.

        Raises
        ------
        WorkFailed
            If `done` is low `TIMEOUT_CYCLES` edges after the predicted end.
        """
        self._clocks, before = 0, self._done
        yield from self.write_messages(words)
        self._report_progress(before + words.messages.size)
        cycles, edges, seconds = yield from self.start_and_wait(job)
        yield from self.read_received(words)
        self._report_progress(before + words.messages.size + words.received.size)
        return EngineRun(words.received, cycles, edges, self._clocks, seconds,
                         words.through_port, words.direct)  # fmt: skip

    def write_messages(self, words: RunWords) -> Access[None]:
        """Write the messages of a run: a sample through the host port, all others into memories.

        `words` has the messages of all nodes, and decides which words are in the sample.
        """
        written = words.write_direct(self._cells)
        yield from self.write(written, words.written_beats(written))

    def read_received(self, words: RunWords) -> Access[None]:
        """Read the received words of a run into the array `words.received`.

        A sample is read through the host port, the other words directly from memories.
        """
        for asked in words.read_accesses(self._cells):
            words.enter_read_words(asked, (yield from self.read(asked)))

    def write(self, which: PortAccesses, words: np.ndarray) -> Access[None]:
        """Make write accesses at the host port, one with each clock edge; then wait `hold` edges.

        `words` has the data of each access, one beat. Because of the wait, the fabric does not
        delay a run that is started next. `which` has node and address of each access.
        """
        if not which.n_accesses:
            return
        count = which.n_accesses + self._fabric.hold
        enables = np.arange(count) < which.n_accesses
        inputs = {"host_we": enables, "host_node": which.nodes, "host_addr": which.addresses,
                  "host_wdata": words}  # fmt: skip
        yield from self._run_edges(
            EdgeRequest(count, inputs, report=self._make_progress_callback(which.n_accesses))
        )

    def start_and_wait(self, job: Job) -> Access[tuple[int, int, float]]:
        """Start a run, and wait until it is done.

        `job` has the choices of the run, which are driven with the start.

        Returns
        -------
        cycles : int
            The output `cycles` of the fabric.
        edges : int
            Clock edges from start to done, as the simulator counts them.
        seconds : float
            Wall-clock seconds of these edges.
        """
        chosen = {name: [value] for name, value in job.inputs.items()}
        yield from self._run_edges(EdgeRequest(1, {"host_we": [0], "start": [1], **chosen}))
        # During the run every choice is inverted, to test that the fabric sampled it at the start.
        widths = self._fabric.netlist.inputs
        others = {n: [~value & (1 << widths[n]) - 1] for n, value in job.inputs.items()}
        expected = self._fabric.program.cycles(job.length, mode=job.mode)
        most = max(expected + TIMEOUT_CYCLES, 0)
        run = yield from self._run_edges(EdgeRequest(most, {"start": [0], **others}, busy="busy"))
        last = yield from self._run_edges(EdgeRequest(1, {}, ["done", "cycles", "busy"]))
        done, cycles, busy = (int(values[0]) for values in last.shown.values())
        if not done:
            raise WorkFailed(
                f"The fabric was {'busy' if busy else 'idle'} {run.edges} clock edges after its "
                f"start, but runs of this length end after {expected}"
            )
        return cycles, run.edges, run.seconds

    def read(self, which: PortAccesses) -> Access[np.ndarray]:
        """Make read accesses at the host port, one with each clock edge; return the read words.

        Each word is one beat.

        `which` has node and address of each access.
        """
        if not which.n_accesses:
            return np.zeros(0, np.uint64)
        inputs = {"host_node": which.nodes, "host_addr": which.addresses}
        late = self._read_latency
        report = self._make_progress_callback(which.n_accesses)
        passed = yield from self._run_edges(
            EdgeRequest(which.n_accesses + late, inputs, ["host_rdata"], report=report)
        )
        return passed.shown["host_rdata"][late:]

    def _make_progress_callback(self, most: int) -> Callable[[int], object] | None:
        """Return a function that reports the progress of a request, or None if nobody listens.

        A *request* is some clock edges with given inputs; a simulator calls the function with the
        number of edges that it has executed. Each of the first `most` edges moves one word, and the
        function adds these words to the count of words that it reports. At all later edges of the
        request the driver only waits.
        """
        if not self._progress:
            return None
        before, progress = self._done, self._progress
        self._done += most
        return lambda edges: progress(before + min(edges, most), self._total)

    def _report_progress(self, done: int) -> None:
        """Call the progress function: `done` words have moved since the begin of the first run."""
        self._done = done
        if self._progress:
            self._progress(done, self._total)


def execute_runs(
    fabric: Fabric,
    batches: Sequence[Messages],
    jobs: Sequence[Job],
    *,
    cells: MemoryCells | None,
    through_port: bool,
    progress: Progress | None,
) -> Access[list[EngineRun]]:
    """Execute several runs one after another through the host port; return the result of each run.

    Loadable tables that are empty after reset are loaded first.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host``.
    batches : sequence of Messages
        The messages of each run.
    jobs : sequence of Job
        Mode, length, root and operator of each run.
    cells : MemoryCells or None
        Direct access to the memories of the simulated nodes, if the simulator has it.
    through_port : bool
        True if all words pass through the host port, even with `cells`.
    progress : Progress or None
        Function that is called with two counts: the words that have moved so far, and the words
        that all runs will move.
    """
    port = HostPortDriver(fabric, cells, progress=progress, runs=len(batches))
    if fabric.tables and fabric.tables.empty:
        yield from fabric.tables.load()
    runs = []
    for messages, job in zip(batches, jobs, strict=True):
        words = RunWords(fabric, messages, job, through_port=through_port)
        runs.append((yield from port.run(words, job)))
    return runs
