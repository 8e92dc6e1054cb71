"""The cost of a schedule in the linear models of the papers.

A round, or step, lasts as long as its longest path and its longest message. With circuit switching
it takes alpha to start, delta for each hop of the longest path, and tau for each unit of the
longest message (Delmas and Perennes, section 2; Deserable, section 3); with store-and-forward
switching beta to start, and tau for each unit (Meyer and Sibeyn, section 1).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from ..schedule import Pattern, Schedule, Switching, Table
from ..schedule.sum_trees import sum_trees
from .check import Traffic, check, pattern_traffic, table_traffic

__all__ = ["Number", "ScheduleCost", "schedule_cost"]

#: A time or a length.
Number: TypeAlias = float | Fraction


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
        """How long the schedule takes.

        Parameters
        ----------
        alpha : number
            Time to start a round of circuit switching.
        beta : number
            Time to start a step of store-and-forward switching.
        delta : number
            Time to switch a circuit through a node.
        tau : number
            Time to send a message of unit length over one link.
        length : number
            Length of one node's message.

        Returns
        -------
        number
            Exact if the parameters are integers or fractions.
        """
        transmission = self.tau * length * tau
        if self.switching == Switching.CIRCUIT:
            return self.rounds * alpha + self.delta * delta + transmission
        return self.rounds * beta + transmission


def schedule_cost(schedule: Schedule, traffic: Traffic | None = None) -> ScheduleCost:
    """Measure what a schedule costs.

    Parameters
    ----------
    schedule : Schedule
        Of any form.
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
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> schedule = find("lee-code")(Torus(5, 5), parse_collective("broadcast"))
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
