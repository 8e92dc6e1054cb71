"""Whole runs, from loaders to unloaders, of a fabric with streams and loaded tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....topology import BoolArray, IntArray
from ...streams.claims.whole_runs import StreamAccess

if TYPE_CHECKING:
    from ....proof.machine import Machine
    from ....proof.messages import Run

__all__ = ["RoomAccess"]


class RoomAccess(StreamAccess):
    """The signals that loaders and unloaders give to the nodes, according to the image."""

    always_last = True

    def __init__(self, fabric: Any, machine: Machine) -> None:
        super().__init__(fabric, machine)
        self._entries = np.array([place.number for place in fabric.tables.image.places])

    def entries(self, forms: list[int]) -> IntArray:
        """Return the numbers of the entries of forms."""
        found: IntArray = self._entries[forms]
        return found

    def leads(self, runs: Sequence[Run]) -> IntArray:
        """Return the cycles from `ends` to the last cycle, for each run.

        The sequencer of a room knows the last slot of a run in that slot, not before. So `ends`
        comes no earlier than the last slot.
        """
        forms = self.program.forms
        drains = [forms[run.form(self.program)].timing.drain for run in runs]
        return np.minimum(drains, self.lead)

    def sends(self, run: Run) -> BoolArray:
        """Return True for each node that sends a message."""
        part = self.program.part(run.form(self.program))
        sends: BoolArray = part.groups.group >= 0
        if part.schedule.collective.single_origin:
            sends &= part.groups.position == part.schedule.collective.root
        return sends
