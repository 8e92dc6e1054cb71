"""Contents of the ROMs of a torus that follow from the contents of a few of its nodes.

Of ROMs that are asked for the number of a node of a torus, those of a slice stand for all: what
lies at an offset from a node lies there at each. So the rows of a node are those of the node of the
first slice that has its other coordinates, moved around by as many as it is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..topology import IntArray
from .syntax import concatenated

__all__ = ["Turns"]


@dataclass(frozen=True)
class Turns:
    """The rule by which the rows of all nodes follow from those of the first nodes.

    Parameters
    ----------
    step : int
        Node k has the rows of node k mod `step`, in which groups are moved around by k less that.
    starts : tuple of int
        The first rows of these groups, each of as many rows as there are nodes.
    """

    nodes: int
    step: int
    starts: tuple[int, ...]

    @classmethod
    def of(cls, rows: IntArray) -> Turns | None:
        """Return the rule of ROMs with the rows of each node, shape (nodes, rows), or None.

        Examples
        --------
        Of three nodes, a group of as many rows that begin at the node, and one that is the same.

        >>> Turns.of(np.array([[5, 6, 7, 0, 9], [7, 5, 6, 0, 9], [6, 7, 5, 0, 9]]))
        Turns(nodes=3, step=1, starts=(0,))
        """
        every = np.arange(len(rows))
        for step in (step for step in every[1:].tolist() if len(rows) % step == 0):
            # Most numbers are none, which the first node that is moved shows.
            if cls._starts(rows, step, every[[step]]) is not None:
                starts = cls._starts(rows, step, every)
                if starts:
                    return cls(len(rows), step, starts)
        return None

    @staticmethod
    def _starts(rows: IntArray, step: int, members: IntArray) -> tuple[int, ...] | None:
        """The groups that are moved around in some nodes; None if that is not what differs."""
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

    def text(self, name: str, rows: str, width: int, depth: int) -> Iterator[str]:
        """The declarations of what member k of a loop has, given what those of the first slice do.

        Parameters
        ----------
        name, rows : str
            Constants: of all that a member has, and of what those of the first slice do.
        width, depth : int
            Bits of a row, and how many there are.
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
        yield f"      localparam [{bits - 1}:0] {name} = {concatenated(parts[::-1])};"
