"""Jobs of a system in a simulation: words in, a job, words out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import torusfabric as tf
from torusfabric.simulation.engines.choice import ENGINES
from torusfabric.simulation.engines.edges import Access, EdgeRequest

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
        The values of each watched output in each cycle of the job, by its name. The outputs of
        statuses are there, too.
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

    def work(cells: object) -> Access[JobReport]:
        def at_all(port: str, values: Callable[[int], Any]) -> dict[str, Any]:
            return {f"element_{port}_{node}": values(node) for node in range(nodes)}

        nodes, count = words.shape
        statuses = [name for name in STATUSES if name in system.netlist.outputs]
        writes = at_all("write_data", lambda node: words[node].tolist())
        writes |= at_all("address", lambda _: range(count)) | at_all("write", lambda _: [1])
        yield EdgeRequest(count, writes)
        yield EdgeRequest(1, at_all("write", lambda _: [0]) | {"begin_job": [1]})
        job = yield EdgeRequest(PATIENCE, {"begin_job": [0]}, shows=[*statuses, *watch],
                                busy="busy")  # fmt: skip
        reads = [*at_all("read_data", lambda _: ())]
        end = yield EdgeRequest(read + 2, at_all("address", lambda _: range(read)),
                                shows=["cycles", "busy", *statuses, *reads])  # fmt: skip
        if end.shown["busy"][0]:
            raise tf.WorkFailed(f"Elements must end their job within {PATIENCE} cycles")
        valid, data = (np.append(job.shown.get(name, ()), end.shown.get(name, ())).astype(int)
                       for name in STATUSES)  # fmt: skip
        # A status has three words: a tag, an error, and the cycles of the run.
        places = np.flatnonzero(valid)
        _, errors, cycles = data[places[: len(places) // 3 * 3]].reshape(-1, 3).T
        if errors.any():
            raise tf.WorkFailed("The fabric has refused a run; compare modes and packets")
        return JobReport(
            np.array([end.shown[name][2:] for name in reads]), int(end.shown["cycles"][0]),
            cycles.tolist(), (places[2::3] + 1).tolist(), job.shown,
        )  # fmt: skip

    return ENGINES[engine](system).run_access(work)
