"""Comparison of the wires between instances in the emitted Verilog with the planned wires.

The *planned* wires are those of the netlist, from which the Verilog is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..rtl.netlist import Constant, Part, Role
from .gate_program import GateProgram
from .gates import WORDS_IN, Bit, GateModule, GateText
from .report import make_refutation
from .symbols import word_bits
from .units import link_registers

if TYPE_CHECKING:
    from ..rtl import Fabric

__all__ = ["Wires", "check_arrivals", "check_words", "compare_wires", "control_tree_inputs",
           "planned_wires"]  # fmt: skip

#: Wires: instance, port, bits wired in the Verilog, and planned bits.
Wires: TypeAlias = Iterator[tuple[str, str, list[Bit | None], list[Bit]]]


def check_words(text: GateText, width: int) -> int:
    """Check that no wire mixes bits of words: each word at an input is a whole word of an output.

    The origin of a word is then known from the origin of its first bit; see `check_arrivals`.

    Parameters
    ----------
    text : GateText
        The Verilog as gates.
    width : int
        Bits of a word.

    Returns
    -------
    int
        Number of words checked.
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
    # A core without memories has the arriving words as its outputs.
    words += [("the top", n, bits) for n, bits in text.outputs.items() if n.startswith("receive_")]
    count = 0
    for name, port, bits in words:
        for start in range(0, len(bits) - width + 1, width):
            found = [driver.get(bit) for bit in bits[start : start + width]]
            first = found[0] or ("", "", 0)
            wanted = [(*first[:2], first[2] + k) for k in range(width)]
            if found != wanted or first[2] % width:
                message = f"Word {start // width} of {port} of {name} must be one word"
                raise make_refutation("wiring", f"{name}.{port}", message)
            count += 1
    return count


def check_arrivals(fabric: Fabric, text: GateText) -> int:
    """Check that each in-port receives the word of its arc; returns the number of words.

    In-port p of a node receives the word that the neighbour behind port p sends through the
    opposite out-port. On an arc of several cycles the word comes out of a link with the right
    delay. Routers, and modules with the operators of a node, receive the words of all in-ports.
    Endpoints receive the words that they store. A core without memories outputs the words of all
    in-ports. `text` is the Verilog as gates.
    """
    width, count = fabric.width, 0
    in_ports = range(fabric.program.topology.ports)
    takers: list[tuple[str, int, list[Bit], Sequence[int]]] = [
        ("the top", int(name.removeprefix("receive_")), bits, in_ports)
        for name, bits in text.outputs.items()
        if name.startswith("receive_")
    ]
    for role in (Role.ROUTER, Role.COMBINER, Role.ENDPOINT):
        for instance in fabric.netlist.instances_with_role(role):
            # Yosys removes instances without used outputs, such as routers at the leaves of a tree.
            if instance.name in text.instances:
                assert instance.node is not None
                words: Sequence[int] = in_ports
                if role is not Role.COMBINER:
                    words = fabric.core.input_sources(instance.module, instance.node)
                pins = text.instances[instance.name].pins
                takers.append((instance.name, instance.node, pins.get("rx", []), words))
    arriving = _arc_bits(fabric, text)
    for name, node, bits, words in takers:
        for found, source in zip(bits[::width], words, strict=False):
            # Sources beyond the in-ports are results of the node's own operators.
            if source in in_ports:
                arc, wanted = arriving[node][source]
                if found != wanted:
                    message = (
                        f"In-port {source} of {name} must have the word of arc {arc}, "
                        f"not {_bit_name(text, found)}"
                    )
                    raise make_refutation("wiring", f"{name}.rx[{source}]", message)
                count += 1
    return count


def _arc_bits(fabric: Fabric, text: GateText) -> list[list[tuple[str, Bit | None]]]:
    """Return the arc that leads to each in-port, and the first bit of the word on it.

    The result is a nested list: entry ``[node][port]`` is the name of the arc, such as ``5:+0``,
    and the bit, or None if nothing drives the arc. `text` is the Verilog as gates.
    """
    topology, width, netlist = fabric.program.topology, fabric.width, fabric.netlist
    registers, behind = link_registers(fabric), dict[tuple[Bit, int], Bit]()
    for link in netlist.instances_with_role(Role.LINK):
        if link.name in text.instances:
            module, pins, _ = text.instances[link.name]
            late = 1 + registers[module.removeprefix(fabric.prefix)]
            behind[pins["sent"][0], late] = pins["arrived"][0]
    sent = {
        i.node: text.instances[i.name].pins["tx"]
        for i in netlist.instances_with_role(Role.ROUTER)
        if i.name in text.instances
    }
    cycles = topology.cycles_of_arc.tolist()

    def arc_name_and_bit(node: int, port: int) -> tuple[str, Bit | None]:
        if node not in sent:
            return f"{node}:{topology.port_names[port]}", None
        bit, late = sent[node][port * width], cycles[node][port]
        arrives = bit if late == 1 else behind.get((bit, late))
        return f"{node}:{topology.port_names[port]}", arrives

    ends = np.stack(topology.upstream, axis=2).tolist()
    return [[arc_name_and_bit(*end) for end in by_port] for by_port in ends]


def compare_wires(text: GateText, wires: Wires, what: str) -> int:
    """Check that wires in the Verilog are as planned; returns the number of compared ports.

    Parameters
    ----------
    text : GateText
        The Verilog as gates, from which messages take the names of bits.
    wires : iterator of (str, str, list of Bit, list of Bit)
        Instance, port, bits that are wired to it in the Verilog, and planned bits.
    what : str
        Name of the step of the proof, for a counterexample.

    Raises
    ------
    Refuted
        If a bit differs.
    """
    count = 0
    for name, port, found, wanted in wires:
        count += 1
        for k, (bit, right) in enumerate(zip_longest(found, wanted)):
            if bit != right:
                message = (
                    f"Bit {k} of {port} of {name} must be wired to {_bit_name(text, right)}, "
                    f"not to {_bit_name(text, bit)}"
                )
                raise make_refutation(what, f"{name}.{port}", message)
    return count


def _bit_name(text: GateText, bit: Bit | None) -> str:
    """Return the name of a bit of the top in `text`, for messages."""
    for name, bits in text.nets.items():
        if bit in bits:
            return f"{name}[{bits.index(bit)}]"
    return "nothing" if bit is None else f"the constant {bit}"


def planned_wires(fabric: Fabric, text: GateText, *roles: Role) -> Wires:
    """Yield all inputs of the instances with some roles, with the wires found and planned.

    Each result is a tuple: name of the instance, port, bits that are wired to the port in `text`
    (the Verilog as gates), and bits that the netlist plans.
    """

    def planned_bits(parts: Sequence[Part | Constant]) -> Iterator[Bit]:
        for part in parts:
            if isinstance(part, Constant):
                yield from (str(part.value >> k & 1) for k in range(part.width))
            else:
                yield from text.nets[part.net][part.start : part.start + part.width]

    for role in roles:
        for instance in fabric.netlist.instances_with_role(role):
            pins = text.instances[instance.name].pins
            for port, parts in instance.inputs.items():
                yield instance.name, port, [*pins[port]], [*planned_bits(parts)]


def control_tree_inputs(fabric: Fabric, text: GateText) -> dict[Bit, Bit]:
    """Return the input of each register in the control trees, as a dict: output bit -> input bit.

    A control tree distributes the signals of the sequencer to all nodes, through registers. Bits
    are those of the top in `text`, the Verilog as gates.
    """
    found: dict[Bit, Bit] = {}
    passed: dict[str, list[tuple[str, int, str, int]]] = {}
    for instance in fabric.netlist.instances_with_role(Role.CONTROL):
        module, pins = (
            text.modules[fabric.prefix + instance.module],
            text.instances[instance.name].pins,
        )
        if module.name not in passed:
            passed[module.name] = [*_delayed_bits(module)]
        for port, k, name, number in passed[module.name]:
            found[pins[port][k]] = pins[name][number]
    return found


def _delayed_bits(module: GateModule) -> Iterator[tuple[str, int, str, int]]:
    """Yield each output bit that shows an input bit one cycle later, together with this input bit.

    The result is a tuple: output port, position of the bit in this port, input port, position in
    this port. The pairs are found by the execution of one clock edge, with a different symbol on
    each input bit.
    """
    program = GateProgram(module, {name: [*range(len(b))] for name, b in module.outputs.items()})
    places = [(name, k) for name, bits in program.inputs.items() for k in bits if name != "rst"]
    letters = dict(zip(word_bits(np.arange(len(places))).tolist(), places, strict=True))
    of_place = {place: letter for letter, place in letters.items()}
    given = {name: np.array([[of_place.get((name, k), 0)] for k in bits], np.int32)
             for name, bits in program.inputs.items() if bits}  # fmt: skip
    state = program.unknown_state(1)
    shown = program.cycle_bits(program.next_state(program.cycle_bits(state, given), state), {})
    for port in module.outputs:
        for k, letter in enumerate(program.outputs_of(shown, port)[:, 0].tolist()):
            if letter in letters:
                yield (port, k, *letters[letter])
