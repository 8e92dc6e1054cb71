"""`spread`: the same transfers in other rounds, so that no two of them meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...analysis.check import Progress, check, check_delivery
from ...analysis.check.rules import inspect_round, make_fault
from ...collective import Operator
from ...errors import ScheduleError
from ...schedule import Schedule
from ...schedule.file import load_if_path
from ...toolchain.destinations import AnyPath
from ...toolchain.public import public
from .collisions import Collision, list_collisions
from .order import TransferOrder, order_transfers
from .placement import Workload
from .precedence import NEVER
from .search import LowerBounds, find_bounds, find_rounds
from .transfer_list import TransferList

__all__ = ["Spreading", "explain_spread", "find_collisions", "spread"]


class Spreading(NamedTuple):
    """A schedule without collisions, and a diagnosis of the schedule from which it was made.

    Parameters
    ----------
    schedule : Schedule
        The schedule without collisions.
    rounds_before : int
        Rounds of the given schedule.
    collisions : list of Collision
        All places where transfers met or were early; empty if the schedule is unchanged.
    bounds : LowerBounds or None
        Lower bounds on the rounds of these transfers; None if the schedule is unchanged.
    busiest : str
        The resource that most transfers need, such as ``node 0 (0) port +0``.
    """

    schedule: Schedule
    rounds_before: int
    collisions: list[Collision]
    bounds: LowerBounds | None = None
    busiest: str = ""

    def to_json(self, most: int) -> dict[str, Any]:
        """Return the diagnosis as a JSON object, with the first `most` collisions."""
        found: dict[str, Any] = {
            "rounds_before": self.rounds_before,
            "rounds_after": self.schedule.round_count,
        }
        if self.bounds is not None:
            found |= {
                "bound": self.bounds.rounds,
                "busiest_load": self.bounds.load,
                "busiest": self.busiest,
                "longest_chain": self.bounds.chain,
            }
        shown = [each.to_json() for each in self.collisions[:most]]
        return found | {
            "collisions": len(self.collisions),
            "kinds": self.kind_counts,
            "first": shown,
        }

    @property
    def kind_counts(self) -> dict[str, int]:
        """The number of collisions of each kind, see `Collision`."""
        return dict(Counter(each.kind for each in self.collisions))


@public
def spread(
    schedule: Schedule | AnyPath,
    *,
    operators: Operator | str | Sequence[Operator | str] = (),
    progress: Progress | None = None,
) -> Schedule:
    """Return a schedule with the same transfers in which no two messages meet.

    Messages meet if they need one arc in the same round (or one link, in half duplex), or if a node
    sends or receives more messages than `Schedule.ports`. Transfers keep their paths and blocks.
    They are delayed or moved forward, so that the rounds are few and each sender holds its blocks.
    A transfer that sends a block before it arrives is delayed, too. In a reduction, sums are sent
    with the same contributions as before.

    Parameters
    ----------
    schedule : Schedule or path
        A schedule in any form, or the path of its file.
    operators : Operator, str, or sequence of them
        The operators of a reduction, see `check`.
    progress : function of (done, total), optional
        Called after each pass of the search.

    Returns
    -------
    Schedule
        The given schedule if it is right, else `Rounds` that pass `check`.

    Raises
    ------
    InputError
        If there is no such file or it is not a valid schedule file.
    ScheduleError
        If the schedule has a fault that no delay mends: a path that does not exist, a block that
        its sender never holds, or a block that is missing at the end.

    Notes
    -----
    The rounds are those of a heuristic search (list scheduling, forwards and backwards in turn). It
    ends early if it meets a lower bound: the load of the busiest arc, or the longest chain of
    transfers of which each waits for the one before.

    Examples
    --------
    In one round, node 0 of a ring sends three messages over two links. Two of them meet:

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> once = tf.Transfers(np.array([0, 0, 0]), np.array([[0, -1], [0, 0], [1, -1]]),
    ...     tf.Listed.single([1, 2, 3]))
    >>> mine = tf.Rounds(topology=tf.Torus(4), collective=tf.Collective("scatter", 0),
    ...     switching="circuit", transfers=(once,))
    >>> [str(each) for each in tf.find_collisions(mine)]  # doctest: +ELLIPSIS
    ['Round 1: node 0 (0) port +0 carries 0>1 with block (0, 1, 0) and 0>1>2 with block ...']
    >>> right = tf.spread(mine)
    >>> right.steps, tf.check(right).transfers
    (2, 3)
    """
    return explain_spread(schedule, operators=operators, progress=progress).schedule


@public
def find_collisions(
    schedule: Schedule | AnyPath,
    *,
    operators: Operator | str | Sequence[Operator | str] = (),
) -> list[Collision]:
    """Return the places where transfers of a schedule meet, or are early.

    Parameters
    ----------
    schedule : Schedule or path
        A schedule in any form, or the path of its file.
    operators : Operator, str, or sequence of them
        The operators of a reduction, see `check`.

    Returns
    -------
    list of Collision
        All collisions, round by round; empty if `spread` has nothing to do. The text of a collision
        names its place and its transfers.

    Raises
    ------
    InputError
        If there is no such file or it is not a valid schedule file.
    ScheduleError
        If the schedule has a fault that no delay mends.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.find_collisions(tf.plan("4x4", "allgather"))
    []
    """
    schedule = load_if_path(schedule)
    try:
        check(schedule, operators=operators)
    except ScheduleError:
        moves, order = _order_schedule(schedule, operators)
        _make_workload(moves, order)  # for its error
        return list_collisions(moves, order.rounds)
    return []


def explain_spread(
    schedule: Schedule | AnyPath,
    *,
    operators: Operator | str | Sequence[Operator | str] = (),
    progress: Progress | None = None,
) -> Spreading:
    """Return the schedule of `spread`, together with the collisions and the bounds.

    The arguments and the errors are those of `spread`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plan = tf.plan("4x4", "allgather")
    >>> explain_spread(plan).schedule is plan
    True
    """
    schedule = load_if_path(schedule)
    try:
        check(schedule, operators=operators)
    except ScheduleError:
        moves, order = _order_schedule(schedule, operators)
    else:
        return Spreading(schedule, schedule.round_count, [])
    work, names = _make_workload(moves, order)
    bounds = find_bounds(work)
    unit_rounds = find_rounds(work, bounds.rounds, progress)
    rounds = np.empty(len(moves), np.int64)
    for unit, when in zip(order.units, unit_rounds, strict=True):
        rounds[unit] = when
    result = moves.with_rounds(rounds)
    check(result, operators=operators)
    collisions = list_collisions(moves, order.rounds)
    busiest = _resource_name(schedule, names, bounds.busiest)
    return Spreading(result, schedule.round_count, collisions, bounds, busiest)


def _order_schedule(
    schedule: Schedule, operators: Operator | str | Sequence[Operator | str]
) -> tuple[TransferList, TransferOrder]:
    """Return the transfers of a schedule and their order; raise a fault that no delay mends."""
    if schedule.topology.spacing_multiple > 1:
        check(schedule, operators=operators)  # for its error: no delay is searched on slow links
    early: ScheduleError | None = None
    try:
        check_delivery(schedule, operators=operators)
    except ScheduleError as error:
        if error.round is None or error.node is None:
            raise  # a block is missing at the end, or a number of the schedule is wrong
        early, kept = error, schedule.keeps_sums
        for number, transfers in enumerate(schedule.rounds(), 1):
            inspect_round(schedule, number, transfers, kept=kept, crowded=True)
    moves = TransferList(schedule)
    order = order_transfers(moves, early=early is not None)
    if early is not None:
        if (order.rounds == NEVER).any() or (order.rounds == moves.round).all():
            raise early
        check_delivery(moves.with_rounds(order.rounds), operators=operators)
    return moves, order


def _make_workload(moves: TransferList, order: TransferOrder) -> tuple[Workload, list[int]]:
    """Return the workload of the search, and the number of each of its resources in `moves`.

    Raises
    ------
    ScheduleError
        If transfers that must share a round meet.
    """
    found = moves.needed_resources
    names, resource = np.unique(found.resource, return_inverse=True)
    unit_of = np.empty(len(moves), np.int64)
    for number, unit in enumerate(order.units):
        unit_of[unit] = number
    needs: list[list[int]] = [[] for _ in order.units]
    for number, each in zip(
        unit_of[found.transfer].tolist(), resource.reshape(-1).tolist(), strict=True
    ):
        needs[number].append(each)
    capacity = moves.capacity_of(names).tolist()
    for number, own in enumerate(needs):
        for each, count in Counter(own).items() if len(own) != len({*own}) else ():
            if count > capacity[each]:
                k = int(order.units[number][0])
                text = (
                    "exchanges sums in one round with transfers that meet, and no delay parts "
                    "them; allow more ports or full duplex"
                )
                raise make_fault(
                    moves.schedule, int(moves.round[k]) + 1, text,
                    node=moves.nodes[k, 0], port=moves.transfers.hops[k, 0],
                )  # fmt: skip
    sizes, turns = moves.sizes, order.rounds
    work = Workload(
        precedence=order.precedence,
        needs=needs,
        capacity=capacity,
        sizes=[int(sizes[unit].max()) for unit in order.units],
        turns=[int(turns[unit[0]]) for unit in order.units],
    )
    return work, names.tolist()


def _resource_name(schedule: Schedule, names: list[int], resource: int) -> str:
    """Return the name of a resource for people; empty if there is none.

    ``names[resource]`` is its number in `Resources`.
    """
    if resource < 0:
        return ""
    topology = schedule.topology
    node, port = divmod(names[resource], topology.ports)
    if node < topology.nodes:
        return topology.arc_name(node, port)
    kind, node = divmod(names[resource] - topology.nodes * topology.ports, topology.nodes)
    return f"node {node} {topology.node_name(node)} {'receives' if kind else 'sends'}"
