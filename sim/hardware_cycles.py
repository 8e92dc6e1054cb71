"""What a schedule takes in hardware, as the scripts of papers and other planners show it."""

import torusfabric as tf
from torusfabric.simulation.engines import choose_engine

__all__ = ["simulated_cycles"]


def simulated_cycles(schedule: tf.Schedule, flits: int | None = None, *, width: int = 8) -> int:
    """Clock cycles in simulation, by the engine that is the quicker; one flit a chunk by default.

    Raises
    ------
    AssertionError
        If a word is wrong or the cycles are not those predicted.
    """
    fabric = tf.Fabric(tf.compile(schedule, flits=flits), width=width)
    report = tf.simulate(fabric, engine=choose_engine(fabric).engine)
    assert report.passed, report
    return report.cycles
