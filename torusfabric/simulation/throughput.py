"""How many words a node receives in a cycle: in a run, and at most."""

import numpy as np

from ..analysis.bounds import bound
from ..rtl.fabric import Fabric
from ..schedule import Switching

__all__ = ["throughput", "throughput_bound"]


def throughput(fabric: Fabric, cycles: float) -> float:
    """Words from elsewhere that a node receives in a cycle, over all nodes and so many cycles.

    Of a reduction, the results.
    """
    layout, block_flits = fabric.program.layout, int(fabric.layout.block_flits)
    cycles = max(cycles, 1)
    receivers = layout.receivers
    if layout.blocks.collective.reducing:
        words = int(fabric.layout.recv_words)
        return round(len(receivers) * words / (int(fabric.nodes) * cycles), 4)
    received = layout.received_block(receivers[:, None], np.arange(layout.recv_blocks)[None, :])
    foreign = int((layout.blocks.origin(received) != receivers[:, None]).sum())
    return round(foreign * block_flits / (int(fabric.nodes) * cycles), 4)


def throughput_bound(fabric: Fabric) -> float:
    """The most that any schedule in its model could reach: in fewest steps, without other cycles.

    Of circuits, the ports a node may receive at.
    """
    schedule = fabric.program.schedule
    if schedule.switching == Switching.CIRCUIT:
        return float(schedule.ports)
    return throughput(fabric, bound(schedule) * fabric.layout.block_flits)
