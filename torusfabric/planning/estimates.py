"""Choice of an algorithm on large networks: by an estimate of the cycles, without compiling.

On a large network compiling each candidate would take minutes. `choose_by_estimate` plans the
candidates and compares `estimate_cycles`, which follows from steps, hops and message lengths alone.
It stops as soon as a candidate is within 3 % of the cycle limit, because no other schedule can then
be noticeably quicker.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ..algorithms.algorithm import AlgorithmFailed
from ..analysis.cost import schedule_cost
from ..analysis.volume import cycle_limit
from ..errors import InputError
from ..schedule import Schedule, SumTable, Switching
from .choice import candidate_name, first_that_fits, suitable_selections
from .selection import Selection
from .selection_schedule import choose_latency, schedule_of_selection

__all__ = ["choose_by_estimate", "estimate_cycles"]

#: Share by which an estimate may exceed the cycle limit for the search to stop.
LIMIT_TOLERANCE = 0.03


def choose_by_estimate(selection: Selection, flits: int, *, any_length: bool = False) -> Selection:
    """Choose the algorithm whose schedule takes the fewest cycles by estimate.

    Candidates are the suitable algorithms in the order of the catalogue, each with the options of
    the user and with the options that it proposes. The first one within 3 % of the cycle limit is
    chosen; without one, the candidate with the fewest cycles.

    Parameters
    ----------
    selection : Selection
        The choice of the user. Its operators are not considered.
    flits : int
        Flits of a message; with `any_length`, flits of the longest message.
    any_length : bool
        True if each run chooses its message length.

    Returns
    -------
    Selection
        The selection with an algorithm, a latency, the schedule, and the reason of the choice.

    Raises
    ------
    InputError
        If no algorithm is suitable.

    Examples
    --------
    Short sums are exchanged along the axes, in fewer hops than along trees. The reason lists all
    candidates that take at most twice as many cycles:

    >>> from torusfabric.planning import make_selection
    >>> print(choose_by_estimate(make_selection("16x16x16", "allreduce"), 2).why)
    about 54 cycles for 2 flits; spanning-tree 76, ring-exchange chunks=1 101
    """
    limit = cycle_limit(selection.topology, selection.collective, flits)
    best, fewest, each = None, 0, dict[str, int]()
    for candidate in suitable_selections(selection, 0 if any_length else flits):
        try:
            candidate = choose_latency(candidate, flits, any_length=any_length)
            schedule = schedule_of_selection(candidate)
        except InputError as error:
            if isinstance(error, AlgorithmFailed):
                error.warn_once()
            continue
        cycles = each[candidate_name(candidate)] = estimate_cycles(schedule, flits)
        if best is None or cycles < fewest:
            best, fewest = replace(candidate, planned=schedule), cycles
        if cycles <= (1 + LIMIT_TOLERANCE) * limit:
            break
    if best is None:
        return first_that_fits(selection)
    del each[candidate_name(best)]
    others = ", ".join(f"{name} {cycles}" for name, cycles in each.items() if cycles <= 2 * fewest)
    length = f"{'up to ' * any_length}{flits} flit{'s' * (flits != 1)}"
    why = f"about {fewest} cycles for {length}; {others or f'at least {limit}'}"
    return replace(best, why=why)


def estimate_cycles(schedule: Schedule, flits: int) -> int:
    """Return about how many cycles a fabric takes for a schedule.

    The estimate follows from the cost of the schedule. The program takes a few more cycles for the
    pipelines of its hardware. Messages are padded to chunks of equally many flits, as `compile`
    does. Only tables of sums that nodes keep are compiled.

    Parameters
    ----------
    schedule : Schedule
        Any schedule.
    flits : int
        Flits of a message.

    Examples
    --------
    >>> import torusfabric as tf
    >>> for algorithm in ("spanning-tree", "matching", "ring-exchange"):
    ...     schedule = tf.plan("8x8", "allreduce", algorithm=algorithm)
    ...     print(algorithm, estimate_cycles(schedule, 64), tf.compile(schedule, flits=64).cycles())
    spanning-tree 47 53
    matching 32 70
    ring-exchange 277 277
    """
    from ..program import compile  # here, since its import takes long

    if isinstance(schedule, SumTable):
        # Words of one sum that arrive at once are added one after another, which only the program
        # tells. Such tables are short.
        return compile(schedule, flits=flits).cycles()
    cost, chunk_flits = schedule_cost(schedule), -(-flits // schedule.chunks)
    if cost.stream is not None:
        return cost.delta + chunk_flits - 1
    moved = ceil(cost.tau * schedule.chunks) * chunk_flits
    if schedule.switching == Switching.STORE_AND_FORWARD:
        return max(moved, cost.delta)
    return moved + cost.delta - cost.rounds  # the first flit of a round needs a cycle for each hop
