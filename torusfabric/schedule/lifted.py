"""Schedules of collectives in groups: what one group does, all groups do."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import Self, override

from ..collective import Collective
from ..topology import Faulty, Groups, Topology
from .base import Schedule
from .transfers import Transfers

__all__ = ["Lifted"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Lifted(Schedule):
    """A schedule of one group, carried out in all groups at once, or in one without some nodes.

    The groups are sub-tori and share no arc, so that what is free of contention in one is so in
    all of them together.

    Parameters
    ----------
    part : Schedule
        The schedule of one group, on a torus of its own.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = tf.plan("3x4", "allgather@1", algorithm="hamiltonian")
    >>> schedule.part.topology, schedule.form, schedule.steps
    (<Torus 4>, 'pattern', 2)
    >>> [len(transfers) for transfers in schedule.part.rounds()]
    [8, 8]
    >>> [len(transfers) for transfers in schedule.rounds()]
    [24, 24]
    """

    part: Schedule

    @classmethod
    def of(cls, part: Schedule, topology: Topology, collective: Collective) -> Self:
        """The schedule of one group, lifted to all groups of a topology.

        Parameters
        ----------
        collective : Collective
            With the axes that span the groups.
        """
        head = part.head | {"topology": topology, "collective": collective}
        return cls(**head, part=part)

    @classmethod
    def within(cls, schedule: Schedule, network: Topology) -> Schedule:
        """A schedule on a network that lacks nodes of another, as one on that other.

        Examples
        --------
        >>> import torusfabric as tf
        >>> lifted = Lifted.within(tf.plan("3x3!4", "allgather"), tf.Torus(3, 3))
        >>> lifted.topology, lifted.collective.without, lifted.blocks.nodes
        (<Torus 3x3>, (4,), 8)
        """
        topology = schedule.topology
        if topology.nodes == network.nodes or not isinstance(topology, Faulty):
            return schedule
        kept = network.kept if isinstance(network, Faulty) else np.arange(network.nodes)
        without = np.flatnonzero(~np.isin(kept, topology.kept)).tolist()
        around = Faulty(network, topology.broken_links) if topology.broken_links else network
        return cls.of(schedule, around, replace(schedule.collective, without=tuple(without)))

    if not TYPE_CHECKING:

        @property
        def form(self) -> str:
            """The form of the schedule of a group."""
            return self.part.form

    @property
    @override
    def steps(self) -> int:
        return self.part.steps

    @property
    @override
    def in_shares(self) -> bool:
        return self.part.in_shares

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each round, group by group."""
        groups = self.blocks.groups
        return (_lifted(transfers, groups) for transfers in self.part.rounds())


def _lifted(transfers: Transfers, groups: Groups) -> Transfers:
    """The transfers of one group, in all groups."""
    source = groups.members[:, transfers.source].ravel()
    each = np.tile(np.arange(len(transfers)), groups.count)
    return transfers.of(each).moved(source, groups.ports)
