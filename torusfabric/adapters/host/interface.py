"""What a host port tells manifest and bench."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...contract.interface import Interface
from ...contract.ports import Protocol, grouped_ports
from .finders import HostLayout

__all__ = ["PORTS", "SOURCES", "HostInterface", "HostProofs"]

#: The folder of the files of benches.
SOURCES = Path(__file__).parent / "bench" / "files"

#: The purpose of each port.
PORTS = grouped_ports(
    {
        ("write", Protocol.MEMORY): {
            "host_we": "writes host_wdata at host_addr of host_node; ignored with a start, "
            "while busy, and past the words of a message; a run that is started while a word is on "
            "its way begins when it is there",
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
    """Claims about the host port, and runs through it, whatever stands in front of it."""

    def claims(self, fabric: Any, text: Any) -> Iterable[Any]:
        """Return the claims about the port, and about the wires between it and nodes."""
        from .claims import host_claims  # when it is asked for

        return host_claims(fabric, text)

    def runs(self, fabric: Any, machine: Any) -> Any:
        """Return whole runs whose words go through the port."""
        from .claims import host_runs  # when it is asked for

        return host_runs(fabric, machine)


class HostInterface(HostProofs):
    """A port that serves all nodes.

    Parameters
    ----------
    layouts : sequence of HostLayout
        The address map of each mode.
    latencies : mapping of str to int
        ``read_latency`` and ``write_latency``, in clock edges.
    """

    ports = PORTS

    def __init__(self, layouts: Sequence[HostLayout], latencies: Mapping[str, int]) -> None:
        self._layouts, self._latencies = layouts, latencies

    @property
    def access(self) -> Any:
        """What does runs through the port."""
        from .drive import host_runs  # when it is asked for

        return host_runs

    def facts(self) -> dict[str, Any]:
        """Return the addresses and latencies."""
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
        """Return what drives the port."""
        return {"fabric_port.py": SOURCES / "host.py", "direct_port.py": "direct_port.py"}
