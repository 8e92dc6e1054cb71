"""Where the words that hosts write and read lie in the memories of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .address_map import Located

if TYPE_CHECKING:
    from .program import Program

__all__ = ["word_addresses"]


def word_addresses(
    program: Program,
    *,
    received: bool,
    mode: int | None = None,
    length: int | None = None,
    root: int | None = None,
    nodes: ArrayLike | None = None,
) -> Located:
    """Memory and address of every word that nodes send, or receive, in the order of the host.

    Parameters
    ----------
    received : bool
        Whether of what nodes receive rather than send.
    mode : int, optional
        Which of several collectives (default 0).
    length : int, optional
        Flits of a message, for a program of any length; by default as many as there may be.
    root : int, optional
        For a program of any root, the root: a position in each group (default 0).
    nodes : array of int, optional
        Of these nodes; by default of all.

    Returns
    -------
    memory, address : ndarray of int, shape (nodes, words)
        The address is -1 where a node never has a word.

    Examples
    --------
    What a node sends, two flits, lies in the last memory, and what comes from a neighbour in that
    of the in-port by which it comes.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather", algorithm="matching"), flits=2)
    >>> memory, address = word_addresses(program, received=False)
    >>> memory[0].tolist(), address[0].tolist()
    ([2, 2], [0, 1])
    >>> memory, address = word_addresses(program, received=True, nodes=[0])
    >>> memory.tolist(), address.tolist()
    ([[2, 2, 0, 0, 1, 1]], [[0, 1, 0, 1, 0, 1]])
    """
    number = program.form_of(mode, length, root)
    part, merged = program.part(number), program.forms[number]
    flits, root = program.length_of(length), root or 0
    count = part.layout.recv_words(flits) if received else part.layout.send_words(flits)
    of_part, chunk, flit = part.locate(np.arange(count), flits)
    if received and merged.part_is_root:
        of_part = np.full_like(of_part, root)
    chosen = np.arange(program.topology.nodes) if nodes is None else np.asarray(nodes)
    position = merged.groups.position[chosen]
    mapped = merged.receive_map if received else merged.send_map
    memory, base = np.broadcast_arrays(
        *mapped.locate(position[:, None], of_part[None, :], chunk[None, :])
    )
    if received and merged.any_root:
        collective, is_root = part.schedule.collective, (position == root)[:, None]
        if collective.to_root:
            base = np.where(is_root, base, -1)
        elif collective.to_all:
            # The root of a broadcast shows what it sends.
            base = np.where(is_root, 0, base)
    base = np.where(merged.groups.group[chosen][:, None] < 0, -1, base)
    pitch = np.array([merged.loop.pitch_of(k) for k in range(len(program.memories))])
    address = np.where(base >= 0, base + pitch[memory] * flit, -1)
    return np.broadcast_to(memory, address.shape), np.broadcast_to(address, (len(chosen), count))
