"""The wires between instances, as the text has them, compared with what they should be.

Each check returns how many things were compared, and raises `Refuted` if one is wired to anything
else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..rtl.fabric_builder import is_by_group
from ..rtl.host import merge_levels
from ..rtl.netlist import Fixed, Role
from .gates import WORDS_IN, Bit, GateText, cone
from .host import HostPorts
from .report import refuted

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["WIRING", "Check", "Wires", "check_core_ports", "check_distribution",
           "check_stream_ends", "check_tree", "check_wiring", "compared"]  # fmt: skip

#: What compares the text of a fabric with what it should be.
Check: TypeAlias = Callable[["Fabric", GateText], int]

#: Instances and ports, with what is wired to them and what should be.
Wires: TypeAlias = Iterator[tuple[str, str, list[Bit | None], list[Bit]]]

#: What is said of the wires between nodes: the name, how it is proved, and what it says.
WIRING = (
    "wiring",
    "comparison",
    "each in-port is wired to the opposite out-port of the neighbour there, and words stay whole",
)

#: The ports of a node that has memories, less its number.
PORTS = ("write_bank", "write_address", "write_data", "write_enable", "read_bank", "read_address",
         "read_data")  # fmt: skip


def check_wiring(fabric: Fabric, text: GateText, ports: HostPorts | None = None) -> int:
    """Compare the wires between nodes with the topology.

    Whatever has in-ports, at any node, must be given at in-port p exactly the word that the router
    of the neighbour at p sends by the opposite port, and an endpoint those of the words that it
    stores; and every node must know its own number at its host port. All bits of a word must come
    from one word, in their order.
    """
    found = _of_topology(fabric, text, ports or HostPorts.of_chip(fabric))
    return compared(text, found, "wiring") + _check_words(fabric, text)


def check_core_ports(fabric: Fabric, text: GateText) -> int:
    """Check that each port of a node of a core is wired to that node."""
    wires = _direct(fabric, text) if fabric.streaming else _memories(fabric, text)
    return compared(text, wires, "node ports")


def check_stream_ends(fabric: Fabric, text: GateText) -> int:
    """Check that the loader and the unloader of each node write and read that node.

    And that they are given the constants of that node.
    """
    fixed = compared(text, _fixed(fabric, text), "node ports")
    return fixed + compared(text, _ends(fabric, text), "node ports")


def check_distribution(fabric: Fabric, text: GateText) -> int:
    """Check that nodes are given what the host port gives, one cycle later.

    The host port itself is given the start of a run, and whether one is under way. Of what it gives
    to groups, a node is to be given the bit that the upper bits of its number
    choose: `write_node` has the others.
    """
    return compared(text, _distributed(fabric, text), "wiring")


def check_tree(fabric: Fabric, text: GateText) -> int:
    """Check that the word of the one node that is asked comes to the host, while others show 0."""
    return compared(text, _merged(fabric, text), "read tree")


def compared(text: GateText, wires: Wires, what: str) -> int:
    """How many wires there are, all of which are as they should be."""
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


def _arriving(fabric: Fabric, text: GateText) -> list[list[list[Bit]]]:
    """What should arrive at each node by each in-port."""
    topology, width = fabric.program.topology, fabric.width
    sent = {i.node: text.instances[i.name].pins["tx"] for i in fabric.netlist.having(Role.ROUTER)}
    words = {
        (node, port): [*pins[port * width : (port + 1) * width]]
        for node, pins in sent.items()
        for port in range(topology.ports)
    }
    # What comes out of a link of several cycles, by the word that goes in; of a word that goes into
    # none, nothing may come to any node but by such a link.
    there = [i.name for i in fabric.netlist.having(Role.LINK) if i.name in text.instances]
    links = [text.instances[name].pins for name in there]
    arrived = {tuple(pins["sent"]): [*pins["arrived"]] for pins in links}
    latency = topology.cycles_of_arc.tolist()
    ends = np.stack(topology.upstream, axis=2).tolist()
    return [
        [word if latency[there][port] == 1 else arrived.get(tuple(word), word)
         for there, port in by_port
         for word in [words[there, port]]]
        for by_port in ends
    ]  # fmt: skip


def _of_topology(fabric: Fabric, text: GateText, ports: HostPorts) -> Wires:
    """What comes to whatever is at a node: words by its in-ports, and its number."""
    arriving, width = _arriving(fabric, text), fabric.width
    stored = _stored(fabric, text, arriving)
    node_of = {i.name: i.node for i in fabric.netlist.instances if i.node is not None}
    # Of instances that nothing needs, the text that Yosys has read has none.
    for name, pins in ((n, text.instances[n].pins) for n in node_of if n in text.instances):
        node = node_of[name]
        words = stored.get(name, arriving[node])
        for port, wanted in enumerate(words) if "rx" in pins else ():
            found = pins["rx"][port * width : (port + 1) * width]
            yield name, f"rx[{port}]", [*found], wanted
        if "node" in pins:
            bits = pins["node"]
            number = [str(int(ports.number[node]) >> k & 1) for k in range(len(bits))]
            yield name, "node", [*bits], [*number]


def _fixed(fabric: Fabric, text: GateText) -> Wires:
    """What is said to loaders and unloaders once and for all: of packets, positions and rows."""
    for instance in fabric.netlist.having(Role.STREAM):
        pins = text.instances[instance.name].pins if instance.name in text.instances else {}
        for pin, parts in instance.inputs.items():
            fixed = [part for part in parts if isinstance(part, Fixed)]
            if pin in pins and len(fixed) == len(parts):
                wanted: list[Bit] = [
                    str(part.value >> k & 1) for part in fixed for k in range(part.width)
                ]
                yield instance.name, pin, [*pins[pin]], wanted


def _stored(
    fabric: Fabric, text: GateText, arriving: list[list[list[Bit]]]
) -> dict[str, list[list[Bit]]]:
    """What should come to each endpoint: the words that it stores, in the order of its module."""
    program, width = fabric.program, fabric.width
    wires, first = fabric.placement.endpoints.wires, program.loop.sources.first_result
    pins = {i.node: text.instances[i.name].pins for i in fabric.netlist.having(Role.COMBINER)}
    # What is made has numbers behind results.
    combined = {node: [*each["result"], *each.get("made", ())] for node, each in pins.items()}
    found = {}
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        node = endpoint.node
        assert node is not None
        found[endpoint.name] = [
            arriving[node][source]
            if source < program.ports
            else combined[node][(source - first) * width :][:width]
            for source, _ in wires[fabric.variant_of[node]].words
        ]
    return found


def _check_words(fabric: Fabric, text: GateText) -> int:
    """Check that all bits of a word come from one word, in their order."""
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
        for port in sorted(WORDS_IN):
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


def _memories(fabric: Fabric, text: GateText) -> Wires:
    """Ports of nodes with memories."""
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        for port in PORTS:
            name = f"{port}_{endpoint.node}"
            if name in text.nets and port in pins:
                yield endpoint.name, port, [*pins[port]], text.nets[name][: len(pins[port])]


def _direct(fabric: Fabric, text: GateText) -> Wires:
    """Ports of nodes without memories: a word of each in-port."""
    for node, arriving in enumerate(_arriving(fabric, text)):
        name = f"receive_{node}"
        yield "the top", name, [*text.outputs[name]], [bit for word in arriving for bit in word]


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
                yield endpoint.name, port, [*bits], given[port][: len(bits)]


def _distributed(fabric: Fabric, text: GateText) -> Wires:
    """What endpoints are given by the host port, bit by bit: each behind a register."""
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


def _merged(fabric: Fabric, text: GateText) -> Wires:
    """Where each bit of a word comes to that nodes show, through all levels of the tree."""
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
