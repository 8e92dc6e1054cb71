"""The wires of a board, and all boards joined by cables to one fabric.

`board_wires` lists the wires that only boards have, for a check of the Verilog. `join_boards`
returns all boards as one fabric, in which a cable is a link of fixed latency. Whole runs are
executed on this fabric. The module `buffers` proves that a cable takes its fixed latency, and
`control` proves that the sequencers start together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ....proof.gates import Bit, GateModule, GateText, TopInstance, TopInstances
from ....proof.units import delay_line_module
from ....proof.wiring import Wires
from ....rtl.links import Link
from ....rtl.netlist import ROM, Instance, Leaf, Role
from ...host.claims import HostPorts
from ..hardware.system import RECEIVER_OUTPUTS, RUN_PREFIX, link_port_name

if TYPE_CHECKING:
    from ....rtl import Fabric
    from ..files import BoardKind
    from ..hardware import BoardSystem

__all__ = ["ProofSubject", "board_wires", "board_subject", "join_boards"]

#: Outputs of the board control that are inputs of every transmitter.
TRANSMITTER_INPUTS = ("message", "running", "begins", "checking")


def board_wires(system: BoardSystem, board: int, text: GateText) -> Wires:
    """Yield the wires of a board that a fabric on one chip lacks, for a comparison by the proof.

    They connect link ports, board control, sequencer and ports. Each wire is (instance, pin, found
    bits, expected bits). `system` is the fabric on several boards; `text` is the Verilog of the
    board with the number `board`, read as gates.
    """
    control = text.instances["the_board_control"].pins
    starts, sequencer = (text.instances[f"the_{name}"].pins for name in ("requests", "sequencer"))
    for name in system.fabric.front.agreed:
        yield "the_board_control", name, [*control[name]], text.nets[name]
    for name in ("start", *system.fabric.front.sampled_inputs):
        yield "the_board_control", name, [*control[name]], text.inputs[name]
        yield "the_requests", name, [*starts[name]], control[RUN_PREFIX + name][: len(starts[name])]
    yield (
        "the_board_control",
        RUN_PREFIX + "busy",
        [*control[RUN_PREFIX + "busy"]],
        sequencer["busy"],
    )
    if "run_error" in control:
        yield (
            "the_board_control",
            RUN_PREFIX + "error",
            [*control[RUN_PREFIX + "error"]],
            starts["error"],
        )
    yield "the_board_control", "board", [*control["board"]], text.inputs["board"]
    yield "the_host", "block", [*text.instances["the_host"].pins["block"]], text.inputs["board"]
    for name in ("busy", "done", "cycles", "error", "failed", "attempts"):
        yield "the top", name, [*text.outputs[name]], control[name]
    for link in range(system.link_plan.n_links):
        yield from _link_wires(system, board, text, link)


def _link_wires(system: BoardSystem, board: int, text: GateText, link: int) -> Wires:
    """Yield the wires of link port number `link`: (instance, pin, found bits, expected bits).

    `system` is the fabric on several boards; `text` is the Verilog of the board with the number
    `board`, read as gates.
    """
    sends, holds, takes = f"transmitter_{link}", f"buffer_at_{link}", f"receiver_at_{link}"
    transmitter, buffer, receiver = (text.instances[n].pins for n in (sends, holds, takes))
    control = text.instances["the_board_control"].pins
    plan, (node, port) = system.link_plan, system.boards.link_ports[link]
    latency, router = plan.cable_latency(board, link), text.instances[f"router_at_{node}"].pins
    sent = router["tx"][port * plan.flit_bits :][: plan.flit_bits]
    if plan.parts > 1:
        splits, joins = f"splitter_{link}", f"joiner_{link}"
        splitter = text.instances[splits].pins
        yield splits, "flit", [*splitter["flit"]], sent
        yield splits, "sends", [*splitter["sends"]], router["sends"][port : port + 1]
        if joins in text.instances:  # Yosys removes a joiner at an in-port that is never used
            yield joins, "came", [*text.instances[joins].pins["came"]], receiver["received"]
        sent = splitter["part"]
    yield sends, "sent", [*transmitter["sent"]], sent
    number: list[Bit] = [str(link >> k & 1) for k in range(len(transmitter["link"]))]
    yield sends, "link", [*transmitter["link"]], number
    for name in TRANSMITTER_INPUTS:
        yield sends, name, [*transmitter[name]], control[name]
    for name in ("tx_word", "tx_frame"):
        out = link_port_name(link, name)
        yield "the top", out, [*text.outputs[out]], transmitter[name]
    for name in ("rx_clk", "rx_word", "rx_frame"):
        yield holds, name, [*buffer[name]], text.inputs[link_port_name(link, name)]
    yield holds, "at", [*buffer["at"]], receiver["at"]
    for name in ("head", "count"):
        yield takes, name, [*receiver[name]], buffer[name]
    given = {"frozen": "frozen", "due": f"due_{latency}", "check_due": f"check_due_{latency}"}
    for name, net in given.items():
        yield takes, name, [*receiver[name]], control[net]
    bits = len(receiver["peer"])
    yield takes, "peer", [*receiver["peer"]], control["peers"][link * bits :][:bits]
    for name in RECEIVER_OUTPUTS:
        bits = len(receiver[name])
        heard = control[name][link * bits :][:bits]
        yield "the_board_control", f"{name}[{link}]", [*heard], receiver[name]


#: Bits of the net numbers of a board. The board number lies above these bits.
NET_BITS = 40

#: Function from a board and its nets to the same nets with numbers unique among all boards.
NetRenumbering: TypeAlias = Callable[[int, Mapping[str, list[Bit]]], dict[str, list[Bit]]]

#: Roles of modules that links or the board control consist of; `join_boards` leaves them out.
LINK_ROLES = (Role.FAR_LINK, Role.BUFFER)


class ProofSubject(NamedTuple):
    """The subject of a proof: a fabric, its Verilog as gates, and the host ports of its nodes."""

    fabric: Fabric
    text: GateText
    ports: list[HostPorts]


def board_subject(system: BoardSystem, kind: BoardKind, text: GateText) -> ProofSubject:
    """Return one board as the subject of a proof: its netlist, gates and host ports.

    All boards of `kind` have the same netlist. Nodes are numbered as on the board, from 0.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    kind : BoardKind
        Boards with equal netlists.
    text : GateText
        Gates of the board.
    """
    seen, used = copy(system.fabric), {each.module for each in kind.netlist.instances}
    # Leave out the modules that only other kinds of boards use.
    roles = {name: role for name, role in kind.netlist.roles.items() if name in used}
    seen.netlist = replace(kind.netlist, roles=roles)
    seen.read_latency = system.read_latency
    seen.nodes = system.boards.nodes_by_board.shape[1]
    ports = [
        HostPorts(system.boards.nodes_by_board[board], np.arange(seen.nodes), board, holds=False)
        for board in kind.boards
    ]
    return ProofSubject(seen, text, ports)


def join_boards(system: BoardSystem, parts: Sequence[ProofSubject]) -> ProofSubject:
    """Return all boards as one fabric, so that whole runs can be executed on it in a proof.

    Cables become links of fixed latency. Nodes are numbered as in the torus.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    parts : sequence of ProofSubject
        The fabric on each board, from `board_subject`.
    """
    boards, width, prefix = system.boards, system.fabric.width, system.fabric.prefix
    place, instances, listed = _make_net_unique(system, parts), TopInstances(), list[Instance]()
    modules, makes = dict[str, GateModule](), dict[str, Callable[[], Leaf]]()
    narrow = system.link_plan.parts > 1
    for latency in {cycles for of_board in boards.latency_cycles for cycles in of_board}:
        name, makes[name] = f"cable_{latency}", partial(Link, latency, width)
        in_parts = system.link_plan.parts if narrow else 0
        modules[prefix + name] = delay_line_module(prefix + name, width, latency - 1, in_parts)
    for board, (fabric, text, _) in enumerate(parts):
        makes |= fabric.netlist.modules
        modules |= text.modules
        for each in fabric.netlist.instances:
            if each.role not in LINK_ROLES:
                one = _instance_on_torus(each, board, boards.nodes_by_board[board].tolist())
                listed.append(one)
                if each.name in text.instances:
                    module, pins, rom = text.instances[each.name]
                    instances[one.name] = TopInstance(module, place(board, pins), rom)
        for link, (there, port) in enumerate(boards.far_ends[board]):
            name, cable = (
                f"cable_from_{board}_{link}",
                f"cable_{boards.latency_cycles[board][link]}",
            )
            listed.append(Instance(name, cable, Role.LINK, {}, {}, None))
            begin, end = ("splitter", "joiner") if narrow else ("transmitter", "receiver_at")
            if narrow and f"{end}_{port}" not in parts[there].text.instances:
                continue  # nothing reads the words of this cable
            sender = place(board, text.instances[f"{begin}_{link}"].pins)
            taker = place(there, parts[there].text.instances[f"{end}_{port}"].pins)
            pins = {"sent": sender["sent"], "arrived": taker["received"]} if not narrow else {
                "sent": sender["flit"], "sends": sender["sends"], "arrived": taker["joined"],
            }  # fmt: skip
            instances[name] = TopInstance(prefix + cable, pins)
    seen, roles = copy(system.fabric), {one.module: one.role for one in listed}
    roles.pop(ROM, None)
    netlist = replace(parts[0].fabric.netlist, modules=makes, roles=roles)
    seen.netlist = netlist.with_instances(listed)
    text = GateText(modules, {}, {}, instances, _joined_nets(system, parts, place))
    names = tuple(f"@{board}" for board in range(boards.n_boards))
    # No word is still in flight to a memory when a run begins: the countdown is longer.
    ports = HostPorts(boards.nodes_by_board[0], boards.node_locations[1], names=names, holds=False)
    return ProofSubject(seen, text, [ports])


def _instance_on_torus(instance: Instance, board: int, nodes: Sequence[int]) -> Instance:
    """Return a copy of an instance on a board, renamed for the fabric of all boards.

    Its name begins with ``board_k_``, and it has the node number in the whole fabric. `board` is k.
    `nodes` has the number in the whole fabric of each node of the board.
    """
    name, node = instance.name, instance.node
    if node is not None:
        name, node = f"{name.removesuffix(str(node))}{nodes[node]}", nodes[node]
    return Instance(f"board_{board}_{name}", instance.module, instance.role, {}, {}, node)


def _common_nets(system: BoardSystem) -> dict[str, str]:
    """Return the nets that all boards share: clock, reset, start, and the choices of a run.

    A key is the name of the net in the fabric of all boards, the value its name on a board, such as
    ``{"clk": "clk", "start": "run_start"}``. `system` is the fabric on several boards.
    """
    return {"clk": "clk", "rst": "rst"} | {
        name: RUN_PREFIX + name for name in ("start", *system.fabric.front.sampled_inputs)
    }


def _make_net_unique(system: BoardSystem, parts: Sequence[ProofSubject]) -> NetRenumbering:
    """Return a function that gives the nets of a board numbers which no other board uses.

    The function takes the number of a board, and the nets of its gates by name (a list of numbers
    for each), and returns them with new numbers. Why: all boards of one kind are read from the same
    Verilog, so their nets have equal numbers. Clock, reset, start and choices keep one number for
    all boards, because all boards share them. `system` is the fabric on all boards, and `parts` has
    the gates of each board.
    """
    same = dict[Bit, Bit]()

    def renumber_nets(board: int, nets: Mapping[str, list[Bit]]) -> dict[str, list[Bit]]:
        apart = lambda bit: bit if isinstance(bit, str) else bit | board + 1 << NET_BITS
        return {
            name: [same.get(apart(bit), apart(bit)) for bit in bits] for name, bits in nets.items()
        }

    first = renumber_nets(0, parts[0].text.nets)
    for board, part in enumerate(parts[1:], 1):
        nets = renumber_nets(board, part.text.nets)
        for name in _common_nets(system).values():
            same |= zip(nets.get(name, []), first.get(name, []), strict=True)
    return renumber_nets


def _joined_nets(
    system: BoardSystem, parts: Sequence[ProofSubject], place: NetRenumbering
) -> dict[str, list[Bit]]:
    """Return the nets of the fabric that consists of all boards, by name.

    They are the nets of each board, named ``net@board``, and nets of the whole, such as ``clk`` and
    ``done``. `system` is the fabric on all boards, and `parts` has the gates of each board. `place`
    is the function that `_make_net_unique` returns.
    """
    each = [place(board, part.text.nets) for board, part in enumerate(parts)]
    nets = {name: each[0][own] for name, own in _common_nets(system).items() if own in each[0]}
    for board, own in enumerate(each):
        nets |= {f"{name}@{board}": bits for name, bits in own.items()}
    for name in ("busy", "done", "error"):
        nets[name] = [bit for own in each for bit in own.get(RUN_PREFIX + name, [])]
    # No net counts cycles here: the counters are in the board controls, which are left out.
    return nets | {"cycles": []}
