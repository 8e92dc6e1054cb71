"""Reductions in rounds: partial sums with all their contributions listed."""

from dataclasses import replace

from ...errors import InputError
from ..held_blocks import HeldBlocks
from ..rounds import Rounds
from ..transfers import Listed

__all__ = ["with_listed_sums"]


def with_listed_sums(schedule: Rounds) -> Rounds:
    """A reduction in rounds, with lists in place of "all that the sender holds".

    A program adds up chunk by chunk, and asks which chunks a partial sum has.
    """
    if all(isinstance(transfers.payload, Listed) for transfers in schedule.transfers):
        return schedule
    try:
        state = HeldBlocks(schedule.topology, schedule.blocks)
    except InputError:
        return schedule
    return replace(schedule, transfers=tuple(map(state.carry_out, schedule.transfers)))
