"""Circulants, which are rings with additional longer links; complete graphs; and hypercubes."""

from collections.abc import Iterable

import numpy as np
from typing_extensions import override

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import entries_of
from .cayley import CayleyGraph
from .topology import EntryTopology, IntArray, IntLike, cached_array

__all__ = ["Circulant", "Complete", "Cube"]

#: The most nodes of a circulant, the most nodes of a complete graph, the most axes of a hypercube.
MOST_NODES, MOST_COMPLETE, MOST_AXES = 2**20, 1024, 16


@public_class
class Circulant(EntryTopology, CayleyGraph):
    """A ring of N nodes, in which node v is linked to v + s and v - s for each offset s.

    Ports are ``+1 -1 +4 -4 ..``: a direction and an offset. An offset of N / 2 leads to the same
    node both ways, so it has a single port, ``+``.

    Parameters
    ----------
    nodes : int
        Number N of nodes, at least 2.
    offsets : sequence of int
        Different integers from 1 to N / 2. N and the offsets must have no divisor in common, else
        some nodes would be out of reach.

    Raises
    ------
    InputError
        If the number of nodes or the offsets are invalid.

    Examples
    --------
    >>> circulant = Circulant(16, [1, 4])
    >>> circulant.name, circulant.port_names, circulant.diameter
    ('circulant:16:1,4', ('+1', '-1', '+4', '-4'), 3)
    """

    kind = "circulant"
    notation = "circulant:NODES:OFFSET,.."
    pattern = r"circulant:([0-9]{1,9}):([0-9]{1,9}(?:,[0-9]{1,9})*)"
    entry = '{"kind": "circulant", "nodes": .., "offsets": [..]}'

    def __init__(self, nodes: int, offsets: Iterable[int]) -> None:
        self.offsets = entries_of(offsets)
        if type(nodes) is not int or not 2 <= nodes <= MOST_NODES:
            raise InputError(f"Nodes of a circulant must be from 2 to {MOST_NODES}, not {nodes!r}")
        half = nodes // 2
        fitting = [step for step in self.offsets if type(step) is int and 1 <= step <= half]
        if len({*fitting}) < max(len(self.offsets), 1):
            raise InputError(
                f"Offsets of a circulant of {nodes} nodes must be different integers from 1 to "
                f"{half}, not {[*self.offsets]}"
            )
        if np.gcd.reduce([nodes, *self.offsets]) > 1:
            raise InputError(
                f"Offsets of a circulant of {nodes} nodes must have no divisor in common with that "
                f"number, not {[*self.offsets]}: they do not reach all nodes"
            )
        self.name = f"circulant:{nodes}:{','.join(map(str, self.offsets))}"
        self.nodes = nodes
        ways = [(step, sign) for step in self.offsets for sign in (1, -1)[: 1 + (2 * step < nodes)]]
        self._steps = np.array([sign * step % nodes for step, sign in ways])
        self.ports = len(ways)
        self.port_names = tuple(f"{'+' if sign > 0 else '-'}{step}" for step, sign in ways)
        back = {step: port for port, step in enumerate(self._steps.tolist())}
        self.opposite = np.array([back[-step % nodes] for step in self._steps.tolist()])

    @property
    @override
    def generators(self) -> IntArray:
        return self._steps

    @property
    @override
    def moduli(self) -> tuple[int, ...]:
        return (self.nodes,)

    @override
    def coordinates(self, nodes: IntLike) -> IntArray:
        return np.asarray(nodes, np.int64)[None]

    @override
    def node_name(self, node: int) -> str:
        return f"({int(node)})"


@public_class
class Complete(Circulant):
    """A complete graph: every node is linked to every other. It is the circulant with all offsets.

    Parameters
    ----------
    nodes : int
        Number of nodes, from 2 to 1024.

    Examples
    --------
    >>> Complete(6).ports, Complete(6).diameter
    (5, 1)
    """

    kind = "complete"
    notation = "complete:NODES"
    pattern = r"complete:([0-9]{1,9})"
    entry = '{"kind": "complete", "nodes": ..}'

    def __init__(self, nodes: int) -> None:
        if type(nodes) is not int or not 2 <= nodes <= MOST_COMPLETE:
            raise InputError(
                f"Nodes of a complete graph must be from 2 to {MOST_COMPLETE}, not {nodes!r}"
            )
        super().__init__(nodes, range(1, nodes // 2 + 1))
        self.name = f"complete:{nodes}"


@public_class
class Cube(EntryTopology, CayleyGraph):
    """A hypercube: two nodes are linked if their numbers differ in one bit.

    Port k leads to the node whose number differs in bit k. The torus with all sides 2 is the same
    graph with two parallel links in place of each link.

    Parameters
    ----------
    axes : int
        Number of axes, which is the number of bits of a node number, from 1 to 16.

    Raises
    ------
    InputError
        If the number of axes is invalid.

    Examples
    --------
    >>> cube = Cube(4)
    >>> cube.nodes, cube.ports, cube.diameter, cube.node_name(6)
    (16, 4, 4, '0110')
    """

    kind = "cube"
    notation = "cube:AXES"
    pattern = r"cube:([0-9]{1,9})"
    entry = '{"kind": "cube", "axes": ..}'

    def __init__(self, axes: int) -> None:
        if type(axes) is not int or not 1 <= axes <= MOST_AXES:
            raise InputError(f"Axes of a cube must be from 1 to {MOST_AXES}, not {axes!r}")
        self.axes, self.name = axes, f"cube:{axes}"
        self.nodes, self.ports = 1 << axes, axes
        self.port_names = tuple(str(axis) for axis in range(axes))
        self.opposite = np.arange(axes)

    @property
    @override
    def generators(self) -> IntArray:
        return 1 << np.arange(self.axes)

    @property
    @override
    def moduli(self) -> tuple[int, ...]:
        return (2,) * self.axes

    @override
    def coordinates(self, nodes: IntLike) -> IntArray:
        return np.stack([np.asarray(nodes) >> axis & 1 for axis in range(self.axes)])

    @cached_array
    @override
    def distances(self) -> IntArray:
        ones: IntArray = self.coordinates(np.arange(self.nodes)).sum(axis=0)
        return ones.astype(np.int32)

    @override
    def node_name(self, node: int) -> str:
        return f"{int(node):0{self.axes}b}"
