"""Runs of a fabric over its bridge."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, WorkFailed
from ...rtl.bus import DATA_BITS, RegisterMap, Window
from ...rtl.fabric import Fabric
from ...rtl.run_choices import RunError
from ...simulation.engines import Engine, EngineRun, Job, PhaseTimes, longest_job
from ...simulation.engines.base import PATIENCE, Messages, Progress
from ...simulation.engines.words import as_words
from ...simulation.jobs import check_jobs, completed
from .bus_access import BusAccess

__all__ = ["BoardEngine", "taken"]

#: Seconds that a run may take, whatever the clock.
LONGEST = 2.0


#: Why a start is refused, by the number that the register has.
_ERRORS = {error.value: error.name.lower() for error in RunError}


class BoardEngine(Engine):
    """Runs a fabric over its bridge: all words, and the choice of a run, go over the bus.

    Parameters
    ----------
    fabric : Fabric
        As it is without a bus.
    registers : RegisterMap
        Of the same behind its bus.
    """

    name = "bridge"

    def __init__(self, fabric: Fabric, registers: RegisterMap, access: BusAccess) -> None:
        super().__init__(fabric)
        self._map, self._access = registers, access

    def run_many(
        self,
        batches: Iterable[Messages],
        *,
        jobs: Sequence[Job] = (),
        progress: Progress | None = None,
    ) -> list[EngineRun]:
        """Run several collectives one after another; see `Engine.run_many`."""
        batches, runs = list(batches), []
        for number, messages in enumerate(batches):
            job = jobs[number] if jobs else longest_job(self.fabric)
            runs.append(self._run(as_words(self.fabric, messages), job))
            if progress:
                progress(number + 1, len(batches))
        return runs

    def _run(self, messages: NDArray[Any], job: Job) -> EngineRun:
        """Write what nodes send, run, and read what they have received."""
        times = [time.perf_counter()]
        self.send(messages, job)
        times.append(time.perf_counter())
        cycles = self._carry_out(job)
        times.append(time.perf_counter())
        words = self.received(job)
        times.append(time.perf_counter())
        phases = PhaseTimes(*np.diff(times).tolist())
        moved = messages[self.fabric.here].size + words[self.fabric.here].size
        return EngineRun(words, cycles, cycles, cycles, phases, moved)

    def send(self, messages: NDArray[Any], job: Job) -> None:
        """Write what the nodes that are here send, of messages of all nodes."""
        addresses = self._addresses(self._map.window("send"), messages.shape[1], job)
        own = messages[self.fabric.here]
        parts = [own >> (DATA_BITS * k) & 0xFFFFFFFF for k in range(self._map.parts)]
        self._access.write(addresses.ravel(), np.stack(parts, -1).ravel())

    def received(self, job: Job) -> NDArray[Any]:
        """Read what the nodes that are here have received; zeros for all others."""
        layout = self.fabric.layouts[job.mode or 0]
        count = layout.recv_words // self.fabric.flits * self.fabric.program.length_of(job.length)
        addresses = self._addresses(self._map.window("receive"), count, job)
        got = self._access.read(addresses.ravel()).reshape(addresses.shape)
        nodes = self.fabric.program.topology.nodes
        words = as_words(self.fabric, np.zeros((nodes, count), int))
        for k in range(self._map.parts):
            words[self.fabric.here] |= as_words(self.fabric, got[..., k]) << (DATA_BITS * k)
        return words

    def _addresses(self, window: Window, words: int, job: Job) -> NDArray[np.int64]:
        """Where the words of each node lie, shape (nodes, words, bus words of a flit)."""
        part, flit = np.divmod(np.arange(words), self.fabric.program.length_of(job.length))
        places = window.flit_bytes * (part * self.fabric.flits + flit)
        nodes = window.offset + window.stride * np.arange(window.nodes)
        bus_words = DATA_BITS // 8 * np.arange(self._map.parts)
        addresses: NDArray[np.int64] = nodes[:, None, None] + places[:, None] + bus_words
        return addresses

    def _carry_out(self, job: Job) -> int:
        """Start a run and wait for its end; returns the cycles that it took."""
        self.start(job)
        if code := self.wait(job):
            error = _ERRORS.get(code, hex(code))
            raise WorkFailed(f"Board must carry out {job}, not refuse it ({error})")
        return self.shown("cycles")

    def start(self, job: Job) -> None:
        """Start a run."""
        # Of a mode that was loaded before, the register still has the number.
        mode = {"mode": 0} if self.fabric.frame else {}
        for name, value in (mode | job.inputs).items():
            self._access.write_word(self._map.register(name).offset, value)
        self._access.write_word(self._map.register("start").offset, 1)

    def wait(self, job: Job) -> int:
        """Wait for the end of a run; returns the number of what is wrong, or 0."""
        most = self.fabric.cycles_of(job.length, mode=job.mode) + PATIENCE
        reads, end = 0, time.monotonic() + LONGEST
        while (status := self.shown("status")) & 1 or not status & 0xF2:
            reads += 1  # each takes at least a cycle
            if reads > most and time.monotonic() > end:
                raise WorkFailed(f"Board must end a run within {LONGEST:g} s, not be at work still")
        return status >> 4 & 15

    def shown(self, register: str) -> int:
        """The value of a register."""
        return self._access.read_word(self._map.register(register).offset)


def taken(fabric: Fabric, given: NDArray[Any], job: Job) -> tuple[Job, NDArray[Any]]:
    """The job in full that carries some words, and the words as an engine takes them.

    Raises
    ------
    InputError
        If the words are not as many as the job has, or do not fit into flits.
    """
    check_jobs(fabric, [job])
    parts = fabric.layouts[job.mode or 0].send_words // fabric.flits
    if fabric.program.any_length and job.length is None and given.shape:
        job = job._replace(length=given.size // (fabric.nodes * parts))
    job = completed(fabric, job)
    check_jobs(fabric, [job])
    shape = fabric.nodes, parts * fabric.program.length_of(job.length)
    largest = (1 << fabric.width) - 1
    if given.size != np.prod(shape) or given.shape[:1] != shape[:1]:
        raise InputError(f"Words must be of shape {shape}, a row a node, not {given.shape}")
    if given.dtype.kind not in "iuO":
        raise InputError(f"Words must be unsigned integers, not {given.dtype}")
    for word in (given.min(), given.max()):
        if not 0 <= int(word) <= largest:
            raise InputError(f"Words must be from 0 to {largest}, not {word}")
    return job, as_words(fabric, given.reshape(shape))
