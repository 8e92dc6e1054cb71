"""All-to-all on any torus as a preemptive open shop.

A block for the node at offset ``d`` needs a fixed number of hops on each port, in any order: on a
torus |d_i| hops along axis i, in the direction of the sign of d_i. So blocks are the jobs of an
open shop, and ports are its machines. A block may wait in any node on its way. T = max(largest port
load, longest route) steps are enough (Konig's edge colouring), and the plan for origin 0 serves all
origins.

References
----------
[1] T. Gonzalez, S. Sahni, "Open Shop Scheduling to Minimize Finish Time", J. ACM 23 (1976).
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from ....topology import CayleyGraph, IntArray, Torus
from ..bipartite import maximum_matching
from .exchange import plan_exchange

__all__ = ["plan_alltoall", "alltoall_bound", "balanced_routes"]

#: The most hops, of all blocks together, with which a small router is looked for; more would take
#: seconds.
LARGE_HOPS = 10_000

#: The most different changes of routes of which pairs are tried, because a pair costs an entry of a
#: matrix.
MOST_CHANGES = 1000


def alltoall_bound(routes: np.ndarray, latency: int = 1) -> int:
    """Return a lower bound on the steps in which blocks with given routes reach their ends.

    Parameters
    ----------
    routes : ndarray of int, shape (blocks, ports)
        The hops of each block on each port.
    latency : int
        Steps from the arrival of a block to its earliest departure.
    """
    longest = int(routes.sum(axis=1).max())
    return max(int(routes.sum(axis=0).max()), 1 + (longest - 1) * latency)


def balanced_routes(
    topology: CayleyGraph, chunks: int = 1, goals: IntArray | None = None
) -> np.ndarray:
    """Choose a shortest route from node 0 for each block, so that the ports are loaded evenly.

    Parameters
    ----------
    chunks : int
        Number of chunks of a message; each chunk has a route of its own.
    goals : ndarray of int, optional
        The nodes that get a message from node 0; by default all.

    Returns
    -------
    ndarray of int, shape (goals * chunks, ports)
        The number of hops on each port. Row k * chunks + c is for chunk c of the message to the
        k-th goal.

    Notes
    -----
    Hops that all shortest routes of an offset share are counted first. Then each offset with a
    choice (digits s / 2 of a torus) takes the route that keeps the sum of the squared loads least.
    Routes may be changed until no change lowers the sum. On a torus the axes are independent, so
    this shares blocks evenly between the two directions of each axis, and no choice of shortest
    routes has a smaller largest load. On other networks, the routes of two blocks are then changed
    at once as long as this lowers the sum.
    """
    choices = _shortest_routes(topology)
    if goals is not None:
        choices = [choices[node] for node in goals.tolist()]
    shared = np.array([np.min(routes, axis=0) for routes in choices])
    extras = {
        goal * chunks + chunk: (np.array(options) - shared[goal]).tolist()
        for goal, options in enumerate(choices)
        if len(options) > 1
        for chunk in range(chunks)
    }
    load = (chunks * shared.sum(axis=0)).tolist()
    taken: dict[int, list[int]] = {}
    changed = True
    while changed:
        changed = False
        for block, extra in extras.items():
            mine = taken.get(block)
            if mine:
                load = [carried - hops for carried, hops in zip(load, mine, strict=True)]
            best = min(extra, key=lambda hops: (_load_increase(hops, load), hops != mine))
            changed |= best != mine
            taken[block] = best
            load = [carried + hops for carried, hops in zip(load, best, strict=True)]
        if not (changed or isinstance(topology, Torus)):
            changed = _exchange_pair(extras, taken, load)
    routes = np.repeat(shared, chunks, axis=0)
    for block, best in taken.items():
        routes[block] += best
    return routes


def _exchange_pair(
    extras: dict[int, list[list[int]]], taken: dict[int, list[int]], load: list[int]
) -> bool:
    """Change the routes of two blocks if this lowers the sum of squared port loads, else none.

    Return True if routes were changed; `taken` and `load` are updated. Of all pairs, the pair that
    lowers the sum most is chosen.

    Parameters
    ----------
    extras : dict of int to list of list of int
        For each block with a choice, the hops on each port of each of its routes.
    taken : dict of int to list of int
        The route that each block takes.
    load : list of int
        The load of each port.
    """
    changes: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for block, options in extras.items():
        for option in options:
            change = tuple(b - a for a, b in zip(taken[block], option, strict=True))
            if any(change):
                changes.setdefault(change, {}).setdefault(block, option)
    if not changes or len(changes) > MOST_CHANGES:
        return False
    each = np.array([*changes])
    own = each @ (2 * np.array(load)) + (each**2).sum(axis=1)
    both = own[:, None] + own + 2 * each @ each.T
    for pair in np.argsort(both, axis=None, kind="stable").tolist():
        one, two = divmod(pair, len(each))
        if both[one, two] >= 0:
            return False
        first, second = (changes[tuple(each[k].tolist())] for k in (one, two))
        blocks = next(((a, b) for a in first for b in second if a != b), None)
        if blocks is not None:
            for block, fitting in zip(blocks, (first, second), strict=True):
                taken[block] = fitting[block]
            load[:] = (np.array(load) + each[one] + each[two]).tolist()
            return True
    return False


def _load_increase(hops: Sequence[int], load: Sequence[int]) -> int:
    """Return the increase of the sum of squared port loads if a block with `hops` is added.

    `hops` and `load` have one entry for each port.
    """
    return sum(more * (2 * carried + more) for more, carried in zip(hops, load, strict=True))


def _shortest_routes(topology: CayleyGraph) -> list[list[tuple[int, ...]]]:
    """Return, for each node, all shortest routes from node 0, such as ``[(1, 0, 1, 0)]``.

    A route is given by the number of hops on each port.
    """
    distance, neighbours = topology.distances.tolist(), topology.neighbours.tolist()
    found: list[set[tuple[int, ...]]] = [set() for _ in distance]
    found[0].add((0,) * topology.ports)
    for node in np.argsort(topology.distances, kind="stable").tolist():
        for port, onward in enumerate(neighbours[node]):
            if distance[onward] == distance[node] + 1:
                found[onward].update(
                    (*hops[:port], hops[port] + 1, *hops[port + 1 :]) for hops in found[node]
                )
    return [sorted(choices) for choices in found]


def plan_alltoall(
    topology: CayleyGraph,
    chunks: int = 1,
    latency: int = 1,
    seed: int = 0,
    goals: IntArray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Plan the blocks that node 0 sends to every node, or to some, in the fewest steps found.

    All other nodes do the same.

    Parameters
    ----------
    chunks : int
        Number of chunks of a message.
    latency : int
        Steps from the arrival of a block to its earliest departure.
    seed : int
        Seed of the search.
    goals : ndarray of int, optional
        The nodes that get a message from node 0; by default all.

    Returns
    -------
    offset, chunk, destination : ndarray of int, shape (steps, ports)
        For each step and port, the node that a block of node 0 reaches, its chunk, and its
        destination (with `goals`, the index of the goal); -1 for an idle port.

    Notes
    -----
    An open shop gives a schedule. In each of its steps a matching joins ports, those with the most
    remaining hops first, to blocks: those in flight first, then those with the longest route. A
    port that has hops to spare starts a new block only while fewer than ``ports * (2 latency - 1)``
    blocks are in flight, so that nodes keep few. Then a schedule with a small router and no more
    steps is looked for, see `exchange`, and preferred.
    """
    routes = balanced_routes(topology, chunks, goals)
    bound = alltoall_bound(routes, latency)
    shop = _OpenShop(topology, routes, latency)
    rows = []
    while shop.left:
        rows.append(shop.move_blocks())
    if routes.sum() <= LARGE_HOPS:
        for steps in sorted({bound, len(rows)}):
            found = plan_exchange(topology, routes, latency, steps, seed)
            if found is not None:
                rows = found
                break
    block = np.array(rows, dtype=np.int64).reshape(-1, topology.ports)
    idle = block < 0
    node = _nodes_reached(topology, block)
    return node, np.where(idle, -1, block % chunks), np.where(idle, -1, block // chunks)


def _nodes_reached(topology: CayleyGraph, block: np.ndarray) -> np.ndarray:
    """Return the node that a block reaches by each port in each step, -1 for an idle port.

    `block` has the index of the block that each port takes in each step, shape (steps, ports). All
    blocks start at node 0.
    """
    node: dict[int, int] = {}
    reached = np.full(block.shape, -1)
    neighbours = topology.neighbours.tolist()
    for step, port in np.argwhere(block >= 0).tolist():
        mine = int(block[step, port])
        reached[step, port] = node[mine] = neighbours[node.get(mine, 0)][port]
    return reached


class _OpenShop:
    """A plan for the blocks of node 0 as an open shop: blocks are jobs, ports are machines.

    It has the remaining hops of each block and of each port. In a step, each port takes at most one
    block.
    """

    def __init__(self, topology: CayleyGraph, routes: np.ndarray, latency: int) -> None:
        self.routes = routes.tolist()
        self.length = routes.sum(axis=1).tolist()
        self.load = routes.sum(axis=0).tolist()
        self.left, self.time_left = sum(self.load), alltoall_bound(routes, latency)
        self.capacity = topology.ports * (2 * latency - 1)
        self.latency, self.now = latency, 0
        order = np.argsort(routes.sum(axis=1), kind="stable")
        self.waiting = [order[routes[order, port] > 0].tolist() for port in range(topology.ports)]
        self.started = bytearray(len(routes))
        #: For each block on its way, the step from which it may leave.
        self.flying: dict[int, int] = {}

    def move_blocks(self) -> list[int]:
        """Plan one step, and return the block that each port takes, -1 for an idle port."""
        ready = [block for block, when in self.flying.items() if when <= self.now]
        ready.sort(key=lambda block: -self.length[block])
        ports = sorted(range(len(self.load)), key=lambda port: -self.load[port])
        made = [-1] * len(ports)
        candidates = [self._candidate_blocks(port, ready) for port in ports]
        late = {b for mine in candidates for b in mine if self.length[b] >= self.time_left}
        for place, block in maximum_matching(candidates, sorted(late)).items():
            self._move_block(ports[place], block)
            made[ports[place]] = block
        self.now += 1
        self.time_left -= 1
        return made

    def _candidate_blocks(self, port: int, ready: list[int]) -> list[int]:
        """Return the blocks that a port may take in this step, best first.

        `ready` has the blocks that have left node 0 and may move on now, best first.
        """
        mine = [block for block in ready if self.routes[block][port]]
        if self.load[port] >= self.time_left or len(self.flying) < self.capacity:
            waiting = self.waiting[port]
            while waiting and self.started[waiting[-1]]:
                waiting.pop()
            fresh = (block for block in reversed(waiting) if not self.started[block])
            mine += islice(fresh, len(self.load))
        return mine

    def _move_block(self, port: int, block: int) -> None:
        """Move a block one hop by a port; after `latency` steps it may move again."""
        self.flying.pop(block, None)
        self.started[block] = 1
        self.routes[block][port] -= 1
        self.length[block] -= 1
        self.load[port] -= 1
        self.left -= 1
        if self.length[block]:
            self.flying[block] = self.now + self.latency
