"""The wires between instances, as the text has them, compared with the topology."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..rtl.netlist import Role
from .faults import refuted
from .gates import Bit, GateText

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["check_wiring"]


def check_wiring(fabric: Fabric, text: GateText) -> int:
    """Compare the wires between nodes with the topology.

    Whatever has in-ports, at any node, must be given at in-port p exactly the word that the router
    of the neighbour at p sends by the opposite port; and every node must know its own number.

    Returns
    -------
    int
        How many words and numbers were compared.

    Raises
    ------
    Refuted
        If a wire is not where it should be.
    """
    count = 0
    for name, port, found, wanted in _expected(fabric, text):
        count += 1
        if found != wanted:
            bit = next(k for k, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b)
            message = (
                f"Bit {bit} of {port} of {name} must be wired to {_named(text, wanted[bit])}, "
                f"not to {_named(text, found[bit])}"
            )
            raise refuted("wiring", f"{name}.{port}", message)
    return count


def _expected(fabric: Fabric, text: GateText) -> Iterator[tuple[str, str, list[Bit], list[Bit]]]:
    """Instances and ports, with what drives them and what should."""
    topology, width = fabric.program.topology, fabric.width
    node_of = {i.name: i.node for i in fabric.netlist.instances if i.node is not None}
    router_at = {
        i.node: text.instances[i.name].pins["tx"] for i in fabric.netlist.having(Role.ROUTER)
    }
    neighbours, opposite = topology.neighbours.tolist(), topology.opposite.tolist()
    for name, instance in text.instances.items():
        node = node_of.get(name)
        if node is None:
            continue
        pins = instance.pins
        for port in range(topology.ports) if "rx" in pins else ():
            sent = router_at[neighbours[node][port]]
            first = opposite[port] * width
            found = pins["rx"][port * width : (port + 1) * width]
            yield name, f"rx[{port}]", found, sent[first : first + width]
        if "node" in pins:
            bits = pins["node"]
            yield name, "node", bits, [str(node >> k & 1) for k in range(len(bits))]


def _named(text: GateText, bit: Bit) -> str:
    """A bit of the top by its name."""
    for name, bits in text.nets.items():
        if bit in bits:
            return f"{name}[{bits.index(bit)}]"
    return f"the constant {bit}"
