"""Claim that a host port translates every access as the address map of the program says.

The address map gives the memory and the first address of each block at a node.

The proof has two steps. First, `_check_input_ages` shows that the port is a pipeline: all paths
from an input to one output have the same number of registers, so consecutive accesses are
independent. Second, `_compare_outputs` replaces the registers by wires, and compares the outputs
with the address map, for every node and every address of a message. `HostPorts` says which nodes a
port serves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....program.timing import DISTRIBUTION
from ....proof.gate_program import GateProgram
from ....proof.gates import Bit, Flop, Gate, GateModule, GateText, cone_of_influence
from ....proof.messages import Run
from ....proof.report import make_refutation
from ....rtl.arrays import NodeGroups
from ....rtl.core.memory_port import number_suffix, write_enable_numbers
from ....rtl.distribution import has_bit_per_group, tree_level_sizes
from ....topology import IntArray
from .locations import received_locations, send_memory_numbers, sent_locations

if TYPE_CHECKING:
    from ....program import Program
    from ....rtl import Fabric

__all__ = ["HostPorts", "check_host_port", "write_enable_nets"]

#: Accesses that are simulated at a time, in one array.
BATCH_ACCESSES = 1 << 13

#: Inputs that are constant while the host reads: those of the last run, and the block.
CONSTANT_INPUTS = ("rst", "form", "sampled_root", "block")


class _AccessVectors(NamedTuple):
    """Inputs of some accesses, and the outputs that the host port must have for them.

    Each input and output is an array with one entry for each access.

    An expected output of -1 means "don't care". A write enable has one bit for each set of nodes
    that share a register. Its entry is the number of the only bit that is high; a number beyond the
    last bit means that all bits are low.
    """

    inputs: dict[str, IntArray]
    outputs: dict[str, IntArray]


def check_host_port(fabric: Fabric, text: GateText, ports: Sequence[HostPorts]) -> int:
    """Check that host ports translate each host address into the right location at a node.

    A location is a memory and an address in it. The right one follows from the address map of the
    program, which gives the memory and the first address of each block.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host`` or behind a bus.
    text : GateText
        The gates of its emitted Verilog.
    ports : sequence of HostPorts
        The host ports of all tops that instantiate this Verilog.

    Returns
    -------
    int
        Number of accesses (reads and writes of one word) that were checked.

    Raises
    ------
    Refuted
        If an output of the port is wrong, or the port is no pipeline.
    """
    module = text.modules[fabric.prefix + "host"]
    leaf = fabric.netlist.modules["host"]()
    # The read latency counts the registers of groups, the node and the tree, outside the port.
    behind = DISTRIBUTION - 1 + fabric.answer + len(tree_level_sizes(fabric.nodes))
    locating = fabric.read_latency - behind
    writes = leaf.write_cycles
    ages = dict.fromkeys(("read_node", "read_bank", "read_address"), locating)
    ages |= {name: writes for name in module.outputs if name.startswith("write_")}
    ages["write_data"] = writes + 1
    _check_input_ages(module, ages)
    if "settling" in module.outputs:
        _check_settling(module, fabric)
    function = GateProgram(
        _remove_registers(module),
        {name: [*range(len(module.outputs[name]))] for name in ages},
        kept_as=np.int8,
    )
    count = 0
    for access in chain.from_iterable(_all_accesses(fabric, each) for each in ports):
        size = len(next(iter(access.inputs.values())))
        for start in range(0, size, BATCH_ACCESSES):
            part = slice(start, start + BATCH_ACCESSES)
            _compare_outputs(function, *({n: v[part] for n, v in d.items()} for d in access))
        count += size
    return count


def _check_input_ages(module: GateModule, ages: Mapping[str, int]) -> None:
    """Check that every output of a module depends only on inputs from a fixed number of cycles ago.

    `ages` has this number for each output, such as ``{"read_bank": 5}``. The inputs
    `CONSTANT_INPUTS` may be of any age, because they do not change while the host reads.
    """
    inputs = {
        bit for name, bits in module.inputs.items() if name not in CONSTANT_INPUTS for bit in bits
    }
    wanted = [bit for name in ages for bit in module.outputs[name]]
    wires = _remove_registers(module)
    before: dict[Bit, list[Bit]] = {
        bit: wires.operands_of(bit) for bit in cone_of_influence(wires, wanted).bits
    }
    found: dict[Bit, frozenset[int]] = dict.fromkeys("01xz", frozenset())
    try:
        for bit in TopologicalSorter(before).static_order():
            below, later = before.get(bit, []), int(bit in module.flop_of)
            follows = {age + later for each in below for age in found[each]}
            found[bit] = frozenset({0} if bit in inputs else follows)
    except CycleError as error:
        message = "Host port must be a pipeline, not remember what was longer ago"
        raise make_refutation(
            module.name, module.names.get(error.args[1][0], ""), message
        ) from None
    for name, age in ages.items():
        for k, bit in enumerate(module.outputs[name]):
            if not found[bit] <= {age}:
                message = (
                    f"Bit {k} of {name} of the host port must follow from inputs {age} cycles ago, "
                    f"not {sorted(found[bit])}"
                )
                raise make_refutation(module.name, name, message)


def _check_settling(module: GateModule, fabric: Fabric) -> None:
    """Check the output `settling`, which delays runs: high in the `hold` cycles after a write only.

    Two simulations, for all addresses at once. In the first, a write is followed by `hold` cycles
    with unknown inputs: `settling` must be 1 in each of them. In the second, an unknown state is
    followed by `hold` cycles without a write: `settling` must then be 0. `module` is the module of
    the host port, as gates.
    """
    program = GateProgram(module, {"settling": [0]}, kept_as=np.int8)
    words = max(layout.send_words for layout in fabric.form_layouts)
    bits = np.array(program.inputs["host_addr"], int)[:, None]
    idle = {"rst": np.zeros((1, words), np.int8), "host_we": np.zeros((1, words), np.int8)}
    write = {name: np.full((1, words), int(name == "host_we"), np.int8)
             for name in ("rst", "host_we", "start", "busy")}  # fmt: skip
    write["host_addr"] = (np.arange(words) >> bits & 1).astype(np.int8)
    for wanted, first in enumerate((idle, write)):
        others = idle if not wanted else {"rst": idle["rst"]}
        state = program.unknown_state(words)
        for cycle in range(fabric.hold + 1):
            found = program.cycle_bits(state, first if not cycle else others)
            shown = program.outputs_of(found, "settling")
            if (cycle if wanted else cycle == fabric.hold) and (shown != wanted).any():
                when = f"{cycle} cycles after a write" if wanted else "long after all writes"
                message = f"settling of the host port must be {wanted} {when}"
                raise make_refutation(module.name, "settling", message, cycle=cycle)
            state = program.next_state(found, state)


def _remove_registers(module: GateModule) -> GateModule:
    """Return a copy of a pipeline in which each register is replaced by a wire.

    The copy computes the outputs of `module` from its inputs without delay.
    """
    gates = [*module.gates, *(Gate("OR", flop.q, flop.d, "0") for flop in module.flops)]
    flops: list[Flop] = []
    return GateModule(
        module.name, module.inputs, module.outputs, gates, flops, module.rams, module.names
    )


def _all_accesses(fabric: Fabric, ports: HostPorts) -> Iterator[_AccessVectors]:
    """Yield test vectors of the host port: reads, writes and ignored writes of each form.

    Each has inputs and expected outputs, for every node and every address of a message. If
    locations depend on the root, there are reads for each root. `ports` says which nodes the port
    serves.
    """
    program, beat = fabric.program, fabric.beat
    served, nodes = ports.nodes, np.arange(len(ports.nodes))
    groups = NodeGroups(len(nodes))
    base = {"rst": 0, "host_we": 0, "start": 0, "busy": 0, "form": 0, "sampled_root": 0}
    base |= {} if ports.block is None else {"block": ports.block}
    for number, form in enumerate(program.forms):
        chosen = base | {"form": number}
        by_root = form.has_root_addresses or form.by_offset
        for root in range(form.groups.group_size if by_root else 1):
            run = Run(0, program.flits, root)
            place = received_locations(program, run, number)
            place = place.first_of_beats(program.flits, beat)
            address = place.address[served]
            memory = np.where(address < 0, -1, place.memory[served])
            yield _make_vectors(
                chosen | {"sampled_root": root},
                (fabric.layout.recv_base, nodes),
                {"read_node": nodes[:, None], "read_bank": memory, "read_address": address},
            )
        place = sent_locations(program, Run(0, program.flits), number).first_of_beats(
            program.flits, beat
        )
        layout = form.layout
        yield _make_vectors(
            chosen | {"host_we": 1},
            (0, nodes),
            {
                "write_node": nodes[:, None] % groups.group_size,
                write_enable_nets(program)[layout]: nodes[:, None] // groups.group_size,
                f"write_bank{number_suffix(layout)}": send_memory_numbers(program, layout)[
                    place.memory[served]
                ],
                f"write_address{number_suffix(layout)}": place.address[served],
            },
        )
        yield from _ignored_writes(fabric, chosen, number)


def write_enable_nets(program: Program) -> list[str]:
    """Return, for each send map of a program, the name of the net with its write enable.

    A send map gives the location of each word to send, in one or several forms. Send maps with
    equally many words share a net, because the host port ignores the same addresses for them.
    """
    first = {form.layout: number for number, form in reversed([*enumerate(program.forms)])}
    numbers = write_enable_numbers(
        program.part(first[layout]).send_words for layout in sorted(first)
    )
    return [f"write_enable{number_suffix(number)}" for number in numbers]


def _ignored_writes(
    fabric: Fabric, chosen: Mapping[str, int], form: int
) -> Iterator[_AccessVectors]:
    """Yield test vectors of a host port in which all bits of a write enable must be low.

    The inputs are: no write, a write beyond the last word to send, a write in the cycle of a start,
    and a write during a run. `form` is the number of the form whose write enable is tested.
    `chosen` has the values of inputs that all these accesses share, by name.
    """
    nodes, every = np.arange(fabric.nodes), 2 * fabric.layout.recv_base
    none, words = NodeGroups(fabric.nodes).n_groups, fabric.form_layouts[form].send_words
    enable = write_enable_nets(fabric.program)[fabric.program.forms[form].layout]
    write = {**chosen, "host_we": 1}
    for inputs, first in (
        (chosen, 0), (write, words), ({**write, "start": 1}, 0), ({**write, "busy": 1}, 0),
    ):  # fmt: skip
        enabled = {enable: np.full((1, every - first), none)}
        yield _make_vectors(inputs, (first, nodes), enabled)


def _make_vectors(
    chosen: Mapping[str, int],
    where: tuple[int, IntArray],
    wanted: dict[str, IntArray],
) -> _AccessVectors:
    """Return test vectors of a host port: accesses to consecutive addresses at each node.

    Parameters
    ----------
    chosen : mapping of str to int
        Inputs that all accesses share.
    where : tuple of (int, ndarray)
        The first address, and the values of `host_node` for all nodes.
    wanted : dict of str to ndarray, shapes that broadcast to (nodes, addresses)
        Expected value of each output, by name. The longest array decides how many addresses there
        are.
    """
    base, nodes = where
    shape = len(nodes), max(values.shape[1] for values in wanted.values())
    spread = lambda values: np.broadcast_to(values, shape).ravel()
    inputs = {name: spread(np.array(value)) for name, value in chosen.items()}
    inputs |= {
        "host_node": spread(nodes[:, None]),
        "host_addr": spread(base + np.arange(shape[1])[None]),
    }
    return _AccessVectors(inputs, {name: spread(values) for name, values in wanted.items()})


def _compare_outputs(
    function: GateProgram,
    inputs: Mapping[str, IntArray],
    outputs: Mapping[str, IntArray],
) -> None:
    """Compare the outputs that `function` computes for `inputs` with the expected `outputs`.

    `function` is the host port without registers, as gates. The arrays have one entry for each
    access, by the name of the input or output. The first difference raises `Refuted`, the error of
    a false claim.
    """
    size = len(next(iter(inputs.values())))
    given = {
        name: (values[None] >> np.array(function.inputs[name], int)[:, None] & 1).astype(np.int8)
        for name, values in inputs.items()
        if function.inputs.get(name)
    }
    v = function.cycle_bits(function.unknown_state(size), given)
    for name, wanted in outputs.items():
        bits = function.outputs_of(v, name)
        numbers = np.arange(len(bits))[:, None]
        expected = numbers == wanted if has_bit_per_group(name) else wanted >> numbers & 1
        wrong = ((bits != expected).any(axis=0)) & (wanted >= 0)
        if wrong.any():
            k = int(np.nonzero(wrong)[0][0])
            of = {n: int(values[k]) for n, values in inputs.items() if n.startswith("host_")}
            message = (
                f"{name} of the host port must be {wanted[k]} for {of}, not {bits[:, k][::-1]}"
            )
            raise make_refutation("host", name, message)


@dataclass(frozen=True)
class HostPorts:
    """A host port with the nodes that it serves: all nodes, or the nodes of one board.

    Parameters
    ----------
    nodes : ndarray of int
        Nodes that the port serves, in the order of their numbers at the port.
    number : ndarray of int, shape (all nodes,)
        The value of `host_node` that addresses each node at the port of its board.
    block : int or None
        Value of the input `block`, the number of the board, if the port has this input.
    names : tuple of str
        Suffixes of the nets of the port: ``("",)`` on one chip, ``("@0", "@1", ..)`` where the nets
        of several boards are joined in one netlist.
    holds : bool
        True if `settling` delays a run that is started while a write is on its way to a memory.
    """

    nodes: IntArray
    number: IntArray
    block: int | None = None
    names: tuple[str, ...] = ("",)
    holds: bool = True

    @classmethod
    def from_chip(cls, fabric: Fabric) -> HostPorts:
        """Return the only port of a fabric on one chip."""
        everyone = np.arange(fabric.program.topology.nodes)
        return cls(everyone, everyone)
