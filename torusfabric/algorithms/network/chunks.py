"""The number of chunks of a message: the fewest that come near the least message times.

The *least message times* are the lower bound of `least_time` on the time of a collective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import ceil

from ...schedule import Transfers

__all__ = ["NEAR_FACTOR", "NEAR_FACTOR_EXCHANGE", "plan_near_bound", "candidate_chunk_counts"]

#: The message times that count as near the least, relative to them; and those of an all-to-all,
#: whose paths are whole.
NEAR_FACTOR, NEAR_FACTOR_EXCHANGE = Fraction(103, 100), Fraction(110, 100)

#: The most chunks; and the length in flits of a message whose last chunk must not be much shorter
#: than the others.
MOST_CHUNKS, LONG_MESSAGE_FLITS = 32, 64

#: The most steps times blocks at nodes that are planned before the best plan so far is taken.
WORK_LIMIT = 30_000_000

#: A function that returns the steps of a plan for a number of chunks.
Planner = Callable[[int], Sequence[Transfers]]


def candidate_chunk_counts(least: Fraction, alike: Fraction = NEAR_FACTOR) -> Iterator[int]:
    """Yield the numbers of chunks with which a plan may come near the least message times.

    A step carries one chunk over a link, so a plan of as few steps as possible takes the least
    message times, rounded up to whole chunks. Numbers are ascending, up to 32. A number is taken if
    it comes near for a very long message and also for one of `LONG_MESSAGE_FLITS` flits, which may
    lose time because its chunks have unequal lengths. If no number comes near, the number that
    comes nearest is yielded.

    Parameters
    ----------
    least : Fraction
        Lower bound of the message times.
    alike : Fraction
        The largest message times that count as near, relative to `least`: 1.03 by default.

    Examples
    --------
    With a bound of 21 message times, whole messages are good enough; with 14/3, four chunks:

    >>> [next(candidate_chunk_counts(least)) for least in (Fraction(21), Fraction(14, 3),
    ...     Fraction(23, 2))]
    [1, 4, 2]
    """
    times = {chunks: _least_times_in_chunks(least, chunks) for chunks in range(1, MOST_CHUNKS + 1)}
    near = [chunks for chunks, time in times.items() if time <= alike * least]
    yield from near or [min(times, key=times.__getitem__)]


def _least_times_in_chunks(least: Fraction, chunks: int) -> Fraction:
    """Return the message times of the shortest possible plan with `chunks` chunks.

    A step carries one chunk over a link, so the plan has `least` times `chunks` steps, rounded up.
    The last chunks of a message may be shorter than the others, which wastes time. The result is
    therefore the larger of two times: that of a very long message, and that of a message of
    `LONG_MESSAGE_FLITS` flits.
    """
    steps = ceil(least * chunks)
    return max(
        Fraction(-(-LONG_MESSAGE_FLITS // chunks) * steps, LONG_MESSAGE_FLITS),
        Fraction(steps, chunks),
    )


def plan_near_bound(
    least: Fraction, cells: int, plan: Planner, alike: Fraction = NEAR_FACTOR
) -> tuple[int, Sequence[Transfers]]:
    """Plan with more and more chunks, until a plan comes near the least message times.

    Parameters
    ----------
    least : Fraction
        Lower bound of the message times.
    cells : int
        Number of pairs (block, node that receives it) if each message is one chunk: a measure of
        the work of planning.
    plan : function of int -> sequence of Transfers
        Function that plans with a given number of chunks, and returns the steps.
    alike : Fraction
        The largest message times that count as near, relative to `least`: 1.03 by default.

    Returns
    -------
    chunks : int
        The number of chunks.
    transfers : sequence of Transfers
        The steps of that plan; if none comes near, of the plan that comes nearest.
    """
    best: tuple[Fraction, int, Sequence[Transfers]] | None = None
    work = 0
    for chunks in (tried := [*candidate_chunk_counts(least, alike)]):
        beyond = 0 if best is None else len(best[2]) - least * best[1]
        few = beyond > 2 * (alike - 1) * least * chunks
        if few and chunks < tried[-1]:
            continue  # the excess steps hardly depend on the number of chunks
        steps = plan(chunks)
        times = Fraction(len(steps), chunks)
        if best is None or times < best[0]:
            best = times, chunks, steps
        work += len(steps) * chunks * cells
        if times <= alike * least or work > WORK_LIMIT:
            break
    assert best is not None
    return best[1:]
