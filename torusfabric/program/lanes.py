"""Lanes: in which order a node sends blocks, so that its lanes never read a bank at once.

A node that sends several different messages in a round reads as many blocks at a time. A bank has
one read port, so it can serve them only if at any time each lane reads a bank of its own. That is
an open shop with preemption: lanes are jobs, banks are machines, and if no lane or bank has more
blocks than the longest message, a timetable of that length exists (Gonzalez and Sahni, "Open shop
scheduling to minimize finish time", Journal of the ACM 23(4), 1976).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

__all__ = ["OWN", "BlockRun", "arrange"]

#: Bank number of the memory that holds what a node itself sends.
OWN = -1


class BlockRun(NamedTuple):
    """Consecutive blocks of one bank that a node sends: ``length`` from place ``slot`` on."""

    bank: int
    slot: int
    length: int


def arrange(messages, places):
    """Put the blocks of messages that are sent at once in an order in which no two meet in a bank.

    Parameters
    ----------
    messages : list of (list of int)
        The blocks of each message, in the order in which to send them if it is free.
    places : dict of int to (int, int)
        Bank and slot of each block.

    Returns
    -------
    list of (list of int)
        The messages as they were where their lengths differ, or where there is no such order.
    """
    if len(messages) < 2 or len({len(message) for message in messages}) > 1:
        return messages
    banks = sorted({places[block][0] for message in messages for block in message})
    queues = [[[b for b in m if places[b][0] == bank] for bank in banks] for m in messages]
    work = np.array([[len(queue) for queue in row] for row in queues])
    length = len(messages[0])
    if len(banks) < len(messages) or (work.sum(axis=0) > length).any():
        return messages
    ordered: list[list[int]] = [[] for _ in messages]
    for span, chosen in _timetable(work, length):
        for message, row, column in zip(ordered, queues, chosen, strict=True):
            message += row[column][:span]
            del row[column][:span]
    return ordered


def _timetable(work, length):
    """Spans of time, and the column that each row works on: no two rows on the same one.

    Parameters
    ----------
    work : ndarray of int, shape (rows, columns)
        Rows sum to the length, columns to at most the length.
    length : int

    Yields
    ------
    (int, list of int)
    """
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
