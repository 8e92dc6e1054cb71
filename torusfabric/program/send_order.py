"""In which order a node sends blocks, so that its injection ports never read a memory at once.

A node that sends several different messages in a round reads as many blocks at a time. A memory
has one read port, so it can serve them only if at any time each injection port reads a memory of
its own. That is an open shop with preemption: injection ports are jobs, memories are machines, and
if no injection port or memory has more blocks than the longest message, a timetable of that length
exists (Gonzalez and Sahni, "Open shop scheduling to minimize finish time", Journal of the ACM
23(4), 1976).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ..topology import IntArray

__all__ = ["SEND", "Location", "arrange"]

#: Number of the memory that holds what a node itself sends; others have that of their in-port.
SEND = -1


class Location(NamedTuple):
    """Where a block lies in a node: the memory, and the slot in it, counted in blocks."""

    memory: int
    slot: int


def arrange(messages: list[list[int]], locations: Mapping[int, Location]) -> list[list[int]]:
    """Order the blocks of messages that are sent at once so that no two read the same memory.

    Parameters
    ----------
    messages : list of (list of int)
        The blocks of each message, in the order in which to send them if it is free.
    locations : dict of int to Location
        Of each block.

    Returns
    -------
    list of (list of int)
        The messages as they were where their lengths differ, or where there is no other order.

    Examples
    --------
    Two messages of two blocks, each with a block in either memory; the second starts with the
    other memory.

    >>> locations = {0: Location(0, 0), 1: Location(1, 0), 2: Location(0, 1), 3: Location(1, 1)}
    >>> first, second = arrange([[0, 1], [2, 3]], locations)
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
    for span, chosen in _timetable(work, length):
        for message, row, column in zip(ordered, queues, chosen, strict=True):
            message += row[column][:span]
            del row[column][:span]
    return ordered


def _timetable(work: IntArray, length: int) -> Iterator[tuple[int, list[int]]]:
    """Spans of time, and the column that each row works on: no two rows on the same one.

    Rows of work sum to the length, columns to at most the length.
    """
    # Here, since few programs need it and its import takes longer than compiling a small one.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    rows, columns = work.shape
    spare = length - work.sum(axis=0)
    idle = np.zeros((columns - rows, columns), int)
    for row in idle:
        # Rows that stand for nobody fill the columns, so that every row and column is full.
        below = np.minimum(np.cumsum(spare), length)
        row[:] = np.diff(below, prepend=0)
        spare = spare - row
    work = np.vstack([work, idle])
    while work.any():
        # The widest matching first: few spans make few runs.
        for least in np.unique(work)[::-1]:
            match = maximum_bipartite_matching(csr_array(work >= max(least, 1)), "column")
            if (match >= 0).all():
                break
        span = int(work[np.arange(columns), match].min())
        work[np.arange(columns), match] -= span
        yield span, match[:rows].tolist()
