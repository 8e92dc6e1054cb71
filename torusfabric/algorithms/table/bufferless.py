"""All-gather without buffers: a block leaves a node in the step after it arrived, or never again.

Model: store-and-forward, all-port, full duplex. A node may send in a step only blocks that it
received in the step before, each on any number of ports. Its own block it sends in the first step.
So a node needs one register a port, and one word a step that says which in-port feeds which
out-port. In hardware the table is a crossbar program that is the same for all nodes, and no memory
is read.

The plan follows the block of one origin, node 0. In each step at most ``ports`` *heads*, the
offsets that the block has just reached, deliver it to new offsets, each by a different port. On an
odd square the heads are four *snakes* in quarter turns, in closed form. Elsewhere a search with
backtracking finds them: at the lower bound on small tori, some steps above it on large ones.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from ...analysis.distance_bounds import bufferless_steps, node_parities
from ...collective import Collective
from ...schedule import Table
from ...topology import CayleyGraph, Torus
from ..algorithm import Algorithm, Options, all_ports_reason
from .bipartite import maximum_matching

__all__ = ["BUFFERLESS", "plan", "search_offsets", "snake_offsets"]

#: The largest number of steps that one run of the search tries, and that number times nodes. A run
#: may always try twice the steps of a full plan.
BUDGET, WORK_LIMIT = 40_000, 20_000_000

#: Even squares with longer sides start the search with the snakes.
LARGEST_SMALL_SIDE = 14

#: Parameters of the search: the probability of taking back one more step; the penalty of an offset
#: for each hop of its distance; the amplitudes of random changes of the preferences, one of which
#: is chosen anew each time that steps are taken back.
RETREAT_PROBABILITY, DISTANCE_WEIGHT, NOISES = 0.75, 0.1, (1.0, 0.5, 2.0, 4.0)


def snake_offsets(topology: Torus) -> np.ndarray:
    """Return four paths (snakes) that together visit all nodes of an odd square.

    Each snake is the one before, turned by a quarter. The block of node 0 travels along all four at
    the same time, a node a step.

    Parameters
    ----------
    topology : Torus
        A torus of n x n nodes.

    Returns
    -------
    ndarray of int, shape (steps, 4)
        The offset from node 0 of the node that each port reaches in each step.

    Notes
    -----
    Let h = floor((n - 1) / 2). Snake 0 visits (x, y) for y = 0..h, with x from 1 to h if y is even
    and from h to 1 if it is odd. Snake q + 1 is snake q turned from (x, y) to (-y, x). For odd n
    the snakes visit all offsets but 0 once, in (n * n - 1) / 4 steps, and every node turns all four
    streams the same way in a step. For even n, row n / 2 and column n / 2 remain.

    The step in which each offset (x, y) of a 5 x 5 torus is delivered::

        y =  2   6 3 2 5 6
             1   5 4 1 4 3
             0   2 1   1 2
            -1   3 4 1 4 5
            -2   6 5 2 3 6
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


def search_offsets(
    topology: CayleyGraph, seed: int = 0, start: Sequence[Sequence[int]] | np.ndarray = ()
) -> np.ndarray:
    """Search for an all-gather in which blocks never wait, in few steps, on any Cayley graph.

    In each step the block of node 0 moves on from the nodes that it reached in the step before.

    Parameters
    ----------
    seed : int
        Seed of the search.
    start : sequence of sequence of int
        For each of the first steps, the offset that each port delivers; the search continues from
        there.

    Returns
    -------
    ndarray of int, shape (steps, ports)
        The offset, from node 0, of the node that each port reaches in each step; -1 for an idle
        port.

    Notes
    -----
    A head is a node that the block has just reached. In a step, undelivered offsets next to a head
    are matched to ports. Offsets with few undelivered neighbours come first, then near ones, with
    random changes. As soon as more ports have been idle than the time allows, a few steps are taken
    back. If no plan within the bound is found, 1, 2, 4, .. steps are added until a plan is found;
    then a bisection looks for the fewest.
    """
    runs = _OffsetSearch(topology, seed, start)
    best, low, high = runs.plan_within(0), 0, 0
    while best is None:
        low, high = high + 1, max(1, 2 * high)
        best = runs.plan_within(high)
    while low < high:
        extra = (low + high) // 2
        found = runs.plan_within(extra)
        if found is None:
            low = extra + 1
        else:
            best, high = found, extra
    return np.array(best, dtype=np.int64).reshape(-1, topology.ports)


class _OffsetSearch:
    """A search for an all-gather in which blocks never wait.

    It has the steps planned so far, and the offsets from node 0 that its block has not yet reached.
    """

    def __init__(
        self, topology: CayleyGraph, seed: int, start: Sequence[Sequence[int]] | np.ndarray
    ) -> None:
        self.topology = topology
        self.neighbours = topology.neighbours.tolist()
        self.distance = topology.distances.tolist()
        self.parity = node_parities(topology).tolist()
        self.bound = bufferless_steps(topology)
        self.rng = random.Random(seed)
        self.start = [dict(enumerate(row)) for row in start]

    def plan_within(self, extra: int) -> list[list[int]] | None:
        """Search for a plan of at most ``extra`` steps above the lower bound.

        The plan has, for each step, the offset that each port delivers, -1 for an idle port. The
        result is None if none is found.
        """
        steps, ports = self.bound + extra, self.topology.ports
        self.done = bytearray(self.topology.nodes)
        self.free = [ports] * self.topology.nodes
        self.noise = NOISES[0]
        self.left = [0, 0]
        for parity in self.parity:
            self.left[parity] += 1
        self.rows: list[dict[int, int]] = []
        self.fresh: list[list[int]] = []
        self._mark_delivered([0])
        for row in self.start:
            self._add_step(row)
        for _ in range(max(2 * steps, min(BUDGET, WORK_LIMIT // self.topology.nodes))):
            if not any(self.left):
                return [[row.get(port, -1) for port in range(ports)] for row in self.rows]
            now = len(self.rows)
            odd = (steps + 1) // 2 - (now + 1) // 2 if max(self.parity) else 0
            room = ports * (steps - now - odd), ports * odd
            if self.left[0] > room[0] or self.left[1] > room[1]:
                self._take_back_steps()
            self._plan_step()
        return None

    def _mark_delivered(self, offsets: Iterable[int]) -> None:
        """Record that the block of node 0 has reached the nodes at some offsets."""
        for offset in offsets:
            self.done[offset] = 1
            self.left[self.parity[offset]] -= 1
            for neighbour in self.neighbours[offset]:
                self.free[neighbour] -= 1

    def _take_back_steps(self) -> None:
        """Take back a random number of the last steps, and undo their deliveries."""
        self.noise = self.rng.choice(NOISES)
        while self.rows:
            self.rows.pop()
            for offset in self.fresh.pop():
                self.done[offset] = 0
                self.left[self.parity[offset]] += 1
                for neighbour in self.neighbours[offset]:
                    self.free[neighbour] += 1
            if self.rng.random() > RETREAT_PROBABILITY:
                return

    def _plan_step(self) -> None:
        """Plan one more step, in which the block of node 0 reaches as many new nodes as possible.

        Ports are matched to unreached neighbours of the nodes that the block has just reached. If
        there are none, the step leads towards an unreached node.
        """
        heads = self.rows[-1].values() if self.rows else [0]
        ports = defaultdict(list)
        for head in heads:
            for port, offset in enumerate(self.neighbours[head]):
                if not self.done[offset]:
                    ports[offset].append(port)
        urgency = {
            offset: self.free[offset]
            + DISTANCE_WEIGHT * self.distance[offset]
            + self.noise * self.rng.random()
            for offset in ports
        }
        order = sorted(ports, key=urgency.__getitem__)
        taken = maximum_matching([ports[offset] for offset in order])
        row = {port: order[index] for index, port in taken.items()}
        self._add_step(row) if row else self._add_step(self._step_towards(heads), fresh=())

    def _add_step(self, row: dict[int, int], fresh: Iterable[int] | None = None) -> None:
        """Add a step to the plan: `row` has the offset that each port delivers.

        `fresh` has the offsets that no earlier step has delivered; by default they are all in
        `row`.
        """
        self.rows.append(row)
        self.fresh.append(list(row.values() if fresh is None else fresh))
        self._mark_delivered(self.fresh[-1])

    def _step_towards(self, heads: Iterable[int]) -> dict[int, int]:
        """Return a step that moves the block over nodes that have it, towards a node without it.

        `heads` are the offsets that the block has just reached; the one nearest to such a node
        moves. The result maps the port of this move to the offset that the move reaches.
        """
        heads, left = np.array(list(heads)), np.nonzero(np.frombuffer(self.done, np.uint8) == 0)[0]
        ways = self.topology.distance(heads[:, None], left[None, :])
        nearest, goal = np.unravel_index(ways.argmin(), ways.shape)
        onward = self.neighbours[heads[nearest]]
        port = int(self.topology.distance(np.array(onward), left[goal]).argmin())
        return {port: onward[port]}


def plan(topology: CayleyGraph, collective: Collective, options: Options) -> Table:
    """Plan an all-gather in which blocks never wait; chunks are gathered one after another.

    Parameters
    ----------
    collective : Collective
        The all-gather.
    options : Options
        ``chunks`` of a message and the ``seed`` of the search.

    Notes
    -----
    With M chunks, the plan takes M (N - 1) / 4 steps on an odd square, the lower bound. On other
    networks it takes at least M times `bufferless_steps`, and exactly as many on the small tori
    tried.

    Examples
    --------
    The number of steps, and the lower bound:

    >>> import torusfabric as tf
    >>> schedule = BUFFERLESS(tf.parse_topology("7x7"), tf.parse_collective("allgather"))
    >>> schedule.round_count, (49 - 1) / 4
    (12, 12.0)
    """
    if isinstance(topology, Torus) and topology.sides == (topology.sides[0],) * 2:
        snakes, side = snake_offsets(topology), topology.sides[0]
        whole = side % 2 == 1  # else row and column side / 2 remain
        offset = (
            snakes
            if whole
            else search_offsets(topology, options.seed, snakes if side > LARGEST_SMALL_SIDE else ())
        )
    else:
        offset = search_offsets(topology, options.seed)
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
    summary="blocks move in every step: one register per port, one program for all nodes",
    collectives=("allgather",),
    options=("ports", "chunks", "seed"),
    misfit=lambda topology, collective, options: all_ports_reason(options, topology.ports),
    plan=plan,
    most_arcs=2**9,
)
