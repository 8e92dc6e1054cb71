"""When what arrives and leaves at a node that carries out a table.

Blocks leave in the steps of the table, or as soon as they can.

A sum may leave two cycles after the last word for it has arrived, and words for one sum must not
arrive in the same cycle, for they are combined one after another; both are longer by what the
hardware of the operator takes by itself. There are two ways to see to that. By the cycle, every
word leaves as soon as it can, for messages of one flit or flit after flit of longer ones. By the
step, for long messages, all flits of a block go by in each step, and each port has a *skew*, a
number of cycles by which all nodes do later what has to do with its link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..schedule import SumTable
from .timing import COMBINE, PASS

if TYPE_CHECKING:
    from ..schedule import Table

__all__ = ["Arrival", "Departure", "Key", "TableTiming", "TableTransfers", "by_cycle", "by_step",
           "in_order", "table_rules"]  # fmt: skip

#: A sum at a node: (offset of the node from its owner, chunk); the owner has offset 0. A block at a
#: node: (offset of the node from its origin, that of the destination, chunk).
Key: TypeAlias = tuple[int, ...]


class Arrival(NamedTuple):
    """A word that arrives at every node: in which step, and by which port its sender sent it."""

    step: int
    port: int


class Departure(NamedTuple):
    """A word that leaves every node.

    Parameters
    ----------
    key : Key
        What leaves.
    partial : bool
        Whether it is a partial sum, rather than a complete one.
    joins : Key
        The sum that it joins, or becomes, at the node that it arrives at.
    passed : Arrival or None
        What is passed on as it came, rather than a sum.
    """

    step: int
    port: int
    key: Key
    partial: bool
    joins: Key
    passed: Arrival | None = None


class TableTransfers:
    """What arrives and leaves at a node, and what goes into what.

    Parameters
    ----------
    latency : int
        Cycles that the hardware of the operator takes by itself.

    Attributes
    ----------
    ports : int
        Of a node.
    sums : bool
        Whether words are combined.
    opposite : list of int
        The in-port at the other end of the link behind each port.
    kept : bool
        Whether nodes keep their sums: what leaves is a copy, of what had arrived before its step.
    combine : int
        Cycles from the arrival of a word to the sum it went into.
    age : int
        Cycles from the arrival of a word to the departure of that sum, at the least.
    longer : list of int
        By how many cycles the link behind each port is longer than the register of the out-port.
    reach : int
        Steps further apart than this keep all rules.
    joins : dict of Key to (list of Arrival)
        The arrivals that a node adds to its own contribution to a sum.
    passes : dict of Key to (list of Arrival)
        Those of the sum after the one with its own contribution has left.
    arrivals : dict of Key to (list of Arrival)
        Those of each block, where nothing is combined.
    """

    def __init__(self, table: Table | SumTable, latency: int = 0) -> None:
        topology = table.topology
        self.table, self.sums = table, table.collective.reducing
        self.opposite: list[int] = topology.opposite.tolist()
        self.kept = isinstance(table, SumTable)
        self.ports = topology.ports
        self.combine = COMBINE + latency
        self.age = self.combine + PASS
        self.longer: list[int] = (topology.cycles_of_port - PASS).tolist()
        self.reach = topology.ports * self.combine + self.age + 2 * max(self.longer)
        self.joins: dict[Key, list[Arrival]] = defaultdict(list)
        self.passes: dict[Key, list[Arrival]] = defaultdict(list)
        self.arrivals: dict[Key, list[Arrival]] = defaultdict(list)
        self.departures: list[Departure] = []
        if isinstance(table, SumTable):
            self._follow_kept(table)
        elif self.sums:
            self._follow_sums(table)
        else:
            self._follow_blocks(table)

    def _follow_blocks(self, table: Table) -> None:
        """Follow blocks."""
        topology, goals = table.topology, table.destination
        steps, ports = np.nonzero(table.offset >= 0)
        there, chunk = table.offset[steps, ports], table.chunk[steps, ports]
        here = topology.subtract(there, topology.generators[ports])
        goal = np.zeros_like(there) if goals is None else goals[steps, ports]
        columns = (steps, ports, there, here, goal, chunk)
        for step, port, to, by, target, part in zip(*(x.tolist() for x in columns), strict=True):
            key, joins = (by, target, part), (to, target, part)
            self.departures.append(Departure(step, port, key, partial=False, joins=joins))
            if to:
                self.arrivals[joins].append(Arrival(step, port))

    def _follow_sums(self, table: Table) -> None:
        """Follow sums: a partial one moves, of a complete one a copy leaves."""
        topology = table.topology
        #: Contributions that have come together, and those who have sent their own.
        count, gone = defaultdict[Key, int](lambda: 1), set[Key]()
        for step, (offset, chunk) in enumerate(zip(table.offset, table.chunk, strict=True)):
            ports = np.flatnonzero(offset >= 0)
            by = topology.subtract(offset[ports], topology.generators[ports])
            columns = (ports, by, offset[ports], chunk[ports])
            leaving = [
                Departure(step, port, (here, part), count[here, part] < topology.nodes, (to, part))
                for port, here, to, part in zip(*(x.tolist() for x in columns), strict=True)
            ]
            carried = [count[sent.key] for sent in leaving]
            for sent in leaving:
                if sent.partial:
                    count[sent.key] = 0
                    gone.add(sent.key)
            for sent, contributions in zip(leaving, carried, strict=True):
                count[sent.joins] += contributions
                arrivals = self.passes if sent.joins in gone else self.joins
                arrivals[sent.joins].append(Arrival(step, sent.port))
            self.departures += leaving

    def _follow_kept(self, table: SumTable) -> None:
        """Follow sums that nodes keep: each node is the owner of its own."""
        last: dict[tuple[int, int], Arrival] = {}
        for step, row in enumerate(table.chunk.tolist()):
            ports = [port for port, chunk in enumerate(row) if chunk >= 0]
            for port in ports:
                key, by = (0, row[port]), int(table.passed[step, port])
                passed = last[by, row[port]] if by >= 0 else None
                self.departures.append(
                    Departure(step, port, key, partial=True, joins=key, passed=passed)
                )
            for port in ports:
                arrival = Arrival(step, port)
                self.joins[0, row[port]].append(arrival)
                last[self.opposite[port], row[port]] = arrival

    def feeding(self, leaving: Departure) -> list[Arrival]:
        """The arrivals that have to come before a sum leaves."""
        if not leaving.partial and leaving.key in self.passes:
            return self.passes[leaving.key]
        joined = self.joins.get(leaving.key, [])
        return [a for a in joined if a.step < leaving.step] if self.kept else joined


@dataclass(frozen=True)
class TableTiming:
    """When the words of a table are on their links.

    Parameters
    ----------
    row : mapping of (step, port)
        The row in which what leaves by a port in a step does so.
    period : int
        Cycles from one row to the next.
    skew : list of int
        By how many cycles what has to do with each out-port, and the link behind it, comes later
        than its row.
    by_cycle : bool
        Whether a row is a cycle; else it is a step of the table.
    """

    row: Mapping[tuple[int, int], int]
    rows: int
    period: int
    skew: list[int]
    by_cycle: bool

    def time(self, step: int, port: int) -> int:
        """The cycle in which the first flit that leaves by a port in a step is on the link."""
        return self.row[step, port] * self.period + self.skew[port]

    def row_at(self, step: int, port: int, late: int = 0) -> tuple[int, int]:
        """The row and skew of what happens so many cycles after a word of a step is on a link."""
        row, skew = self.row[step, port], self.skew[port]
        return (row + late, 0) if self.by_cycle else (row, skew + late)


def by_cycle(transfers: TableTransfers) -> TableTiming:
    """Every word leaves as early as it can, in the order of the steps."""
    at: dict[tuple[int, int], int] = {}
    longer = transfers.longer
    arrived: dict[tuple[int, int], int] = {}
    used: list[set[int]] = [set() for _ in range(transfers.ports)]
    joined: dict[Key, set[int]] = defaultdict(set)
    for leaving in transfers.departures:
        step, port, key, partial, joins, passed = leaving
        if passed:
            time = arrived[passed] + PASS
        elif transfers.arrivals:
            came = (arrived[a] + PASS for a in transfers.arrivals.get(key, []) if a in arrived)
            time = min(came, default=0)
        else:
            before = [arrived[a] for a in transfers.feeding(leaving)]
            time = max(before, default=-transfers.age) + transfers.age
        if transfers.kept:
            # What a later step adds to a sum comes in a later cycle than all that sums of that step
            # have.
            earlier = [arrived[a] + 1 for a in transfers.feeding(leaving)]
            time = max([time, *earlier])
        clashes = joined[joins] if partial else set()
        while time in used[port] or time + longer[port] in clashes:
            time += 1
        at[step, port] = time
        arrived[step, port] = there = time + longer[port]
        used[port].add(time)
        if partial:
            clashes.update(range(there - transfers.combine + 1, there + transfers.combine))
    # An adder takes words as they arrive, and reads memories as late as an out-port passes them on.
    last = max(at.values()) if transfers.arrivals else max(arrived.values()) + PASS
    return TableTiming(at, last + 1, 1, [0] * transfers.ports, by_cycle=True)


def in_order(transfers: TableTransfers, steps: int) -> TableTiming:
    """Every step takes a cycle."""
    row = {(leaving.step, leaving.port): leaving.step for leaving in transfers.departures}
    return TableTiming(row, steps, 1, [0] * transfers.ports, by_cycle=True)


class _Rule(NamedTuple):
    """Two links, and the number of steps by which the second is used later than the first.

    Where the first feeds the second, words have to come before they leave. Else both bring words
    for one sum, which have to come apart.
    """

    steps: int
    first: int
    second: int
    feeds: bool

    def is_kept(self, period: int, skew: Sequence[int], transfers: TableTransfers) -> bool:
        """Return True if rows of so many cycles, and skews of the ports, keep the rule."""
        apart = self.steps * period + skew[self.second] - skew[self.first]
        first, second = (transfers.longer[port] for port in (self.first, self.second))
        if self.feeds:
            return apart >= transfers.age + first
        return abs(apart + second - first) >= transfers.combine


def table_rules(transfers: TableTransfers) -> set[_Rule]:
    """Return the rules for arrivals and the departures that they feed, and for those of one sum."""
    feeding = {
        _Rule(leaving.step - a.step, a.port, leaving.port, feeds=True)
        for leaving in transfers.departures
        for a in transfers.feeding(leaving)
    }
    return feeding | {
        _Rule(later.step - a.step, a.port, later.port, feeds=False)
        for arrivals in (*transfers.joins.values(), *transfers.passes.values())
        for k, later in enumerate(arrivals)
        for a in arrivals[:k]
    }


def by_step(transfers: TableTransfers, steps: int, flits: int) -> TableTiming:
    """All flits of a block go in the step of the table, at the shortest regular intervals.

    Skews are found by trying port after port.
    """
    ports, reach = transfers.ports, transfers.reach
    of_port: list[list[_Rule]] = [[] for _ in range(ports)]
    for rule in table_rules(transfers):
        # Links that are used further apart in steps keep the rules with any skews.
        if rule.steps <= reach:
            of_port[max(rule.first, rule.second)].append(rule)

    def extend(skew: list[int], period: int, limit: int) -> list[int] | None:
        """Return skews up to a limit that keep all rules, or None, given those of first ports."""
        if len(skew) == ports:
            return skew
        for value in range(0, limit + 1, transfers.combine):
            longer = [*skew, value]
            if all(rule.is_kept(period, longer, transfers) for rule in of_port[len(skew)]):
                found = extend(longer, period, limit)
                if found:
                    return found
        return None

    for period in range(flits, flits + reach + 1):
        for limit in range(0, ports * transfers.combine, transfers.combine):
            skew = extend([], period, limit)
            if skew:
                timing = in_order(transfers, steps)
                return replace(timing, period=period, skew=skew, by_cycle=False)
    raise AssertionError("a period of `reach` cycles more always will do")
