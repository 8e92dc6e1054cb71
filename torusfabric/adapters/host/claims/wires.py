"""Wires between the host port and the nodes in the emitted Verilog, to be compared by the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....proof.gates import Bit, GateText, cone
from ....proof.wiring import Wires, control_tree
from ....rtl.distribution import is_by_group, merge_levels
from ....rtl.netlist import Role

if TYPE_CHECKING:
    from ....rtl import Fabric

__all__ = ["distributed_wires", "merged_wires"]

#: Inputs of the host port. Ports of the top drive them, or registers behind a bus.
HOST = ("start", "busy", "host_we", "host_node", "host_addr", "host_wdata")


def distributed_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield the wires into the host port, and those from the host port to each node.

    Each wire is (instance, pin, found bits, expected bits). Between port and node lies one
    register. Of a signal with one bit for each group, a node receives the bit of its group, which
    the upper bits of its number give; `write_node` carries the lower bits.
    """
    host = text.instances["the_host"].pins
    gives = text.modules[fabric.prefix + "host"].outputs
    staged = control_tree(fabric, text)
    for port in HOST:
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


def merged_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield the path of each bit of `read_data` of a node through the read tree to `host_rdata`.

    A level of the tree has to be an OR of its inputs and a register, so that a bit passes while all
    other nodes output 0. Each wire is (instance, pin, reached bits, expected bits).
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
