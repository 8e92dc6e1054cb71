"""Jobs of a system in a simulation: words in, a job, words out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

import torusfabric as tf
from torusfabric.contract.traffic import PortTraffic
from torusfabric.simulation.engines.amaranth_engine import AmaranthBench
from torusfabric.simulation.engines.choice import ENGINES
from torusfabric.simulation.engines.edges import EdgeRequest, EdgeResult, run_access

from .system import System

__all__ = ["JobReport", "run_job"]

#: The outputs that report the runs of a fabric.
STATUSES = ("m_axis_status_tvalid", "m_axis_status_tdata")

#: Cycles after which a job is given up.
PATIENCE = 1_000_000


class JobReport(NamedTuple):
    """The result of a job.

    Parameters
    ----------
    words : ndarray of int, shape (nodes, words)
        The words that the host has read from the elements.
    cycles : int
        The cycles from the start until all elements have ended the job.
    runs : list of int
        The cycles of each run of the fabric, by its statuses; empty if there are no commands.
    ends : list of int
        The cycle of the job in which each run has ended.
    watched : dict
        The values of each watched output in each cycle of the job, by its name.
    """

    words: np.ndarray
    cycles: int
    runs: list[int]
    ends: list[int]
    watched: dict[str, np.ndarray]


def run_job(
    system: System, words: np.ndarray, *, read: int, engine: str = "compiled",
    watch: Sequence[str] = (),
) -> JobReport:  # fmt: skip
    """Write words into all elements, execute a job, and read words back, in a simulation.

    Parameters
    ----------
    system : System
        The fabric with its elements.
    words : ndarray of int, shape (nodes, words)
        The words that the host writes at the addresses 0, 1, .. of each element.
    read : int
        The number of words that it then reads, from address 0 on.
    engine : {"compiled", "amaranth"}
        The simulator.
    watch : sequence of str
        Names of outputs whose values the report is to have, such as `"element_read_data_0"`.

    Raises
    ------
    WorkFailed
        If the elements do not end the job, or the fabric refuses a run.
    """
    report: JobReport = ENGINES[engine](system).run_traffic(_Host(system, words, read, watch))
    return report


class _Host(PortTraffic):
    """The work of a host, for both simulators."""

    def __init__(self, system: System, words: np.ndarray, read: int, watch: Sequence[str]) -> None:
        self._system, self._words, self._read, self._watch = system, words, read, watch

    def simulate(self, design: Any, run: Callable[..., Any], progress: Any) -> JobReport:
        """Execute the job in Amaranth's simulator."""
        found: list[JobReport] = []

        async def testbench(ctx: Any) -> None:
            found.append(await AmaranthBench(ctx, design, self._system).run_access(self._work()))

        run(testbench)
        return found[0]

    def run_compiled(self, session: Any, progress: Any) -> JobReport:
        """Execute the job with a compiled model."""
        return run_access(self._work(), session.simulate_edges)

    def _work(self) -> Generator[EdgeRequest, EdgeResult, JobReport]:
        """Yield the clock edges of the job, and return its report."""
        nodes, count = self._words.shape
        shows = [name for name in STATUSES if name in self._system.netlist.outputs]

        def at_all(port: str, values: Callable[[int], Any]) -> dict[str, Any]:
            return {f"element_{port}_{node}": values(node) for node in range(nodes)}

        writes = at_all("write_data", lambda node: self._words[node].tolist())
        writes |= at_all("address", lambda _: range(count)) | at_all("write", lambda _: [1])
        yield EdgeRequest(count, writes)
        yield EdgeRequest(1, at_all("write", lambda _: [0]) | {"begin_job": [1]})
        job = yield EdgeRequest(
            PATIENCE, {"begin_job": [0]}, shows=[*shows, *self._watch], busy="busy"
        )
        end = yield EdgeRequest(1, shows=["cycles", "busy", *shows])
        if end.shown["busy"][0]:
            raise tf.WorkFailed(f"Elements must end their job within {PATIENCE} cycles")
        reads = [*at_all("read_data", lambda _: ())]
        addresses = at_all("address", lambda _: range(self._read))
        shown = (yield EdgeRequest(self._read + 2, addresses, shows=reads)).shown
        values = {name: np.append(job.shown[name], end.shown[name]) for name in shows}
        cycles, ends = _read_statuses(*values.values()) if shows else ([], [])
        words = np.array([shown[name][2:] for name in reads])
        watched = {name: job.shown[name] for name in self._watch}
        return JobReport(words, int(end.shown["cycles"][0]), cycles, ends, watched)


def _read_statuses(valid: np.ndarray, data: np.ndarray) -> tuple[list[int], list[int]]:
    """Return the cycles of each run, and the cycle of the job in which its status has come.

    A status has three words: a tag, an error, and the cycles of the run.
    """
    places = np.flatnonzero(valid)
    _, errors, cycles = data[places[: len(places) // 3 * 3]].reshape(-1, 3).T
    if errors.any():
        raise tf.WorkFailed("The fabric has refused a run; compare modes and packets")
    return cycles.tolist(), (places[2::3] + 1).tolist()
