"""`Words`: the division of the words of a run between the host port and direct memory access.

`HostPort` uses this module. All words of a run are written, read and compared. Where the engine
gives direct access to memories (`Cells`), only these words pass through the host port:

- a random sample and the corners of the messages, so that the port is tested as well;
- words in memories that the engine cannot access.

All other words are put into, and taken from, the locations that the address map gives.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....errors import InputError
from ....program.host_words import word_addresses
from ....rtl.fabric import Fabric
from ....rtl.flit_rows import FlitRows, received_pitch
from ....simulation.engines.base import SAMPLE, Job, Messages
from ....simulation.engines.cells import Cells, as_words
from ....topology import IntArray

__all__ = ["PortWords", "Words"]

#: One flag for each word, of shape (nodes, words).
_Flags: TypeAlias = NDArray[np.bool_]

#: Words whose locations are computed at a time, few enough for the caches of a processor.
AT_ONCE = 1 << 17


class PortWords(NamedTuple):
    """Accesses of the host port, in the order in which they are made; each moves one beat.

    Parameters
    ----------
    nodes, addresses : ndarray of int, shape (accesses,)
        Node and host address of each access.
    word : ndarray of int, shape (accesses, beat)
        Numbers of the flits of each access among the flits of the node; -1 beyond the end of a
        message.
    """

    nodes: IntArray
    addresses: IntArray
    word: IntArray

    @property
    def number(self) -> int:
        """Number of accesses."""
        return len(self.nodes)


class Words:
    """The words of one run: the messages to send, and an array that collects the received words.

    Parameters
    ----------
    fabric : Fabric
        The fabric, with the top ``host``.
    messages : sequence of (sequence of int)
        The words that each node sends.
    job : Job
        Mode, length and root of the run.
    through_port : bool
        True if all words pass through the port.

    Attributes
    ----------
    messages, received : ndarray, shape (nodes, words)
        Words that each node sends, and has received as far as they have been taken.
    through_port, direct : int
        Number of words that have passed through the port, and that were accessed directly.

    Raises
    ------
    InputError
        If number or length of the messages disagrees with the job.
    """

    def __init__(
        self, fabric: Fabric, messages: Messages, job: Job, *, through_port: bool = False
    ) -> None:
        self._fabric, self._job, self._through_port = fabric, job, through_port
        self._layout, self._beat = fabric.layouts[job.mode or 0], fabric.beat
        self._flits = job.length or fabric.flits
        self.messages = as_words(fabric, messages)
        part = fabric.program.part(fabric.program.form_of(job.mode, job.length))
        length = part.length_of(job.length)
        sent = fabric.nodes, part.layout.send_words(length)
        if self.messages.shape != sent:
            raise InputError(f"Messages must be of shape {sent}, not {self.messages.shape}")
        shape, wide = (fabric.nodes, part.layout.recv_words(length)), fabric.width > 64
        self.received = np.zeros(shape, object if wide else np.min_scalar_type(self._ones))
        self.through_port = self.direct = 0

    def put(self, cells: Cells | None) -> PortWords:
        """Put words directly into memories, and return the accesses for all others."""
        chosen = self._sample(self.messages.shape, cells)
        if not chosen.all():
            assert cells is not None
            # Locations that the port will write hold inverted words first, so that a write which
            # does not happen is noticed.
            wrong = np.where(chosen, self.messages ^ self._ones, self.messages)
            for rows, there, reached, places in self._places(cells, received=False):
                chosen[rows] |= there & ~reached
                cells.put(*places, wrong[rows][reached])
                self.direct += np.count_nonzero(reached & ~chosen[rows])
        return self._through(chosen, self._layout.send_base)

    def asked(self, cells: Cells | None) -> Iterator[PortWords]:
        """Yield the accesses that read the sample, then those that read inaccessible memories.

        The caller passes the words of the first accesses to `fill` before it takes the second.
        In between, all other words are taken directly from memories.
        """
        known = self._sample(self.received.shape, cells)
        yield self._through(known, self._layout.recv_base)
        missing = np.zeros_like(known)
        if not known.all():
            assert cells is not None
            for rows, there, reached, places in self._places(cells, received=True):
                received, sampled = self.received[rows], known[rows]
                missing[rows] = there & ~reached & ~sampled
                before = received[sampled]
                received[reached] = cells.take(*places)
                received[sampled] = before
                self.direct += np.count_nonzero(reached & ~sampled)
        yield self._through(missing, self._layout.recv_base)

    def fill(self, which: PortWords, words: NDArray[Any]) -> None:
        """Enter the words that some accesses read through the port."""
        if self._beat == 1:
            self.received[which.nodes, which.word[:, 0]] = words
            return
        ones, width = (1 << self._fabric.width) - 1, self._fabric.width
        for k, word in enumerate(which.word.T):
            there = word >= 0
            flits = [int(beat) >> k * width & ones for beat in words[there].tolist()]
            self.received[which.nodes[there], word[there]] = as_words(self._fabric, flits)

    def beats(self, which: PortWords) -> NDArray[Any]:
        """Return the data of some write accesses, one beat each."""
        if self._beat == 1:
            return self.messages[which.nodes, which.word[:, 0]]
        found = np.zeros(which.number, object)
        for k, word in enumerate(which.word.T):
            flits = self.messages[which.nodes, np.maximum(word, 0)].astype(object)
            found |= np.where(word >= 0, flits << k * self._fabric.width, 0)
        return found

    @property
    def _ones(self) -> int | np.uint64:
        """A flit of all ones, in the type of the words."""
        ones = (1 << self._fabric.width) - 1
        return np.uint64(ones) if self._fabric.width <= 64 else ones

    def _sample(self, shape: tuple[int, int], cells: Cells | None) -> _Flags:
        """Return True for the words that always pass through the port: a sample and the corners."""
        total = shape[0] * shape[1]
        if cells is None or self._through_port or total <= SAMPLE:
            return np.ones(shape, bool)
        chosen = np.zeros(shape, bool)
        chosen.ravel()[np.random.default_rng(total).choice(total, SAMPLE, replace=False)] = True
        chosen[[0, 0, -1, -1], [0, -1, 0, -1]] = True
        if self._beat > 1:
            # All flits of a beat move together, so one chosen flit chooses its beat.
            first = self._first(np.arange(shape[1]))
            starts = np.unique(first)
            by_beat = np.logical_or.reduceat(chosen, starts, axis=1)
            chosen = by_beat[:, np.searchsorted(starts, first)]
        return chosen

    def _first(self, word: IntArray) -> IntArray:
        """Return the number of the first flit in the beat of each flit."""
        return word - word % self._flits % self._beat

    def _through(self, chosen: _Flags, base: int) -> PortWords:
        """Return the accesses that move the chosen words, and count these words."""
        nodes, index = np.nonzero(chosen)
        if self._beat > 1:
            # One access for each beat.
            nodes, index = np.unique([nodes, self._first(index)], axis=1)
        if len(nodes) < chosen.size:
            # Random order within a node, so that no answer of the port can depend on the access
            # before. Node by node, because simulators are slower if more nodes change at a time.
            random = np.random.default_rng(len(nodes))
            order = np.lexsort([random.random(len(nodes)), random.permutation(len(chosen))[nodes]])
            nodes, index = nodes[order], index[order]
        part, flit = np.divmod(index, self._flits)
        every = np.arange(self._beat)
        word = np.where(flit[:, None] + every < self._flits, index[:, None] + every, -1)
        self.through_port += int((word >= 0).sum())
        beats = -(-self._fabric.flits // self._beat)
        return PortWords(nodes, base + part * beats + flit // self._beat, word)

    def _places(
        self, cells: Cells, *, received: bool
    ) -> Iterator[tuple[slice, _Flags, _Flags, tuple[IntArray, IntArray, IntArray]]]:
        """Yield the locations of words, for some nodes at a time.

        Yields
        ------
        rows : slice
            The nodes.
        there, reached : ndarray of bool, shape (nodes, words)
            True for words that lie in a memory, and in a memory that the engine can access.
        locations : tuple of (ndarray, ndarray, ndarray)
            Node, memory and address of the words in `reached`.
        """
        words = (self.received if received else self.messages).shape[1]
        size, every = max(AT_ONCE // max(words, 1), 1), cells.exists.all() and cells.reached.all()
        program, job = self._fabric.program, self._job
        form = program.form_of(job.mode, job.length, job.root)
        for first in range(0, self._fabric.nodes, size):
            nodes = np.arange(first, min(first + size, self._fabric.nodes))
            memory, address = word_addresses(
                program, received=received, form=form, length=job.length, root=job.root, nodes=nodes
            )
            if self._beat > 1:
                memory, address = self._in_rows(memory, address)
            there = reached = address >= 0
            if not every:
                there = there & cells.exists[nodes[:, None], memory]
                reached = there & cells.reached[nodes[:, None], memory]
            node = np.repeat(nodes, np.count_nonzero(reached, axis=1))
            rows = slice(first, first + len(nodes))
            yield rows, there, reached, (node, memory[reached], address[reached])

    def _in_rows(self, memory: IntArray, address: IntArray) -> tuple[IntArray, IntArray]:
        """Convert flit addresses to (memory, row), with one memory for each flit of a row.

        See `Cells`. A row of a memory holds one beat.
        """
        fabric = self._fabric
        own = np.array([each.own for each in fabric.program.memories])
        pitches = 1, received_pitch(fabric.program, 0)
        sent, received = (FlitRows(self._beat, pitch).split(address) for pitch in pitches)
        row, flit = (np.where(own[memory], *each) for each in zip(sent, received, strict=True))
        return memory * self._beat + flit, np.where(address >= 0, row, -1)
