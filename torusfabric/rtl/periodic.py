"""Fabrics that repeat their collective by themselves: which can, and what a host has to know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from ..errors import InputError
from ..program.periods import Periods, plan_periods
from ..program.timing import DISTRIBUTION
from .periodic_endpoint import doubled

if TYPE_CHECKING:
    from ..program import Program
    from .blueprint import Blueprint
    from .control import Control
    from .host import Host
    from .periodic_sequencer import PeriodicSequencer

__all__ = ["HostPeriods", "check_periodic", "host_periods", "plan_periodic"]


@dataclass(frozen=True)
class HostPeriods:
    """Periods as the host sees them.

    In the cycle in which `period` first shows a number, and as long as it does, words read are of
    that period, the first being 1.

    Parameters
    ----------
    cycles : int
        From one number to the next, and so the length of a period.
    first : int
        From the edge that takes `run` to number 1.
    commit_lead : int
        What the host has committed so many cycles before a number, or earlier, is sent in that
        period; what it writes or commits later is for a later one.
    run_lead : int
        Another period follows if `run` is high so many cycles before the number of the last one.
    """

    cycles: int
    first: int
    commit_lead: int
    run_lead: int

    def edges(self, periods: int) -> int:
        """Edges from the one that takes `run` to the end of so many periods."""
        return self.first + (periods - 1) * self.cycles


def check_periodic(program: Program, *, top: str, bus: str | None) -> None:
    """Check that a program can be repeated without a start.

    Raises
    ------
    InputError
        If anything is chosen at the start of a run, there is no host port, one node only, or an
        operator of several cycles.
    """
    if top != "host" or bus:
        raise InputError(f"Top of a periodic fabric must be host, without a bus, not {bus or top}")
    if program.several:
        raise InputError(f"Collectives of a periodic fabric must be one, not {len(program.modes)}")
    chosen = {
        "length": program.any_length,
        "root": program.any_root,
        "operator": len(program.operators) > 1,
    }
    for name, open_ in chosen.items():
        if open_:
            raise InputError(f"The {name} of a periodic fabric must be fixed, not left to each run")
    if slow := [operator for operator in program.operators if operator.latency]:
        raise InputError(
            f"Operator of a periodic fabric must be combinational, not {slow[0]}, which takes "
            f"{slow[0].latency} cycles"
        )
    if program.topology.nodes == 1:
        raise InputError("Nodes of a periodic fabric must be at least 2, not 1")


def plan_periodic(program: Program, control: Control) -> tuple[Control, Periods]:
    """Plan periods, and what is given to nodes whose memories have halves."""
    endpoints = doubled(control.endpoints)
    stages = [shape.read_stages for shape in endpoints.shapes]
    late = max(stages) - min(stages)
    # Nodes with programs of their own begin them anew.
    periods = plan_periods(program.timing, rests=endpoints.uses_phases, late=late)
    return replace(control, endpoints=endpoints), periods


def host_periods(plan: Blueprint) -> HostPeriods | None:
    """Periods as the host sees them; None where there are none."""
    periods, modules = plan.periods, plan.netlist.modules
    if periods is None:
        return None
    shown = cast("PeriodicSequencer", modules["sequencer"]()).shown
    # A commit takes effect in the cycle before the first read at the latest.
    reaches_nodes = cast("Host", modules["host"]()).write_cycles + DISTRIBUTION
    return HostPeriods(
        cycles=periods.cycles,
        first=plan.program.timing.wait + shown,
        commit_lead=shown - (periods.first_read - 1) + reaches_nodes,
        run_lead=shown - periods.cycles + 2,
    )
