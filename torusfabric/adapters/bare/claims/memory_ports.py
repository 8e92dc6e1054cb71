"""Memory ports of each node in the proof: their wires, and `CoreAccess`, which drives them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ....proof.accesses import Access, Steps
from ....proof.gates import GateText
from ....proof.messages import Locations, Run
from ....proof.wiring import Wires
from ....rtl.netlist import Role
from ....topology import IntArray

if TYPE_CHECKING:
    from ....proof.machine import Machine
    from ....rtl import Fabric

__all__ = ["CoreAccess", "core_ports"]

#: For each node and block, the memory and first address in the written address map, or None.
Listed: TypeAlias = list[list[list[int] | None]]

#: Ports of a node with memories, without the suffix for the node.
PORTS = ("write_bank", "write_address", "write_data", "write_enable", "read_bank", "read_address",
         "read_data")  # fmt: skip


def core_ports(fabric: Fabric, text: GateText) -> Wires:
    """Yield the wires between the memory ports of the top and the nodes.

    Each wire is (instance, pin, found bits, expected bits).
    """
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        for port in PORTS:
            name = f"{port}_{endpoint.node}"
            if name in text.nets and port in pins:
                yield endpoint.name, port, [*pins[port]], text.nets[name][: len(pins[port])]


class CoreAccess(Access):
    """Accesses through a memory port at each node, at the addresses of the written address map."""

    def __init__(self, fabric: Fabric, machine: Machine) -> None:
        super().__init__(fabric, machine)
        self.answer = fabric.read_latency
        self._map = fabric.address_map()

    def idle(self) -> dict[str, IntArray]:
        """Return the values of the write enables in cycles without a write."""
        return {name: np.array([[0]]) for name in self.machine.text.inputs
                if name.startswith("write_enable_")}  # fmt: skip

    def _listed(self, run: Run, *, sent: bool) -> Locations:
        """Return the locations of words by the address map. Words of a block are consecutive."""
        listed = self._map["sent" if sent else "received"]
        layout = self.program.part(run.form(self.program)).layout
        words = layout.send_words(run.length) if sent else layout.recv_words(run.length)
        part, within = np.divmod(np.arange(words), layout.part_flits(run.length))
        chunk, flit = np.divmod(within, layout.block_flits(run.length))
        first = np.array([[entry or (-1, -1) for entry in of_node] for of_node in listed])
        first = first[:, part * layout.part_chunks + chunk]
        base = first[..., 1]
        return Locations(first[..., 0], np.where(base >= 0, base + flit, -1))

    def writes(self, runs: Sequence[Run]) -> Steps:
        """Return the steps that write the messages of some runs."""
        memory, address = self.located(runs, partial(self._listed, sent=True), ends_at_once=True)
        there = (address >= 0).astype(int)
        numbers = {"write_enable": there, "write_bank": memory, "write_address": address}
        return Steps(len(address), numbers, {"write_data": self.sent(runs)},
                     otherwise={"write_enable": 0})  # fmt: skip

    def reads(self, runs: Sequence[Run]) -> Steps:
        """Return the steps that read the received words of some runs."""
        memory, address = self.located(runs, partial(self._listed, sent=False))
        return Steps(len(address), {"read_bank": memory, "read_address": address})
