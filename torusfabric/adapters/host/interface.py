"""Declarations of the host port: the ports, the manifest entries, the test bench and the proof.

The commands ask for them through `torusfabric.contract.interface.Interface`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...contract.interface import Interface
from ...contract.ports import Protocol, ports_by_name
from .finders import HostLayout

__all__ = ["PORTS", "SOURCES", "HostInterface", "HostProofs"]

#: Folder of the Python files that are copied into a test bench.
SOURCES = Path(__file__).parent / "bench" / "files"

#: The purpose of each port.
PORTS = ports_by_name(
    {
        ("write", Protocol.MEMORY): {
            "host_we": "writes host_wdata at host_addr of host_node; ignored with a start, "
            "while busy, and past the words of a message; a run that is started while a word is on "
            "its way to the node begins when the word is stored",
            "host_node": "the node that is written or read",
            "host_addr": "the address in the memory of the node",
            "host_wdata": "the word to write",
        },
        ("read", Protocol.MEMORY): {
            "host_rdata": "the word at an address, read_latency edges after it",
        },
    }
)


class HostProofs(Interface):
    """The proof of a host port, whose signals are ports of the top module or nets behind a bus."""

    def wiring_claims(self, fabric: Any, text: Any) -> Iterable[Any]:
        """Return the claims about the host port, and about the wires between it and the nodes.

        The claims are proved of `text`, the emitted Verilog, read as gates.
        """
        from .claims import host_claims  # here, since only proofs need it

        return host_claims(fabric, text)

    def symbolic_runs(self, fabric: Any, machine: Any) -> Any:
        """Return the proof of whole runs whose words pass through the port.

        In the proof, `machine` executes runs with symbols in place of data.
        """
        from .claims import host_port_runs  # here, since only proofs need it

        return host_port_runs(fabric, machine)


class HostInterface(HostProofs):
    """Declarations of a host port whose signals are ports of the top module.

    Parameters
    ----------
    layouts : sequence of HostLayout
        The host addresses of each mode.
    latencies : mapping of str to int
        ``read_latency`` and ``write_latency``, in clock edges.
    """

    ports = PORTS

    def __init__(self, layouts: Sequence[HostLayout], latencies: Mapping[str, int]) -> None:
        self._layouts, self._latencies = layouts, latencies

    @property
    def access(self) -> Any:
        """The function by which a simulator drives the host port: it writes, starts, reads.

        Its parameters are those of `Interface.access`.
        """
        from .drive import execute_runs  # here, since only simulations need it

        return execute_runs

    def manifest_entries(self) -> dict[str, Any]:
        """Return the address ranges and the latencies for the manifest.

        There is an address range for the words to send, and one for the received words: a base
        address and a number of words. ``stride`` is the words of the longest message: the distance
        from one message to the next in a range. Latencies are in clock edges.
        """
        layouts = self._layouts
        return {
            "stride": layouts[0].flits,
            "send_base": layouts[0].send_base,
            "send_words": max(layout.send_words for layout in layouts),
            "recv_base": layouts[0].recv_base,
            "recv_words": max(layout.recv_words for layout in layouts),
            **self._latencies,
        }

    def bench_files(self) -> dict[str, str | Path]:
        """Return the files of a test bench that drive the port, by their names in the bench."""
        return {"fabric_port.py": SOURCES / "host.py", "direct_port.py": "direct_port.py"}
