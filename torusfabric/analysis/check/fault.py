"""How a fault of a schedule is worded."""

from ...errors import ScheduleError

__all__ = ["fault"]


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
