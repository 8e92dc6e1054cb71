"""Memory and time that work takes, estimated before it starts: what cannot fit is refused.

The laws are of what is certainly kept, with factors as they were measured: they shall refuse
nothing that would fit. Whatever grows with a number that a user chose is a `Need`, so that an error
can say up to which number it would. Times are no more than a hint.
"""

import logging
import math
from collections.abc import Iterable
from typing import NamedTuple

from ..algorithms import Options
from ..algorithms.arrowhead.spanning_tree import best_packets
from ..collective import Collective
from ..errors import NotEnoughMemory
from ..toolchain.notices import LOGGER
from ..toolchain.resources import available_memory, duration_text, memory_text
from ..topology import Arrowhead, Topology
from .selection import Selection

__all__ = [
    "Need",
    "announce",
    "announce_plan",
    "plan_needs",
    "plans_soon",
    "require_hardware",
    "require_jobs",
    "require_memory",
    "require_placements",
]

#: Bytes for each port of each node while any algorithm plans, and what it planned is checked: the
#: least that was measured. Those of `NEIGHBOURS` are of the table of neighbours of the whole torus.
PER_PORT, NEIGHBOURS = 5, 24

#: Bytes for each block that a node sends or receives, for each port in each step, and for a round
#: of transfers.
PER_BLOCK, PER_SLOT, PER_ROUND = 20, 16, 1000

#: Bytes for each port of each node of a netlist, for each address of a memory (while it is
#: simulated, and while Yosys writes its text), and for each word that a simulation sends, receives
#: or keeps to compare.
PER_PIN, PER_ADDRESS, PER_WRITTEN_ADDRESS, PER_WORD = 1000, 8, 800, 16

#: Bytes for each placement or job, while it is waited for and then kept.
PER_PLACEMENT, PER_JOB = 1000, 1000

#: Up to so many nodes, and blocks that a node sends or receives, every algorithm plans within about
#: a second of a common machine; from so many nodes on, some take minutes.
QUICK_NODES, QUICK_BLOCKS, SLOW_NODES = 2**12, 2**16, 2**16

#: Seconds from which on it is said how long something may take.
LONG = 60.0

#: What is left to everything else on this machine, and what need not be looked for.
SPARE, LITTLE = 2**28, 2**24


class Need(NamedTuple):
    """Memory that grows with a number that a user chose.

    Parameters
    ----------
    size : int
        Bytes. An integer, since a user may choose a number that no float holds.
    name : str
        What the number is called: ``--chunks``, or ``nodes``.
    value : int
        The number.
    power : int
        With which power of the number it grows: 1 or 2.
    """

    size: int
    name: str
    value: int
    power: int = 1


def require_memory(what: str, needs: Iterable[Need]) -> None:
    """Refuse what cannot fit into this machine's memory.

    Parameters
    ----------
    what : str
        What is to be done, to begin the error with: ``Planning 8x8 allgather``.
    needs : iterable of Need

    Raises
    ------
    NotEnoughMemory
        If there is less memory; says how much it would take, and up to which number it would fit.

    Examples
    --------
    >>> require_memory("Planning", [Need(10**20, "--chunks", 10**18)])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    torusfabric.errors.NotEnoughMemory: Planning must fit in memory, ... of which are free, ...
    """
    merged: dict[tuple[str, int, int], int] = {}
    for size, name, value, power in needs:
        merged[name, value, power] = merged.get((name, value, power), 0) + size
    total = sum(merged.values())
    LOGGER.debug("%s takes at least %s of memory", what, memory_text(total))
    if total <= LITTLE or total <= (free := max(available_memory() - SPARE, 0)):
        return
    (name, value, power), size = max(merged.items(), key=lambda item: item[1])
    fitting = value**power * max(free - (total - size), 0) // size
    number = _rounded(math.isqrt(fitting) if power == 2 else fitting)
    advice = f"{name} {number}" if name.startswith("--") else f"{number} {name}"
    raise NotEnoughMemory(
        f"{what} must fit in memory, {memory_text(free)} of which are free, not take at least "
        f"{memory_text(total)}" + (f" (at best {advice})" if number else "")
    )


def _rounded(value: int) -> int:
    """A number cut to its first two digits.

    Examples
    --------
    >>> _rounded(7), _rounded(123456)
    (7, 120000)
    """
    unit: int = 10 ** max(len(str(value)) - 2, 0)
    return value // unit * unit


def announce(what: str, seconds: float) -> None:
    """Say how long something may take, if that is long.

    Parameters
    ----------
    what : str
        What is to be done, to begin with: ``Planning 8x8 allgather``.
    seconds : float
    """
    level = logging.INFO if seconds >= LONG else logging.DEBUG
    LOGGER.log(level, "%s may take some %s", what, duration_text(max(seconds, 1)))


def plan_needs(selection: Selection) -> list[Need]:
    """What it takes to plan, at least.

    Parameters
    ----------
    selection : Selection

    Returns
    -------
    list of Need

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> sum(need.size for need in plan_needs(select("8x8", "allgather"))) < 1e6
    True
    """
    whole, options = selection.topology, selection.options
    # In groups one of them is planned, and the whole is checked.
    topology = selection.collective.groups(whole).torus
    nodes, chunks = topology.nodes, options.chunks or 1
    needs = [Need(PER_PORT * nodes * topology.ports, "nodes", nodes)]
    if whole.nodes > nodes:
        needs.append(Need(NEIGHBOURS * whole.nodes * whole.ports, "nodes", whole.nodes))
    cut = "--chunks" if chunks > 1 else "nodes"
    # The chunks of an all-reduce are those of all nodes together.
    reduced = selection.collective.reducing and selection.collective.to_all
    blocks = chunks if reduced else nodes * chunks
    needs.append(Need(PER_BLOCK * blocks, cut, chunks if chunks > 1 else nodes))
    if options.latency > 1:
        waits = max(topology.diameter - 1, int(selection.collective.reducing))
        steps = 1 + waits * options.latency
        needs.append(Need(PER_SLOT * topology.ports * steps, "--latency", options.latency))
    packets, option = _packets(topology, options)
    if packets > 1:
        needs.append(Need((PER_ROUND + PER_BLOCK * nodes) * packets, option, packets))
    return needs


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


def announce_plan(what: str, topology: Topology) -> None:
    """Say that planning may take long, if it may.

    Parameters
    ----------
    what : str
        What is planned, to begin with: ``Planning 8x8 allgather``.
    topology : Topology
    """
    if topology.nodes >= SLOW_NODES:
        LOGGER.info("%s, of %d nodes, may take minutes", what, topology.nodes)


def _packets(topology: Topology, options: Options) -> tuple[int, str]:
    """Into how many packets each tree's share of a message is cut, and which option says so."""
    if options.times and isinstance(topology, Arrowhead):
        trees = options.trees or 2
        return best_packets(topology.order, *options.times, trees=trees), "packets"
    return options.packets or 1, "--packets"


def require_hardware(
    topology: Topology, collective: Collective, *, flits: int | None = None, runs: int = 0
) -> None:
    """Refuse a fabric that cannot be built, or not be simulated, in this machine's memory.

    Parameters
    ----------
    topology : Topology
    collective : Collective
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
    nodes, length = topology.nodes, flits or 1
    needs = [Need(PER_PIN * nodes * topology.ports, "nodes", nodes)]
    layout = collective.layout(topology, 1)
    words = nodes * (layout.send_words(length) + layout.recv_words(length))
    numbers = {"nodes": nodes, "--flits": length, "--repeat": runs}
    name = max(numbers, key=numbers.__getitem__)
    power = 2 if name == "nodes" and words > 2 * nodes * length else 1
    per_address = PER_ADDRESS if runs else PER_WRITTEN_ADDRESS
    size = PER_WORD * runs * words + per_address * words // nodes
    needs.append(Need(size, name, numbers[name], power))
    what = "Simulating" if runs else "Hardware of"
    require_memory(f"{what} {topology} {collective}", needs)


def require_jobs(count: int) -> None:
    """Refuse more jobs of a simulation than results can be kept of.

    Parameters
    ----------
    count : int

    Raises
    ------
    NotEnoughMemory
        If there is not enough memory.
    """
    require_memory("Jobs", [Need(PER_JOB * count, "--jobs", count)])


def require_placements(seeds: int) -> None:
    """Refuse more placements of a fabric than results can be kept of.

    Parameters
    ----------
    seeds : int

    Raises
    ------
    NotEnoughMemory
        If there is not enough memory.
    """
    require_memory("Placements", [Need(PER_PLACEMENT * seeds, "--seeds", seeds)])
