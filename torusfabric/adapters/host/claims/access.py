"""`HostAccess`: the accesses by which the proof of whole runs writes and reads node memories.

The proof drives the nets between host port and nodes. The claims of `check_host` say that the port
drives these nets so.
"""

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
    """Accesses through a host port that serves all nodes, or those of one block.

    Every node receives every access, and compares the number of the addressed node with its own.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host`` or behind a bus.
    machine : Machine
        Symbolic simulation of the fabric.
    ports : HostPorts
        The port, and the numbers of its nodes.

    Attributes
    ----------
    answer : int
        Cycles from a read at the nodes to its word.
    overlap : int
        Cycles between the writes of the messages and the begin of a run.
    hold : int
        Cycles after a write in which no run begins.
    """

    def __init__(self, fabric: Fabric, machine: Machine, ports: HostPorts) -> None:
        super().__init__(fabric, machine)
        self._ports, self._loaded = ports, fabric.tables is not None
        self._enables = write_enables(fabric.program)
        self.answer = fabric.answer
        # A write passes the registers of the host port, its data one more.
        self.overlap = fabric.netlist.modules["host"]().write_cycles + 2 - fabric.hold
        self.hold = fabric.hold if ports.holds else 0

    def idle(self) -> dict[str, IntArray]:
        """Return the values of the nets at the host port in cycles without a write."""
        return self.settling(UNKNOWN) | {
            f"{enable}{name}": np.array([[0]])
            for name in self._ports.names
            for enable in {*self._enables}
        }

    def writes(self, runs: Sequence[Run]) -> Steps:
        """Return the steps that write the messages of runs; data follow addresses by one step."""
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
        """Return the steps that read the received words of some runs.

        Between runs the sequencer passes the address of the host to the nodes.
        """
        memory, address = self.located(runs, partial(received_locations, self.program))
        memory = np.where(address >= 0, memory, -1)
        # The port of a node module and the net of the sequencer may differ in name.
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
        """The address nets of the sequencer through which addresses of the host pass."""
        if self._loaded:
            return []
        nets, name = self.machine.text.nets, self._ports.names[0]
        ends = (n.removesuffix(name) for n in nets if n.endswith(name))
        return [n for n in ends if n.removeprefix("read_").isdigit()]

    def check_rest(self, rest: Snapshot) -> int:
        """Check that nodes which are not addressed output 0, and that host addresses pass.

        Returns
        -------
        int
            Number of bits that were checked.
        """
        count = sum(self._check_passed(rest, name) for name in self._ports.names if self._passed)
        return count + self._check_not_asked(rest)

    def _check_passed(self, rest: Snapshot, name: str) -> int:
        """Check that the sequencer passes each bit of the host address, and count the bits."""
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
        """Check that a node outputs 0 for every other node number, and count the bits.

        All numbers are covered by one case for each bit: this bit differs from the own number, the
        other bits are unknown.
        """
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
        """Check that writes to other nodes leave registers and memories of a node unchanged.

        A write to another node of the same group differs in `write_node`. A write to a node of
        another group may have the same `write_node`, but the write enable of the group is low.
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
        """Return numbers that differ from a node's own in bit `position`; any number for None."""
        own = self.bits(module, port, self._ports.number[self.nodes[module]][:, None])
        others = np.full_like(own, UNKNOWN)
        if len(own) and position is not None:
            others[position] = 1 - own[position]
        return others


def _copied(now: Snapshot) -> Snapshot:
    """Return a copy of a state, whose memories can be changed without changing the original."""
    return changed_by(lambda values: values, np.copy, now)


def _holds_words(now: Snapshot, before: Snapshot) -> bool:
    """Return True if every word in registers and memories of `before` is unchanged in `now`."""
    pairs = [*zip(arrays(before), arrays(now), strict=True)]
    for module, state in before.states.items():
        pairs += zip(state.rams, now.states[module].rams, strict=True)
    return all(((old <= 1) | (old == new)).all() for old, new in pairs)


def _require(signal: str, holds: object, what: str) -> None:
    """Raise a refutation about `signal` between runs, unless `holds` is true."""
    if not holds:
        raise refuted("whole runs", signal, f"{signal} at rest must {what}")
