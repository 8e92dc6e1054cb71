"""Sums as a fabric moves them: a partial sum leaves its node as a whole, or all nodes keep theirs.

In a GPU a partial sum may stay where it was sent from, and lie beside another one of the same
chunk. A node has one partial sum of each chunk: what it received is added at once, and what it
sends is gone. A file fits if no contribution ever leaves a rank twice; then it only takes some more
waiting, for a sum that a rank sends later must not arrive before an earlier one has left.

In other files a contribution leaves a rank again. There every node keeps its sum, adds whatever
arrives, and sends copies, in the order in which that is possible.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import InputError
from .buffers import Buffers, Value
from .steps import StepGraph

__all__ = ["order_sums"]


@dataclass
class _Sum:
    """What happens to one sum at one rank: steps with the contributions that come and go."""

    left: int = 0
    departures: list[tuple[int, int]] = field(default_factory=list)
    arrivals: list[tuple[int, int]] = field(default_factory=list)


def order_sums(
    graph: StepGraph, order: Sequence[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> bool:
    """Let partial sums leave before others of the same chunk arrive.

    Parameters
    ----------
    graph : StepGraph
        Gets the order that this takes.
    order : sequence of int
        All steps in an order in which they can be done.
    sent : sequence of tuple of Value
        What each step sends.

    Returns
    -------
    bool
        Whether nodes keep their sums.

    Raises
    ------
    InputError
        If a contribution leaves a rank twice where each node has sums of its own, or a rank sends a
        partial sum without its own.
    """
    if not buffers.collective.personal and _copies(graph, order, sent, buffers):
        return True
    sums: dict[tuple[int, int], _Sum] = {}
    for index in order:
        block, _ = graph.steps[index]
        for key, ranks in sent[index]:
            if ranks == buffers.full:
                continue
            _depart(graph, buffers, sums.setdefault((block.gpu, key), _Sum()), index, (key, ranks))
            sums.setdefault((block.send, key), _Sum()).arrivals.append((index, ranks))
    for found in sums.values():
        _order(graph, found)
    return False


def _copies(
    graph: StepGraph, order: Sequence[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> bool:
    """Whether a contribution leaves a rank twice in partial sums."""
    left: dict[tuple[int, int], int] = {}
    for index in order:
        for key, ranks in sent[index]:
            at = graph.steps[index][0].gpu, key
            if ranks != buffers.full:
                if ranks & left.get(at, 0):
                    return True
                left[at] = left.get(at, 0) | ranks
    return False


def _depart(graph: StepGraph, buffers: Buffers, at: _Sum, index: int, value: Value) -> None:
    """Enter that a partial sum leaves."""
    key, ranks = value
    rank = graph.steps[index][0].gpu
    name = buffers.name(key)
    again = ranks & at.left
    if again:
        other = again.bit_length() - 1
        before = next(step for step, those in at.departures if those >> other & 1)
        raise InputError(
            f"{graph.location(index)} must not send the contribution of gpu {other} to {name} a "
            f"second time, after {graph.location(before)}: partial sums are moved, not copied"
        )
    if not at.left and not ranks >> rank & 1:
        raise InputError(
            f"{graph.location(index)} must send a partial sum of {name} with the contribution of "
            f"gpu {rank} itself, not without it"
        )
    at.left |= ranks
    at.departures.append((index, ranks))


def _order(graph: StepGraph, at: _Sum) -> None:
    """Let each sum arrive behind the departure before the one with which it leaves."""
    for arrival, ranks in at.arrivals:
        before = -1
        for departure, those in at.departures:
            if ranks & those:
                break
            before = departure
        if before >= 0:
            graph.follows[before].append(arrival)
