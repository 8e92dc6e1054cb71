"""What programs of nodes that follow one ROM have in common: banks, and columns of the ROM."""

from typing import NamedTuple

import numpy as np

__all__ = ["FOREVER", "MEMORY_AGE", "Bank", "NodePlan", "merge_columns"]

#: Cycles from the arrival of a word to its departure by way of a memory.
MEMORY_AGE = 3

#: Step until which a word is kept that the host may ask for.
FOREVER = 1 << 60


class Bank(NamedTuple):
    """A memory of a node.

    Parameters
    ----------
    port : int
        The in-port that writes it; `OWN` for one that the host writes.
    depth : int
        Blocks that it holds.
    write, read : ndarray of int, shape (steps,)
        The place written and read in each step, -1 for none.
    skew : int
        By how many cycles it is read later than words are that leave in the same step.
    """

    port: int
    depth: int
    write: np.ndarray
    read: np.ndarray
    skew: int = 0


class NodePlan:
    """What all programs of a node that carries out a table have in common."""

    banks: tuple[Bank, ...]
    own: tuple[Bank, ...]
    select: np.ndarray

    @property
    def steps(self):
        """Number of rows: of steps, or of cycles."""
        return len(self.select)

    @property
    def ports(self):
        """Number of ports of a node."""
        return self.select.shape[1]

    @property
    def depth(self):
        """Blocks of the largest bank."""
        return max(bank.depth for bank in (*self.banks, *self.own))


def merge_columns(columns, kinds=None):
    """Let columns that may always be equal be one.

    Parameters
    ----------
    columns : list of ndarray of int
        With -1 where a value does not matter.
    kinds : list, optional
        Only columns of the same kind are made one.

    Returns
    -------
    merged : list of ndarray of int
        With 0 for what does not matter.
    place : list of int
        The number of each column among the merged ones.
    """
    merged: list[np.ndarray] = []
    place: list[int] = []
    first: list[int] = []  # a column that went into each merged one
    kinds = kinds or [0] * len(columns)
    for number, column in enumerate(columns):
        for k, other in enumerate(merged):
            if (
                kinds[first[k]] == kinds[number]
                and not ((column >= 0) & (other >= 0) & (column != other)).any()
            ):
                merged[k] = np.maximum(column, other)
                place.append(k)
                break
        else:
            place.append(len(merged))
            merged.append(column)
            first.append(number)
    return [np.maximum(column, 0) for column in merged], place
