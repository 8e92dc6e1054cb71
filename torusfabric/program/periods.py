"""Periods: when what happens in a fabric that repeats its collective by itself.

A memory has two halves. The fabric reads what a node sends in one of them while the host writes the
other; it stores what arrives in one while the host reads the other. Reads begin and end a period
earlier than stores do, so each change halves at times of their own, and each has to be through with
a period before it begins the next one. Cycles are counted from the first slot of a period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .timing import ADDRESS, Timing, starts
from .values import Loop, Order

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Periods", "plan_periods"]

#: Cycles at rest before a period in which every node begins its own program anew.
REST = 1


@dataclass(frozen=True)
class Periods:
    """When what happens in a period, in cycles from its first slot.

    Parameters
    ----------
    cycles : int
        From the first slot of a period to that of the next.
    slots : int
        Cycles in which a row and a flit are presented.
    first_read : int
        When memories are given the first address to read.
    last_store : int
        When the last word is stored.
    rests : bool
        Whether nodes begin programs of their own anew with each period, for which they rest.
    """

    cycles: int
    slots: int
    first_read: int
    last_store: int
    rests: bool


def plan_periods(timing: Timing, *, rests: bool, late: int = 0) -> Periods:
    """Plan periods that follow one another as soon as can be.

    Parameters
    ----------
    timing : Timing
        Of one run.
    rests : bool
        Whether nodes begin programs of their own anew with each period.
    late : int
        By how many cycles some nodes answer the host later than others.

    Examples
    --------
    In three steps of one flit no cycle is lost, though words arrive five cycles after their slots.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "alltoall"))
    >>> plan_periods(program.timing, rests=False)
    Periods(cycles=3, slots=3, first_read=3, last_store=7, rests=False)
    """
    loop, flits = timing.loop, timing.flits
    slots = loop.slots(flits)
    reads = np.concatenate([np.asarray(times) for times in _reads(loop, flits)])
    stores = np.concatenate([np.asarray(times) for times in _stores(timing)])
    stored = int(stores.max()) + 1
    cycles = max(
        slots,
        int(reads.max() - reads.min()) + 1,
        stored - int(stores.min()) + late,
        slots + loop.drain + REST if rests else 0,
    )
    return Periods(cycles, slots, int(reads.min()), int(stores.max()), rests)


def _words(loop: Loop, flits: int, rows: IntArray, blocks: IntArray) -> IntArray:
    """The first slots of so many blocks in rows, and the last."""
    if loop.order is Order.FLIT:
        return np.concatenate([rows, rows + (flits - 1) * loop.rows])
    first = starts(loop.duration(flits))[rows]
    return np.concatenate([first, first + blocks * flits - 1])


def _reads(loop: Loop, flits: int) -> Iterator[IntArray]:
    """When memories are given the first and the last address of each row."""
    for reads in loop.reads:
        rows, variants = np.nonzero(reads.count)
        pairs = zip(rows.tolist(), variants.tolist(), strict=True)
        blocks = np.array([reads.total(row, variant) for row, variant in pairs], int)
        yield _words(loop, flits, rows, blocks) + ADDRESS + reads.skew


def _stores(timing: Timing) -> Iterator[IntArray]:
    """When the first and the last word of each row are stored."""
    loop, flits = timing.loop, timing.flits
    for writes in loop.writes:
        at = np.nonzero(writes.base >= 0)
        delays = [timing.store_delay(hops, writes.skew) for hops in writes.hops[at].tolist()]
        words = _words(loop, flits, at[0], writes.blocks[at])
        yield words + np.tile(np.array(delays, int), 2)
