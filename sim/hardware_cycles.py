"""Clock cycles of a schedule in simulated hardware, for the scripts about papers and planners."""

import torusfabric as tf
from torusfabric.simulation.engines import choose_engine

__all__ = ["simulated_cycles"]


def simulated_cycles(schedule: tf.Schedule, flits: int | None = None, *, width: int = 8) -> int:
    """Return the clock cycles of a schedule in simulation, by the faster engine.

    Parameters
    ----------
    schedule : tf.Schedule
        The schedule that is compiled and simulated.
    flits : int, optional
        Flits of a message; by default one flit a chunk.
    width : int
        Bits of a flit.

    Raises
    ------
    AssertionError
        If a word is wrong, or the cycles differ from the prediction.
    """
    fabric = tf.Fabric(tf.compile(schedule, flits=flits), width=width)
    report = tf.simulate(fabric, engine=choose_engine(fabric).engine)
    assert report.passed, report
    return report.cycles
