"""Memory and time that work takes, estimated before it starts: what cannot fit is refused.

The laws are of what any algorithm certainly keeps, with factors as they were measured: they shall
refuse nothing that would fit. Times are no more than a hint.
"""

import logging
from collections.abc import Callable

from ..algorithms import Options
from ..collective import Collective
from ..errors import NotEnoughMemory
from ..toolchain.notices import LOGGER
from ..toolchain.resources import available_memory, duration_text, memory_text
from ..topology import Topology
from .selection import Selection

__all__ = ["announce", "announce_plan", "plan_memory", "plans_soon", "require_hardware",
           "require_memory", "require_results"]  # fmt: skip

#: Bytes for each port of each node while any algorithm plans, and for each block that a node sends
#: or receives: the least that was measured. Where groups are planned, their nodes have neighbours.
PER_PORT, PER_BLOCK, NEIGHBOURS = 5, 20, 24

#: Bytes for each port of each node of a netlist, for each address of a memory (while it is
#: simulated, and while Yosys writes its text), and for each word that a simulation sends, receives
#: or keeps to compare.
PER_PIN, PER_ADDRESS, PER_WRITTEN_ADDRESS, PER_WORD = 1000, 8, 800, 16

#: Bytes for each placement or job, while it is waited for and then kept.
PER_RESULT = 1000

#: Up to so many nodes, and blocks that a node sends or receives, every algorithm plans within about
#: a second of a common machine; from so many nodes, or chunks of all nodes, on some take minutes.
QUICK_NODES, QUICK_BLOCKS, SLOW_NODES, SLOW_CHUNKS = 2**12, 2**16, 2**16, 2**22

#: Seconds from which on it is said how long something may take.
LONG = 60.0

#: What is left to everything else on this machine, and what need not be looked for.
SPARE, LITTLE = 2**28, 2**24


def require_memory(what: str, numbers: dict[str, int], size: Callable[..., int]) -> None:
    """Refuse what cannot fit into this machine's memory.

    Parameters
    ----------
    what : str
        What is to be done, to begin the error with: ``Planning 8x8 allgather``.
    numbers : dict of str to int
        What a user chose, as it is called: ``--chunks``, or ``nodes``. Integers, since a user may
        choose a number that no float holds.
    size : function of these numbers
        Bytes, growing with each of them.

    Raises
    ------
    NotEnoughMemory
        If there is less memory; says how much it would take, and up to which number it would fit:
        the largest of them that is not too large by itself.

    Examples
    --------
    >>> require_memory("Planning", {"--chunks": 10**18}, lambda n: 9 * n)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    torusfabric.errors.NotEnoughMemory: Planning must fit in memory, ... of which are free, ...
    """
    total = size(*numbers.values())
    if total <= LITTLE or total <= (free := max(available_memory() - SPARE, 0)):
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
        f"{what} must fit in memory, {memory_text(free)} of which are free, not take at least "
        f"{memory_text(total)}" + (f" (at best {advice})" if number else "")
    )


def announce(what: str, seconds: float) -> None:
    """Say how long something may take, if that is long."""
    level = logging.INFO if seconds >= LONG else logging.DEBUG
    LOGGER.log(level, "%s may take some %s", what, duration_text(max(seconds, 1)))


def plan_memory(selection: Selection) -> tuple[dict[str, int], Callable[[int, int], int]]:
    """What `require_memory` asks of a plan.

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> numbers, size = plan_memory(select("8x8", "allgather"))
    >>> numbers, size(*numbers.values()) < 1e6
    ({'nodes': 64, '--chunks': 1}, True)
    """
    whole, options, collective = selection.topology, selection.options, selection.collective
    # In groups one of them is planned, and the whole is checked.
    groups = collective.groups(whole)
    per_port = NEIGHBOURS if groups.count > 1 else PER_PORT
    # The chunks of an all-reduce are those of all nodes together.
    together = collective.reducing and collective.to_all

    def size(nodes: int, chunks: int) -> int:
        blocks = chunks if together else nodes // groups.count * chunks
        return per_port * nodes * whole.ports + PER_BLOCK * blocks

    cut = "--packets" if options.packets else "--chunks"
    return {"nodes": whole.nodes, cut: options.packets or options.chunks or 1}, size


def plans_soon(selection: Selection) -> bool:
    """Whether any algorithm plans a selection within about a second.

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> plans_soon(select("8x8", "allgather")), plans_soon(select("256x256", "allgather"))
    (True, False)
    """
    nodes, chunks = selection.topology.nodes, selection.options.chunks or 1
    return nodes <= QUICK_NODES and nodes * chunks <= QUICK_BLOCKS


def announce_plan(what: str, topology: Topology, options: Options) -> None:
    """Say that planning, and the check of the plan, may take long, if they may."""
    nodes, chunks = topology.nodes, options.packets or options.chunks or 1
    if nodes >= SLOW_NODES or nodes * chunks >= SLOW_CHUNKS:
        cut = f" and {chunks} chunks" if chunks > 1 else ""
        LOGGER.info("%s, of %d nodes%s, may take minutes", what, nodes, cut)


def require_hardware(
    topology: Topology, collective: Collective, *, flits: int | None = None, runs: int = 0
) -> None:
    """Refuse a fabric that cannot be built, or not be simulated, in this machine's memory.

    Parameters
    ----------
    flits : int, optional
        Flits of a message; by default one.
    runs : int
        How many collectives are simulated.

    Raises
    ------
    NotEnoughMemory
        If there is not enough.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> require_hardware(Torus(4, 4), parse_collective("alltoall"), flits=64, runs=2)
    """
    layout = collective.layout(topology, 1)
    words = layout.send_words(1) + layout.recv_words(1)
    squared = words > 2  # a block from, or for, each node
    per_address = PER_ADDRESS if runs else PER_WRITTEN_ADDRESS

    def size(nodes: int, flits: int, runs: int) -> int:
        held = flits * (words * nodes // topology.nodes if squared else words)
        return PER_PIN * nodes * topology.ports + (PER_WORD * runs * nodes + per_address) * held

    what = "Simulating" if runs else "Hardware of"
    numbers = {"nodes": topology.nodes, "--flits": flits or 1, "--repeat": runs}
    require_memory(f"{what} {topology} {collective}", numbers, size)


def require_results(option: str, count: int) -> None:
    """Refuse more jobs of a simulation, or placements of a fabric, than can be kept."""
    require_memory("Results", {option: count}, lambda number: PER_RESULT * number)
