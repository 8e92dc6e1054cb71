"""How many words the memories of a program hold: of what arrives, and of what is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .program import Program

__all__ = ["StoredWords", "count_words"]


class StoredWords(NamedTuple):
    """Words of memory, counted over all nodes.

    Parameters
    ----------
    received : int
        Of what arrives or is computed; modes share them, as deep as the deepest needs.
    sent : int
        Of what the host writes, and nodes send.
    send_maps : int
        How many different ways modes have to lay out what is sent. Each has memories of its own,
        for the host writes before it is known which mode will read.
    """

    received: int
    sent: int
    send_maps: int


def count_words(program: Program) -> StoredWords:
    """Count the words of all memories.

    Parameters
    ----------
    program : Program

    Returns
    -------
    StoredWords

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("3x3", name) for name in ("allgather", "alltoall")]
    >>> count_words(tf.compile(plans, max_flits=2))
    StoredWords(received=180, sent=180, send_maps=2)
    """
    own = np.array([memory.own for memory in program.memories])
    depth = program.depth[program.variant_of]
    return StoredWords(
        received=int(depth[:, ~own].sum()),
        sent=int(depth[:, own].sum()),
        send_maps=len({memory.layout for memory in program.memories if memory.own}),
    )
