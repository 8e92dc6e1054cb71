"""`RunWords`: the division of the words of a run between the host port and direct memory access.

`HostPortDriver` uses this module. All words of a run are written and read. If the simulator gives
direct access to memories (`MemoryCells`), only these words pass through the host port:

- a random sample and the corners of the messages, so that the port is tested as well;
- words in memories to which there is no direct access.

All other words are put into, and taken from, the locations that the address map of the program
gives: the memory and first address of each block.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....errors import InputError
from ....program.host_words import word_addresses
from ....rtl.fabric import Fabric
from ....rtl.flit_rows import FlitRows, received_pitch
from ....simulation.engines.base import PORT_SAMPLE_WORDS, Job, Messages
from ....simulation.engines.cells import MemoryCells, as_words
from ....topology import IntArray

__all__ = ["PortAccesses", "RunWords"]

#: One flag for each word, of shape (nodes, words).
_Flags: TypeAlias = NDArray[np.bool_]

#: Words whose locations are computed at a time, few enough for the caches of a processor.
BATCH_WORDS = 1 << 17


class PortAccesses(NamedTuple):
    """Accesses of the host port, in the order in which they are made. Each moves one beat.

    Parameters
    ----------
    nodes, addresses : ndarray of int, shape (accesses,)
        Node and host address of each access.
    word : ndarray of int, shape (accesses, beat)
        The flits that each access moves, as columns of `RunWords.messages` or `RunWords.received`.
        At the end of a part (the words for, or from, one other node) a beat may have fewer flits;
        the other entries are -1.
    """

    nodes: IntArray
    addresses: IntArray
    word: IntArray

    @property
    def n_accesses(self) -> int:
        """Number of accesses."""
        return len(self.nodes)


class RunWords:
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
        Words that each node sends, and words that it has received. The received words are 0 until
        they have been read from the fabric.
    through_port, direct : int
        Number of words that have passed through the host port, and number of words that were put
        into, or taken from, the simulated memories directly.

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
        self.received = np.zeros(shape, object if wide else np.min_scalar_type(self._all_ones))
        self.through_port = self.direct = 0

    def write_direct(self, cells: MemoryCells | None) -> PortAccesses:
        """Put most words of the messages into memories; return the accesses that write all others.

        The others are a random sample, and words in memories to which the simulator gives no direct
        access. The caller has to write them through the host port.

        `cells` accesses the memories directly; without it (None) the returned accesses write all
        words.
        """
        chosen = self._sample_mask(self.messages.shape, cells)
        if not chosen.all():
            assert cells is not None
            # Locations that the port will write hold inverted words first, so that a write which
            # does not happen is noticed.
            wrong = np.where(chosen, self.messages ^ self._all_ones, self.messages)
            for rows, there, reached, places in self._word_locations(cells, received=False):
                chosen[rows] |= there & ~reached
                cells.write_words(*places, wrong[rows][reached])
                self.direct += np.count_nonzero(reached & ~chosen[rows])
        return self._make_accesses(chosen, self._layout.send_base)

    def read_accesses(self, cells: MemoryCells | None) -> Iterator[PortAccesses]:
        """Yield two sets of accesses: for a random sample, then for words in inaccessible memories.

        The caller makes the accesses of the first set through the host port, and passes the words
        to `enter_read_words`, before it takes the second set. Between both sets, this method takes
        all other words directly from memories, by `cells`. Without `cells` (None) the first set
        reads all words.
        """
        known = self._sample_mask(self.received.shape, cells)
        yield self._make_accesses(known, self._layout.recv_base)
        missing = np.zeros_like(known)
        if not known.all():
            assert cells is not None
            for rows, there, reached, places in self._word_locations(cells, received=True):
                received, sampled = self.received[rows], known[rows]
                missing[rows] = there & ~reached & ~sampled
                before = received[sampled]
                received[reached] = cells.read_words(*places)
                received[sampled] = before
                self.direct += np.count_nonzero(reached & ~sampled)
        yield self._make_accesses(missing, self._layout.recv_base)

    def enter_read_words(self, which: PortAccesses, words: NDArray[Any]) -> None:
        """Enter the words that were read through the host port into the array `received`.

        `which` has the accesses, and `words` one beat for each of them.
        """
        if self._beat == 1:
            self.received[which.nodes, which.word[:, 0]] = words
            return
        ones, width = (1 << self._fabric.width) - 1, self._fabric.width
        for k, word in enumerate(which.word.T):
            there = word >= 0
            flits = [int(beat) >> k * width & ones for beat in words[there].tolist()]
            self.received[which.nodes[there], word[there]] = as_words(self._fabric, flits)

    def written_beats(self, which: PortAccesses) -> NDArray[Any]:
        """Return the data of some write accesses, one beat of flits for each.

        `which` has the accesses.
        """
        if self._beat == 1:
            return self.messages[which.nodes, which.word[:, 0]]
        found = np.zeros(which.n_accesses, object)
        for k, word in enumerate(which.word.T):
            flits = self.messages[which.nodes, np.maximum(word, 0)].astype(object)
            found |= np.where(word >= 0, flits << k * self._fabric.width, 0)
        return found

    @property
    def _all_ones(self) -> int | np.uint64:
        """A flit in which all bits are 1, in the integer type of the words."""
        ones = (1 << self._fabric.width) - 1
        return np.uint64(ones) if self._fabric.width <= 64 else ones

    def _sample_mask(self, shape: tuple[int, int], cells: MemoryCells | None) -> _Flags:
        """Return an array of `shape` (nodes, words): True for words that pass through the port.

        These words are a random sample, and the first and the last word of the first and the last
        node. All words pass through the port if `cells` is None, if the user has asked for this
        (`through_port`), or if there are at most `PORT_SAMPLE_WORDS`.
        """
        total = shape[0] * shape[1]
        if cells is None or self._through_port or total <= PORT_SAMPLE_WORDS:
            return np.ones(shape, bool)
        chosen = np.zeros(shape, bool)
        chosen.ravel()[
            np.random.default_rng(total).choice(total, PORT_SAMPLE_WORDS, replace=False)
        ] = True
        chosen[[0, 0, -1, -1], [0, -1, 0, -1]] = True
        if self._beat > 1:
            # All flits of a beat move together, so one chosen flit chooses its beat.
            first = self._first_of_beat(np.arange(shape[1]))
            starts = np.unique(first)
            by_beat = np.logical_or.reduceat(chosen, starts, axis=1)
            chosen = by_beat[:, np.searchsorted(starts, first)]
        return chosen

    def _first_of_beat(self, word: IntArray) -> IntArray:
        """Return, for each flit number in `word`, the number of the first flit of its beat.

        Flits are numbered over all parts of a node; a part is the words for, or from, one other
        node. A new beat begins with each part. With parts of 5 flits and beats of 4, flits 4 and 6
        yield 4 and 5.
        """
        return word - word % self._flits % self._beat

    def _make_accesses(self, chosen: _Flags, base: int) -> PortAccesses:
        """Return the accesses of the host port that move some words, and count these words.

        `chosen`, of shape (nodes, words), is True for these words. The count is added to
        `through_port`. `base` is the host address of the first word of a node.
        """
        nodes, index = np.nonzero(chosen)
        if self._beat > 1:
            # One access for each beat.
            nodes, index = np.unique([nodes, self._first_of_beat(index)], axis=1)
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
        return PortAccesses(nodes, base + part * beats + flit // self._beat, word)

    def _word_locations(
        self, cells: MemoryCells, *, received: bool
    ) -> Iterator[tuple[slice, _Flags, _Flags, tuple[IntArray, IntArray, IntArray]]]:
        """Yield the locations of all words to send, or of all received words, some nodes at a time.

        `cells` says which memories exist, and to which of them the simulator has direct access.
        `received` is True for received words.

        Yields
        ------
        rows : slice
            The nodes of the batch.
        there : ndarray of bool, shape (nodes, words)
            True for words that are in a memory.
        reached : ndarray of bool, shape (nodes, words)
            True for words that are in a memory to which the simulator has direct access.
        locations : tuple of (ndarray, ndarray, ndarray)
            Node, memory and address of the words in `reached`.
        """
        words = (self.received if received else self.messages).shape[1]
        size, every = (
            max(BATCH_WORDS // max(words, 1), 1),
            cells.exists.all() and cells.reached.all(),
        )
        program, job = self._fabric.program, self._job
        form = program.form_of(job.mode, job.length, job.root)
        for first in range(0, self._fabric.nodes, size):
            nodes = np.arange(first, min(first + size, self._fabric.nodes))
            memory, address = word_addresses(
                program, received=received, form=form, length=job.length, root=job.root, nodes=nodes
            )
            if self._beat > 1:
                memory, address = self._split_rows(memory, address)
            there = reached = address >= 0
            if not every:
                there = there & cells.exists[nodes[:, None], memory]
                reached = there & cells.reached[nodes[:, None], memory]
            node = np.repeat(nodes, np.count_nonzero(reached, axis=1))
            rows = slice(first, first + len(nodes))
            yield rows, there, reached, (node, memory[reached], address[reached])

    def _split_rows(self, memory: IntArray, address: IntArray) -> tuple[IntArray, IntArray]:
        """Convert locations of flits in the fabric to (memory, address) in `MemoryCells`.

        A word of a memory of the fabric has one beat of flits. `MemoryCells` has one memory for
        each flit of the word: flit f of the word at address a in memory m is at address a of memory
        ``m * beat + f``. `memory` and `address` are arrays of numbers in the fabric, where an
        address counts flits.
        """
        fabric = self._fabric
        own = np.array([each.own for each in fabric.program.memories])
        pitches = 1, received_pitch(fabric.program, 0)
        sent, received = (FlitRows(self._beat, pitch).split_address(address) for pitch in pitches)
        row, flit = (np.where(own[memory], *each) for each in zip(sent, received, strict=True))
        return memory * self._beat + flit, np.where(address >= 0, row, -1)
