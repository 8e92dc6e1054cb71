"""Wires between the host port and nodes, as the text has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....proof.gates import Bit, GateText, cone
from ....proof.wiring import Wires, control_tree
from ....rtl.distribution import is_by_group, merge_levels
from ....rtl.netlist import Role

if TYPE_CHECKING:
    from ....rtl import Fabric

__all__ = ["distributed_wires", "merged_wires"]

#: The inputs of the host port, which ports of the top, or registers behind a bus, drive.
HOST = ("start", "busy", "host_we", "host_node", "host_addr", "host_wdata")


def distributed_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield what nodes are given by the host port, bit by bit: each behind a register.

    The host port itself is given the start of a run, whether one is under way, and what the host
    asks for. Of what it gives to groups, a node is to be given the bit that the upper bits of its
    number choose: `write_node` has the others.
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
