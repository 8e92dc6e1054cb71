"""Steps of a schedule in canonical order, so that two schedules can be compared step by step."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...topology import Topology
from ..base import Schedule
from ..held_blocks import HeldBlocks
from ..transfers import Listed, Transfers

__all__ = ["Ints", "Irregular", "Step", "has_steps", "step_of_round", "steps_of"]

Ints = npt.NDArray[np.integer]


class Irregular(Exception):
    """Raised by a conversion to a form, such as a pattern, that the schedule does not have."""


class Step(NamedTuple):
    """The blocks that move in a step: arcs in ascending order, and the blocks on each.

    Arc ``arc[k] = node * ports + port`` carries the blocks ``ids[indptr[k]:indptr[k + 1]]``, in
    ascending order.
    """

    arc: Ints
    indptr: Ints
    ids: Ints


def steps_of(schedule: Schedule) -> Iterator[Step]:
    """Yield the rounds of a schedule as `Step` values; every path must be one hop."""
    rounds, held_blocks = list(schedule.rounds()), None
    if any(len(t) and not isinstance(t.payload, Listed) for t in rounds):
        try:
            held_blocks = HeldBlocks(schedule.topology, schedule.blocks)
        except InputError:
            raise Irregular from None
    for transfers in rounds:
        listed = held_blocks.execute(transfers) if held_blocks else transfers
        yield step_of_round(schedule.topology, listed)


def step_of_round(topology: Topology, transfers: Transfers) -> Step:
    """Return the transfers of a round as a step.

    Raises
    ------
    Irregular
        If a path has several hops, or an arc carries two messages.
    """
    none = np.empty(0, np.int64)
    if not len(transfers):
        return Step(none, np.zeros(1, np.int64), none)
    assert isinstance(transfers.payload, Listed)
    if (transfers.lengths != 1).any():
        raise Irregular
    arc = transfers.source.astype(np.int64) * topology.ports + transfers.hops[:, 0]
    order = np.argsort(arc, kind="stable")
    arc = arc[order]
    if (arc[1:] == arc[:-1]).any():
        raise Irregular
    sizes = np.diff(transfers.payload.indptr)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    ids = np.asarray(transfers.payload.ids, np.int64)
    span = int(ids.max(initial=0)) + 1
    ids = np.sort(np.repeat(rank, sizes) * span + ids) % span  # faster than sorting by two keys
    return Step(arc, np.concatenate([[0], np.cumsum(sizes[order])]), ids)


def has_steps(candidate: Schedule, steps: Iterable[Step]) -> bool:
    """Return True if the transfers of a candidate are exactly those of `steps`, step by step."""
    return all(
        (not len(transfers) and not len(step.arc))
        or all(map(np.array_equal, step_of_round(candidate.topology, transfers), step))
        for transfers, step in zip(candidate.rounds(), steps, strict=True)
    )
