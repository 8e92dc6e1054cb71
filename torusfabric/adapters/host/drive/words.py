"""The words of a run: which go through the host port, and where in memories the others lie.

All words are written and read, and compared. Through the port goes a sample, so that it is tested
as well, and what is in no memory that can be reached; all others are put where the host port would
put them, and taken from where it would find them.
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

#: Whether something is so of words.
_Flags: TypeAlias = NDArray[np.bool_]

#: Words whose places are worked out at a time, few enough for the caches of a processor.
AT_ONCE = 1 << 17


class PortWords(NamedTuple):
    """Beats of words that go through the host port, in this order.

    Parameters
    ----------
    nodes, addresses : ndarray of int, shape (words,)
        The addresses are those of the host.
    word : ndarray of int, shape (words, beat)
        Which of the words of its node each has; -1 for none.
    """

    nodes: IntArray
    addresses: IntArray
    word: IntArray

    @property
    def number(self) -> int:
        """How many."""
        return len(self.nodes)


class Words:
    """The words of a run on their way into a fabric and out of it.

    Parameters
    ----------
    messages : sequence of (sequence of int)
        What each node sends.
    through_port : bool
        Whether all of them go through the port.

    Raises
    ------
    InputError
        If messages are not as many, or as long, as the job says.
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
        #: How many have gone through the port, and how many not.
        self.through_port = self.direct = 0

    def put(self, cells: Cells | None) -> PortWords:
        """Put words into memories; returns those that are to be written through the port."""
        chosen = self._sample(self.messages.shape, cells)
        if not chosen.all():
            assert cells is not None
            # What the port is to write is wrong before.
            wrong = np.where(chosen, self.messages ^ self._ones, self.messages)
            for rows, there, reached, places in self._places(cells, received=False):
                chosen[rows] |= there & ~reached
                cells.put(*places, wrong[rows][reached])
                self.direct += np.count_nonzero(reached & ~chosen[rows])
        return self._through(chosen, self._layout.send_base)

    def asked(self, cells: Cells | None) -> Iterator[PortWords]:
        """The words that are to be read through the port: a sample, and what cannot be reached.

        Each is noted before the next is asked for; all others are taken from memories meanwhile.
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
        """Note what was read through the port."""
        if self._beat == 1:
            self.received[which.nodes, which.word[:, 0]] = words
            return
        ones, width = (1 << self._fabric.width) - 1, self._fabric.width
        for k, word in enumerate(which.word.T):
            there = word >= 0
            flits = [int(beat) >> k * width & ones for beat in words[there].tolist()]
            self.received[which.nodes[there], word[there]] = as_words(self._fabric, flits)

    def beats(self, which: PortWords) -> NDArray[Any]:
        """Return the words that are written through the port."""
        if self._beat == 1:
            return self.messages[which.nodes, which.word[:, 0]]
        found = np.zeros(which.number, object)
        for k, word in enumerate(which.word.T):
            flits = self.messages[which.nodes, np.maximum(word, 0)].astype(object)
            found |= np.where(word >= 0, flits << k * self._fabric.width, 0)
        return found

    @property
    def _ones(self) -> int | np.uint64:
        """A word of ones, as words are."""
        ones = (1 << self._fabric.width) - 1
        return np.uint64(ones) if self._fabric.width <= 64 else ones

    def _sample(self, shape: tuple[int, int], cells: Cells | None) -> _Flags:
        """Return True for words that go through the port in any case: some, and the corners."""
        total = shape[0] * shape[1]
        if cells is None or self._through_port or total <= SAMPLE:
            return np.ones(shape, bool)
        chosen = np.zeros(shape, bool)
        chosen.ravel()[np.random.default_rng(total).choice(total, SAMPLE, replace=False)] = True
        chosen[[0, 0, -1, -1], [0, -1, 0, -1]] = True
        if self._beat > 1:
            # All words of a beat go at a time.
            first = self._first(np.arange(shape[1]))
            starts = np.unique(first)
            by_beat = np.logical_or.reduceat(chosen, starts, axis=1)
            chosen = by_beat[:, np.searchsorted(starts, first)]
        return chosen

    def _first(self, word: IntArray) -> IntArray:
        """The first of the words in the same beat as each."""
        return word - word % self._flits % self._beat

    def _through(self, chosen: _Flags, base: int) -> PortWords:
        """Chosen words with their addresses at the port."""
        nodes, index = np.nonzero(chosen)
        if self._beat > 1:
            # One word stands for its beat.
            nodes, index = np.unique([nodes, self._first(index)], axis=1)
        if len(nodes) < chosen.size:
            # In any order, so that what the port answers depends on each question alone; node by
            # node, for simulators are slower the more nodes are concerned.
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
        """Yield the places of words, of some nodes at a time, which come first.

        Then, of each of their words, whether it is in a memory, and in one that can be reached; and
        the node, memory and address of these.
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
        """Memories of flits, and rows, in place of memories and addresses; see `Cells`."""
        fabric = self._fabric
        own = np.array([each.own for each in fabric.program.memories])
        pitches = 1, received_pitch(fabric.program, 0)
        sent, received = (FlitRows(self._beat, pitch).split(address) for pitch in pitches)
        row, flit = (np.where(own[memory], *each) for each in zip(sent, received, strict=True))
        return memory * self._beat + flit, np.where(address >= 0, row, -1)
