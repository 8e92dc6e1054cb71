"""The words of the memories of nodes, which engines put there, and take from there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...rtl.fabric import Fabric
from ...topology import IntArray
from .base import Messages

__all__ = ["Cells", "as_words"]


class Cells(ABC):
    """The words of memories as a simulator holds them.

    Attributes
    ----------
    exists, reached : ndarray of bool, shape (nodes, memories)
        Whether a node has a memory, and whether its words can be reached. Where rows have several
        flits, each of them counts as a memory; see `torusfabric.rtl.core.store.StoreModule`.
    """

    def __init__(self, fabric: Fabric) -> None:
        memories = len(fabric.program.memories) * fabric.beat
        self._fabric, shape = fabric, (fabric.nodes, memories)
        self.exists, self.reached = np.zeros(shape, bool), np.zeros(shape, bool)

    @abstractmethod
    def put(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Put words into memories, in all copies of these; all arrays have one dimension."""

    @abstractmethod
    def take(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Take words from memories."""


def as_words(fabric: Fabric, words: Messages | Sequence[int]) -> NDArray[Any]:
    """Words as an array: of uint64, or of Python integers if they are wider."""
    return np.asarray(words, np.uint64 if fabric.width <= 64 else object)
