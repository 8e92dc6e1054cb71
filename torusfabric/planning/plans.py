"""From a selection or a file to a schedule in its smallest form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..algorithms import Algorithm
from ..analysis.check import check as check_schedule
from ..collective import Collective
from ..errors import InputError
from ..schedule import Schedule, Table
from ..schedule.recognise import recognise
from ..toolchain.values import natural
from ..topology import Topology
from .limits import announce_plan, plan_memory, require_memory
from .selection import PlanOptions, Selection, select

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["most_flits", "plan", "plan_selection", "resolve"]

#: What is tried; more steps of waiting have never been of use.
LATENCIES = (1, 2, 3, 4)

#: On more arcs than this, not all algorithms are tried: the first of the catalogue is taken.
MOST_ARCS = 2**14


def plan(
    topology: Topology | str,
    collective: Collective | str,
    *,
    algorithm: Algorithm | str | None = None,
    root: int | str | None = None,
    axes: Sequence[int] | int | str | None = None,
    flits: int | str | None = None,
    check: bool = True,
    **options: Unpack[PlanOptions],
) -> Schedule:
    """Plan a collective, and prove the schedule right.

    Parameters
    ----------
    topology : Topology or str
        Such as ``Torus(8, 8)`` or ``"8x8"``.
    collective : Collective or str
        Such as ``"allgather"``, or ``"allgather@1"`` in all groups along axis 1 at once.
    algorithm : Algorithm or str, optional
        By default that with the fewest cycles at the length that is given, or else what is best
        for long messages.
    flits : int, optional
        Flits of a message.
    root : int or str, optional
        The node that broadcasts, scatters, gathers or reduces (default 0).
    axes : sequence of int, int or str, optional
        The axes that span the groups in which the collective runs, where the name does not say: one
        or several, or as in ``"0+2"``.
    check : bool
        Whether to check the schedule.
    **options
        What to ask of the algorithm: ports, chunks, large, seed, latency (a number, or ``"auto"``
        for the quickest hardware), broken_links (as on the command line, ``"0:+0"``, or pairs of a
        node and a port; one or several), duplex, trees, packets, times. Numbers may be text.

    Returns
    -------
    Schedule
        A pattern, a table, or rounds.

    Raises
    ------
    InputError
        If a name is unknown, or no algorithm serves.
    ScheduleError
        If the schedule is wrong.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "allgather", algorithm="matching")
    >>> schedule.steps, schedule.form
    (4, 'table')
    """
    selection = select(topology, collective, algorithm=algorithm, root=root, axes=axes, **options)
    schedule = plan_selection(selection, flits=None if flits is None else natural("Flits", flits))
    if check:
        check_schedule(schedule)
    return schedule


def plan_selection(selection: Selection, *, flits: int | None = None) -> Schedule:
    """Plan what is selected; the schedule is not checked.

    Parameters
    ----------
    flits : int, optional
        Flits of a message, for which the algorithm and the latency are chosen where they are left
        open; without it, what is best for long messages.

    Returns
    -------
    Schedule
        In its smallest form.

    Raises
    ------
    InputError
        If no algorithm serves, or this machine has not enough memory.

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> plan_selection(select("8x8", "broadcast")).algorithm
    'spanning-tree'
    """
    chosen = resolve(selection, flits=flits)
    if chosen.planned is not None:
        return chosen.planned
    algorithm = chosen.chosen()
    what = f"Planning {chosen.topology} {chosen.collective}"
    require_memory(what, *plan_memory(chosen))
    announce_plan(what, chosen.topology)
    return recognise(algorithm(chosen.topology, chosen.collective, chosen.options))


def resolve(
    selection: Selection,
    *,
    flits: int | None = None,
    any_length: bool = False,
    root: str | None = None,
) -> Selection:
    """Choose what a selection leaves open: the algorithm, and the latency.

    Sums take a cycle to add and one to leave, and words for the same sum are added one after
    another. A schedule that lets sums leave a few steps after they came keeps that pipeline full at
    the price of some steps; which latency is best depends on the table and on the length of the
    messages.

    Parameters
    ----------
    flits : int, optional
        Flits of a message, or the most; by default one for each chunk.
    any_length : bool
        Whether the length is chosen at the start of each run.
    root : {"any"}, optional
        Whether the root is, too.

    Raises
    ------
    InputError
        If no algorithm serves.

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> chosen = resolve(select("4x4", "allreduce", latency="auto"))
    >>> chosen.algorithm.name, chosen.options.latency
    ('matching', 3)
    """
    if selection.planned is not None:
        return selection
    if selection.algorithm is None:
        return _chosen(selection, flits, any_length=any_length, root=root)
    if not selection.any_latency:
        return selection
    from ..program import compile  # here, since few selections need it and its import takes long

    found: list[tuple[int, int, Selection]] = []
    for latency in LATENCIES:
        options = replace(selection.options, latency=latency)
        candidate = replace(selection, options=options, any_latency=False)
        try:
            schedule = plan_selection(candidate)
        except InputError:
            if not found:
                raise
            break  # the algorithm knows no latency
        if not (schedule.collective.reducing and schedule.form == Table.form):
            return candidate
        lengths = most_flits(schedule, flits, any_length=any_length)
        found.append((compile(schedule, **lengths).cycles(), latency, candidate))
    return min(found, key=lambda entry: entry[:2])[2]


def _chosen(
    selection: Selection, flits: int | None, *, any_length: bool, root: str | None
) -> Selection:
    """The choice of the algorithm, and of the latency.

    A seed is for the first algorithm of the catalogue that serves without it.
    """
    topology, options = selection.topology, selection.options
    first = replace(selection, algorithm=selection.chosen())
    if topology.nodes * topology.ports > MOST_ARCS or "seed" in options.given():
        return resolve(first, flits=flits, any_length=any_length)
    from .choice import choose_by_cycles, choose_by_times  # here, since it imports this module

    if flits is not None:
        return choose_by_cycles(selection, flits, any_length=any_length, root=root)
    chosen = choose_by_times(selection, root=root)
    return resolve(chosen, any_length=any_length)


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
