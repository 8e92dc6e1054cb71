"""The cost of a schedule in the linear models of the papers.

A round, or step, lasts as long as its longest path and its longest message. With circuit switching
it takes alpha to start, delta for each hop of the longest path, and tau for each unit of the
longest message (Delmas and Perennes, section 2; Deserable, section 3); with store-and-forward
switching beta to start, and tau for each unit (Meyer and Sibeyn, section 1).
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
    "time",
]

#: A time or a length.
Number: TypeAlias = float | Fraction


class Costs(TypedDict, total=False):
    """The constants of the cost model; see `time`."""

    alpha: Number
    beta: Number
    delta: Number
    tau: Number
    length: Number


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


def time(schedule: Schedule | AnyPath, **costs: Unpack[Costs]) -> Number:
    """How long a schedule takes in the linear models of the papers.

    Parameters
    ----------
    schedule : Schedule or path
        Of any form; or its file.
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
    """
    return schedule_cost(given_schedule(schedule)).time(**read_costs(costs))


@dataclass(frozen=True)
class ScheduleCost:
    """What the time of a schedule is made of.

    Parameters
    ----------
    delta : int
        The sum over the rounds of the hops of their longest path.
    tau : Fraction
        The sum over the rounds of their longest message, in units of one node's message (where
        each destination gets a message of its own: of one such message). Of trees that never
        change, down or up which messages stream, only that of one of them.
    transfers : int
        Number of transfers of all rounds together.
    arc_uses : int
        The sum of the hops of all transfers.
    """

    switching: Switching
    rounds: int
    delta: int
    tau: Fraction
    transfers: int
    arc_uses: int

    def time(
        self,
        *,
        alpha: Number = 0,
        beta: Number = 0,
        delta: Number = 0,
        tau: Number = 0,
        length: Number = 1,
    ) -> Number:
        """How long the schedule takes, by the constants that `time` of this module has."""
        transmission = self.tau * length * tau
        if self.switching == Switching.CIRCUIT:
            return self.rounds * alpha + self.delta * delta + transmission
        return self.rounds * beta + transmission


def schedule_cost(schedule: Schedule, traffic: Traffic | None = None) -> ScheduleCost:
    """Measure what a schedule costs.

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
        counted = busy, busy, transfers, transfers
    elif isinstance(schedule, Table) and traffic is None:
        transfers, moving = table_traffic(schedule)
        counted = sum(moving), sum(moving), transfers, transfers
    else:
        found = traffic or check(schedule)
        hops, blocks = sum(found.round_hops), sum(found.round_blocks)
        counted = hops, blocks, found.transfers, found.arcs_used
    delta, blocks, transfers, arcs = counted
    # Of what streams an arc carries one chunk, while others carry the same.
    tau = Fraction(1 if streams else blocks, schedule.chunks)
    return ScheduleCost(schedule.switching, schedule.round_count, delta, tau, transfers, arcs)


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
