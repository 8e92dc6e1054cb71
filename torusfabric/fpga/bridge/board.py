"""`ConnectedBoard`: a fabric on a board, which runs jobs over its bridge and checks the results.

`torusfabric.connect` makes it. `BoardEngine` executes its runs. It has the same interface as a
simulator (`Engine`), so that `simulate` can compare the results of a board as those of a simulator.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...contract.registers import DATA_BITS, DIGEST_OFFSET, IDENTIFICATION, RegisterMap, Window
from ...errors import InputError, WorkFailed
from ...rtl.fabric import Fabric
from ...rtl.run_choices import RunError
from ...simulation.engines import Engine, EngineRun, Job
from ...simulation.engines.base import TIMEOUT_CYCLES, Messages, Progress
from ...simulation.engines.cells import as_words
from ...simulation.jobs import check_jobs, complete_job
from ...simulation.report import SimulationReport
from ...simulation.simulate import report_of_runs, simulate
from .bus_access import ADVICE, BusAccess, NoAnswer
from .gateware import with_wishbone
from .uart_bone import BYTES

__all__ = ["BoardEngine", "ConnectedBoard", "read_digest", "job_for_words"]

#: Attempts to identify a board. Why several: its bridge may be in the middle of a command.
ATTEMPTS = 3

#: Seconds that a run may take, whatever the clock of the board.
LONGEST = 2.0


#: Error number in the status register -> reason why a start is refused.
_ERRORS = {error.value: error.name.lower() for error in RunError}


def read_digest(access: BusAccess) -> int:
    """Return the digest of the fabric on a board; see `Fabric.digest`.

    Parameters
    ----------
    access : BusAccess
        Access to the bus of the fabric on the board.

    Raises
    ------
    WorkFailed
        If the board does not identify itself as a fabric.
    """
    found = None
    for _ in range(ATTEMPTS):
        with contextlib.suppress(NoAnswer):
            found = access.read_word(0)
        if found == IDENTIFICATION:
            return access.read_word(DIGEST_OFFSET)
        access.drain()
    instead = "it is silent" if found is None else f"it answers {found:#x}"
    raise WorkFailed(
        f"Board on {access.name} does not identify itself as {IDENTIFICATION:#x}, {instead}: "
        f"{ADVICE}"
    )


class BoardEngine(Engine):
    """Executor of jobs by a fabric on a real board, over the bridge and the bus.

    For a job it writes the words to send and the choices of the run to bus addresses, and reads the
    received words from there. If the fabric spans several boards, each board has such an executor.

    Parameters
    ----------
    fabric : Fabric
        The fabric without its bus.
    registers : RegisterMap
        Registers of the fabric behind its bus.
    access : BusAccess
        Reads and writes words at the addresses of the registers.
    """

    name = "bridge"

    def __init__(self, fabric: Fabric, registers: RegisterMap, access: BusAccess) -> None:
        super().__init__(fabric)
        self._map, self._access = registers, access

    def run_all(
        self, batches: Sequence[Messages], jobs: Sequence[Job], progress: Progress | None
    ) -> list[EngineRun]:
        """Run several jobs one after another, and return the result of each.

        `batches` has the messages of all nodes for each job. `progress` is called after each job,
        with the number of jobs done and of all jobs.
        """
        runs = []
        for number, (messages, job) in enumerate(zip(batches, jobs, strict=True), 1):
            runs.append(self._run_job(as_words(self.fabric, messages), job))
            if progress:
                progress(number, len(batches))
        return runs

    def _run_job(self, messages: NDArray[Any], job: Job) -> EngineRun:
        """Execute one job: write the words to send, run, and read the received words.

        `messages` are the words to send, shape (nodes, words). The result has the received words,
        cycles and time. Its `edges` are, for a simulator, the clock edges that it simulated. A
        board does not count edges, so `edges` has the cycles that the fabric reports.
        """
        self.write_messages(messages, job)
        began = time.perf_counter()
        cycles = self._execute(job)
        seconds = time.perf_counter() - began
        words = self.read_messages(job)
        moved = messages[self.fabric.here].size + words[self.fabric.here].size
        return EngineRun(words, cycles, cycles, cycles, seconds, moved)

    def write_messages(self, messages: NDArray[Any], job: Job) -> None:
        """Write the words that the nodes of this board send.

        Parameters
        ----------
        messages : ndarray, shape (nodes, words)
            Words of all nodes, those of other boards included.
        job : Job
            Job of the run, which decides the length of the messages.
        """
        addresses = self._word_addresses(self._map.window("send"), messages.shape[1], job)
        own = messages[self.fabric.here]
        parts = [own >> (DATA_BITS * k) & 0xFFFFFFFF for k in range(self._map.parts)]
        self._access.write(addresses.ravel(), np.stack(parts, -1).ravel())

    def read_messages(self, job: Job) -> NDArray[Any]:
        """Return the received words, shape (nodes, words); zeros for nodes of other boards.

        Parameters
        ----------
        job : Job
            Job of the run, whose mode and length decide how many words are read.
        """
        layout = self.fabric.layouts[job.mode or 0]
        count = layout.recv_words // self.fabric.flits * self.fabric.program.length_of(job.length)
        addresses = self._word_addresses(self._map.window("receive"), count, job)
        got = self._access.read(addresses.ravel()).reshape(addresses.shape)
        nodes = self.fabric.program.topology.nodes
        words = as_words(self.fabric, np.zeros((nodes, count), int))
        for k in range(self._map.parts):
            words[self.fabric.here] |= as_words(self.fabric, got[..., k]) << (DATA_BITS * k)
        return words

    def _word_addresses(self, window: Window, words: int, job: Job) -> NDArray[np.int64]:
        """Return the bus address of each word that nodes send, or receive, in a run.

        Parameters
        ----------
        window : Window
            Range of bus addresses for the sent, or for the received, words of all nodes.
        words : int
            Number of words of each node.
        job : Job
            Job that decides the length of the messages.

        Returns
        -------
        ndarray of int, shape (nodes, words, bus words of a flit)
            Byte addresses. A flit of more than 32 bits takes several bus words.
        """
        part, flit = np.divmod(np.arange(words), self.fabric.program.length_of(job.length))
        places = window.flit_bytes * (part * self.fabric.flits + flit)
        nodes = window.offset + window.stride * np.arange(window.nodes)
        bus_words = DATA_BITS // 8 * np.arange(self._map.parts)
        addresses: NDArray[np.int64] = nodes[:, None, None] + places[:, None] + bus_words
        return addresses

    def _execute(self, job: Job) -> int:
        """Start a run of `job`, wait for its end, and return its cycles."""
        self.start(job)
        if code := self.wait_for_end(job):
            error = _ERRORS.get(code, hex(code))
            raise WorkFailed(f"The board refused {job} ({error})")
        return self.read_register("cycles")

    def start(self, job: Job) -> None:
        """Write the choices of a job into the registers, and start the run."""
        # Before a load, the mode register may have been set to a mode that no longer exists.
        mode = {"mode": 0} if self.fabric.tables else {}
        for name, value in (mode | job.inputs | {"start": 1}).items():
            self.write_register(name, value)

    def wait_for_end(self, job: Job) -> int:
        """Wait until a run ends or is refused; return its error number, 0 for success.

        Parameters
        ----------
        job : Job
            Job of the run, from which the expected cycles follow.

        Raises
        ------
        WorkFailed
            If the run does not end within `LONGEST` seconds.
        """
        most = self.fabric.cycles_of(job.length, mode=job.mode) + TIMEOUT_CYCLES
        reads, end = 0, time.monotonic() + LONGEST
        while (status := self.read_register("status")) & 1 or not status & 0xF2:
            reads += 1  # a read takes at least one cycle, so `most` reads cover the whole run
            if reads > most and time.monotonic() > end:
                raise WorkFailed(
                    f"The board is still at work after {LONGEST:g} s; reset it, and load its "
                    "bitstream again"
                )
        return status >> 4 & 15

    def write_register(self, register: str, value: int) -> None:
        """Write `value` into a register of the fabric, by its name in the register map."""
        self._access.write_word(self._map.register(register).offset, value)

    def read_register(self, register: str) -> int:
        """Return the value of a register of the fabric, by its name in the register map."""
        return self._access.read_word(self._map.register(register).offset)


class ConnectedBoard:
    """A fabric behind its bridge, on a board or simulated; `torusfabric.connect` makes it.

    Parameters
    ----------
    fabric : Fabric
        The fabric that must be on the board.
    access : BusAccess
        Access to the bus of the board.

    Attributes
    ----------
    fabric : Fabric
        The fabric without its bus.
    registers : RegisterMap
        Registers and windows of the bus.
    access : BusAccess
        Access to the bus of the board.
    engine : BoardEngine
        Executor of jobs on the board.

    Raises
    ------
    WorkFailed
        If the board carries no fabric, or another one.
    """

    def __init__(self, fabric: Fabric, access: BusAccess) -> None:
        self.fabric, self.access = fabric.behind(None), access
        registers = with_wishbone(fabric).register_map
        assert registers is not None
        self.registers = registers
        self.engine = BoardEngine(self.fabric, registers, access)
        digest = read_digest(access)
        if digest != self.fabric.digest:
            raise WorkFailed(
                f"Board on {access.name} holds another fabric ({digest:08x}) than "
                f"{fabric.program!r} of {fabric.width} bits ({fabric.digest:08x}); build this one "
                "and load it"
            )

    @property
    def name(self) -> str:
        """Name of the port."""
        return self.access.name

    @property
    def loaded(self) -> int | None:
        """First 32 bits of the digest of the program in the loaded tables.

        0 if no program is loaded; None for a fabric without loaded tables.
        """
        if self.fabric.tables is None:
            return None
        return self.engine.read_register("loaded_program")

    def load(self, image: Any) -> None:
        """Load an image, as `torusfabric.image` makes it; later runs execute its program.

        An image that fills only some modes is not written if its program is loaded already. Why:
        the fabric accepts such an image only while the image before it is loaded.

        Raises
        ------
        InputError
            If the image is for another fabric.
        WorkFailed
            If the board refuses the image.

        Examples
        --------
        >>> import torusfabric as tf
        >>> board = tf.connect("sim:2 allgather --width 8 --max-flits 1 --tables ram")
        >>> board.load(tf.image(board.fabric, "alltoall"))
        >>> board.run().passed, board.fabric.program.modes[0].collective.name
        (True, 'alltoall')
        """
        self.write_image(image)
        self.fabric = self.fabric.holding(image)
        self.engine = BoardEngine(self.fabric, self.registers, self.access)

    def write_image(self, image: Any) -> None:
        """Write an image into the tables of the board, and check that the board has accepted it.

        This method changes the board only, not `fabric`. So `run` and `carry` still compute
        expected words from the old program, and report wrong words if the new one has other
        results. Use `load`, which changes the board and `fabric`, unless the caller keeps track of
        the program. The method raises the errors of `load`.
        """
        made, wanted = image.room.digest(image.width), int(image.program.digest[:8], 16)
        tables = self.fabric.tables
        known = tables.room.digest(self.fabric.width) if tables else self.fabric.digest
        if tables is None or made != known:
            raise InputError(
                f"Image must be for fabric {known:08x}, not {made:08x}; make it with the manifest "
                "of this fabric"
            )
        if not (image.fills and self.loaded == wanted):
            start = self.registers.window("load").offset
            self.access.write(start + BYTES * np.arange(len(image.words)), image.words)
        if self.loaded != wanted:
            raise WorkFailed(
                f"Board on {self.access.name} refused the image; make it again with the manifest "
                "of its fabric"
            )

    def run(
        self,
        jobs: Sequence[Job] | int | None = None,
        *,
        seed: int = 1,
        repeat: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> SimulationReport:
        """Run jobs on random words, and compare every word and the cycles of every run.

        Parameters
        ----------
        jobs : sequence of Job or int, optional
            Runs to execute. By default they are the default jobs, which cover every mode and
            operator, a few roots and lengths. A number n means these and n random jobs.
        seed : int
            Seed of the random words and jobs.
        repeat : int
            Runs of each job, each with fresh words.
        progress : function of (done, total), optional
            Called after each run.

        Returns
        -------
        SimulationReport
            The comparison, and the cycles of each job.

        Raises
        ------
        InputError
            If the fabric cannot run a job.
        WorkFailed
            If the board does not answer, or a run does not end.

        Examples
        --------
        Four nodes receive four messages of three words: 48 words, in 10 cycles.

        >>> import torusfabric as tf
        >>> board = tf.connect("sim:2x2 allgather --width 8")
        >>> report = board.run([tf.Job(length=3)])
        >>> report.passed, report.words_checked, report.jobs[0].cycles
        (True, 48, 10)
        """
        report = simulate(
            self.fabric, jobs=jobs, seed=seed, repeat=repeat, engine=self.engine, progress=progress
        )
        assert isinstance(report, SimulationReport)
        return report

    def carry(
        self, words: ArrayLike, job: Job | None = None
    ) -> tuple[NDArray[Any], SimulationReport]:
        """Execute one run on given words, and return the received words and a report.

        Parameters
        ----------
        words : array of int, shape (nodes, words)
            Words that each node of the board sends: its messages, one after another.
        job : Job, optional
            Job to run; its length follows from the words if it has none.

        Returns
        -------
        words : ndarray, shape (nodes, words)
            Words that each node of the board has received.
        report : SimulationReport
            Comparison with the expected words, and cycles.

        Raises
        ------
        InputError
            If the number of words is not that of the job, or a word does not fit into a flit.

        Examples
        --------
        Each node receives the sums 1 + 2 + 3 + 4 and 20 + 30 + 40 + 50.

        >>> import torusfabric as tf
        >>> board = tf.connect("sim:2x2 allreduce --width 8")
        >>> words, report = board.carry([[1, 20], [2, 30], [3, 40], [4, 50]])
        >>> words[0].tolist(), report.passed
        ([10, 140], True)
        """
        job, own = job_for_words(self.fabric, np.asarray(words), job or Job())
        messages = np.zeros((self.fabric.program.topology.nodes, own.shape[1]), own.dtype)
        messages[self.fabric.here] = own
        began = time.perf_counter()
        run = self.engine.run(messages, job=job)
        seconds = round(time.perf_counter() - began, 3)
        report = report_of_runs(
            self.fabric, [job], [messages], [run], engine="bridge", repeat=1, seconds=seconds
        )
        return np.asarray(run.words)[self.fabric.here], report

    def __repr__(self) -> str:
        return f"<ConnectedBoard {self.access.name}: {self.fabric.program!r}>"


def job_for_words(fabric: Fabric, given: NDArray[Any], job: Job) -> tuple[Job, NDArray[Any]]:
    """Check the words that a user gives for a run, and complete the job of the run.

    Parameters
    ----------
    given : ndarray of int
        Words to send, a row for each node of the board.
    job : Job
        Choices of the user. If it has no length and the fabric leaves this choice, the length
        follows from the number of words.

    Returns
    -------
    job : Job
        The job with every choice filled in.
    words : ndarray
        The words in the integer type that simulators and boards use.

    Raises
    ------
    InputError
        If the number of words is not that of the job, or a word does not fit into a flit.
    """
    check_jobs(fabric, [job])
    parts = fabric.layouts[job.mode or 0].send_words // fabric.flits
    if fabric.program.any_length and job.length is None and given.shape:
        job = job._replace(length=given.size // (fabric.nodes * parts))
    job = complete_job(fabric, job)
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
