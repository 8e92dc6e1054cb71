"""A board that is connected: a fabric that is run and compared over its bridge."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InputError, WorkFailed
from ...rtl.bus.register_map import DIGEST_OFFSET, IDENTIFICATION
from ...rtl.fabric import Fabric
from ...rtl.loaded.image import Image
from ...simulation.engines import Job
from ...simulation.report import SimulationReport
from ...simulation.simulate import report_of_runs, simulate
from .board_engine import BoardEngine, taken
from .bus_access import ADVICE, BusAccess, NoAnswer
from .gateware import behind_bus
from .uart_bone import BYTES

__all__ = ["ConnectedBoard", "digest_on"]

#: How often a port is asked what is there: it may be in the middle of a command.
ATTEMPTS = 3


def digest_on(access: BusAccess) -> int:
    """What tells which fabric is on a board; see `Fabric.digest`.

    Raises
    ------
    WorkFailed
        If there is none.
    """
    found = None
    for _ in range(ATTEMPTS):
        with contextlib.suppress(NoAnswer):
            found = access.read_word(0)
        if found == IDENTIFICATION:
            return access.read_word(DIGEST_OFFSET)
        access.drain()
    instead = "be silent" if found is None else f"answer {found:#x}"
    raise WorkFailed(
        f"Board on {access.name} must identify itself as {IDENTIFICATION:#x}, not {instead}: "
        f"{ADVICE}"
    )


class ConnectedBoard:
    """A fabric behind its bridge, on a board or simulated; `torusfabric.connect` makes it.

    Parameters
    ----------
    fabric : Fabric
        What must be there.

    Attributes
    ----------
    fabric : Fabric
        As it is without a bus.
    registers : RegisterMap
        What lies at which address of the bus.
    access : BusAccess
        Reads and writes words at these addresses.
    engine : BoardEngine

    Raises
    ------
    WorkFailed
        If there is no fabric, or another one.
    """

    def __init__(self, fabric: Fabric, access: BusAccess) -> None:
        self.fabric, self.access = fabric.behind(None), access
        registers = behind_bus(fabric).register_map
        assert registers is not None
        self.registers = registers
        self.engine = BoardEngine(self.fabric, registers, access)
        digest = digest_on(access)
        if digest != self.fabric.digest:
            raise WorkFailed(
                f"Board on {access.name} must carry {fabric.program!r} of {fabric.width} bits "
                f"({fabric.digest:08x}), not another fabric ({digest:08x}): build and load it"
            )

    @property
    def name(self) -> str:
        """The name of the port."""
        return self.access.name

    @property
    def loaded(self) -> int | None:
        """What tells which program is loaded; 0 for none, None where tables are fixed.

        It is the beginning of the digest of the program.
        """
        if self.fabric.frame is None:
            return None
        return self.engine.shown("loaded_program")

    def load(self, image: Image) -> None:
        """Load what is carried out from now on.

        What fills some modes is not written where its program is there already.

        Parameters
        ----------
        image : Image
            As of `torusfabric.image`.

        Raises
        ------
        InputError
            If it is for another fabric.
        WorkFailed
            If the board does not take it.

        Examples
        --------
        >>> import torusfabric as tf
        >>> board = tf.connect("sim:2 allgather --width 8 --max-flits 1 --tables ram")
        >>> board.load(tf.image(board.fabric, "alltoall"))
        >>> board.run().passed, board.fabric.program.modes[0].collective.name
        (True, 'alltoall')
        """
        made, wanted = image.frame.digest(image.width), int(image.program.digest[:8], 16)
        if self.fabric.frame is None or made != self.fabric.digest:
            raise InputError(f"Image must be for fabric {self.fabric.digest:08x}, not {made:08x}")
        if not (image.fills and self.loaded == wanted):
            start = self.registers.window("load").offset
            self.access.write(start + BYTES * np.arange(len(image.words)), image.words)
        if self.loaded != wanted:
            raise WorkFailed(f"Board on {self.access.name} must take the image, not refuse it")
        self.fabric = Fabric.holding(image)
        self.engine = BoardEngine(self.fabric, self.registers, self.access)

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
            As of `torusfabric.simulate`.
        progress : function of (done, total), optional

        Raises
        ------
        InputError
            If a job chooses what the fabric is not made for.
        WorkFailed
            If the board does not answer, or a run does not end.

        Examples
        --------
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
        """Run a job on words of one's own.

        Parameters
        ----------
        words : array of int, shape (nodes, words)
            What each node sends: as many messages as it has, one after another.
        job : Job, optional
            By default the length is that of the words.

        Returns
        -------
        words : ndarray, shape (nodes, words)
            What each node has received.
        report : SimulationReport
            As of `run`.

        Raises
        ------
        InputError
            If the words are not as many as the job has, or do not fit into flits.

        Examples
        --------
        >>> import torusfabric as tf
        >>> board = tf.connect("sim:2x2 allreduce --width 8")
        >>> words, report = board.carry([[1, 20], [2, 30], [3, 40], [4, 50]])
        >>> words[0].tolist(), report.passed
        ([10, 140], True)
        """
        job, own = taken(self.fabric, np.asarray(words), job or Job())
        messages = np.zeros((self.fabric.program.topology.nodes, own.shape[1]), own.dtype)
        messages[self.fabric.here] = own
        run = self.engine.run(messages, job=job)
        seconds = round(sum(run.phases), 3)
        report = report_of_runs(
            self.fabric, [job], [messages], [run], engine="bridge", repeat=1, seconds=seconds
        )
        return np.asarray(run.words)[self.fabric.here], report

    def __repr__(self) -> str:
        return f"<ConnectedBoard {self.access.name}: {self.fabric.program!r}>"
