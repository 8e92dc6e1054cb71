"""A plugin package that adds a topology and an algorithm to torusfabric."""

import re
from functools import cached_property

import numpy as np

from torusfabric import Algorithm, CayleyGraph, InputError, Pattern

__all__ = ["MARCH", "Circulant"]


class Circulant(CayleyGraph):
    """A circulant graph: node v of n is linked to v + 1, v - 1, v + k and v - k.

    Parameters
    ----------
    nodes, chord : int
    """

    kind = "chorded"
    notation = "chorded:NODES:CHORD"
    entry = '{"kind": "chorded", "nodes": .., "chord": ..}'

    def __init__(self, nodes, chord):
        if not 1 < chord < nodes - 1:
            raise InputError(f"Chord must be from 2 to {nodes - 2}, not {chord}")
        self.name = f"chorded:{nodes}:{chord}"
        self.nodes, self.chord, self.ports = nodes, chord, 4
        self.port_names = ("+1", "-1", f"+{chord}", f"-{chord}")
        self.opposite = np.array([1, 0, 3, 2])

    @classmethod
    def parse(cls, text):
        """Return the graph of a text such as ``chorded:13:5``, or None for any other text."""
        match = re.fullmatch(r"chorded:(\d+):(\d+)", text)
        return cls(int(match[1]), int(match[2])) if match else None

    @classmethod
    def from_json(cls, entry):
        """Return the circulant graph of an entry of a schedule file, or None."""
        match entry:
            case {"nodes": int(nodes), "chord": int(chord)}:
                return cls(nodes, chord)
        return None

    def to_json(self):
        """Return the entry of a schedule file."""
        return {"kind": self.kind, "nodes": self.nodes, "chord": self.chord}

    def add(self, a, b):
        """Return the sum modulo the number of nodes."""
        return (np.asarray(a) + b) % self.nodes

    def subtract(self, a, b):
        """Return the difference modulo the number of nodes."""
        return (np.asarray(a) - b) % self.nodes

    @cached_property
    def generators(self):
        """The neighbours of node 0."""
        return np.array([1, -1, self.chord, -self.chord]) % self.nodes

    @cached_property
    def distances(self):
        """Distances from node 0, found by breadth-first search."""
        found = np.full(self.nodes, -1, np.int32)
        found[0], reached, steps = 0, np.array([0]), 0
        while (found < 0).any():
            steps += 1
            reached = self.add(reached[:, None], self.generators).ravel()
            reached = np.unique(reached[found[reached] < 0])
            found[reached] = steps
        return found

    @property
    def moduli(self):
        """Order of the only cyclic group: the number of nodes."""
        return (self.nodes,)

    def coordinates(self, nodes):
        """Return the node numbers as the only row of coordinates."""
        return np.asarray(nodes)[None]

    def node_name(self, node):
        """Return the node number in parentheses."""
        return f"({node})"


def march(topology, collective, options):
    """Return an all-gather in which every block moves along port 0 in each step."""
    feed, inject = np.full((2, topology.nodes, topology.ports), -1)
    feed[:, 0], inject[:, 0] = topology.opposite[0], 0
    return Pattern(
        topology=topology,
        collective=collective,
        algorithm="march",
        switching="store-and-forward",
        ports=1,
        steps=topology.nodes - 1,
        feed=feed,
        inject=inject,
    )


MARCH = Algorithm(
    name="march",
    source="none",
    summary="all blocks march around a circulant graph",
    collectives=("allgather",),
    options=(),
    misfit=lambda topology, collective, options: (
        None if isinstance(topology, Circulant) else "a circulant graph"
    ),
    plan=march,
)
