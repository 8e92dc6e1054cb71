"""Rounds: schedules that list all their transfers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from .base import Schedule
from .transfers import Transfers

__all__ = ["Rounds"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Rounds(Schedule):
    """Explicit rounds of paths with payloads.

    Parameters
    ----------
    transfers : tuple of Transfers
        One entry a round.

    Examples
    --------
    A broadcast from node 0 of a ring, in one round with circuits of one and two hops.

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> rounds = Rounds(
    ...     topology=tf.Torus(4),
    ...     collective=tf.Collective("broadcast", 0),
    ...     algorithm="by hand",
    ...     switching=tf.Switching.CIRCUIT,
    ...     ports=2,
    ...     transfers=(tf.Transfers(np.array([0, 0]), np.array([[0, -1], [1, 1]])),),
    ... )
    >>> rounds.transfers[0].walk(rounds.topology).tolist()
    [[0, 1, 1], [0, 3, 2]]
    """

    form: ClassVar[str] = "rounds"

    transfers: tuple[Transfers, ...]

    @property
    @override
    def steps(self) -> int:
        return len(self.transfers)

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each round."""
        return iter(self.transfers)
