"""What a check finds out, and how it words a fault."""

from dataclasses import dataclass

from ...errors import ScheduleError

__all__ = ["Report", "Tally", "fault"]


@dataclass(frozen=True)
class Report:
    """What a schedule that passed its check does.

    Parameters
    ----------
    rounds : int
        Number of rounds.
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


@dataclass
class Tally:
    """What tracking the blocks adds up: the longest message of each round, and the receipts."""

    round_blocks: list[int]
    received: int = 0
    fresh: int = 0

    @property
    def duplicates(self):
        """Receipts of a block by a node that held it already."""
        return self.received - self.fresh


def fault(schedule, number, text, *, node=None, port=None, block=None):
    """A `ScheduleError` that names round, node, port and block.

    Parameters
    ----------
    schedule : Schedule
        Where the fault is.
    number : int or None
        The round, counted from 1.
    text : str
        What is wrong: follows the name of the place; ``{block}`` stands for the block.
    node : int, optional
        The node.
    port : int, optional
        The out-port or in-port.
    block : int, optional
        A block number.
    """
    topology = schedule.topology
    place = []
    if number is not None:
        place.append(f"Round {number}:")
    if node is not None:
        node = int(node)
        if port is not None and 0 <= port < topology.ports:
            place.append(topology.arc_name(node, int(port)))
        else:
            place.append(f"node {node} {topology.node_name(node)}")
    named = None if block is None else schedule.blocks.name(block)
    message = " ".join([*place, text.replace("{block}", f"block {named}")])
    return ScheduleError(
        message[0].upper() + message[1:],
        round=number,
        node=node,
        port=None if port is None else int(port),
        block=named,
    )
