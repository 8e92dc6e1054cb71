"""Random messages that nodes send, and the words that a collective must deliver.

Simulations and boards compare their results with these words. Why: the expected words follow from
the collective alone, independently of schedules and hardware.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layout import MemoryLayout
from .offsets import NO_NODE
from .operators import ADD, Operator

__all__ = ["expected_words", "random_messages"]


def random_messages(
    layout: MemoryLayout, flits: int, *, width: int, seed: int
) -> NDArray[np.uint64] | NDArray[np.object_]:
    """Return random words for the send memory of every node; `seed` selects them.

    Parameters
    ----------
    flits : int
        Flits of a message.
    width : int
        Bits of a flit.

    Returns
    -------
    ndarray, shape (nodes, send words)
        uint64, or Python integers in an array of objects for flits wider than 64 bits.

    Examples
    --------
    >>> import torusfabric as tf
    >>> layout = tf.parse_collective("alltoall").layout(tf.Torus(3, 3), chunks=1)
    >>> random_messages(layout, 2, width=8, seed=1).shape
    (9, 18)
    """
    generator = np.random.default_rng(seed)
    shape = layout.blocks.groups.topology.nodes, layout.send_words(flits)
    if width <= 64:
        return generator.integers(0, (1 << width) - 1, shape, np.uint64, endpoint=True)
    size = -(-width // 8)
    raw = generator.bytes(shape[0] * shape[1] * size)
    mask = (1 << width) - 1
    words = [int.from_bytes(raw[k : k + size], "little") & mask for k in range(0, len(raw), size)]
    return np.array(words, object).reshape(shape)


def expected_words(
    layout: MemoryLayout,
    messages: NDArray[Any],
    *,
    operator: Operator | None = None,
    width: int = 64,
    root: int | None = None,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the words that a collective must deliver at every node.

    Parameters
    ----------
    messages : ndarray, shape (nodes, send words)
    operator : Operator, optional
        The operator of a reduction (default: addition).
    width : int
        Bits of a word.
    root : int, optional
        Replaces the root of the layout.

    Returns
    -------
    words : ndarray, shape (nodes, receive words)
        Row v has the words of node v in the order of its receive memory.
    receives : ndarray of bool, shape (nodes, receive words)
        True for the words that are delivered; the others have no meaning.

    Examples
    --------
    >>> import torusfabric as tf
    >>> layout = tf.parse_collective("allgather").layout(tf.Torus(3), chunks=1)
    >>> words, receives = expected_words(layout, np.array([[10], [11], [12]]))
    >>> words[1]
    array([10, 11, 12])
    """
    if root is not None:
        layout = layout.with_root(root)
    groups = layout.blocks.groups
    combine = operator or ADD
    words = [_group_words(layout, messages[nodes], combine, width) for nodes in groups.node_lists]
    result = np.zeros((len(messages), words[0].shape[1]), words[0].dtype)
    for nodes, each in zip(groups.node_lists, words, strict=True):
        result[nodes] = each
    return result, _delivery_mask(layout, result.shape)


def _delivery_mask(layout: MemoryLayout, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return an array that is True for each received word that the collective delivers.

    Its shape is `shape`, (nodes, words of a receive memory), and `layout` is the layout of these
    memories.
    """
    blocks, nodes = layout.blocks, np.arange(shape[0])
    there = np.isin(nodes, layout.receiving_nodes)[:, None]
    groups = blocks.groups
    if blocks.collective.from_each:
        origin = blocks.origin_of_part(
            groups.position_of_node[:, None], np.arange(blocks.messages_per_receiver)
        )
        sent = (origin != NO_NODE) & (origin < groups.sizes[groups.group_of_node, None])
        there = there & np.repeat(sent, shape[1] // blocks.messages_per_receiver, axis=1)
    if (lengths := blocks.received_lengths) is not None:
        flit = np.arange(shape[1]) % (shape[1] // lengths.shape[1])
        position = groups.position_of_node
        there = there & (flit < np.repeat(lengths[position], shape[1] // lengths.shape[1], axis=1))
    return np.broadcast_to(there, shape)


def _group_words(
    layout: MemoryLayout, messages: NDArray[Any], operator: Operator, width: int
) -> NDArray[Any]:
    """Return the words delivered in one group of nodes, shape (positions, receive words).

    `messages` has the send memories of the nodes of this group, shape (positions, send words).
    `layout` is the layout of these memories. `operator` combines words of `width` bits in a
    reduction. Words from positions that the group lacks have no meaning.
    """
    blocks, nodes = layout.blocks, np.arange(len(messages))
    if blocks.collective.reducing:
        sums = operator.reduce(messages, width)
        if blocks.collective.personal:
            return sums.reshape(blocks.group_size, -1)[: len(nodes)]
        return np.broadcast_to(sums, (len(nodes), len(sums)))
    # A host sees messages, not chunks. Part p of a receive memory is the message of one origin:
    # its only message, or the one among its messages that is for this node.
    sent = messages.reshape(len(nodes), layout.send_parts, -1)
    parts = np.arange(blocks.messages_per_receiver)[None, :]
    origin = np.array([[blocks.collective.root]])
    if blocks.collective.from_each:
        origin = blocks.origin_of_part(nodes[:, None], parts)
    part = parts if blocks.collective.local else nodes[:, None]
    part = part if blocks.collective.personal else np.zeros((len(nodes), 1), int)
    words: NDArray[Any] = sent[np.minimum(origin, len(nodes) - 1), part]
    return words.reshape(len(nodes), -1)
