"""The claim about the ports of nodes: those of each node lead to its memories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...proof.lemmas import wired
from ...rtl.netlist import Role

if TYPE_CHECKING:
    from ...contract.claims import Claim
    from ...proof.gates import GateText
    from ...proof.wiring import Wires
    from ...rtl import Fabric

__all__ = ["port_claims"]

#: The ports of a node that has memories, less its number.
PORTS = ("write_bank", "write_address", "write_data", "write_enable", "read_bank", "read_address",
         "read_data")  # fmt: skip


def port_claims(fabric: Fabric, text: GateText) -> Iterator[Claim]:
    """Yield the claim about the ports of memories."""
    says = "the ports of each node lead to that node"
    yield wired("node ports", says, text, _ports(fabric, text))


def _ports(fabric: Fabric, text: GateText) -> Wires:
    """Yield the ports of the memories of each node, and the pins of the node."""
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        for port in PORTS:
            name = f"{port}_{endpoint.node}"
            if name in text.nets and port in pins:
                yield endpoint.name, port, [*pins[port]], text.nets[name][: len(pins[port])]
