"""Switch programs: schedules seen from the nodes."""

from ..collective import Operator
from ..errors import InputError
from ..schedule import Pattern, Table
from .base import IDLE, OWN, CycleCost, SwitchProgram
from .lanes import sharing
from .node_plan import merge_columns
from .reductions import ReductionProgram, compile_reductions
from .rooted import RootedProgram, compile_rooted
from .round_sums import NEUTRAL, ReduceProgram, compile_reduce
from .rounds import EndpointProgram, Receipt, RoundProgram, Run, compile_rounds
from .table_plan import TablePlan
from .tables import TableProgram, compile_tables, needs_divider
from .waves import WaveProgram, compile_waves

__all__ = [
    "IDLE",
    "NEUTRAL",
    "OWN",
    "CycleCost",
    "EndpointProgram",
    "Receipt",
    "ReduceProgram",
    "ReductionProgram",
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
    "needs_divider",
    "sharing",
]


def compile_program(schedule, operator=None):
    """The switch program of a schedule.

    Parameters
    ----------
    schedule : Schedule
    operator : Operator, optional
        How a reduction combines words; by default it adds them.

    Returns
    -------
    SwitchProgram
        A `WaveProgram` for a `Pattern`, a `TableProgram` or `ReductionProgram` for a `Table`, a
        `RoundProgram` or `ReduceProgram` for everything else.

    Raises
    ------
    InputError
        If there is nothing to build, because a single node already holds all there is.
    """
    if schedule.topology.nodes == 1 or not schedule.round_count:
        raise InputError(
            f"Nodes must be at least 2 for hardware, not the one of {schedule.topology}"
        )
    if isinstance(schedule, Pattern):
        return compile_waves(schedule)
    operator = operator or Operator()
    if schedule.collective.kind == "reduce":
        return compile_reduce(schedule, operator)
    if not isinstance(schedule, Table):
        return compile_rounds(schedule)
    if schedule.collective.reducing:
        return compile_reductions(schedule, operator)
    return compile_tables(schedule)
