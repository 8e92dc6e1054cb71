"""Oblivious sums: cycles through all nodes along which every node adds its own contribution."""

from collections.abc import Sequence

import numpy as np

from ..rounds import Rounds
from ..sum_pattern import SumPattern
from ..table import Table
from .steps import Irregular, Step, agree, one_step, steps_of

__all__ = ["sum_pattern_of_steps", "sum_pattern_of_table"]


def sum_pattern_of_steps(schedule: Rounds, steps: Sequence[Step]) -> SumPattern:
    """Steps as a pattern of sums; `Irregular` if they are none."""
    pattern = _pattern_from(schedule, steps[0])
    if not agree(pattern, steps):
        raise Irregular
    return pattern


def sum_pattern_of_table(table: Table) -> SumPattern:
    """A table as a pattern of sums; `Irregular` if it is none."""
    if not (table.collective.reducing and table.round_count):
        raise Irregular
    # Its first step tells most that are none, long before all contributions are listed.
    pattern = _pattern_from(table, one_step(table.topology, next(table.rounds())))
    if not agree(pattern, list(steps_of(table))):
        raise Irregular
    return pattern


def _pattern_from(schedule: Rounds | Table, first: Step) -> SumPattern:
    """The only pattern of sums that begins with a step; `Irregular` if there is none."""
    topology, blocks, collective = schedule.topology, schedule.blocks, schedule.collective
    around = (topology.nodes - 1) * (1 + collective.to_all)
    turns, rest = divmod(schedule.round_count, around)
    if not collective.reducing or topology.nodes < 3 or rest:
        raise Irregular  # two nodes just exchange words
    if len(first.ids) != len(first.arc):
        raise Irregular
    inject = np.full((topology.nodes, topology.ports), -1)
    inject.ravel()[first.arc] = blocks.chunk(first.ids) % max(schedule.sums_of_owner, 1)
    arriving = inject[topology.upstream]
    fits = (inject[:, :, None] == arriving[:, None, :]) & (inject >= 0)[:, :, None]
    feed = np.where(fits.any(axis=2), fits.argmax(axis=2), -1).astype(np.int8)
    pattern = SumPattern(**schedule.head, feed=feed, inject=inject, turns=turns)
    if not _goes_around(pattern):
        raise Irregular
    return pattern


def _goes_around(pattern: SumPattern) -> bool:
    """Whether every chunk that is sent in the first step leaves every node once."""
    sent = pattern.inject[pattern.inject >= 0]
    numbers, counts = np.unique(sent, return_counts=True)
    once = all(((pattern.inject == number).sum(axis=1) == 1).all() for number in numbers)
    return once and bool((pattern.feed >= 0).sum() == len(sent)) and len(counts) > 0
