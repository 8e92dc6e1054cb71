# amaranth: UnusedElaboratable=no
"""Fabrics of tables: one router, one endpoint, and one ROM for all nodes."""

import numpy as np

from ..program import merge_columns
from .base_fabric import Fabric
from .crossbar import plan_crossbar
from .memories import address_width
from .netlist import Part, Role
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
        self._plan_crossbars()
        self.write_delay = program.write_delay(flits) if top == "host" else 0
        if top == "host":
            self._add_host(self._locator, self._bits, self._write_locator())
        self._add_sequencer()
        self._add_endpoints()
        self._add_table_routers()
        self._add_status()

    def _plan_crossbars(self):
        """The crossbar in front of the out-ports, and the banks whose words it gets."""
        plan = self._plan
        first = self.ports + len(plan.delayed)
        self._injected = np.unique(plan.select[plan.select >= first]) - first
        # Select registers of its own for each out-port: fewer loads make a faster router.
        self._crossbar = plan_crossbar(self._compressed(plan.select, first), range(self.ports))

    def _compressed(self, sources, first):
        """Sources, with the banks that are read numbered without gaps."""
        banks = np.searchsorted(self._injected, sources - first)
        return np.where(sources >= first, first + banks, sources)

    def _settings(self):
        """The ROM of all select registers."""
        return self._crossbar.rom

    def _skew(self, bank):
        """By how many cycles what arrives for a bank comes later than its row."""
        return 0

    def _late(self, reads, writes, stores):
        """How much later than usual the sequencer has to tell everything, given the skews."""
        return

    def _viewed(self):
        """The banks that a host reads."""
        number = self._plan.result_bank
        return number, np.unique(number[self._plan.slot >= 0]).tolist()

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
        plan = self._plan
        stored = [k for k, bank in enumerate(plan.banks) if bank.depth]
        reads, read, read_skew = _merged(
            [(self._all[k].read, self._all[k].skew) for k in self._injected]
        )
        writes, write, write_skew = _merged(
            [(plan.banks[k].write, self._skew(plan.banks[k])) for k in stored]
        )
        enables = [(plan.banks[k].write >= 0, self._skew(plan.banks[k])) for k in stored]
        unlike = {(column.tobytes(), skew): column for column, skew in enables}
        stores, store_skew = list(unlike.values()), [skew for _, skew in unlike]
        find = {key: k for k, key in enumerate(unlike)}
        self._read = dict(zip(self._injected.tolist(), read, strict=True))
        self._store = {
            k: (place, find[column.tobytes(), skew])
            for k, place, (column, skew) in zip(stored, write, enables, strict=True)
        }
        select = self._settings()
        make = lambda: TableSequencer(
            by_waves=plan.by_waves,
            steps=plan.steps,
            flits=plan.flits,
            wait=self.program.wait(self.flits),
            select=select,
            reads=reads,
            writes=writes,
            stores=stores,
            address_bits=self._bits,
            period=plan.period,
            late=self._late(read_skew, write_skew, store_skew),
        )
        # Nets of the host port and of the read tree have names such as these.
        rename = lambda member: f"{member}_at" if "_" in member else member
        self._add_sequencer_of(make, "read_address", self._bits, rename)

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
        net.add_module("endpoint", make, role=Role.ENDPOINT)
        module = make()
        for node in range(self.nodes):
            bus = (self._bus if self.top == "host" else self._own)(module, node)
            inputs = {"rx": self._incoming(node), "busy": net.whole("busy")} | bus
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
        ports = {n: self._node_input(node, n, members[n].shape) for n in names}
        self.netlist.add_output(f"read_data_{node}", self.width, node=node)
        number = self._node(node)
        return ports | {"node": number, "write_node": number, "read_node": number}

    def _incoming(self, node):
        """The words at a node's in-ports that are stored and forwarded."""
        return self._arriving(node)

    def _lanes(self, node):
        """The words read from the banks of a node that are injected."""
        lanes = range(max(len(self._injected), 1))
        return tuple(Part(f"inject_{node}", k * self.width, self.width) for k in lanes)

    def _add_table_routers(self):
        """One router a node, all alike."""
        net, delayed, lanes = self.netlist, self._plan.delayed, len(self._injected)
        net.add_module(
            "router_0",
            lambda: TableRouter(self._crossbar, delayed=delayed, lanes=lanes, width=self.width),
            role=Role.ROUTER,
        )
        for node in range(self.nodes):
            self._add_router(node, self._lanes(node))

    def _add_router(self, node, words):
        """The router of a node, with the words that it gets from the node itself."""
        net = self.netlist
        inputs = {
            "select": net.low("select", max(self._crossbar.rom.shape[1], 1)),
            "enable": net.whole("busy"),
            "rx": self._incoming(node),
            "inject": words,
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
        parts = nodes if program.layout.recv_parts > 1 else nodes[:1]
        offset = topology.subtract(nodes[:, None], parts[None, :])
        offset = offset if program.layout.recv_parts > 1 else np.zeros_like(offset)
        bank, _ = self._viewed()
        received = np.stack([bank[offset], plan.slot[offset] * plan.flits], axis=-1)
        sent = np.stack([plan.own_bank, plan.own_slot * plan.flits], axis=-1)
        goal = topology.subtract(nodes[None, :], nodes[:, None])
        sent = sent[goal] if program.layout.send_parts > 1 else sent[np.zeros_like(nodes)]
        shape = (self.nodes, -1, 2)
        return {
            "places": received.reshape(shape).tolist(),
            "sent": sent.reshape(shape).tolist(),
        }


def _merged(columns):
    """Let columns with the same skew that may always be equal be one.

    Parameters
    ----------
    columns : list of (ndarray of int, int)
        Columns and skews.

    Returns
    -------
    merged : list of ndarray of int
    place : list of int
        The number of each column among the merged ones.
    skew : list of int
        Of each merged column.
    """
    skews = [skew for _, skew in columns]
    merged, place = merge_columns([column for column, _ in columns], skews)
    return merged, place, [skews[place.index(k)] for k in range(len(merged))]
