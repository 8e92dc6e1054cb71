"""Into how many chunks messages are cut: as few as come near the least message times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import ceil

from ...schedule import Transfers

__all__ = ["ALIKE", "ALIKE_EXCHANGE", "as_near_as_can_be", "candidates"]

#: Message times that are as good as the least; of a total exchange, whose paths are whole.
ALIKE, ALIKE_EXCHANGE = Fraction(103, 100), Fraction(110, 100)

#: The most chunks, and flits of a message whose last chunk must not be much shorter than others.
MOST, FLITS = 32, 64

#: How many steps times blocks at nodes may be planned before it is enough.
WORK = 30_000_000

#: Plans so many chunks.
Planner = Callable[[int], Sequence[Transfers]]


def candidates(least: Fraction, alike: Fraction = ALIKE) -> Iterator[int]:
    """Numbers of chunks, of which whole steps may come near the least message times.

    Messages of `FLITS` flits come as near, whose chunks all take as many cycles as the longest.
    Where no number comes near, the one that comes the nearest.

    Examples
    --------
    >>> [next(candidates(least)) for least in (Fraction(21), Fraction(14, 3), Fraction(23, 2))]
    [1, 4, 2]
    """
    times = {chunks: _times(least, chunks) for chunks in range(1, MOST + 1)}
    near = [chunks for chunks, time in times.items() if time <= alike * least]
    yield from near or [min(times, key=times.__getitem__)]


def _times(least: Fraction, chunks: int) -> Fraction:
    """Message times of so many chunks at the least: of a long message, and of `FLITS` flits."""
    steps = ceil(least * chunks)
    return max(Fraction(-(-FLITS // chunks) * steps, FLITS), Fraction(steps, chunks))


def as_near_as_can_be(
    least: Fraction, cells: int, plan: Planner, alike: Fraction = ALIKE
) -> tuple[int, Sequence[Transfers]]:
    """The first number of chunks with which a plan comes near the least message times.

    Parameters
    ----------
    cells : int
        Blocks at nodes of one chunk a message: what a step of planning takes.

    Returns
    -------
    chunks : int
    transfers : sequence of Transfers
        The steps. Where no plan comes near, those that come the nearest.
    """
    best: tuple[Fraction, int, Sequence[Transfers]] | None = None
    work = 0
    for chunks in (tried := [*candidates(least, alike)]):
        beyond = 0 if best is None else len(best[2]) - least * best[1]
        few = beyond > 2 * (alike - 1) * least * chunks
        if few and chunks < tried[-1]:
            continue  # what is too much hardly depends on the chunks
        steps = plan(chunks)
        times = Fraction(len(steps), chunks)
        if best is None or times < best[0]:
            best = times, chunks, steps
        work += len(steps) * chunks * cells
        if times <= alike * least or work > WORK:
            break
    assert best is not None
    return best[1:]
