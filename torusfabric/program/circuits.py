"""Circuits: the crossbar settings of a round, and by which in-port each transfer arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..topology import IntArray
from .fields import IDLE

if TYPE_CHECKING:
    from ..schedule import Transfers
    from ..topology import Topology

__all__ = ["Circuits", "set_up_circuits"]


class Circuits(NamedTuple):
    """The circuits of a round.

    Parameters
    ----------
    select : ndarray of int16, shape (nodes, ports)
        What feeds each out-port: an in-port; numbered after those, an injection port; or `IDLE`.
    destination, in_port : ndarray of int, shape (transfers,)
        Where each transfer ends.
    """

    select: IntArray
    destination: IntArray
    in_port: IntArray


def set_up_circuits(topology: Topology, transfers: Transfers, injection: IntArray) -> Circuits:
    """The circuits of the transfers of a round.

    Parameters
    ----------
    topology : Topology
    transfers : Transfers
    injection : ndarray of int, shape (transfers,)
        The injection port of each.
    """
    walk, hops = transfers.walk(topology), transfers.hops
    select = np.full((topology.nodes, topology.ports), IDLE, np.int16)
    entry = topology.ports + injection
    for hop in range(hops.shape[1]):
        on = hops[:, hop] >= 0
        select[walk[on, hop], hops[on, hop]] = entry[on]
        entry = np.where(on, topology.opposite[hops[:, hop]], entry)
    return Circuits(select, walk[:, -1], entry)
