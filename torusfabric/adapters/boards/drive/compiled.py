"""All boards as compiled models, each with a clock of its own, and the cables between them."""

from __future__ import annotations

import contextlib
import ctypes
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import WorkFailed
from ....rtl.netlist import Netlist, Part, Role
from ....simulation.engines import Job
from ....simulation.engines.base import EngineRun, Messages, Progress, node_cycles
from ....simulation.engines.calls import fields
from ....simulation.engines.cells import Cells, as_words
from ....simulation.engines.compiled_cells import CompiledCells
from ....simulation.engines.edges import Access, Edges, Passed, carry_out
from ....simulation.engines.model import build_model
from ....simulation.engines.session import Session
from ....topology import IntArray
from ...host.drive import HostPort, PortWords, Words
from ..hardware import BoardSystem
from ..hardware.link_plan import SILENCE
from ..hardware.links import FRAME_BITS
from ..hardware.system import link_port

__all__ = ["CompiledBoards", "Outcome"]

#: The library of models of several boards.
SOURCE = Path(__file__).with_name("boards.cc")

#: Femtoseconds of a cycle of a clock that is not off.
PERIOD = 10_000_000

#: Cycles that boards are started apart, at most.
APART = 100


class CCable(ctypes.Structure):
    """As `Cable` in ``boards.cc``."""

    _fields_ = fields("sender receiver word* frame* at* head* count* memory* depth written late")


class CClock(ctypes.Structure):
    """As `BoardClock` in ``boards.cc``."""

    _fields_ = fields("period next falling")


class CSystem(ctypes.Structure):
    """As `System` in ``boards.cc``."""

    _fields_ = fields("models* clocks* boards cables* cable_count width threshold random changed")


class CBoardsRun(ctypes.Structure):
    """As `BoardsRun` in ``boards.cc``."""

    _fields_ = fields("waits* patience start* busy* counts* cycles* edges")


def _cables(system: BoardSystem, sessions: Sequence[Session], random: np.random.Generator) -> Any:
    """Elastic buffers of cables, which are no part of models."""
    plan = system.plan
    chunks = -(-(plan.width + FRAME_BITS) // 32)
    ends = [(board, link, *end) for board, each in enumerate(system.boards.ends)
            for link, end in enumerate(each)]  # fmt: skip
    cables = (CCable * len(ends))()
    for k, (board, link, there, port) in enumerate(ends):
        here, other = sessions[board], sessions[there]
        depth = plan.depth(system.boards.latency[link])
        memory = here.keep(np.zeros((depth, chunks), np.uint32))
        cables[k] = CCable(
            there, board,
            other.address(link_port(port, "tx_word")),
            other.address(link_port(port, "tx_frame")),
            here.address(f"at_{link}"),
            here.inputs[f"head_{link}"].ctypes.data,
            here.inputs[f"count_{link}"].ctypes.data,
            memory, depth, 0,
            int(random.integers(math.ceil(plan.phy.least), 1 + int(plan.phy.most))),
        )  # fmt: skip
    return cables


def without_buffers(netlist: Netlist) -> Netlist:
    """The netlist of a board, with what its elastic buffers give as inputs."""
    buffers = [*netlist.having(Role.BUFFER)]
    given = {net for buffer in buffers for net in buffer.outputs.values()}
    every = (part for buffer in buffers for parts in buffer.inputs.values() for part in parts)
    gone = {part.net for part in every if isinstance(part, Part)}
    inputs = {name: bits for name, bits in netlist.inputs.items() if name not in gone}
    return replace(
        netlist,
        inputs=inputs | {net: netlist.nets[net] for net in sorted(given)},
        arrays=tuple(array for array in netlist.arrays if array.role is not Role.BUFFER),
        modules={n: make for n, make in netlist.modules.items()
                 if netlist.roles[n] is not Role.BUFFER},
    )  # fmt: skip


def _clocks(system: BoardSystem, random: np.random.Generator) -> Any:
    """The clocks of boards: off by as much as they may be, with phases at random.

    The first is slowest and the last fastest.
    """
    number = system.boards.number
    off = system.ppm * 1e-6 * np.linspace(1, -1, number)
    periods = np.rint(PERIOD * (1 + off)).astype(int)
    clocks = (CClock(int(p), int(p) + int(random.integers(p)), 0) for p in periods)
    return (CClock * number)(*clocks)


class SystemCells(Cells):
    """The words of the memories of all boards."""

    def __init__(self, system: BoardSystem, boards: Sequence[Cells]) -> None:
        super().__init__(system.fabric)
        self._boards, (self._board, self._number) = boards, system.boards.located
        for nodes, cells in zip(system.boards.nodes, boards, strict=True):
            self.exists[nodes] = cells.exists[: len(nodes)]
            self.reached[nodes] = cells.reached[: len(nodes)]

    def put(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Put words into memories."""
        for board, cells in enumerate(self._boards):
            at = self._board[nodes] == board
            cells.put(self._number[nodes[at]], memory[at], address[at], words[at])

    def take(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Take words from memories."""
        found = as_words(self._fabric, np.zeros(len(nodes), np.uint64).tolist())
        for board, cells in enumerate(self._boards):
            at = self._board[nodes] == board
            found[at] = cells.take(self._number[nodes[at]], memory[at], address[at])
        return found


class Outcome(NamedTuple):
    """What came of a run on all boards.

    Parameters
    ----------
    engine : str
        The name of what has carried it out.
    cycles, errors, failed, attempts : list of int
        The outputs of each board after the run.
    changed : int
        Words of this run and of those before that were changed on their way to other boards, as far
        as that is known.
    """

    engine: str
    run: EngineRun
    cycles: list[int]
    errors: list[int]
    failed: list[int]
    attempts: list[int]
    changed: int = 0


class CompiledBoards(HostPort):
    """Runs on all boards, through their host ports.

    Parameters
    ----------
    link_errors : float
        How likely it is that a bit of a word changes on its way to another board.

    Attributes
    ----------
    cycles : list of int
        What each board has counted in the last run.
    sessions : list of Session
        The model of each board.
    cables : array of CCable
    system : CSystem
    """

    def __init__(
        self,
        system: BoardSystem,
        *,
        seed: int,
        link_errors: float,
        progress: Progress | None = None,
        runs: int = 1,
    ) -> None:
        self._boards, self._board = system, 0
        self._stack = contextlib.ExitStack()
        self.sessions = self._opened(runs)
        cells = SystemCells(
            system, [CompiledCells(session, system.fabric) for session in self.sessions]
        )
        super().__init__(system.fabric, cells, progress=progress, runs=runs)
        self._read_latency = system.read_latency
        self._random = np.random.default_rng(seed)
        self.cables = _cables(system, self.sessions, self._random)
        clocks = _clocks(system, self._random)
        handles = (ctypes.c_void_p * len(self.sessions))(*(s.handle for s in self.sessions))
        self._kept = clocks, handles
        self.system = CSystem(
            models=ctypes.addressof(handles),
            clocks=ctypes.addressof(clocks),
            boards=len(self.sessions),
            cables=ctypes.addressof(self.cables),
            cable_count=len(self.cables),
            width=system.fabric.width,
            threshold=int(link_errors * 2**63),
            random=seed,
        )
        self.cycles = list[int]()
        tables = system.fabric.tables
        for board in range(len(self.sessions) if tables and tables.empty else 0):
            self.load_board(board)

    def load_board(self, board: int, image: Any = None) -> None:
        """Load an image into a board, by default that of the fabric."""
        self._board = board
        carry_out(self._fabric.tables.load(image), self.play)

    def play(self, edges: Edges) -> Passed:
        """Let edges of the board pass whose turn it is, while time passes for all."""
        system, board = ctypes.byref(self.system), ctypes.c_uint64(self._board)
        return self.sessions[self._board].play(edges, "model_play_board", system, board)

    def run_boards(
        self, waits: NDArray[np.uint64], patience: int, cycles: NDArray[np.uint32]
    ) -> tuple[int, int]:
        """Start all boards after some edges each, and wait until all are done.

        Returns 0 if they are, and the edges of all boards; notes what each has counted.
        """
        starts = [session.inputs["start"].ctypes.data for session in self.sessions]
        busy, counts = ([s.address(name) for s in self.sessions] for name in ("busy", "cycles"))
        places = [np.array(each, np.uint64) for each in (starts, busy, counts)]
        addresses = (each.ctypes.data for each in places)
        run = CBoardsRun(waits.ctypes.data, patience, *addresses, cycles.ctypes.data)
        library = self.sessions[0].library
        return int(
            library.model_run_boards(ctypes.byref(self.system), ctypes.byref(run))
        ), run.edges

    def _opened(self, runs: int) -> list[Session]:
        """A session for each board, of a model for each kind of them."""
        system, work = self._boards, node_cycles(self._boards.fabric, runs)
        models = {
            id(netlist): build_model(
                without_buffers(netlist), word=system.fabric.width, node_cycles=work, source=SOURCE
            )
            for netlist in system.netlists
        }
        sessions = [
            self._stack.enter_context(Session(models[id(netlist)], system.fabric, vcd=None))
            for netlist in system.netlists
        ]
        for board, session in enumerate(sessions):
            session.inputs["board"][0] = board
        return sessions

    def carry_out(self, messages: Messages, job: Job) -> Outcome:
        """Carry out a run on messages of all nodes."""
        run = carry_out(self.run(Words(self._fabric, messages, job), job), self.play)
        errors, failed, attempts = map(self.said, ("error", "failed", "attempts"))
        changed = int(self.system.changed)
        return Outcome("compiled", run, self.cycles, errors, failed, attempts, changed)

    def __enter__(self) -> CompiledBoards:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def said(self, name: str) -> list[int]:
        """What each board shows at an output."""
        return [int(session.shown(name)[0]) for session in self.sessions]

    def write(self, which: PortWords, words: NDArray[Any]) -> Access[None]:
        """Write words through the ports of all boards."""
        for mine, own in self._by_board(which):
            yield from super().write(own, words[mine])

    def read(self, which: PortWords) -> Access[NDArray[Any]]:
        """Read words through the ports of all boards."""
        found = np.zeros(which.number, object)
        for mine, own in self._by_board(which):
            found[mine] = yield from super().read(own)
        return found

    def _by_board(self, which: PortWords) -> Iterator[tuple[NDArray[np.bool_], PortWords]]:
        """Yield the words of each board, by their numbers there, while it is its turn."""
        at, number = self._boards.boards.located
        for board in range(self._boards.boards.number):
            self._board, mine = board, at[which.nodes] == board
            own = PortWords(*(each[mine] for each in which))
            yield mine, own._replace(nodes=number[own.nodes])

    def collect(self, job: Job) -> Access[tuple[int, int, float]]:
        """Start all boards at random, and wait until all are done."""
        yield from ()
        number, patience = len(self.sessions), 4 * SILENCE + 2 * self._boards.plan.window
        waits = self._random.integers(APART, size=number).astype(np.uint64)
        cycles = np.zeros(number, np.uint32)
        for session in self.sessions:
            session.choose(job)
        began, (failed, edges) = time.thread_time(), self.run_boards(waits, patience, cycles)
        if failed:
            raise WorkFailed(f"Boards must be done within {patience} edges, not busy")
        self.cycles = cycles.tolist()
        return self.cycles[0], edges, time.thread_time() - began
