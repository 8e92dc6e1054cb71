"""Turns that are enough for shortest paths: of any two axes, from one to the other only.

The fewer turns words take, the fewer inputs an out-port has. Whichever way it is decided for each
pair of axes, any set of axes can be put in an order that takes allowed turns only (a tournament has
a Hamiltonian path), so that a shortest path is left to any node.
"""

from itertools import combinations

from ....topology import Topology, Torus

__all__ = ["all_turns", "few_turns", "first_axes"]


def all_turns(topology: Topology) -> list[list[int]]:
    """By which out-ports may leave what came by each in-port, if anything may."""
    return [list(range(topology.ports)) for _ in range(topology.ports)]


def few_turns(topology: Topology) -> list[list[int]] | None:
    """By which out-ports may leave what came by each in-port, if it takes few turns.

    Words turn from an axis to the next half of the others, the first following the last: from the
    first to the second on two axes, cyclically on three.

    Returns
    -------
    list of list of int, or None
        None if it is no torus of two axes or more.
    """
    if not isinstance(topology, Torus) or len(topology.sides) < 2:
        return None
    axes, ports = len(topology.sides), range(topology.ports)
    return [
        [
            out_port
            for out_port in ports
            if out_port // 2 == in_port // 2 or _follows(in_port // 2, out_port // 2, axes)
        ]
        for in_port in ports
    ]


def _follows(first: int, then: int, axes: int) -> bool:
    """Whether words turn from an axis to another."""
    ahead = (then - first) % axes
    return 0 < 2 * ahead < axes or (2 * ahead == axes and first < then)


def first_axes(axes: int) -> dict[frozenset[int], set[int]]:
    """With which axes a path may start that takes few turns, and no axis twice.

    Returns
    -------
    dict
        For each set of axes on which the path has hops, a frozenset: a set of axes.
    """
    starts = {frozenset({axis}): {axis} for axis in range(axes)}
    for size in range(2, axes + 1):
        for chosen in map(frozenset, combinations(range(axes), size)):
            starts[chosen] = {
                first
                for first in chosen
                if any(_follows(first, then, axes) for then in starts[chosen - {first}])
            }
    return starts
