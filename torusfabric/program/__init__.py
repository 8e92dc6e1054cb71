"""Switch programs: schedules seen from the nodes."""

from ..schedule import Pattern, Table
from .base import IDLE, OWN, SwitchProgram
from .rounds import EndpointProgram, RoundProgram, Run, compile_rounds
from .table_plan import TablePlan, merge_columns
from .tables import TableProgram, compile_tables
from .waves import WaveProgram, compile_waves

__all__ = [
    "IDLE",
    "OWN",
    "EndpointProgram",
    "RoundProgram",
    "Run",
    "SwitchProgram",
    "TablePlan",
    "TableProgram",
    "WaveProgram",
    "compile_program",
    "merge_columns",
]


def compile_program(schedule):
    """The switch program of a schedule.

    Returns
    -------
    SwitchProgram
        A `WaveProgram` for a `Pattern`, a `TableProgram` for a `Table`, a `RoundProgram` for
        everything else.
    """
    if isinstance(schedule, Pattern):
        return compile_waves(schedule)
    return compile_tables(schedule) if isinstance(schedule, Table) else compile_rounds(schedule)
