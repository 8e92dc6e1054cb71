"""Proof of a schedule, written without a look at any algorithm.

A schedule is correct if in every round every arc (in half duplex: every link) carries at most one
message, no node sends or receives more messages than it has ports to use, every block is held by
its sender before the round in which it is sent, and in the end every node holds all that the
collective owes it. In reductions every contribution must be counted exactly once.

Nothing is taken on trust and nothing is sampled: where a schedule is written in a form that obeys
some rules by construction (a `Pattern`, a `Table`), the other rules are checked for all of it.
"""

from ...errors import ScheduleError
from ...schedule import Pattern, Table
from ...schedule.quotient import Quotient
from .holding import track_blocks
from .invariant import check_table, inspect_table, table_traffic
from .invariant_sums import check_sums_table, sums_per_owner
from .oblivious import check_pattern, inspect_pattern, pattern_is_static, pattern_traffic
from .quotient import check_quotient
from .structure import inspect_round, inspect_schedule
from .sums import track_sums
from .traffic import Traffic

__all__ = ["Traffic", "check", "pattern_traffic", "table_traffic"]


def check(schedule, *, progress=None, plain=False):
    """Check a schedule.

    Parameters
    ----------
    schedule : Schedule
        Of any form.
    progress : function of (done, total), optional
        Called now and then with how much is done of how much.
    plain : bool
        Whether to follow every block of every round even where the form of the schedule allows
        a shorter way. The verdict is the same.

    Returns
    -------
    Traffic

    Raises
    ------
    ScheduleError
        At the first fault: names the round, counted from 1, the node, the port and the block.
    """
    inspect_schedule(schedule)
    if isinstance(schedule, Quotient) and not plain:
        return check_quotient(schedule, progress=progress)
    collective = schedule.collective
    if isinstance(schedule, Pattern):
        inspect_pattern(schedule)
        followed = not (collective.reducing or collective.personal) and schedule.steps > 0
        if followed and not plain and pattern_is_static(schedule):
            return check_pattern(schedule, progress=progress)
    if isinstance(schedule, Table):
        inspect_table(schedule)
        if collective.from_each and not collective.rooted and not plain:
            return check_table(schedule)
        followed = collective.reducing and not collective.rooted
        if followed and not plain and schedule.chunk.max(initial=0) < sums_per_owner(schedule):
            return check_sums_table(schedule)
    return _check_rounds(schedule, progress)


def _check_rounds(schedule, progress):
    """Check the explicit transfers of a schedule of any form."""
    hops, arcs, transfers_total, broken = [], 0, 0, None
    for number, transfers in enumerate(schedule.rounds(), 1):
        try:
            longest, used = inspect_round(schedule, number, transfers)
        except ScheduleError as error:
            broken = error
            break
        hops.append(longest)
        arcs += used
        transfers_total += len(transfers)
    track = track_sums if schedule.collective.reducing else track_blocks
    tally = track(schedule, len(hops), finish=broken is None, progress=progress)
    if broken is not None:
        raise broken
    return Traffic(
        rounds=len(hops),
        transfers=transfers_total,
        arcs_used=arcs,
        longest=max(hops, default=0),
        duplicates=tally.duplicates,
        round_hops=tuple(hops),
        round_blocks=tuple(tally.round_blocks),
    )
