"""Schedules made from other schedules: `Lifted` for several groups, `Masked` for a single root.

`Lifted` runs the schedule of one group in all groups. `Masked` takes a schedule that serves all
nodes as roots, and uses it for one root.
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
    """A schedule that repeats the schedule of one group in all groups at once.

    Groups are sub-tori and share no arc. A schedule without contention in one group therefore has
    no contention in all groups together. The groups can also be a single one that lacks some nodes
    of the network: the others take no part (see `for_network`).

    Parameters
    ----------
    part : Schedule
        The schedule of one group, on the torus of the group.
    """

    part: Schedule

    @classmethod
    def from_group(cls, part: Schedule, topology: Topology, collective: Collective) -> Self:
        """Return the schedule by which all groups of a topology do the same as one group.

        Parameters
        ----------
        part : Schedule
            The schedule of one group.
        collective : Collective
            The collective with the axes that span the groups.
        """
        head = part.head | {"topology": topology, "collective": collective}
        return cls(**head, part=part)

    @classmethod
    def for_network(cls, schedule: Schedule, network: Topology) -> Schedule:
        """Return the same schedule on `network`, which has more nodes than the schedule's topology.

        The function is needed for a fabric whose modes have different broken nodes. Each schedule
        was planned without its own broken nodes, and all of them run on one network. In the result,
        the additional nodes take no part in the collective. A schedule without broken nodes is
        returned unchanged.

        Examples
        --------
        >>> import torusfabric as tf
        >>> lifted = Lifted.for_network(tf.plan("3x3!4", "allgather"), tf.Torus(3, 3))
        >>> lifted.topology, lifted.collective.without, lifted.blocks.group_size
        (<Torus 3x3>, (4,), 8)
        """
        topology = schedule.topology
        if topology.nodes == network.nodes or not isinstance(topology, Faulty):
            return schedule
        kept = network.kept if isinstance(network, Faulty) else np.arange(network.nodes)
        without = np.flatnonzero(~np.isin(kept, topology.kept)).tolist()
        around = Faulty(network, topology.broken_links) if topology.broken_links else network
        return cls.from_group(
            schedule, around, replace(schedule.collective, without=tuple(without))
        )

    if not TYPE_CHECKING:

        @property
        def form(self) -> str:
            """The form of the schedule of one group."""
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
        """Return the transfers of each round, group by group."""
        groups = self.blocks.groups
        return (_lift_transfers(transfers, groups) for transfers in self.part.rounds())


def _lift_transfers(transfers: Transfers, groups: Groups) -> Transfers:
    """Return the transfers of one round in all groups of nodes, given those in one group."""
    source = groups.members[:, transfers.source].ravel()
    each = np.tile(np.arange(len(transfers)), groups.n_groups)
    return transfers.of(each).moved(source, groups.port_in_topology)


@dataclass(frozen=True, eq=False, kw_only=True)
class Masked(Schedule):
    """A schedule for one root, taken from a schedule that serves all nodes as roots at once.

    An all-to-all contains a scatter from every node, an all-gather contains a gather to every
    node, and an all-reduce contains a reduction to every node. If all nodes do the same in it, its
    hardware serves any root and needs no input for the root.

    Parameters
    ----------
    whole : Pattern or Table
        The schedule for all roots; a pattern only if it is an all-gather.

    Examples
    --------
    An all-to-all becomes a scatter from node 0. In its first step, 36 transfers carry blocks, of
    which four are blocks of node 0.

    >>> import torusfabric as tf
    >>> exchange = tf.plan("3x3", "alltoall")
    >>> scatter = Masked.for_root(exchange, tf.Collective("scatter", root=0))
    >>> len(next(exchange.rounds())), len(next(scatter.rounds()))
    (36, 4)
    >>> tf.check(scatter).rounds
    3
    """

    form: ClassVar[str] = "masked"

    whole: Pattern | Table

    @classmethod
    def for_root(cls, whole: Pattern | Table, collective: Collective) -> Self:
        """Return the schedule of a collective with a root, made from one that serves all roots.

        Parameters
        ----------
        whole : Pattern or Table
            The schedule that serves all roots, such as an all-to-all for a scatter.
        collective : Collective
            The collective with its root.
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
        """Return the transfers of each step: in a scatter only those with blocks of the root, else
        all of `whole`.
        """
        if not self.collective.single_origin:
            return self.whole.rounds()
        return map(self._select_root, self.whole.rounds())

    def _select_root(self, transfers: Transfers) -> Transfers:
        """Return the transfers of a round that carry blocks of the root.

        `transfers` are all transfers of this round of the all-to-all. The result has the block
        numbers of the scatter.
        """
        origin = self.whole.blocks.origin(transfers.listed.ids)
        mine = transfers.of(origin == self.collective.root)
        return replace(mine, payload=Listed.single(mine.listed.ids % self.blocks.n_blocks))
