"""What programs of nodes that follow one ROM have in common: banks, and columns of the ROM."""

from typing import NamedTuple

import numpy as np

__all__ = ["FOREVER", "Bank", "NodePlan"]

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
    slot: np.ndarray
    own_bank: np.ndarray
    own_slot: np.ndarray

    @property
    def result_bank(self):
        """Where a node keeps what is delivered to it, numbered over `banks` and `own`."""
        raise NotImplementedError

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
