"""The order in which a node sends blocks, so that no two injection ports read a memory at once.

A node that sends several messages in a round reads a block for each of them at a time. A memory has
one read port, so at any time each injection port must read a different memory.

This is the open-shop problem with preemption: injection ports are jobs, and memories are machines.
Let T be the number of blocks of the longest message. If each injection port sends at most T blocks,
and at most T blocks are read from each memory, an order exists that takes the time of T blocks
(Gonzalez and Sahni, "Open shop scheduling to minimize finish time", Journal of the ACM 23(4),
1976).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ..topology import IntArray

__all__ = ["SEND_MEMORY", "Location", "arrange_messages"]

#: Number of the memory with the node's own message. Other memories are numbered by in-port.
SEND_MEMORY = -1


class Location(NamedTuple):
    """The location of a block in a node: a memory, and the slot (space of one block) in it."""

    memory: int
    slot: int


def arrange_messages(
    messages: list[list[int]], locations: Mapping[int, Location]
) -> list[list[int]]:
    """Order the blocks of simultaneous messages so that no two read a memory at once.

    Parameters
    ----------
    messages : list of (list of int)
        Blocks of each message, in a preferred order.
    locations : dict of int to Location
        Location of each block.

    Returns
    -------
    list of (list of int)
        Messages with reordered blocks. They are unchanged if their lengths differ, or if no order
        avoids conflicts.

    Examples
    --------
    Two messages of two blocks, each with a block in either memory; the second starts with the
    other memory.

    >>> locations = {0: Location(0, 0), 1: Location(1, 0), 2: Location(0, 1), 3: Location(1, 1)}
    >>> first, second = arrange_messages([[0, 1], [2, 3]], locations)
    >>> [locations[a].memory != locations[b].memory for a, b in zip(first, second)]
    [True, True]
    """
    lengths = {len(message) for message in messages}
    if len(messages) < 2 or len(lengths) > 1 or max(lengths) < 2:
        return messages
    memories = sorted({locations[block].memory for message in messages for block in message})
    queues = [
        [[block for block in message if locations[block].memory == memory] for memory in memories]
        for message in messages
    ]
    work = np.array([[len(queue) for queue in row] for row in queues])
    length = len(messages[0])
    if len(memories) < len(messages) or (work.sum(axis=0) > length).any():
        return messages
    ordered: list[list[int]] = [[] for _ in messages]
    for span, chosen in _assign_columns(work, length):
        for message, row, column in zip(ordered, queues, chosen, strict=True):
            message += row[column][:span]
            del row[column][:span]
    return ordered


def _assign_columns(work: IntArray, length: int) -> Iterator[tuple[int, list[int]]]:
    """Yield spans of time, each with the machine that every job uses in it: (length, machines).

    This is a solution of the open-shop problem: jobs (rows) and machines (columns) may change
    partners from span to span, and no machine has two jobs at once.

    Parameters
    ----------
    work : ndarray of int, shape (rows, columns)
        Time that the job of each row needs on the machine of each column. The sum of each row is
        `length`, that of each column at most `length`.
    length : int
        Sum of all spans.
    """
    # Here, because few programs need it, and the import takes longer than compiling a small one.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    rows, columns = work.shape
    spare = length - work.sum(axis=0)
    idle = np.zeros((columns - rows, columns), int)
    for row in idle:
        # Dummy rows fill up the columns, so that every row and every column sums to `length`.
        below = np.minimum(np.cumsum(spare), length)
        row[:] = np.diff(below, prepend=0)
        spare = spare - row
    work = np.vstack([work, idle])
    while work.any():
        # Take the matching with the longest span first: few spans give few bursts.
        for least in np.unique(work)[::-1]:
            match = maximum_bipartite_matching(csr_array(work >= max(least, 1)), "column")
            if (match >= 0).all():
                break
        span = int(work[np.arange(columns), match].min())
        work[np.arange(columns), match] -= span
        yield span, match[:rows].tolist()
