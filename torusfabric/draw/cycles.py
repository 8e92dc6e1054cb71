"""The cycles that the flows of a pattern run round, for colouring."""

import numpy as np

from ..schedule import Pattern
from ..schedule.flows import Flows

__all__ = ["number_cycles"]


def number_cycles(pattern: Pattern) -> tuple[np.ndarray, np.ndarray, int]:
    """Number the cycles of a pattern.

    Two cycles of which each is the other's way back have one number.

    Parameters
    ----------
    pattern : Pattern
        Of any topology.

    Returns
    -------
    number : ndarray of int, shape (nodes, ports)
        The cycle that feeds each arc, if only over copies; -1 for none.
    on_cycle : ndarray of bool, shape (nodes, ports)
        Whether the arc lies on its cycle itself.
    count : int
        Number of cycles.
    """
    flows, topology = Flows.of(pattern), pattern.topology
    endless = np.append(flows.length > 0, False)[flows.flow]
    on_cycle = flows.on_cycle & endless
    there = topology.neighbours, topology.opposite
    opposite = np.where(on_cycle[there], flows.flow[there], -1)[on_cycle]
    along = flows.flow[on_cycle]
    least = np.full(len(flows), len(flows))
    most = np.full(len(flows), -1)
    np.minimum.at(least, along, opposite)
    np.maximum.at(most, along, opposite)
    own = np.arange(len(flows))
    partner = np.where((least == most) & (least >= 0), least, own)
    first = np.where(partner[partner] == own, np.minimum(partner, own), own)
    number = np.where(endless, np.append(first, -1)[flows.flow], -1)
    found, compact = np.unique(number[endless], return_inverse=True)
    number[endless] = compact
    return number, on_cycle, len(found)
