"""The schedule of a selection that has an algorithm, and the choice of the latency of sums.

The *latency* of a schedule is the least number of steps between the arrival of a word at a node and
its departure. The algorithm ``any-network`` takes long on large networks, so its schedules are
cached under a digest of all inputs: the selection and the source code of the planners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from ..collective import Collective
from ..errors import InputError
from ..schedule import Rounds, Schedule, Table
from ..schedule.recognise import recognise
from .limits import log_long_plan, memory_arguments, require_memory
from .selection import Selection

__all__ = ["choose_latency", "length_arguments", "length_of_collective", "plan_each_latency",
           "plan_with_algorithm", "schedule_of_selection"]  # fmt: skip

#: Latencies that `choose_latency` tries, in steps. Longer ones never took fewer cycles.
LATENCIES = (1, 2, 3, 4)


def schedule_of_selection(selection: Selection) -> Schedule:
    """Return the schedule of a selection that has an algorithm and a latency.

    The latency is the number of steps from the arrival of a word at a node to its departure. The
    schedule is `selection.planned` if that is set, else it is planned now.

    Raises
    ------
    InputError
        If the algorithm does not suit the selection.
    NotEnoughMemory
        If planning would take more memory than this machine has.
    """
    if selection.planned is not None:
        return selection.planned
    return (selection.planner or plan_with_algorithm)(selection)


def plan_with_algorithm(selection: Selection) -> Schedule:
    """Plan a selection with its algorithm, or read the schedule from the cache.

    This is the default planner of a `Selection`; its field `planner` replaces it.
    """
    algorithm = selection.resolve_algorithm()
    what = f"Planning {selection.topology} {selection.collective}"
    require_memory(what, *memory_arguments(selection))
    log_long_plan(what, selection)

    def plan() -> Schedule:
        return recognise(algorithm(selection.topology, selection.collective, selection.options))

    return cached_plan(selection, plan)


def choose_latency(selection: Selection, flits: int | None, *, any_length: bool) -> Selection:
    """Choose the latency of sums with the fewest cycles, if the user asked for ``latency="auto"``.

    An operator takes one cycle to add a word, and the sum leaves one cycle later. Words for the
    same sum are added one after another. With latency l, words that arrive in step t leave in step
    t + l at the earliest. A larger l keeps this pipeline full, but the schedule has more steps. The
    best latency depends on the schedule and on the message length, so a program is compiled for
    each latency and the cycles are compared.

    Parameters
    ----------
    selection : Selection
        A selection with an algorithm.
    flits : int or None
        Flits of a message, or of the longest message; None for one flit a chunk.
    any_length : bool
        True if each run chooses its message length.

    Returns
    -------
    Selection
        The selection with a latency. It also holds the schedule if the latency was open.

    Raises
    ------
    InputError
        If the algorithm does not suit the selection.
    """
    if selection.planned is not None or not selection.any_latency:
        return selection
    from ..program import compile  # here, since few selections need it and its import takes long

    found: list[tuple[int, Selection]] = []
    for candidate in plan_each_latency(selection):
        schedule = schedule_of_selection(candidate)
        if not (schedule.collective.reducing and schedule.form == Table.form):
            return candidate
        lengths = length_arguments(schedule, flits, any_length=any_length)
        program = compile(schedule, **lengths).by_beats(selection.beat)
        found.append((program.cycles(), candidate))
    return min(found, key=lambda entry: entry[0])[1]


def plan_each_latency(selection: Selection) -> Iterator[Selection]:
    """Yield a selection with its schedule; if the latency is open, once for each latency.

    The latency is the least number of steps between the arrival of a word at a node and the
    departure of its sum. It is open with ``latency="auto"``; then `LATENCIES` are tried in order,
    until one does not change the schedule.

    Raises
    ------
    InputError
        If the algorithm does not suit the selection.
    """
    if not selection.any_latency:
        yield replace(selection, planned=schedule_of_selection(selection))
        return
    first = ""
    for latency in LATENCIES:
        options = replace(selection.options, latency=latency)
        one = replace(selection, options=options, any_latency=False)
        try:
            schedule = schedule_of_selection(one)
        except InputError:
            if not first:
                raise
            return  # the algorithm refuses a latency above 1
        if schedule.digest == first:
            return  # the algorithm ignores the latency
        first = first or schedule.digest
        yield replace(one, planned=schedule)


def length_of_collective(
    collective: Collective, flits: int | None, *, any_length: bool
) -> int | None:
    """Return the length of messages: that of the user's option, or of the messages of a user.

    Parameters
    ----------
    collective : Collective
        If its messages have unequal lengths, these decide.
    flits : int or None
        Flits of a message that the user gives.
    any_length : bool
        True if each run chooses its message length.

    Raises
    ------
    InputError
        If the user gives another length than that of the longest message.
    """
    longest = collective.fixed_flits
    if longest is None:
        return collective.listed_flits if flits is None and not any_length else flits
    if any_length or flits not in (None, longest):
        raise InputError(
            f"{collective.kind} with messages of unequal lengths has the length of its longest "
            f"message, {longest} flits; leave --flits and --max-flits out"
        )
    return longest


def length_arguments(schedule: Schedule, flits: int | None, *, any_length: bool) -> dict[str, Any]:
    """Return the length arguments of `compile` for a schedule: ``flits`` or ``max_flits``.

    Parameters
    ----------
    schedule : Schedule
        The schedule to compile.
    flits : int or None
        Flits of a message; with `any_length`, of the longest message. None for one flit a chunk.
    any_length : bool
        True if each run chooses its message length.

    Examples
    --------
    >>> import torusfabric as tf
    >>> length_arguments(tf.plan("3x3", "allgather"), 4, any_length=True)
    {'max_flits': 4}
    """
    flits = length_of_collective(schedule.collective, flits, any_length=any_length)
    if not any_length:
        return {"flits": flits}
    return {"max_flits": schedule.chunks if flits is None else flits}


#: Nodes times arcs from which on reading a schedule from the cache is quicker than planning it
#: with the algorithm ``any-network``.
LARGE_NETWORK_CELLS = 50_000

#: Most blocks in all transfers of a cached schedule; a larger schedule is planned each time.
MOST_BLOCKS = 2**22


def cached_plan(selection: Selection, plan: Callable[[], Schedule]) -> Schedule:
    """Return the schedule of a selection from the cache; if it is missing, plan and cache it.

    Only the algorithm ``any-network`` on large networks uses the cache.

    Parameters
    ----------
    selection : Selection
        A selection with an algorithm and a latency.
    plan : function of () -> Schedule
        Plans this selection.
    """
    topology = selection.topology
    large = topology.nodes * int(topology.linked.sum()) >= LARGE_NETWORK_CELLS
    if not (large and selection.resolve_algorithm().name == "any-network"):
        return plan()
    # Imported here, because few selections use the cache.
    from ..toolchain.cache import Cache

    cache, key = Cache(), _cache_key(selection)
    if kept := cache.get(key):
        return Rounds(topology=topology, collective=selection.collective, **kept)
    schedule = plan()
    if isinstance(schedule, Rounds) and _n_transfer_blocks(schedule) <= MOST_BLOCKS:
        names = ("algorithm", "chunks", "transfers")
        cache.put(key, {name: getattr(schedule, name) for name in names})
    return schedule


def _n_transfer_blocks(schedule: Rounds) -> int:
    """Return the total number of blocks in all transfers of a schedule; sums count like blocks."""
    return sum(len(getattr(each.payload, "ids", each)) for each in schedule.transfers)


def _cache_key(selection: Selection) -> str:
    """Return the cache key: a digest of the selection and of the source code of the planners."""
    from ..toolchain.cache import digest, source_digest

    options = asdict(selection.options) | {"duplex": selection.options.duplex.value}
    return digest(
        "plan",
        source_digest("algorithms", "analysis", "collective", "schedule", "topology"),
        selection.topology.to_entry(),
        selection.collective.to_json(),
        selection.resolve_algorithm().name,
        options,
    )
