"""Declarations of the host port, from which manifest, test bench and proof are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...contract.interface import Interface
from ...contract.ports import Protocol, grouped_ports
from .finders import HostLayout

__all__ = ["PORTS", "SOURCES", "HostInterface", "HostProofs"]

#: Folder of the Python files that are copied into a test bench.
SOURCES = Path(__file__).parent / "bench" / "files"

#: The purpose of each port.
PORTS = grouped_ports(
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
    """Proof of a host port, whether it is a port of the top or behind a bus."""

    def claims(self, fabric: Any, text: Any) -> Iterable[Any]:
        """Return the claims about the port, and about the wires between the port and the nodes."""
        from .claims import host_claims  # here, since only proofs need it

        return host_claims(fabric, text)

    def runs(self, fabric: Any, machine: Any) -> Any:
        """Return the proof of whole runs whose words pass through the port."""
        from .claims import host_runs  # here, since only proofs need it

        return host_runs(fabric, machine)


class HostInterface(HostProofs):
    """Declarations of a host port that is a port of the top.

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
        """The function that drives the port in a simulation, for a list of runs."""
        from .drive import host_runs  # here, since only simulations need it

        return host_runs

    def facts(self) -> dict[str, Any]:
        """Return address ranges, in words, and latencies, in edges, for the manifest."""
        layouts = self._layouts
        return {
            "stride": layouts[0].flits,
            "send_base": layouts[0].send_base,
            "send_words": max(layout.send_words for layout in layouts),
            "recv_base": layouts[0].recv_base,
            "recv_words": max(layout.recv_words for layout in layouts),
            **self._latencies,
        }

    def bench(self) -> dict[str, str | Path]:
        """Return the files of a test bench that drive the port, by their names in the bench."""
        return {"fabric_port.py": SOURCES / "host.py", "direct_port.py": "direct_port.py"}
