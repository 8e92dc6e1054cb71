"""The host port, edge by edge: words are written, a run is started, and words are read."""

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
    """The host port of a fabric, and the words of its memories.

    Parameters
    ----------
    cells : Cells, optional
        The words of memories, where these can be reached.
    runs : int
        Number of runs, for progress.
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
        """Let edges pass, and count them."""
        passed = yield edges
        self._clocks += passed.edges
        return passed

    def run(self, words: Words, job: Job) -> Access[EngineRun]:
        """Load a message into every node, start, wait for done, and take what every node has.

        Raises
        ------
        WorkFailed
            If the fabric does not come to an end.
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
        """Take what every node has received."""
        for asked in words.asked(self._cells):
            words.fill(asked, (yield from self.read(asked)))

    def write(self, which: PortWords, words: np.ndarray) -> Access[None]:
        """Write words into nodes' send memories, one an edge."""
        if not which.number:
            return
        count = which.number + self._fabric.hold
        enables = np.arange(count) < which.number
        inputs = {"host_we": enables, "host_node": which.nodes, "host_addr": which.addresses,
                  "host_wdata": words}  # fmt: skip
        yield from self._pass(Edges(count, inputs, report=self._moved(which.number)))

    def collect(self, job: Job) -> Access[tuple[int, int, float]]:
        """Start, and wait for done; what the fabric counts, the edges between, and the seconds."""
        chosen = {name: [value] for name, value in job.inputs.items()}
        yield from self._pass(Edges(1, {"host_we": [0], "start": [1], **chosen}))
        # Later values of the inputs must not matter: a run keeps what it was started with.
        widths = self._fabric.netlist.inputs
        others = {n: [~value & (1 << widths[n]) - 1] for n, value in job.inputs.items()}
        expected = self._fabric.program.cycles(job.length, mode=job.mode)
        most = max(expected + PATIENCE, 0)
        run = yield from self._pass(Edges(most, {"start": [0], **others}, busy="busy"))
        last = yield from self._pass(Edges(1, {}, ["done", "cycles", "busy"]))
        done, cycles, busy = (int(values[0]) for values in last.shown.values())
        if not done:
            raise WorkFailed(
                f"Fabric must be done {expected} edges after its start, "
                f"not {'busy' if busy else 'idle'} after {run.edges}"
            )
        return cycles, run.edges, run.seconds

    def read(self, which: PortWords) -> Access[np.ndarray]:
        """Read words from nodes' receive memories, one an edge."""
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
        """Return what reports words that move, one an edge."""
        if not self._progress:
            return None
        before, progress = self._done, self._progress
        self._done += most
        return lambda edges: progress(before + min(edges, most), self._total)

    def _advance(self, done: int) -> None:
        """Report so many words as moved."""
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
    """Run several collectives one after another; see `Engine.run_many`.

    Parameters
    ----------
    through_port : bool
        True if all words go through the host port.
    """
    port = HostPort(fabric, cells, progress=progress, runs=len(batches))
    if fabric.tables and fabric.tables.empty:
        yield from fabric.tables.load()
    runs = []
    for messages, job in zip(batches, jobs, strict=True):
        words = Words(fabric, messages, job, through_port=through_port)
        runs.append((yield from port.run(words, job)))
    return runs
