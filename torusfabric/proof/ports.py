"""The host ports of a fabric, and by which numbers each knows its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..topology.boards import Boards

__all__ = ["HostPorts"]


@dataclass(frozen=True)
class HostPorts:
    """The host ports of a fabric: one on a chip, and one on each of several boards.

    Parameters
    ----------
    nodes : ndarray of int
        Those that a port serves, by the order of their numbers there.
    number : ndarray of int, shape (all nodes,)
        The number of each node at its port.
    board : int or None
        The board of the port, if it is told which it is.
    names : tuple of str
        What stands behind the names of nets of each port.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> from torusfabric.topology.boards import Boards
    >>> ports = HostPorts.of_boards(Boards.parse("2", Torus(4)))
    >>> ports.number.tolist(), ports.names
    ([0, 1, 0, 1], ('@0', '@1'))
    """

    nodes: IntArray
    number: IntArray
    board: int | None = None
    names: tuple[str, ...] = ("",)

    @classmethod
    def of_chip(cls, fabric: Fabric) -> HostPorts:
        """The one port of a fabric."""
        everyone = np.arange(fabric.program.topology.nodes)
        return cls(everyone, everyone)

    @classmethod
    def of_board(cls, boards: Boards, board: int) -> HostPorts:
        """The port of a board; nodes are known by their numbers there."""
        return cls(boards.nodes[board], np.arange(boards.nodes.shape[1]), board)

    @classmethod
    def of_boards(cls, boards: Boards) -> HostPorts:
        """The ports of all boards."""
        names = tuple(f"@{board}" for board in range(boards.number))
        return cls(boards.nodes[0], boards.located[1], None, names)
