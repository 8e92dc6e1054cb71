"""The cost of a schedule in the linear models of the papers.

A round, or step, lasts as long as its longest path and its longest message. With circuit switching
it takes alpha to start, delta for each hop of the longest path, and tau for each unit of the
longest message (Delmas and Perennes, section 2; Deserable, section 3); with store-and-forward
switching beta to start, and tau for each unit (Meyer and Sibeyn, section 1).
"""

from dataclasses import dataclass
from fractions import Fraction

from ..schedule import Pattern, Switching, Table
from .check import check, pattern_traffic, table_traffic

__all__ = ["ScheduleCost", "schedule_cost"]


@dataclass(frozen=True)
class ScheduleCost:
    """What the time of a schedule is made of.

    Parameters
    ----------
    switching : str
        ``store-and-forward`` or ``circuit``.
    rounds : int
        Number of rounds.
    delta : int
        The sum over the rounds of the hops of their longest path.
    tau : Fraction
        The sum over the rounds of their longest message, in units of one node's message (where
        each destination gets a message of its own: of one such message).
    transfers : int
        Number of transfers of all rounds together.
    arc_uses : int
        The sum of the hops of all transfers.
    """

    switching: str
    rounds: int
    delta: int
    tau: Fraction
    transfers: int
    arc_uses: int

    def time(self, *, alpha=0, beta=0, delta=0, tau=0, length=1):
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


def schedule_cost(schedule, traffic=None):
    """Measure what a schedule costs.

    Parameters
    ----------
    schedule : Schedule
        Of any form.
    traffic : Traffic, optional
        What `check` returned for it. Without it a pattern or a table is measured
        by closed counts; other schedules are checked, since the length of a message that carries
        all its sender holds follows from the whole history.

    Returns
    -------
    ScheduleCost

    Raises
    ------
    ScheduleError
        If the schedule has to be checked and has a fault.
    """
    rounds, chunks = schedule.round_count, schedule.chunks
    if traffic is None and isinstance(schedule, Pattern | Table):
        if isinstance(schedule, Pattern):
            transfers, busy = pattern_traffic(schedule)
        else:
            transfers, moving = table_traffic(schedule)
            busy = sum(moving)
        return ScheduleCost(
            schedule.switching, rounds, busy, Fraction(busy, chunks), transfers, transfers
        )
    traffic = traffic or check(schedule)
    return ScheduleCost(
        switching=schedule.switching,
        rounds=rounds,
        delta=sum(traffic.round_hops),
        tau=Fraction(sum(traffic.round_blocks), chunks),
        transfers=traffic.transfers,
        arc_uses=traffic.arcs_used,
    )
