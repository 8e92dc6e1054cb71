"""Proof of a bare core: a claim about the wires of node ports, and whole runs through the ports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....contract.claims import Claim
from ....proof.accesses import Access
from ....proof.lemmas import wired
from ....proof.memory_runs import MemoryRuns
from .direct_runs import DirectRuns
from .memory_ports import CoreAccess, core_ports

if TYPE_CHECKING:
    from ....proof.gates import GateText
    from ....proof.machine import Machine
    from ....proof.runs import Runs
    from ....rtl import Fabric

__all__ = ["port_claims", "port_runs"]


def port_claims(fabric: Fabric, text: GateText) -> Iterator[Claim]:
    """Yield the claim that the memory ports of the top lead to their nodes; none without memories.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``core``.
    text : GateText
        The gates of its emitted Verilog.
    """
    if not fabric.streaming:
        says = "the ports of each node are wired to that node"
        yield wired("node ports", says, text, core_ports(fabric, text))


def port_runs(fabric: Fabric, machine: Machine) -> Runs:
    """Return the proof of whole runs whose words pass through the ports of nodes.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``core``.
    machine : Machine
        Symbolic simulation of the fabric.
    """
    if fabric.streaming:
        return DirectRuns(fabric, Access(fabric, machine))
    return MemoryRuns(CoreAccess(fabric, machine))
