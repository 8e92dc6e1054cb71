"""Proof of a bare core: a claim about the wires of node ports, and whole runs through the ports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....contract.claims import Claim
from ....proof.accesses import NodeAccess
from ....proof.lemmas import wiring_claim
from ....proof.memory_runs import MemoryRuns
from .direct_runs import DirectRuns
from .memory_ports import NodePortAccess, node_port_wires

if TYPE_CHECKING:
    from ....proof.gates import GateText
    from ....proof.machine import SymbolicMachine
    from ....proof.runs import Runs
    from ....rtl import Fabric

__all__ = ["node_port_claims", "node_port_runs"]


def node_port_claims(fabric: Fabric, text: GateText) -> Iterator[Claim]:
    """Yield the claim that the memory ports of the top lead to their nodes.

    A direct core has no memory ports, and no such claim.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``core``.
    text : GateText
        The gates of its emitted Verilog.
    """
    if not fabric.streaming:
        says = "the ports of each node are wired to that node"
        yield wiring_claim("node ports", says, text, node_port_wires(fabric, text))


def node_port_runs(fabric: Fabric, machine: SymbolicMachine) -> Runs:
    """Return the proof of whole runs whose words pass through the ports of nodes.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``core``.
    machine : SymbolicMachine
        Symbolic simulation of the fabric.
    """
    if fabric.streaming:
        return DirectRuns(fabric, NodeAccess(fabric, machine))
    return MemoryRuns(NodePortAccess(fabric, machine))
