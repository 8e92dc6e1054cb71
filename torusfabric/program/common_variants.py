"""Common variants: nodes that do the same in all modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .variants import number_equal

if TYPE_CHECKING:
    from .program import Program

__all__ = ["CommonVariants"]


class CommonVariants:
    """The variants of all modes: those of nodes, then those of offsets from a root.

    A node does what the variant of its offset says in modes by offset, and what its own variant
    says in all others.

    Attributes
    ----------
    of_nodes : ndarray of int, shape (nodes,)
    of_offsets : ndarray of int, shape (nodes,), or None
        None where there is no such mode.
    count : int
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        fixed = [program for program in programs if not program.by_offset]
        rooted = [program for program in programs if program.by_offset]
        self._nodes, self.of_offsets = np.zeros(1, int), None
        self._offsets = np.zeros(0, int)
        self.of_nodes: IntArray = np.zeros(programs[0].topology.nodes, np.int32)
        if fixed:
            self.of_nodes, nodes = _common(fixed)
            self._nodes = np.array(nodes)
        if rooted:
            of_offsets, offsets = _common(rooted)
            self.of_offsets, self._offsets = len(self._nodes) + of_offsets, np.array(offsets)
        self.count = len(self._nodes) + len(self._offsets)

    def of(self, program: Program) -> IntArray:
        """The variant of a program for each of all; any where it does not matter."""
        nodes, offsets = program.variant_of[self._nodes], program.variant_of[self._offsets]
        if program.by_offset:
            nodes = np.full_like(nodes, offsets[0])
        elif len(offsets):
            offsets = np.full_like(offsets, nodes[0])
        return np.concatenate([nodes, offsets])


def _common(programs: Sequence[Program]) -> tuple[IntArray, list[int]]:
    """The common variants of programs: of each node, and a node of each."""
    return number_equal(zip(*(program.variant_of.tolist() for program in programs), strict=True))
