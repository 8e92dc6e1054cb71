"""A torus cut into blocks of nodes, one on each board.

All blocks are alike: node k of a block lies where node k of any other does, and so does each link
port, where an arc is cut and another comes back. Boards form a torus themselves, of which a tree
carries what all of them have to agree on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..toolchain.public import public_class
from .topology import IntArray, Topology, cached_array
from .torus import Torus

__all__ = ["Boards", "LinkEnd", "LinkPort"]


class LinkPort(NamedTuple):
    """Where a board is linked to another.

    Parameters
    ----------
    node : int
        By its number on the board.
    port : int
        The port of the node: the out-port whose arc is cut, and the in-port of the one back.
    """

    node: int
    port: int


class LinkEnd(NamedTuple):
    """A link port of a board, both by their numbers."""

    board: int
    link: int


@public_class
@dataclass(frozen=True)
class Boards:
    """A torus on several boards.

    Parameters
    ----------
    counts : tuple of int
        How many blocks there are along each axis.

    Raises
    ------
    InputError
        If it is no torus, or the blocks are not equal, or there is only one.

    Examples
    --------
    >>> boards = Boards.parse("2x1", Torus(4, 4))
    >>> boards.number, boards.nodes[1].tolist()
    (2, [8, 9, 10, 11, 12, 13, 14, 15])
    >>> boards.links[:2], boards.ends[0][0]
    ((LinkPort(node=0, port=1), LinkPort(node=1, port=1)), LinkEnd(board=1, link=4))
    """

    torus: Torus
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if type(self.torus) is not Torus:
            raise InputError(f"Topology on several boards must be a torus, not {self.torus}")
        sides, name = self.torus.sides, "x".join(map(str, self.counts))
        if len(self.counts) != len(sides):
            raise InputError(f"Boards must be a number for each axis of {self.torus}, not {name}")
        if any(count < 1 or side % count for side, count in zip(sides, self.counts, strict=True)):
            raise InputError(f"Boards must divide the sides of {self.torus}, not {name}")
        if self.number == 1:
            raise InputError(f"Boards must be two or more, not {name}")

    @classmethod
    def parse(cls, text: str, topology: Topology) -> Boards:
        """Read ``2x1``, blocks along each axis."""
        if not re.fullmatch(r"[0-9]{1,6}(x[0-9]{1,6})*", text):
            raise InputError(f"Boards must be numbers such as 2x1, not {text!r}")
        return cls(topology, tuple(map(int, text.split("x"))))  # type: ignore[arg-type]

    def __str__(self) -> str:
        return "x".join(map(str, self.counts))

    @property
    def number(self) -> int:
        """How many boards there are."""
        return int(np.prod(self.counts))

    @cached_array
    def nodes(self) -> IntArray:
        """The nodes of each board, a row each."""
        shape = [x for count, side in zip(self.counts, self.torus.sides, strict=True)
                 for x in (count, side // count)]  # fmt: skip
        apart = np.arange(self.torus.nodes).reshape(shape)
        axes = [*range(0, len(shape), 2), *range(1, len(shape), 2)]
        nodes: IntArray = apart.transpose(axes).reshape(self.number, -1)
        return nodes

    @cached_array
    def located(self) -> tuple[IntArray, IntArray]:
        """The board of each node, and its number there."""
        board, number = np.empty((2, self.torus.nodes), int)
        board[self.nodes] = np.arange(self.number)[:, None]
        number[self.nodes] = np.arange(self.nodes.shape[1])
        return board, number

    @cached_property
    def links(self) -> tuple[LinkPort, ...]:
        """The link ports of each board."""
        board, _ = self.located
        cut = board[self.torus.neighbours[self.nodes[0]]] != 0
        return tuple(LinkPort(*each) for each in np.argwhere(cut).tolist())

    @cached_property
    def ends(self) -> tuple[tuple[LinkEnd, ...], ...]:
        """Where each link port of each board leads."""
        board, number = self.located
        link = {port: k for k, port in enumerate(self.links)}
        return tuple(tuple(
            LinkEnd(int(board[there]),
                    link[LinkPort(int(number[there]), int(self.torus.opposite[port]))])
            for node, port in self.links
            for there in [self.torus.neighbours[nodes[node], port]]
        ) for nodes in self.nodes)  # fmt: skip

    @cached_property
    def latency(self) -> tuple[int, ...]:
        """Cycles of each link port."""
        return tuple(int(self.torus.cycles_of_port[port]) for _, port in self.links)

    # The tree

    @cached_property
    def _tree(self) -> tuple[list[int], list[int]]:
        """The depth of each board below board 0, and the link port to the one above it, or -1."""
        depth, above = [0] + [-1] * (self.number - 1), [-1] * self.number
        reached = [0]
        for board in reached:
            for there, link in self.ends[board]:
                if depth[there] < 0:
                    depth[there], above[there] = depth[board] + 1, link
                    reached.append(there)
        return depth, above

    @property
    def depth(self) -> list[int]:
        """The depth of each board in the tree below board 0."""
        return self._tree[0]

    @property
    def above(self) -> list[int]:
        """The link port of each board to the one above it in the tree; -1 of board 0."""
        return self._tree[1]

    @cached_property
    def below(self) -> list[set[int]]:
        """The link ports of each board to those below it in the tree."""
        found: list[set[int]] = [set() for _ in range(self.number)]
        for board, link in enumerate(self.above):
            if link >= 0:
                found[self.ends[board][link].board].add(self.ends[board][link].link)
        return found

    # A block alone

    @property
    def alone(self) -> Boards:
        """The same where each board is the only one: its link ports lead back to its own."""
        return _Alone(self.torus, self.counts)

    def block(self, text: str) -> int:
        """The number of the block at the coordinates ``0,1`` among all blocks.

        Raises
        ------
        InputError
            If there is none.

        Examples
        --------
        >>> Boards.parse("2x2", Torus(4, 4)).block("1,0")
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


class _Alone(Boards):
    """Boards of which each has links to none but itself."""

    @cached_property
    def ends(self) -> tuple[tuple[LinkEnd, ...], ...]:
        ends = super().ends
        return tuple(tuple(LinkEnd(k, end.link) for end in each) for k, each in enumerate(ends))

    @property
    def above(self) -> list[int]:
        return [-1] * self.number

    @property
    def below(self) -> list[set[int]]:
        return [set() for _ in range(self.number)]

    @property
    def depth(self) -> list[int]:
        """As of all boards together: what goes by their tree takes as long."""
        return Boards(self.torus, self.counts).depth
