"""The schedule of a selection whose algorithm is known, and the latency of sums.

Plans that took long are kept in the cache under the digest of all that they depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from ..errors import InputError
from ..schedule import Rounds, Schedule, Table
from ..schedule.recognise import recognise
from .limits import announce_plan, plan_memory, require_memory
from .selection import Selection

__all__ = ["choose_latency", "most_flits", "of_each_latency", "plan_anew", "planned"]

#: What is tried; more steps of waiting have never been of use.
LATENCIES = (1, 2, 3, 4)


def planned(selection: Selection) -> Schedule:
    """Plan what is selected, of which nothing is left open.

    Raises
    ------
    InputError
        If the algorithm does not serve, or this machine has not enough memory.
    """
    if selection.planned is not None:
        return selection.planned
    return (selection.planner or plan_anew)(selection)


def plan_anew(selection: Selection) -> Schedule:
    """Plan what is selected, or take it from the cache if it was planned before and took long."""
    algorithm = selection.chosen()
    what = f"Planning {selection.topology} {selection.collective}"
    require_memory(what, *plan_memory(selection))
    announce_plan(what, selection.topology, selection.options)

    def plan() -> Schedule:
        return recognise(algorithm(selection.topology, selection.collective, selection.options))

    return kept_plan(selection, plan)


def choose_latency(selection: Selection, flits: int | None, *, any_length: bool) -> Selection:
    """Choose the latency, if that is left open.

    Sums take a cycle to add and one to leave, and words for the same sum are added one after
    another. A schedule that lets sums leave a few steps after they came keeps that pipeline full at
    the price of some steps; which latency is best depends on the table and on the length of the
    messages.

    Raises
    ------
    InputError
        If the algorithm does not serve.
    """
    if selection.planned is not None or not selection.any_latency:
        return selection
    from ..program import compile  # here, since few selections need it and its import takes long

    found: list[tuple[int, Selection]] = []
    for candidate in of_each_latency(selection):
        schedule = planned(candidate)
        if not (schedule.collective.reducing and schedule.form == Table.form):
            return candidate
        lengths = most_flits(schedule, flits, any_length=any_length)
        program = compile(schedule, **lengths).by_beats(selection.beat)
        found.append((program.cycles(), candidate))
    return min(found, key=lambda entry: entry[0])[1]


def of_each_latency(selection: Selection) -> Iterator[Selection]:
    """What is planned, with each latency if that is left open and makes a difference.

    Raises
    ------
    InputError
        If the algorithm does not serve.
    """
    if not selection.any_latency:
        yield replace(selection, planned=planned(selection))
        return
    first = ""
    for latency in LATENCIES:
        options = replace(selection.options, latency=latency)
        one = replace(selection, options=options, any_latency=False)
        try:
            schedule = planned(one)
        except InputError:
            if not first:
                raise
            return  # the algorithm knows no latency
        if schedule.digest == first:
            return  # nor does this one
        first = first or schedule.digest
        yield replace(one, planned=schedule)


def most_flits(schedule: Schedule, flits: int | None, *, any_length: bool) -> dict[str, Any]:
    """The lengths to compile a schedule for: one, or all up to it; see `compile`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> most_flits(tf.plan("3x3", "allgather"), 4, any_length=True)
    {'max_flits': 4}
    """
    if not any_length:
        return {"flits": flits}
    return {"max_flits": schedule.chunks if flits is None else flits}


#: Nodes times arcs from which on planning on any network takes longer than reading a plan.
LARGE = 50_000

#: More blocks than these in all transfers are planned again, not read.
MOST_BLOCKS = 2**22


def kept_plan(selection: Selection, plan: Callable[[], Schedule]) -> Schedule:
    """What is planned for a selection, or was planned for the same before by the same planners."""
    topology = selection.topology
    large = topology.nodes * int(topology.linked.sum()) >= LARGE
    if not (large and selection.chosen().name == "any-network"):
        return plan()
    # Few plans are kept: what does that is imported for them alone.
    from ..toolchain.cache import Cache

    cache, key = Cache(), _key(selection)
    if kept := cache.get(key):
        return Rounds(topology=topology, collective=selection.collective, **kept)
    schedule = plan()
    if isinstance(schedule, Rounds) and _size(schedule) <= MOST_BLOCKS:
        names = ("algorithm", "chunks", "transfers")
        cache.put(key, {name: getattr(schedule, name) for name in names})
    return schedule


def _size(schedule: Rounds) -> int:
    """How many blocks transfers list in all; of sums, how many there are."""
    return sum(len(getattr(each.payload, "ids", each)) for each in schedule.transfers)


def _key(selection: Selection) -> str:
    """A name for a selection and the planners."""
    from ..toolchain.cache import digest, source_digest

    options = asdict(selection.options) | {"duplex": selection.options.duplex.value}
    return digest(
        "plan",
        source_digest("algorithms", "analysis", "collective", "schedule", "topology"),
        selection.topology.to_entry(),
        selection.collective.to_json(),
        selection.chosen().name,
        options,
    )
