"""`Packets`: the locations of the words of packets at the memory port of each node.

`packets_sent` and `packets_received` derive the locations from the program, once for each form. The
packet table (`torusfabric.adapters.streams.table`) turns them into hardware.

The memory port of a node gives access to all memories of this node, and moves one *word* a cycle:
one flit, or a beat of several flits. A *bank* is the number of one of these memories. The address
of a word is that of its first flit. A packet has one *block* for each chunk; C is the number of
chunks, B the words of a block. Word w of a packet belongs to block ``w % C`` if runs choose their
length, and to block ``w // B`` if the length is fixed. The words of a block lie in one bank,
`pitch` addresses apart. Memories are divided into *sections*, one for each of some consecutive
runs; addresses here are those within a section.

The block that a node sends to itself does not pass the memory port. A memory beside the core keeps
it (`torusfabric.adapters.streams.own_block`); its bank is `OWN_BLOCK`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...rtl.core import Core
from ...topology import BoolArray, Groups, IntArray

__all__ = ["NO_BLOCK", "OWN_BLOCK", "Packets", "barrier_packets", "packets_received",
           "packets_sent"]  # fmt: skip

#: Bank numbers that stand for blocks that a node sends to itself, and for blocks that a node does
#: not have.
OWN_BLOCK, NO_BLOCK = -2, -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Packets:
    """The packets that each node sends, or receives, in a run of one form, and their locations.

    A *block* is one chunk of a packet; its words are in one memory. A *bank* is the number of one
    of the memories of a node.

    Parameters
    ----------
    at_root : bool
        True if only the root of a run has packets, and each run chooses its root.
    named : bool
        True if each packet names its destination in `tdest`.
    origin : int
        Origin of the first packet; later packets have the following numbers. Not used if `by_root`
        is True.
    bank, base : ndarray of int, shape (nodes, packets, blocks)
        Bank and first address of each block. The bank is `OWN_BLOCK` for a block that the node
        sends to itself, and `NO_BLOCK` where the node has no such packet.
    by_root : bool
        True if a node has a single packet, whose origin is the root that the run chooses. The
        second axis of `bank` and `base` then has an entry for each root.
    words : int
        Words of the longest block.
    pitch : int
        Difference between the addresses of consecutive words of a block.
    numbers : ndarray of int, shape (nodes, packets), or None
        Origins of the packets of each node, in a collective in which some nodes get fewer packets
        than others, such as a halo on a mesh.
    lengths : ndarray of int, shape (nodes, packets), or None
        Flits of each packet, 0 where the node has no such packet; None if all nodes have equally
        many packets of one length. If runs choose the length, it is the largest.
    """

    at_root: bool = False
    named: bool = False
    origin: int = 0
    bank: IntArray
    base: IntArray
    by_root: bool = False
    words: int
    pitch: int = 1
    numbers: IntArray | None = None
    lengths: IntArray | None = None

    @property
    def most_packets(self) -> int:
        """Largest number of packets of a node."""
        return 1 if self.by_root else int(self.base.shape[1])

    @cached_property
    def packets_of_nodes(self) -> IntArray:
        """Number of packets that each node sends or receives in a run, shape (nodes,).

        With `by_root`, the number of roots for which the node has a packet.
        """
        return (self.bank != NO_BLOCK).any(axis=2).sum(axis=1)

    @property
    def has_packets(self) -> BoolArray:
        """Array of shape (nodes,): True for each node that sends (or receives) packets."""
        return self.packets_of_nodes > 0

    @property
    def has_own_words(self) -> BoolArray:
        """Array of shape (nodes,): True for each node that sends words to itself."""
        return (self.bank == OWN_BLOCK).any(axis=(1, 2))

    @property
    def n_blocks(self) -> int:
        """Number of blocks of a packet."""
        return int(self.base.shape[2])


def packets_sent(core: Core, form: int) -> Packets:
    """Return the packets that nodes send in a form: one for each destination, or one for all.

    Parameters
    ----------
    core : Core
        The core, whose memories have sections.
    form : int
        Form of the program, counted over all modes.

    Examples
    --------
    In a scatter on nine nodes only the root sends: nine packets, of four flits each, at addresses
    0, 4, 8, ..

    >>> import torusfabric as tf
    >>> core = Core(tf.compile(tf.plan("3x3", "scatter"), flits=4), 8, sections=2, concurrent=True)
    >>> sent = packets_sent(core, 0)
    >>> sent.most_packets, int(sent.has_packets.sum()), sent.base[0, :3, 0].tolist()
    (9, 1, [0, 4, 8])
    """
    part, of_form = core.program.part(form), core.program.forms[form]
    collective, count = part.schedule.collective, part.schedule.blocks.messages_per_origin
    there = part.groups.group_of_node >= 0
    at_root = collective.single_origin and of_form.any_root
    if collective.single_origin and not at_root:
        there &= part.groups.position_of_node == collective.root
    bank, address = _first_words(core, form, count, received=False)
    blocks = part.schedule.blocks
    lengths, has_message = _lengths_of_nodes(part.groups, blocks.sent_lengths), blocks.has_message
    if lengths is not None or not has_message.all():
        lengths = has_message * (part.flits if lengths is None else lengths)
    if lengths is not None:
        bank = np.where(lengths[..., None, None] > 0, bank, NO_BLOCK)
    bank = np.where(there[:, None, None, None], bank, NO_BLOCK)
    return _make_packets(
        core, form, bank, address, at_root=at_root, named=collective.personal, lengths=lengths
    )


def packets_received(core: Core, form: int) -> Packets:
    """Return the packets that nodes receive in a form: one from each origin, or only one.

    Parameters
    ----------
    core : Core
        The core, whose memories have sections.
    form : int
        Form of the program, counted over all modes.

    Examples
    --------
    In a gather on nine nodes only the root receives: nine packets, of which one is its own.

    >>> import torusfabric as tf
    >>> core = Core(tf.compile(tf.plan("3x3", "gather"), flits=4), 8, sections=2, concurrent=True)
    >>> received = packets_received(core, 0)
    >>> received.most_packets, int(received.has_packets.sum())
    (9, 1)
    >>> int(received.bank[0, 0, 0]) == OWN_BLOCK  # the packet of the root to itself
    True
    """
    program = core.program
    part, of_form = program.part(form), program.forms[form]
    collective, count = part.schedule.collective, part.schedule.blocks.messages_per_receiver
    roots = range(of_form.groups.group_size if of_form.any_root else 1)
    found = [_first_words(core, form, count, received=True, root=root) for root in roots]
    bank, address = (np.stack(each) for each in zip(*found, strict=True))
    by_root = collective.single_origin and of_form.any_root
    at_root = collective.to_root and of_form.any_root
    if by_root:
        bank, address = (each[:, :, 0].swapaxes(0, 1) for each in (bank, address))
    elif at_root:
        position, nodes = np.maximum(of_form.groups.position_of_node, 0), np.arange(bank.shape[1])
        bank, address = bank[position, nodes], address[position, nodes]
    else:
        bank, address = bank[0], address[0]
    own = np.array([memory.own for memory in core.rows.memories])[bank]
    bank = np.where(address < 0, NO_BLOCK, np.where(own, OWN_BLOCK, bank))
    has = (address[..., 0] >= 0).any(axis=2)
    numbers, lengths = None, _lengths_of_nodes(part.groups, part.schedule.blocks.received_lengths)
    if lengths is not None:
        lengths = np.where(has, lengths, 0)
    differ = collective.local or lengths is not None or part.groups.has_several_sizes
    if differ and not has.all():
        numbers = np.argsort(~has, axis=1, kind="stable")
        bank, address = (np.take_along_axis(each, numbers[..., None, None], axis=1)
                         for each in (bank, address))  # fmt: skip
        if lengths is not None:
            lengths = np.take_along_axis(lengths, numbers, axis=1)
    return _make_packets(
        core, form, bank, address,
        at_root=at_root,
        origin=0 if by_root or not collective.single_origin else collective.root or 0,
        by_root=by_root,
        numbers=numbers,
        lengths=lengths,
    )  # fmt: skip


def _lengths_of_nodes(groups: Groups, lengths: IntArray | None) -> IntArray | None:
    """Return the flits of each packet of each node, shape (nodes, packets); None if all are equal.

    `lengths`, of shape (positions, packets), has the flits by the position of a node in its group.
    Nodes outside of all `groups` have lengths of 0.
    """
    if lengths is None:
        return None
    position = groups.position_of_node[:, None]
    return np.where(position >= 0, lengths[position[:, 0]], 0)


def barrier_packets(nodes: int, senders: IntArray, bank: int) -> Packets:
    """Return the packets of a barrier, in which each node sends one word to itself.

    Parameters
    ----------
    nodes : int
        Nodes of the fabric.
    senders : ndarray of int
        The nodes with streams, which take part.
    bank : int
        Bank of the word: the send memory for the sent packet, `OWN_BLOCK` for the received packet.
    """
    banks = np.full((nodes, 1, 1), NO_BLOCK)
    banks[senders] = bank
    return Packets(bank=banks, base=0 * banks, words=1)


def _first_words(
    core: Core, form: int, count: int, *, received: bool, root: int | None = None
) -> tuple[IntArray, IntArray]:
    """Return the locations of the first two words of each block: arrays of banks and addresses.

    Both arrays have the shape (nodes, packets, blocks, 2). From the two addresses `_make_packets`
    computes the distance between words of a block. A bank is the number of a memory; an address is
    -1 where a node has no such word. `core` gives the locations, and `form` is the number of the
    form. `count` is the number of packets of a node, `received` is True for received packets, and
    `root` is the root of the run, if runs choose it.
    """
    program = core.program
    blocks, words = _block_shape(core, form)
    # A message of whole blocks with at least two words each, so that a pitch can be measured.
    words = max(words, 2)
    block, word = np.arange(blocks)[:, None], np.arange(2)
    step = word * blocks + block if program.any_length else word + block * words
    numbers = core.beat * (np.arange(count)[:, None, None] * blocks * words + step)
    bank, address = core.locate_words(received=received, form=form, words=numbers.ravel(),
                                length=core.beat * blocks * words, root=root)  # fmt: skip
    shape = len(core.nodes), *numbers.shape
    return bank.reshape(shape), address.reshape(shape)


def _block_shape(core: Core, form: int) -> tuple[int, int]:
    """Return the number of blocks of a packet in a form, and the words of the longest block.

    A packet has a block for each chunk of a message, and a word is one beat of flits. `form` is the
    number of the form.
    """
    part = core.program.part(form)
    return part.schedule.chunks, -(-part.block_flits // core.beat)


def _make_packets(
    core: Core, form: int, bank: IntArray, address: IntArray, **others: Any
) -> Packets:
    """Return the `Packets` of a form, given the locations of the first two words of each block.

    `bank` and `address` are those of `_first_words`, and `others` further parameters of `Packets`.
    If the blocks of every packet are contiguous in one bank, each packet is represented as a single
    block, because this makes the packet table smaller. `form` is the number of the form, and `core`
    has the program and the flits of a word.
    """
    _, words = _block_shape(core, form)
    base, passes = np.maximum(address[..., 0], 0), (bank >= 0).all(axis=3)
    steps = np.unique((address[..., 1] - address[..., 0])[passes & (address >= 0).all(axis=3)])
    pitch = max(int(steps.max(initial=0)), 1) if words > 1 else 1
    bank = bank[..., 0]
    there = (bank != NO_BLOCK).any(axis=(1, 2))
    # The own block has a memory of its own, in which its words are contiguous.
    block = np.arange(base.shape[2])
    base = np.where(bank == OWN_BLOCK, words * block, base)
    step = np.where(bank == OWN_BLOCK, words, words * pitch)
    follow = (base == base[..., :1] + step * block) & (bank == bank[..., :1])
    follow |= bank == NO_BLOCK
    if not core.program.any_length and pitch == core.beat and follow[there].all():
        bank, base = bank[..., :1], base[..., :1]
    return Packets(bank=bank, base=base, words=words, pitch=pitch, **others)
