"""The cycles in which words arrive and leave at a node that executes a table.

In a table (`torusfabric.schedule.Table`) all nodes do the same in each step. One node is planned.

Blocks leave in the steps of the table, or as soon as they can.

Sums obey two rules. A sum may leave at the earliest two cycles after the last word for it has
arrived. And words for one sum must not arrive in the same cycle, because they are combined one
after another. If the hardware of the operator takes further cycles, its latency, a sum leaves later
by these cycles, and words for one sum must arrive so much further apart. There are two ways to obey
the rules:

- *By cycle*: every word leaves as soon as it can. This is for messages of one flit, or of several
  flits that are handled flit by flit.
- *By step*: all flits of a block go in each step, for long messages. Each port has a *skew*, a
  number of cycles by which all nodes delay everything that concerns its link.
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

__all__ = ["TableArrival", "TableDeparture", "Key", "TableTiming", "TableTransfers",
           "plan_by_cycle", "plan_by_step", "plan_in_order", "link_rules"]  # fmt: skip

#: A sum at a node: (offset of the node from the sum's owner, chunk); the owner has offset 0.
#: A block at a node: (offset of the node from the origin, offset of the destination, chunk).
Key: TypeAlias = tuple[int, ...]


class TableArrival(NamedTuple):
    """A word that arrives at every node, named by its step and the out-port of its sender."""

    step: int
    port: int


class TableDeparture(NamedTuple):
    """A word that every node sends in a step of a table, in which all nodes do the same.

    Parameters
    ----------
    step, port : int
        Step, and out-port.
    key : Key
        Block or sum that leaves: the offset of the node from its origin or owner, and the chunk.
    partial : bool
        True for a partial sum, False for a complete one or a block.
    joins : Key
        Block that the word becomes at its receiver, or sum to which it is added there, as a key
        like `key`.
    passed : TableArrival or None
        If the node forwards a word unchanged, in place of a sum: the arrival of this word.
    """

    step: int
    port: int
    key: Key
    partial: bool
    joins: Key
    passed: TableArrival | None = None


class TableTransfers:
    """The words that arrive at a node and leave it, in a table in which all nodes do the same.

    A *key* names a block or sum by the offset of the node from its origin or owner, and the chunk.

    Parameters
    ----------
    table : Table or SumTable
        Schedule.
    latency : int
        Cycles of the operator's own hardware.

    Attributes
    ----------
    ports : int
        Ports per node.
    sums : bool
        True if words are combined.
    opposite : list of int
        In-port at the other end of the link behind each port.
    kept : bool
        True if nodes keep their sums after they have sent them. A word that departs is then a copy
        of the sum of all words that arrived before the step.
    combine : int
        Cycles from the arrival of a word to the result of the operator that includes the word.
    age : int
        Least number of cycles from the arrival of a word to the departure of a sum that includes
        it.
    longer : list of int
        For each port, the cycles of its link that exceed those of the shortest possible link, which
        is the register of the out-port.
    reach : int
        A number of steps. Two words that move more than `reach` steps apart need no check against
        each other: the first is never too late for a sum that leaves with the second, and they
        never arrive in the same cycle, whatever the delays of ports are.
    joins : dict of Key to (list of TableArrival)
        Arrivals that a node adds to its own contribution to a sum.
    passes : dict of Key to (list of TableArrival)
        Arrivals for a sum after the node's own contribution has left.
    arrivals : dict of Key to (list of TableArrival)
        Arrivals of each block, if nothing is combined.
    departures : list of TableDeparture
        Departures in the order of the steps.
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
        self.joins: dict[Key, list[TableArrival]] = defaultdict(list)
        self.passes: dict[Key, list[TableArrival]] = defaultdict(list)
        self.arrivals: dict[Key, list[TableArrival]] = defaultdict(list)
        self.departures: list[TableDeparture] = []
        if isinstance(table, SumTable):
            self._follow_kept_sums(table)
        elif self.sums:
            self._follow_sums(table)
        else:
            self._follow_blocks(table)

    def _follow_blocks(self, table: Table) -> None:
        """Fill `arrivals` and `departures` with the blocks that move in the steps of `table`."""
        topology, goals = table.topology, table.destination
        steps, ports = np.nonzero(table.offset >= 0)
        there, chunk = table.offset[steps, ports], table.chunk[steps, ports]
        here = topology.subtract(there, topology.generators[ports])
        goal = np.zeros_like(there) if goals is None else goals[steps, ports]
        columns = (steps, ports, there, here, goal, chunk)
        for step, port, to, by, target, part in zip(*(x.tolist() for x in columns), strict=True):
            key, joins = (by, target, part), (to, target, part)
            self.departures.append(TableDeparture(step, port, key, partial=False, joins=joins))
            if to:
                self.arrivals[joins].append(TableArrival(step, port))

    def _follow_sums(self, table: Table) -> None:
        """Fill `departures`, `joins` and `passes` with the sums that move in the steps of `table`.

        A node that sends a partial sum no longer has it. A node that sends a complete sum keeps it.
        """
        topology = table.topology
        #: Contributions in each sum; and sums whose own contribution has left.
        count, gone = defaultdict[Key, int](lambda: 1), set[Key]()
        for step, (offset, chunk) in enumerate(zip(table.offset, table.chunk, strict=True)):
            ports = np.flatnonzero(offset >= 0)
            by = topology.subtract(offset[ports], topology.generators[ports])
            columns = (ports, by, offset[ports], chunk[ports])
            leaving = [
                TableDeparture(
                    step, port, (here, part), count[here, part] < topology.nodes, (to, part)
                )
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
                arrivals[sent.joins].append(TableArrival(step, sent.port))
            self.departures += leaving

    def _follow_kept_sums(self, table: SumTable) -> None:
        """Fill `departures` and `joins` for a table in which nodes keep the sums that they send."""
        last: dict[tuple[int, int], TableArrival] = {}
        for step, row in enumerate(table.chunk.tolist()):
            ports = [port for port, chunk in enumerate(row) if chunk >= 0]
            for port in ports:
                key, by = (0, row[port]), int(table.passed[step, port])
                passed = last[by, row[port]] if by >= 0 else None
                self.departures.append(
                    TableDeparture(step, port, key, partial=True, joins=key, passed=passed)
                )
            for port in ports:
                arrival = TableArrival(step, port)
                self.joins[0, row[port]].append(arrival)
                last[self.opposite[port], row[port]] = arrival

    def required_arrivals(self, leaving: TableDeparture) -> list[TableArrival]:
        """Return the arrivals whose words a departing sum includes, which must come before it.

        `leaving` is the departure.
        """
        if not leaving.partial and leaving.key in self.passes:
            return self.passes[leaving.key]
        joined = self.joins.get(leaving.key, [])
        return [a for a in joined if a.step < leaving.step] if self.kept else joined


@dataclass(frozen=True)
class TableTiming:
    """The cycles in which the words of a table are on their links.

    Parameters
    ----------
    row : mapping of (int, int) to int
        For each step and out-port, the row in which the word of this step leaves by the out-port.
    rows : int
        Length of the program: in cycles if `by_cycle`, otherwise in steps of the table.
    period : int
        Cycles from one row to the next.
    skew : list of int
        For each out-port, the cycles by which its words, and all events that follow from them, come
        later than the beginning of their row.
    by_cycle : bool
        True if a row is a cycle, False if it is a step of the table.
    """

    row: Mapping[tuple[int, int], int]
    rows: int
    period: int
    skew: list[int]
    by_cycle: bool

    def link_cycle(self, step: int, port: int) -> int:
        """Return the cycle in which the first flit of a step is on the link behind a port."""
        return self.row[step, port] * self.period + self.skew[port]

    def row_and_skew(self, step: int, port: int, late: int = 0) -> tuple[int, int]:
        """Return the row of an event, and the cycles by which it is later than its row.

        The event takes place `late` cycles after the word of a step is on the link behind a port.
        """
        row, skew = self.row[step, port], self.skew[port]
        return (row + late, 0) if self.by_cycle else (row, skew + late)


def plan_by_cycle(transfers: TableTransfers) -> TableTiming:
    """Return the timing in which every word leaves as early as it can; each row is a cycle.

    The words of earlier steps are placed first. Words for one sum never arrive at the same time.

    Parameters
    ----------
    transfers : TableTransfers
        Arrivals and departures at a node.
    """
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
            before = [arrived[a] for a in transfers.required_arrivals(leaving)]
            time = max(before, default=-transfers.age) + transfers.age
        if transfers.kept:
            # Arrivals of a later step must come after all arrivals that a sum of this step needs.
            earlier = [arrived[a] + 1 for a in transfers.required_arrivals(leaving)]
            time = max([time, *earlier])
        clashes = joined[joins] if partial else set()
        while time in used[port] or time + longer[port] in clashes:
            time += 1
        at[step, port] = time
        arrived[step, port] = there = time + longer[port]
        used[port].add(time)
        if partial:
            clashes.update(range(there - transfers.combine + 1, there + transfers.combine))
    # Adders read memories in rows up to `PASS` after the arrival (see
    # `TableTraffic.read_row_and_skew`).
    last = max(at.values()) if transfers.arrivals else max(arrived.values()) + PASS
    return TableTiming(at, last + 1, 1, [0] * transfers.ports, by_cycle=True)


def plan_in_order(transfers: TableTransfers, steps: int) -> TableTiming:
    """Return the timing in which each step of a table takes one cycle, and step t is row t.

    Parameters
    ----------
    transfers : TableTransfers
        Arrivals and departures at a node.
    steps : int
        Steps of the table.
    """
    row = {(leaving.step, leaving.port): leaving.step for leaving in transfers.departures}
    return TableTiming(row, steps, 1, [0] * transfers.ports, by_cycle=True)


class _LinkRule(NamedTuple):
    """A rule for the timing of two links; the second is used `steps` steps after the first.

    `first` and `second` are the out-ports of the links. If `feeds` is true, the word on the first
    link must arrive before a sum that includes it leaves on the second. Otherwise both links bring
    words for one sum, which must not arrive at the same time.
    """

    steps: int
    first: int
    second: int
    feeds: bool

    def is_obeyed(self, period: int, skew: Sequence[int], transfers: TableTransfers) -> bool:
        """True if the rule is obeyed with rows of `period` cycles and delays `skew` of ports.

        ``skew[p]`` is the number of cycles by which all words of port p are later than their row;
        only the entries for the two ports of the rule are needed. `transfers` has the latencies of
        links and operators.
        """
        apart = self.steps * period + skew[self.second] - skew[self.first]
        first, second = (transfers.longer[port] for port in (self.first, self.second))
        if self.feeds:
            return apart >= transfers.age + first
        return abs(apart + second - first) >= transfers.combine


def link_rules(transfers: TableTransfers) -> set[_LinkRule]:
    """Return the rules that the timing of sums must obey if each step of the table is a row.

    There is a rule for each arrival and each departure of a sum that includes it: the word must
    arrive early enough. And there is one for each two arrivals for the same sum: not at the same
    time.

    Parameters
    ----------
    transfers : TableTransfers
        Arrivals and departures at a node.
    """
    feeding = {
        _LinkRule(leaving.step - a.step, a.port, leaving.port, feeds=True)
        for leaving in transfers.departures
        for a in transfers.required_arrivals(leaving)
    }
    return feeding | {
        _LinkRule(later.step - a.step, a.port, later.port, feeds=False)
        for arrivals in (*transfers.joins.values(), *transfers.passes.values())
        for k, later in enumerate(arrivals)
        for a in arrivals[:k]
    }


def plan_by_step(transfers: TableTransfers, steps: int, flits: int) -> TableTiming:
    """Return the timing in which each step is a row, in which all flits of a block are sent.

    A row has the fewest cycles for which all `link_rules` can be obeyed, if ports may be *skewed*:
    all nodes delay everything that concerns a port by some cycles. Skews are searched port by port,
    by backtracking.

    Parameters
    ----------
    transfers : TableTransfers
        Arrivals and departures at a node.
    steps : int
        Steps of the table.
    flits : int
        Flits of a block.
    """
    ports, reach = transfers.ports, transfers.reach
    of_port: list[list[_LinkRule]] = [[] for _ in range(ports)]
    for rule in link_rules(transfers):
        # Links that are used further apart than `reach` steps obey the rules with any skews.
        if rule.steps <= reach:
            of_port[max(rule.first, rule.second)].append(rule)

    def extend_skews(skew: list[int], period: int, limit: int) -> list[int] | None:
        """Return delays of all ports that obey the rules and begin with `skew`; else None.

        Delays that are added are at most `limit` cycles. A row takes `period` cycles.
        """
        if len(skew) == ports:
            return skew
        for value in range(0, limit + 1, transfers.combine):
            longer = [*skew, value]
            if all(rule.is_obeyed(period, longer, transfers) for rule in of_port[len(skew)]):
                found = extend_skews(longer, period, limit)
                if found:
                    return found
        return None

    for period in range(flits, flits + reach + 1):
        for limit in range(0, ports * transfers.combine, transfers.combine):
            skew = extend_skews([], period, limit)
            if skew:
                timing = plan_in_order(transfers, steps)
                return replace(timing, period=period, skew=skew, by_cycle=False)
    raise AssertionError("a period of `reach` cycles more always will do")
