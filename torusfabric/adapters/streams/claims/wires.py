"""Claims that the wires between the modules of a fabric with streams are as planned.

The modules of a node are its memories, its loader (which takes packets from the user), its unloader
(which sends received words) and the memory for words that it sends to itself. The *control* starts
runs when the *readiness tree*, which combines the states of all nodes, reports that all are ready.
The claims are about the emitted Verilog, read as gates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....proof.gates import Bit
from ....proof.lemmas import wiring_claim
from ....proof.wiring import Wires, control_tree_inputs, planned_wires
from ....rtl.netlist import Role
from ..hardware import RUN_PORT_NETS
from ..sections import stream_nodes

if TYPE_CHECKING:
    from ....contract.claims import Claim
    from ....proof.gates import GateText
    from ....rtl import Fabric

__all__ = ["wire_claims"]


#: Outputs of a node of the readiness tree, each with the inputs on which it depends.
TREE_INPUTS = {"all_ready": ["ready"], "any_bad": ["bad"], "none_bad": ["good"],
           "any_length": ["length", "sends"], "any_sends": ["sends"]}  # fmt: skip

#: Inputs of the control, each with the outputs of loaders and unloaders on which it depends.
NODE_REPORTS = {"ready": ["loaded", "free"], "bad": ["bad"], "good": ["bad"],
         "last": ["length", "counts"]}  # fmt: skip

#: Inputs of loaders and unloaders about runs, and, with fixed tables, about messages.
RUN_SIGNALS = ("clear", "run_begins", "run_ends", "run_empty", "run_last")
COMMAND_SIGNALS = ("load_valid", "load_mode", "load_root", "unload_mode", "unload_root")


def wire_claims(fabric: Fabric, text: GateText) -> Iterator[Claim]:
    """Yield the claims that the wires of a fabric with streams lead where they should.

    There are three claims: about the wires within nodes, about the wires to and from the module
    that starts runs (the control), and about all other wires of loaders, unloaders and queues
    between clocks. The claims are proved of `text`, the emitted Verilog, read as gates.
    """
    says = "the engines of each node write and read that node, by rows of its own tables"
    yield wiring_claim("node ports", says, text, _node_wires(fabric, text))
    says = "the control hears each node, and each node is given what it and commands give"
    yield wiring_claim("stream control", says, text, _control_wires(fabric, text))
    says = "engines, control and crossings are wired to each other and to ports as planned"
    yield wiring_claim("streams", says, text, planned_wires(fabric, text, Role.STREAM, Role.OUTLET))


def _node_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield the wires between the modules of each node, as found and as expected.

    Each is a tuple: instance, input, bits that are wired to the input in the Verilog, and expected
    bits. The modules of a node are endpoint, loader, unloader, the memory for words to itself, and
    ROMs; a relay has only an endpoint and an idle port. A wire leads from an output to an input
    with the same name. `text` is the emitted Verilog, read as gates.
    """
    for store in fabric.netlist.instances_with_role(Role.ENDPOINT):
        if store.node in fabric.program.topology.relays:
            given = text.instances[f"idle_port_at_{store.node}"].pins
            for port, bits in text.instances[store.name].pins.items():
                if port in given:
                    yield store.name, port, [*bits], given[port][: len(bits)]
            continue
        engines = [text.instances[f"{name}_at_{store.node}"] for name in ("loader", "unloader")]
        outlets = (f"{name}_at_{store.node}" for name in ("own_block", "outlet"))
        outlet = next(name for name in outlets if name in text.instances)
        given = {port: bits for engine in engines for port, bits in engine.pins.items()}
        given["read_data"] = text.instances[store.name].pins["read_data"]
        for name in (store.name, outlet):
            for port in text.modules[text.instances[name].module].inputs:
                if port.startswith(("write_", "read_", "own_", "tkeep")):
                    bits = text.instances[name].pins[port]
                    yield name, port, [*bits], given[port][: len(bits)]
        for engine, verb in zip(engines, ("load", "unload"), strict=True):
            rom = f"rom_{verb}_row_{store.node}"
            if rom in text.instances:
                pins = text.instances[rom].pins
                yield rom, "address", [*pins["address"]], engine.pins["key"]
                yield f"the {verb}er", "row", [*engine.pins["row"]], pins["data"]


def _control_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield the wires between control, commands, sequencer and all nodes, as found and expected.

    Each is a tuple: instance, input, bits that are wired to the input in the Verilog, and expected
    bits. An output of control, commands or sequencer drives all inputs of the same name; those of
    nodes are driven through a register. The readiness tree leads from each node to the control.
    `text` is the emitted Verilog, read as gates.
    """
    given: dict[str, list[Bit]] = {}
    ones = [name for name in ("the_sequencer", "the_commands", "the_stream_control")
            if name in text.instances]  # fmt: skip
    for name in ones:
        module, pins, _ = text.instances[name]
        given |= {port: pins[port] for port in text.modules[module].outputs}
    for name in ones:
        module, pins, _ = text.instances[name]
        for port in text.modules[module].inputs:
            net = RUN_PORT_NETS.get(port, port) if name == "the_sequencer" else port
            if net in given:
                yield name, port, [*pins[port]], given[net][: len(pins[port])]
    told = RUN_SIGNALS if fabric.tables else RUN_SIGNALS + COMMAND_SIGNALS
    staged, heard = control_tree_inputs(fabric, text), defaultdict[str, list[Bit]](list)
    nodes = stream_nodes(fabric.program.topology).tolist()
    for name in (f"{end}_at_{k}" for k in nodes for end in ("loader", "unloader")):
        for port, bits in text.instances[name].pins.items():
            heard[port] += bits
            if port in told:
                yield name, port, [staged.get(bit) for bit in bits], given[port][: len(bits)]
    for port, said in NODE_REPORTS.items():
        bits = text.instances["the_stream_control"].pins.get(port, [])
        if bits:
            wanted = {bit for each in said for bit in heard[each]}
            found = _tree_sources(fabric, text, bits)
            yield "the_stream_control", port, sorted(found, key=str), sorted(wanted, key=str)


def _tree_sources(fabric: Fabric, text: GateText, bits: list[Bit]) -> set[Bit]:
    """Return the outputs of loaders and unloaders that the readiness tree combines to `bits`.

    `text` is the emitted Verilog, read as gates.
    """
    before: dict[Bit, list[Bit]] = {}
    for instance in fabric.netlist.instances_with_role(Role.STREAM):
        if instance.name in text.instances and instance.module.startswith("readiness"):
            pins = text.instances[instance.name].pins
            for out, ports in TREE_INPUTS.items():
                # Nodes have an output `bad`, but none for `good`.
                followed = ports if out != "none_bad" or "good" in pins else ["bad"]
                inputs = [bit for port in followed for bit in pins.get(port, [])]
                before |= dict.fromkeys(pins.get(out, []), inputs)
    found, left = set[Bit](), [*bits]
    while left:
        bit = left.pop()
        if bit not in found:
            found.add(bit)
            left += before.get(bit, [])
    return found - before.keys()
