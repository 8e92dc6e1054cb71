"""That what nodes are written and read by, in cores and with streams, leads to those nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from ..rtl.netlist import Role
from .faults import refuted
from .gates import Bit, GateText

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["check_core_ports", "check_stream_ends"]

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
    return _compared(_streams(fabric, text) if fabric.streaming else _memories(fabric, text))


def check_stream_ends(fabric: Fabric, text: GateText) -> int:
    """Check that the loader and the unloader of each node write and read that node.

    Returns
    -------
    int
        How many inputs of nodes were compared.

    Raises
    ------
    Refuted
        If one is wired to anything else.
    """
    return _compared(_ends(fabric, text))


#: Names of ports, what is wired to them, and what should be.
Wires: TypeAlias = Iterator[tuple[str, list[Bit], list[Bit]]]


def _compared(wires: Wires) -> int:
    """The number of ports, all of which are wired as they should be."""
    count = 0
    for name, found, wanted in wires:
        count += 1
        if found != wanted:
            raise refuted("node ports", name, f"Port {name} must be wired to its node in order")
    return count


def _memories(fabric: Fabric, text: GateText) -> Wires:
    """Ports of nodes with memories: what is wired, and what should be."""
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        for port in PORTS:
            name = f"{port}_{endpoint.node}"
            if name in text.nets and port in pins:
                yield name, pins[port], text.nets[name][: len(pins[port])]


def _streams(fabric: Fabric, text: GateText) -> Wires:
    """Ports of nodes without memories: a word of each in-port."""
    topology, width = fabric.program.topology, fabric.width
    sent = {i.node: text.instances[i.name].pins["tx"] for i in fabric.netlist.having(Role.ROUTER)}
    for node, neighbours in enumerate(topology.neighbours.tolist()):
        wanted: list[Bit] = []
        for there, port in zip(neighbours, topology.opposite.tolist(), strict=True):
            wanted += sent[there][port * width : (port + 1) * width]
        name = f"receive_{node}"
        yield name, text.outputs[name], wanted


def _ends(fabric: Fabric, text: GateText) -> Wires:
    """What endpoints are given by loaders and unloaders."""
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        given = {
            port: bits
            for end in ("loader", "unloader")
            for port, bits in text.instances[f"{end}_at_{endpoint.node}"].pins.items()
        }
        for port, bits in text.instances[endpoint.name].pins.items():
            if port.startswith(("write_", "read_")) and port in given:
                yield f"{port} of {endpoint.name}", bits, given[port][: len(bits)]
