"""Necklaces of a k-ary n-cube, and the trees that are balanced by rotating them.

A *rotation* takes node (c_0, .., c_(n-1)) to (-c_(n-1), c_0, .., c_(n-2)). It keeps node 0 and all
distances, and permutes the ports in one cycle of length G = 2 n, so that the G images of an arc
have different ports. For k = 2 the two directions of an axis are one port, here +, and G = n. The
orbit of a node is its *necklace*. The length of the necklace, its *period*, divides G; a necklace
of length G is *full*. The *generator* of a necklace is the node with the largest binary
correspondent (1 for each digit that is not 0); among equal ones, the node with the largest digits
in the order 0, 1, k-1, 2, k-2, ... The *displacement* of a node is the number of rotations that
lead to it from the generator. These are Definitions 2 to 6 of the report that `plan` names. Its
digit v_i is coordinate n-1-i here, so that labels read alike.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....topology import Torus

__all__ = ["Necklaces"]


@dataclass(frozen=True)
class Necklaces:
    """The necklaces of a torus of n equal sides k, and trees that are rotations of each other.

    A rotation takes node (c_0, .., c_(n-1)) to (-c_(n-1), c_0, .., c_(n-2)), and each port to
    another one. A necklace is the set of nodes to which rotations take a node; one of these is
    chosen as its generator.
    """

    topology: Torus

    @property
    def side(self) -> int:
        """The side length k."""
        return self.topology.sides[0]

    @property
    def n_ports_used(self) -> int:
        """The number G of ports used: 2 n, or n if k = 2, where one port of each axis is used."""
        return self.topology.ports // (2 if self.side == 2 else 1)

    @cached_property
    def rotated_port(self) -> np.ndarray:
        """The port to which a rotation takes each port, an array of shape (ports,).

        A rotation takes node (c_0, .., c_(n-1)) to (-c_(n-1), c_0, .., c_(n-2)).
        """
        axes = len(self.topology.sides)
        if self.side == 2:
            plus = 2 * ((np.arange(axes) + 1) % axes)
            return np.stack([plus, plus + 1], axis=1).ravel()
        ports = (np.arange(2 * axes) + 2) % (2 * axes)
        ports[-2:] = 1, 0
        return ports

    @cached_property
    def rotated_node(self) -> np.ndarray:
        """The node to which a rotation takes each node, an array of shape (nodes,).

        A rotation takes node (c_0, .., c_(n-1)) to (-c_(n-1), c_0, .., c_(n-2)).
        """
        coordinates = self.topology.coordinates(np.arange(self.topology.nodes))
        return self.topology.node(np.concatenate([-coordinates[-1:], coordinates[:-1]]))

    @cached_property
    def _node_rank(self) -> np.ndarray:
        """The rank of each node; in each necklace, the node with the largest rank is the generator.

        A necklace is the set of nodes to which rotations (see `rotated_node`) take a node.
        """
        side, nodes = self.side, self.topology.nodes
        coordinates = self.topology.coordinates(np.arange(nodes))
        digit = np.arange(side)
        order = np.where(2 * digit <= side, 2 * digit - 1, 2 * (side - digit))
        order[0] = 0
        rank = np.zeros(nodes, dtype=np.int64)
        for digits, base in ((coordinates > 0, 2), (order[coordinates], side)):
            for axis in digits:
                rank = rank * base + axis
        return rank

    @cached_property
    def _periods_and_displacements(self) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays of shape (nodes,): the values of `necklace_period` and of `displacement`."""
        nodes = np.arange(self.topology.nodes)
        period = np.zeros(len(nodes), dtype=np.int16)
        best, ahead = self._node_rank.copy(), np.zeros(len(nodes), dtype=np.int16)
        image = nodes
        for turns in range(1, self.n_ports_used + 1):
            image = self.rotated_node[image]
            period[(period == 0) & (image == nodes)] = turns
            larger = self._node_rank[image] > best
            best[larger], ahead[larger] = self._node_rank[image[larger]], turns
        return period, (period - ahead) % period

    @property
    def necklace_period(self) -> np.ndarray:
        """The number of nodes in the necklace of each node, an array of shape (nodes,).

        A rotation maps the torus onto itself and axis to axis (see `rotated_node`). A necklace is
        the set of nodes to which rotations take a node.
        """
        return self._periods_and_displacements[0]

    @property
    def displacement(self) -> np.ndarray:
        """The number of rotations that lead to each node from the generator of its necklace.

        A rotation maps the torus onto itself and axis to axis (see `rotated_node`). A necklace is
        the set of nodes to which rotations take a node, and its generator is one of these. The
        array has the shape (nodes,).
        """
        return self._periods_and_displacements[1]

    @cached_property
    def generators(self) -> np.ndarray:
        """One node of each necklace except that of node 0, in order of distance, as an array.

        A rotation maps the torus onto itself and axis to axis (see `rotated_node`). A necklace is
        the set of nodes to which rotations take a node. The node of the result is its generator.
        """
        nodes = np.nonzero(self.displacement == 0)[0][1:]
        return nodes[np.argsort(self.topology.distances[nodes], kind="stable")]

    @cached_property
    def even_chunks(self) -> int:
        """The smallest number of chunks that can be shared evenly among the trees, at every node.

        A node receives the chunks of a message over the trees that contain it. If rotations (see
        `rotated_node`) take the node to P different nodes, these are G / P trees, for G ports, and
        each carries an equal share if the number of chunks is a multiple of G / P. The result is
        the odd part of n for odd k, 2 n for even k from 4 on, and n for k = 2.
        """
        return math.lcm(
            *(
                self.n_ports_used // period
                for period in np.unique(self.necklace_period[1:]).tolist()
            )
        )

    def rotated_arcs(self, node: int, port: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the images of an arc under 0, 1, .. G - 1 rotations, for G ports.

        The arc leads into `node` and leaves its tail by `port`. The result is two arrays of shape
        (G,): the nodes into which the images lead, and their ports.
        """
        nodes, ports = [node], [port]
        for _ in range(self.n_ports_used - 1):
            nodes.append(self.rotated_node[nodes[-1]])
            ports.append(self.rotated_port[ports[-1]])
        return np.array(nodes), np.array(ports)

    def chunk_shares(self, node: int, chunks: int) -> tuple[int, np.ndarray]:
        """Return the chunks for a node that each of the G rotated trees carries (section 5.3).

        Parameters
        ----------
        chunks : int
            Number of chunks of a message.

        Returns
        -------
        share : int
            Number of consecutive chunks that each tree carries to its image of the node.
        first : ndarray of int, shape (G,)
            The first of these chunks in each tree. Numbers from `chunks` on stand for no chunk.
        """
        period = int(self.necklace_period[node])
        share = -(-chunks * period // self.n_ports_used)
        return share, np.arange(self.n_ports_used) // period * share

    @cached_property
    def tree_parents(self) -> tuple[np.ndarray, np.ndarray]:
        """The parent of each node in tree 0, and the out-port from the parent; -1 for other nodes.

        Tree 0 has one node of each necklace (its generator), and node 0 as root. The result is two
        arrays of shape (nodes,).

        Notes
        -----
        The parent is the first predecessor that is node 0 or the generator of a full necklace.
        Digits are tried from the last coordinate to the first, and digit k / 2 is reached from k /
        2 + 1 before k / 2 - 1. (Definition 8 takes the first predecessor, which for even k >= 4
        need not be in the tree.)
        """
        nodes, side = np.arange(self.topology.nodes), self.side
        inner = (self.displacement == 0) & (self.necklace_period == self.n_ports_used)
        inner[0] = True
        coordinates = self.topology.coordinates(nodes)
        parent, port = np.full((2, len(nodes)), -1)
        opened = np.zeros(len(nodes), dtype=bool)
        opened[self.generators] = True
        for axis in reversed(range(len(coordinates))):
            digit = coordinates[axis]
            for onto, back in ((1, 2 * digit >= side), (0, (digit > 0) & (2 * digit <= side))):
                if side == 2 and onto:
                    continue
                before = self.topology.neighbours[:, 2 * axis + 1 - onto]
                found = opened & back & inner[before]
                parent[found], port[found] = before[found], 2 * axis + onto
                opened &= ~found
        if opened.any():
            raise AssertionError(f"generator {np.argmax(opened)} has no parent")
        return parent, port

    @cached_property
    def spanning_tree(self) -> tuple[np.ndarray, np.ndarray]:
        """The parent of each node in the spanning tree, and the parent's port towards the node.

        The result is two arrays of shape (nodes,). The subtree at port i of the root is tree 0 (see
        `tree_parents`), rotated i times. Of the nodes of the rotated tree, it has only those that
        are i rotations away from the generator of their necklace.
        """
        tail, port = (column.copy() for column in self.tree_parents)
        nodes = self.generators
        tails, ports = tail[nodes], port[nodes]
        for turns in range(1, self.n_ports_used):
            nodes, tails, ports = (
                self.rotated_node[nodes],
                self.rotated_node[tails],
                self.rotated_port[ports],
            )
            mine = self.displacement[nodes] == turns
            tail[nodes[mine]], port[nodes[mine]] = tails[mine], ports[mine]
        return tail, port

    def route(self, node: int) -> tuple[list[int], list[int]]:
        """Return a shortest route from node 0 to `node`, axis by axis.

        It is two lists: the nodes reached, and the out-ports taken.
        """
        topology, nodes, ports = self.topology, [0], []
        for axis, digit in enumerate(topology.coordinates(node).tolist()):
            back = 2 * digit >= self.side > 2
            for _ in range(self.side - digit if back else digit):
                ports.append(2 * axis + back)
                nodes.append(int(topology.neighbours[nodes[-1], ports[-1]]))
        return nodes[1:], ports
