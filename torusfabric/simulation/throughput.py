"""How many words a node receives in a cycle: in a run, and at most."""

import numpy as np

from ..analysis.volume import limit
from ..rtl.fabric import Fabric

__all__ = ["throughput", "throughput_bound"]


def throughput(fabric: Fabric, cycles: int, flits: int) -> float:
    """Words from elsewhere that a node receives in a cycle, over all nodes and so many cycles.

    Of a reduction, the results.

    Parameters
    ----------
    cycles, flits : int
        Those of the runs, and of the messages of each, added up.
    """
    layout, nodes = fabric.program.layout, int(fabric.nodes)
    collective, receivers = layout.blocks.collective, layout.receivers
    if collective.reducing:
        messages = len(receivers) * fabric.layout.recv_words // fabric.layout.flits
    elif collective.from_each:
        blocks = layout.blocks
        messages = len(receivers) * (blocks.nodes - 1)
        if collective.local:
            messages = len(blocks.final(np.arange(blocks.count))[0]) // blocks.chunks
    else:
        own = layout.blocks.groups.position[receivers]
        messages = int((own != collective.root).sum())
    return round(messages * flits / (nodes * max(cycles, 1)), 4)


def throughput_bound(fabric: Fabric) -> float:
    """The most that any hardware could reach, in the fewest cycles that messages take (`limit`).

    A node receives no more words in a cycle than the ports at which the model lets it receive.
    """
    schedule, flits = fabric.program.schedule, int(fabric.flits)
    cycles = limit(schedule.topology, schedule.collective, flits)
    return min(throughput(fabric, cycles, flits), float(schedule.ports))
