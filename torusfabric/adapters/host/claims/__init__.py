"""Claims about the host port, and whole runs through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ....contract.claims import Claim
from ....proof.lemmas import wired
from ....proof.memory_runs import MemoryRuns
from .access import HostAccess
from .port import HostPorts, check_host
from .wires import distributed_wires, merged_wires

if TYPE_CHECKING:
    from ....proof.gates import GateText
    from ....proof.machine import Machine
    from ....rtl import Fabric

__all__ = ["HostPorts", "host_claims", "host_runs"]


def host_claims(fabric: Fabric, text: GateText, ports: Sequence[HostPorts] = ()) -> Iterator[Claim]:
    """Yield the claims about the host port, and about the wires between it and nodes.

    Parameters
    ----------
    ports : sequence of HostPorts
        The host ports of all tops with this text; by default the one of a fabric on one chip.
    """
    says = "each node is given what the host port gives, or gives to its group, a cycle later"
    yield wired("control tree", says, text, distributed_wires(fabric, text))
    # The finder of a fabric with a room finds words by what is in tables.
    if not fabric.tables:
        says = ("a word that the host writes, or asks for, is where the address map says, "
                "with every edge another")  # fmt: skip
        check = partial(check_host, fabric, text, ports or [HostPorts.of_chip(fabric)])
        yield Claim("host", "all addresses", says, check)
    says = "the word of the node that is asked comes to the host port"
    yield wired("read tree", says, text, merged_wires(fabric, text))


def host_runs(fabric: Fabric, machine: Machine, ports: HostPorts | None = None) -> MemoryRuns:
    """Return whole runs whose words go through a host port."""
    return MemoryRuns(HostAccess(fabric, machine, ports or HostPorts.of_chip(fabric)))
