"""The wires of a board that no chip has, and all boards as one fabric, joined by cables.

Beside whole runs, which are carried out on it, the whole shows where words go from board to board.
That a cable takes as many cycles as its link is what `buffers` proves, and that sequencers start
together what `control` proves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....proof.gates import Bit, GateModule, GateText, TopInstance, TopInstances
from ....proof.host import HostPorts
from ....proof.wiring import Wires
from ....rtl.links import Link
from ....rtl.netlist import Instance, Netlist, Role
from ..hardware.system import RUN, link_port

if TYPE_CHECKING:
    from ....rtl import Fabric
    from ..files import BoardKind
    from ..hardware import BoardSystem

__all__ = ["Subject", "board_wires", "on_board", "united"]

#: What transmitters and receivers are given by the control, as it is.
SENT = ("message", "running", "begins", "checking")

#: What receivers say, to the control.
SAID = ("said", "heard", "strange", "alive", "lost")


def board_wires(system: BoardSystem, text: GateText) -> Wires:
    """Yield the wires between link ports, the control, the sequencer and ports of a board."""
    control = text.instances["the_board_control"].pins
    sequencer = text.instances["the_sequencer"].pins
    starts = {"start": "start"} | {name: name for name in system.plan.choices}
    for name in starts:
        yield "the_board_control", name, [*control[name]], text.inputs[name]
        wanted = control[RUN + name][: len(sequencer[name])]
        yield "the_sequencer", name, [*sequencer[name]], wanted
    for name in ("busy", *(["error"] if "run_error" in control else [])):
        yield "the_board_control", RUN + name, [*control[RUN + name]], sequencer[name]
    yield "the_board_control", "board", [*control["board"]], text.inputs["board"]
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
    for name in SAID:
        bits = len(receiver[name])
        heard = control[name][link * bits :][:bits]
        yield "the_board_control", f"{name}[{link}]", [*heard], receiver[name]


#: Bits of the number of a net of a board.
NET_BITS = 40

#: What lies between boards, or starts all of them at once; and ROMs, which are of no module.
BETWEEN = (Role.FAR_LINK, Role.BUFFER)
APART = (*BETWEEN, Role.ROM)


class Subject(NamedTuple):
    """A fabric as some text has it, and the ports through which its nodes are reached."""

    fabric: Fabric
    text: GateText
    ports: HostPorts


def on_board(system: BoardSystem, kind: BoardKind, text: GateText, board: int) -> Subject:
    """What lies on a board: nodes are numbered as there."""
    seen, used = copy(system.fabric), {each.module for each in kind.netlist.instances}
    # Modules that other kinds of boards have.
    roles = {name: role for name, role in kind.netlist.roles.items() if name in used}
    seen.netlist = replace(kind.netlist, roles=roles)
    seen.read_latency = system.read_latency
    seen.nodes = system.boards.nodes.shape[1]
    nodes = system.boards.nodes[board]
    ports = HostPorts(nodes, np.arange(len(nodes)), board, holds=False)
    return Subject(seen, text, ports)


def united(system: BoardSystem, kinds: list[BoardKind], texts: list[GateText]) -> Subject:
    """All boards, with nodes numbered as in the torus."""
    parts = [_Part(system, kinds[kind], texts[kind], board)
             for board, kind in enumerate(system.kind_of)]  # fmt: skip
    nets, cables = _common_nets(system, parts), dict(_cables(system, parts))
    instances = {name: each for part in parts for name, each in part.instances()}
    modules = {name: module for text in texts for name, module in text.modules.items()}
    width, prefix = system.fabric.width, system.fabric.prefix
    for name in {_cable(latency) for latency in system.boards.latency}:
        ends = {"sent": [*range(2, 2 + width)]}, {"arrived": [*range(2 + width, 2 + 2 * width)]}
        modules[prefix + name] = GateModule(prefix + name, *ends)
    seen = copy(system.fabric)
    seen.netlist = _netlist(system, parts, cables)
    text = GateText(modules, {}, {}, TopInstances(instances | cables), nets)
    names = tuple(f"@{board}" for board in range(system.boards.number))
    # On a board, a start is longer before its run than words are on their way.
    ports = HostPorts(system.boards.nodes[0], system.boards.located[1], names=names, holds=False)
    return Subject(seen, text, ports)


def _common_nets(system: BoardSystem, parts: list[_Part]) -> dict[str, list[Bit]]:
    """The nets of all boards; what starts runs on the first starts them on all others."""
    choices = system.plan.choices
    common = {"clk": "clk", "rst": "rst", "start": "run_start"} | {c: f"run_{c}" for c in choices}
    first = parts[0].nets
    for part in parts[1:]:
        part.same |= {
            bit: wanted
            for name in common.values()
            for bit, wanted in zip(part.nets.get(name, []), first.get(name, []), strict=True)
        }
    nets = {name: first[inner] for name, inner in common.items() if inner in first}
    for part in parts:
        nets |= {f"{name}@{part.board}": part.named(name) for name in part.nets}
    for shown in ("busy", "done", "error"):
        nets[shown] = [bit for part in parts for bit in part.named(f"run_{shown}")]
    # Boards count the cycles of all attempts, each by itself.
    nets["cycles"] = []
    return nets


def _netlist(system: BoardSystem, parts: list[_Part], cables: dict[str, TopInstance]) -> Netlist:
    """The netlist of all boards, with links in place of cables."""
    netlists = [part.kind.netlist for part in parts]
    makes: dict[str, Callable[[], Link]] = {
        _cable(latency): partial(Link, latency, system.fabric.width)
        for latency in system.boards.latency
    }
    own = {i.module: i.role for n in netlists for i in n.instances if i.role not in APART}
    return replace(
        netlists[0],
        modules={n: make for each in netlists for n, make in each.modules.items()} | makes,
        roles=own | dict.fromkeys(makes, Role.LINK),
    ).with_instances(
        [each for part in parts for each in part.listed()]
        + [Instance(name, _cable_of(each, system), Role.LINK, {}, {}, None)
           for name, each in cables.items()],
        {net: bits for each in netlists for net, bits in each.nets.items()},
    )  # fmt: skip


def _cable(latency: int) -> str:
    """The module that stands for cables of a latency."""
    return f"cable_{latency}"


def _cable_of(cable: TopInstance, system: BoardSystem) -> str:
    return cable.module.removeprefix(system.fabric.prefix)


class _Part:
    """A board among others."""

    def __init__(self, system: BoardSystem, kind: BoardKind, text: GateText, board: int) -> None:
        self.kind, self.text, self.board = kind, text, board
        self._nodes, self._prefix = system.boards.nodes[board].tolist(), system.fabric.prefix
        self.same: dict[Bit, Bit] = {}
        self.nets: dict[str, list[Bit]] = {n: self._apart(bits) for n, bits in text.nets.items()}

    def _apart(self, bits: list[Bit]) -> list[Bit]:
        """Bits of the text of the board, as no other board has them."""
        return [b if isinstance(b, str) else b | self.board + 1 << NET_BITS for b in bits]

    def _joined(self, bits: list[Bit]) -> list[Bit]:
        return [self.same.get(bit, bit) for bit in bits]

    def named(self, net: str) -> list[Bit]:
        """A net among those of all; no bits if there is none."""
        return self._joined(self.nets.get(net, []))

    def pins(self, name: str) -> dict[str, list[Bit]]:
        """The pins of an instance."""
        pins = self.text.instances[name].pins
        return {port: self._joined(self._apart(bits)) for port, bits in pins.items()}

    def name(self, instance: Instance) -> str:
        """The name of an instance among those of all: endpoints are known by their nodes."""
        own = instance.name
        if instance.role is Role.ENDPOINT and instance.node is not None:
            own = f"{own.removesuffix(str(instance.node))}{self._nodes[instance.node]}"
        return f"board_{self.board}_{own}"

    def _own(self) -> Iterator[Instance]:
        return (i for i in self.kind.netlist.instances if i.role not in BETWEEN)

    def listed(self) -> Iterator[Instance]:
        """The instances, with nodes by their numbers in the torus."""
        for each in self._own():
            node = None if each.node is None else self._nodes[each.node]
            yield replace(each, name=self.name(each), node=node)

    def instances(self) -> Iterator[tuple[str, TopInstance]]:
        """The instances as the text has them."""
        for each in self._own():
            if each.name in self.text.instances:
                found = self.text.instances[each.name]
                yield self.name(each), found._replace(pins=self.pins(each.name))


def _cables(system: BoardSystem, parts: list[_Part]) -> Iterator[tuple[str, TopInstance]]:
    """From each transmitter to the receiver at the other end."""
    boards = system.boards
    for part in parts:
        for link, (there, port) in enumerate(boards.ends[part.board]):
            pins: Mapping[str, list[Bit]] = part.pins(f"transmitter_{link}")
            arrived = parts[there].pins(f"receiver_at_{port}")["received"]
            module = system.fabric.prefix + _cable(boards.latency[link])
            name = f"cable_from_{part.board}_{link}"
            yield name, TopInstance(module, {"sent": pins["sent"], "arrived": arrived})
