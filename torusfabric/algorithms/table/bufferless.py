"""All-gather without buffers: a block is sent on in the step after it arrived, or never again.

Model: store-and-forward, all-port, full duplex, and a node may send in a step only what it received
in the step before, on as many ports as it likes; its own block it sends in the first step. So a
node needs one register a port, and a word a step that says which in-port feeds which out-port; in
hardware the table is a crossbar program that is the same for all nodes, and no memory is read.

For one origin, at most ``ports`` *heads* move on from one set of new offsets to the next, each in a
direction of its own. On an odd square they are four snakes in quarter turns, in closed form;
elsewhere a search with backtracking finds them, on small tori at the lower bound and on large ones
some steps above it.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from ...analysis.distance_bounds import bufferless_steps, parities
from ...collective import Collective
from ...schedule import Table
from ...topology import CayleyGraph, Torus
from ..algorithm import Algorithm, Options, every_port
from .bipartite import match

__all__ = ["BUFFERLESS", "plan", "search", "snake"]

#: Steps that one run of the search may try, and these times nodes; at least two full attempts.
BUDGET, WORK = 40_000, 20_000_000

#: Even squares with longer sides start with the snakes.
SMALL = 14

#: How often the search goes back over one more step, how much it puts far offsets off, and how
#: strongly random numbers change its preferences, drawn anew each time it goes back.
RETREAT, FARNESS, NOISES = 0.75, 0.1, (1.0, 0.5, 2.0, 4.0)


def snake(topology: Torus) -> np.ndarray:
    """Four snakes in quarter turns: a closed form for odd squares.

    Parameters
    ----------
    topology : Torus
        n x n.

    Returns
    -------
    ndarray of int, shape (steps, 4)
        The offset that each port delivers in each step.

    Notes
    -----
    With h = floor((n - 1) / 2), snake 0 visits (x, y) for y = 0..h, with x from 1 to h if y is even
    and back if it is odd; snake q + 1 is snake q turned from (x, y) to (-y, x). For odd n they
    visit all offsets but 0 once, in (n * n - 1) / 4 steps, and every node turns all four streams
    the same way in a step. For even n row and column n / 2 are left.
    """
    half = (topology.sides[0] - 1) // 2
    rows = [np.arange(1, half + 1)[:: 1 if y % 2 == 0 else -1] for y in range(half + 1)]
    x, y = np.concatenate(rows), np.repeat(np.arange(half + 1), half)
    dx, dy = np.diff(x, prepend=0), np.diff(y, prepend=0)
    offset = np.empty((len(x), 4), dtype=np.int64)
    for _ in range(4):
        port = np.where(dx != 0, (dx < 0), 2 + (dy < 0))
        offset[np.arange(len(x)), port] = topology.node((x, y))
        x, y, dx, dy = -y, x, -dy, dx
    return offset


def search(
    topology: CayleyGraph, seed: int = 0, start: Sequence[Sequence[int]] | np.ndarray = ()
) -> np.ndarray:
    """Find heads for any torus, at the bound or as near to it as the search gets.

    Parameters
    ----------
    start : sequence of sequence of int
        What each port delivers in the first steps.

    Returns
    -------
    ndarray of int, shape (steps, ports)
        The offset that each port delivers in each step, -1 where none.

    Notes
    -----
    In a step, offsets next to a head that are not yet delivered are matched to ports, first those
    with fewest undelivered neighbours, nearest to the origin, changed at random. As soon as the
    idle ports are more than the time allows, a few steps are taken back. If no plan within the
    bound is found by then, time is added: 1, 2, 4, .. steps, and then taken back by halves.
    """
    runs = _Search(topology, seed, start)
    best, low, high = runs.run(0), 0, 0
    while best is None:
        low, high = high + 1, max(1, 2 * high)
        best = runs.run(high)
    while low < high:
        extra = (low + high) // 2
        found = runs.run(extra)
        if found is None:
            low = extra + 1
        else:
            best, high = found, extra
    return np.array(best, dtype=np.int64).reshape(-1, topology.ports)


class _Search:
    """The state of a search: which offsets each step so far delivers, and what is left."""

    def __init__(
        self, topology: CayleyGraph, seed: int, start: Sequence[Sequence[int]] | np.ndarray
    ) -> None:
        self.topology = topology
        self.neighbours = topology.neighbours.tolist()
        self.distance = topology.distances.tolist()
        self.parity = parities(topology).tolist()
        self.bound = bufferless_steps(topology)
        self.rng = random.Random(seed)
        self.start = [dict(enumerate(row)) for row in start]

    def run(self, extra: int) -> list[list[int]] | None:
        """Plan within ``extra`` steps above the bound: what each step delivers, or None."""
        steps, ports = self.bound + extra, self.topology.ports
        self.done = bytearray(self.topology.nodes)
        self.free = [ports] * self.topology.nodes
        self.noise = NOISES[0]
        self.left = [0, 0]
        for parity in self.parity:
            self.left[parity] += 1
        self.rows: list[dict[int, int]] = []
        self.fresh: list[list[int]] = []
        self._mark([0])
        for row in self.start:
            self._enter(row)
        for _ in range(max(2 * steps, min(BUDGET, WORK // self.topology.nodes))):
            if not any(self.left):
                return [[row.get(port, -1) for port in range(ports)] for row in self.rows]
            now = len(self.rows)
            odd = (steps + 1) // 2 - (now + 1) // 2 if max(self.parity) else 0
            room = ports * (steps - now - odd), ports * odd
            if self.left[0] > room[0] or self.left[1] > room[1]:
                self._retreat()
            self._advance()
        return None

    def _mark(self, offsets: Iterable[int]) -> None:
        """Note that offsets are delivered."""
        for offset in offsets:
            self.done[offset] = 1
            self.left[self.parity[offset]] -= 1
            for neighbour in self.neighbours[offset]:
                self.free[neighbour] -= 1

    def _retreat(self) -> None:
        """Take back some steps, mostly few."""
        self.noise = self.rng.choice(NOISES)
        while self.rows:
            self.rows.pop()
            for offset in self.fresh.pop():
                self.done[offset] = 0
                self.left[self.parity[offset]] += 1
                for neighbour in self.neighbours[offset]:
                    self.free[neighbour] += 1
            if self.rng.random() > RETREAT:
                return

    def _advance(self) -> None:
        """Plan one more step: match ports to offsets next to heads."""
        heads = self.rows[-1].values() if self.rows else [0]
        ports = defaultdict(list)
        for head in heads:
            for port, offset in enumerate(self.neighbours[head]):
                if not self.done[offset]:
                    ports[offset].append(port)
        urgency = {
            offset: self.free[offset]
            + FARNESS * self.distance[offset]
            + self.noise * self.rng.random()
            for offset in ports
        }
        order = sorted(ports, key=urgency.__getitem__)
        taken = match([ports[offset] for offset in order])
        row = {port: order[index] for index, port in taken.items()}
        self._enter(row) if row else self._enter(self._walk(heads), fresh=())

    def _enter(self, row: dict[int, int], fresh: Iterable[int] | None = None) -> None:
        """Add a step; fresh are the offsets that had not been delivered."""
        self.rows.append(row)
        self.fresh.append(list(row.values() if fresh is None else fresh))
        self._mark(self.fresh[-1])

    def _walk(self, heads: Iterable[int]) -> dict[int, int]:
        """Bring the head nearest to an offset that is left one hop nearer, past delivered ones."""
        heads, left = np.array(list(heads)), np.nonzero(np.frombuffer(self.done, np.uint8) == 0)[0]
        ways = self.topology.distance(heads[:, None], left[None, :])
        nearest, goal = np.unravel_index(ways.argmin(), ways.shape)
        onward = self.neighbours[heads[nearest]]
        port = int(self.topology.distance(np.array(onward), left[goal]).argmin())
        return {port: onward[port]}


def plan(topology: CayleyGraph, collective: Collective, options: Options) -> Table:
    """Plan an all-gather; chunks are gathered one after the other.

    Parameters
    ----------
    options : Options
        ``chunks`` of a message and the ``seed`` of the search.

    Notes
    -----
    With M chunks, M (N - 1) / 4 steps on an odd square: the lower bound. Elsewhere at least
    M times `bufferless_steps`, and no more on the small tori tried.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = BUFFERLESS(tf.parse_topology("7x7"), tf.parse_collective("allgather"))
    >>> schedule.round_count, (49 - 1) / 4
    (12, 12.0)
    """
    if isinstance(topology, Torus) and topology.sides == (topology.sides[0],) * 2:
        snakes, side = snake(topology), topology.sides[0]
        whole = side % 2 == 1  # else row and column side / 2 are left
        offset = snakes if whole else search(topology, options.seed, snakes if side > SMALL else ())
    else:
        offset = search(topology, options.seed)
    chunks = options.chunks or 1
    chunk = np.repeat(np.arange(chunks), len(offset))[:, None]
    offset = np.tile(offset, (chunks, 1))
    return Table(
        topology=topology,
        collective=collective,
        chunks=chunks,
        offset=offset,
        chunk=np.where(offset >= 0, chunk, -1),
    )


BUFFERLESS = Algorithm(
    name="bufferless",
    source="beyond the papers; compare Meyer and Sibeyn 2002",
    summary="blocks never rest: one register a port, and a crossbar program for all nodes",
    collectives=("allgather",),
    options=("ports", "chunks", "seed"),
    misfit=lambda topology, collective, options: every_port(options, topology.ports),
    plan=plan,
    most_arcs=2**9,
)
