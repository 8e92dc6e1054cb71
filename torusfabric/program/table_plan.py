"""How one node carries out a table: which memory keeps what, and what feeds each out-port.

A word that arrived ``k`` cycles ago is taken straight off its in-port (k = 1), out of a register
behind it (k = 2), or out of a memory (k >= 3: it is written, read, and on its way again). So a
table runs at a step a cycle whatever its latency, and a table that never lets a word rest needs no
memory on its way. Each memory has one write port and one read port; where two words that came by
the same in-port leave in the same step, the second has a memory of its own, which keeps words only
while they wait.
"""

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from .node_plan import FOREVER, Bank, NodePlan
from .timing import MEMORY_AGE

__all__ = ["TablePlan", "plan_table"]


@dataclass(frozen=True, eq=False)
class TablePlan(NodePlan):
    """The program of a node, the same for all.

    Parameters
    ----------
    by_waves : bool
        Whether the whole table is run for the first flit of each block, then for the second, ..;
        else all flits of a block move in each step.
    flits : int
        Flits of a block.
    delayed : tuple of int
        The in-ports with a register behind them.
    banks : tuple of Bank
        What arrives is kept in the first `ports` of them, one for each in-port; those after that
        keep words that wait.
    own : tuple of Bank
        What a node sends.
    select : ndarray of int, shape (steps, ports)
        What feeds each out-port, -1 for nothing: an in-port; numbered after those, a register of
        `delayed`; after those, a bank of `banks` and then of `own`.
    bank, slot : ndarray of int, shape (nodes, chunks)
        Where a node keeps what is delivered to it, by its offset from the origin; the bank of what
        is its own is counted in `own`.
    own_bank, own_slot : ndarray of int, shape (destinations, chunks)
        Where a node keeps what it sends, by the offset to its destination if it has one.
    """

    by_waves: bool
    flits: int
    delayed: tuple[int, ...]
    banks: tuple[Bank, ...]
    own: tuple[Bank, ...]
    select: np.ndarray
    bank: np.ndarray
    slot: np.ndarray
    own_bank: np.ndarray
    own_slot: np.ndarray

    @property
    def period(self):
        """Cycles of a step."""
        return 1 if self.by_waves else self.flits

    @property
    def result_bank(self):
        """Where a node keeps what is delivered to it, numbered over `banks` and `own`."""
        own = np.arange(len(self.bank)) == 0
        return self.bank + np.where(own[:, None], len(self.banks), 0)

    @property
    def cost(self):
        """What to keep small: look-up tables a bit, memories that are read, registers."""
        inputs = [len(np.unique(column[column >= 0])) for column in self.select.T]
        read = sum((bank.read >= 0).any() for bank in self.banks)
        return sum(-(-count // 2) for count in inputs if count > 1), read, len(self.delayed)


class Use(NamedTuple):
    """A block of another node that is sent: when, by which port, and how it came."""

    step: int
    port: int
    came: tuple[int, int]  # in-port, step


class Traffic:
    """What a node sends and receives, by its offset from the origins of the blocks.

    Parameters
    ----------
    table : Table
        Not a reduction.

    Attributes
    ----------
    arrivals : dict
        Of each block (offset of the node, destination, chunk): by which in-ports it comes in which
        steps.
    forwarded : list of (step, port, block)
    sent : dict
        Of each own block (destination, chunk): in which steps it leaves by which ports.
    """

    def __init__(self, table):
        topology = table.topology
        steps, ports = np.nonzero(table.offset >= 0)
        offset, chunk = table.offset[steps, ports], table.chunk[steps, ports]
        personal = table.destination is not None
        target = table.destination[steps, ports] if personal else np.zeros_like(offset)
        origin = topology.subtract(offset, topology.generators[ports])
        came = topology.opposite[ports]
        self.arrivals = defaultdict(list)
        self.forwarded, self.sent = [], defaultdict(list)
        for step, port, there, here, goal, part, by in zip(
            *(x.tolist() for x in (steps, ports, offset, origin, target, chunk, came)), strict=True
        ):
            if here:
                self.forwarded.append((step, port, (here, goal, part)))
            else:
                self.sent[goal, part].append((step, port))
            if there:
                self.arrivals[there, goal, part].append((by, step))

    def uses(self, latest):
        """What is forwarded, as `Use`: of several arrivals the latest in time, or the first."""
        for step, port, block in self.forwarded:
            came = [(by, when) for by, when in self.arrivals[block] if when < step]
            yield Use(step, port, came[-1] if latest else came[0])


def plan_table(table, flits):
    """Plan what a node does.

    Parameters
    ----------
    table : Table
    flits : int
        Flits of a block.

    Returns
    -------
    TablePlan
        The cheapest of all orders in which words can move without a pause.
    """
    traffic = Traffic(table)
    plans = [
        _Planner(table, traffic, flits, by_waves, latest).plan()
        for by_waves in ([True] if flits == 1 else [True, False])
        for latest in (True, False)
    ]
    return min(plans, key=lambda plan: plan.cost)


class _Planner:
    """Plans one order of the words."""

    def __init__(self, table, traffic, flits, by_waves, latest):
        self.table, self.traffic, self.flits, self.by_waves = table, traffic, flits, by_waves
        self.steps, self.ports = table.offset.shape
        self.uses = list(traffic.uses(latest))
        self.feeds = defaultdict(set)  # out-port -> what feeds it
        self.chosen = {}  # (step, out-port) -> what feeds it

    def plan(self):
        """The plan."""
        own, own_bank, own_slot = self._own()
        delayed = self._bypass()
        reads = self._lanes()
        kept = self._kept()
        slots, banks = self._banks(reads, kept)
        first = self.ports + len(delayed)
        number = {("rx", q): q for q in range(self.ports)}
        number |= {("delay", q): self.ports + k for k, q in enumerate(delayed)}
        number |= {("bank", bank): first + k for k, bank in enumerate(banks)}
        number |= {("own", k): first + len(banks) + k for k in range(len(own))}
        select = np.full((self.steps, self.ports), -1)
        for (step, port), source in self.chosen.items():
            select[step, port] = number[source]
        nodes, chunks = self.table.topology.nodes, own_slot.shape[1]
        bank, slot = np.full((2, nodes, chunks), -1)
        bank[0], slot[0] = own_bank[0], own_slot[0]
        for (offset, chunk), came in kept.items():
            bank[offset, chunk], slot[offset, chunk] = came[0], slots[(came[0], 0), came]
        return TablePlan(self.by_waves, self.flits, delayed, tuple(banks.values()), own, select,
                         bank, slot, own_bank, own_slot)  # fmt: skip

    def _age(self, use):
        """Cycles that a word waits, from its arrival on."""
        return (use.step - use.came[1]) * (1 if self.by_waves else self.flits)

    def _choose(self, step, port, source):
        self.chosen[step, port] = source
        self.feeds[port].add(source)

    def _own(self):
        """Banks for what a node sends; blocks that leave in the same step are in different ones."""
        personal = self.table.destination is not None
        shape = (self.table.topology.nodes if personal else 1, self.table.chunks)
        sent = self.traffic.sent
        colour = _colours(np.ndindex(shape), sent)
        bank, slot = np.zeros((2, *shape), int)
        depth = [0] * (max(colour.values()) + 1)
        # In the order in which they leave, unless one bank holds a message as the host writes it.
        order = sorted(colour, key=lambda block: sent.get(block, [(self.steps, 0)])[0])
        for block in order if len(depth) > 1 or personal else np.ndindex(shape):
            bank[block], slot[block] = colour[block], depth[colour[block]]
            depth[colour[block]] += 1
        read = np.full((len(depth), self.steps), -1)
        for block, leaving in sent.items():
            for step, port in leaving:
                read[bank[block], step] = slot[block]
                self._choose(step, port, ("own", int(bank[block])))
        none = np.full(self.steps, -1)
        own = tuple(Bank(-1, d, none, r) for d, r in zip(depth, read, strict=True))
        return own, bank, slot

    def _bypass(self):
        """Let words that wait for less than a memory takes go past it; the in-ports delayed."""
        for use in self.uses:
            if self._age(use) < MEMORY_AGE:
                kind = "rx" if self._age(use) == 1 else "delay"
                self._choose(use.step, use.port, (kind, use.came[0]))
        used = set().union(*self.feeds.values())
        return tuple(sorted(q for kind, q in used if kind == "delay"))

    def _lanes(self):
        """Give each word that rests a memory to be read from in each step.

        Returns
        -------
        dict
            ``reads[in-port, lane][came]`` lists the steps in which a word is read from a lane.
        """
        wanted: dict = defaultdict(lambda: defaultdict(list))
        for use in self.uses:
            if self._age(use) >= MEMORY_AGE:
                wanted[use.step, use.came[0]][use.came].append(use.port)
        reads: dict = defaultdict(lambda: defaultdict(list))
        for (step, q), words in sorted(wanted.items()):
            taken: set[int] = set()
            for came, ports in words.items():
                lane = self._lane(q, came, ports, taken, reads)
                taken.add(lane)
                reads[q, lane][came].append(step)
                for port in ports:
                    self._choose(step, port, ("bank", (q, lane)))
        return reads

    def _lane(self, q, came, ports, taken, reads):
        """The lane that costs least: the word is in it, or its out-ports are connected to it."""
        free = [lane for lane in range(len(taken) + 1) if lane not in taken]
        return min(free, key=lambda lane: (
            sum(("bank", (q, lane)) not in self.feeds[port] for port in ports),
            came not in reads[q, lane],
            lane,
        ))  # fmt: skip

    def _kept(self):
        """In-port and step by which each block comes that is delivered, by offset and chunk."""
        personal = self.table.destination is not None
        return {
            (offset, chunk): arrivals[0]
            for (offset, destination, chunk), arrivals in self.traffic.arrivals.items()
            if not personal or offset == destination
        }

    def _banks(self, reads, kept):
        """Places in all banks: a place is used again as soon as what it held has left."""
        until: dict = defaultdict(dict)
        for lane, words in reads.items():
            for came, steps in words.items():
                until[lane][came] = max(steps)
        for came in kept.values():
            until[came[0], 0][came] = FOREVER
        slots, banks = {}, {}
        lanes = [(q, 0) for q in range(self.ports)]
        for q, lane in lanes + sorted(key for key in until if key[1]):
            write, read = np.full((2, self.steps), -1)
            depth = 0
            free: list[int] = []
            leaving: list[tuple[int, int]] = []
            for came, end in sorted(until[q, lane].items(), key=lambda item: item[0][1]):
                while leaving and leaving[0][0] <= came[1]:
                    heappush(free, heappop(leaving)[1])
                slot = heappop(free) if free else depth
                depth = max(depth, slot + 1)
                heappush(leaving, (end, slot))
                slots[(q, lane), came] = write[came[1]] = slot
                read[reads[q, lane].get(came, [])] = slot
            banks[q, lane] = Bank(q, depth, write, read)
        return slots, banks


def _colours(blocks, sent):
    """Number the banks of own blocks, so that those that leave in the same step are apart.

    Parameters
    ----------
    blocks : iterable
    sent : dict
        Of each block that is sent, in which steps it leaves by which ports.

    Returns
    -------
    dict
        All in one bank if that will do, else by the port where each leaves by one port only, else
        the first bank without a block that leaves in the same step.
    """
    blocks = list(blocks)
    leaving = defaultdict(set)
    for block, uses in sent.items():
        for step, _ in uses:
            leaving[step].add(block)
    if all(len(together) == 1 for together in leaving.values()):
        return dict.fromkeys(blocks, 0)
    colour = {}
    if all(len({port for _, port in uses}) == 1 for uses in sent.values()):
        ports = sorted({uses[0][1] for uses in sent.values()})
        colour = {block: ports.index(uses[0][1]) for block, uses in sent.items()}
    else:
        for block in sorted(sent, key=lambda block: sent[block][0]):
            rivals = set().union(*(leaving[step] for step, _ in sent[block]))
            taken = {colour.get(rival) for rival in rivals}
            colour[block] = next(k for k in range(len(blocks)) if k not in taken)
    return dict.fromkeys(blocks, 0) | colour
