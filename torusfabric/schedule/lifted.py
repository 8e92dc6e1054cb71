"""Schedules made of others: what one group does, in all groups, and what is of one root.

What all nodes do alike, whichever of them is the root, is `Masked`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from typing_extensions import Self, override

from ..collective import Collective
from ..topology import Faulty, Groups, Topology
from .base import Schedule
from .pattern import Pattern
from .table import Table
from .transfers import Listed, Transfers

__all__ = ["Lifted", "Masked"]


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Masked(Schedule):
    """A schedule that serves all nodes as roots at once, of which only what is of one root counts.

    A total exchange is a scatter from every node, an all-gather a gather to every node, and an
    all-reduce a reduction to every node. If all nodes do the same in it, its hardware serves any
    root, and has nothing that depends on which it is.

    Parameters
    ----------
    whole : Pattern or Table
        A pattern of an all-gather only.

    Examples
    --------
    >>> import torusfabric as tf
    >>> exchange = tf.plan("3x3", "alltoall")
    >>> scatter = Masked.of(exchange, tf.Collective("scatter", root=0))
    >>> len(next(exchange.rounds())), len(next(scatter.rounds()))
    (36, 4)
    >>> tf.check(scatter).rounds
    3
    """

    form: ClassVar[str] = "masked"

    whole: Pattern | Table

    @classmethod
    def of(cls, whole: Pattern | Table, collective: Collective) -> Self:
        """What is of one root in a schedule.

        Parameters
        ----------
        collective : Collective
            From or to a root.
        """
        return cls(**whole.head | {"collective": collective}, whole=whole)

    @property
    @override
    def steps(self) -> int:
        return self.whole.steps

    @property
    @override
    def in_shares(self) -> bool:
        return self.whole.in_shares

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each step, of a scatter those of its root."""
        if not self.collective.single_origin:
            return self.whole.rounds()
        return map(self._of_root, self.whole.rounds())

    def _of_root(self, transfers: Transfers) -> Transfers:
        """The transfers of blocks of the root, each a single block."""
        origin = self.whole.blocks.origin(transfers.listed.ids)
        mine = transfers.of(origin == self.collective.root)
        return replace(mine, payload=Listed.single(mine.listed.ids % self.blocks.count))
