"""Switch programs: schedules seen from the nodes."""

from ..schedule import Pattern
from .base import IDLE, OWN, SwitchProgram
from .rounds import EndpointProgram, RoundProgram, Run, compile_rounds
from .waves import WaveProgram, compile_waves

__all__ = [
    "IDLE",
    "OWN",
    "EndpointProgram",
    "RoundProgram",
    "Run",
    "SwitchProgram",
    "WaveProgram",
    "compile_program",
]


def compile_program(schedule):
    """The switch program of a schedule.

    Returns
    -------
    SwitchProgram
        A `WaveProgram` for a `Pattern`, a `RoundProgram` for everything else.
    """
    return compile_waves(schedule) if isinstance(schedule, Pattern) else compile_rounds(schedule)
