"""Parts of another network: meshes, tori with axes that do not wrap, and networks with faults."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from typing_extensions import Self, override

from ..errors import InputError
from .arrays import BoolArray, IntArray
from .graph import Graph, named_nodes
from .registry import parse_topology, topology_from_json
from .topology import Topology
from .torus import Torus

__all__ = ["Faulty", "Mesh", "Part", "faults_within", "shared_network", "without_faults"]

#: The most nodes of a mesh, and of a network with faults: distances are found by searches.
MOST_NODES = 2**16


class Part(Graph):
    """Some of the nodes of a whole network, and some of the arcs between them.

    Nodes are renumbered in order; ports are those of the whole.

    Attributes
    ----------
    whole : Topology
    kept : ndarray of int, shape (nodes,)
        The node of the whole that each node is.
    """

    whole: Topology
    kept: IntArray

    def _take(self, whole: Topology, kept: BoolArray, arcs: BoolArray) -> None:
        """Fill the tables with the nodes that are kept, and arcs of the whole between them."""
        self.whole, self.kept = whole, np.flatnonzero(kept)
        self.nodes, self.ports = len(self.kept), whole.ports
        self.port_names, self.opposite = whole.port_names, whole.opposite
        self.link_latency = whole.link_latency
        number = np.cumsum(kept) - 1
        there = arcs & whole.linked & kept[:, None] & kept[whole.neighbours]
        there &= whole.neighbours != np.arange(whole.nodes)[:, None]
        self._linked = there[kept]
        onward = number[whole.neighbours[kept]]
        here = np.arange(self.nodes)[:, None]
        self._neighbours = np.where(self._linked, onward, here).astype(np.int32)

    @property
    @override
    def grid(self) -> tuple[tuple[int, ...], IntArray]:
        sides, coordinates = self.whole.grid
        return sides, coordinates[:, self.kept]

    @property
    @override
    def dimensions(self) -> int:
        return self.whole.dimensions if self.nodes == self.whole.nodes else 0

    @override
    def node_name(self, node: int) -> str:
        return self.whole.node_name(int(self.kept[node]))


class Mesh(Part):
    """A torus in which some axes, or all, do not wrap.

    Parameters
    ----------
    sides : sequence of int
        As of a `Torus`.
    wraps : sequence of bool, optional
        Whether each axis wraps; by default none does.

    Raises
    ------
    InputError
        If sides are not such, or all axes wrap.

    Examples
    --------
    >>> mesh = Mesh([4, 6])
    >>> mesh.name, mesh.nodes, mesh.diameter, Mesh([8, 8], [False, True]).name
    ('mesh:4x6', 24, 8, '8|x8')
    """

    kind = "mesh"
    notation = "mesh:8x8, 8|x8 (no wrap along axis 0)"
    entry = '{"kind": "mesh", "sides": [..], "wraps": [..]}'

    def __init__(self, sides: Iterable[int], wraps: Iterable[bool] | None = None) -> None:
        whole = Torus(sides)
        self.sides = whole.sides
        self.wraps = (False,) * len(self.sides) if wraps is None else tuple(wraps)
        if len(self.wraps) != len(self.sides) or not {True, False}.issuperset(self.wraps):
            raise InputError(
                f"Wraps of a mesh must be true or false for each of its axes, not {[*self.wraps]}"
            )
        if all(self.wraps):
            raise InputError(f"Mesh must have an axis without wrap, not the torus {whole}")
        ends = [
            f"{side}{'' if wrap else '|'}"
            for side, wrap in zip(self.sides, self.wraps, strict=True)
        ]
        self.name = "x".join(ends) if any(self.wraps) else f"mesh:{whole}"
        if math.prod(self.sides) > MOST_NODES:
            raise InputError(f"Mesh must have at most {MOST_NODES} nodes, not {whole.nodes}")
        place, arcs = whole.coordinates(np.arange(whole.nodes)), []
        for at, side, wrap in zip(place, self.sides, self.wraps, strict=True):
            arcs += [(at < side - 1) | wrap, (at > 0) | wrap]
        self._take(whole, np.ones(whole.nodes, bool), np.stack(arcs, axis=1))

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        if re.fullmatch(r"mesh:\d{1,18}(x\d{1,18})*", text):
            return cls([int(side) for side in text.removeprefix("mesh:").split("x")])
        if "|" not in text or not re.fullmatch(r"\d{1,18}\|?(x\d{1,18}\|?)*", text):
            return None
        parts = text.split("x")
        return cls([int(part.strip("|")) for part in parts], ["|" not in part for part in parts])

    @classmethod
    @override
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        match entry:
            case {"sides": [*sides], "wraps": [*wraps]}:
                return cls(sides, wraps)
        return None

    @override
    def to_json(self) -> dict[str, Any]:
        return {"kind": "mesh", "sides": list(self.sides), "wraps": list(self.wraps)}


class Faulty(Part):
    """A network with links and nodes out of order.

    A broken node neither sends nor receives, nor passes on: the others are renumbered in order, and
    collectives are among these.

    Parameters
    ----------
    whole : Topology
        The network without faults.
    broken_links : sequence of (str or (int, int))
        Each as ``9:+0``, or as a node and a port; with ``9:+0:out`` one arc alone, out of the node.
    broken_nodes : sequence of int
        By their numbers in the whole network, as those of links.

    Raises
    ------
    InputError
        If there is no such link or node, or what is left is not strongly connected.

    Examples
    --------
    >>> faulty = Faulty(Torus(4, 4), ["5:-1"], [10])
    >>> faulty.name, faulty.nodes, faulty.node_name(10)
    ('4x4!4:+1,10', 15, '(2,3)')
    """

    kind = "faulty"
    notation = "any of these with faults as in 8x8!0:+0,9"
    entry = '{"kind": "faulty", "whole": {..}, "broken_links": [..], "broken_nodes": [..]}'

    broken_links: tuple[str, ...]
    broken_nodes: tuple[int, ...]

    def __init__(
        self,
        whole: Topology,
        broken_links: Sequence[str | tuple[int, int | str]] = (),
        broken_nodes: Sequence[int] = (),
    ) -> None:
        if isinstance(whole, Faulty):
            broken_links = [*whole.broken_links, *broken_links]
            broken_nodes = [*whole.broken_nodes, *broken_nodes]
            whole = whole.whole
        self.name = f"{whole}!"
        if whole.nodes > MOST_NODES:
            raise InputError(
                f"Network with faults must have at most {MOST_NODES} nodes, not {whole}"
            )
        kept = np.ones(whole.nodes, bool)
        for node in broken_nodes:
            if type(node) is not int or not 0 <= node < whole.nodes:
                raise InputError(
                    f"Broken node must be a node from 0 to {whole.nodes - 1}, not {node!r}"
                )
            kept[node] = False
        if not kept.any():
            raise InputError("Broken nodes must leave at least one node, not none")
        arcs = np.ones((whole.nodes, whole.ports), bool)
        for link in broken_links:
            for arc in _arcs_of(whole, link):
                arcs[arc] = False
        self.broken_nodes = tuple(int(node) for node in np.flatnonzero(~kept))
        self.broken_links = _named_once(whole, arcs, kept)
        if not (self.broken_nodes or self.broken_links):
            raise InputError(f"Faults of {whole} must be at least one link or node, not none")
        self.name += self.faults
        self._take(whole, kept, arcs)

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        if "!" not in text:
            return None
        whole, _, faults = text.rpartition("!")
        return cls.of(parse_topology(whole), faults)

    @classmethod
    def of(cls, whole: Topology, faults: str) -> Self:
        """A network with faults as users write them behind its name.

        Raises
        ------
        InputError
            If there is no such link or node, or nodes are cut off.

        Examples
        --------
        >>> Faulty.of(Torus(4, 4), "9,0:+0").faults
        '0:+0,9'
        """
        words = [word.strip() for word in faults.split(",")]
        nodes = [int(word) for word in words if re.fullmatch(r"\d{1,18}", word)]
        links = [word for word in words if not re.fullmatch(r"\d{1,18}", word)]
        return cls(whole, links, nodes)

    @property
    def faults(self) -> str:
        """What is out of order, as users write it."""
        return ",".join([*self.broken_links, *map(str, self.broken_nodes)])

    @classmethod
    @override
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        match entry:
            case {"whole": whole, "broken_links": [*links], "broken_nodes": [*nodes]}:
                return cls(topology_from_json(whole), links, nodes)
        return None

    @override
    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "faulty",
            "whole": self.whole.to_json(),
            "broken_links": list(self.broken_links),
            "broken_nodes": list(self.broken_nodes),
        }

    @override
    def validate(self) -> None:
        cut_off = self._cut_off()
        if len(cut_off):
            nodes = named_nodes(self.whole, self.kept[cut_off])
            raise InputError(
                "Broken links and nodes must leave a path from each node to every other, not cut "
                f"off {nodes}"
            )

    @cached_property
    def renumbered(self) -> str:
        """Which nodes have other numbers than in the whole network, for people; empty if none."""
        moved = np.flatnonzero(self.kept != np.arange(self.nodes))
        runs = np.split(moved, np.flatnonzero(np.diff(self.kept[moved]) > 1) + 1)
        return ", ".join(f"{_run(self.kept[run])} as {_run(run)}" for run in runs if len(run))


def shared_network(topologies: Iterable[Topology]) -> Topology:
    """The network on which all of several can be: the same, or each without some of its links.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> torus = Torus(4, 4)
    >>> shared_network([torus, Faulty(torus, ["0:+0"])])
    <Torus 4x4>
    """
    first, *others = topologies
    if all(other == first for other in others):
        return first
    wholes = [without_faults(topology) for topology in (first, *others)]
    for topology, whole in zip(others, wholes[1:], strict=True):
        if whole != wholes[0]:
            raise InputError(
                f"Topology must be the same for all collectives of a fabric, {first} but for "
                f"broken links, not {topology}"
            )
    return wholes[0]


def faults_within(network: Topology, topology: Topology) -> str:
    """The faults that a topology has more than the network that it shares, as users write them.

    Examples
    --------
    >>> torus = Torus(4, 4)
    >>> faults_within(torus, Faulty(torus, ["0:+0"])), faults_within(torus, torus)
    ('!0:+0', '')
    """
    more = isinstance(topology, Faulty) and topology != network
    return f"!{topology.faults}" if more and isinstance(topology, Faulty) else ""


def without_faults(topology: Topology) -> Topology:
    """The network with the links that are broken, if all its nodes are there.

    Examples
    --------
    >>> [without_faults(Faulty.of(Torus(4, 4), faults)) for faults in ("0:+0", "9")]
    [<Torus 4x4>, <Faulty 4x4!9>]
    """
    broken = isinstance(topology, Faulty) and not topology.broken_nodes
    return topology.whole if broken and isinstance(topology, Faulty) else topology


def _run(nodes: IntArray) -> str:
    """Consecutive numbers."""
    first, last = int(nodes[0]), int(nodes[-1])
    return str(first) if first == last else f"{first} to {last}"


def _arcs_of(whole: Topology, link: object) -> list[tuple[int, int]]:
    """The arcs of a broken link: both ways, or one."""
    alone = isinstance(link, str) and link.endswith(":out")
    node, port = whole.arc(link.removesuffix(":out") if isinstance(link, str) else link)
    if not whole.linked[node, port]:
        raise InputError(f"Broken link must be one of {whole}, not {node}:{whole.port_names[port]}")
    back = None if alone else _back(whole, node, port)
    return [(node, port)] if back is None else [(node, port), back]


def _back(whole: Topology, node: int, port: int) -> tuple[int, int] | None:
    """The arc that leads back: by the opposite port, or as the first, second, .. of several."""
    there, back = int(whole.neighbours[node, port]), int(whole.opposite[port])
    if whole.linked[there, back] and whole.neighbours[there, back] == node:
        return there, back
    alike = np.flatnonzero(whole.linked[node] & (whole.neighbours[node] == there)).tolist()
    ways = np.flatnonzero(whole.linked[there] & (whole.neighbours[there] == node)).tolist()
    rank = alike.index(port)
    return (there, ways[rank]) if rank < len(ways) else None


def _named_once(whole: Topology, arcs: BoolArray, kept: BoolArray) -> tuple[str, ...]:
    """Broken links in order, each by the lower of its ends, or one way alone."""
    names: list[str] = []
    seen: set[tuple[int, int]] = set()
    for node, port in np.argwhere(~arcs).tolist():
        if not (kept[node] and kept[whole.neighbours[node, port]]) or (node, port) in seen:
            continue
        back, name = _back(whole, node, port), f"{node}:{whole.port_names[port]}"
        both = back is not None and not arcs[back]
        if back is not None and both:
            seen.add(back)
        names.append(name if both or back is None else f"{name}:out")
    return tuple(names)
