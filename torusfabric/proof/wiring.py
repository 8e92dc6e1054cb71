"""The wires between instances, as the text has them, compared with what they should be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

from ..rtl.fabric_builder import is_by_group
from ..rtl.host import merge_levels
from ..rtl.netlist import Fixed, Role
from .gates import WORDS_IN, Bit, GateText, cone
from .report import refuted

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["Wires", "check_words", "compared", "core_ports", "distributed_wires", "merged_wires",
           "stream_ends"]  # fmt: skip

#: Instances and ports, with what is wired to them and what should be.
Wires: TypeAlias = Iterator[tuple[str, str, list[Bit | None], list[Bit]]]

#: The ports of a node that has memories, less its number.
PORTS = ("write_bank", "write_address", "write_data", "write_enable", "read_bank", "read_address",
         "read_data")  # fmt: skip


def check_words(text: GateText, width: int) -> int:
    """Check that all bits of a word come from one word, in their order.

    Which word comes to which node is a matter of whole runs, which carry out one bit of each.
    """
    driver = {
        bit: (name, port, k)
        for name, instance in text.instances.items()
        for port in text.modules[instance.module].outputs
        for k, bit in enumerate(instance.pins[port])
    }
    driver |= {bit: ("", port, k) for port, bits in text.inputs.items()
               for k, bit in enumerate(bits)}  # fmt: skip
    words = [
        (name, port, instance.pins.get(port, []))
        for name, instance in text.instances.items()
        for port in sorted(WORDS_IN)
    ]
    # A core without memories shows what arrives.
    words += [("the top", n, bits) for n, bits in text.outputs.items() if n.startswith("receive_")]
    count = 0
    for name, port, bits in words:
        for start in range(0, len(bits) - width + 1, width):
            found = [driver.get(bit) for bit in bits[start : start + width]]
            first = found[0] or ("", "", 0)
            wanted = [(*first[:2], first[2] + k) for k in range(width)]
            if found != wanted or first[2] % width:
                message = f"Word {start // width} of {port} of {name} must be one word"
                raise refuted("wiring", f"{name}.{port}", message)
            count += 1
    return count


def compared(text: GateText, wires: Wires, what: str) -> int:
    """Return how many wires there are; raise `Refuted` unless all are as they should be."""
    count = 0
    for name, port, found, wanted in wires:
        count += 1
        for k, (bit, right) in enumerate(zip_longest(found, wanted)):
            if bit != right:
                message = (
                    f"Bit {k} of {port} of {name} must be wired to {_named(text, right)}, "
                    f"not to {_named(text, bit)}"
                )
                raise refuted(what, f"{name}.{port}", message)
    return count


def _named(text: GateText, bit: Bit | None) -> str:
    """A bit of the top by its name."""
    for name, bits in text.nets.items():
        if bit in bits:
            return f"{name}[{bits.index(bit)}]"
    return "nothing" if bit is None else f"the constant {bit}"


def core_ports(fabric: Fabric, text: GateText) -> Wires:
    """Yield the ports of the memories of each node of a core: they lead to that node."""
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        for port in PORTS:
            name = f"{port}_{endpoint.node}"
            if name in text.nets and port in pins:
                yield endpoint.name, port, [*pins[port]], text.nets[name][: len(pins[port])]


def stream_ends(fabric: Fabric, text: GateText) -> Wires:
    """Yield what loaders and unloaders are given of their node, and what they give to it.

    They are given packets, positions and rows once and for all.
    """
    for instance in fabric.netlist.having(Role.STREAM):
        pins = text.instances[instance.name].pins if instance.name in text.instances else {}
        for pin, parts in instance.inputs.items():
            fixed = [part for part in parts if isinstance(part, Fixed)]
            if pin in pins and len(fixed) == len(parts):
                wanted: list[Bit] = [
                    str(part.value >> k & 1) for part in fixed for k in range(part.width)
                ]
                yield instance.name, pin, [*pins[pin]], wanted
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        given = {
            port: bits
            for end in ("loader", "unloader")
            for port, bits in text.instances[f"{end}_at_{endpoint.node}"].pins.items()
        }
        for port, bits in text.instances[endpoint.name].pins.items():
            if port.startswith(("write_", "read_")) and port in given:
                yield endpoint.name, port, [*bits], given[port][: len(bits)]


def distributed_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield what nodes are given by the host port, bit by bit: each behind a register.

    The host port itself is given the start of a run, and whether one is under way. Of what it gives
    to groups, a node is to be given the bit that the upper bits of its number
    choose: `write_node` has the others.
    """
    host = text.instances["the_host"].pins
    gives = text.modules[fabric.prefix + "host"].outputs
    staged = _staged(fabric, text)
    for port in ("start", "busy"):
        yield "the_host", port, [*host[port]], [*text.nets[port]]
    if fabric.hold and "settling" in host:
        held = text.instances["the_sequencer"].pins["settling"]
        yield "the_sequencer", "settling", [*held], [*host["settling"]]
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        assert endpoint.node is not None
        group = endpoint.node >> len(gives["write_node"])
        for port in gives.keys() & pins.keys():
            given = host[port][group:] if is_by_group(port) else host[port]
            for k, bit in enumerate(pins[port]):
                yield endpoint.name, f"{port}[{k}]", [staged.get(bit)], [given[k]]


def _staged(fabric: Fabric, text: GateText) -> dict[Bit, Bit]:
    """Of each bit behind a register of the control tree, the bit before it."""
    found: dict[Bit, Bit] = {}
    for instance in fabric.netlist.having(Role.CONTROL):
        module = text.modules[fabric.prefix + instance.module]
        pins = text.instances[instance.name].pins
        place = {bit: (p, k) for p, bits in module.inputs.items() for k, bit in enumerate(bits)}
        for port, bits in module.outputs.items():
            for k, bit in enumerate(bits):
                before = module.flop_of.get(bit)
                if before in place:
                    name, number = place[before]
                    found[pins[port][k]] = pins[name][number]
    return found


def merged_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield where each bit of a word comes to that a node shows, while others show 0.

    It passes all levels of the tree to the host.
    """
    arrives: dict[Bit, tuple[Bit, ...]] = {}
    for instance in fabric.netlist.having(Role.READ_TREE):
        module = text.modules[fabric.prefix + instance.module]
        pins = text.instances[instance.name].pins
        for k, out in enumerate(module.outputs["word"]):
            d = module.flop_of.get(out)
            reached = cone(module, [d], through_flops=False).bits if d is not None else set()
            kinds = {module.gate_of[b].kind for b in reached if b in module.gate_of}
            for j, bit in enumerate(module.inputs["data"]):
                if bit in reached and kinds <= {"OR"}:
                    arrives[pins["data"][j]] = (*arrives.get(pins["data"][j], ()), pins["word"][k])
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        for k, bit in enumerate(text.instances[endpoint.name].pins["read_data"]):
            at: tuple[Bit, ...] = (bit,)
            for _ in merge_levels(fabric.nodes):
                at = tuple(there for here in at for there in arrives.get(here, ()))
            yield endpoint.name, f"read_data[{k}]", [*at], [text.nets["host_rdata"][k]]
