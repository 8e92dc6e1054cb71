"""Plans that took long, kept in the cache under the digest of all that they depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..schedule import Rounds, Schedule

if TYPE_CHECKING:
    from .selection import Selection

__all__ = ["kept_plan"]

#: Nodes times arcs from which on planning on any network takes longer than reading a plan.
LARGE = 50_000

#: More blocks than these in all transfers are planned again, not read.
MOST_BLOCKS = 2**22


def kept_plan(selection: Selection, plan: Callable[[], Schedule]) -> Schedule:
    """What is planned for a selection, or was planned for the same before by the same planners."""
    topology = selection.topology
    large = topology.nodes * int(topology.linked.sum()) >= LARGE
    if not (large and selection.chosen().name == "any-network"):
        return plan()
    # Few plans are kept: what does that is imported for them alone.
    from ..toolchain.cache import Cache

    cache, key = Cache(), _key(selection)
    if kept := cache.get_object(key):
        return Rounds(topology=topology, collective=selection.collective, **kept)
    schedule = plan()
    if isinstance(schedule, Rounds) and _size(schedule) <= MOST_BLOCKS:
        names = ("algorithm", "chunks", "transfers")
        cache.put_object(key, {name: getattr(schedule, name) for name in names})
    return schedule


def _size(schedule: Rounds) -> int:
    """How many blocks transfers list in all; of sums, how many there are."""
    return sum(len(getattr(each.payload, "ids", each)) for each in schedule.transfers)


def _key(selection: Selection) -> str:
    """A name for a selection and the planners."""
    from ..toolchain.cache import digest, source_digest

    options = asdict(selection.options) | {"duplex": selection.options.duplex.value}
    return digest(
        "plan",
        source_digest("algorithms", "analysis", "collective", "schedule", "topology"),
        selection.topology.to_entry(),
        selection.collective.to_json(),
        selection.chosen().name,
        options,
    )
