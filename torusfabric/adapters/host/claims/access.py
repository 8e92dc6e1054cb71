"""`HostAccess`: the accesses by which the proof of whole runs writes and reads node memories.

The proof of whole runs leaves the host port out: it drives the nets behind the port, which lead to
the nodes. `check_host_port` proves separately that the port drives these nets in the same way::

    host_we, host_addr, ..  ->  [ host port ]  ->  write_enable, write_address, ..  ->  nodes
                                check_host_port    driven by HostAccess
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....program.timing import WRITE
from ....proof.accesses import AccessSteps, NodeAccess
from ....proof.messages import Locations, Run
from ....proof.report import make_refutation
from ....proof.snapshot import Snapshot, copy_to_runs, map_arrays, register_arrays
from ....proof.symbols import UNKNOWN, word_bits
from ....rtl.arrays import NodeGroups
from ....rtl.core.memory_port import number_suffix
from ....topology import IntArray
from .locations import received_locations, send_memory_numbers, sent_locations
from .port import write_enable_nets

if TYPE_CHECKING:
    from ....proof.machine import Override, SymbolicMachine
    from ....rtl import Fabric
    from .port import HostPorts

__all__ = ["HostAccess"]


class HostAccess(NodeAccess):
    """The reads and writes of node memories behind a host port, in the proof of whole runs.

    The port serves all nodes, or the nodes of one board, and sends every access to all of them. A
    node takes part if the access has the number of the node.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host`` or behind a bus.
    machine : SymbolicMachine
        Symbolic simulation of the fabric.
    ports : HostPorts
        The port, and the numbers of its nodes.

    Attributes
    ----------
    answer : int
        Cycles from the address of a read at a node until the node outputs the word.
    overlap : int
        Number of words that are still in the pipeline of the host port, on their way to the
        memories, when a run begins as early as possible after the last write.
    hold : int
        Cycles by which a write delays the begin of a run that is started right after it.
    """

    def __init__(self, fabric: Fabric, machine: SymbolicMachine, ports: HostPorts) -> None:
        super().__init__(fabric, machine)
        self._ports, self._loaded = ports, fabric.tables is not None
        self._enables = write_enable_nets(fabric.program)
        self.answer = fabric.answer
        # The registers of the host port, and one more for the data of the last write.
        self.overlap = fabric.netlist.modules["host"]().write_cycles + 2 - fabric.hold
        self.hold = fabric.hold if ports.holds else 0

    def idle_access_nets(self) -> dict[str, IntArray]:
        """Return the values of the nets behind the host port in cycles without a write.

        All write enables are 0. The net `settling`, which delays the begin of a run, is unknown, so
        that the proof covers both values.
        """
        return self.settling_net(UNKNOWN) | {
            f"{enable}{name}": np.array([[0]])
            for name in self._ports.names
            for enable in {*self._enables}
        }

    def _host_addresses(self, run: Run) -> Locations:
        """Return the address at the host port of each word to send, in place of its memory.

        Addresses at the nodes are -1 for words that the host does not write.
        """
        address = sent_locations(self.program, run).address
        part, flit = np.divmod(np.arange(address.shape[1]), run.length)
        asked = part * -(-self.program.flits // self.beat) + flit // self.beat
        return Locations(np.broadcast_to(asked, address.shape), address)

    def message_writes(self, runs: Sequence[Run]) -> AccessSteps:
        """Return the steps, one for each cycle, that write the messages of some runs into memories.

        Each step has the write enable, memory and address of a word by each send map. The data of
        the word follow one step later, as the host port sends them.
        """
        program, flits = self.program, self.program.flits
        asked, address = self.locate_beats(runs, self._host_addresses, ends_at_once=True)
        none, node = np.full((1, *address.shape[1:]), -1), np.arange(address.shape[1])[:, None]
        numbers = {}
        for layout, enable in enumerate(self._enables):
            form = next(k for k, form in enumerate(program.forms) if form.layout == layout)
            place = sent_locations(program, Run(0, flits), form).first_of_beats(flits, self.beat)
            below = (address >= 0) & (asked < place.address.shape[1])
            found = [
                each[node, np.where(below, asked, 0)] for each in (place.memory, place.address)
            ]
            there = below & (found[1] >= 0)
            bank = send_memory_numbers(program, layout)[found[0]]
            numbers[enable] = np.concatenate([below, 0 * none])
            for name, values in (("bank", bank), ("address", found[1])):
                known = np.concatenate([np.where(there, values, -1), none])
                numbers[f"write_{name}{number_suffix(layout)}"] = known
        words = self.message_bits(runs)
        words = np.concatenate([np.full_like(words[:1], UNKNOWN), words])
        return AccessSteps(len(words), numbers, {"write_data": words},
                     {"write_node": self._ports.number},
                     dict.fromkeys(self._enables, 0))  # fmt: skip

    def message_reads(self, runs: Sequence[Run]) -> AccessSteps:
        """Return the steps, one for each cycle, that read the received words of some runs.

        Each step has the memory and the address of a word. A step drives the address as
        `read_address`, and also on the nets by which the sequencer sends addresses of the program
        during a run: between runs these pass on the address of the host (`_passing_nets`).
        """
        memory, address = self.locate_beats(runs, partial(received_locations, self.program))
        memory = np.where(address >= 0, memory, -1)
        # The port of a node module and the net of the sequencer may differ in name.
        inputs = {
            port for module in self.nodes for port in self.machine.groups[module].program.inputs
        }
        passed = sorted(port for port in inputs if port.removeprefix("read_").isdigit())
        ports = ["read_address", *(passed if self._passing_nets else [])]
        return AccessSteps(
            len(address),
            {"read_bank": memory} | dict.fromkeys(ports, address),
            always={"read_node": self._ports.number},
        )

    @property
    def _passing_nets(self) -> list[str]:
        """Names of the nets ``read_<number>``, by which the sequencer sends read addresses.

        During a run they carry addresses of the program; between runs, the address of the host. The
        list is empty with loadable tables.
        """
        if self._loaded:
            return []
        nets, name = self.machine.text.nets, self._ports.names[0]
        ends = (n.removesuffix(name) for n in nets if n.endswith(name))
        return [n for n in ends if n.removeprefix("read_").isdigit()]

    def check_rest(self, rest: Snapshot) -> int:
        """Check the two facts on which reads rely between runs.

        A node that is not addressed outputs 0, so that the read tree can combine words by OR. The
        sequencer passes the host address on to the nodes. `rest` is the state between runs, in
        which no access is under way.

        Returns
        -------
        int
            Number of bits that were checked.
        """
        count = sum(
            self._check_passing_nets(rest, name) for name in self._ports.names if self._passing_nets
        )
        return count + self._check_idle_nodes(rest)

    def _check_passing_nets(self, rest: Snapshot, name: str) -> int:
        """Check that the sequencer outputs the host's read address between runs; count the bits.

        `rest` is the state between runs, and `name` the suffix of the nets of one host port.
        """
        machine, count = self.machine, 0
        machine.prepare_runs(1)
        given = f"read_address{name}"
        address = word_bits(np.arange(len(machine.text.nets.get(given, []))))[:, None]
        now = copy_to_runs(rest, 1)
        machine.settle_nets(now, self.idle_inputs() | {given: address})
        for port in self._passing_nets:
            shown = machine.net_values(port + name)
            count += len(shown)
            _require_at_rest(port, (shown == address[: len(shown)]).all(), "pass the address on")
        return count

    def _check_idle_nodes(self, rest: Snapshot) -> int:
        """Check that a node outputs 0 while a read addresses another node; return the bits checked.

        The number of another node differs from the node's own number in at least one bit. So one
        simulation is made for each bit: this bit is inverted, and all other bits are unknown.
        `rest` is the state between runs.
        """
        machine, count = self.machine, 0
        machine.prepare_runs(1)
        for position in range((len(self._ports.nodes) - 1).bit_length()):
            now = copy_to_runs(rest, 1)
            others = {module: {"read_node": self._other_numbers(module, "read_node", position)}
                      for module in self.nodes}  # fmt: skip
            for _ in range(self.answer):
                machine.settle_nets(now, self.idle_inputs(), others)
                now = machine.next_state(now)
            machine.settle_nets(now, self.idle_inputs(), others)
            for module in self.nodes:
                shown = machine.output_values(module, "read_data")
                count += shown.size
                _require_at_rest(f"read_data of {module}", (shown == 0).all(), "be 0 if not asked")
        return count

    def check_others(self, begin: Snapshot) -> None:
        """Check that a write to one node changes no register and no memory of other nodes.

        The host port sends each write to all nodes, with a number `write_node` and one write enable
        for each set of nodes that share a register. A node must ignore a write with another
        `write_node`, and every write for which the enable of its own set is low. Writes of both
        kinds are simulated from the state `begin`. If one changes a node, the exception `Refuted`
        is raised.
        """
        nodes = len(self._ports.nodes)
        if nodes == 1:
            return
        machine, now = self.machine, _copy_state(begin)
        machine.settle_nets(now, self.idle_inputs())
        machine.forget_words()
        for position in [*range(NodeGroups(nodes).position_bits), None]:
            written: dict[str, Override] = {
                module: {
                    "write_node": self._other_numbers(module, "write_node", position),
                    **dict.fromkeys(self._enables, np.full((1, 1, 1), int(position is not None))),
                }
                for module in self.nodes
            }
            for _ in range(WRITE):
                machine.settle_nets(now, self.idle_inputs(), written, only=self.nodes)
                now = machine.next_state(now)
        _require_at_rest(
            "a node", _has_same_words(now, begin), "keep its words when others are written"
        )

    def _other_numbers(self, module: str, port: str, position: int | None) -> IntArray:
        """Return, for each node, the bits of an unknown number that is not the node's own.

        A proof drives them at an input that carries the number of the addressed node: so it covers
        every access to another node. `module` is the name of a module of nodes, and `port` its
        input, such as ``read_node``. The bit at `position` is the inverse of the bit of the node's
        own number; all other bits are unknown. If `position` is None, all bits are unknown, for a
        write whose write enable is low.
        """
        own = self.port_bits(module, port, self._ports.number[self.nodes[module]][:, None])
        others = np.full_like(own, UNKNOWN)
        if len(own) and position is not None:
            others[position] = 1 - own[position]
        return others


def _copy_state(now: Snapshot) -> Snapshot:
    """Return a copy of the state `now`, whose memories can be changed without changing `now`."""
    return map_arrays(lambda values: values, np.copy, now)


def _has_same_words(now: Snapshot, before: Snapshot) -> bool:
    """Return True if each symbolic bit of `before` is at the same position in `now`.

    A *symbolic* bit stands for a bit of a message. Bits of registers and memories that are 0, 1 or
    unknown in `before` may change.
    """
    pairs = [*zip(register_arrays(before), register_arrays(now), strict=True)]
    for module, state in before.states.items():
        pairs += zip(state.rams, now.states[module].rams, strict=True)
    return all(((old <= 1) | (old == new)).all() for old, new in pairs)


def _require_at_rest(signal: str, holds: object, what: str) -> None:
    """Raise `Refuted`, the error of a false claim, unless `holds` is true.

    `holds` is a condition on `signal` between runs. `what` is the end of the message, which begins
    with "<signal> at rest must".
    """
    if not holds:
        raise make_refutation("whole runs", signal, f"{signal} at rest must {what}")
