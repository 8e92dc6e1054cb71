"""Wires between the host port and the nodes: found in the emitted Verilog, and expected.

`torusfabric.proof.lemmas.wiring_claim` compares the found wires with the expected ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....proof.gates import Bit, GateText, cone_of_influence
from ....proof.wiring import Wires, control_tree_inputs
from ....rtl.distribution import has_bit_per_group, tree_level_sizes
from ....rtl.netlist import Role

if TYPE_CHECKING:
    from ....rtl import Fabric

__all__ = ["control_tree_wires", "read_tree_wires"]

#: Inputs of the host port. Ports of the top drive them, or registers behind a bus.
HOST_INPUTS = ("start", "busy", "host_we", "host_node", "host_addr", "host_wdata")


def control_tree_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield the wires into the host port, and those from the host port to each node.

    Each wire is a tuple (instance, pin, found bits, expected bits). The found bits are those of
    `text`, the emitted Verilog, read as gates. Registers between port and node count as wires. A
    write enable has one bit for each set of nodes that share a register, and a node receives the
    bit of its set. The number of the set is the upper bits of the node number; `write_node` has the
    lower bits.
    """
    host = text.instances["the_host"].pins
    gives = text.modules[fabric.prefix + "host"].outputs
    staged = control_tree_inputs(fabric, text)
    for port in HOST_INPUTS:
        yield "the_host", port, [*host[port]], [*text.nets[port]]
    if fabric.hold and "settling" in host:
        held = text.instances["the_sequencer"].pins["settling"]
        yield "the_sequencer", "settling", [*held], [*host["settling"]]
    for endpoint in fabric.netlist.instances_with_role(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        assert endpoint.node is not None
        group = endpoint.node >> len(gives["write_node"])
        for port in gives.keys() & pins.keys():
            given = host[port][group:] if has_bit_per_group(port) else host[port]
            for k, bit in enumerate(pins[port]):
                yield endpoint.name, f"{port}[{k}]", [staged.get(bit)], [given[k]]


def read_tree_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield, for each bit of `read_data` of each node, the bit of `host_rdata` to which it leads.

    The bit leads through the read tree. Each level of the tree has to be an OR of its inputs and a
    register, so that the bit passes while all other nodes output 0. The result is a tuple
    (instance, pin, reached bits, expected bits). `text` is the emitted Verilog, read as gates.
    """
    arrives: dict[Bit, tuple[Bit, ...]] = {}
    for instance in fabric.netlist.instances_with_role(Role.READ_TREE):
        module = text.modules[fabric.prefix + instance.module]
        pins = text.instances[instance.name].pins
        for k, out in enumerate(module.outputs["word"]):
            d = module.flop_of.get(out)
            reached = (
                cone_of_influence(module, [d], through_flops=False).bits if d is not None else set()
            )
            kinds = {module.gate_of[b].kind for b in reached if b in module.gate_of}
            for j, bit in enumerate(module.inputs["data"]):
                if bit in reached and kinds <= {"OR"}:
                    arrives[pins["data"][j]] = (*arrives.get(pins["data"][j], ()), pins["word"][k])
    for endpoint in fabric.netlist.instances_with_role(Role.ENDPOINT):
        for k, bit in enumerate(text.instances[endpoint.name].pins["read_data"]):
            at: tuple[Bit, ...] = (bit,)
            for _ in tree_level_sizes(fabric.nodes):
                at = tuple(there for here in at for there in arrives.get(here, ()))
            yield endpoint.name, f"read_data[{k}]", [*at], [text.nets["host_rdata"][k]]
