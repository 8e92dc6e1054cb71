"""Equal blocks of the nodes of a grid, such as the parts of a torus on several boards.

Users write the number of blocks along each axis: ``2x1`` is two blocks along axis 0, one along axis
1. As the name of a link, ``2x1`` stands for all links from one of these blocks to another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from .topology import BoolArray, IntArray, Topology

__all__ = ["arcs_between_blocks", "block_numbers", "parse_block_counts"]


def parse_block_counts(text: str) -> tuple[int, ...] | None:
    """Return the number of blocks along each axis, None for a text that is no such list.

    Examples
    --------
    >>> parse_block_counts("2x1"), parse_block_counts("0:+0")
    ((2, 1), None)
    """
    numbers = re.fullmatch(r"[0-9]{1,6}(x[0-9]{1,6})*", text)
    return tuple(map(int, text.split("x"))) if numbers else None


def block_numbers(topology: Topology, counts: Sequence[int], noun: str = "Blocks") -> IntArray:
    """Return the block of each node, shape (nodes,).

    Blocks are numbered row by row. Messages of errors begin with `noun`.

    Raises
    ------
    InputError
        If the blocks are not equal, or if there is only one block.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> block_numbers(Torus(4, 2), (2, 1)).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    (sides, place), name = topology.grid, "x".join(map(str, counts))
    if len(counts) != len(sides):
        raise InputError(f"{noun} must be a number for each axis of {topology}, not {name}")
    if any(count < 1 or side % count for side, count in zip(sides, counts, strict=True)):
        raise InputError(f"{noun} must divide the sides of {topology}, not {name}")
    if np.prod(counts) == 1:
        raise InputError(f"{noun} must be two or more, not {name}")
    length = np.array(sides) // np.array(counts)
    found: IntArray = np.ravel_multi_index(tuple(place // length[:, None]), tuple(counts))
    return found


def arcs_between_blocks(topology: Topology, counts: Sequence[int]) -> BoolArray:
    """Return True for each arc that leads from a block to another one, shape (nodes, ports).

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> arcs_between_blocks(Torus(4), (2,)).tolist()
    [[False, True], [True, False], [False, True], [True, False]]
    """
    block = block_numbers(topology, counts)
    apart: BoolArray = block[topology.neighbours] != block[:, None]
    return apart
