# amaranth: UnusedElaboratable=no
"""Fabrics of tables: one router, one endpoint, and one ROM for all nodes."""

import numpy as np

from ..program import merge_columns
from .base_fabric import Fabric
from .crossbar import plan_crossbar
from .memories import address_width
from .netlist import Fixed, Part
from .offset_locator import OffsetLocator
from .table_endpoint import TableEndpoint
from .table_router import TableRouter
from .table_sequencer import TableSequencer

__all__ = ["TableFabric"]


class TableFabric(Fabric):
    """The fabric of a table."""

    known_by = "step and port"

    def __init__(self, program, *, width, flits, top="host"):
        super().__init__(program, width=width, flits=flits, top=top)
        self._plan = plan = program.plan(flits)
        self._bits = address_width(plan.depth * plan.flits)
        self._all = [*plan.banks, *plan.own]
        first = self.ports + len(plan.delayed)
        self._injected = np.unique(plan.select[plan.select >= first]) - first
        self._crossbar = plan_crossbar(self._select(first))
        self.write_delay = program.write_delay(flits) if top == "host" else 0
        if top == "host":
            self._add_host(self._locator, self._bits, self._write_locator())
        self._add_sequencer()
        self._add_endpoints()
        self._add_table_routers()
        self._add_status()

    def _select(self, first):
        """The settings, with the banks that are read numbered without gaps."""
        select = self._plan.select
        banks = np.searchsorted(self._injected, select - first)
        return np.where(select >= first, first + banks, select)

    def _viewed(self):
        """The banks that a host reads."""
        plan = self._plan
        there = plan.slot >= 0
        own = np.arange(len(there)) == 0
        number = plan.bank + np.where(own[:, None], len(plan.banks), 0)
        return number, np.unique(number[there]).tolist()

    def _locator(self):
        """Where what a node has received lies."""
        bank, _ = self._viewed()
        plan = self._plan
        return OffsetLocator(
            self.program.topology,
            np.where(plan.slot >= 0, bank, 0),
            plan.slot,
            flits=plan.flits,
            banks=len(self._all),
        )

    def _write_locator(self):
        """Where what a node sends lies: how to make a locator, or None where it is not needed."""
        plan = self._plan
        if not self.program.located(self.flits):
            return None
        return lambda: OffsetLocator(
            self.program.topology,
            plan.own_bank,
            plan.own_slot,
            flits=plan.flits,
            banks=len(plan.own),
            ahead=True,
        )

    def _add_sequencer(self):
        net, plan = self.netlist, self._plan
        stored = [k for k, bank in enumerate(plan.banks) if bank.depth]
        reads, read = merge_columns([self._all[k].read for k in self._injected])
        writes, write = merge_columns([plan.banks[k].write for k in stored])
        enables = [plan.banks[k].write >= 0 for k in stored]
        stores = list({column.tobytes(): column for column in enables}.values())
        find = {column.tobytes(): k for k, column in enumerate(stores)}
        self._read = dict(zip(self._injected.tolist(), read, strict=True))
        self._store = {
            k: (place, find[enable.tobytes()])
            for k, place, enable in zip(stored, write, enables, strict=True)
        }
        net.add_module(
            "sequencer",
            lambda: TableSequencer(
                by_waves=plan.by_waves,
                steps=plan.steps,
                flits=plan.flits,
                wait=self.program.wait(self.flits),
                select=self._crossbar.rom,
                reads=reads,
                writes=writes,
                stores=stores,
                address_bits=self._bits,
            ),
        )
        idle = net.whole("read_address") if self.top == "host" else (Fixed(0, self._bits),)
        outputs = {"busy": 1, "done": 1, "cycles": 32}
        outputs["select"] = max(self._crossbar.rom.shape[1], 1)
        outputs |= {f"read_{k}": self._bits for k in range(len(reads))}
        outputs |= {f"write_{k}": self._bits for k in range(len(writes))}
        outputs |= {f"store_{k}": 1 for k in range(len(stores))}
        names = {name: (f"{name}_at" if "_" in name else name) for name in outputs}
        net.add(
            "sequencer_at",
            "sequencer",
            inputs={"start": net.whole("start"), "idle_address": idle},
            outputs={name: (names[name], width) for name, width in outputs.items()},
        )

    def _add_endpoints(self):
        net = self.netlist
        make = lambda: TableEndpoint(
            plan=self._plan,
            injected=self._injected.tolist(),
            viewed=self._viewed()[1],
            width=self.width,
            nodes=self.nodes,
            address_bits=self._bits,
            private=self.top == "core",
        )
        net.add_module("endpoint", make)
        module = make()
        for node in range(self.nodes):
            bus = (self._bus if self.top == "host" else self._own)(module, node)
            inputs = {"rx": self._arriving(node), "busy": net.whole("busy")} | bus
            for k, bank in enumerate(self._all):
                if bank.depth:
                    read = f"read_{self._read[k]}_at" if k in self._read else None
                    inputs[f"read_{k}"] = net.whole(read) if read else bus["read_address"]
                if k in self._store:
                    write, store = self._store[k]
                    inputs[f"write_{k}"] = net.whole(f"write_{write}_at")
                    inputs[f"store_{k}"] = net.whole(f"store_{store}_at")
            net.add(
                f"endpoint_at_{node}",
                "endpoint",
                inputs=inputs,
                outputs={
                    "inject": (f"inject_{node}", len(module.inject)),
                    "read_data": (self._read_net(node), self.width),
                },
                node=node,
            )

    def _own(self, module, node):
        """Ports for one node: it writes its send memory, and reads its banks."""
        members = module.signature.members
        names = ("write_chunk", "write_address", "write_data", "write_enable", "read_bank",
                 "read_address")  # fmt: skip
        ports = {n: self.netlist.add_input(f"{n}_{node}", members[n].shape) for n in names}
        self.netlist.add_output(f"read_data_{node}", self.width)
        number = self._node(node)
        return ports | {"node": number, "write_node": number, "read_node": number}

    def _add_table_routers(self):
        """One router a node, all alike."""
        net, delayed, lanes = self.netlist, self._plan.delayed, len(self._injected)
        net.add_module(
            "router_0",
            lambda: TableRouter(self._crossbar, delayed=delayed, lanes=lanes, width=self.width),
        )
        for node in range(self.nodes):
            inputs = {
                "select": net.whole("select"),
                "enable": net.whole("busy"),
                "rx": self._arriving(node),
                "inject": tuple(
                    Part(f"inject_{node}", k * self.width, self.width) for k in range(max(lanes, 1))
                ),
            }
            net.add(
                f"router_at_{node}",
                "router_0",
                inputs=inputs,
                node=node,
                outputs={"tx": (f"tx_{node}", self.ports * self.width)},
            )

    def places(self):
        """Where every node stores what, for the user of a core: plain lists.

        ``places[node][k]`` is [bank, first address] of the k-th block of the node's receive memory
        as a host would see it (by origin, then chunk); ``sent[node][k]`` is [`write_chunk`, first
        `write_address`] of the k-th block of its send memory (by destination, then chunk).
        """
        program, plan, topology = self.program, self._plan, self.program.topology
        nodes = np.arange(self.nodes)
        offset = topology.subtract(nodes[:, None], nodes[None, :])
        bank, _ = self._viewed()
        received = np.stack([bank[offset], plan.slot[offset] * plan.flits], axis=-1)
        sent = np.stack([plan.own_bank, plan.own_slot * plan.flits], axis=-1)
        goal = topology.subtract(nodes[None, :], nodes[:, None])
        sent = sent[goal] if program.blocks.collective.personal else sent[np.zeros_like(nodes)]
        shape = (self.nodes, -1, 2)
        return {
            "places": received.reshape(shape).tolist(),
            "sent": sent.reshape(shape).tolist(),
        }
