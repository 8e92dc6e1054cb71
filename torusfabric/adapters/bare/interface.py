"""Declarations of node ports: ports, manifest entries, address map, test bench and proof.

The commands ask for them through `torusfabric.contract.interface.Interface`.
In a *direct core*, nodes have no memories: each has ports for the words that it sends and receives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...contract.interface import Interface
from ...contract.ports import Protocol, ports_by_name
from ...program import Program
from ...program.timing import ADDRESS, LINK, SETTING
from ...rtl.core.direct_port import is_direct
from ...rtl.core_address_map import core_address_map

__all__ = ["ADDRESS_MAP", "BareInterface"]

#: Name of the written file with the memory and address of each block, or, for a direct core, the
#: in-port and step of its arrival.
ADDRESS_MAP = "address_map.json"

#: Folder of the Python files that are copied into a test bench.
SOURCES = Path(__file__).parent / "bench" / "files"

#: The purpose of each port.
PORTS = ports_by_name(
    {
        ("write", Protocol.MEMORY): {
            "write_bank": "the send memory to write",
            "write_address": "the address in the bank to write",
            "write_data": "the word to write",
            "write_enable": "high to write write_data",
        },
        ("read", Protocol.MEMORY): {
            "read_bank": "the bank to read, given with read_address",
            "read_address": "the address in the bank to read",
            "read_data": "the word read, read_latency edges after its address",
        },
        ("data", Protocol.SCHEDULED): {
            "inject": "flit tx_address of each chunk, a cycle after tx_address",
            "receive": "the word at each in-port, valid while rx_enable is high",
        },
        ("status", Protocol.SCHEDULED): {
            "tx_address": "the number of the flit to inject",
            "rx_address": "flit * steps + step - 1 of the words that arrive",
            "rx_enable": "high while words arrive",
        },
    }
)


@dataclass(frozen=True)
class BareInterface(Interface):
    """Declarations of the ports of each node: to its memories, or for injected and received words.

    Parameters
    ----------
    program : Program
        The program of the core, which decides whether nodes have memories.
    read_latency : int
        Clock edges from an address to its data; 0 without memories.
    """

    program: Program
    read_latency: int

    ports = PORTS

    @property
    def delivers(self) -> str:  # type: ignore[override]
        """Text for the report of a proof: the words behind "every node" in the proved statement.

        For nodes without memories: "has received what the collective brings it in the cycles that
        the manifest says".
        """
        if self._is_direct:
            return "has received what the collective brings it in the cycles that the manifest says"
        return super().delivers

    @property
    def _is_direct(self) -> bool:
        """True for a *direct* core, whose nodes have no memories."""
        return is_direct(self.program)

    def manifest_entries(self) -> dict[str, Any]:
        """Return the facts about the node ports for the manifest.

        The key is ``streams`` for a direct core, whose nodes have no memories; else ``memories``.
        """
        return (
            {"streams": self._direct_facts()}
            if self._is_direct
            else {"memories": self._memory_facts()}
        )

    def _direct_facts(self) -> dict[str, Any]:
        """Return the manifest entry for the ports of a *direct* core, whose nodes have no memories.

        ``inject`` lists the chunks whose words form the input `inject` of a node, ``receive`` the
        in-ports whose words form the output `receive`; the first is in the lowest bits. Entries
        ``.._cycle`` are cycles from the start of a run to flit 0 at the port.
        """
        program = self.program
        setup = program.timing.run_setup
        return {
            "inject": list(range(program.schedule.chunks)),
            "receive": list(program.topology.port_names),
            "steps": program.schedule.round_count,
            "block_flits": program.block_flits,
            "part_flits": program.flits,
            "tx_address_cycle": setup + ADDRESS,
            "inject_cycle": setup + SETTING,
            "receive_cycle": setup + LINK,
            "address_map": ADDRESS_MAP,
        }

    def _memory_facts(self) -> dict[str, Any]:
        """Return the manifest entry for memory ports: sizes of data, memories, read latency.

        A *part* is the words for, or from, one other node; a *bank* is one memory of a node.
        """
        program, layout = self.program, self.program.layout
        return {
            "send_parts": layout.send_parts,
            "receive_parts": layout.recv_parts,
            "part_flits": layout.part_flits(program.flits),
            "part_chunks": layout.part_chunks,
            "block_flits": program.block_flits,
            "write_banks": sum(memory.own for memory in program.memories),
            "read_banks": len(program.memories),
            "read_bank_delay": 0,
            "read_latency": self.read_latency,
            "address_map": ADDRESS_MAP,
        }

    def description_files(self, top: str, title: str) -> dict[str, str]:
        """Return a JSON file that says where in the memories, or in which cycle, each block is.

        The parameters `top` and `title` are not used.
        """
        del top, title
        return {ADDRESS_MAP: json.dumps(core_address_map(self.program)) + "\n"}

    def bench_files(self) -> dict[str, str | Path]:
        """Return the files by which a test bench drives the node ports, by names in the bench."""
        source = "direct.py" if self._is_direct else "memories.py"
        return {"fabric_port.py": SOURCES / source, "direct_port.py": "direct_port.py"}

    def wiring_claims(self, fabric: Any, text: Any) -> Iterable[Any]:
        """Return the claim that the memory ports lead to their nodes; none without memories.

        The claim is proved of `text`, the emitted Verilog, read as gates.
        """
        from .claims import node_port_claims  # here, since only proofs need it

        return node_port_claims(fabric, text)

    def symbolic_runs(self, fabric: Any, machine: Any) -> Any:
        """Return the proof of whole runs whose words pass through the ports.

        In the proof, `machine` executes runs with symbols in place of data.
        """
        from .claims import node_port_runs  # here, since only proofs need it

        return node_port_runs(fabric, machine)
