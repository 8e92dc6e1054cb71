"""What the host port gives to nodes, and what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....program.timing import WRITE
from ....proof.accesses import Access, Steps
from ....proof.messages import Run
from ....proof.report import refuted
from ....proof.snapshot import Snapshot, arrays, changed_by, spread
from ....proof.symbols import UNKNOWN, word
from ....rtl.arrays import NodeGroups
from ....rtl.core.memory_port import suffix
from ....topology import IntArray
from .locations import own_numbers, received_locations, sent_locations
from .port import write_enables

if TYPE_CHECKING:
    from ....proof.machine import Machine, Override
    from ....rtl import Fabric
    from .port import HostPorts

__all__ = ["HostAccess"]


class HostAccess(Access):
    """A port serves all nodes, or those of a block: each is told which is meant."""

    def __init__(self, fabric: Fabric, machine: Machine, ports: HostPorts) -> None:
        super().__init__(fabric, machine)
        self._ports, self._loaded = ports, fabric.tables is not None
        self._enables = write_enables(fabric.program)
        self.answer = fabric.answer
        # Writes wait for the registers of the host port, and data for one more.
        self.overlap = fabric.netlist.modules["host"]().write_cycles + 2 - fabric.hold
        self.hold = fabric.hold if ports.holds else 0

    def idle(self) -> dict[str, IntArray]:
        """What drives nets of the top while nobody writes."""
        return self.settling(UNKNOWN) | {
            f"{enable}{name}": np.array([[0]])
            for name in self._ports.names
            for enable in {*self._enables}
        }

    def writes(self, runs: Sequence[Run]) -> Steps:
        """Writes of what nodes send: data come a step after their address."""
        program = self.program
        memory, address = self.located(runs, partial(sent_locations, program), ends_at_once=True)
        of_run = np.array([program.forms[run.form(program)].layout for run in runs])
        none = np.full((1, *address.shape[1:]), -1)
        numbers, enable_of = {}, np.array(self._enables)[of_run]
        for enable in {*self._enables}:
            there = np.where(enable_of == enable, address >= 0, -1)
            numbers[enable] = np.concatenate([there, 0 * none])
        for layout in range(len(self._enables)):
            number = np.append(own_numbers(program, layout), -1)
            here = of_run == layout
            for name, values in (("bank", number[memory]), ("address", address)):
                there = np.concatenate([np.where(here, values, -1), none])
                numbers[f"write_{name}{suffix(layout)}"] = there
        words = self.sent(runs)
        words = np.concatenate([np.full_like(words[:1], UNKNOWN), words])
        return Steps(len(words), numbers, {"write_data": words},
                     {"write_node": self._ports.number},
                     dict.fromkeys(self._enables, 0))  # fmt: skip

    def reads(self, runs: Sequence[Run]) -> Steps:
        """Reads of what nodes have received; at rest the sequencer passes addresses on."""
        memory, address = self.located(runs, partial(received_locations, self.program))
        memory = np.where(address >= 0, memory, -1)
        # A module may call its port for an address otherwise than the net of the sequencer.
        inputs = {
            port for module in self.nodes for port in self.machine.groups[module].program.inputs
        }
        passed = sorted(port for port in inputs if port.removeprefix("read_").isdigit())
        ports = ["read_address", *(passed if self._passed else [])]
        return Steps(
            len(address),
            {"read_bank": memory} | dict.fromkeys(ports, address),
            always={"read_node": self._ports.number},
        )

    @property
    def _passed(self) -> list[str]:
        """The addresses that the sequencer gives, if those of the host pass there."""
        if self._loaded:
            return []
        nets, name = self.machine.text.nets, self._ports.names[0]
        ends = (n.removesuffix(name) for n in nets if n.endswith(name))
        return [n for n in ends if n.removeprefix("read_").isdigit()]

    def check_rest(self, rest: Snapshot) -> int:
        """Check that a node that is not asked shows 0, and that addresses of the host pass."""
        count = sum(self._check_passed(rest, name) for name in self._ports.names if self._passed)
        return count + self._check_not_asked(rest)

    def _check_passed(self, rest: Snapshot, name: str) -> int:
        """Check, and count, bits of addresses that a port gives and that pass."""
        machine, count = self.machine, 0
        machine.prepare(1)
        given = f"read_address{name}"
        address = word(np.arange(len(machine.text.nets.get(given, []))))[:, None]
        now = spread(rest, 1)
        machine.settle(now, self.given() | {given: address})
        for port in self._passed:
            shown = machine.shown(port + name)
            count += len(shown)
            _require(port, (shown == address[: len(shown)]).all(), "pass the address on")
        return count

    def _check_not_asked(self, rest: Snapshot) -> int:
        """Check, and count, words that a node does not show."""
        machine, count = self.machine, 0
        machine.prepare(1)
        for position in range((len(self._ports.nodes) - 1).bit_length()):
            now = spread(rest, 1)
            others = {module: {"read_node": self._others(module, "read_node", position)}
                      for module in self.nodes}  # fmt: skip
            for _ in range(self.answer):
                machine.settle(now, self.given(), others)
                now = machine.after(now)
            machine.settle(now, self.given(), others)
            for module in self.nodes:
                shown = machine.output(module, "read_data")
                count += shown.size
                _require(f"read_data of {module}", (shown == 0).all(), "be 0 if not asked")
        return count

    def check_others(self, begin: Snapshot) -> None:
        """Check that writes for other nodes change nothing that a node holds.

        Those of its group are at another place; those of other groups may be at the same one, but
        there it is not enabled.
        """
        nodes = len(self._ports.nodes)
        if nodes == 1:
            return
        machine, now = self.machine, _copied(begin)
        machine.settle(now, self.given())
        machine.forget_words()
        for position in [*range(NodeGroups(nodes).place_bits), None]:
            written: dict[str, Override] = {
                module: {
                    "write_node": self._others(module, "write_node", position),
                    **dict.fromkeys(self._enables, np.full((1, 1, 1), int(position is not None))),
                }
                for module in self.nodes
            }
            for _ in range(WRITE):
                machine.settle(now, self.given(), written, only=self.nodes)
                now = machine.after(now)
        _require("a node", _holds_words(now, begin), "keep its words when others are written")

    def _others(self, module: str, port: str, position: int | None) -> IntArray:
        """All numbers that differ from a node's own at one bit of them, or any number."""
        own = self.bits(module, port, self._ports.number[self.nodes[module]][:, None])
        others = np.full_like(own, UNKNOWN)
        if len(own) and position is not None:
            others[position] = 1 - own[position]
        return others


def _copied(now: Snapshot) -> Snapshot:
    """A state whose memories can be changed while these stay."""
    return changed_by(lambda values: values, np.copy, now)


def _holds_words(now: Snapshot, before: Snapshot) -> bool:
    """Whether registers and memories hold what words they have held before."""
    pairs = [*zip(arrays(before), arrays(now), strict=True)]
    for module, state in before.states.items():
        pairs += zip(state.rams, now.states[module].rams, strict=True)
    return all(((old <= 1) | (old == new)).all() for old, new in pairs)


def _require(signal: str, holds: object, what: str) -> None:
    """Raise a refutation unless something holds at rest."""
    if not holds:
        raise refuted("whole runs", signal, f"{signal} at rest must {what}")
