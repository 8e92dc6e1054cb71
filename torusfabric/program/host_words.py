"""Addresses, in the memories of nodes, of the words that the host writes and reads.

The *host* is the computer that writes messages into the memories of the nodes, and reads the
results. It numbers the words of a node from 0, *part* by part without gaps: a part is the data of
one origin or destination, or one share of a sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..topology import IntArray
from .address_map import Located

if TYPE_CHECKING:
    from .program import Program

__all__ = ["port_addresses", "word_addresses"]


def port_addresses(
    program: Program,
    form: int,
    length: int,
    root: int,
    *,
    received: bool,
    nodes: ArrayLike | None = None,
    words: IntArray | None = None,
) -> Located:
    """Return the memory and address that the host port uses for each word of a message.

    The host is the computer that writes messages and reads results. If runs choose the root, a node
    may get addresses of words that it has only as the root; `word_addresses` leaves them out.

    Parameters
    ----------
    form : int
        Number of the form whose address map applies.
    length : int
        Flits of a message.
    root : int
        Root of the run, a position in each group.
    received : bool
        True for the words that nodes receive, False for those that they send.
    nodes : array of int, optional
        Nodes in question; by default all.
    words : ndarray of int, optional
        Numbers of words in the order of the host; by default all.

    Returns
    -------
    memory, address : ndarray of int, shape (nodes, words)
        The address is -1 where a node never has a word.
    """
    part, merged = program.part(form), program.forms[form]
    if words is None:
        layout = part.layout
        words = np.arange(layout.recv_words(length) if received else layout.send_words(length))
    of_part, chunk, flit = part.locate(words, length)
    if received and merged.has_root_addresses:
        of_part = np.full_like(of_part, root)
    mapped, groups = merged.receive_map if received else merged.send_map, merged.groups
    chosen = slice(None) if nodes is None else np.asarray(nodes)
    memory, base = mapped.locate(groups.map_row_of_node[chosen, None], of_part, chunk)
    there = (base >= 0) & (groups.group_of_node[chosen, None] >= 0)
    return memory, np.where(there, base + program.within_blocks(form, memory, flit), -1)


def word_addresses(
    program: Program,
    *,
    received: bool,
    form: int | None = None,
    length: int | None = None,
    root: int | None = None,
    nodes: ArrayLike | None = None,
    words: IntArray | None = None,
) -> Located:
    """Return the memory and address of each word that the host writes or reads at each node.

    The host is the computer that writes messages and reads results. Words that only the root has
    get the address -1 at all other nodes. The root of a broadcast receives nothing, so the
    addresses at which the host reads its result are those of its own message.

    Parameters
    ----------
    received : bool
        True for the words that nodes receive, False for those that they send.
    form : int, optional
        Number of the form; by default the form of a run in mode 0 with this length and root.
    length : int, optional
        Flits of a message, for a program of any length; by default the largest number.
    root : int, optional
        Root of the run for a program of any root, a position in each group (default 0).
    nodes, words : array of int, optional
        Parameters of `port_addresses`. If `words` is given, the length is not checked.

    Returns
    -------
    memory, address : ndarray of int, shape (nodes, words)
        The address is -1 where a node never has a word.

    Examples
    --------
    The message of a node, two flits, lies in the last memory. The message of a neighbour lies in
    the memory of the in-port by which it arrives.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather", algorithm="matching"), flits=2)
    >>> memory, address = word_addresses(program, received=False)
    >>> memory[0].tolist(), address[0].tolist()
    ([2, 2], [0, 1])
    >>> memory, address = word_addresses(program, received=True, nodes=[0])
    >>> memory.tolist(), address.tolist()
    ([[2, 2, 0, 0, 1, 1]], [[0, 1, 0, 1, 0, 1]])
    """
    if form is None:
        form = program.form_of(None, length, root)
    if length is None or words is None:
        length = program.length_of(length)
    root, merged = root or 0, program.forms[form]
    memory, address = port_addresses(
        program, form, length, root, received=received, nodes=nodes, words=words
    )
    if received and merged.any_root:
        chosen = slice(None) if nodes is None else np.asarray(nodes)
        collective, position = (
            merged.schedule.collective,
            merged.groups.position_of_node[chosen, None],
        )
        if collective.to_root:
            address = np.where(position == root, address, -1)
        elif collective.to_all:
            # The root of a broadcast receives nothing: the host reads the message that it sends.
            address = np.where(position == root, address - merged.upper_half_address, address)
    return memory, address
