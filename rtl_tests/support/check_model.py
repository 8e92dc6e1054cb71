"""A second checker, with plain Python sets and no shortcuts, and hand-written schedules."""

import re
from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from torusfabric.analysis.check import check
from torusfabric.collective import Collective
from torusfabric.errors import ScheduleError
from torusfabric.schedule import (
    ALL,
    Duplex,
    Everything,
    Grouped,
    Listed,
    Pattern,
    Rounds,
    Switching,
    Table,
    Transfers,
)
from torusfabric.schedule.transfers import Payload
from torusfabric.topology import Torus

ROOTED = ("broadcast", "scatter", "gather", "reduce")

#: In place of the round of a fault: the schedule is incomplete after its last round.
END = "end"

#: Sides of tori for checks of random schedules.
SMALL = [(2,), (3,), (5,), (2, 2), (2, 3), (3, 3), (4, 3)]


class Model:
    """The set of blocks of each node; in a reduction, the set of contributions."""

    def __init__(self, schedule):
        self.schedule, self.topology = schedule, schedule.topology
        self.blocks, self.reducing = schedule.blocks, schedule.collective.reducing
        ids = range(self.blocks.n_blocks)
        self.held: list[set[int]] = [set() for _ in range(self.topology.nodes)]
        for b in ids:
            self.held[int(self.blocks.origin(b))].add(b)

    def key(self, block):
        """Return the sum that a contribution belongs to: its name without the origin."""
        return self.blocks.block_entry(block)[1:]

    def sum_of(self, held, key):
        return {b for b in held if self.key(b) == key}

    def listed(self, transfers, k):
        payload, held = transfers.payload, self.held[int(transfers.source[k])]
        match payload:
            case Everything():
                return sorted(held)
            case Grouped():
                return sorted(b for b in held if payload.group[b] == payload.wanted[k])
            case Listed():
                return [int(b) for b in payload.ids[payload.indptr[k] : payload.indptr[k + 1]]]

    def play(self, transfers):
        """Execute a round; return False at a fault."""
        schedule, topology = self.schedule, self.topology
        links, sent, received, arrivals = [], [], [], []
        gone: list[set[int]] = [set() for _ in self.held]
        for k in range(len(transfers)):
            node = int(transfers.source[k])
            path = [int(p) for p in transfers.hops[k]]
            while path and path[-1] == -1:
                path.pop()
            carried = self.listed(transfers, k)
            fits = len(path) == 1 or (len(path) > 1 and schedule.switching == Switching.CIRCUIT)
            if not fits or any(not 0 <= p < topology.ports for p in path):
                return False
            if not carried or not set(carried) <= self.held[node]:
                return False
            if self.reducing:
                for key in {self.key(b) for b in carried}:
                    part = [b for b in carried if self.key(b) == key]
                    if sorted(part) != sorted(self.sum_of(self.held[node], key)):
                        return False
                    if len(part) < topology.nodes:
                        if gone[node] & set(part):
                            return False
                        gone[node] |= set(part)
            sent.append(node)
            for port in path:
                there = int(topology.neighbours[node, port])
                arc, back = (node, port), (there, int(topology.opposite[port]))
                links.append(min(arc, back) if schedule.duplex == Duplex.HALF else arc)
                node = there
            received.append(node)
            arrivals.append((node, carried))
        if len(set(links)) < len(links):
            return False
        if any(x.count(v) > schedule.ports for x in (sent, received) for v in x):
            return False
        for held, leaving in zip(self.held, gone, strict=True):
            held -= leaving
        for node, carried in arrivals:
            if self.reducing:
                for key in {self.key(b) for b in carried}:
                    if self.sum_of(self.held[node], key) & set(carried):
                        return False
            self.held[node] |= set(carried)
        return True

    def complete(self):
        kind, root = self.schedule.collective.kind, self.schedule.collective.root
        for node, held in enumerate(self.held):
            for b in range(self.blocks.n_blocks):
                personal = kind in ("scatter", "alltoall", "reduce-scatter")
                required = int(self.blocks.destination(b)) == node if personal else True
                if kind in ("gather", "reduce"):
                    required = node == root
                if required and b not in held:
                    return False
        return True


def first_fault(schedule):
    """Return the round of the first fault by the second checker, or `END`, or None."""
    model = Model(schedule)
    for number, transfers in enumerate(schedule.rounds(), 1):
        if not model.play(transfers):
            return number
    return None if model.complete() else END


def faulty_round(schedule, prove=check):
    """Return the round of the first fault by the checker under test, or `END`, or None."""
    try:
        prove(schedule)
    except ScheduleError as error:
        if error.round is None and re.match(r"After \d+ (step|round)s?: ", str(error)):
            return END
        return error.round if str(error).startswith(f"Round {error.round}: ") else str(error)
    return None


# Hand-written schedules.


def collective(kind, root=0):
    return Collective(kind, root if kind in ROOTED else None)


def moves(*steps):
    """Return transfers from tuples (source, path) or (source, path, ids)."""
    longest = max(len(s[1]) for s in steps)
    hops = [list(s[1]) + [-1] * (longest - len(s[1])) for s in steps]
    payload: Payload = ALL
    if len(steps[0]) == 3:
        sizes = [len(s[2]) for s in steps]
        payload = Listed(np.cumsum([0, *sizes]), np.array([b for s in steps for b in s[2]]))
    return Transfers(np.array([s[0] for s in steps]), np.array(hops, np.int8), payload)


def explicit(sides, kind, *rounds, **fields):
    """Return `Rounds`, by default with circuit switching and all ports."""
    topology = Torus(sides)
    known: dict[str, Any] = {
        "algorithm": "by hand",
        "switching": Switching.CIRCUIT,
        "ports": topology.ports,
    }
    known |= {"topology": topology, "collective": collective(kind, fields.pop("root", 0))}
    return Rounds(**(known | fields), transfers=tuple(rounds))


def ring(nodes, steps, chunks=1, kind="allgather"):
    """Return a ring in which all nodes forward both ways; with two chunks, each way carries one."""
    inject = np.tile([0, chunks - 1], (nodes, 1))
    if kind == "broadcast":
        inject[1:] = -1
    return Pattern(
        topology=Torus([nodes]), collective=collective(kind), algorithm="ring",
        switching=Switching.STORE_AND_FORWARD, ports=2, chunks=chunks, steps=steps,
        feed=np.tile([1, 0], (nodes, 1)), inject=inject,
    )  # fmt: skip


def hamiltonian(rows, columns):
    """Return two edge-disjoint Hamiltonian cycles of a torus with even sides, as feed and inject.

    Meyer and Sibeyn, Theorem 1.
    """
    bottom, top, right, left = range(4)
    feed, inject = np.empty((rows * columns, 4), int), np.empty((rows * columns, 4), int)
    for j in range(columns):
        even = j % 2 == 0 or j == columns - 1
        pairs = [(top, right), (bottom, left)] if even else [(top, left), (bottom, right)]
        for chunk, (a, b) in enumerate(pairs):
            feed[j::columns, a], feed[j::columns, b] = b, a
            inject[j::columns, [a, b]] = chunk
    return feed, inject


def colour(feed, topology):
    """Return the cycle of each out-arc in two Hamiltonian cycles; cycle 0 has node 0, port 0."""
    of = np.full((topology.nodes, topology.ports), 1)
    node, port = 0, 0
    while of[node, port]:
        of[node, port] = of[node, feed[node, port]] = 0
        node, port = int(topology.neighbours[node, port]), int(topology.opposite[port])
        port = int(np.flatnonzero(feed[node] == port)[0])
    return of


def hamiltonian_pattern(rows, columns):
    topology = Torus([rows, columns])
    feed, _ = hamiltonian(rows, columns)
    return Pattern(
        topology=topology, collective=collective("allgather"), algorithm="hamiltonian",
        switching=Switching.STORE_AND_FORWARD, ports=4, chunks=2, steps=rows * columns // 2,
        feed=feed, inject=colour(feed, topology),
    )  # fmt: skip


def greedy_table(sides, kind="allgather", chunks=1):
    """Return a table in which each port delivers the first possible offset in each step, if any."""
    topology = Torus(sides)
    goals = {d: [d] for d in range(topology.nodes)}
    if kind == "alltoall":
        goals = {d: list(range(1, topology.nodes)) for d in range(topology.nodes)}
    when = {(0, c, e): 0 for c in range(chunks) for e in goals[0]}
    if kind == "allgather":
        when = {(0, c, 0): 0 for c in range(chunks)}
    rows: list[list[tuple[int, int, int]]] = []
    required = {
        (d, c, d if kind == "alltoall" else 0)
        for d in range(1, topology.nodes)
        for c in range(chunks)
    }
    while not required <= set(when):
        row: list[tuple[int, int, int]] = []
        for port, g in enumerate(topology.generators):
            able = sorted(
                (int(topology.add(d, g)), c, e)
                for (d, c, e), step in when.items()
                if step <= len(rows)
                and (kind == "allgather" or topology.distance(topology.add(d, g), e)
                     < topology.distance(d, e))
            )  # fmt: skip
            able = [x for x in able if x not in when]
            row.append(able[port % len(able)] if able else (-1, 0, 0))
            if able:
                when[row[-1]] = len(rows) + 1
        rows.append(row)
    entries = np.array(rows)
    return Table(
        topology=topology, collective=collective(kind), algorithm="greedy",
        switching=Switching.STORE_AND_FORWARD, ports=topology.ports, chunks=chunks,
        offset=entries[:, :, 0], chunk=entries[:, :, 1],
        destination=entries[:, :, 2] if kind == "alltoall" else None,
    )  # fmt: skip


def lee_code():
    """Return the 7 x 7 x 7 all-gather of Delmas and Perennes, section 5, of four rounds."""
    topology = Torus([7, 7, 7])
    label = np.array([1, 2, 3]) @ topology.coordinates(np.arange(343)) % 7
    weight = [1, -1, 2, -2, 3, -3]
    port = {(0, 1): 0, (0, -1): 1, (1, 1): 2, (1, -1): 3, (2, 1): 4, (2, -1): 5}
    spread_a = [[(1, 1), (0, -2)], [(2, -1), (1, 2), (2, 2)], [(0, 1), (1, 3)]]
    spread_b = [[(0, -3), (2, 1)], [(1, -1), (2, 2), (0, 1), (1, 1)], [(2, 3), (0, -2)]]

    def run(axis, hops):
        return [port[axis, 1 if hops > 0 else -1]] * abs(hops)

    def spread(paths):
        both = [[(axis, sign * hops) for axis, hops in path] for path in paths for sign in (1, -1)]
        return moves(*[
            (x, list(chain.from_iterable(run(*piece) for piece in path)))
            for x in np.flatnonzero(label == 0) for path in both
        ])  # fmt: skip

    concentrate = moves(*[
        (x, [p]) for x in np.flatnonzero(label) for p in range(6) if (weight[p] + label[x]) % 7 == 0
    ])  # fmt: skip
    deliver = moves(*[(x, [p]) for x in np.flatnonzero(label == 0) for p in range(6)])
    return explicit(
        (7, 7, 7), "allgather", concentrate, spread(spread_a), spread(spread_b), deliver
    )


def summing_table(sides, kind, chunks=1):
    """Return an all-gather table in reverse, as a reduction; for an all-reduce, then forwards."""
    table = greedy_table(sides, chunks=chunks)
    topology, idle = table.topology, table.offset < 0
    tail = topology.subtract(np.where(idle, 0, table.offset), topology.generators[None, :])
    offset = np.where(idle, -1, tail)[::-1, topology.opposite]
    chunk = table.chunk[::-1, topology.opposite]
    if kind == "allreduce":
        offset, chunk = np.vstack([offset, table.offset]), np.vstack([chunk, table.chunk])
        chunks *= topology.nodes
    return replace(
        table, collective=collective(kind), chunks=chunks, offset=offset, chunk=chunk,
        destination=np.zeros_like(offset), reducing=table.round_count,
    )  # fmt: skip


def sums_are_right(schedule, most=1, *, replaces=False):
    """Return True if all kept sums end complete.

    Each sum and each word is a multiset of contributions.

    Parameters
    ----------
    most : int
        Most times a contribution may be in a sum.
    replaces : bool
        True if a word that has all contributions of a sum replaces the sum.
    """
    topology = schedule.topology
    nodes = range(topology.nodes)
    sums = {(node, chunk): Counter([node]) for node in nodes for chunk in range(schedule.chunks)}
    came: dict[tuple[int, int, int], Counter[int]] = {}
    for transfers in schedule.rounds():
        arriving: dict[tuple[int, int], list[Counter[int]]] = {}
        now: dict[tuple[int, int, int], Counter[int]] = {}
        for node, port, chunk, by in zip(
            transfers.source.tolist(), transfers.hops[:, 0].tolist(),
            transfers.payload.chunk.tolist(), transfers.payload.passed.tolist(), strict=True,
        ):  # fmt: skip
            word = sums[node, chunk] if by < 0 else came.get((node, by, chunk))
            if word is None:
                return False
            target = int(topology.neighbours[node, port])
            arriving.setdefault((target, chunk), []).append(word)
            now[target, int(topology.opposite[port]), chunk] = word
        for place, words in arriving.items():
            covering = [word for word in words if sums[place].keys() <= word.keys()]
            others = [word for word in words if word not in covering]
            for word in sorted(covering, key=len) + others:
                held = sums[place]
                whole = replaces and held.keys() <= word.keys()
                sums[place] = Counter(word) if whole else held + word
        came |= now
    return all(1 <= total[node] <= most for total in sums.values() for node in nodes)
