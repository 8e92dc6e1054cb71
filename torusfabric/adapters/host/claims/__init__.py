"""Proof of a fabric with a host port: claims about the port, and whole runs through it.

`host_claims` yields claims about single reads and writes of the port, and about its wires.
`host_port_runs` executes whole runs with symbolic words on the emitted netlist; see
`torusfabric.proof.memory_runs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ....contract.claims import Claim
from ....proof.lemmas import wiring_claim
from ....proof.memory_runs import MemoryRuns
from .access import HostAccess
from .port import HostPorts, check_host_port
from .wires import control_tree_wires, read_tree_wires

if TYPE_CHECKING:
    from ....proof.gates import GateText
    from ....proof.machine import SymbolicMachine
    from ....rtl import Fabric

__all__ = ["HostPorts", "host_claims", "host_port_runs"]


def host_claims(fabric: Fabric, text: GateText, ports: Sequence[HostPorts] = ()) -> Iterator[Claim]:
    """Yield the claims about the host port, and about the wires between the port and the nodes.

    With loadable tables there is no claim here about the translation of addresses, because loaded
    tables decide it: `loading.claims` has claims about these.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host`` or behind a bus.
    text : GateText
        The gates of its emitted Verilog.
    ports : sequence of HostPorts
        The host ports of all tops that instantiate this Verilog; by default the only port of a
        fabric on one chip.
    """
    says = (
        "each node receives the values of the host port, or of its group's register, one cycle "
        "later"
    )
    yield wiring_claim("control tree", says, text, control_tree_wires(fabric, text))
    # With loadable tables the finder depends on the contents of tables; other claims cover it.
    if not fabric.tables:
        says = ("a word that the host writes or reads lies where the address map says, with a "
                "new access at every edge")  # fmt: skip
        check = partial(check_host_port, fabric, text, ports or [HostPorts.from_chip(fabric)])
        yield Claim("host", "all addresses", says, check)
    says = "the word of the addressed node reaches the host port"
    yield wiring_claim("read tree", says, text, read_tree_wires(fabric, text))


def host_port_runs(
    fabric: Fabric, machine: SymbolicMachine, ports: HostPorts | None = None
) -> MemoryRuns:
    """Return the proof of whole runs whose words pass through a host port.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host`` or behind a bus.
    machine : SymbolicMachine
        Symbolic simulation of the fabric.
    ports : HostPorts, optional
        The host port; by default the only port of a fabric on one chip.
    """
    return MemoryRuns(HostAccess(fabric, machine, ports or HostPorts.from_chip(fabric)))
