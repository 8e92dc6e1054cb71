"""That the ports of a core lead to the nodes whose numbers they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..rtl.netlist import Role
from .faults import refuted
from .gates import Bit, GateText

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["check_core_ports"]

#: The ports of a node that has memories, less its number.
PORTS = ("write_bank", "write_address", "write_data", "write_enable", "read_bank", "read_address",
         "read_data")  # fmt: skip


def check_core_ports(fabric: Fabric, text: GateText) -> int:
    """Check that each port of a node is wired to that node.

    Returns
    -------
    int
        How many ports were compared.

    Raises
    ------
    Refuted
        If one is wired to anything else.
    """
    count = 0
    expected = _streams(fabric, text) if fabric.streaming else _memories(fabric, text)
    for name, found, wanted in expected:
        count += 1
        if found != wanted:
            raise refuted("node ports", name, f"Port {name} must be wired to its node in order")
    return count


def _memories(fabric: Fabric, text: GateText) -> Iterator[tuple[str, list[Bit], list[Bit]]]:
    """Ports of nodes with memories: what is wired, and what should be."""
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        for port in PORTS:
            name = f"{port}_{endpoint.node}"
            if name in text.nets and port in pins:
                yield name, pins[port], text.nets[name][: len(pins[port])]


def _streams(fabric: Fabric, text: GateText) -> Iterator[tuple[str, list[Bit], list[Bit]]]:
    """Ports of nodes without memories: a word of each in-port."""
    topology, width = fabric.program.topology, fabric.width
    sent = {i.node: text.instances[i.name].pins["tx"] for i in fabric.netlist.having(Role.ROUTER)}
    for node, neighbours in enumerate(topology.neighbours.tolist()):
        wanted: list[Bit] = []
        for there, port in zip(neighbours, topology.opposite.tolist(), strict=True):
            wanted += sent[there][port * width : (port + 1) * width]
        name = f"receive_{node}"
        yield name, text.outputs[name], wanted
