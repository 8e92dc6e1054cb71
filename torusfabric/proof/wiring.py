"""The wires between instances, as the text has them, compared with what they should be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..rtl.distribution import is_by_group, merge_levels
from ..rtl.netlist import Role
from .gate_program import GateProgram
from .gates import WORDS_IN, Bit, GateModule, GateText, cone
from .report import refuted
from .symbols import word
from .units import registers_of_links

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.arrays import Instance

__all__ = ["Wires", "check_arrivals", "check_words", "compared", "distributed_wires",
           "merged_wires", "stream_control_wires"]  # fmt: skip

#: Instances and ports, with what is wired to them and what should be.
Wires: TypeAlias = Iterator[tuple[str, str, list[Bit | None], list[Bit]]]

#: The inputs of the host port, which ports of the top, or registers behind a bus, drive.
HOST = ("start", "busy", "host_we", "host_node", "host_addr", "host_wdata")


def check_words(text: GateText, width: int) -> int:
    """Check that all bits of a word come from one word, in their order.

    So it is enough to know of one bit of a word where it comes from; see `arriving_wires`.
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


def check_arrivals(fabric: Fabric, text: GateText) -> int:
    """Check, and count, the words that come to nodes by arcs of the topology.

    In-port p of a node takes the word that the neighbour there sends by the opposite out-port; if
    the arc takes several cycles, the word leaves a link that has the others. Routers and combiners
    take the words of all in-ports, endpoints those that they store. A core without memories shows
    all of them.
    """
    width, count = fabric.width, 0
    in_ports = range(fabric.program.topology.ports)
    takers: list[tuple[str, int, list[Bit], Sequence[int]]] = [
        ("the top", int(name.removeprefix("receive_")), bits, in_ports)
        for name, bits in text.outputs.items()
        if name.startswith("receive_")
    ]
    for instance in fabric.netlist.instances:
        taking = instance.role in (Role.ROUTER, Role.COMBINER, Role.ENDPOINT)
        # The last nodes of a tree have a router, or a combiner, of which nothing is read.
        if taking and instance.name in text.instances:
            assert instance.node is not None
            pins = text.instances[instance.name].pins
            words = _given_words(fabric, instance) or in_ports
            takers.append((instance.name, instance.node, pins.get("rx", []), words))
    arriving = _arriving(fabric, text)
    for name, node, bits, words in takers:
        for found, source in zip(bits[::width], words, strict=False):
            # Sources from the number of ports on are results of the node itself.
            if source in in_ports:
                arc, wanted = arriving[node][source]
                if found != wanted:
                    message = (
                        f"In-port {source} of {name} must have the word of arc {arc}, "
                        f"not {_named(text, found)}"
                    )
                    raise refuted("wiring", f"{name}.rx[{source}]", message)
                count += 1
    return count


def _given_words(fabric: Fabric, instance: Instance) -> Sequence[int]:
    """Return the source numbers of the words at the input `rx`; none for all in-ports in order."""
    assert instance.node is not None
    if fabric.core and instance.role is not Role.COMBINER:
        return fabric.core.stored_words(instance.module, instance.node)
    if fabric.core or instance.role is not Role.ENDPOINT:
        return []
    variant = fabric.variant_of[instance.node]
    return [word for word, _ in fabric.placement.endpoints.wires[variant].words]


def _arriving(fabric: Fabric, text: GateText) -> list[list[tuple[str, Bit | None]]]:
    """Return the arc and the first bit of the word that comes to each node by each in-port."""
    topology, width, netlist = fabric.program.topology, fabric.width, fabric.netlist
    registers, behind = registers_of_links(fabric), dict[tuple[Bit, int], Bit]()
    for link in netlist.having(Role.LINK):
        if link.name in text.instances:
            module, pins, _ = text.instances[link.name]
            late = 1 + registers[module.removeprefix(fabric.prefix)]
            behind[pins["sent"][0], late] = pins["arrived"][0]
    sent = {i.node: text.instances[i.name].pins["tx"] for i in netlist.having(Role.ROUTER)
            if i.name in text.instances}  # fmt: skip
    cycles = topology.cycles_of_arc.tolist()

    def word(node: int, port: int) -> tuple[str, Bit | None]:
        if node not in sent:
            return f"{node}:{topology.port_names[port]}", None
        bit, late = sent[node][port * width], cycles[node][port]
        arrives = bit if late == 1 else behind.get((bit, late))
        return f"{node}:{topology.port_names[port]}", arrives

    ends = np.stack(topology.upstream, axis=2).tolist()
    return [[word(*end) for end in by_port] for by_port in ends]


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


#: The outputs of the tree of readiness, each with the inputs from which it follows.
FOLLOWS = {"all_ready": ["ready"], "any_bad": ["bad"], "none_bad": ["good"],
           "any_length": ["length", "sends"], "any_sends": ["sends"]}  # fmt: skip

#: The inputs of the control of streams, each with what loaders and unloaders say of it.
HEARD = {"ready": ["loaded", "free"], "bad": ["bad"], "good": ["bad"],
         "last": ["length", "counts"]}  # fmt: skip

#: What loaders and unloaders are told of runs, and of messages unless tables are loaded.
OF_RUNS = ("clear", "run_begins", "run_ends", "run_empty", "run_last")
OF_MESSAGES = ("load_valid", "load_mode", "load_root", "unload_mode", "unload_root")


def stream_control_wires(
    fabric: Fabric, text: GateText, renamed: Mapping[str, str] = MappingProxyType({})
) -> Wires:
    """Yield the wires between the control of streams, the commands, the sequencer and all nodes.

    Outputs of these three go to inputs of the same name, at nodes a cycle later; the control hears
    each node by a tree.

    Parameters
    ----------
    renamed : mapping of str to str
        The nets that drive inputs of the sequencer, where they have another name.
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
            net = renamed.get(port, port) if name == "the_sequencer" else port
            if net in given:
                yield name, port, [*pins[port]], given[net][: len(pins[port])]
    told = OF_RUNS if fabric.room else OF_RUNS + OF_MESSAGES
    staged, heard = _staged(fabric, text), defaultdict[str, list[Bit]](list)
    for name in (f"{end}_at_{k}" for k in range(fabric.nodes) for end in ("loader", "unloader")):
        for port, bits in text.instances[name].pins.items():
            heard[port] += bits
            if port in told:
                yield name, port, [staged.get(bit) for bit in bits], given[port][: len(bits)]
    for port, said in HEARD.items():
        bits = text.instances["the_stream_control"].pins.get(port, [])
        if bits:
            wanted = {bit for each in said for bit in heard[each]}
            found = _heard(fabric, text, bits)
            yield "the_stream_control", port, sorted(found, key=str), sorted(wanted, key=str)


def _heard(fabric: Fabric, text: GateText, bits: list[Bit]) -> set[Bit]:
    """Return the bits at nodes from which bits follow through the tree of readiness."""
    before: dict[Bit, list[Bit]] = {}
    for instance in fabric.netlist.having(Role.STREAM):
        if instance.name in text.instances and instance.module.startswith("readiness"):
            pins = text.instances[instance.name].pins
            for out, ports in FOLLOWS.items():
                # Nodes only say what is bad.
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


def distributed_wires(fabric: Fabric, text: GateText) -> Wires:
    """Yield what nodes are given by the host port, bit by bit: each behind a register.

    The host port itself is given the start of a run, whether one is under way, and what the host
    asks for. Of what it gives to groups, a node is to be given the bit that the upper bits of its
    number choose: `write_node` has the others.
    """
    host = text.instances["the_host"].pins
    gives = text.modules[fabric.prefix + "host"].outputs
    staged = _staged(fabric, text)
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


def _staged(fabric: Fabric, text: GateText) -> dict[Bit, Bit]:
    """Return, of each bit behind a register of the control tree, the bit before it."""
    found: dict[Bit, Bit] = {}
    passed: dict[str, list[tuple[str, int, str, int]]] = {}
    for instance in fabric.netlist.having(Role.CONTROL):
        module, pins = (
            text.modules[fabric.prefix + instance.module],
            text.instances[instance.name].pins,
        )
        if module.name not in passed:
            passed[module.name] = [*_passed_on(module)]
        for port, k, name, number in passed[module.name]:
            found[pins[port][k]] = pins[name][number]
    return found


def _passed_on(module: GateModule) -> Iterator[tuple[str, int, str, int]]:
    """Yield bits of outputs, and those of inputs that they show a cycle later without a reset."""
    program = GateProgram(module, {name: [*range(len(b))] for name, b in module.outputs.items()})
    places = [(name, k) for name, bits in program.inputs.items() for k in bits if name != "rst"]
    letters = dict(zip(word(np.arange(len(places))).tolist(), places, strict=True))
    of_place = {place: letter for letter, place in letters.items()}
    given = {name: np.array([[of_place.get((name, k), 0)] for k in bits], np.int32)
             for name, bits in program.inputs.items() if bits}  # fmt: skip
    state = program.unknown(1)
    shown = program.values(program.after(program.values(state, given), state), {})
    for port in module.outputs:
        for k, letter in enumerate(program.outputs_of(shown, port)[:, 0].tolist()):
            if letter in letters:
                yield (port, k, *letters[letter])


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
