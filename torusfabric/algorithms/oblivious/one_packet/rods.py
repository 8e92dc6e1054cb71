"""Whole messages on tori of three and four axes: cycles that run along rods.

All lines along the last axis of a torus are *rods*, and each rod belongs to one of d cycles. A
cycle is a sequence of *laps*. A lap begins with a zigzag at the head of the torus, which leads to
the next rod, and then follows this rod to its other end. Next to each rod lie rods of all other
cycles, so that neighbours can send their messages to it.

In this text axes count from 1, as in the paper; in the code they count from 0, like everywhere.

On three axes (Meyer & Sibeyn, section 4.2) rod (x, y) belongs to cycle x + y modulo 3. A lap moves
along axes 1, 3, 1, 3, 1 and then down the rod. Some laps, those of the second kind, end their
zigzag with a move along axis 2 instead, to change planes. Let g be a third of the greatest common
divisor of n1 and n2. A lap is of the second kind if x + y, modulo 3 g, is among the 3 q largest
values.

The scheme is extended to four axes. Rod (x, y, w) belongs to cycle x + y + 2 w modulo 4. The
neighbours of a rod on axes 1 and 2 are then rods of the next and of the last cycle, and those on
axis 3 are rods of the opposite cycle. A lap moves along axes 1, 4, 1, 4, M, 4, N and then down the
rod. Moves M = 1, N = 1 stay in the plane; M = 1, N = 2 change planes; M = 3 and back on 2, N = 2
change layers.

Every node injects its message on all its ports in step 1, and forwards by a fixed *feed* from then
on: the in-port that feeds each out-port.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import TypeAlias

import numpy as np

from ....topology import Torus

__all__ = ["completion_steps", "feeds_3d", "feeds_4d", "axis_orders_3d", "axis_orders_4d",
           "permute_axes"]  # fmt: skip

#: The most bytes used at a time for the table of nodes and the messages they have.
MOST_CELLS_AT_ONCE = 64_000_000


def permute_axes(feed: np.ndarray, sides: Sequence[int], axes: Sequence[int]) -> np.ndarray:
    """Return a feed for a torus whose axes have another order.

    A feed is the in-port whose words each out-port forwards.

    Parameters
    ----------
    feed : ndarray of int, shape (nodes, ports)
        A feed for sides ``[sides[axis] for axis in axes]``.
    sides : sequence of int
        The sides of the torus of the result.
    axes : sequence of int
        For each axis of the torus of `feed`, the axis of the result.
    """
    ports = np.array([2 * axis + sign for axis in axes for sign in (0, 1)])
    named = np.empty_like(feed)
    named[:, ports] = ports[feed]
    table = named.reshape(*(sides[axis] for axis in axes), -1)
    order = [list(axes).index(axis) for axis in range(len(sides))]
    turned: np.ndarray = table.transpose(*order, len(sides)).reshape(feed.shape)
    return turned.astype(np.int8)


def completion_steps(torus: Torus, feed: np.ndarray, limit: int | None = None) -> int | None:
    """Return the number of steps after which every node has every message.

    All nodes send their message on all ports, and forward in a fixed way. Nodes that a translation
    maps onto each other without changing the feed take equally long, so one node of each such set
    is followed, by tracing its arrivals back.

    Parameters
    ----------
    torus : Torus
        The torus on which the feed forwards messages.
    feed : ndarray of int, shape (nodes, ports)
        The in-port whose words each out-port forwards.
    limit : int, optional
        The most steps; by default the number of arcs, after which all messages must have come
        round.

    Returns
    -------
    int or None
        The number of steps; None if it is larger than the limit.
    """
    ports = np.arange(torus.ports)
    feeder = torus.neighbours[np.arange(len(feed))[:, None], feed] * torus.ports
    feeder = (feeder + torus.opposite[feed]).ravel()
    chosen = orbit_representatives(torus, feed)
    limit = feed.size if limit is None else limit
    longest = 0
    for nodes in np.array_split(chosen, math.ceil(len(chosen) * len(feed) / MOST_CELLS_AT_ONCE)):
        arcs = torus.neighbours[nodes] * torus.ports + torus.opposite[ports]
        steps = trace_steps(nodes, arcs, feeder, torus.ports, limit)
        if steps is None:
            return None
        longest = max(longest, steps)
    return longest


def trace_steps(
    nodes: np.ndarray, arcs: np.ndarray, feeder: np.ndarray, ports: int, limit: int
) -> int | None:
    """Return the steps after which the nodes `nodes` have all messages; None beyond the limit.

    Each in-port is traced back, one arc a step: the message that arrives in step t started t arcs
    before.

    Parameters
    ----------
    nodes : ndarray of int
        The nodes to follow.
    arcs : ndarray of int, shape (nodes, ports)
        The arcs that end at the in-ports of these nodes.
    feeder : ndarray of int, shape (arcs,)
        The arc from which each arc takes its words. Arc p of node n has the number n * ports + p.
    ports : int
        Number of ports of a node.
    limit : int
        The most steps; the result is None if more are needed.
    """
    rows, count = np.arange(len(nodes)), len(feeder) // ports
    held = np.zeros((len(nodes), count), bool)
    held[rows, nodes] = True
    missing = np.full(len(nodes), count - 1)
    step = 0
    while missing.any():
        if step == limit:
            return None
        for origin in arcs.T // ports:
            missing -= ~held[rows, origin]
            held[rows, origin] = True
        arcs = feeder[arcs]
        step += 1
    return step


def orbit_representatives(torus: Torus, feed: np.ndarray) -> np.ndarray:
    """Return one node of each set of nodes that behave alike under a feed.

    Such a set is an orbit of the translations that leave the feed unchanged.

    Parameters
    ----------
    torus : Torus
        The torus on which the feed forwards messages.
    feed : ndarray of int, shape (nodes, ports)
        The in-port whose words each out-port forwards.
    """
    sides, axes = torus.sides, tuple(range(len(torus.sides)))
    shifts = set(product((-1, 0, 1), repeat=len(sides)))
    for axis, side in enumerate(sides):
        shifts |= {
            (*(0,) * axis, step, *(0,) * (len(sides) - axis - 1))
            for step in range(1, side)
            if side % step == 0
        }
    table = feed.reshape(*sides, -1)
    nodes = np.arange(torus.nodes).reshape(sides)
    links = [
        np.roll(nodes, shift, axes).ravel()
        for shift in sorted(shifts)
        if (np.roll(table, shift, axes) == table).all()
    ]
    # Imported here, because the import takes longer than a plan without it.
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ends = np.tile(nodes.ravel(), len(links)), np.concatenate(links)
    graph = coo_matrix((np.ones(len(ends[0]), np.int8), ends), (torus.nodes,) * 2)
    _, orbit = connected_components(graph, directed=False)
    return np.unique(orbit, return_index=True)[1]


#: A choice for each free in-port of a node: a cycle, numbered as seen from the node, and True if
#: the messages that come in run forward on this cycle.
Choice: TypeAlias = tuple[tuple[int, bool], ...]


@dataclass(frozen=True, eq=False)
class RodCycles:
    """Cycles along which messages travel both ways; no two use the same link.

    The cycles are alike up to translation, and each visits a part of the nodes.

    Parameters
    ----------
    torus : Torus
        The torus of three or four axes.
    phase : ndarray of int, shape (nodes,)
        The index of the cycle that a node counts as number 0. Why: if each node counts the cycles
        from its own phase, the cycles run alike next to more nodes, which can then be treated
        together.
    exits : ndarray of int, shape (nodes, cycles)
        The out-port by which each cycle leaves each node, -1 off the cycle.
    position : ndarray of int, shape (nodes, cycles)
        The position of each node on each cycle, -1 off the cycle.
    size : int
        The length of each cycle.
    """

    torus: Torus
    phase: np.ndarray
    exits: np.ndarray
    position: np.ndarray
    size: int

    @cached_property
    def entry_ports(self) -> np.ndarray:
        """The in-port by which each cycle enters each node; -1 off the cycle.

        The array has the shape (nodes, cycles).
        """
        entries = np.full_like(self.exits, -1)
        for cycle, ports in enumerate(self.exits.T):
            nodes = np.nonzero(ports >= 0)[0]
            ahead = self.torus.neighbours[nodes, ports[nodes]]
            entries[ahead, cycle] = self.torus.opposite[ports[nodes]]
        return entries

    @cached_property
    def cycle_numbers(self) -> np.ndarray:
        """For each node, the indices of the cycles in the order in which the node counts them.

        The array has the shape (nodes, cycles).
        """
        count = self.exits.shape[1]
        return np.asarray((self.phase[:, None] + np.arange(count)) % count)

    def feed_table(self) -> np.ndarray:
        """Return the in-port whose words each out-port forwards, an array of shape (nodes, ports).

        On the cycles messages run both ways. A node off a cycle gets the forward messages from one
        neighbour on the cycle, and the backward messages from another one. If the first neighbour
        is L positions ahead of the second, nothing is missing after (size + L) / 2 steps, so
        choices with a small L are taken.
        """
        feed = np.full((self.torus.nodes, self.torus.ports), -1)
        for exits, entries in zip(self.exits.T, self.entry_ports.T, strict=True):
            on = np.nonzero(exits >= 0)[0]
            feed[on, exits[on]] = entries[on]
            feed[on, entries[on]] = exits[on]
        for nodes, free, choices in self.node_groups(feed >= 0):
            leads = np.stack([self.forward_lead(nodes, free, choice) for choice in choices])
            common = leads.max(axis=1).argmin()
            # Among equal choices, the one that suits all nodes keeps the number of kinds of nodes
            # small.
            leads *= 2
            leads[np.arange(len(choices)) != common] += 1
            for number, choice in enumerate(choices):
                self.feed_from_neighbours(feed, nodes[leads.argmin(axis=0) == number], free, choice)
        return feed

    def node_groups(
        self, used: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, list[Choice]]]:
        """Yield sets of nodes for which cycles visit the same neighbours, with their choices.

        A node must get the messages of a cycle that does not visit it from neighbours on this
        cycle. An item is a triple: the nodes, their free in-ports, and the choices. A choice has,
        for each free in-port, such a cycle, and True if the messages that come in run forward on
        it. `used`, shape (nodes, ports), is True for ports that belong to cycles; all others are
        free.
        """
        on = self.exits >= 0
        offers = np.stack(
            [on[beside[:, None], self.cycle_numbers] for beside in self.torus.neighbours.T], axis=1
        )
        wants = ~np.take_along_axis(on, self.cycle_numbers, axis=1)
        looks = np.concatenate([used, offers.reshape(len(on), -1)], axis=1)
        _, first, kind = np.unique(looks, axis=0, return_index=True, return_inverse=True)
        for group, node in enumerate(first):
            free = np.nonzero(~used[node])[0]
            needs = product(np.nonzero(wants[node])[0].tolist(), (False, True))
            choices = [
                way
                for way in permutations(needs, len(free))
                if all(offers[node, free, [cycle for cycle, _ in way]])
            ]
            if len(free):
                yield np.nonzero(kind.ravel() == group)[0], free, choices

    def forward_lead(self, nodes: np.ndarray, free: np.ndarray, choice: Choice) -> np.ndarray:
        """Return for each node how far its two neighbours on a cycle are apart, in positions.

        A node off a cycle gets the forward messages from one neighbour on the cycle, and the
        backward messages from another one. The first is L positions ahead of the second. The result
        is the largest L of all cycles that do not visit the node.

        Parameters
        ----------
        nodes : ndarray of int
            Nodes next to which the cycles run alike, one item of `node_groups`.
        free : ndarray of int
            The free in-ports of these nodes, see `node_groups`.
        choice : Choice
            For each free in-port, the cycle and True if messages that come in run forward on it.
        """
        source = {need: port for port, need in zip(free, choice, strict=True)}
        leads = []
        for number in {number for number, _ in choice}:
            cycle = self.cycle_numbers[nodes, number]
            ahead, behind = (
                self.position[self.torus.neighbours[nodes, source[number, forward]], cycle]
                for forward in (True, False)
            )
            leads.append((ahead - behind) % self.size)
        return np.asarray(np.max(leads, axis=0))

    def feed_from_neighbours(
        self, feed: np.ndarray, nodes: np.ndarray, free: np.ndarray, choice: Choice
    ) -> None:
        """Let neighbours on cycles send the messages of these cycles to nodes that are off them.

        `nodes` are the nodes off the cycles. The neighbours' out-ports towards them are entered
        into `feed`, where ``feed[node, port]`` is the in-port whose words an out-port forwards.
        `choice` has, for each in-port of the nodes in `free`, the cycle whose messages come in, and
        True if they run forward on it.
        """
        for port, (number, forward) in zip(free, choice, strict=True):
            cycle, beside = self.cycle_numbers[nodes, number], self.torus.neighbours[nodes, port]
            source = self.entry_ports if forward else self.exits
            feed[beside, self.torus.opposite[port]] = source[beside, cycle]


def cycles_from_laps(torus: Torus, phase: np.ndarray, laps: np.ndarray) -> RodCycles | None:
    """Return the cycles that consist of laps, each of which follows one line along the last axis.

    Parameters
    ----------
    torus : Torus
        The torus, of three or four axes.
    phase : ndarray of int, shape (nodes,)
        The phase of each node, see `RodCycles`. At the first node of a rod, a line along the last
        axis, it is also the cycle of the rod.
    laps : ndarray of int, shape (rods, moves)
        The out-ports along each lap, -1 for no move. Rods are numbered in the order of their first
        nodes.

    Returns
    -------
    RodCycles or None
        The cycles; None if the laps of one phase form more than one cycle.
    """
    height, cycles = torus.sides[-1], len(torus.sides)
    here = np.arange(len(laps)) * height
    cycle = phase[here]
    exits, place = np.full((2, torus.nodes, cycles), -1)
    lap_of = np.full((torus.nodes, cycles), -1)
    moved = np.zeros(len(laps), int)
    for ports in laps.T:
        go = np.nonzero(ports >= 0)[0]
        at = here[go], cycle[go]
        exits[at], place[at], lap_of[at] = ports[go], moved[go], go
        here[go] = torus.neighbours[here[go], ports[go]]
        moved[go] += 1
    begin = np.full(len(laps), -1)
    following = here // height
    for lap in [int(np.argmax(cycle == number)) for number in range(cycles)]:
        total = 0
        while begin[lap] < 0:
            begin[lap], total, lap = total, total + moved[lap], following[lap]
    if (begin < 0).any():
        return None
    place = np.where(exits >= 0, place + begin[lap_of], -1)
    return RodCycles(torus, phase, exits, place, int(moved.sum()) // cycles)


def axis_orders_3d(sides: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the orders of the axes, each with a number q, for which `rod_cycles_3d` finds cycles.

    An order is a tuple such as (0, 2, 1); the cycles run along the last axis in this order. The
    number q tells how many laps (runs along one line of this axis) change planes, see
    `rod_cycles_3d`. Among orders that differ only in equally long axes, one is yielded.

    Parameters
    ----------
    sides : sequence of int
        The three sides of the torus.
    """
    seen = set()
    for axes in ((0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        n1, n2, n3 = role = tuple(sides[axis] for axis in axes)
        if n1 % 3 or n2 % 3 or n3 < 3 or role in seen:
            continue
        seen.add(role)
        g = math.gcd(n1, n2) // 3
        for q in range(1, g + 1):
            if math.gcd(q, n2) == 1 and math.gcd(n1 // (3 * g), 3 * g - q) == 1:
                yield axes, q


def feeds_3d(sides: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield ways to forward by which every node of a torus of three axes gets every message.

    Each is an array of shape (nodes, ports): the in-port whose words each out-port forwards.

    Parameters
    ----------
    sides : sequence of int
        The three sides of the torus.
    """
    for axes, q in axis_orders_3d(sides):
        rods = rod_cycles_3d([sides[axis] for axis in axes], q)
        if rods:
            yield permute_axes(rods.feed_table(), sides, axes)


def rod_cycles_3d(sides: Sequence[int], q: int) -> RodCycles | None:
    """Return three cycles along which messages can travel on a torus of three axes.

    They run up and down the lines (rods) of the last axis, and each visits a part of the nodes. The
    result is None if the laps, one for each rod, form more than three cycles.

    Parameters
    ----------
    sides : sequence of int
        The three sides of the torus; rods run along the last axis.
    q : int
        A number from 1 to g, a third of the greatest common divisor of the first two sides. The lap
        down the rod (x, y) changes planes if x + y, modulo 3 g, is among the 3 q largest values.
    """
    n1, n2, n3 = sides
    g = math.gcd(n1, n2) // 3
    x, y, _ = np.indices((n1, n2, n3))
    total = (x + y)[:, :, 0].ravel()
    second = total % (3 * g) >= 3 * (g - q)
    laps = np.full((len(total), n3 + 3), 4)
    laps[:, 0:3:2] = 0
    laps[:, 4] = np.where(second, 2, 0)
    return cycles_from_laps(Torus(sides), (x + y).ravel() % 3, laps)


def axis_orders_4d(sides: Sequence[int]) -> Iterator[tuple[tuple[int, ...], RodCycles]]:
    """Yield the orders of the axes for which `rod_cycles_4d` finds cycles, with these cycles.

    An order is a tuple such as (0, 2, 1, 3); the cycles run along the last axis in this order.
    Among orders that differ only in equally long axes, one is yielded.

    Parameters
    ----------
    sides : sequence of int
        The four sides of the torus.
    """
    seen = set()
    for axes in permutations(range(4)):
        n1, n2, n3, n4 = role = tuple(sides[axis] for axis in axes)
        if n1 % 4 or n2 % 4 or n3 % 2 or n4 < 4 or role in seen:
            continue
        seen.add(role)
        rods = rod_cycles_4d(role)
        if rods:
            yield axes, rods


def feeds_4d(sides: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield ways to forward by which every node of a torus of four axes gets every message.

    Each is an array of shape (nodes, ports): the in-port whose words each out-port forwards.

    Parameters
    ----------
    sides : sequence of int
        The four sides of the torus.
    """
    for axes, rods in axis_orders_4d(sides):
        yield permute_axes(rods.feed_table(), sides, axes)


def rod_cycles_4d(sides: Sequence[int]) -> RodCycles | None:
    """Return four cycles along which messages can travel on a torus of four axes.

    They run along the lines (rods) of the last axis, and each visits a part of the nodes. The
    result is None if the laps, one for each rod, form more than four cycles.

    Parameters
    ----------
    sides : sequence of int
        The four sides of the torus; rods run along the last axis.
    """
    n1, n2, n3, n4 = sides
    x, y, w, _ = np.indices(sides)
    total, turns = ((a[..., 0]).ravel() for a in (x + y + 2 * w, y + w))
    g = math.gcd(n1, n2, 2 * n3) // 4
    plane = total // 4 % g == g - 1
    layer = plane & (turns % math.gcd(n2, n3) == 0)
    laps = np.full((len(total), n4 + 5), 6)
    laps[:, 0:3:2] = 0
    laps[:, 4] = np.where(layer, 4, 0)
    laps[:, 5] = np.where(layer, 3, -1)
    laps[:, 7] = np.where(plane, 2, 0)
    return cycles_from_laps(Torus(sides), (x + y + 2 * w).ravel() % 4, laps)
