"""Packets: where the words of what a node sends, and of what it receives, lie in its memories.

Word w of a packet belongs to chunk ``w % C`` in fabrics of run-time length, and to chunk ``w // B``
where blocks have a fixed number B of flits. The address map says where each chunk begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...collective import NO_NODE
from ...topology import BoolArray, IntArray
from ..flit_rows import FlitRows, locate_blocks, received_pitch
from ..memories import address_width

if TYPE_CHECKING:
    from ...program import Program
    from ...program.address_map import AddressMap

__all__ = ["KEPT", "NOWHERE", "Packets", "barrier_packets", "number_bits", "packet_counts",
           "packets_received", "packets_sent"]  # fmt: skip


#: Memory number of what a node gets from itself, word by word, and of what it does not get.
KEPT, NOWHERE = -2, -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Packets:
    """The packets of a node in a form, all of one length.

    Parameters
    ----------
    count : int
        Number of packets.
    there : ndarray of bool, shape (nodes,)
        The nodes that send, or receive, any.
    at_root : bool
        Whether of these the root of the run alone does, where it is chosen for each run.
    named : bool
        Whether packets have names of their own: destinations, or origins.
    root : int or None
        The origin of the only packet; None where it is the root of the run.
    memory, base : ndarray of int, shape (nodes, packets, chunks)
        Where each chunk begins; the memory is `NOWHERE` for what a node does not get, and `KEPT`
        for what it gets from itself.
    by_root : bool
        Whether there is one packet, and the second axis is that of the roots of the run.
    flits : int
        The most words of a chunk.
    in_turn : bool
        Whether the words of a packet go to its chunks in turn.
    pitch : int
        From the address of a word of a chunk to that of the next.
    numbers, counts : ndarray of int, shape (nodes, packets) and (nodes,), or None
        Of a halo or exchange in which nodes lack neighbours: the numbers of the packets of each
        node, those that there are first, and how many these are.
    """

    count: int
    there: BoolArray
    at_root: bool = False
    named: bool = False
    root: int | None = 0
    memory: IntArray
    base: IntArray
    by_root: bool = False
    flits: int
    in_turn: bool
    pitch: int = 1
    numbers: IntArray | None = None
    counts: IntArray | None = None

    @cached_property
    def chunks(self) -> int:
        """Chunks of a packet, as far as they do not simply follow one another in a memory."""
        chunks = int(self.memory.shape[2])
        follow = self.base[:, :, :1] + self.flits * np.arange(chunks)
        same = (self.memory == self.memory[:, :, :1]) & (self.base == follow)
        contiguous = not self.in_turn and self.pitch == 1 and bool(same[self.there].all())
        return 1 if contiguous else chunks

    def by_beats(self, beat: int) -> Packets:
        """The same counted in beats of so many flits, in memories with a row for each beat."""
        row, _ = FlitRows(beat, self.pitch).split(self.base)
        base = np.where(self.memory == KEPT, self.base // beat, row)
        return replace(self, base=base, flits=-(-self.flits // beat))


def packet_counts(program: Program, form: int) -> tuple[int, int]:
    """How many packets a node sends in a form, and how many it receives.

    One for each destination or offset, and from each origin or offset, or one.
    """
    blocks = program.part(form).schedule.blocks
    return blocks.goals, blocks.parts


def number_bits(program: Program) -> int:
    """Bits of the number of a packet: of a node, or of an offset."""
    counts = [max(packet_counts(program, form)) for form in range(len(program.forms))]
    return address_width(max(program.topology.nodes, *counts))


def packets_sent(program: Program, form: int) -> Packets:
    """What nodes send in a form: one packet for each destination, or one for all.

    Examples
    --------
    >>> import torusfabric as tf
    >>> sent = packets_sent(tf.compile(tf.plan("3x3", "scatter"), flits=4), 0)
    >>> sent.count, int(sent.there.sum()), sent.base[0, :3, 0].tolist()
    (9, 1, [0, 4, 8])
    """
    part, of_form = program.part(form), program.forms[form]
    collective = part.schedule.collective
    count, _ = packet_counts(program, form)
    there = part.groups.group >= 0
    at_root = collective.single_origin and of_form.any_root
    if collective.single_origin and not at_root:
        there &= part.groups.position == collective.root
    memory, base = _located(program, form, of_form.send_map, count)
    return Packets(
        count=count,
        there=there,
        at_root=at_root,
        named=collective.personal,
        memory=memory,
        base=base,
        flits=part.block_flits,
        in_turn=program.any_length,
    )


def packets_received(program: Program, form: int) -> Packets:
    """What nodes receive in a form: one packet from each origin, or one in all.

    Examples
    --------
    >>> import torusfabric as tf
    >>> received = packets_received(tf.compile(tf.plan("3x3", "gather"), flits=4), 0)
    >>> received.count, int(received.there.sum()), int(received.memory[0, 0, 0]) == KEPT
    (9, 1, True)
    """
    part, of_form = program.part(form), program.forms[form]
    collective = part.schedule.collective
    _, count = packet_counts(program, form)
    by_root = collective.single_origin and of_form.any_root
    # What one node sends to all lies at one address, whoever that is.
    parts = part.groups.size if by_root and collective.personal else count
    memory, base = _located(program, form, of_form.receive_map, parts)
    memory = _with_kept(program, form, memory)
    base = np.broadcast_to(base, memory.shape)
    there = np.ones(len(memory), bool)
    if not of_form.any_root:
        there = np.isin(np.arange(len(memory)), part.layout.receivers)
    lacking = _neighbours_first(part) if collective.local else None
    numbers, counts = lacking or (None, None)
    if numbers is not None and counts is not None:
        memory, base = (np.take_along_axis(v, numbers[..., None], axis=1) for v in (memory, base))
        there &= counts > 0
    return Packets(
        count=count,
        there=there,
        at_root=collective.to_root and of_form.any_root,
        named=collective.from_each,
        root=None if by_root else (collective.root or 0) if collective.single_origin else 0,
        memory=memory,
        # What is kept lies word by word.
        base=np.where(memory == KEPT, part.block_flits * np.arange(memory.shape[2]), base),
        by_root=by_root,
        flits=part.block_flits,
        in_turn=program.any_length,
        pitch=received_pitch(program, form),
        numbers=numbers,
        counts=counts,
    )


def _neighbours_first(part: Program) -> tuple[IntArray, IntArray] | None:
    """The numbers of offsets at which each node has a neighbour, then others; and how many.

    None where all nodes have all neighbours.
    """
    blocks, groups = part.schedule.blocks, part.groups
    origin = blocks.origin_of(groups.position[:, None], np.arange(blocks.parts))
    there = (origin != NO_NODE) & (groups.group >= 0)[:, None]
    if there.all():
        return None
    return np.argsort(~there, axis=1, kind="stable"), there.sum(axis=1)


def barrier_packets(program: Program, memory: int) -> Packets:
    """A word that nodes send in a barrier, or receive: of a memory of what they send, or kept."""
    nodes = program.topology.nodes
    shape = nodes, 1, 1
    return Packets(
        count=1,
        there=np.ones(nodes, bool),
        memory=np.full(shape, memory),
        base=np.zeros(shape, int),
        flits=1,
        in_turn=program.any_length,
    )


def _with_kept(program: Program, form: int, memory: IntArray) -> IntArray:
    """The memories of what is received, with what a node gets from itself."""
    part, of_form = program.part(form), program.forms[form]
    collective, position = part.schedule.collective, of_form.groups.position
    if of_form.any_root and collective.single_origin and collective.to_all:
        itself = position[:, None, None] == np.arange(part.groups.size)[None, :, None]
    else:
        own = [number for number, each in enumerate(program.memories) if each.own]
        itself = np.isin(memory, own)
    return np.where(itself, KEPT, memory)


def _located(
    program: Program, form: int, mapped: AddressMap, count: int
) -> tuple[IntArray, IntArray]:
    """Memory and base of each chunk of so many packets of each node."""
    positions = program.forms[form].groups.position
    memory, base = locate_blocks(program, form, mapped, positions, count)
    return np.where(base >= 0, memory, NOWHERE), np.maximum(base, 0)
