"""Compression of ROM contents that repeat around a torus.

The user is `GenerateLoop`. A *row* is the word of a ROM at one address, and a *segment* is N
consecutive rows, for N nodes. A ROM that is addressed by a node number often holds a function of
the offset from its own node. The rows of node k are then those of another node, rotated. So the top
stores the rows of the first nodes only. At elaboration each node rotates them to get its own rows::

    rows of node 0    5 6 7  0 9
    rows of node 1    7 5 6  0 9        the segment 5 6 7 is rotated by 1
    rows of node 2    6 7 5  0 9        the segment 5 6 7 is rotated by 2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..topology import IntArray
from .syntax import concatenate_names

__all__ = ["RotatedRoms"]


@dataclass(frozen=True)
class RotatedRoms:
    """A rule that derives the ROM contents of all N nodes from those of the first nodes.

    A *segment* is a series of N words of a ROM, one for each node. From node to node, its words are
    rotated.

    Parameters
    ----------
    nodes : int
        Number of nodes N, and number of words in a segment.
    step : int
        Number of nodes whose contents are stored. Node k has the words of node k mod `step`, in
        which each segment is rotated by k - k mod `step`.
    starts : tuple of int
        Address of the first word of each segment.
    """

    nodes: int
    step: int
    starts: tuple[int, ...]

    @classmethod
    def from_rows(cls, rows: IntArray) -> RotatedRoms | None:
        """Return the rule that derives all ROMs from the first ones, or None if there is none.

        Parameters
        ----------
        rows : ndarray of int, shape (nodes, rows)
            Contents of the ROM of each node.

        Examples
        --------
        Three nodes: a segment of three words, rotated by the number of the node, and two constant
        words.

        >>> RotatedRoms.from_rows(np.array([[5, 6, 7, 0, 9], [7, 5, 6, 0, 9], [6, 7, 5, 0, 9]]))
        RotatedRoms(nodes=3, step=1, starts=(0,))
        """
        every = np.arange(len(rows))
        for step in (step for step in every[1:].tolist() if len(rows) % step == 0):
            # Most steps fail at the first rotated node, so that node is checked alone first.
            if cls._rotated_group_starts(rows, step, every[[step]]) is not None:
                starts = cls._rotated_group_starts(rows, step, every)
                if starts:
                    return cls(len(rows), step, starts)
        return None

    @staticmethod
    def _rotated_group_starts(
        rows: IntArray, step: int, members: IntArray
    ) -> tuple[int, ...] | None:
        """Return the addresses of the segments that are rotated in the rows of some nodes.

        A segment is a series of N words, for N nodes. The rows of a node are compared with the
        stored rows of the node ``k % step``, in which each segment is rotated.

        Parameters
        ----------
        rows : ndarray of int, shape (nodes, rows)
            Contents of the ROM of each node.
        step : int
            Number of nodes whose rows would be stored.
        members : ndarray of int
            Nodes k to check.

        Returns
        -------
        tuple of int or None
            Address of each segment that is rotated at some of the nodes; None if rotation does not
            give the rows of all these nodes.
        """
        nodes, depth = rows.shape
        at = (np.arange(nodes) - (members // step * step)[:, None]) % nodes
        still, starts = rows[members % step], list[int]()
        found = still.copy()
        for first in range(0, depth - nodes + 1, 1 << (nodes - 1).bit_length()):
            here = slice(first, first + nodes)
            if (rows[members, here] != still[:, here]).any():
                starts.append(first)
                found[:, here] = np.take_along_axis(still[:, here], at, axis=1)
        return tuple(starts) if (found == rows[members]).all() else None

    def declare_rows(self, name: str, rows: str, width: int, depth: int) -> Iterator[str]:
        """Yield the Verilog that computes the ROM contents of node ``k`` from the stored ones.

        It stands in a generate loop over the nodes.

        Parameters
        ----------
        name : str
            Constant to declare, with the rows of node k.
        rows : str
            Constant with the rows of the first `step` nodes.
        width, depth : int
            Bits of a row, and number of rows.
        """
        bits, size = width * depth, width * self.nodes
        yield f"      localparam {name}_BITS = {width * self.step} * (k / {self.step});"
        yield (f"      localparam [{bits - 1}:0] {name}_STILL = "
               f"{rows}[{bits} * (k % {self.step}) +: {bits}];")  # fmt: skip
        parts, end = list[str](), 0
        for number, first in enumerate(self.starts):
            low, part = first * width, f"{name}_{number}"
            twice = f"{{2{{{name}_STILL[{low} +: {size}]}}}}"
            yield f"      localparam [{2 * size - 1}:0] {part} = {twice};"
            parts += [f"{name}_STILL[{low - 1}:{end}]"] * (low > end)
            parts.append(f"{part}[{size} - {name}_BITS +: {size}]")
            end = low + size
        parts += [f"{name}_STILL[{bits - 1}:{end}]"] * (bits > end)
        yield f"      localparam [{bits - 1}:0] {name} = {concatenate_names(parts[::-1])};"
