"""All-gather on any torus by bipartite matching, step by step.

Model: store-and-forward, all-port, full duplex. A node sends and receives at most one block a step
on each of its ports. A block that arrives in step ``t`` may leave from step ``t + latency`` on (1
in the papers).

The schedule is planned for one origin, node 0, and translated. If the deliveries of a step use
distinct ports, the copies for all origins never meet on an arc (Fragopoulou and Akl 1994, Lemma 5).
So a step is a matching of ports to deliveries, on any Cayley graph of an abelian group. A
*delivery* (d, c) is the arrival of chunk c of node 0 at node d; its number is d * chunks + c.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

from ....analysis.distance_bounds import delivery_steps
from ....topology import CayleyGraph, IntArray
from ..bipartite import maximum_matching
from .heads import node_ranks, plan_few_heads

__all__ = ["plan_allgather"]

#: For each step the delivery of each port, -1 for an idle port.
Deliveries: TypeAlias = list[list[int]]

#: A preference: the rank of each delivery, and the deliveries in order of rank.
Preference: TypeAlias = tuple[list[int], list[int]]

#: The most schedules that are tried before one above the bound is accepted, and the most deliveries
#: that they plan together: about a second.
ATTEMPTS, BUDGET = 60, 200_000

#: The most deliveries with which a small router is looked for; more would take seconds.
LARGE_DELIVERIES = 8_000


def plan_allgather(
    topology: CayleyGraph,
    chunks: int = 1,
    latency: int = 1,
    seed: int = 0,
    goals: IntArray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Plan the blocks that node 0 delivers to every node, or to some, in the fewest steps found.

    All other nodes do the same.

    Parameters
    ----------
    chunks : int
        Number of chunks of a message.
    latency : int
        Steps from the arrival of a block to its earliest departure.
    seed : int
        Seed of the random changes.
    goals : ndarray of int, optional
        The nodes that need the chunks, by default all. Nodes on the way to them get the chunks as
        well.

    Returns
    -------
    offset, chunk : ndarray of int, shape (steps, ports)
        For each step and port, the node that a block of node 0 reaches, and its chunk; -1 for an
        idle port.

    Notes
    -----
    A delivery (d, c) is the arrival of chunk c at node d. In every step a maximum matching joins
    each port ``g`` to an open delivery (d, c) whose predecessor ``d - g`` got chunk c in time.
    Deliveries near the origin are preferred, then those with the most neighbours farther away. If
    the plan exceeds `delivery_steps`, distances are changed at random and the best attempt wins. No
    proof is known that the bound is always met; it was met on every torus tried. Then a schedule
    with no more steps and a small router is looked for, see `heads`, and preferred.
    """
    if goals is not None:
        among = _with_relay_nodes(topology, goals)
        skipped = np.setdiff1d(np.arange(1, topology.nodes), among)
        farthest = int(topology.distances[goals].max())
        bound = max(-(-len(among) * chunks // topology.ports), 1 + (farthest - 1) * latency)
        best = _nearest_first(topology, chunks, latency, seed, bound, skipped)
        return _table_columns(topology, chunks, best)
    bound = delivery_steps(topology, chunks, latency)
    best = _nearest_first(topology, chunks, latency, seed, bound)
    if topology.nodes * chunks <= LARGE_DELIVERIES:
        for steps in sorted({bound, len(best)}):
            found = plan_few_heads(topology, chunks, latency, steps, seed)
            if found is not None:
                best = found
                break
    return _table_columns(topology, chunks, best)


def _with_relay_nodes(topology: CayleyGraph, goals: IntArray) -> IntArray:
    """Return the goals, and nodes that relay blocks from node 0 to them over shortest paths.

    The paths are chosen so that few relays are needed. Goals are handled farthest first. A path
    prefers nodes that are in the result already, then the port that the fewest paths take.
    """
    reached, load = set(goals.tolist()), [0] * topology.ports
    generators, distance = topology.generators, topology.distances
    for node in sorted(reached, key=lambda goal: -int(distance[goal])):
        while distance[node] > 1:
            before = topology.subtract(node, generators).tolist()
            nearer = [p for p, at in enumerate(before) if distance[at] < distance[node]]
            port = min(nearer, key=lambda p: (before[p] not in reached, load[p]))
            load[port] += 1
            if (node := before[port]) in reached:
                break
            reached.add(node)
    return np.array(sorted(reached))


def _table_columns(
    topology: CayleyGraph, chunks: int, steps: Deliveries
) -> tuple[np.ndarray, np.ndarray]:
    """Split delivery numbers into nodes and chunks: two arrays of shape (steps, ports).

    A delivery, the arrival of chunk c at node d, has the number d * chunks + c. `steps` has the
    number for each port in each step, -1 for an idle port; the results then have -1, too.
    """
    made = np.array(steps, dtype=np.int64).reshape(-1, topology.ports)
    return np.where(made >= 0, made // chunks, -1), np.where(made >= 0, made % chunks, -1)


def _nearest_first(
    topology: CayleyGraph,
    chunks: int,
    latency: int,
    seed: int,
    bound: int,
    skipped: IntArray | None = None,
) -> Deliveries:
    """Plan an all-gather in the fewest steps found, without regard to the size of routers.

    The search is repeated with random changes, and ends at the first schedule with `bound` steps.
    Nodes in `skipped` need no blocks. The arguments `chunks`, `latency` and `seed` are those of
    `plan_allgather`. The result has, for each step, the delivery of each port, or -1.
    """
    best = _plan_deliveries(
        topology, chunks, latency, _delivery_ranks(topology, chunks, None, 0.0), skipped
    )
    budget = BUDGET // (topology.nodes * chunks)
    rng, noises = np.random.default_rng(seed), (2.0, 1.0, 0.6 * topology.diameter)
    for retry in range(min(ATTEMPTS, budget)):
        if len(best) == bound:
            break
        order = _delivery_ranks(topology, chunks, rng, noises[retry % len(noises)])
        best = min(best, _plan_deliveries(topology, chunks, latency, order, skipped), key=len)
    return best


def _delivery_ranks(
    topology: CayleyGraph, chunks: int, rng: np.random.Generator | None, noise: float
) -> list[Preference]:
    """Return the order in which each port prefers deliveries, near nodes first.

    A delivery is the arrival of a chunk of node 0 at a node, with number node * chunks + chunk. For
    each port there are two lists: the rank of each delivery, and the deliveries by rank. Each port
    takes the chunks for a node in another order, so that the last chunks can arrive by different
    ports. `noise` is the largest number of hops by which a delivery may be preferred to a nearer
    one. `rng` is the source of random changes; None for no changes.
    """
    number, near = np.arange(topology.nodes * chunks), node_ranks(topology)
    key, tie = near[number // chunks], number // chunks
    if rng is not None:
        key = key + noise * rng.random(topology.nodes)[number // chunks]
        tie = rng.permutation(topology.nodes)[number // chunks]
    orders = {}
    for shift in range(min(chunks, topology.ports)):
        order = np.lexsort(((number + shift * chunks // topology.ports) % chunks, tie, key))
        rank = np.empty_like(order)
        rank[order] = number
        orders[shift] = rank.tolist(), order.tolist()
    return [orders[port % len(orders)] for port in range(topology.ports)]


def _plan_deliveries(
    topology: CayleyGraph,
    chunks: int,
    latency: int,
    urgency: list[Preference],
    skipped: IntArray | None = None,
) -> Deliveries:
    """Plan an all-gather step by step, where each port takes its most urgent possible delivery.

    A delivery is the arrival of a chunk of node 0 at a node, with number node * chunks + chunk.
    `urgency` has the order of preference of each port, see `_delivery_ranks`. `latency` is the
    number of steps from the arrival of a block to its earliest departure. Nodes in `skipped` need
    no deliveries. The result has, for each step, the delivery of each port, or -1.
    """
    done = bytearray(topology.nodes * chunks)
    for node in [0] if skipped is None else [0, *skipped.tolist()]:
        done[node * chunks : (node + 1) * chunks] = b"\1" * chunks
    neighbours = topology.neighbours.tolist()
    heaps: list[list[int]] = [[] for _ in range(topology.ports)]
    ready = [list(range(chunks)), *([] for _ in range(latency - 1))]
    left, steps = done.count(0), []
    while left:
        for delivery in ready.pop(0):
            node, chunk = divmod(delivery, chunks)
            for heap, (rank, _), neighbour in zip(heaps, urgency, neighbours[node], strict=True):
                onward = neighbour * chunks + chunk
                if not done[onward]:
                    heappush(heap, rank[onward])
        candidates = [
            _most_urgent_open(heap, order, done, topology.ports)
            for heap, (_, order) in zip(heaps, urgency, strict=True)
        ]
        made = maximum_matching(candidates)
        for delivery in made.values():
            done[delivery] = 1
        for heap, (rank, _), others in zip(heaps, urgency, candidates, strict=True):
            for delivery in others:
                if not done[delivery]:
                    heappush(heap, rank[delivery])
        ready.append(list(made.values()))
        left -= len(made)
        steps.append([made.get(port, -1) for port in range(topology.ports)])
    return steps


def _most_urgent_open(heap: list[int], order: list[int], done: bytearray, count: int) -> list[int]:
    """Take up to `count` deliveries off the heap of a port: the most urgent that are not `done`.

    `order` lists the deliveries by urgency for this port, and the heap has indices in `order`. With
    as many candidates as there are ports, the port finds one whatever the other ports take.
    """
    best: list[int] = []
    while heap and len(best) < count:
        delivery = order[heappop(heap)]
        if not done[delivery]:
            best.append(delivery)
    return best
