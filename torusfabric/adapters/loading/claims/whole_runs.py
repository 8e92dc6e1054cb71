"""Whole runs of streams between loaders and unloaders of a fabric whose tables are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....topology import BoolArray, IntArray
from ...streams.claims.whole_runs import StreamAccess

if TYPE_CHECKING:
    from ....proof.machine import Machine
    from ....proof.messages import Run

__all__ = ["RoomAccess"]


class RoomAccess(StreamAccess):
    """What a loader and an unloader give to each node, as the image of the fabric says."""

    always_last = True

    def __init__(self, fabric: Any, machine: Machine) -> None:
        super().__init__(fabric, machine)
        self._entries = np.array([place.number for place in fabric.tables.image.places])

    def entries(self, forms: list[int]) -> IntArray:
        """Return the numbers of the entries of forms."""
        found: IntArray = self._entries[forms]
        return found

    def sends(self, run: Run) -> BoolArray:
        """Return True for each node that sends anything."""
        part = self.program.part(run.form(self.program))
        sends: BoolArray = part.groups.group >= 0
        if part.schedule.collective.single_origin:
            sends &= part.groups.position == part.schedule.collective.root
        return sends
