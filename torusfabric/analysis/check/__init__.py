"""Proof of a schedule, written without a look at any algorithm.

A schedule is correct if in every round every arc (in half duplex: every link) carries at most one
message, no node sends or receives more messages than it has ports to use, every block is held by
its sender before the round in which it is sent, and in the end every node holds all that the
collective must deliver to it. In reductions every contribution must be counted exactly once.

Nothing is taken on trust and nothing is sampled: where a schedule is written in a form that obeys
some rules by construction (a `Pattern`, a `Table`), the other rules are checked for all of it.
"""

from collections.abc import Callable, Sequence
from functools import partial

from ...collective import Operator, parse_operators
from ...errors import ScheduleError
from ...schedule import Lifted, Pattern, Schedule, SumPattern, SumTable, Table
from ...schedule.file import given_schedule
from ...schedule.quotient import Quotient
from ...toolchain.destinations import AnyPath
from ...toolchain.public import public
from .blocks import track_blocks
from .fault import fault
from .kept_sums import (
    check_sum_table,
    inspect_kept_sums,
    inspect_sum_table,
    track_kept_sums,
)
from .pattern import check_pattern, inspect_pattern, pattern_is_static, pattern_traffic
from .quotient import check_quotient
from .structure import inspect_round, inspect_schedule
from .sum_pattern import check_sum_pattern, inspect_sum_pattern
from .sums import track_sums
from .table import check_sums_table, check_table, inspect_table, table_traffic
from .traffic import Progress, Tally, Traffic

__all__ = ["Progress", "Traffic", "check", "check_rounds", "pattern_traffic", "table_traffic"]


@public
def check(
    schedule: Schedule | AnyPath,
    *,
    operators: Operator | str | Sequence[Operator | str] = (),
    progress: Progress | None = None,
) -> Traffic:
    """Check a schedule.

    Parameters
    ----------
    schedule : Schedule or path
        Of any form; or its file.
    operators : Operator, str, or sequence of them
        Those by which a reduction combines words. If all are idempotent, such as ``max``, a
        contribution may be in a sum twice where nodes keep their sums.
    progress : function of (done, total), optional

    Raises
    ------
    InputError
        If there is no such file or it is not a valid schedule file; names the place.
    ScheduleError
        At the first fault: names the round, counted from 1, the node, the port and the block.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.check(tf.plan("4x4", "alltoall", check=False)).transfers
    512
    """
    schedule = given_schedule(schedule)
    _inspect(schedule)
    collective = schedule.collective
    named = parse_operators(operators)
    twice = bool(named) and all(operator.idempotent for operator in named)
    match schedule:
        case SumTable():
            return check_sum_table(schedule, twice=twice)
        case SumPattern():
            return check_sum_pattern(schedule)
        case Quotient():
            return check_quotient(schedule, progress=progress)
        case Pattern() if not collective.reducing and pattern_is_static(schedule):
            return check_pattern(schedule, progress=progress)
        case Table() if collective.from_each and not collective.rooted:
            return check_table(schedule)
        case Table() if collective.reducing and (collective.personal or schedule.in_shares):
            if schedule.chunk.max(initial=0) < schedule.sums_of_owner:
                return check_sums_table(schedule)
    return _follow_rounds(schedule, progress, twice=twice)


def check_rounds(schedule: Schedule, *, progress: Progress | None = None) -> Traffic:
    """Check a schedule by following every block of every round, whatever its form.

    The verdict is that of `check`; parameters and errors are the same.
    """
    _inspect(schedule)
    return _follow_rounds(schedule, progress)


def _inspect(schedule: Schedule) -> None:
    """Check what can be seen without following blocks."""
    inspect_schedule(schedule)
    match schedule:
        case Lifted():
            _inspect(schedule.part)
        case Pattern() | Table() | SumTable() | SumPattern() if schedule.collective.axes:
            text = f"a {schedule.form} is of one group: what several do is Lifted from that"
            raise fault(schedule, None, text)
        case Pattern():
            inspect_pattern(schedule)
        case Table():
            inspect_table(schedule)
        case SumTable():
            inspect_sum_table(schedule)
        case SumPattern():
            inspect_sum_pattern(schedule)


def _follow_rounds(
    schedule: Schedule, progress: Progress | None, *, twice: bool = False
) -> Traffic:
    """Check the explicit transfers of a schedule of any form."""
    hops: list[int] = []
    arcs, count, broken = 0, 0, None
    kept = schedule.keeps_sums
    for number, transfers in enumerate(schedule.rounds(), 1):
        try:
            longest, used = inspect_round(schedule, number, transfers)
            if kept:
                inspect_kept_sums(schedule, number, transfers)
        except ScheduleError as error:
            broken = error
            break
        hops.append(longest)
        arcs += used
        count += len(transfers)
    track: Callable[..., Tally] = track_sums if schedule.collective.reducing else track_blocks
    if kept:
        track = partial(track_kept_sums, twice=twice)
    round_blocks, duplicates = track(schedule, len(hops), finish=broken is None, progress=progress)
    if broken is not None:
        raise broken
    return Traffic(
        rounds=len(hops),
        transfers=count,
        arcs_used=arcs,
        longest=max(hops, default=0),
        duplicates=duplicates,
        round_hops=tuple(hops),
        round_blocks=tuple(round_blocks),
    )
