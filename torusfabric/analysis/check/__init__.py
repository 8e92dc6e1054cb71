"""Proof of a schedule, written without a look at any algorithm.

A schedule is correct if in every round every arc (in half duplex: every link) carries at most one
message, no node sends or receives more messages than it has ports to use, every block is held by
its sender before the round in which it is sent, and in the end every node holds all that the
collective must deliver to it. In reductions every contribution must be counted exactly once.

Nothing is taken on trust and nothing is sampled: where a schedule is written in a form that obeys
some rules by construction (a `Pattern`, a `Table`), the other rules are checked for all of it.
"""

from collections.abc import Sequence

from ...collective import Operator, parse_operators
from ...schedule import Lifted, Masked, Pattern, Schedule, SumPattern, SumTable, Table
from ...schedule.file import given_schedule
from ...schedule.quotient import Quotient
from ...toolchain.destinations import AnyPath
from ...toolchain.public import public
from .follow import Progress, Traffic, follow_rounds
from .patterns import (
    check_pattern,
    check_sum_pattern,
    inspect_pattern,
    inspect_sum_pattern,
    pattern_is_static,
    pattern_traffic,
)
from .rules import fault, inspect_schedule
from .symmetric import (
    inspect_quotient,
    inspect_table,
    prove_quotient,
    prove_sum_table,
    prove_sums_table,
    prove_table,
    table_traffic,
)

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
    proved: Traffic | None = None
    match schedule:
        case SumPattern():
            return check_sum_pattern(schedule)
        case Pattern() if not collective.reducing and pattern_is_static(schedule):
            return check_pattern(schedule, progress=progress)
        case Quotient():
            proved = prove_quotient(schedule, progress)
        case Table() if collective.from_each and not collective.rooted:
            proved = prove_table(schedule)
        case Table() if collective.reducing and (collective.personal or schedule.in_shares):
            if schedule.chunk.max(initial=0) < schedule.sums_of_owner:
                proved = prove_sums_table(schedule)
        case SumTable():
            proved = prove_sum_table(schedule, twice=twice)
    return proved or follow_rounds(schedule, progress, twice=twice)


def check_rounds(schedule: Schedule, *, progress: Progress | None = None) -> Traffic:
    """Check a schedule by following every block of every round, whatever its form.

    The verdict is that of `check`; parameters and errors are the same.
    """
    _inspect(schedule)
    return follow_rounds(schedule, progress)


def _inspect(schedule: Schedule) -> None:
    """Check what can be seen without following blocks."""
    inspect_schedule(schedule)
    match schedule:
        case Lifted():
            _inspect(schedule.part)
        case Masked(whole=Table() as whole):
            inspect_table(whole)
        case Quotient():
            inspect_quotient(schedule)
        case Pattern() | Table() | SumTable() | SumPattern() if schedule.collective.axes:
            text = f"a {schedule.form} is of one group: what several do is Lifted from that"
            raise fault(schedule, None, text)
        case Pattern():
            inspect_pattern(schedule)
        case Table():
            inspect_table(schedule)
        case SumTable():
            shape = (len(schedule.chunk), schedule.topology.ports)
            if schedule.chunk.shape != shape or schedule.passed.shape != shape:
                raise fault(schedule, None, f"the entries of a table must have shape {shape}")
            if schedule.collective.kind != "allreduce":
                text = "a table of sums that nodes keep must be an allreduce"
                raise fault(schedule, None, text)
        case SumPattern():
            inspect_sum_pattern(schedule)
