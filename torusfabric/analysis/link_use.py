"""The use of links by a schedule: the arcs that are busy in each round, and totals."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..schedule import Lifted, Schedule, SumPattern, Table
from ..topology import BoolArray, Groups, IntArray, Topology

__all__ = ["LinkUse", "busy_arcs", "measure_link_use"]


@dataclass(frozen=True, eq=False)
class LinkUse:
    """Counts of busy arcs in a schedule: over all rounds for each arc, and over all arcs by round.

    Parameters
    ----------
    topology : Topology
        The network of the schedule.
    of_arc : ndarray of int, shape (nodes, ports)
        The number of rounds in which each arc is busy.
    of_round : ndarray of int, shape (rounds,)
        The number of arcs that are busy in each round.

    Examples
    --------
    In this schedule, each of the 64 arcs is busy in all eight rounds:

    >>> import torusfabric as tf
    >>> use = measure_link_use(tf.plan("4x4", "alltoall", algorithm="matching"))
    >>> use.busy_share, use.n_unused_arcs, use.of_round.tolist()
    (1.0, 0, [64, 64, 64, 64, 64, 64, 64, 64])
    """

    topology: Topology
    of_arc: IntArray
    of_round: IntArray

    @property
    def busy_share(self) -> float:
        """The number of busy arcs, over all rounds, divided by the number of arcs in all rounds."""
        return float(self.of_arc.sum() / max(self.n_arcs * len(self.of_round), 1))

    @property
    def n_arcs(self) -> int:
        """Number of arcs of the topology."""
        return int(self.topology.linked.sum())

    @property
    def n_unused_arcs(self) -> int:
        """Number of arcs that are never busy."""
        return int(((self.of_arc == 0) & self.topology.linked).sum())

    @property
    def busiest_arc(self) -> tuple[int, int]:
        """Node and port of an arc that is busy in the most rounds."""
        node, port = divmod(int(self.of_arc.argmax()), self.of_arc.shape[1])
        return node, port

    def to_json(self) -> dict[str, Any]:
        """Return the counts as a dict that JSON can hold.

        It has totals, the busiest arc, and the number of busy arcs in each round.
        """
        node, port = self.busiest_arc
        return {
            "arcs": self.n_arcs,
            "use": round(self.busy_share, 4),
            "unused": self.n_unused_arcs,
            "busiest": f"{node}:{self.topology.port_names[port]}",
            "busiest_rounds": int(self.of_arc.max(initial=0)),
            "by_round": self.of_round.tolist(),
        }


def measure_link_use(schedule: Schedule) -> LinkUse:
    """Return the use of links: busy rounds of each arc, and busy arcs of each round.

    If all groups of nodes do the same, the arcs of one group are counted.

    Examples
    --------
    In each of its two steps, an all-gather in the rows of a torus uses the 24 arcs along axis 1:

    >>> import torusfabric as tf
    >>> use = measure_link_use(tf.plan("3x4", "allgather@1", algorithm="hamiltonian"))
    >>> use.of_arc[0].tolist(), use.of_round.tolist()
    ([0, 0, 2, 2], [24, 24])
    """
    topology = schedule.topology
    if isinstance(schedule, Lifted):
        one, groups = measure_link_use(schedule.part), schedule.blocks.groups
        of_arc = _lift_arcs(one.of_arc, groups)
        return LinkUse(topology, of_arc, groups.n_groups * one.of_round)
    if isinstance(schedule, Table):
        # All nodes do the same.
        used = schedule.offset >= 0
        of_arc = np.tile(used.sum(axis=0), (topology.nodes, 1))
        return LinkUse(topology, of_arc, topology.nodes * used.sum(axis=1))
    of_arc = np.zeros((topology.nodes, topology.ports), np.int64)
    of_round = []
    for busy in busy_arcs(schedule):
        of_arc += busy
        of_round.append(int(busy.sum()))
    return LinkUse(topology, of_arc, np.array(of_round, np.int64))


def busy_arcs(schedule: Schedule) -> Iterator[BoolArray]:
    """Yield for each round an array of shape (nodes, ports), True for busy arcs.

    An arc that carries a message only every n rounds is busy for n rounds with each.
    """
    topology = schedule.topology
    shape = topology.nodes, topology.ports
    if isinstance(schedule, Lifted):
        for part in busy_arcs(schedule.part):
            yield _lift_arcs(part, schedule.blocks.groups)
        return
    if isinstance(schedule, SumPattern):
        yield from [schedule.inject >= 0] * schedule.round_count
        return
    if isinstance(schedule, Table):
        for row in schedule.offset >= 0:
            yield np.broadcast_to(row, shape)
        return
    free, spacing = np.zeros(shape, np.int64), topology.spacing_of_arc
    for number, transfers in enumerate(schedule.rounds()):
        if len(transfers):
            there = transfers.hops >= 0
            used = transfers.walk(topology)[:, :-1][there], transfers.hops[there]
            free[used] = number + spacing[used]
        yield free > number


def _lift_arcs(values: NDArray[Any], groups: Groups) -> NDArray[Any]:
    """Return the value of each arc of the whole network, given those of the arcs of a group.

    `values` has shape (nodes, ports) of a group, the result that of the whole network, with 0 for
    arcs outside of all groups.
    """
    topology = groups.topology
    lifted = np.zeros((topology.nodes, topology.ports), values.dtype)
    lifted[groups.members[:, :, None], groups.port_in_topology] = values
    return lifted
