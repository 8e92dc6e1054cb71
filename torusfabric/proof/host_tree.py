"""What is between the host port and the nodes: registers on the way there, and a tree back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rtl.distribution import BY_GROUP
from ..rtl.host import merge_levels
from ..rtl.netlist import Role
from .cones import cone
from .faults import refuted
from .gates import Bit, Gate, GateText

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["check_distribution", "check_tree"]


def check_distribution(fabric: Fabric, text: GateText) -> int:
    """Check that nodes are given what the host port gives, one cycle later.

    Of what it gives to groups, a node is to be given the bit that the upper bits of its number
    choose: `write_node` has the others.

    Returns
    -------
    int
        How many bits were followed.

    Raises
    ------
    Refuted
        If a node is given anything else.
    """
    host = text.instances["the_host"].pins
    gives = text.modules[fabric.prefix + "host"].outputs
    staged = _staged(fabric, text)
    count = 0
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        pins = text.instances[endpoint.name].pins
        assert endpoint.node is not None
        group = endpoint.node >> len(gives["write_node"])
        for port in gives.keys() & pins.keys():
            given = host[port][group:] if port in BY_GROUP else host[port]
            for k, bit in enumerate(pins[port]):
                if staged.get(bit) != given[k]:
                    message = f"Bit {k} of {port} of {endpoint.name} must be that of the host port"
                    raise refuted("wiring", f"{endpoint.name}.{port}", message)
                count += 1
    return count


def _staged(fabric: Fabric, text: GateText) -> dict[Bit, Bit]:
    """Of each bit behind a register of the control tree, the bit before it."""
    found: dict[Bit, Bit] = {}
    for instance in fabric.netlist.having(Role.CONTROL):
        module = text.modules[fabric.prefix + instance.module]
        pins = text.instances[instance.name].pins
        place = {bit: (p, k) for p, bits in module.inputs.items() for k, bit in enumerate(bits)}
        flop_of: dict[Bit, Bit] = {flop.q: flop.d for flop in module.flops}
        for port, bits in module.outputs.items():
            for k, bit in enumerate(bits):
                before = flop_of.get(bit)
                if before in place:
                    name, number = place[before]
                    found[pins[port][k]] = pins[name][number]
    return found


def check_tree(fabric: Fabric, text: GateText) -> int:
    """Check that the word of the one node that is asked comes to the host, while others show 0.

    Returns
    -------
    int
        How many bits were followed.

    Raises
    ------
    Refuted
        If one does not come, or not in time.
    """
    arrives: dict[Bit, tuple[Bit, ...]] = {}
    for instance in fabric.netlist.having(Role.READ_TREE):
        module = text.modules[fabric.prefix + instance.module]
        pins = text.instances[instance.name].pins
        flop_of: dict[Bit, Bit] = {flop.q: flop.d for flop in module.flops}
        gate_of: dict[Bit, Gate] = {gate.y: gate for gate in module.gates}
        for k, out in enumerate(module.outputs["word"]):
            d = flop_of.get(out)
            reached = cone(module, [d], through_flops=False).bits if d is not None else set()
            kinds = {gate_of[bit].kind for bit in reached if bit in gate_of}
            for j, bit in enumerate(module.inputs["data"]):
                if bit in reached and kinds <= {"OR"}:
                    arrives[pins["data"][j]] = (*arrives.get(pins["data"][j], ()), pins["word"][k])
    levels, count = len(merge_levels(fabric.nodes)), 0
    for endpoint in fabric.netlist.having(Role.ENDPOINT):
        for k, bit in enumerate(text.instances[endpoint.name].pins["read_data"]):
            at: tuple[Bit, ...] = (bit,)
            for _ in range(levels):
                at = tuple(there for here in at for there in arrives.get(here, ()))
            if at != (text.nets["host_rdata"][k],):
                message = f"Bit {k} of read_data of {endpoint.name} must come to host_rdata[{k}]"
                raise refuted("read tree", f"{endpoint.name}.read_data", message)
            count += 1
    return count
