"""Memory ports of the nodes of a bare core, in the proof.

`node_port_wires` is for the claim about their wires. `NodePortAccess` drives the ports in the proof
of whole runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ....proof.accesses import AccessSteps, NodeAccess
from ....proof.gates import GateText
from ....proof.messages import Locations, Run
from ....proof.wiring import Wires
from ....rtl.netlist import Role
from ....topology import IntArray

if TYPE_CHECKING:
    from ....proof.machine import SymbolicMachine
    from ....rtl import Fabric

__all__ = ["NodePortAccess", "node_port_wires"]

#: For each node and block, the memory and first address in the written address map, or None.
Listed: TypeAlias = list[list[list[int] | None]]

#: Ports of a node with memories, without the suffix for the node.
NODE_PORTS = (
    "write_bank",
    "write_address",
    "write_data",
    "write_enable",
    "read_bank",
    "read_address",
    "read_data",
)


def node_port_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield the wires between the memory ports of the top and the nodes, found and expected.

    Each wire is (instance, pin, found bits, expected bits). The found bits are those of `text`, the
    emitted Verilog, read as gates.
    """
    for endpoint in fabric.netlist.instances_with_role(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        for port in NODE_PORTS:
            name = f"{port}_{endpoint.node}"
            if name in text.nets and port in pins:
                yield endpoint.name, port, [*pins[port]], text.nets[name][: len(pins[port])]


class NodePortAccess(NodeAccess):
    """The reads and writes of node memories through memory ports, in the proof of whole runs.

    Memories and addresses come from the address map, the file that is written for the user. So the
    proof covers this file, too.
    """

    def __init__(self, fabric: Fabric, machine: SymbolicMachine) -> None:
        super().__init__(fabric, machine)
        self.answer = fabric.read_latency
        self._map = fabric.address_map()

    def idle_access_nets(self) -> dict[str, IntArray]:
        """Return the values of the write enables in cycles without a write."""
        return {name: np.array([[0]]) for name in self.machine.text.inputs
                if name.startswith("write_enable_")}  # fmt: skip

    def _word_locations(self, run: Run, *, sent: bool) -> Locations:
        """Return memory and address of each word to send, or of each received word.

        They follow from the address map, a file with the memory and first address of each block.
        Words of a block are consecutive. `run` chooses the form and the length of the messages.
        `sent` is True for the words to send.
        """
        listed = self._map["sent" if sent else "received"]
        layout = self.program.part(run.form_number(self.program)).layout
        words = layout.send_words(run.length) if sent else layout.recv_words(run.length)
        part, within = np.divmod(np.arange(words), layout.part_flits(run.length))
        chunk, flit = np.divmod(within, layout.block_flits(run.length))
        first = np.array([[entry or (-1, -1) for entry in of_node] for of_node in listed])
        first = first[:, part * layout.part_chunks + chunk]
        base = first[..., 1]
        return Locations(first[..., 0], np.where(base >= 0, base + flit, -1))

    def message_writes(self, runs: Sequence[Run]) -> AccessSteps:
        """Return the steps, one for each cycle, that write the messages of some runs.

        A step has write enable, memory, address and word at the port of each node.
        """
        memory, address = self.locate_beats(
            runs, partial(self._word_locations, sent=True), ends_at_once=True
        )
        there = (address >= 0).astype(int)
        numbers = {"write_enable": there, "write_bank": memory, "write_address": address}
        return AccessSteps(len(address), numbers, {"write_data": self.message_bits(runs)},
                     otherwise={"write_enable": 0})  # fmt: skip

    def message_reads(self, runs: Sequence[Run]) -> AccessSteps:
        """Return the steps, one for each cycle, that read the received words of some runs.

        A step has the memory and the address at the port of each node.
        """
        memory, address = self.locate_beats(runs, partial(self._word_locations, sent=False))
        return AccessSteps(len(address), {"read_bank": memory, "read_address": address})
