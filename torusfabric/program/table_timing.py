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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..schedule import SumTable
from .timing import COMBINE, PASS

if TYPE_CHECKING:
    from ..schedule import Table

__all__ = ["Arrival", "Departure", "Key", "TableTiming", "TableTransfers", "by_cycle", "by_step",
           "in_order"]  # fmt: skip

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

    def keeps_rules(self, transfers: TableTransfers) -> bool:
        """Whether sums leave late enough, and words for the same sum arrive apart."""
        return _kept(self.period, self.skew, transfers, *_rules(transfers))


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


def by_step(transfers: TableTransfers, steps: int, flits: int) -> TableTiming:
    """All flits of a block go in the step of the table, at the shortest regular intervals."""
    period, skew = _period(transfers, flits)
    return replace(in_order(transfers, steps), period=period, skew=skew, by_cycle=False)


class _Rule(NamedTuple):
    """Two links, and by how many steps the second is used later than the first."""

    steps: int
    first: int
    second: int


def _fits_age(rule: _Rule, period: int, skew: list[int], transfers: TableTransfers) -> bool:
    """Whether what the second link takes has come by the first."""
    interval = rule.steps * period + skew[rule.second] - skew[rule.first]
    return interval >= transfers.age + transfers.longer[rule.first]


def _is_apart(rule: _Rule, period: int, skew: list[int], transfers: TableTransfers) -> bool:
    """Whether what both links bring is combined one after the other."""
    first, second = (skew[port] + transfers.longer[port] for port in rule[1:])
    return abs(rule.steps * period + second - first) >= transfers.combine


def _kept(
    period: int,
    skew: list[int],
    transfers: TableTransfers,
    ages: Iterable[_Rule],
    apart: Iterable[_Rule],
) -> bool:
    """Whether all rules are kept."""
    return all(_fits_age(rule, period, skew, transfers) for rule in ages) and all(
        _is_apart(rule, period, skew, transfers) for rule in apart
    )


def _period(transfers: TableTransfers, flits: int) -> tuple[int, list[int]]:
    """The shortest period, and skews of the ports that allow it."""
    reach = transfers.reach
    # What lies further apart in steps keeps the rules with any skews.
    ages, apart = ({rule for rule in rules if rule.steps <= reach} for rules in _rules(transfers))
    for period in range(flits, flits + reach + 1):
        for limit in range(0, transfers.ports * transfers.combine, transfers.combine):
            skew = _skews(period, transfers, limit, ages, apart)
            if skew:
                return period, skew
    raise AssertionError("a period of `reach` cycles more always will do")


def _rules(transfers: TableTransfers) -> tuple[set[_Rule], set[_Rule]]:
    """From arrivals to the departures that they feed, and between arrivals for one sum."""
    ages: set[_Rule] = set()
    apart: set[_Rule] = set()
    for leaving in transfers.departures:
        step, port = leaving.step, leaving.port
        ages |= {_Rule(step - a.step, a.port, port) for a in transfers.feeding(leaving)}
    for arrivals in (*transfers.joins.values(), *transfers.passes.values()):
        for k, later in enumerate(arrivals):
            apart |= {_Rule(later.step - a.step, a.port, later.port) for a in arrivals[:k]}
    return ages, apart


def _skews(
    period: int, transfers: TableTransfers, limit: int, ages: set[_Rule], apart: set[_Rule]
) -> list[int] | None:
    """Skews up to a limit that keep all rules, or None; by trying port after port."""

    # The rules that say how a port goes with those before it.
    of_port = [
        [{rule for rule in rules if max(rule[1:]) == port} for rules in (ages, apart)]
        for port in range(transfers.ports)
    ]

    def extend(skew: list[int]) -> list[int] | None:
        if len(skew) == transfers.ports:
            return skew
        for value in range(0, limit + 1, transfers.combine):
            longer = [*skew, value]
            if _kept(period, longer, transfers, *of_port[len(skew)]):
                found = extend(longer)
                if found:
                    return found
        return None

    return extend([])
