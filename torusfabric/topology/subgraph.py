"""Networks that are part of a larger one: the base class `Subgraph`, and meshes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np
from typing_extensions import Self, override

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import is_iterable, message_text
from .graph import Graph
from .topology import BoolArray, EntryTopology, IntArray, Topology, cached_array
from .torus import Torus

__all__ = ["MOST_NODES", "Mesh", "Subgraph"]

#: The most nodes of a mesh and of a network with faults. Their distances are found by searches.
MOST_NODES = 2**16


class Subgraph(Graph):
    """Some of the nodes of a whole network, and some of the arcs between them.

    The kept nodes are renumbered in order. Ports are the ports of the whole network.

    Attributes
    ----------
    whole : Topology
        The network from which the part is taken.
    kept : ndarray of int, shape (nodes,)
        The number in the whole network of each node.
    """

    whole: Topology
    kept: IntArray

    def _fill_from_whole(self, whole: Topology, kept: BoolArray, arcs: BoolArray) -> None:
        """Set the attributes of this network, given the nodes and arcs that it keeps of `whole`.

        `kept`, shape (nodes of `whole`,), is True for a node that is kept. `arcs`, shape (nodes of
        `whole`, ports), is True for an arc that is kept.
        """
        self.whole, self.kept = whole, np.flatnonzero(kept)
        self.nodes, self.ports = len(self.kept), whole.ports
        self.port_names, self.opposite = whole.port_names, whole.opposite
        self.dimensions = whole.dimensions if self.nodes == whole.nodes else 0
        self.link_latency = whole.link_latency
        self.relays = tuple(np.flatnonzero(np.isin(self.kept, whole.relays)).tolist())
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

    @cached_array
    @override
    def cycles_of_port(self) -> IntArray:
        if isinstance(self.link_latency, int):
            return super().cycles_of_port
        return self.whole.on_links(self.link_latency).cycles_of_port

    @property
    @override
    def spacing_of_arc(self) -> IntArray:
        return self.whole.spacing_of_arc[self.kept]

    @override
    def node_name(self, node: int) -> str:
        return self.whole.node_name(int(self.kept[node]))


@public_class
class Mesh(EntryTopology, Subgraph):
    """A grid like a torus, but without wrap-around along some axes, or along all.

    Parameters
    ----------
    sides : sequence of int
        The side lengths, each at least 2.
    wraps : sequence of bool, optional
        For each axis True if it has wrap-around; by default no axis has.

    Raises
    ------
    InputError
        If a side or a flag is invalid, or if all axes have wrap-around.

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
        if wraps is not None and not is_iterable(wraps):
            raise InputError(
                "Wraps of a mesh must be true or false for each of its axes, not "
                f"{message_text(wraps)}"
            )
        self.wraps = (False,) * len(self.sides) if wraps is None else tuple(wraps)
        flags = all(isinstance(wrap, bool | np.bool_) for wrap in self.wraps)
        if len(self.wraps) != len(self.sides) or not flags:
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
        self._fill_from_whole(whole, np.ones(whole.nodes, bool), np.stack(arcs, axis=1))

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        if re.fullmatch(r"mesh:[0-9]{1,18}(x[0-9]{1,18})*", text):
            return cls([int(side) for side in text.removeprefix("mesh:").split("x")])
        if "|" not in text or not re.fullmatch(r"[0-9]{1,18}\|?(x[0-9]{1,18}\|?)*", text):
            return None
        parts = text.split("x")
        return cls([int(part.strip("|")) for part in parts], ["|" not in part for part in parts])
