"""From a selection to a schedule: `plan`, the main function of the package, and its two steps.

`resolve` chooses the algorithm and the latency where a selection leaves them open.
`plan_selection` resolves a selection and returns its schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import Unpack

from ..algorithms import Algorithm
from ..analysis.check import check as check_schedule
from ..collective import Collective
from ..schedule import Schedule
from ..toolchain.public import public
from ..toolchain.values import parse_non_negative_int, require_bool
from ..topology import Topology
from .choice import choose_by_cycles, choose_by_model, choose_by_times, first_that_fits
from .estimates import choose_by_estimate
from .limits import memory_arguments, require_memory
from .selection import PlanOptions, Selection, make_selection
from .selection_schedule import choose_latency, length_of_collective, schedule_of_selection

__all__ = ["plan", "plan_selection", "resolve", "is_full_search"]

#: Most arcs of a network, or of a group of nodes, for which each algorithm is compiled. With more
#: arcs the cycles are estimated, because compiling would take minutes.
MOST_ARCS = 2**14


@public
def plan(  # noqa: PLR0913 (one choice of a user each)
    topology: Topology | str,
    collective: Collective | str,
    *,
    algorithm: Algorithm | str | None = None,
    root: int | str | None = None,
    axes: Sequence[int] | int | str | None = None,
    groups: Sequence[Sequence[int | str]] | str = (),
    traffic: Any = None,
    counts: Any = None,
    flits: int | str | None = None,
    check: bool = True,
    **options: Unpack[PlanOptions],
) -> Schedule:
    """Plan a collective, and check the schedule.

    Parameters
    ----------
    topology : Topology or str
        The network, such as ``Torus(8, 8)`` or ``"8x8"``.
    collective : Collective or str
        The collective, such as ``"allgather"``; ``"allgather@1"`` in all groups along axis 1 at
        once; or ``"allgather@{0,1,5,9}"`` among these nodes.
    algorithm : Algorithm or str, optional
        The algorithm that plans. By default the one with the fewest cycles for messages of `flits`
        flits; without `flits`, the best one for long messages.
    root : int or str, optional
        The node that broadcasts, scatters, gathers or reduces (default 0).
    axes : sequence of int, int or str, optional
        The axes that span the groups in which the collective runs, if its name has no axes: ``1``,
        ``[0, 2]`` or ``"0+2"``.
    groups : sequence of (sequence of (int or str)), or str, optional
        The nodes of each group, such as ``[[0, 1, 5, 9]]``, if the name of the collective has none
        in braces. Several groups run at once. Other nodes relay.
    traffic : Traffic, path, or iterable of messages, optional
        The messages of the collective ``"pattern"``, see `Traffic`.
    counts : array_like of int, or path, optional
        The flits of each message, if they are unequal: a number for each origin (all-gather,
        gather) or destination (scatter, reduce-scatter), a matrix [origin, destination]
        (all-to-all).
    flits : int, optional
        Flits of a message.
    check : bool
        True to check the schedule (default).
    **options
        Options of the algorithm: ports, chunks, large, seed, latency (a number, or ``"auto"`` for
        the quickest hardware), duplex, trees, packets and times, see `Options`. Faults and delays
        of links: broken_links (``"0:+0"``, a pair of a node and a port, or several of these),
        broken_nodes, relays (nodes that only pass on) and link_latency (in cycles, see `Torus`).
        The objective of the choice:
        ``objective="time"`` selects the algorithm with the least time in the papers' cost model.
        ``costs`` is a mapping with the constants of the model, see `time`; if it has no ``length``,
        the length is `flits`. Numbers may be given as text.

    Returns
    -------
    Schedule
        A `Pattern`, a `Table` or `Rounds`: the smallest of these forms that can express the plan.

    Raises
    ------
    InputError
        If a name is unknown, or no algorithm is suitable.
    ScheduleError
        If the schedule is wrong.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "allgather", algorithm="matching")
    >>> schedule.steps, schedule.form
    (4, 'table')

    In the cost model, ``alpha`` is the time to start a round of circuits, ``beta`` the time to
    start a step, and ``tau`` the time of a flit on a link. Long start-up times favour few rounds:

    >>> costs = {"alpha": 100, "beta": 100, "tau": 1}
    >>> tf.plan("8x8", "broadcast", flits=64, objective="time", costs=costs).algorithm
    'max-flow'
    """
    selection = make_selection(
        topology,
        collective,
        algorithm=algorithm,
        root=root,
        axes=axes,
        groups=groups,
        traffic=traffic,
        counts=counts,
        **options,
    )
    number = None if flits is None else parse_non_negative_int("Flits", flits)
    schedule = plan_selection(selection, flits=number)
    if require_bool("Check", check):
        check_schedule(schedule)
    return schedule


def plan_selection(selection: Selection, *, flits: int | None = None) -> Schedule:
    """Return the schedule of a selection; first choose an open algorithm or latency.

    The latency is open if the user gave ``latency="auto"``. The schedule is not checked.

    Parameters
    ----------
    selection : Selection
        The choice to plan.
    flits : int, optional
        Flits of a message. The algorithm and the latency are chosen for this length; without a
        length, for long messages.

    Returns
    -------
    Schedule
        The schedule in the smallest form that can express it.

    Raises
    ------
    InputError
        If no algorithm is suitable.
    NotEnoughMemory
        If planning would take more memory than this machine has.

    Examples
    --------
    Without a length, the algorithm is the best for long messages:

    >>> from torusfabric.planning import make_selection
    >>> plan_selection(make_selection("8x8", "broadcast")).algorithm
    'spanning-tree'
    """
    return schedule_of_selection(resolve(selection, flits=flits))


def resolve(
    selection: Selection,
    *,
    flits: int | None = None,
    any_length: bool = False,
    root: str | None = None,
) -> Selection:
    """Choose the algorithm and the latency of a selection, if the user left them open.

    The latency is the least number of steps between the arrival of a word at a node and the
    departure of the sum with this word. It is open with ``latency="auto"``.

    Parameters
    ----------
    selection : Selection
        The choice of the user.
    flits : int, optional
        Flits of a message; with `any_length`, flits of the longest message. If left out, the
        algorithm is chosen for long messages, the latency for messages of one flit a chunk.
    any_length : bool
        True if each run chooses its message length.
    root : {"any"}, optional
        ``"any"`` if each run chooses its root.

    Returns
    -------
    Selection
        The selection with an algorithm and a latency. It also holds the schedule (`planned`) if the
        choice needed it, and the reason (`why`).

    Raises
    ------
    InputError
        If no algorithm is suitable.

    Examples
    --------
    >>> from torusfabric.planning import make_selection
    >>> chosen = resolve(make_selection("4x4", "allreduce:matching", latency="auto"))
    >>> chosen.algorithm.name, chosen.options.latency
    ('matching', 3)
    """
    if selection.planned is not None:
        return selection
    flits = length_of_collective(selection.collective, flits, any_length=any_length)
    if (costs := selection.cost_model(flits)) is not None:
        return choose_by_model(selection, costs)
    # The chunks of an irregular collective are chosen for its length, also by a named algorithm.
    chosen = selection.collective.is_irregular and flits is not None
    if selection.algorithm is None or chosen:
        return _choose_algorithm(selection, flits, any_length=any_length, root=root)
    return choose_latency(selection, flits, any_length=any_length)


def is_full_search(selection: Selection) -> bool:
    """Return True if the choice of an algorithm compiles each algorithm of the catalogue.

    The catalogue is the list of all algorithms. The result is False if the network of one group has
    more than `MOST_ARCS` arcs, or if the user gives a seed. On larger networks `choose_by_estimate`
    chooses; a seed is for the first suitable algorithm.

    Parameters
    ----------
    selection : Selection
        Only its topology, its groups and its options matter.
    """
    return selection.planned_arcs <= MOST_ARCS and "seed" not in selection.options.given()


def _choose_algorithm(
    selection: Selection, flits: int | None, *, any_length: bool, root: str | None
) -> Selection:
    """Return a selection with an algorithm, and with a latency if it was open.

    An algorithm in `selection` is the only one. `flits` is the length of a message; None stands
    for long messages. With `any_length` each run chooses its length, at most `flits`; `root` is
    "any" if each run chooses its root.
    """
    selection.resolve_algorithm()  # raises an error if no algorithm fits
    # A seed is meant for the catalogue's first suitable algorithm, so no other one is tried.
    if "seed" in selection.options.given():
        first = first_that_fits(selection, "because a seed was given")
        return choose_latency(first, flits, any_length=any_length)
    if not is_full_search(selection):  # refuse a hopeless size before any algorithm is tried
        what = f"Planning {selection.topology} {selection.collective}"
        require_memory(what, *memory_arguments(selection))
    if flits is None:
        chosen = choose_by_times(selection, root=root)
        return choose_latency(chosen, None, any_length=any_length)
    if is_full_search(selection):
        return choose_by_cycles(selection, flits, any_length=any_length, root=root)
    if root is None and not selection.operators:
        return choose_by_estimate(selection, flits, any_length=any_length)
    first = first_that_fits(selection, "because the network is large")
    return choose_latency(first, flits, any_length=any_length)
