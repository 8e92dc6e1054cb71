"""Switch programs: schedules seen from the nodes."""

from ..errors import InputError
from ..schedule import Pattern, Table
from .base import IDLE, OWN, CycleCost, SwitchProgram
from .lanes import sharing
from .rooted import RootedProgram, compile_rooted
from .rounds import EndpointProgram, Receipt, RoundProgram, Run, compile_rounds
from .table_plan import TablePlan, merge_columns
from .tables import TableProgram, compile_tables
from .waves import WaveProgram, compile_waves

__all__ = [
    "IDLE",
    "OWN",
    "CycleCost",
    "EndpointProgram",
    "Receipt",
    "RootedProgram",
    "RoundProgram",
    "Run",
    "SwitchProgram",
    "TablePlan",
    "TableProgram",
    "WaveProgram",
    "compile_program",
    "compile_rooted",
    "merge_columns",
    "sharing",
]


def compile_program(schedule):
    """The switch program of a schedule.

    Returns
    -------
    SwitchProgram
        A `WaveProgram` for a `Pattern`, a `TableProgram` for a `Table`, a `RoundProgram` for
        everything else.

    Raises
    ------
    InputError
        If there is nothing to build, because a single node already holds all there is, or if sums
        would have to be built: there are no adders yet.
    """
    kind = schedule.collective.kind
    if schedule.collective.reducing:
        raise InputError(
            f"Collective must be one that moves blocks for hardware, not {kind}, which adds them "
            "(plan, check and draw serve it)"
        )
    if schedule.topology.nodes == 1 or not schedule.round_count:
        raise InputError(
            f"Nodes must be at least 2 for hardware, not the one of {schedule.topology}"
        )
    if isinstance(schedule, Pattern):
        return compile_waves(schedule)
    return compile_tables(schedule) if isinstance(schedule, Table) else compile_rounds(schedule)
