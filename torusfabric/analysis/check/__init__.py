"""Proof that a schedule is correct, independent of the algorithms that planned it.

A schedule is correct if the following holds in every round:

- Every arc carries at most one message; in half duplex, every link does.
- No node sends, or receives, more messages than the ports that it may use.
- The sender of a block holds it before the round.
- A slow link carries its messages as far apart as its rate demands.

At the end every node must hold all data that the collective delivers to it, and in a reduction
every contribution must be counted exactly once.

All rules are checked completely, without sampling. Some forms of schedules (`Pattern`, `Table`)
obey some rules by construction; then only the other rules are checked. Each form has its own fast
proof (`patterns`, `symmetric`). If all groups of nodes do the same, one group is checked, after a
proof that the groups are equal and share no arc (`lifted`). `follow` checks any schedule block by
block, and is the reference for the fast proofs.
"""

from collections.abc import Sequence
from contextlib import suppress

from ...collective import Operator, parse_operators
from ...errors import ScheduleError
from ...schedule import Lifted, Masked, Pattern, Schedule, SumPattern, SumTable, Table
from ...schedule.file import load_if_path
from ...schedule.quotient import Quotient
from ...toolchain.destinations import AnyPath
from ...toolchain.public import public
from .follow import CheckedTraffic, Progress, follow_rounds
from .lifted import has_separate_copies, multiply_traffic
from .patterns import (
    check_pattern,
    check_sum_pattern,
    inspect_pattern,
    inspect_sum_pattern,
    is_static_pattern,
    pattern_traffic,
)
from .rules import inspect_schedule, make_fault
from .symmetric import (
    inspect_quotient,
    inspect_table,
    prove_kept_sums_table,
    prove_quotient,
    prove_reduction_table,
    prove_table,
    table_traffic,
)

__all__ = ["CheckedTraffic", "Progress", "check", "check_delivery", "check_rounds",
           "pattern_traffic", "table_traffic"]  # fmt: skip


@public
def check(
    schedule: Schedule | AnyPath,
    *,
    operators: Operator | str | Sequence[Operator | str] = (),
    progress: Progress | None = None,
) -> CheckedTraffic:
    """Check a schedule completely.

    Parameters
    ----------
    schedule : Schedule or path
        A schedule in any form, or the path of its file.
    operators : Operator, str, or sequence of them
        The operators by which a reduction may combine words. If all are idempotent, such as
        ``max``, a contribution may be in a kept sum twice.
    progress : function of (done, total), optional
        Called from time to time with the amount of work that is done, and the amount in all.

    Returns
    -------
    CheckedTraffic
        The transfers, hops and message lengths that the check has counted.

    Raises
    ------
    InputError
        If the file does not exist or is no valid schedule file. The message names the location.
    ScheduleError
        At the first fault. The message names the round, counted from 1, the node, the port and the
        block.

    Examples
    --------
    The all-to-all has 512 transfers:

    >>> import torusfabric as tf
    >>> tf.check(tf.plan("4x4", "alltoall", check=False)).transfers
    512
    """
    schedule = load_if_path(schedule)
    _inspect_form(schedule)
    collective = schedule.collective
    twice = _may_repeat(operators)
    proved: CheckedTraffic | None = None
    if schedule.topology.spacing_multiple > 1:
        # The fast proofs know no spacing of messages.
        return follow_rounds(schedule, progress, twice=twice)
    match schedule:
        case Lifted() if has_separate_copies(schedule):
            # After a fault in the part, the whole is followed: its error names nodes of the whole.
            with suppress(ScheduleError):
                one = check(schedule.part, operators=operators, progress=progress)
                return multiply_traffic(one, schedule.blocks.groups.n_groups)
        case SumPattern():
            return check_sum_pattern(schedule)
        case Pattern() if not collective.reducing and is_static_pattern(schedule):
            return check_pattern(schedule, progress=progress)
        case Quotient():
            proved = prove_quotient(schedule, progress)
        case Table() if collective.from_each and not collective.rooted:
            proved = prove_table(schedule)
        case Table() if collective.reducing and (collective.personal or schedule.in_shares):
            if schedule.chunk.max(initial=0) < schedule.sums_of_owner:
                proved = prove_reduction_table(schedule)
        case SumTable():
            proved = prove_kept_sums_table(schedule, twice=twice)
    return proved or follow_rounds(schedule, progress, twice=twice)


def check_rounds(schedule: Schedule, *, progress: Progress | None = None) -> CheckedTraffic:
    """Check a schedule of any form by following every block through every round.

    It accepts and refuses the same schedules as `check` without operators, with the same errors,
    and is slower. Users are tests that compare the fast proofs with this reference.

    Parameters
    ----------
    progress : function of (done, total), optional
        As for `check`.
    """
    _inspect_form(schedule)
    return follow_rounds(schedule, progress)


def check_delivery(
    schedule: Schedule,
    *,
    operators: Operator | str | Sequence[Operator | str] = (),
    progress: Progress | None = None,
) -> CheckedTraffic:
    """Check a schedule as if every arc carried any number of messages in a round.

    All rules are checked except two: an arc carries one message, and a node uses at most so many
    ports. `torusfabric.algorithms.spreading` uses it, and mends the faults that it accepts.

    Parameters
    ----------
    operators, progress
        As for `check`.

    Raises
    ------
    ScheduleError
        At the first fault.
    """
    _inspect_form(schedule)
    return follow_rounds(schedule, progress, twice=_may_repeat(operators), crowded=True)


def _may_repeat(operators: Operator | str | Sequence[Operator | str]) -> bool:
    """Return True if a sum may count a contribution twice: if all operators are idempotent.

    `operators` is the argument of `check`.
    """
    named = parse_operators(operators)
    return bool(named) and all(operator.idempotent for operator in named)


def _inspect_form(schedule: Schedule) -> None:
    """Check all rules for which the blocks that nodes hold do not matter.

    These are rules on numbers of ports and chunks, and on the arrays of a pattern, table or
    quotient schedule.
    """
    inspect_schedule(schedule)
    match schedule:
        case Lifted():
            _inspect_form(schedule.part)
        case Masked(whole=Table() as whole):
            inspect_table(whole)
        case Quotient():
            inspect_quotient(schedule)
        case Pattern() | Table() | SumTable() | SumPattern() if schedule.collective.axes:
            text = f"a {schedule.form} is of one group: what several do is Lifted from that"
            raise make_fault(schedule, None, text)
        case Pattern():
            inspect_pattern(schedule)
        case Table():
            inspect_table(schedule)
        case SumTable():
            shape = (len(schedule.chunk), schedule.topology.ports)
            if schedule.chunk.shape != shape or schedule.passed.shape != shape:
                raise make_fault(schedule, None, f"the entries of a table must have shape {shape}")
            if schedule.collective.kind != "allreduce":
                text = "a table of sums that nodes keep must be an allreduce"
                raise make_fault(schedule, None, text)
        case SumPattern():
            inspect_sum_pattern(schedule)
