"""Groups of nodes in which a collective runs, and the position of each node in its group.

Groups are sub-tori that axes span, or sets of nodes that a user lists. Sub-tori are alike, and no
data leave a group. The data of listed groups may pass through any node of the network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .cayley import require_cayley_graph
from .faulty import Faulty
from .subgraph import Mesh
from .topology import BoolArray, IntArray, IntLike, Topology, cached_array
from .torus import Torus

__all__ = ["Groups", "check_members", "parse_axes"]


@dataclass(frozen=True)
class Groups:
    """The groups of nodes in which a collective runs: all nodes, sub-tori, or listed nodes.

    The *position* of a node is its number in the torus of its group. That torus is row-major in the
    axes that span it, and every group is a translation of the group that contains node 0.

    One group of all nodes may leave out nodes. The remaining nodes are renumbered in order. In a
    listed group, the position of a node is its place in the list. A node that is in no group has
    position 0 and group -1.

    Parameters
    ----------
    topology : Topology
        The whole network.
    axes : tuple of int or None
        The axes that span each group, ascending; None for one group of all nodes.
    without : tuple of int
        Node numbers that take no part; only allowed in one group of all nodes.
    listed : tuple of (tuple of int)
        The nodes of each group in the order of their positions, if a user lists them. Other nodes
        may relay data of the groups.

    Raises
    ------
    InputError
        If the axes are not one or more different axes of the topology, or if the listed groups do
        not fit it (see `check_members`).

    Examples
    --------
    The columns of a torus with three rows:

    >>> columns = Groups(Torus(3, 4), (0,))
    >>> columns.n_groups, columns.group_size, columns.group_topology
    (4, 3, <Torus 3>)
    >>> columns.members.tolist()
    [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    >>> int(columns.position_of_node[5]), int(columns.group_of_node[5]), int(
    ...     columns.node_in_same_group(5, 2))
    (1, 1, 9)

    Two groups of listed nodes, which have different sizes:

    >>> listed = Groups(Torus(3, 4), listed=((0, 5, 2), (11, 7)))
    >>> listed.n_groups, listed.group_size, listed.group_topology, int(listed.group_of_node[7])
    (2, 3, <Torus 3x4>, 1)
    >>> listed.members.tolist()
    [[0, 5, 2], [11, 7, 7]]
    """

    topology: Topology
    axes: tuple[int, ...] | None = None
    without: tuple[int, ...] = ()
    listed: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        parse_axes(self.topology, self.axes)
        check_members(self.topology, self.listed)
        if self.axes is not None:
            object.__setattr__(self, "axes", tuple(sorted(self.axes)))

    @property
    def n_groups(self) -> int:
        """Number of groups of nodes in which the collective runs."""
        if self.listed:
            return len(self.listed)
        return (self.topology.nodes - len(self.without)) // self.group_size

    @property
    def group_size(self) -> int:
        """Number of nodes of a group; of the largest one, if a user lists the groups."""
        return max(map(len, self.listed)) if self.listed else self._unbroken_group.nodes

    @cached_array
    def sizes(self) -> IntArray:
        """Number of nodes of each group, shape (n_groups,)."""
        return np.array([*map(len, self.listed)] or [self.group_size] * self.n_groups)

    @cached_property
    def has_several_sizes(self) -> bool:
        """True if a group has fewer nodes than another."""
        return len(set(map(len, self.listed))) > 1

    @cached_property
    def group_topology(self) -> Topology:
        """The topology over which the data of a group may travel.

        For sub-tori it is that of one group; a link is missing if it is missing in any group. For
        listed groups it is the whole network.
        """
        if self.listed:
            return self.topology
        torus = self._unbroken_group
        if self.axes is None:
            return torus
        linked = self.topology.linked[:, self.port_in_topology][self.members].all(axis=0)
        missing = np.argwhere(torus.linked & ~linked).tolist()
        broken = [f"{v}:{torus.port_names[p]}:out" for v, p in missing]
        group = Faulty(torus, broken) if broken else torus
        latency = self.topology.cycles_of_port[::2]
        return group.on_links([int(latency[axis]) for axis in self.axes])

    @cached_array
    def members(self) -> IntArray:
        """The node at each position of each group, shape (n_groups, group_size).

        A group that has fewer nodes than the largest one repeats its last node; see `is_member`.
        """
        if self.listed:
            return np.array([
                [*group, *group[-1:] * (self.group_size - len(group))] for group in self.listed
            ])  # fmt: skip
        nodes = np.arange(self.topology.nodes)
        if self.axes is None:
            return np.delete(nodes, self.without)[None]
        others = [axis for axis in range(len(self._grid_sides)) if axis not in self.axes]
        grid = nodes.reshape(self._grid_sides).transpose(*others, *self.axes)
        return np.ascontiguousarray(grid).reshape(self.n_groups, self.group_size)

    @cached_array
    def is_member(self) -> BoolArray:
        """True at each position that a group has, shape (n_groups, group_size)."""
        return np.arange(self.group_size) < self.sizes[:, None]

    @cached_property
    def node_lists(self) -> list[IntArray]:
        """The nodes of each group in the order of their positions."""
        return [nodes[:size] for nodes, size in zip(self.members, self.sizes, strict=True)]

    @cached_array
    def position_of_node(self) -> IntArray:
        """The position of each node in its group, shape (nodes,); 0 for a node in no group."""
        position = np.zeros(self.topology.nodes, int)
        position[self.members[self.is_member]] = np.nonzero(self.is_member)[1]
        return position

    @cached_array
    def group_of_node(self) -> IntArray:
        """The number of the group of each node, shape (nodes,); -1 for a node in no group."""
        group = np.full(self.topology.nodes, -1)
        group[self.members] = np.arange(self.n_groups)[:, None]
        return group

    @property
    def map_row_of_node(self) -> IntArray:
        """The row of each node in address maps, shape (nodes,): its position in its sub-torus.

        Nodes of listed groups store blocks at different addresses, so each has a row of its own,
        with the number of the node.
        """
        return np.arange(self.topology.nodes) if self.listed else self.position_of_node

    @property
    def node_of_map_row(self) -> IntArray:
        """A node for each row of address maps, see `map_row_of_node`; shape (rows,)."""
        return np.arange(self.topology.nodes) if self.listed else self.members[0]

    @property
    def n_map_rows(self) -> int:
        """Number of rows of address maps, see `map_row_of_node`."""
        return len(self.node_of_map_row)

    @cached_array
    def port_in_topology(self) -> IntArray:
        """The number of each port of `group_topology` in the whole topology.

        The shape is (ports of `group_topology`,).
        """
        if self.axes is None:
            return np.arange(self.topology.ports)
        return np.array([2 * axis + sign for axis in self.axes for sign in (0, 1)])

    @cached_array
    def port_in_group(self) -> IntArray:
        """The number in `group_topology` of each port of the whole topology, shape (ports,).

        -1 for a port whose link leads to another group.
        """
        ports = np.full(self.topology.ports, -1)
        ports[self.port_in_topology] = np.arange(len(self.port_in_topology))
        return ports

    def node_in_same_group(self, nodes: IntLike, position: IntLike) -> IntArray:
        """Return the node at `position` in the group of each of `nodes`, elementwise."""
        return self.members[self.group_of_node[nodes], position]

    def translate_values(self, values: NDArray[Any], root: int) -> NDArray[Any]:
        """Translate per-node values that are given for root 0 to another root.

        Node v gets the value of the node whose offset from position 0 is the offset of v from
        `root`.

        Parameters
        ----------
        values : ndarray, shape (nodes, ..)
            The values of each node for root 0.
        root : int
            The position of the root in its group.

        Returns
        -------
        ndarray
            The translated values, in the shape of `values`.

        Examples
        --------
        On a ring of four, node 1 is the root. It gets the value 7, which belongs to the root.

        >>> Groups(Torus(4)).translate_values(np.array([7, 1, 2, 3]), 1).tolist()
        [3, 7, 1, 2]
        """
        offset = require_cayley_graph(self.group_topology).subtract(
            np.arange(self.group_size), root
        )
        node = np.arange(self.topology.nodes)
        node[self.members] = self.members[:, offset]
        return values[node]

    @cached_property
    def _unbroken_group(self) -> Topology:
        """The topology of a group without the faults of the network, if axes span the group.

        One group of all nodes keeps its faults.
        """
        if self.without:
            topology, broken = self.topology, np.array(self.without)
            if isinstance(topology, Faulty):
                broken = topology.kept[broken]
            return Faulty(topology, broken_nodes=broken.tolist())
        if self.axes is None:
            return self.topology
        sides, whole = [self._grid_sides[axis] for axis in self.axes], self._whole_grid
        wraps = [isinstance(whole, Torus) or whole.wraps[axis] for axis in self.axes]
        return Torus(sides) if all(wraps) else Mesh(sides, wraps)

    @property
    def _grid_sides(self) -> tuple[int, ...]:
        """The sides of the torus or mesh that is cut into groups."""
        return self._whole_grid.sides

    @property
    def _whole_grid(self) -> Torus | Mesh:
        """The torus or mesh that is cut into groups, without faults."""
        whole = self.topology.whole if isinstance(self.topology, Faulty) else self.topology
        assert isinstance(whole, Torus | Mesh)
        return whole


def parse_axes(topology: Topology, axes: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the axes that span groups of a topology, ascending; None for one group of all nodes.

    Parameters
    ----------
    axes : sequence of int or None
        None, or all axes of the topology, for one group.

    Raises
    ------
    InputError
        If the axes are not one or more different axes of the topology.

    Examples
    --------
    >>> parse_axes(Torus(4, 4, 4), [2, 0])
    (0, 2)
    """
    if axes is None:
        return None
    if not topology.dimensions:
        raise InputError(f"{topology} has no axes; leave the axes {list(axes)} out")
    chosen = tuple(sorted(set(axes)))
    every = range(topology.dimensions)
    if not chosen or len(chosen) < len(axes) or not set(chosen) <= set(every):
        known = ", ".join(map(str, every))
        raise InputError(
            f"Axes must be some of the axes {known} of {topology}, each once, not {list(axes)}"
        )
    return None if len(chosen) == len(every) else chosen


def check_members(topology: Topology, listed: Sequence[Sequence[int]]) -> None:
    """Check that groups of listed nodes fit a topology.

    Parameters
    ----------
    listed : sequence of (sequence of int)
        The nodes of each group; empty if no groups are listed.

    Raises
    ------
    InputError
        If a node does not exist, only relays or is listed twice, or if a group has fewer than two
        nodes.

    Examples
    --------
    >>> check_members(Torus(4), [[0, 1], [1, 2]])
    Traceback (most recent call last):
    torusfabric.errors.InputError: Node 1 is listed twice; a node is in one group at most
    """
    last, seen = topology.nodes - 1, set[int]()
    for node in (node for group in listed for node in group):
        if not 0 <= node <= last:
            raise InputError(f"Nodes of groups must be from 0 to {last} on {topology}, not {node}")
        if node in topology.relays:
            raise InputError(
                f"Groups must leave out the relay {node} of {topology}, which sends and receives "
                "nothing of its own"
            )
        if node in seen:
            raise InputError(f"Node {node} is listed twice; a node is in one group at most")
        seen.add(node)
    smallest = min(map(len, listed), default=2)
    if smallest < 2:
        raise InputError(f"A group must have at least 2 nodes, not {smallest}")
