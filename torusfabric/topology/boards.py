"""A torus that is cut into equal blocks of nodes, one block on each board.

In this module, a *block* is such a part of the torus (a board block), not a unit of data.

Links of the torus may be slow or have a rate, and nodes may only relay: each board has its part of
such a network.

The torus 4x4 on 2x1 boards::

     0   1   2   3   board 0
     4   5   6   7
    --------------
     8   9  10  11   board 1
    12  13  14  15

The numbers in the picture are those of the whole torus. On each board, nodes have a second number
that counts row by row within the block: nodes 0, 1, 2 .. of board 1 are nodes 8, 9, 10 .. of the
torus. A *link port* is a node (by its number on the board) and a port whose arc leaves the board;
another arc enters the board there. All boards have the same link ports, whose latencies may differ.

The boards form a torus themselves. A spanning tree of this torus, with board 0 as its root, carries
signals on which all boards must agree, such as the start of a run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..toolchain.public import public_class
from .blocks import arcs_between_blocks, block_numbers, parse_block_counts
from .faulty import Faulty
from .rated import ParallelLinks, Rated
from .topology import IntArray, Topology, cached_array
from .torus import Torus

__all__ = ["Boards", "LinkEnd", "LinkPort"]


class LinkPort(NamedTuple):
    """A port by which a board is linked to another board.

    Parameters
    ----------
    node : int
        Number of the node on its board.
    port : int
        Port of the node: its out-port drives the arc to the other board, its in-port receives the
        arc back.
    """

    node: int
    port: int


class LinkEnd(NamedTuple):
    """One end of a link between boards: a board, and an index in `Boards.link_ports`."""

    board: int
    link: int


@public_class
@dataclass(frozen=True)
class Boards:
    """A torus on several boards, one block of nodes (a board block) on each.

    A *link port* is a port of a node whose link leads to another board. The boards form a torus
    themselves; in the *tree* of boards, each has as few links as possible between it and board 0.

    Parameters
    ----------
    torus : Topology
        The whole torus. Its links may have rates and latencies of their own, and links on boards
        may be broken.
    counts : tuple of int
        Number of blocks along each axis.

    Raises
    ------
    InputError
        If the topology is no torus, if the blocks are not equal, if there is only one block, or if
        link ports differ from board to board.

    Examples
    --------
    The upper half of a torus is on board 0, the lower half on board 1. Port -0 (number 1) of node 0
    is a link port. Its link ends at link port 4 of board 1.

    >>> boards = Boards.parse("2x1", Torus(4, 4))
    >>> boards.n_boards, boards.nodes_by_board[1].tolist()
    (2, [8, 9, 10, 11, 12, 13, 14, 15])
    >>> boards.link_ports[:2], boards.far_ends[0][0]
    ((LinkPort(node=0, port=1), LinkPort(node=1, port=1)), LinkEnd(board=1, link=4))
    """

    torus: Topology
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        whole = self.torus
        while isinstance(whole, Faulty | ParallelLinks | Rated):
            whole = whole.whole
        if type(whole) is not Torus or whole.nodes != self.torus.nodes:
            raise InputError(
                f"Topology on several boards must be a torus without broken nodes, not {self.torus}"
            )
        block_numbers(whole, self.counts, "Boards")
        cut = arcs_between_blocks(self.torus, self.counts)[self.nodes_by_board]
        if (cut != cut[0]).any():
            board, node, port = np.argwhere(cut != cut[0])[0].tolist()
            raise InputError(
                f"Links between boards must be alike on all boards, but only one of boards 0 and "
                f"{board} has one at port {self.torus.port_names[port]} of its node {node}; give "
                f"all the same rate, as in --rate {self}=1/2, and break none of them"
            )

    @classmethod
    def parse(cls, text: str, topology: Topology) -> Boards:
        """Return the boards that a user names in `text`.

        ``2x1`` is two blocks along axis 0, one along axis 1.
        """
        counts = parse_block_counts(text)
        if counts is None:
            raise InputError(f"Boards must be numbers such as 2x1, not {text!r}")
        return cls(topology, counts)

    def __str__(self) -> str:
        return "x".join(map(str, self.counts))

    @property
    def n_boards(self) -> int:
        """Number of boards."""
        return int(np.prod(self.counts))

    @cached_array
    def nodes_by_board(self) -> IntArray:
        """The numbers in the torus of the nodes of each board, shape (boards, nodes of a board).

        Column k is node k of the boards.
        """
        block = block_numbers(self.torus, self.counts)
        nodes: IntArray = block.argsort(kind="stable").reshape(self.n_boards, -1)
        return nodes

    @cached_array
    def node_locations(self) -> tuple[IntArray, IntArray]:
        """The location of each node of the torus: two arrays of shape (nodes,).

        The first has the board of each node, the second the number of the node on its board.
        """
        board, number = np.empty((2, self.torus.nodes), int)
        board[self.nodes_by_board] = np.arange(self.n_boards)[:, None]
        number[self.nodes_by_board] = np.arange(self.nodes_by_board.shape[1])
        return board, number

    @cached_property
    def link_ports(self) -> tuple[LinkPort, ...]:
        """The ports of a board whose links lead to other boards, the same on every board.

        They are sorted by node (its number on the board) and port.
        """
        cut = arcs_between_blocks(self.torus, self.counts)[self.nodes_by_board[0]]
        return tuple(LinkPort(*each) for each in np.argwhere(cut).tolist())

    @cached_property
    def far_ends(self) -> tuple[tuple[LinkEnd, ...], ...]:
        """The other end of each link between boards: ``far_ends[b][k]`` for ``link_ports[k]``."""
        board, number = self.node_locations
        link = {port: k for k, port in enumerate(self.link_ports)}
        return tuple(tuple(
            LinkEnd(int(board[there]),
                    link[LinkPort(int(number[there]), int(self.torus.opposite[port]))])
            for node, port in self.link_ports
            for there in [self.torus.neighbours[nodes[node], port]]
        ) for nodes in self.nodes_by_board)  # fmt: skip

    @cached_property
    def latency_cycles(self) -> tuple[tuple[int, ...], ...]:
        """The latency in cycles of each link between boards, arranged as in `far_ends`."""
        cycles = self.torus.cycles_of_arc[self.nodes_by_board]
        return tuple(tuple(int(board[at]) for at in self.link_ports) for board in cycles)

    @cached_property
    def link_spacing(self) -> int:
        """The least cycles from a flit to the next on the links between boards."""
        cut = arcs_between_blocks(self.torus, self.counts)
        return int(self.torus.spacing_of_arc[cut].min())

    # The spanning tree with board 0 as its root

    @cached_property
    def _depths_and_parents(self) -> tuple[list[int], list[int]]:
        """The tree of boards, in which each board is as near to board 0 as possible.

        The result is two lists with one entry for each board. The first has the depth of each
        board, its links to board 0. The second has the index in `link_ports` of the port that leads
        towards board 0, or -1 for board 0 itself.
        """
        depth, above = [0] + [-1] * (self.n_boards - 1), [-1] * self.n_boards
        reached = [0]
        for board in reached:
            for there, link in self.far_ends[board]:
                if depth[there] < 0:
                    depth[there], above[there] = depth[board] + 1, link
                    reached.append(there)
        return depth, above

    @property
    def tree_depths(self) -> list[int]:
        """The number of links between each board and board 0 in the tree of boards, a list."""
        return self._depths_and_parents[0]

    @property
    def parent_links(self) -> list[int]:
        """For each board, the index in `link_ports` of the port that leads towards board 0.

        The port leads to the parent in the tree of boards; -1 for board 0, the root.
        """
        return self._depths_and_parents[1]

    @cached_property
    def child_links(self) -> list[set[int]]:
        """For each board, the indices in `link_ports` of the ports that lead to its children.

        The children are those in the tree of boards, whose root is board 0.
        """
        found: list[set[int]] = [set() for _ in range(self.n_boards)]
        for board, link in enumerate(self.parent_links):
            if link >= 0:
                found[self.far_ends[board][link].board].add(self.far_ends[board][link].link)
        return found

    # One board by itself

    @property
    def looped_back(self) -> Boards:
        """The same boards without cables between them, to run one board by itself.

        A word that leaves a board by a link port arrives at the same board, at the link port at
        which it would otherwise arrive on the neighbouring board.
        """
        return _LoopedBackBoards(self.torus, self.counts)

    def parse_block(self, text: str) -> int:
        """Return the number of a board, given the coordinates of its part of the torus.

        With 2x2 boards, ``1,0`` is board 2: row 1, column 0.

        Parameters
        ----------
        text : str
            Coordinates of the part (a board block), one for each axis, separated by commas.

        Raises
        ------
        InputError
            If there is no such block.

        Examples
        --------
        >>> Boards.parse("2x2", Torus(4, 4)).parse_block("1,0")
        2
        """
        numbers = re.fullmatch(r"[0-9]{1,6}(,[0-9]{1,6})*", text)
        at = tuple(map(int, text.split(","))) if numbers else ()
        if len(at) != len(self.counts) or any(k >= n for k, n in zip(at, self.counts, strict=True)):
            last = ",".join(str(count - 1) for count in self.counts)
            raise InputError(
                f"Block must be from {','.join('0' * len(last.split(',')))} to {last} "
                f"on {self} boards, not {text}"
            )
        return int(np.ravel_multi_index(at, self.counts))


class _LoopedBackBoards(Boards):
    """Boards without cables between them, see `Boards.looped_back`."""

    @cached_property
    def far_ends(self) -> tuple[tuple[LinkEnd, ...], ...]:
        ends = super().far_ends
        return tuple(tuple(LinkEnd(k, end.link) for end in each) for k, each in enumerate(ends))

    @property
    def parent_links(self) -> list[int]:
        return [-1] * self.n_boards

    @property
    def child_links(self) -> list[set[int]]:
        return [set() for _ in range(self.n_boards)]

    @property
    def tree_depths(self) -> list[int]:
        """The depth that each board has in the tree when cables connect all boards.

        Here no board has a parent. Why the depths are kept: delays that depend on them are then the
        same for a board that runs alone and for a board that runs with others.
        """
        return Boards(self.torus, self.counts).tree_depths
