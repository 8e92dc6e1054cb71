"""The wires between instances, as the text has them, compared with the topology."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..rtl.netlist import Role
from .faults import refuted
from .gates import Bit, GateText

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["check_wiring", "check_words"]

#: The ports in which words come to instances.
WORDS_IN = ("rx", "inject", "write_data")


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


def check_words(fabric: Fabric, text: GateText) -> int:
    """Check that all bits of a word come from one word, in their order.

    Returns
    -------
    int
        How many words were compared.

    Raises
    ------
    Refuted
        If one is made of bits of several, or in another order.
    """
    made = {name: each for name, each in text.instances.items() if each.rom is None}
    driver = {
        bit: (name, port, k)
        for name, instance in made.items()
        for port in text.modules[instance.module].outputs
        for k, bit in enumerate(instance.pins[port])
    }
    driver |= {bit: ("", port, k) for port, bits in text.inputs.items()
               for k, bit in enumerate(bits)}  # fmt: skip
    count, width = 0, fabric.width
    for name, instance in made.items():
        for port in WORDS_IN:
            bits = instance.pins.get(port, [])
            for start in range(0, len(bits) - width + 1, width):
                found = [driver.get(bit) for bit in bits[start : start + width]]
                first = found[0] or ("", "", 0)
                wanted = [(*first[:2], first[2] + k) for k in range(width)]
                if found != wanted or first[2] % width:
                    message = f"Word {start // width} of {port} of {name} must be one word"
                    raise refuted("wiring", f"{name}.{port}", message)
                count += 1
    return count


def _named(text: GateText, bit: Bit) -> str:
    """A bit of the top by its name."""
    for name, bits in text.nets.items():
        if bit in bits:
            return f"{name}[{bits.index(bit)}]"
    return f"the constant {bit}"
