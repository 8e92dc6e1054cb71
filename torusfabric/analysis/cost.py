"""The cost of a schedule in the linear models of the papers, and in that of streams of flits.

The papers' model, `time`: a round, or step, lasts as long as its longest path and its longest
message. A round of circuits takes alpha to start, delta for each hop of the longest path, and tau
for each unit of the longest message (Delmas and Perennes, section 2; Deserable, section 3). A step
of store-and-forward takes beta to start, and tau for each unit of the longest message (Meyer and
Sibeyn, section 1; Deserable, section 4).

The model of flit streams, `stream_time`: where a node always feeds an out-port by the same
in-ports, flits follow one another through fixed trees, and no node waits for the rest of a message.
The run starts once (beta), the first flit takes delta for each hop of the deepest tree, and the
flits of one chunk follow at tau a unit. Fabrics of this package work like that, the papers'
machines do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from ..errors import InputError
from ..schedule import Lifted, Pattern, Schedule, SumPattern, SumTable, Switching, Table
from ..schedule.file import given_schedule
from ..schedule.sum_trees import sum_trees
from ..toolchain.public import public
from ..toolchain.values import no_such, real, shown
from .check import Traffic, check, pattern_traffic, table_traffic

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..toolchain.destinations import AnyPath

__all__ = [
    "Costs",
    "Number",
    "ScheduleCost",
    "StepLength",
    "read_costs",
    "schedule_cost",
    "step_length",
    "stream_time",
    "time",
]

#: A time or a length.
Number: TypeAlias = float | Fraction


class Costs(TypedDict, total=False):
    """Constants of the cost models; see `time` and `stream_time`."""

    alpha: Number
    beta: Number
    delta: Number
    tau: Number
    length: Number


#: The constants that are left out.
_FREE = Costs(alpha=0, beta=0, delta=0, tau=0, length=1)


def read_costs(costs: Costs | None) -> Costs:
    """The constants of the cost model, as given; texts as numbers.

    Raises
    ------
    InputError
        If there are none, one has no name that the model knows, or is less than 0 or no number.

    Examples
    --------
    >>> read_costs({"alpha": 100, "tau": "0.5"})
    {'alpha': 100, 'tau': 0.5}
    """
    known = list(Costs.__annotations__)
    if not isinstance(costs, Mapping) or not costs:
        raise InputError(f"Costs must name any of {', '.join(known)}, not {shown(costs)}")
    for name, value in costs.items():
        if name not in known:
            raise no_such("Cost", name, known)
        if not (isfinite(number := real(name.capitalize(), value)) and number >= 0):
            raise InputError(f"{name.capitalize()} must be finite and at least 0, not {value}")
    numbers = {name: real(name, value) if isinstance(value, str) else value
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
        ``alpha``, to start a round of circuits; ``beta``, to start a step of store-and-forward;
        ``delta``, to switch a circuit through a node; ``tau``, to send a unit over a link; and the
        ``length`` of one node's message in units (default 1). Those left out are 0.

    Returns
    -------
    number
        Exact if all are integers or fractions.

    Raises
    ------
    InputError
        If a constant is not known or less than 0, or there is no such file.
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
    Two rounds of circuits of four hops together, each with a whole message:

    >>> import torusfabric as tf
    >>> schedule = tf.plan("5x5", "broadcast", algorithm="lee-code")
    >>> time(schedule, alpha=100, delta=1, tau=10)
    Fraction(224, 1)

    Equations (13) and (14) of Deserable for an arrowhead of order 2: three steps of half a message,
    and 34 steps of its 64th part, the best number of packets.

    >>> for packets in (1, 32):
    ...     trees = tf.plan("arrowhead:2", "broadcast", algorithm="spanning-tree", packets=packets)
    ...     print(float(time(trees, beta=1, tau=1, length=1000)))
    1503.0
    565.25
    """
    return schedule_cost(given_schedule(schedule)).time(**read_costs(costs))


@public
def stream_time(schedule: Schedule | AnyPath, **costs: Unpack[Costs]) -> Number:
    """Return the time of a schedule through whose trees flits stream.

    The time is ``beta + delta * hops + tau * length / chunks``: one start, the hops of the deepest
    tree (of an all-reduce up and down), and the units of the chunk that each arc carries.

    Parameters
    ----------
    schedule : Schedule or path
        A broadcast, reduction or all-reduce along trees that never change, or the path of its file.
    **costs
        ``beta``, to start the run; ``delta``, for the first flit to cross a node; ``tau``, to send
        a unit over a link; and the ``length`` of one node's message in units (default 1). Those
        left out are 0; ``alpha`` is of circuits alone.

    Returns
    -------
    number
        Exact if all are integers or fractions.

    Raises
    ------
    InputError
        If flits do not stream through this schedule, a constant is not known or less than 0, or
        there is no such file.

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
    given = given_schedule(schedule)
    return schedule_cost(given).stream_time(**read_costs(costs))


@dataclass(frozen=True)
class ScheduleCost:
    """Sums of hops and messages that make the time of a schedule.

    Parameters
    ----------
    rounds : int
        Rounds of circuits, or steps of store-and-forward, empty ones included.
    delta : int
        The sum over the rounds of the hops of their longest path.
    tau : Fraction
        The sum over the rounds of their longest message, in units of one node's message (where
        each destination gets a message of its own: of one such message).
    transfers : int
        Number of transfers of all rounds together.
    stream : Fraction or None
        Where flits stream through trees that never change, the part of a message that each arc
        carries; elsewhere None.
    """

    switching: Switching
    rounds: int
    delta: int
    tau: Fraction
    transfers: int
    stream: Fraction | None = None

    @property
    def hardware_times(self) -> Fraction:
        """Message times of a fabric: of streams the part that each arc carries, elsewhere `tau`."""
        return self.tau if self.stream is None else self.stream

    def time(self, **costs: Unpack[Costs]) -> Number:
        """Return the time in the papers' model; see `time` of this module."""
        cost = _FREE | costs
        transmission = self.tau * cost["length"] * cost["tau"]
        if self.switching == Switching.CIRCUIT:
            return self.rounds * cost["alpha"] + self.delta * cost["delta"] + transmission
        return self.rounds * cost["beta"] + transmission

    def stream_time(self, **costs: Unpack[Costs]) -> Number:
        """Return the time of a stream of flits; see `stream_time` of this module."""
        if self.stream is None:
            raise InputError(
                "Stream_time needs trees that never change, such as a broadcast by spanning-tree; "
                "tf.time takes any schedule"
            )
        cost = _FREE | costs
        units = self.stream * cost["length"]
        return cost["beta"] + self.delta * cost["delta"] + units * cost["tau"]


def schedule_cost(schedule: Schedule, traffic: Traffic | None = None) -> ScheduleCost:
    """Return the sums that make the time of a schedule.

    Parameters
    ----------
    traffic : Traffic, optional
        What `check` returned for it. Without it a pattern or a table is measured
        by closed counts; other schedules are checked, since the length of a message that carries
        all its sender holds follows from the whole history.

    Raises
    ------
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
    >>> from torusfabric.algorithms import find
    >>> import torusfabric as tf
    >>> schedule = find("lee-code")(tf.Torus(5, 5), tf.parse_collective("broadcast"))
    >>> cost = schedule_cost(schedule)
    >>> cost.rounds, cost.delta, cost.tau
    (2, 4, Fraction(2, 1))
    >>> cost.time(alpha=100, delta=1, tau=10)
    Fraction(224, 1)
    """
    streams = sum_trees(schedule) is not None
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
    """What the longest message of a step, or round, carries, in messages of a node.

    Parameters
    ----------
    least, most : Fraction
        Of all steps in which anything is sent.

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


def step_length(schedule: Schedule, traffic: Traffic | None = None) -> StepLength:
    """The length of the steps, or rounds, of a schedule.

    Parameters
    ----------
    traffic : Traffic, optional
        What `check` returned for it. Without it, other schedules than patterns and tables, which
        move one block a step, are checked.

    Raises
    ------
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
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
