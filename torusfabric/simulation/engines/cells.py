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

__all__ = ["MemoryCells", "as_words"]


class MemoryCells(ABC):
    """Access to the words in the memories of all nodes of a simulated fabric.

    The hardware may store a memory in several copies, for example one for each read port. Each
    engine has a subclass.

    Attributes
    ----------
    exists : ndarray of bool, shape (nodes, memories)
        True if the node has the memory.
    reached : ndarray of bool, shape (nodes, memories)
        True if the engine can access the words of the memory directly.

    Notes
    -----
    Memory numbers here count flits: if each word of a memory holds ``beat`` flits, flit k of all
    words of memory m is the memory with the number ``beat * m + k``, as in the attribute ``banks``
    of `torusfabric.rtl.core.store.StoreModule`.
    """

    def __init__(self, fabric: Fabric) -> None:
        memories = len(fabric.program.memories) * fabric.beat
        self._fabric, shape = fabric, (fabric.nodes, memories)
        self.exists, self.reached = np.zeros(shape, bool), np.zeros(shape, bool)

    @abstractmethod
    def write_words(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Write ``words[k]`` into memory ``memory[k]`` of node ``nodes[k]``, at ``address[k]``.

        All copies of the memory get the word.
        """

    @abstractmethod
    def read_words(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Return the words at ``address[k]`` in memory ``memory[k]`` of node ``nodes[k]``.

        The words are those of the first copy of the memory.
        """


def as_words(fabric: Fabric, words: Messages | Sequence[int]) -> NDArray[Any]:
    """Return words as an array of uint64, or of Python integers if they are wider."""
    return np.asarray(words, np.uint64 if fabric.width <= 64 else object)
