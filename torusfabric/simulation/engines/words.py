"""The words of a run: which go through the host port, and where in memories the others lie.

All words are written and read, and compared. Through the port goes a sample, so that it is tested
as well, and what is in no memory that can be reached; all others are put where the host port would
put them, and taken from where it would find them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...program.host_words import word_addresses
from ...rtl.fabric import Fabric
from ...topology import IntArray
from .base import SAMPLE, Job, Messages

__all__ = ["Cells", "PortWords", "Words", "as_words"]

#: Words whose places are worked out at a time, few enough for the caches of a processor.
AT_ONCE = 1 << 17


class Cells(ABC):
    """The words of memories as a simulator holds them.

    Attributes
    ----------
    exists, reached : ndarray of bool, shape (nodes, memories)
        Whether a node has a memory, and whether its words can be reached.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric, shape = fabric, (fabric.nodes, len(fabric.program.memories))
        self.exists, self.reached = np.zeros(shape, bool), np.zeros(shape, bool)

    @abstractmethod
    def put(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Put words into memories, in all copies of these; all arrays have one dimension."""

    @abstractmethod
    def take(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Take words from memories."""


class PortWords(NamedTuple):
    """Words that go through the host port, in this order.

    Parameters
    ----------
    nodes, addresses : ndarray of int, shape (words,)
        The addresses are those of the host.
    word : ndarray of int, shape (words,)
        Which of the words of its node each is.
    """

    nodes: IntArray
    addresses: IntArray
    word: IntArray

    @property
    def number(self) -> int:
        """How many."""
        return len(self.nodes)


class _Places(NamedTuple):
    """Where the words of adjacent nodes lie.

    Parameters
    ----------
    there, reached : ndarray of bool, shape (nodes, words)
        Which of them are in a memory, and in one that can be reached.
    cells : (ndarray, ndarray, ndarray)
        The node, the memory and the address of each that can be reached.
    """

    rows: slice
    there: NDArray[np.bool_]
    reached: NDArray[np.bool_]
    cells: tuple[IntArray, IntArray, IntArray]


class Words:
    """The words of a run on their way into a fabric and out of it.

    Parameters
    ----------
    messages : sequence of (sequence of int)
        What each node sends.
    through_port : bool
        Whether all of them go through the port.
    """

    def __init__(
        self, fabric: Fabric, messages: Messages, job: Job, *, through_port: bool = False
    ) -> None:
        self._fabric, self._job, self._through_port = fabric, job, through_port
        self._layout = fabric.layouts[job.mode or 0]
        self._flits = job.length or fabric.flits
        self.messages = as_words(fabric, messages)
        part = fabric.program.part(fabric.program.form_of(job.mode, job.length))
        shape = fabric.nodes, part.layout.recv_words(part.length_of(job.length))
        wide = fabric.width > 64
        self.received = np.zeros(shape, object if wide else np.min_scalar_type(self._ones))
        #: How many have gone through the port, and how many not.
        self.through_port = self.direct = 0

    def put(self, cells: Cells | None) -> PortWords:
        """Put words into memories; returns those that are to be written through the port."""
        chosen = self._sample(self.messages.shape, cells)
        if not chosen.all():
            assert cells is not None
            # What the port is to write is wrong before.
            wrong = np.where(chosen, self.messages ^ self._ones, self.messages)
            for place in self._places(cells, received=False):
                chosen[place.rows] |= place.there & ~place.reached
                cells.put(*place.cells, wrong[place.rows][place.reached])
                self.direct += np.count_nonzero(place.reached & ~chosen[place.rows])
        return self._through(chosen, self._layout.send_base)

    def sample(self, cells: Cells | None) -> PortWords:
        """The words that are to be read through the port in any case."""
        self._known = self._sample(self.received.shape, cells)
        return self._through(self._known, self._layout.recv_base)

    def fill(self, which: PortWords, words: NDArray[Any]) -> None:
        """Note what was read through the port."""
        self.received[which.nodes, which.word] = words

    def take(self, cells: Cells | None) -> PortWords:
        """Take all words but the sample from memories; returns those that cannot be reached."""
        missing = np.zeros_like(self._known)
        if not self._known.all():
            assert cells is not None
            for place in self._places(cells, received=True):
                received, known = self.received[place.rows], self._known[place.rows]
                missing[place.rows] = place.there & ~place.reached & ~known
                before = received[known]
                received[place.reached] = cells.take(*place.cells)
                received[known] = before
                self.direct += np.count_nonzero(place.reached & ~known)
        return self._through(missing, self._layout.recv_base)

    @property
    def _ones(self) -> int | np.uint64:
        """A word of ones, as words are."""
        ones = (1 << self._fabric.width) - 1
        return np.uint64(ones) if self._fabric.width <= 64 else ones

    def _sample(self, shape: tuple[int, int], cells: Cells | None) -> NDArray[np.bool_]:
        """Which words go through the port, whatever can be reached: some, and the corners."""
        total = shape[0] * shape[1]
        if cells is None or self._through_port or total <= SAMPLE:
            return np.ones(shape, bool)
        chosen = np.zeros(shape, bool)
        chosen.ravel()[np.random.default_rng(total).choice(total, SAMPLE, replace=False)] = True
        chosen[[0, 0, -1, -1], [0, -1, 0, -1]] = True
        return chosen

    def _through(self, chosen: NDArray[np.bool_], base: int) -> PortWords:
        """Chosen words with their addresses at the port."""
        nodes, index = np.nonzero(chosen)
        if len(nodes) < chosen.size:
            # In any order, so that what the port answers depends on each question alone; node by
            # node, for simulators are slower the more nodes are concerned.
            random = np.random.default_rng(len(nodes))
            order = np.lexsort([random.random(len(nodes)), random.permutation(len(chosen))[nodes]])
            nodes, index = nodes[order], index[order]
        self.through_port += len(nodes)
        part, flit = np.divmod(index, self._flits)
        return PortWords(nodes, base + part * self._fabric.flits + flit, index)

    def _places(self, cells: Cells, *, received: bool) -> Iterator[_Places]:
        """Where the words of nodes lie; some nodes at a time."""
        words = (self.received if received else self.messages).shape[1]
        size, every = max(AT_ONCE // max(words, 1), 1), cells.exists.all() and cells.reached.all()
        for first in range(0, self._fabric.nodes, size):
            nodes = np.arange(first, min(first + size, self._fabric.nodes))
            memory, address = word_addresses(
                self._fabric.program, received=received, mode=self._job.mode,
                length=self._job.length, root=self._job.root, nodes=nodes,
            )  # fmt: skip
            there = reached = address >= 0
            if not every:
                there = there & cells.exists[nodes[:, None], memory]
                reached = there & cells.reached[nodes[:, None], memory]
            yield _Places(slice(first, first + len(nodes)), there, reached,
                          (np.repeat(nodes, np.count_nonzero(reached, axis=1)),
                           memory[reached], address[reached]))  # fmt: skip


def as_words(fabric: Fabric, words: Messages | Sequence[int]) -> NDArray[Any]:
    """Words as an array: of uint64, or of Python integers if they are wider."""
    return np.asarray(words, np.uint64 if fabric.width <= 64 else object)
