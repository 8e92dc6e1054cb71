"""The description of a fabric that holds some nodes of a program; other fabrics hold the rest."""

from __future__ import annotations

from dataclasses import dataclass

from ..topology import IntArray

__all__ = ["NodeBlock"]


@dataclass(frozen=True, eq=False)
class NodeBlock:
    """A part of the nodes of a network, for a fabric that has only these, on one of several chips.

    The nodes of the network are divided into blocks. The fabric has the nodes of one of them.

    All blocks have N nodes and the same structure: node k of a block has the same position within
    its block as node k of any other block. An arc between two blocks ends at a *link port* of one
    block and begins at a link port of the other. The link ports of all blocks have the same
    positions too.

    Parameters
    ----------
    nodes : ndarray of int, shape (blocks, N)
        Node numbers in the whole topology, for each block.
    number : int
        Number of the block that the fabric has: an index into `nodes`.
    links : sequence of (int, int)
        A pair for each link port: the node, as its number within the block, and the port of the
        node.
    """

    nodes: IntArray
    number: int
    links: tuple[tuple[int, int], ...]

    @property
    def built_nodes(self) -> list[int]:
        """Nodes of the fabric, by their numbers in the whole topology."""
        found: list[int] = self.nodes[self.number].tolist()
        return found
