"""Cost models of schedules: the linear model of the papers, and a model of streams of flits.

The papers' model, `time`: a round, or step, lasts as long as its longest path and its longest
message. A circuit-switched round takes alpha to start, delta for each hop of its longest path, and
tau for each unit of its longest message (Delmas and Perennes, section 2; Deserable, section 3). A
store-and-forward step takes beta to start, and tau for each unit of its longest message (Meyer and
Sibeyn, section 1; Deserable, section 4).

The symbols alpha, beta, delta and tau are constants with names of the papers. A user gives their
values in any unit of time.

The model of flit streams, `stream_time`: if a node always feeds an out-port from the same in-ports,
flits follow one another through fixed trees, and no node waits for a whole message. The run starts
once, in beta. The first flit takes delta for each hop of the deepest tree, and the flits of one
chunk follow at tau a unit. Fabrics of this package work like that; the machines of the papers do
not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from ..errors import InputError
from ..schedule import Lifted, Pattern, Schedule, SumPattern, SumTable, Switching, Table
from ..schedule.file import load_if_path
from ..schedule.sum_trees import find_sum_trees
from ..toolchain.public import public
from ..toolchain.values import message_text, parse_number, unknown_name_error
from .check import CheckedTraffic, check, pattern_traffic, table_traffic

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..toolchain.destinations import AnyPath

__all__ = ["Costs", "Number", "ScheduleCost", "StepLength", "read_costs", "schedule_cost",
           "step_length", "stream_time", "time"]  # fmt: skip

#: A time or a length.
Number: TypeAlias = float | Fraction


class Costs(TypedDict, total=False):
    """The constants of the cost models: alpha, beta, delta, tau and length.

    They are keyword arguments of `time` and `stream_time`, which describe them.
    """

    alpha: Number
    beta: Number
    delta: Number
    tau: Number
    length: Number


#: The default values of the constants.
_DEFAULT_COSTS = Costs(alpha=0, beta=0, delta=0, tau=0, length=1)


def read_costs(costs: Costs | None) -> Costs:
    """Check the constants of a cost model, and convert text to numbers.

    Parameters
    ----------
    costs : Costs or None
        Constants of the model by name; None gives no constant. A constant may be a number or its
        text.

    Raises
    ------
    InputError
        If no constant is given, a name is unknown, or a value is negative or no number.

    Examples
    --------
    >>> read_costs({"alpha": 100, "tau": "0.5"})
    {'alpha': 100, 'tau': 0.5}
    """
    known = list(Costs.__annotations__)
    if not isinstance(costs, Mapping) or not costs:
        raise InputError(f"Costs must name any of {', '.join(known)}, not {message_text(costs)}")
    for name, value in costs.items():
        if name not in known:
            raise unknown_name_error("Cost", name, known)
        if not (isfinite(number := parse_number(name.capitalize(), value)) and number >= 0):
            raise InputError(f"{name.capitalize()} must be finite and at least 0, not {value}")
    numbers = {name: parse_number(name, value) if isinstance(value, str) else value
               for name, value in costs.items()}  # fmt: skip
    return cast(Costs, numbers)


@public
def time(schedule: Schedule | AnyPath, **costs: Unpack[Costs]) -> Number:
    """Return the time of a schedule in the linear model of the papers.

    A round of circuits takes ``alpha + delta * hops + tau * units``, a step of store-and-forward
    ``beta + tau * units``: hops of the longest path, units of the longest message of that round.

    Parameters
    ----------
    schedule : Schedule or path
        A schedule of any form, or the path of its file.
    **costs
        The constants, 0 by default: ``alpha`` to start a circuit-switched round, ``beta`` to start
        a store-and-forward step, ``delta`` to switch a circuit through a node, ``tau`` to send a
        unit over a link. ``length`` is the size of the message of one node in units (default 1).

    Returns
    -------
    number
        Exact if all constants are integers or fractions.

    Raises
    ------
    InputError
        If a constant is unknown or negative, or the file does not exist.
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
    Two circuit-switched rounds with four hops in total, each with a whole message:

    >>> import torusfabric as tf
    >>> schedule = tf.plan("5x5", "broadcast", algorithm="lee-code")
    >>> time(schedule, alpha=100, delta=1, tau=10)
    Fraction(224, 1)

    Equations (13) and (14) of Deserable for an arrowhead of order 2: three steps with half a
    message each, or 34 steps with a 64th part each, which is the best number of packets:

    >>> for packets in (1, 32):
    ...     trees = tf.plan("arrowhead:2", "broadcast", algorithm="spanning-tree", packets=packets)
    ...     print(float(time(trees, beta=1, tau=1, length=1000)))
    1503.0
    565.25
    """
    return schedule_cost(load_if_path(schedule)).time(**read_costs(costs))


@public
def stream_time(schedule: Schedule | AnyPath, **costs: Unpack[Costs]) -> Number:
    """Return the time of a schedule through whose trees flits stream.

    The time is ``beta + delta * hops + tau * length / chunks``: one start, the hops of the deepest
    tree (in an all-reduce up and down), and the units of the chunk that each arc carries.

    Parameters
    ----------
    schedule : Schedule or path
        A broadcast, reduction or all-reduce along trees that never change, or the path of its file.
    **costs
        The constants, 0 by default: ``beta`` to start the run, ``delta`` for the first flit to
        cross a node, ``tau`` to send a unit over a link. ``length`` is the size of the message of
        one node in units (default 1). ``alpha`` is accepted and unused.

    Returns
    -------
    number
        Exact if all constants are integers or fractions.

    Raises
    ------
    InputError
        If flits do not stream through this schedule, a constant is unknown or negative, or the file
        does not exist.

    Examples
    --------
    Four trees of nine hops carry a quarter of the message each:

    >>> import torusfabric as tf
    >>> schedule = tf.plan("8x8", "broadcast", algorithm="spanning-tree")
    >>> stream_time(schedule, beta=20, delta=1, tau=1, length=64)
    Fraction(45, 1)
    >>> time(schedule, beta=20, tau=1, length=64)
    Fraction(324, 1)
    """
    given = load_if_path(schedule)
    return schedule_cost(given).stream_time(**read_costs(costs))


@dataclass(frozen=True)
class ScheduleCost:
    """The sums of hops and message lengths that determine the time of a schedule.

    Parameters
    ----------
    switching : Switching
        Decides which constants count: ``alpha`` and ``delta`` for circuits, ``beta`` for steps.
    rounds : int
        Number of rounds or steps, including empty ones.
    delta : int
        The hops of the longest path of each round, summed over all rounds.
    tau : Fraction
        The length of the longest message of each round, summed over all rounds. The unit is the
        message of one node; if each destination gets a message of its own, one such message.
    transfers : int
        Number of transfers in all rounds.
    stream : Fraction or None
        The part of a message that each arc carries, if flits stream through fixed trees; else None.
    """

    switching: Switching
    rounds: int
    delta: int
    tau: Fraction
    transfers: int
    stream: Fraction | None = None

    @property
    def hardware_times(self) -> Fraction:
        """The message times on a fabric.

        It is `stream` if flits stream through fixed trees, otherwise `tau`.
        """
        return self.tau if self.stream is None else self.stream

    def time(self, **costs: Unpack[Costs]) -> Number:
        """Return the time in the papers' model; see `time` of this module."""
        cost = _DEFAULT_COSTS | costs
        transmission = self.tau * cost["length"] * cost["tau"]
        if self.switching == Switching.CIRCUIT:
            return self.rounds * cost["alpha"] + self.delta * cost["delta"] + transmission
        return self.rounds * cost["beta"] + transmission

    def stream_time(self, **costs: Unpack[Costs]) -> Number:
        """Return the time of a stream of flits; see `stream_time` of this module."""
        if self.stream is None:
            raise InputError(
                "stream_time needs trees that never change, such as a broadcast by "
                "spanning-tree; for any schedule call tf.time"
            )
        cost = _DEFAULT_COSTS | costs
        units = self.stream * cost["length"]
        return cost["beta"] + self.delta * cost["delta"] + units * cost["tau"]


def schedule_cost(schedule: Schedule, traffic: CheckedTraffic | None = None) -> ScheduleCost:
    """Return the sums that determine the time of a schedule.

    Parameters
    ----------
    traffic : CheckedTraffic, optional
        The result of `check` for this schedule. Without it, a pattern or a table is measured by
        closed formulas. Any other schedule is checked here, because the length of a message that
        carries everything depends on all earlier rounds.

    Raises
    ------
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
    Two rounds have paths of four hops in total, and one whole message each:

    >>> from torusfabric.algorithms import find_algorithm
    >>> import torusfabric as tf
    >>> schedule = find_algorithm("lee-code")(tf.Torus(5, 5), tf.parse_collective("broadcast"))
    >>> cost = schedule_cost(schedule)
    >>> cost.rounds, cost.delta, cost.tau
    (2, 4, Fraction(2, 1))
    >>> cost.time(alpha=100, delta=1, tau=10)
    Fraction(224, 1)
    """
    streams = find_sum_trees(schedule) is not None
    if isinstance(schedule, Pattern) and (schedule.streams or traffic is None):
        streams = schedule.streams
        transfers, busy = pattern_traffic(schedule)
        counted = busy, busy, transfers
    elif isinstance(schedule, Table) and traffic is None:
        transfers, moving = table_traffic(schedule)
        counted = sum(moving), sum(moving), transfers
    else:
        found = traffic or check(schedule)
        counted = sum(found.round_hops), sum(found.round_blocks), found.transfers
    delta, blocks, transfers = counted
    if schedule.topology.spacing_multiple > 1:
        blocks = schedule.round_count  # slow links are busy in rounds in which nothing is sent
    return ScheduleCost(
        switching=schedule.switching,
        rounds=schedule.round_count,
        delta=delta,
        tau=Fraction(blocks, schedule.chunks),
        transfers=transfers,
        stream=Fraction(1, schedule.chunks) if streams else None,
    )


@dataclass(frozen=True)
class StepLength:
    """The range of the lengths of steps, or rounds, in a schedule.

    The length of a step is that of its longest message, in messages of one node.

    Parameters
    ----------
    least, most : Fraction
        The smallest and the largest length, over all steps in which data move.

    Examples
    --------
    >>> print(StepLength(Fraction(1, 2), Fraction(1, 2)), StepLength(Fraction(1), Fraction(49)))
    1/2 message 1 to 49 messages
    """

    least: Fraction
    most: Fraction

    def __str__(self) -> str:
        lengths = str(self.most) if self.least == self.most else f"{self.least} to {self.most}"
        return f"{lengths} message{'s' * (self.most > 1)}"


def step_length(schedule: Schedule, traffic: CheckedTraffic | None = None) -> StepLength:
    """Return the lengths of the steps, or rounds, of a schedule: the shortest and the longest.

    The length of a step is that of its longest message, in messages of one node.

    Parameters
    ----------
    traffic : CheckedTraffic, optional
        The result of `check` for this schedule. Without it, a schedule is checked here, unless it
        is a pattern or a table: those move one block a step.

    Raises
    ------
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
    Each step moves half a message over each link in use:

    >>> import torusfabric as tf
    >>> print(step_length(tf.plan("6x8", "allgather", algorithm="hamiltonian")))
    1/2 message
    """
    if isinstance(schedule, Lifted):
        return step_length(schedule.part, traffic)
    if traffic is None and isinstance(schedule, Pattern | SumPattern | Table | SumTable):
        blocks = {1}
    else:
        blocks = set((traffic or check(schedule)).round_blocks) - {0} or {0}
    chunks = schedule.chunks
    return StepLength(Fraction(min(blocks), chunks), Fraction(max(blocks), chunks))
