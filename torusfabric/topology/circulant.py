"""Circulants: rings with longer links, up to complete graphs; and hypercubes."""

from collections.abc import Iterable

import numpy as np
from typing_extensions import override

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import entries_of
from .cayley import CayleyGraph
from .topology import FromEntry, IntArray, IntLike, cached_array

__all__ = ["Circulant", "Complete", "Cube"]

#: The most nodes of a circulant and of a complete graph, and axes of a hypercube.
MOST_NODES, MOST_COMPLETE, MOST_AXES = 2**20, 1024, 16


@public_class
class Circulant(FromEntry, CayleyGraph):
    """A ring with links to the nodes some steps away, each way.

    Ports are ``+1 -1 +4 -4 ..``: by how many steps a link leads on. A link half way round leads to
    the same node both ways: it is one port, without a ``-``.

    Parameters
    ----------
    nodes : int
        At least 2.
    offsets : sequence of int
        Different, from 1 to half the number of nodes, without a common divisor with that.

    Raises
    ------
    InputError
        If numbers are not such, so that not all nodes are reached.

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
    """Every node linked with every other: the circulant with all offsets.

    Parameters
    ----------
    nodes : int
        At least 2.

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
class Cube(FromEntry, CayleyGraph):
    """A hypercube: nodes whose numbers differ in one bit are linked.

    Port k leads to the node whose bit k is the other. A torus of sides of 2 has two links in place
    of each.

    Parameters
    ----------
    axes : int
        Bits of a node's number, from 1 to 16.

    Raises
    ------
    InputError
        If it is no such number.

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
