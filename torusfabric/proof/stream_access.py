"""What loaders write into nodes, and unloaders read from them, in fabrics with streams.

Messages and runs have numbers modulo twice the sections of the memories. The lowest bits of the
number are the section; what a node gets from itself lies apart for each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ..rtl.cascade import select_code
from ..rtl.streams.packets import KEPT, packets_received, packets_sent
from ..topology import BoolArray, IntArray
from .accesses import Access, Steps, of_runs
from .messages import Run, received_places, sent_places

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.streams.endpoint import StreamEndpoint
    from .machine import Machine

__all__ = ["StreamAccess"]


class StreamAccess(Access):
    """Every node has a loader and an unloader of its own.

    Attributes
    ----------
    sections : Sections
        Of memories.
    number : int
        Of the message that is written, and of the run that is read.
    """

    #: The memory gives a word with the first edge, the choice of the memory with the second.
    answer = 2

    until_reset = 1

    def __init__(self, fabric: Fabric, machine: Machine) -> None:
        super().__init__(fabric, machine)
        self._endpoints = {
            module: cast("StreamEndpoint", fabric.netlist.modules[module[len(fabric.prefix):]]())
            for module in self.nodes
        }  # fmt: skip
        streams = next(iter(self._endpoints.values())).streams
        self.answer += streams.late
        self._own, self.sections = streams.own, streams.sections
        self.number = 0

    def idle(self) -> dict[str, IntArray]:
        """What drives nets of the top while nobody writes and no run begins."""
        writes = ("write_enable_", "write_kept_")
        names = [name for name in self.machine.text.nets if name.startswith(writes)]
        return dict.fromkeys([*names, "run_begins", "over", "clear"], np.array([[0]]))

    def resets(self) -> dict[str, IntArray]:
        """What drives nets of the top, besides, during a reset."""
        return {"clear": np.array([[1]])}

    def begins(self) -> dict[str, IntArray]:
        """What drives nets of the top, besides, when a run begins."""
        return {"run_begins": np.array([[1]])}

    def writes(self, runs: Sequence[Run]) -> Steps:
        """What loaders write of the messages of the nodes that have any."""
        places = [sent_places(self.program, run) for run in runs]
        address = of_runs([place.address for place in places], ends_at_once=True)
        bank = np.full(len(self.program.memories) + 1, -1)
        bank[list(self._own)] = np.arange(len(self._own))
        memory = of_runs([place.memory for place in places], ends_at_once=True)
        sends = np.stack([self._sends(run) for run in runs], axis=-1)
        itself, index = zip(*map(self._itself, runs), strict=True)
        there = sends & (address >= 0)
        numbers = {
            "write_enable": there.astype(int),
            "write_kept": (sends & (of_runs(itself, ends_at_once=True) == 1)).astype(int),
            "write_bank": bank[memory],
            "write_address": address,
            "write_index": of_runs(index, ends_at_once=True),
        }
        return Steps(
            len(address),
            numbers,
            {"write_data": self.sent(runs)},
            always={"write_section": self._everywhere(self.number)},
            otherwise={"write_enable": 0, "write_kept": 0},
        )

    def _sends(self, run: Run) -> BoolArray:
        """The nodes that send anything."""
        packets = packets_sent(self.program, run.mode)
        if packets.at_root:
            at_root: BoolArray = self.program.modes[run.mode].groups.position == run.root
            return at_root
        return packets.there

    def _itself(self, run: Run) -> tuple[IntArray, IntArray]:
        """Of each node and word: whether it is for the node itself, its number in its packet."""
        part, mode = self.program.part(run.mode), self.program.modes[run.mode]
        words = np.arange(part.layout.send_words(run.length))
        if not part.schedule.collective.personal:
            shape = self.program.topology.nodes, len(words)
            return np.ones(shape, int), np.broadcast_to(words, shape)
        packet, index = np.divmod(words, run.length)
        itself = (mode.groups.position[:, None] == packet).astype(int)
        return itself, np.broadcast_to(index, itself.shape)

    def reads(self, runs: Sequence[Run]) -> Steps:
        """What unloaders read of what nodes have received, in the order of its words."""
        found = [self._received(run) for run in runs]
        memory, address = (of_runs([each[k] for each in found]) for k in (0, 1))
        code = np.full_like(memory, -1)
        for module, endpoint in self._endpoints.items():
            nodes, order = self.nodes[module], endpoint.unloaded
            for index, number in enumerate(order):
                here = memory[:, nodes] == number
                code[:, nodes] = np.where(here, select_code(len(order), index), code[:, nodes])
        advance = np.ones_like(address)
        return Steps(
            len(address),
            {"read_advance": advance, "read_code": code, "read_address": address},
            always={"read_section": self._everywhere(self.number)},
            otherwise={"read_advance": 1},
        )

    def _received(self, run: Run) -> tuple[IntArray, IntArray]:
        """Memory and address of each word that each node receives."""
        place, packets = (
            received_places(self.program, run),
            packets_received(self.program, run.mode),
        )
        words = np.arange(place.address.shape[1])
        packet, index = np.divmod(words, len(words) // packets.count)
        row = np.full_like(packet, run.root) if packets.by_root else packet
        kept = packets.memory[:, row, 0] == KEPT
        memory = np.where(kept, KEPT, np.where(place.address >= 0, place.memory, -1))
        return memory, np.where(kept, index, place.address)

    def meanwhile(self, *, number: int) -> Steps:
        """Loaders may do anything with a message of a number."""
        return Steps(0, {}, always={"write_section": self._everywhere(number)},
                     otherwise={"write_enable": -1, "write_kept": -1})  # fmt: skip

    def pause(self) -> Steps:
        """The receiver waits."""
        return Steps(0, {}, always={"write_section": self._everywhere(self.number + 1)},
                     otherwise={"read_advance": 0})  # fmt: skip

    def _everywhere(self, number: int) -> IntArray:
        return np.full(self.program.topology.nodes, number % (2 * self.sections.count))
