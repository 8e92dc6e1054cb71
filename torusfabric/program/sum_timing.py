"""When what arrives and leaves at a node that carries out a table of sums.

A sum may leave two cycles after the last word for it has arrived, and words for one sum must not
arrive in the same cycle, for they are combined one after another. There are two ways to see to
that. By the cycle, every word leaves as soon as it can, for messages of one flit or flit after
flit of longer ones. By the step, for long messages, all flits of a block go by in each step, and
each port has a *skew*, a number of cycles by which all nodes do later what has to do with its link.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from .timing import SUM_AGE

__all__ = ["Arrival", "ByCycle", "ByStep", "Sums"]


class Arrival(NamedTuple):
    """A word that arrives at every node: in which step, and by which port its sender sent it."""

    step: int
    port: int


class Sums:
    """What arrives and leaves at a node, and what goes into what.

    Attributes
    ----------
    joins : dict
        The arrivals of each partial sum (offset of the node from the owner, chunk).
    passes : dict
        The arrival of each complete sum at a node that does not own it.
    leaves : list of (step, port, key, partial, goal)
        What leaves (a key), whether as a partial sum, and the sum that it joins.
    """

    def __init__(self, table):
        topology = table.topology
        steps, ports = np.nonzero(table.offset >= 0)
        there, chunk = table.offset[steps, ports], table.chunk[steps, ports]
        here = topology.subtract(there, topology.generators[ports])
        self.joins: dict = defaultdict(list)
        self.passes: dict = {}
        self.leaves = []
        for step, port, to, by, part in zip(
            *(x.tolist() for x in (steps, ports, there, here, chunk)), strict=True
        ):
            partial = step < table.reducing
            self.leaves.append((step, port, (by, part), partial, (to, part)))
            if partial:
                self.joins[to, part].append(Arrival(step, port))
            else:
                self.passes.setdefault((to, part), Arrival(step, port))

    def feeding(self, key, partial):
        """The arrivals that have to come before a sum leaves."""
        if partial or key[0] == 0:
            return self.joins.get(key, [])
        return [self.passes[key]]


class ByCycle:
    """Every word leaves as early as it can, in the order of the steps; a row is a cycle.

    Attributes
    ----------
    period : int
        Cycles from one row to the next.
    skew : ndarray of int, shape (ports,)
        By how many cycles what has to do with each out-port, and the link behind it, comes later
        than its row.
    rows : int
    """

    period = 1

    def __init__(self, sums, topology):
        self._at: dict[tuple[int, int], int] = {}
        free: list[set] = [set() for _ in range(topology.ports)]
        taken: dict = defaultdict(set)
        for step, port, key, partial, goal in sums.leaves:
            before = [self._at[a] for a in sums.feeding(key, partial)]
            time = max(before, default=-SUM_AGE) + SUM_AGE
            busy = free[port] | taken[goal] if partial else free[port]
            while time in busy:
                time += 1
            self._at[step, port] = time
            free[port].add(time)
            if partial:
                taken[goal].add(time)
        self.skew = np.zeros(topology.ports, int)
        # An adder reads memories a row later than an out-port.
        self.rows = max(self._at.values()) + 2

    def time(self, step, port):
        """The cycle in which what leaves by a port in a step is on the link."""
        return self._at[step, port]

    def row(self, step, port, late=0):
        """The row and skew of what happens so many cycles after a word of a step is on a link."""
        return self._at[step, port] + late, 0


class ByStep:
    """The steps of the table, at regular intervals; a row is a step. See `ByCycle`.

    Parameters
    ----------
    sums : Sums
    table : Table
    flits : int
        Flits of a block.
    """

    def __init__(self, sums, table, flits):
        self.rows = table.round_count
        self.period, self.skew = _period(sums, table.topology.ports, flits)

    def time(self, step, port):
        """The cycle in which the first flit that leaves by a port in a step is on the link."""
        return step * self.period + int(self.skew[port])

    def row(self, step, port, late=0):
        """The row and skew of what happens so many cycles after a word of a step is on a link."""
        return step, int(self.skew[port]) + late


def _period(sums, ports, flits):
    """The shortest period, and skews that allow it.

    Returns
    -------
    period : int
    skew : ndarray of int, shape (ports,)
    """
    reach = ports + SUM_AGE
    ages: set = set()
    apart: set = set()
    for step, port, key, partial, _ in sums.leaves:
        ages |= {(step - a.step, a.port, port) for a in sums.feeding(key, partial)}
    for arrivals in sums.joins.values():
        for k, later in enumerate(arrivals):
            apart |= {(later.step - a.step, a.port, later.port) for a in arrivals[:k]}
    # What lies further apart in steps keeps the rules with any skews.
    ages = {rule for rule in ages if rule[0] <= reach}
    apart = {rule for rule in apart if rule[0] <= reach}
    for period in range(flits, flits + reach + 1):
        for limit in range(ports):
            skew = _skews(period, ports, limit, ages, apart)
            if skew:
                return period, np.array(skew)
    raise AssertionError("a period of ports + 1 cycles always will do")


def _skews(period, ports, limit, ages, apart):
    """Skews up to a limit that keep all rules, or None; by trying port after port."""

    def fits(skew):
        port = len(skew) - 1
        return all(
            n * period + skew[g] - skew[q] >= SUM_AGE for n, q, g in ages if max(g, q) == port
        ) and all(n * period + skew[g] - skew[q] for n, q, g in apart if max(g, q) == port)

    def extend(skew):
        if len(skew) == ports:
            return skew
        for value in range(limit + 1):
            longer = [*skew, value]
            if fits(longer):
                found = extend(longer)
                if found:
                    return found
        return None

    return extend([])
