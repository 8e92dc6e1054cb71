"""The ports that every node of a core has to its memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .accesses import Access, Steps, of_runs
from .messages import Run, listed_places

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.placement import Placement
    from .machine import Machine

__all__ = ["CoreAccess"]


class CoreAccess(Access):
    """Every node is written and read by itself, where the address map that is written says.

    Parameters
    ----------
    fabric : Fabric
    machine : Machine
    placement : Placement
    """

    def __init__(self, fabric: Fabric, machine: Machine, placement: Placement) -> None:
        super().__init__(fabric, machine)
        self.answer = 1 + placement.endpoints.answer
        self._map = fabric.address_map()

    def idle(self) -> dict[str, IntArray]:
        """What drives nets of the top while nobody writes."""
        return {name: np.array([[0]]) for name in self.machine.text.inputs
                if name.startswith("write_enable_")}  # fmt: skip

    def writes(self, runs: Sequence[Run]) -> Steps:
        """Writes of what nodes send."""
        places = [listed_places(self.program, run, self._map["sent"], sent=True) for run in runs]
        address = of_runs([place.address for place in places], ends_at_once=True)
        numbers = {
            "write_enable": (address >= 0).astype(int),
            "write_bank": of_runs([place.memory for place in places], ends_at_once=True),
            "write_address": address,
        }
        return Steps(len(address), numbers, {"write_data": self.sent(runs)},
                     otherwise={"write_enable": 0})  # fmt: skip

    def reads(self, runs: Sequence[Run]) -> Steps:
        """Reads of what nodes have received."""
        listed = self._map["received"]
        places = [listed_places(self.program, run, listed, sent=False) for run in runs]
        numbers = {
            "read_bank": of_runs([place.memory for place in places]),
            "read_address": of_runs([place.address for place in places]),
        }
        return Steps(len(numbers["read_address"]), numbers)
