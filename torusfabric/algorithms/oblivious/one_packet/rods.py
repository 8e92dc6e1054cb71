"""Cycles that run along rods, and the nodes beside them.

All lines along the last axis of a torus are *rods*, and each rod belongs to one of d cycles. A
cycle is a sequence of *laps*: a zigzag at the head of the torus brings it to the next rod, which it
then follows to the other end. Next to each rod lie rods of all other cycles, so that their messages
can be sent to it from the side.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import TypeAlias

import numpy as np

from ....topology import Torus

__all__ = ["Rods", "follow_laps"]

#: For each free in-port of a node: a cycle, numbered as seen from there, and whether what runs
#: forward on it comes in.
Choice: TypeAlias = tuple[tuple[int, bool], ...]


@dataclass(frozen=True, eq=False)
class Rods:
    """Edge-disjoint cycles, alike up to translation, each of which visits a part of the nodes.

    Parameters
    ----------
    phase : ndarray of int, shape (nodes,)
        Nodes with different phases look alike if the cycles are renumbered by the difference.
    exits : ndarray of int, shape (nodes, cycles)
        The out-port by which each cycle leaves each node, -1 off the cycle.
    position : ndarray of int, shape (nodes, cycles)
        The position of each node on each cycle.
    size : int
        The length of each cycle.
    """

    torus: Torus
    phase: np.ndarray
    exits: np.ndarray
    position: np.ndarray
    size: int

    @cached_property
    def entries(self) -> np.ndarray:
        """The in-port by which each cycle enters each node, -1 off the cycle."""
        entries = np.full_like(self.exits, -1)
        for cycle, ports in enumerate(self.exits.T):
            nodes = np.nonzero(ports >= 0)[0]
            ahead = self.torus.neighbours[nodes, ports[nodes]]
            entries[ahead, cycle] = self.torus.opposite[ports[nodes]]
        return entries

    @cached_property
    def renumbered(self) -> np.ndarray:
        """The number of each cycle as seen from each node, shape (nodes, cycles)."""
        count = self.exits.shape[1]
        return np.asarray((self.phase[:, None] + np.arange(count)) % count)

    def feed(self) -> np.ndarray:
        """The in-port that feeds each out-port: shape (nodes, ports).

        On the cycles messages run both ways. A node off a cycle gets what runs forward from one
        neighbour and what runs backward from another. If the first is L positions ahead of the
        second, it takes (size + L) / 2 steps until nothing is missing, so L is made as small as
        possible.
        """
        feed = np.full((self.torus.nodes, self.torus.ports), -1)
        for exits, entries in zip(self.exits.T, self.entries.T, strict=True):
            on = np.nonzero(exits >= 0)[0]
            feed[on, exits[on]] = entries[on]
            feed[on, entries[on]] = exits[on]
        for nodes, free, choices in self.situations(feed >= 0):
            leads = np.stack([self.lead(nodes, free, choice) for choice in choices])
            common = leads.max(axis=1).argmin()
            # Among equals the choice that suits all alike keeps the kinds of nodes few.
            leads *= 2
            leads[np.arange(len(choices)) != common] += 1
            for number, choice in enumerate(choices):
                self.feed_from_neighbours(feed, nodes[leads.argmin(axis=0) == number], free, choice)
        return feed

    def situations(self, used: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, list[Choice]]]:
        """Groups of nodes with alike surroundings, their free ports, and all choices for these.

        See `Choice`.
        """
        on = self.exits >= 0
        offers = np.stack(
            [on[beside[:, None], self.renumbered] for beside in self.torus.neighbours.T], axis=1
        )
        wants = ~np.take_along_axis(on, self.renumbered, axis=1)
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

    def lead(self, nodes: np.ndarray, free: np.ndarray, choice: Choice) -> np.ndarray:
        """How far each node's forward feeders are ahead of the backward ones, at most."""
        source = {need: port for port, need in zip(free, choice, strict=True)}
        leads = []
        for number in {number for number, _ in choice}:
            cycle = self.renumbered[nodes, number]
            ahead, behind = (
                self.position[self.torus.neighbours[nodes, source[number, forward]], cycle]
                for forward in (True, False)
            )
            leads.append((ahead - behind) % self.size)
        return np.asarray(np.max(leads, axis=0))

    def feed_from_neighbours(
        self, feed: np.ndarray, nodes: np.ndarray, free: np.ndarray, choice: Choice
    ) -> None:
        """Let the neighbours of nodes send what these have chosen."""
        for port, (number, forward) in zip(free, choice, strict=True):
            cycle, beside = self.renumbered[nodes, number], self.torus.neighbours[nodes, port]
            source = self.entries if forward else self.exits
            feed[beside, self.torus.opposite[port]] = source[beside, cycle]


def follow_laps(torus: Torus, phase: np.ndarray, laps: np.ndarray) -> Rods | None:
    """The cycles that consist of given laps.

    Parameters
    ----------
    phase : ndarray of int, shape (nodes,)
        As of `Rods`; also the cycle of the rod that begins at a node.
    laps : ndarray of int, shape (rods, moves)
        The out-ports along each lap, -1 for no move. Rods are numbered like their first nodes.

    Returns
    -------
    Rods or None
        None if the laps of a phase close to more than one cycle.
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
    return Rods(torus, phase, exits, place, int(moved.sum()) // cycles)
