"""Translation-invariant schedules: what node 0 does, if all nodes do the same."""

from collections.abc import Sequence

import numpy as np

from ...topology import CayleyGraph
from ..rounds import Rounds
from ..table import Table
from .steps import Irregular, Step, agree, common

__all__ = ["table_of_steps"]


def table_of_steps(schedule: Rounds, steps: Sequence[Step]) -> Table:
    """Steps as a table, if all nodes do what node 0 does.

    Raises
    ------
    Irregular
        If they do not.
    """
    topology, blocks, collective = schedule.topology, schedule.blocks, schedule.collective
    if not isinstance(topology, CayleyGraph):
        raise Irregular
    # An all-reduce counts chunks within the share of the message that its owner completes.
    shared = collective.reducing and collective.to_all
    part = schedule.chunks // topology.nodes if shared else schedule.chunks
    exchange = collective.personal and not collective.reducing
    if not part:
        raise Irregular
    offset, chunk, destination = np.full((3, len(steps), topology.ports), -1)
    partial = 0
    for number, step in enumerate(steps):
        port = step.arc[: np.searchsorted(step.arc, topology.ports)]
        first = step.ids[step.indptr[: len(port)]]
        owner = blocks.origin(first)
        if collective.reducing:
            owner = blocks.chunk(first) // part if shared else blocks.destination(first)
        offset[number, port] = topology.subtract(topology.neighbours[0, port], owner)
        chunk[number, port] = blocks.chunk(first) % part
        if exchange:
            goal = blocks.destination(first)
            destination[number, port] = goal if collective.local else topology.subtract(goal, owner)
        if (np.diff(step.indptr) < topology.nodes).any():
            partial = number + 1
    table = Table(
        **common(schedule),
        offset=offset,
        chunk=chunk,
        destination=destination if exchange else None,
        reducing=(partial if shared else len(steps)) if collective.reducing else 0,
    )
    if not agree(table, steps):
        raise Irregular
    return table
