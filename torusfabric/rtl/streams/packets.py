"""Packets: where the words of what a node sends, and of what it receives, lie in its memories.

Word w of a packet belongs to chunk ``w % C`` in fabrics of run-time length, and to chunk ``w // B``
where blocks have a fixed number B of flits. The address map says where each chunk begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...topology import BoolArray, IntArray

if TYPE_CHECKING:
    from ...program import Program
    from ...program.address_map import AddressMap

__all__ = ["KEPT", "NOWHERE", "Packets", "packets_received", "packets_sent"]

#: Memory number of what a node gets from itself, word by word, and of what it does not get.
KEPT, NOWHERE = -2, -1


@dataclass(frozen=True, eq=False)
class Packets:
    """The packets of a node in a mode, all of one length.

    Parameters
    ----------
    there : ndarray of bool, shape (nodes,)
        The nodes that send, or receive, any.
    first_id : int
        The destination, or the origin, of the first packet; the others follow.
    memory, base : ndarray of int, shape (nodes, packets, chunks)
        Where each chunk begins; the memory is `NOWHERE` for what a node does not get, and `KEPT`
        for what it gets from itself.
    flits : int
        The most words of a chunk.
    in_turn : bool
        Whether the words of a packet go to its chunks in turn.
    pitch : int
        From the address of a word of a chunk to that of the next.
    """

    there: BoolArray
    first_id: int
    memory: IntArray
    base: IntArray
    flits: int
    in_turn: bool
    pitch: int = 1

    @property
    def count(self) -> int:
        """Number of packets."""
        return int(self.memory.shape[1])

    @cached_property
    def chunks(self) -> int:
        """Chunks of a packet, as far as they do not simply follow one another in a memory."""
        return 1 if self._contiguous else int(self.memory.shape[2])

    @property
    def _contiguous(self) -> bool:
        if self.memory.shape[2] == 1:
            return True
        follow = self.base[:, :, :1] + self.flits * np.arange(self.memory.shape[2])
        same = (self.memory == self.memory[:, :, :1]) & (self.base == follow)
        return not self.in_turn and self.pitch == 1 and bool(same[self.there].all())


def packets_sent(program: Program, mode: int) -> Packets:
    """What nodes send in a mode: one packet for each destination, or one for all.

    Examples
    --------
    >>> import torusfabric as tf
    >>> sent = packets_sent(tf.compile(tf.plan("3x3", "scatter"), flits=4), 0)
    >>> sent.count, int(sent.there.sum()), sent.base[0, :3, 0].tolist()
    (9, 1, [0, 4, 8])
    """
    part, of_mode = program.part(mode), program.modes[mode]
    collective = part.schedule.collective
    count = part.groups.size if collective.personal else 1
    senders = np.ones(program.topology.nodes, bool)
    if collective.single_origin:
        senders = part.groups.position == collective.root
    memory, base = _located(program, mode, of_mode.send_map, count)
    return Packets(senders, 0, memory, base, part.block_flits, program.any_length)


def packets_received(program: Program, mode: int) -> Packets:
    """What nodes receive in a mode: one packet from each origin, or one in all.

    Examples
    --------
    >>> import torusfabric as tf
    >>> received = packets_received(tf.compile(tf.plan("3x3", "gather"), flits=4), 0)
    >>> received.count, int(received.there.sum()), int(received.memory[0, 0, 0]) == KEPT
    (9, 1, True)
    """
    part, of_mode = program.part(mode), program.modes[mode]
    collective = part.schedule.collective
    count = part.groups.size if collective.from_each else 1
    there = np.isin(np.arange(program.topology.nodes), part.layout.receivers)
    first = (collective.root or 0) if collective.single_origin else 0
    memory, base = _located(program, mode, of_mode.receive_map, count)
    own = [number for number, each in enumerate(program.memories) if each.own]
    kept = np.isin(memory, own)
    stored = np.unique(memory[there][~kept[there]])
    memory = np.where(kept, KEPT, memory)
    # What is kept lies word by word.
    base = np.where(kept, part.block_flits * np.arange(memory.shape[2]), base)
    pitches = {of_mode.loop.pitch_of(number) for number in stored.tolist() if number >= 0} or {1}
    assert len(pitches) == 1, "words of a mode lie as far apart in all memories"
    flits, in_turn = part.block_flits, program.any_length
    return Packets(there, first, memory, base, flits, in_turn, pitches.pop())


def _located(
    program: Program, mode: int, mapped: AddressMap, count: int
) -> tuple[IntArray, IntArray]:
    """Memory and base of each chunk of so many packets of each node."""
    part = program.part(mode)
    number, chunk = np.arange(count)[:, None], np.arange(part.schedule.chunks)[None]
    share, chunk = np.divmod(chunk, part.layout.part_chunks)
    position = program.modes[mode].groups.position[:, None, None]
    memory, base = mapped.locate(position, number + share, chunk)
    shape = (len(position), count, chunk.shape[1])
    memory, base = np.broadcast_to(memory, shape), np.broadcast_to(base, shape)
    return np.where(base >= 0, memory, NOWHERE), np.maximum(base, 0)
