"""Compiled simulation of all boards, each with its own clock, and of the cables between them.

Each kind of board is compiled to a model (`build_model`) without its elastic buffers. The C++
source ``boards.cc`` advances the models in the order of their clock edges. It also implements
cables and elastic buffers, because these belong to two clocks. `CompiledBoards` drives the host
ports of all boards.
"""

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
from ....simulation.engines.calls import uint64_fields
from ....simulation.engines.cells import MemoryCells, as_words
from ....simulation.engines.compiled_cells import CompiledCells
from ....simulation.engines.edges import Access, EdgeRequest, EdgeResult, run_access
from ....simulation.engines.model import build_model
from ....simulation.engines.session import Session
from ....topology import IntArray
from ...host.drive import HostPortDriver, PortAccesses, RunWords
from ..hardware import BoardSystem
from ..hardware.link_plan import SILENCE_CYCLES
from ..hardware.links import FRAME_BITS
from ..hardware.system import link_port_name

__all__ = ["CompiledBoards", "RunOutcome"]

#: C++ source that runs several models together.
SOURCE = Path(__file__).with_name("boards.cc")

#: Period of a clock without frequency error, in femtoseconds.
PERIOD = 10_000_000

#: Exclusive limit of the random delay before the start of a board, in edges.
START_SPREAD = 100


class CCable(ctypes.Structure):
    """A cable with its elastic buffer: the struct ``Cable`` of ``boards.cc``."""

    _fields_ = uint64_fields(
        "sender receiver word* frame* at* head* count* memory* depth written late"
    )


class CClock(ctypes.Structure):
    """The clock of a board: the struct ``BoardClock`` of ``boards.cc``."""

    _fields_ = uint64_fields("period next falling")


class CSystem(ctypes.Structure):
    """All models, clocks and cables: the struct ``System`` of ``boards.cc``."""

    _fields_ = uint64_fields(
        "models* clocks* boards cables* cable_count width threshold random changed"
    )


class CBoardsRun(ctypes.Structure):
    """Parameters and results of one run: the struct ``BoardsRun`` of ``boards.cc``."""

    _fields_ = uint64_fields("waits* patience start* busy* counts* cycles* edges")


def _make_cables(
    system: BoardSystem, sessions: Sequence[Session], random: np.random.Generator
) -> Any:
    """Return an array with a `CCable` for each cable: its ends, its elastic buffer and its delay.

    The delay of a cable, in cycles, is random within the limits of the physical layer. `system` is
    the fabric on all boards, `sessions` has the running model of each board, and `random` is the
    generator of the delays.
    """
    plan = system.link_plan
    chunks = -(-(plan.width + FRAME_BITS) // 32)
    ends = [(board, link, *end) for board, each in enumerate(system.boards.far_ends)
            for link, end in enumerate(each)]  # fmt: skip
    cables = (CCable * len(ends))()
    for k, (board, link, there, port) in enumerate(ends):
        here, other = sessions[board], sessions[there]
        depth = plan.buffer_depth(plan.cable_latency(board, link))
        memory = here.keep_alive(np.zeros((depth, chunks), np.uint32))
        cables[k] = CCable(
            there, board,
            other.net_address(link_port_name(port, "tx_word")),
            other.net_address(link_port_name(port, "tx_frame")),
            here.net_address(f"at_{link}"),
            here.inputs[f"head_{link}"].ctypes.data,
            here.inputs[f"count_{link}"].ctypes.data,
            memory, depth, 0,
            int(random.integers(math.ceil(plan.phy.least), 1 + int(plan.phy.most))),
        )  # fmt: skip
    return cables


def remove_buffers(netlist: Netlist) -> Netlist:
    """Return the netlist of a board with its elastic buffers removed.

    Outputs of the buffers become inputs of the board. Why: a buffer has the clocks of two boards,
    but a compiled model has one clock. The C++ source that joins the models implements the buffers.
    """
    buffers = [*netlist.instances_with_role(Role.BUFFER)]
    given = {net for buffer in buffers for net in buffer.outputs.values()}
    every = (part for buffer in buffers for parts in buffer.inputs.values() for part in parts)
    gone = {part.net for part in every if isinstance(part, Part)}
    inputs = {name: bits for name, bits in netlist.inputs.items() if name not in gone}
    return replace(
        netlist,
        inputs=inputs | {net: netlist.net_widths[net] for net in sorted(given)},
        arrays=tuple(array for array in netlist.arrays if array.role is not Role.BUFFER),
        modules={n: make for n, make in netlist.modules.items()
                 if netlist.roles[n] is not Role.BUFFER},
    )  # fmt: skip


def _random_clocks(system: BoardSystem, random: np.random.Generator) -> Any:
    """Return the clocks of boards with random phases and frequency errors from -ppm to +ppm.

    The clock of the first board is slowest, that of the last board fastest. `system` has the number
    of boards and their ppm. `random` chooses the phases.
    """
    number = system.boards.n_boards
    off = system.ppm * 1e-6 * np.linspace(1, -1, number)
    periods = np.rint(PERIOD * (1 + off)).astype(int)
    clocks = (CClock(int(p), int(p) + int(random.integers(p)), 0) for p in periods)
    return (CClock * number)(*clocks)


class SystemCells(MemoryCells):
    """Direct access to the memories of all boards, with nodes numbered as in the torus."""

    def __init__(self, system: BoardSystem, boards: Sequence[MemoryCells]) -> None:
        super().__init__(system.fabric)
        self._boards, (self._board, self._number) = boards, system.boards.node_locations
        for nodes, cells in zip(system.boards.nodes_by_board, boards, strict=True):
            self.exists[nodes] = cells.exists[: len(nodes)]
            self.reached[nodes] = cells.reached[: len(nodes)]

    def write_words(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Write words into memories: word k to address ``address[k]`` of memory ``memory[k]``.

        The memory belongs to node ``nodes[k]``; nodes have their numbers in the whole fabric. All
        arrays have the shape (words,).
        """
        for board, cells in enumerate(self._boards):
            at = self._board[nodes] == board
            cells.write_words(self._number[nodes[at]], memory[at], address[at], words[at])

    def read_words(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Read words from memories: word k from address ``address[k]`` of memory ``memory[k]``.

        The memory belongs to node ``nodes[k]``; nodes have their numbers in the whole fabric. All
        arrays, and the result, have the shape (words,).
        """
        found = as_words(self._fabric, np.zeros(len(nodes), np.uint64).tolist())
        for board, cells in enumerate(self._boards):
            at = self._board[nodes] == board
            found[at] = cells.read_words(self._number[nodes[at]], memory[at], address[at])
        return found


class RunOutcome(NamedTuple):
    """The result of a run on all boards, simulated or real.

    Parameters
    ----------
    engine : str
        Executor of the run: ``compiled`` for a simulation, ``bridge`` for real boards.
    run : EngineRun
        Received words, and time.
    cycles, errors, failed, attempts : list of int
        Status of each board after the run: cycles, error number (`RunError`), bit mask of failed
        link ports, and number of executions of the run.
    changed : int
        Number of words that cables have changed in this run and in earlier runs; 0 if not known.
    """

    engine: str
    run: EngineRun
    cycles: list[int]
    errors: list[int]
    failed: list[int]
    attempts: list[int]
    changed: int = 0


class CompiledBoards(HostPortDriver):
    """Compiled models of all boards, with access to their host ports.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    seed : int
        Seed of the random phases of clocks, delays of cables, times of starts, and link errors.
    link_errors : float
        Probability that a cable changes a bit of a word, per word.
    progress : function of (done, total), optional
        Called while runs are executed.
    runs : int
        Expected number of runs. It decides how much the compiler optimizes the models.

    Attributes
    ----------
    cycles : list of int
        Cycles of the last run, as each board counted them.
    sessions : list of Session
        The model of each board.
    cables : array of CCable
        All cables with their elastic buffers.
    system : CSystem
        The struct with which ``boards.cc`` finds models, clocks and cables.
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
        self.sessions = self._open_sessions(runs)
        cells = SystemCells(
            system, [CompiledCells(session, system.fabric) for session in self.sessions]
        )
        super().__init__(system.fabric, cells, progress=progress, runs=runs)
        self._read_latency = system.read_latency
        self._random = np.random.default_rng(seed)
        self.cables = _make_cables(system, self.sessions, self._random)
        clocks = _random_clocks(system, self._random)
        handles = (ctypes.c_void_p * len(self.sessions))(*(s.handle for s in self.sessions))
        self._kept = clocks, handles
        self.system = CSystem(
            models=ctypes.addressof(handles),
            clocks=ctypes.addressof(clocks),
            boards=len(self.sessions),
            cables=ctypes.addressof(self.cables),
            cable_count=len(self.cables),
            width=system.link_plan.width,
            threshold=int(link_errors * 2**63),
            random=seed,
        )
        self.cycles = list[int]()
        tables = system.fabric.tables
        for board in range(len(self.sessions) if tables and tables.empty else 0):
            self.load_board(board)

    def load_board(self, board: int, image: Any = None) -> None:
        """Load an image into a board, by default the image of the fabric."""
        self._board = board
        run_access(self._fabric.tables.load(image), self.simulate_edges)

    def simulate_edges(self, edges: EdgeRequest) -> EdgeResult:
        """Set inputs of one board for some edges of its clock, and return its outputs.

        The board is the one that `_split_by_board` has selected. The clocks of all other boards run
        meanwhile.
        """
        system, board = ctypes.byref(self.system), ctypes.c_uint64(self._board)
        return self.sessions[self._board].simulate_edges(edges, "model_play_board", system, board)

    def run_boards(
        self, waits: NDArray[np.uint64], patience: int, cycles: NDArray[np.uint32]
    ) -> tuple[int, int]:
        """Start all boards, each after its own delay, and wait until all are done.

        Parameters
        ----------
        waits : ndarray of uint64
            Edges before the start of each board.
        patience : int
            Limit of the wait, in edges.
        cycles : ndarray of uint32
            Filled with the cycles that each board counted.

        Returns
        -------
        failed : int
            0 if all boards are done; another number if one is not, within `patience` edges.
        edges : int
            Clock edges of all boards together.
        """
        starts = [session.inputs["start"].ctypes.data for session in self.sessions]
        busy, counts = ([s.net_address(name) for s in self.sessions] for name in ("busy", "cycles"))
        places = [np.array(each, np.uint64) for each in (starts, busy, counts)]
        addresses = (each.ctypes.data for each in places)
        run = CBoardsRun(waits.ctypes.data, patience, *addresses, cycles.ctypes.data)
        library = self.sessions[0].library
        return int(
            library.model_run_boards(ctypes.byref(self.system), ctypes.byref(run))
        ), run.edges

    def _open_sessions(self, runs: int) -> list[Session]:
        """Return a session, a running model, for each board; equal boards share a compiled model.

        `runs` is the expected number of runs; it decides how much the compiler optimizes.
        """
        system, work = self._boards, node_cycles(self._boards.fabric, runs)
        models = {
            id(netlist): build_model(
                remove_buffers(netlist), word=system.fabric.width, node_cycles=work, source=SOURCE
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

    def execute(self, messages: Messages, job: Job) -> RunOutcome:
        """Execute a run on the messages of all nodes and return its result.

        `job` has the choices of the run: mode, length, root and operator.
        """
        run = run_access(self.run(RunWords(self._fabric, messages, job), job), self.simulate_edges)
        errors, failed, attempts = map(self.output_values, ("error", "failed", "attempts"))
        changed = int(self.system.changed)
        return RunOutcome("compiled", run, self.cycles, errors, failed, attempts, changed)

    def __enter__(self) -> CompiledBoards:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def output_values(self, name: str) -> list[int]:
        """Return the present value of the output `name`, for each board."""
        return [int(session.watch_net(name)[0]) for session in self.sessions]

    def write(self, which: PortAccesses, words: NDArray[Any]) -> Access[None]:
        """Write words through the host ports of all boards, one board after another.

        `which` has the node and the address of each word. `words` are these words, each as wide as
        a beat of the host port.
        """
        for mine, own in self._split_by_board(which):
            yield from super().write(own, words[mine])

    def read(self, which: PortAccesses) -> Access[NDArray[Any]]:
        """Read words through the host ports of all boards, one board after another.

        `which` has the node and the address of each word. The result has these words, each as wide
        as a beat of the host port.
        """
        found = np.zeros(which.n_accesses, object)
        for mine, own in self._split_by_board(which):
            found[mine] = yield from super().read(own)
        return found

    def _split_by_board(
        self, which: PortAccesses
    ) -> Iterator[tuple[NDArray[np.bool_], PortAccesses]]:
        """Select one board after another, and yield the accesses that go to its nodes.

        `which` has accesses to words at host ports (node and address of each), with the numbers of
        nodes in the whole fabric.

        Yields
        ------
        mine : ndarray of bool, shape (accesses,)
            True for the accesses to nodes of the board.
        own : PortAccesses
            These accesses, with nodes numbered as on the board.
        """
        at, number = self._boards.boards.node_locations
        for board in range(self._boards.boards.n_boards):
            self._board, mine = board, at[which.nodes] == board
            own = PortAccesses(*(each[mine] for each in which))
            yield mine, own._replace(nodes=number[own.nodes])

    def start_and_wait(self, job: Job) -> Access[tuple[int, int, float]]:
        """Start all boards after random delays, and wait until all are done.

        Parameters
        ----------
        job : Job
            The choices of the run, which all boards get.

        Returns
        -------
        cycles : int
            Cycles of the run, as board 0 counted them.
        edges : int
            Clock edges of all boards together.
        seconds : float
            Processor time of the simulation, in seconds.
        """
        yield from ()
        number, patience = (
            len(self.sessions),
            4 * SILENCE_CYCLES + 2 * self._boards.link_plan.drift_window,
        )
        waits = self._random.integers(START_SPREAD, size=number).astype(np.uint64)
        cycles = np.zeros(number, np.uint32)
        for session in self.sessions:
            session.set_choices(job)
        began, (failed, edges) = time.thread_time(), self.run_boards(waits, patience, cycles)
        if failed:
            raise WorkFailed(f"The boards were still busy {patience} clock edges after their start")
        self.cycles = cycles.tolist()
        return self.cycles[0], edges, time.thread_time() - began
