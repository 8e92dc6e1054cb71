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
from ..topology import Topology
from .limits import announce_plan, plan_needs, require_memory
from .selection import PlanOptions, Selection, select

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["most_flits", "plan", "plan_selection", "resolve"]

#: What is tried; more steps of waiting have never been of use.
LATENCIES = (1, 2, 3, 4)


def plan(
    topology: Topology | str,
    collective: Collective | str,
    *,
    algorithm: Algorithm | str | None = None,
    root: int | str | None = None,
    axes: Sequence[int] | int | str | None = None,
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
        By default the first of the catalogue that serves.
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
    schedule = plan_selection(selection)
    if check:
        check_schedule(schedule)
    return schedule


def plan_selection(selection: Selection, *, flits: int | None = None) -> Schedule:
    """Plan what is selected; the schedule is not checked.

    Parameters
    ----------
    selection : Selection
    flits : int, optional
        Flits of a message, for which the latency is chosen if that is left open; by default one
        for each chunk.

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
    'max-flow'
    """
    chosen = resolve(selection, flits=flits)
    algorithm = chosen.chosen()
    what = f"Planning {chosen.topology} {chosen.collective}"
    require_memory(what, plan_needs(chosen))
    announce_plan(what, chosen.topology)
    return recognise(algorithm(chosen.topology, chosen.collective, chosen.options))


def resolve(
    selection: Selection, *, flits: int | None = None, any_length: bool = False
) -> Selection:
    """Choose what a selection leaves open: the algorithm, and the latency.

    Sums take a cycle to add and one to leave, and words for the same sum are added one after
    another. A schedule that lets sums leave a few steps after they came keeps that pipeline full at
    the price of some steps; which latency is best depends on the table and on the length of the
    messages.

    Parameters
    ----------
    selection : Selection
    flits : int, optional
        Flits of a message, or the most; by default one for each chunk.
    any_length : bool
        Whether the length is chosen at the start of each run.

    Returns
    -------
    Selection

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
    selection = replace(selection, algorithm=selection.chosen())
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
