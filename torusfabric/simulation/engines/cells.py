"""Direct access to the memories of simulated nodes, without simulated clock cycles.

Why: a host port moves one word per cycle, which would dominate the simulation of a large fabric.
"""

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
    """The words in the memories of all nodes, as an engine holds them.

    Attributes
    ----------
    exists : ndarray of bool, shape (nodes, memories)
        True if the node has the memory.
    reached : ndarray of bool, shape (nodes, memories)
        True if the engine can access the words of the memory directly.

    Notes
    -----
    A memory whose rows hold several flits counts once for each flit of a row; see
    `torusfabric.rtl.core.store.StoreModule`.
    """

    def __init__(self, fabric: Fabric) -> None:
        memories = len(fabric.program.memories) * fabric.beat
        self._fabric, shape = fabric, (fabric.nodes, memories)
        self.exists, self.reached = np.zeros(shape, bool), np.zeros(shape, bool)

    @abstractmethod
    def put(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Write words into memories, into every copy; all arrays have one dimension."""

    @abstractmethod
    def take(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Return words of memories; all arrays have one dimension."""


def as_words(fabric: Fabric, words: Messages | Sequence[int]) -> NDArray[Any]:
    """Return words as an array of uint64, or of Python integers if they are wider."""
    return np.asarray(words, np.uint64 if fabric.width <= 64 else object)
