"""Proof of whole runs of a fabric with streams and loaded tables.

A loader takes packets from the user and writes them into the memories of a node, an unloader sends
received words to the user. The proof drives the signals by which they write and read memories. An
*entry* is one form of a mode, for one root if runs choose the root. A *slot* is a cycle in which
the sequencer presents a row and a flit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....topology import BoolArray, IntArray
from ...streams.claims.whole_runs import StreamAccess

if TYPE_CHECKING:
    from ....proof.machine import SymbolicMachine
    from ....proof.messages import Run

__all__ = ["LoadedStreamAccess"]


class LoadedStreamAccess(StreamAccess):
    """The signals by which loaders and unloaders read and write memories, in a proof of runs.

    The methods replace those of `StreamAccess` that differ for a fabric with loaded tables.
    """

    always_last = True

    def __init__(self, fabric: Any, machine: SymbolicMachine) -> None:
        super().__init__(fabric, machine)
        self._entries = np.array([place.number for place in fabric.tables.image.places])

    def entry_numbers(self, forms: list[int]) -> IntArray:
        """Return the number of the entry of each form, given the numbers of forms in the program.

        An entry is the row of a form in the loaded tables, such as `modes`.
        """
        found: IntArray = self._entries[forms]
        return found

    def lead_cycles(self, runs: Sequence[Run]) -> IntArray:
        """Return the number of cycles from the signal ``ends`` to the last cycle of each run.

        By ``ends`` the sequencer announces the end of a run. In a loaded fabric it recognises the
        last slot (the last cycle in which it presents a row and a flit) only in this cycle; with
        fixed tables it can announce the end earlier. So the result is at most the number of cycles
        from the last slot to the end. `runs` are executed at the same time.
        """
        forms = self.program.forms
        drains = [forms[run.form_number(self.program)].timing.drain_cycles for run in runs]
        return np.minimum(drains, self.lead)

    def sending_nodes(self, run: Run) -> BoolArray:
        """Return an array that is True for each node that sends a message in a run.

        The shape is (nodes,). If only the root sends, it is the root of the form that `run`
        chooses.
        """
        part = self.program.part(run.form_number(self.program))
        sends: BoolArray = part.groups.group_of_node >= 0
        if part.schedule.collective.single_origin:
            sends &= part.groups.position_of_node == part.schedule.collective.root
        return sends
