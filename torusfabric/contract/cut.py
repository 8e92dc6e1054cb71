"""A fabric of some of the nodes of a program, whose other nodes are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from ..topology import IntArray

__all__ = ["Cut"]


@dataclass(frozen=True, eq=False)
class Cut:
    """One of several equal blocks of nodes: the one that a fabric builds.

    Node k of a block lies where node k of any other block does. So do the link ports, at which the
    arcs to other blocks end, and those from other blocks begin.

    Parameters
    ----------
    nodes : ndarray of int, shape (blocks, nodes)
        The nodes of each block.
    number : int
        The block that is built.
    links : sequence of (int, int)
        Of each link port the node, by its number in the block, and the port of the node.
    """

    nodes: IntArray
    number: int
    links: tuple[tuple[int, int], ...]

    @property
    def here(self) -> list[int]:
        """The nodes that are built."""
        found: list[int] = self.nodes[self.number].tolist()
        return found
