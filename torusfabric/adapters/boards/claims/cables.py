"""The wires of a board that no chip has, and all boards as one fabric, joined by cables.

Beside whole runs, which are carried out on it, the whole shows where words go from board to board.
That a cable takes as many cycles as its link is what `buffers` proves, and that sequencers start
together what `control` proves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ....proof.gates import Bit, GateModule, GateText, TopInstance, TopInstances
from ....proof.wiring import Wires
from ....rtl.links import Link
from ....rtl.netlist import ROM, Instance, Leaf, Role
from ...host.claims import HostPorts
from ..hardware.system import OF_LINKS, RUN, link_port

if TYPE_CHECKING:
    from ....rtl import Fabric
    from ..files import BoardKind
    from ..hardware import BoardSystem

__all__ = ["Subject", "board_wires", "on_board", "united"]

#: What transmitters and receivers are given by the control, as it is.
SENT = ("message", "running", "begins", "checking")


def board_wires(system: BoardSystem, text: GateText) -> Wires:
    """Yield the wires between link ports, the control, the sequencer and ports of a board."""
    control = text.instances["the_board_control"].pins
    starts, sequencer = (text.instances[f"the_{name}"].pins for name in ("requests", "sequencer"))
    for name in system.fabric.front.agreed:
        yield "the_board_control", name, [*control[name]], text.nets[name]
    for name in ("start", *system.fabric.front.choices):
        yield "the_board_control", name, [*control[name]], text.inputs[name]
        yield "the_requests", name, [*starts[name]], control[RUN + name][: len(starts[name])]
    yield "the_board_control", RUN + "busy", [*control[RUN + "busy"]], sequencer["busy"]
    if "run_error" in control:
        yield "the_board_control", RUN + "error", [*control[RUN + "error"]], starts["error"]
    yield "the_board_control", "board", [*control["board"]], text.inputs["board"]
    yield "the_host", "block", [*text.instances["the_host"].pins["block"]], text.inputs["board"]
    for name in ("busy", "done", "cycles", "error", "failed", "attempts"):
        yield "the top", name, [*text.outputs[name]], control[name]
    for link in range(system.plan.links):
        yield from _of_link(system, text, link)


def _of_link(system: BoardSystem, text: GateText, link: int) -> Wires:
    """Those of a link port."""
    sends, holds, takes = f"transmitter_{link}", f"buffer_at_{link}", f"receiver_at_{link}"
    transmitter, buffer, receiver = (text.instances[n].pins for n in (sends, holds, takes))
    control = text.instances["the_board_control"].pins
    (node, port), latency = system.boards.links[link], system.boards.latency[link]
    sent = text.instances[f"router_at_{node}"].pins["tx"]
    width = system.fabric.width
    yield sends, "sent", [*transmitter["sent"]], sent[port * width :][:width]
    number: list[Bit] = [str(link >> k & 1) for k in range(len(transmitter["link"]))]
    yield sends, "link", [*transmitter["link"]], number
    for name in SENT:
        yield sends, name, [*transmitter[name]], control[name]
    for name in ("tx_word", "tx_frame"):
        out = link_port(link, name)
        yield "the top", out, [*text.outputs[out]], transmitter[name]
    for name in ("rx_clk", "rx_word", "rx_frame"):
        yield holds, name, [*buffer[name]], text.inputs[link_port(link, name)]
    yield holds, "at", [*buffer["at"]], receiver["at"]
    for name in ("head", "count"):
        yield takes, name, [*receiver[name]], buffer[name]
    given = {"frozen": "frozen", "due": f"due_{latency}", "check_due": f"check_due_{latency}"}
    for name, net in given.items():
        yield takes, name, [*receiver[name]], control[net]
    bits = len(receiver["peer"])
    yield takes, "peer", [*receiver["peer"]], control["peers"][link * bits :][:bits]
    for name in OF_LINKS:
        bits = len(receiver[name])
        heard = control[name][link * bits :][:bits]
        yield "the_board_control", f"{name}[{link}]", [*heard], receiver[name]


#: Bits of the number of a net of a board.
NET_BITS = 40

#: Numbers the bits of nets of a board.
Placing: TypeAlias = Callable[[int, Mapping[str, list[Bit]]], dict[str, list[Bit]]]

#: Roles of what lies between boards, or starts runs on all of them at once.
BETWEEN = (Role.FAR_LINK, Role.BUFFER)


class Subject(NamedTuple):
    """A fabric as some text has it, and the ports through which its nodes are reached."""

    fabric: Fabric
    text: GateText
    ports: list[HostPorts]


def on_board(system: BoardSystem, kind: BoardKind, text: GateText) -> Subject:
    """Return what lies on each board of a kind: nodes are numbered as there."""
    seen, used = copy(system.fabric), {each.module for each in kind.netlist.instances}
    # Modules that other kinds of boards have.
    roles = {name: role for name, role in kind.netlist.roles.items() if name in used}
    seen.netlist = replace(kind.netlist, roles=roles)
    seen.read_latency = system.read_latency
    seen.nodes = system.boards.nodes.shape[1]
    ports = [
        HostPorts(system.boards.nodes[board], np.arange(seen.nodes), board, holds=False)
        for board in kind.boards
    ]
    return Subject(seen, text, ports)


def united(system: BoardSystem, parts: Sequence[Subject]) -> Subject:
    """Return all boards as one fabric, joined by cables, with nodes numbered as in the torus.

    Parameters
    ----------
    parts : sequence of Subject
        What lies on each board.
    """
    boards, width, prefix = system.boards, system.fabric.width, system.fabric.prefix
    place, instances, listed = _placing(system, parts), TopInstances(), list[Instance]()
    modules, makes = dict[str, GateModule](), dict[str, Callable[[], Leaf]]()
    for latency in boards.latency:
        name, makes[name] = f"cable_{latency}", partial(Link, latency, width)
        ends = {"sent": [*range(2, 2 + width)]}, {"arrived": [*range(2 + width, 2 + 2 * width)]}
        modules[prefix + name] = GateModule(prefix + name, *ends)
    for board, (fabric, text, _) in enumerate(parts):
        makes |= fabric.netlist.modules
        modules |= text.modules
        for each in fabric.netlist.instances:
            if each.role not in BETWEEN:
                one = _on_torus(each, board, boards.nodes[board].tolist())
                listed.append(one)
                if each.name in text.instances:
                    module, pins, rom = text.instances[each.name]
                    instances[one.name] = TopInstance(module, place(board, pins), rom)
        for link, (there, port) in enumerate(boards.ends[board]):
            name, cable = f"cable_from_{board}_{link}", f"cable_{boards.latency[link]}"
            listed.append(Instance(name, cable, Role.LINK, {}, {}, None))
            sent = place(board, text.instances[f"transmitter_{link}"].pins)["sent"]
            receiver = parts[there].text.instances[f"receiver_at_{port}"]
            pins = {"sent": sent, "arrived": place(there, receiver.pins)["received"]}
            instances[name] = TopInstance(prefix + cable, pins)
    seen, roles = copy(system.fabric), {one.module: one.role for one in listed}
    roles.pop(ROM, None)
    netlist = replace(parts[0].fabric.netlist, modules=makes, roles=roles)
    seen.netlist = netlist.with_instances(listed)
    text = GateText(modules, {}, {}, instances, _nets(system, parts, place))
    names = tuple(f"@{board}" for board in range(boards.number))
    # On a board, a start is longer before its run than words are on their way.
    ports = HostPorts(boards.nodes[0], boards.located[1], names=names, holds=False)
    return Subject(seen, text, [ports])


def _on_torus(instance: Instance, board: int, nodes: Sequence[int]) -> Instance:
    """Return an instance of a board as one of all boards."""
    name, node = instance.name, instance.node
    if node is not None:
        name, node = f"{name.removesuffix(str(node))}{nodes[node]}", nodes[node]
    return Instance(f"board_{board}_{name}", instance.module, instance.role, {}, {}, node)


def _common_nets(system: BoardSystem) -> dict[str, str]:
    """The nets that are the same on all boards, by their names in the whole."""
    return {"clk": "clk", "rst": "rst"} | {
        name: RUN + name for name in ("start", *system.fabric.front.choices)
    }


def _placing(system: BoardSystem, parts: Sequence[Subject]) -> Placing:
    """Return a function that numbers the bits of nets of a board as no other board has them.

    What starts runs on the first board starts them on all others.
    """
    same = dict[Bit, Bit]()

    def place(board: int, nets: Mapping[str, list[Bit]]) -> dict[str, list[Bit]]:
        apart = lambda bit: bit if isinstance(bit, str) else bit | board + 1 << NET_BITS
        return {
            name: [same.get(apart(bit), apart(bit)) for bit in bits] for name, bits in nets.items()
        }

    first = place(0, parts[0].text.nets)
    for board, part in enumerate(parts[1:], 1):
        nets = place(board, part.text.nets)
        for name in _common_nets(system).values():
            same |= zip(nets.get(name, []), first.get(name, []), strict=True)
    return place


def _nets(system: BoardSystem, parts: Sequence[Subject], place: Placing) -> dict[str, list[Bit]]:
    """The nets of all boards, and of the whole."""
    each = [place(board, part.text.nets) for board, part in enumerate(parts)]
    nets = {name: each[0][own] for name, own in _common_nets(system).items() if own in each[0]}
    for board, own in enumerate(each):
        nets |= {f"{name}@{board}": bits for name, bits in own.items()}
    for name in ("busy", "done", "error"):
        nets[name] = [bit for own in each for bit in own.get(RUN + name, [])]
    # Boards count the cycles of all attempts, each by itself.
    return nets | {"cycles": []}
