"""How a fault of a schedule is worded."""

from typing import SupportsInt

import numpy as np

from ...errors import ScheduleError
from ...schedule import Duplex, Pattern, Schedule, SumPattern

__all__ = [
    "busy_arc",
    "busy_node",
    "check_entries_fed",
    "check_ports_fed",
    "fault",
    "unfinished",
]


def fault(
    schedule: Schedule,
    number: int | None,
    text: str,
    *,
    node: SupportsInt | None = None,
    port: SupportsInt | None = None,
    block: SupportsInt | None = None,
    when: str | None = None,
) -> ScheduleError:
    """A `ScheduleError` that names round, node, port and block.

    Parameters
    ----------
    number : int or None
        The round, counted from 1; None for what is in no round.
    text : str
        What is wrong: follows the location; ``{block}`` stands for the block.
    port : int, optional
        The out-port or in-port.
    when : str, optional
        When it is, by default the round.
    """
    topology = schedule.topology
    at = None if node is None else int(node)
    arc = None if port is None else int(port)
    when = when or ("" if number is None else f"Round {number}:")
    location = [when] if when else []
    if at is not None and arc is not None and 0 <= arc < topology.ports:
        location.append(topology.arc_name(at, arc))
    elif at is not None:
        location.append(f"node {at} {topology.node_name(at)}")
    named = None if block is None else schedule.blocks.name(int(block))
    message = " ".join([*location, text.replace("{block}", f"block {named}")])
    return ScheduleError(
        message[0].upper() + message[1:], round=number, node=at, port=arc, block=named
    )


def check_ports_fed(schedule: Pattern | SumPattern) -> None:
    """Check the shape of the tables of a pattern, and that there is a link at each port in use."""
    shape = schedule.topology.nodes, schedule.topology.ports
    if np.shape(schedule.feed) != shape or np.shape(schedule.inject) != shape:
        raise fault(schedule, None, f"the tables of a pattern must have shape {shape}")
    used = (schedule.feed >= 0) | (schedule.inject >= 0)
    none = np.argwhere(used & ~schedule.topology.linked)
    if len(none):
        raise fault(schedule, 1, "has no link", node=none[0][0], port=none[0][1])


def check_entries_fed(schedule: Pattern | SumPattern, chunks: int, number: int | None) -> None:
    """Check that a pattern names ports and so many chunks; the number is that of the round."""
    for table, most, text in [
        (schedule.feed, schedule.topology.ports, "is fed by a port that is none"),
        (schedule.inject, chunks, "sends a block that does not exist"),
    ]:
        bad = np.argwhere((table < -1) | (table >= most))
        if len(bad):
            raise fault(schedule, number, text, node=bad[0][0], port=bad[0][1])


def busy_arc(
    schedule: Schedule, number: int, node: SupportsInt, port: SupportsInt
) -> ScheduleError:
    """The fault of an arc, or of a link in half duplex, that carries two messages in a round."""
    text = "carries two messages at once"
    if schedule.duplex == Duplex.HALF:
        text += " (half duplex: counting both ways of its link)"
    return fault(schedule, number, text, node=node, port=port)


def busy_node(
    schedule: Schedule,
    number: int,
    verb: str,
    node: SupportsInt,
    port: SupportsInt | None = None,
) -> ScheduleError:
    """The fault of a node that sends or receives, as the verb says, too many messages."""
    text = f"{verb} message {schedule.ports + 1} of at most {schedule.ports} in a round"
    return fault(schedule, number, text, node=node, port=port)


def unfinished(
    schedule: Schedule, node: SupportsInt, block: SupportsInt, text: str = "ends without {block}"
) -> ScheduleError:
    """The fault of a node that does not have a block after the last round."""
    count = schedule.round_count
    when = f"After {count} {schedule.switching.unit}{'s' * (count != 1)}:"
    return fault(schedule, None, text, node=node, block=block, when=when)
