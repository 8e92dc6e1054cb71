"""What a schedule that passed its check moves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Progress", "Tally", "Traffic"]

#: Called now and then with how much is done, and of how much.
Progress: TypeAlias = Callable[[int, int], object]

#: What following the blocks adds up: the longest message of each round, and how many blocks were
#: received by a node that held them already.
Tally: TypeAlias = tuple[list[int], int]


@dataclass(frozen=True)
class Traffic:
    """What a schedule that passed its check moves.

    Parameters
    ----------
    transfers : int
        Number of transfers of all rounds together.
    arcs_used : int
        Number of uses of an arc of all rounds together: the sum of the lengths of all paths.
    longest : int
        Hops of the longest path.
    duplicates : int
        How many times a node received a block that it held already, or received twice at once.
    round_hops : tuple of int
        Hops of the longest path of each round, 0 where a round is empty.
    round_blocks : tuple of int
        Blocks of the longest message of each round. A partial sum counts as one block, however
        many contributions are in it.
    """

    rounds: int
    transfers: int
    arcs_used: int
    longest: int
    duplicates: int
    round_hops: tuple[int, ...]
    round_blocks: tuple[int, ...]

    @classmethod
    def of_steps(cls, transfers: int, moving: tuple[int, ...], *, duplicates: int = 0) -> "Traffic":
        """Of steps of one block an arc; `moving` says of each step 1, or 0 where nothing moves."""
        return cls(
            rounds=len(moving),
            transfers=transfers,
            arcs_used=transfers,
            longest=max(moving, default=0),
            duplicates=duplicates,
            round_hops=moving,
            round_blocks=moving,
        )
