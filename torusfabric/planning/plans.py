"""From a selection or a file to a schedule in its smallest form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import Unpack

from ..algorithms import Algorithm
from ..analysis.check import check as check_schedule
from ..collective import Collective
from ..schedule import Schedule
from ..toolchain.public import public
from ..toolchain.values import flag, natural
from ..topology import Topology
from .choice import choose_by_cycles, choose_by_model, choose_by_times
from .planned import choose_latency, planned
from .selection import PlanOptions, Selection, select

__all__ = ["plan", "plan_selection", "resolve", "tries_all"]

#: On more arcs than this, not all algorithms are tried: the first of the catalogue is taken.
MOST_ARCS = 2**14


@public
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
        node and a port; one or several), link_latency (as of `Torus`), duplex, trees, packets,
        times. Numbers may be text. And
        what decides among algorithms: ``objective="time"`` takes the least time in the model of the
        papers, with these ``costs``: a mapping, see `time`, whose length is `flits` if left out.

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

    Where a start costs as much as a hundred units, few rounds of circuits are quicker than streams:

    >>> costs = {"alpha": 100, "beta": 100, "tau": 1}
    >>> tf.plan("8x8", "broadcast", flits=64, objective="time", costs=costs).algorithm
    'max-flow'
    """
    selection = select(topology, collective, algorithm=algorithm, root=root, axes=axes, **options)
    number = None if flits is None else natural("Flits", flits)
    schedule = plan_selection(selection, flits=number)
    if flag("Check", check):
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
    return planned(resolve(selection, flits=flits))


def resolve(
    selection: Selection,
    *,
    flits: int | None = None,
    any_length: bool = False,
    root: str | None = None,
) -> Selection:
    """Choose what a selection leaves open: the algorithm, and the latency.

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
    >>> chosen = resolve(select("4x4", "allreduce:matching", latency="auto"))
    >>> chosen.algorithm.name, chosen.options.latency
    ('matching', 3)
    """
    if selection.planned is not None:
        return selection
    if (costs := selection.model(flits)) is not None:
        return choose_by_model(selection, costs)
    if selection.algorithm is None:
        return _chosen(selection, flits, any_length=any_length, root=root)
    return choose_latency(selection, flits, any_length=any_length)


def tries_all(selection: Selection) -> bool:
    """Whether all algorithms are tried where none is named."""
    topology, options = selection.topology, selection.options
    return topology.nodes * topology.ports <= MOST_ARCS and "seed" not in options.given()


def _chosen(
    selection: Selection, flits: int | None, *, any_length: bool, root: str | None
) -> Selection:
    """The choice of the algorithm, and of the latency.

    A seed is for the first algorithm of the catalogue that serves without it.
    """
    first = replace(selection, algorithm=selection.chosen())
    if not tries_all(selection):
        return choose_latency(first, flits, any_length=any_length)
    if flits is not None:
        return choose_by_cycles(selection, flits, any_length=any_length, root=root)
    chosen = choose_by_times(selection, root=root)
    return choose_latency(chosen, None, any_length=any_length)
