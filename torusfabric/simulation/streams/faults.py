"""Runs as they are sent: good ones, and others that the fabric has to drop."""

import random
from typing import NamedTuple

from ...rtl.fabric import Fabric
from ...rtl.run_choices import RunError
from ...rtl.streams import needs_commands
from ...rtl.streams.packets import number_bits
from ...verilog.bench.packets import Choices, spoiled
from ..engines.base import Job
from .messages import Exchange, is_barrier

__all__ = ["Planned", "spoiled_run"]


class Planned(NamedTuple):
    """A run as it is sent, and what has to become of it.

    Parameters
    ----------
    job : Job
        As its command says it.
    error : RunError
        Why it must be dropped, if it must.
    """

    job: Job
    exchange: Exchange
    error: RunError = RunError.NONE


def spoiled_run(fabric: Fabric, job: Job, exchange: Exchange, generator: random.Random) -> Planned:
    """A run in which something is wrong, drawn from all that can be.

    Parameters
    ----------
    job : Job
        Completed: nothing is left open.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.simulation.streams.messages import draw_exchange
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "gather"), flits=2), width=8, top="stream")
    >>> exchange = draw_exchange(fabric, tf.Job(), seed=1)
    >>> planned = spoiled_run(fabric, tf.Job(), exchange, random.Random(1))
    >>> planned.error.name, sum(map(len, planned.exchange.received))
    ('PACKETS', 0)
    """
    error, sent, command = spoiled(generator, _choices(fabric, job), exchange.sent)
    return Planned(job._replace(**command), Exchange(sent, [[] for _ in sent]), RunError(error))


def _choices(fabric: Fabric, job: Job) -> Choices:
    """What there is to be chosen for a run."""
    program = fabric.program
    commands: dict[str, int] = {}
    if needs_commands(program):
        commands = {"mode": len(program.modes) + program.barrier, "length": program.flits + 1}
    if is_barrier(fabric, job):
        return Choices(program.flits, program.any_length, commands, 0, 0)
    mode = program.modes[job.mode or 0]
    size, collective = mode.groups.size, mode.schedule.collective
    destinations = mode.schedule.blocks.goals if collective.personal else 0
    if job.root is not None:
        commands["root"] = size
    if len(program.operators) > 1 and mode.operators:
        commands["operation"] = len(mode.operators)
    bits = number_bits(program)
    return Choices(program.flits, program.any_length, commands, destinations, bits)
