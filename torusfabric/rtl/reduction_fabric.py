# amaranth: UnusedElaboratable=no
"""Fabrics of tables of sums: those of tables, with a combiner between links and everything else."""

import numpy as np

from .combiner import Combiner
from .crossbar import plan_crossbar
from .netlist import Part, Role
from .table_fabric import TableFabric
from .table_router import TableRouter
from .table_sequencer import Late

__all__ = ["ReductionFabric"]


class ReductionFabric(TableFabric):
    """The fabric of a table of sums."""

    def _plan_crossbars(self):
        """Crossbars in front of out-ports, and in front of the operators."""
        plan = self._plan
        first = self.ports + len(plan.delayed)
        used = np.unique(np.concatenate([plan.select, plan.operand], axis=None))
        self._injected = used[(used >= first) & (used < plan.identity)] - first
        kinds = plan.skew.tolist()
        self._crossbar = plan_crossbar(self._compressed(plan.select, first), kinds)
        operand = self._compressed(plan.operand, first)
        neutral = first + max(len(self._injected), 1)
        operand = np.where(plan.operand == plan.identity, neutral, operand)
        near = [kinds[port] for port in self.program.topology.opposite]
        self._operands = plan_crossbar(operand, near)

    def _settings(self):
        """The select registers of the router, then those of the combiner."""
        return np.hstack([self._crossbar.rom, self._operands.rom])

    def _late(self, reads, writes, stores):
        """When everything is told: words are kept, and combined, a cycle after they arrive."""
        select = [*self._crossbar.kinds, *(kind + 1 for kind in self._operands.kinds)]
        later = lambda columns: [skew + 1 for skew in columns]
        return Late(select, reads, later(writes), later(stores), self._plan.tail)

    def _skew(self, bank):
        """By how many cycles what arrives for a bank comes later than its row."""
        return int(self._plan.skew[self.program.topology.opposite[bank.port]])

    def _add_combiners(self):
        """One combiner a node, all alike."""
        net, plan, width = self.netlist, self._plan, self.width
        lanes = len(self._injected)
        net.add_module(
            "combiner",
            lambda: Combiner(
                self._operands,
                operator=self.program.operator,
                delayed=plan.delayed,
                lanes=lanes,
                width=width,
            ),
            role=Role.COMBINER,
        )
        first, count = self._crossbar.rom.shape[1], self._operands.rom.shape[1]
        for node in range(self.nodes):
            inputs = {
                "select": (Part("select", first if count else 0, max(count, 1)),),
                "enable": net.whole("busy"),
                "rx": self._arriving(node),
                "inject": self._lanes(node),
            }
            results = (self.ports + len(plan.delayed)) * width
            net.add(
                f"combiner_at_{node}",
                "combiner",
                inputs=inputs,
                node=node,
                outputs={"result": (f"result_{node}", results)},
            )

    def _incoming(self, node):
        return tuple(Part(f"result_{node}", q * self.width, self.width) for q in range(self.ports))

    def _add_table_routers(self):
        """Combiners, and routers that get all registers from them."""
        self._add_combiners()
        net, extra = self.netlist, len(self._plan.delayed)
        lanes = extra + max(len(self._injected), 1)
        net.add_module(
            "router_0",
            lambda: TableRouter(self._crossbar, delayed=(), lanes=lanes, width=self.width),
            role=Role.ROUTER,
        )
        for node in range(self.nodes):
            results = net.words(f"result_{node}", self.width)
            self._add_router(node, (*results[self.ports :], *self._lanes(node)))
