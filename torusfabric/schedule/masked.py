"""Schedules of rooted collectives in which all nodes do the same, whichever of them is the root."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import Self, override

from ..collective import Collective
from .base import Schedule
from .pattern import Pattern
from .table import Table
from .transfers import Listed, Transfers

__all__ = ["Masked"]


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
