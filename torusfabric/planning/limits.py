"""Estimates of the memory and time that planning and simulation take, made before they start.

`require_memory` raises an error if an estimate exceeds the free memory. An estimate counts only
data that every algorithm keeps, with measured bytes for each item. It is therefore a lower bound:
work that would fit is never refused. Estimates of time are hints for the user and refuse nothing.
"""

import logging
from collections.abc import Callable
from functools import cache

from ..collective import Collective
from ..errors import NotEnoughMemory
from ..toolchain.notices import LOGGER
from ..toolchain.resources import available_memory, duration_text, memory_text
from ..topology import Topology
from .selection import Selection

__all__ = ["log_duration", "log_long_plan", "memory_arguments", "is_quick_to_plan",
           "require_hardware_memory", "require_memory", "require_result_memory"]  # fmt: skip

#: Bytes while planning, the least that was measured: `BYTES_PER_PORT` for each port of each node,
#: but `BYTES_PER_NEIGHBOUR` if the collective runs in several groups (the check that they are equal
#: tabulates the neighbours of each node), and `BYTES_PER_BLOCK` for each block that a node sends or
#: receives.
BYTES_PER_PORT, BYTES_PER_BLOCK, BYTES_PER_NEIGHBOUR = 5, 20, 24

#: Bytes of a netlist for each port of each node (`BYTES_PER_PIN`); of a memory for each address,
#: while the memory is simulated (`BYTES_PER_ADDRESS`) and while Yosys writes it as Verilog
#: (`BYTES_PER_WRITTEN_ADDRESS`); and of a simulation for each word that it sends, receives or
#: compares (`BYTES_PER_WORD`).
BYTES_PER_PIN, BYTES_PER_ADDRESS, BYTES_PER_WRITTEN_ADDRESS, BYTES_PER_WORD = 1000, 8, 800, 16

#: Bytes for each result: of a job of a simulation, or of a run of place and route.
BYTES_PER_RESULT = 1000

#: Up to `QUICK_NODES` nodes, and `QUICK_BLOCKS` blocks that a node sends or receives, every
#: algorithm plans within about a second. From `SLOW_NODES` nodes on, or `SLOW_CHUNKS` chunks in all
#: nodes together, some algorithms take minutes.
QUICK_NODES, QUICK_BLOCKS, SLOW_NODES, SLOW_CHUNKS = 2**12, 2**16, 2**16, 2**22

#: Seconds from which on an estimate of time is printed without ``--verbose``.
LONG_SECONDS = 60.0

#: Bytes of free memory that are left to other processes, and bytes that are assumed to be free
#: without asking the operating system.
SPARE_BYTES, NEGLIGIBLE_BYTES = 2**28, 2**24


def require_memory(what: str, numbers: dict[str, int], size: Callable[..., int]) -> None:
    """Raise an error if some work needs more memory than this machine has free.

    Parameters
    ----------
    what : str
        The work, as the beginning of the error message: ``Planning 8x8 allgather``.
    numbers : dict of str to int
        The user's numbers that decide the size, by their names: ``--chunks``, or ``nodes``. They
        are integers because a user may give a number that is too large for a float.
    size : function of (*numbers) -> int
        Bytes that the work takes for these numbers. It must grow with each number.

    Raises
    ------
    NotEnoughMemory
        If the work does not fit. The message gives the size of the work, and the value to which the
        largest of `numbers` must be reduced.

    Examples
    --------
    >>> require_memory("Planning", {"--chunks": 10**18}, lambda n: 9 * n)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    torusfabric.errors.NotEnoughMemory: Planning must fit in memory, ... where ... are free...
    """
    total = size(*numbers.values())
    if total <= NEGLIGIBLE_BYTES or total <= (free := max(available_memory() - SPARE_BYTES, 0)):
        return
    name = max(numbers, key=numbers.__getitem__)
    fitting, beyond = 0, numbers[name]
    while beyond - fitting > 1 + fitting // 1000:
        middle = (fitting + beyond) // 2
        fits = size(*(numbers | {name: middle}).values()) <= free
        fitting, beyond = (middle, beyond) if fits else (fitting, middle)
    unit = 10 ** max(len(str(fitting)) - 2, 0)
    number = fitting // unit * unit
    advice = f"{name} {number}" if name.startswith("--") else f"{number} {name}"
    raise NotEnoughMemory(
        f"{what} must fit in memory, but needs at least {memory_text(total)} where "
        f"{memory_text(free)} are free" + (f"; choose at most {advice}" if number else "")
    )


def log_duration(what: str, seconds: float) -> None:
    """Log how long some work may take: for all users if that is long, else for ``--verbose``.

    Parameters
    ----------
    what : str
        The work, as the beginning of the notice.
    seconds : float
        The estimate.
    """
    level = logging.INFO if seconds >= LONG_SECONDS else logging.DEBUG
    LOGGER.log(level, "%s may take some %s", what, duration_text(max(seconds, 1)))


def memory_arguments(selection: Selection) -> tuple[dict[str, int], Callable[[int, int], int]]:
    """Return the arguments of `require_memory` for planning a selection.

    Returns
    -------
    numbers : dict of str to int
        The number of nodes, and the number of chunks or packets of a message.
    size : function of (nodes, chunks) -> int
        Bytes that planning takes.

    Examples
    --------
    >>> from torusfabric.planning import make_selection
    >>> numbers, size = memory_arguments(make_selection("8x8", "allgather"))
    >>> numbers, size(*numbers.values()) < 1e6
    ({'nodes': 64, '--chunks': 1}, True)
    """
    whole, options, collective = selection.topology, selection.options, selection.collective
    # Of several groups only one is planned, but the check compares all of them.
    groups = collective.groups(whole)
    per_port = BYTES_PER_NEIGHBOUR if groups.n_groups > 1 else BYTES_PER_PORT
    # An all-reduce has as many blocks as chunks: one sum of all nodes for each chunk.
    together = collective.reducing and collective.to_all

    def estimate_bytes(nodes: int, chunks: int) -> int:
        blocks = chunks if together else nodes // groups.n_groups * chunks
        return per_port * nodes * whole.ports + BYTES_PER_BLOCK * blocks

    cut = "--packets" if options.packets else "--chunks"
    return {"nodes": whole.nodes, cut: options.packets or options.chunks or 1}, estimate_bytes


def is_quick_to_plan(selection: Selection) -> bool:
    """Return True if every algorithm plans this selection within about a second.

    Examples
    --------
    >>> from torusfabric.planning import make_selection
    >>> is_quick_to_plan(make_selection("8x8", "allgather")), is_quick_to_plan(make_selection(
    ...     "256x256", "allgather"))
    (True, False)
    """
    nodes, chunks = selection.topology.nodes, selection.options.chunks or 1
    return nodes <= QUICK_NODES and nodes * chunks <= QUICK_BLOCKS


def log_long_plan(what: str, selection: Selection) -> None:
    """Log a notice if planning a selection and the check of its schedule may take minutes.

    Of several groups only one is planned and checked.

    Parameters
    ----------
    what : str
        The work, such as ``Planning 8x8 allgather``, with which the notice begins.
    selection : Selection
        The choice of the user; chunks or packets in its options make the schedule larger.
    """
    nodes = selection.collective.groups(selection.topology).group_topology.nodes
    chunks = selection.options.packets or selection.options.chunks or 1
    if nodes >= SLOW_NODES or nodes * chunks >= SLOW_CHUNKS:
        cut = f" and {chunks} chunks" if chunks > 1 else ""
        _announce_once(f"{what}, of {nodes} nodes{cut}, may take minutes")


@cache
def _announce_once(text: str) -> None:
    """Log a notice; each text is logged once, although many algorithms may plan a selection."""
    LOGGER.info("%s", text)


def require_hardware_memory(
    topology: Topology, collective: Collective, *, flits: int | None = None, runs: int = 0
) -> None:
    """Raise an error if a fabric cannot be built or simulated in this machine's memory.

    Parameters
    ----------
    topology : Topology
        The network of the fabric.
    collective : Collective
        The collective that the fabric executes.
    flits : int, optional
        Flits of a message; by default those that the user lists, or one.
    runs : int
        Number of runs of a simulation; 0 if the fabric is only built.

    Raises
    ------
    NotEnoughMemory
        If the fabric does not fit.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> require_hardware_memory(Torus(4, 4), parse_collective("alltoall"), flits=64, runs=2)
    """
    layout = collective.layout(topology, 1)
    words = layout.send_words(1) + layout.recv_words(1)
    squared = words > 2  # each node holds a block from, or for, every node
    per_address = BYTES_PER_ADDRESS if runs else BYTES_PER_WRITTEN_ADDRESS

    def estimate_bytes(nodes: int, flits: int, runs: int) -> int:
        held = flits * (words * nodes // topology.nodes if squared else words)
        return (
            BYTES_PER_PIN * nodes * topology.ports
            + (BYTES_PER_WORD * runs * nodes + per_address) * held
        )

    what = "Simulating" if runs else "Hardware of"
    flits = flits or collective.listed_flits or 1
    numbers = {"nodes": topology.nodes, "--flits": flits, "--repeat": runs}
    require_memory(f"{what} {topology} {collective}", numbers, estimate_bytes)


def require_result_memory(option: str, count: int) -> None:
    """Raise an error if the results of a command would not fit into memory.

    Parameters
    ----------
    option : str
        The option with which the user chose the number of results, such as ``--repeat``.
    count : int
        Number of results: jobs of a simulation, or runs of place and route.
    """
    require_memory("Results", {option: count}, lambda number: BYTES_PER_RESULT * number)
