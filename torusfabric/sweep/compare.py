"""All algorithms that serve a selection, side by side, and several collectives in one fabric.

What becomes of a schedule, or of several in one fabric, is a dictionary: what is known of the
schedules, their cycles from start to done, and the `COSTS` of the hardware.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any

from ..algorithms import CATALOGUE, Algorithm, choose, find
from ..analysis.check import check
from ..analysis.facts import schedule_facts
from ..analysis.link_use import link_use
from ..collective import Operator
from ..errors import InputError
from ..planning import Selection, compile, plan_selection
from ..program import Program
from ..program.counts import count_inputs
from ..program.program import require_width
from ..schedule import Schedule
from ..toolchain.extras import installed

if TYPE_CHECKING:
    from ..fabric.fabric import Fabric

__all__ = ["COSTS", "Hardware", "compare", "compare_together", "fitting"]

#: What a fabric takes; None is what does not exist, or was not asked for. Router classes; ROMs and
#: memories, see `Inventory`; LUTs of the largest router, of the whole fabric divided among its
#: nodes, and of the whole fabric, host port included, with its flip-flops and block RAMs; and why
#: there is no hardware.
COSTS = ("classes", "rom_bits", "memories", "memory_bits", "router_luts", "node_luts", "luts",
         "ffs", "brams", "reason")  # fmt: skip

#: What `schedule_facts` says that stands beside these.
FACTS = ("algorithm", "switching", "ports", "chunks", "rounds", "unit", "bound", "bound_where",
         "delta", "tau", "tau_bound")  # fmt: skip

#: Called with (done, total, what) before each part of the work.
Progress = Callable[[int, int, str], object]


@dataclass(frozen=True)
class Hardware:
    """What is built of every schedule.

    Parameters
    ----------
    width : int
        Bits of a flit.
    flits : int, optional
        Flits of a message; by default as few as all algorithms can cut into equal chunks.
    operators : tuple of Operator
        Of a reduction.
    target : str, optional
        Device to synthesize for.
    max_flits : int, optional
        In place of `flits`: each run chooses its length, up to so many.
    """

    width: int = 32
    flits: int | None = None
    operators: tuple[Operator, ...] = ()
    target: str | None = None
    max_flits: int | None = None

    def __post_init__(self) -> None:
        require_width(self.width, self.operators)
        for flits in (self.flits, self.max_flits):
            if flits is not None and flits < 1:
                raise InputError(f"Flits must be at least 1, not {flits}")

    @property
    def longest(self) -> int | None:
        """Flits of the longest message, if that is said."""
        return self.max_flits or self.flits

    def program(self, schedules: Schedule | Sequence[Schedule]) -> Program:
        """The program of a schedule, or of several in one fabric."""
        return compile(
            schedules,
            flits=None if self.max_flits else self.flits,
            max_flits=self.max_flits,
            operators=self.operators,
        )

    def costs(self, program: Program) -> dict[str, Any]:
        """What the fabric of a program takes, by the names of `COSTS`.

        Nothing is known where the extra ``hardware`` is not installed and no target is asked for.

        Raises
        ------
        InputError
            If there is no such fabric.
        """
        if not self.target and not installed("amaranth"):
            return {}
        from ..fabric.fabric import Fabric
        from ..rtl.inventory import take_inventory

        fabric = Fabric(program, width=self.width)
        return {
            "classes": len(fabric.router_classes),
            **take_inventory(fabric.netlist)._asdict(),
            **(_synthesized(fabric, self.target) if self.target else {}),
        }

    def build(self, schedules: Schedule | Sequence[Schedule]) -> dict[str, Any]:
        """Cycles of each mode, the crossbar inputs of all routers, and the costs of a fabric."""
        costs = dict.fromkeys(COSTS)
        try:
            program = self.program(schedules)
            costs |= self.costs(program)
        except InputError as error:
            return {"cycles": None, "inputs": None, **costs, "reason": str(error)}
        cycles = [program.cycles(mode=mode) for mode in range(len(program.modes))]
        return {"cycles": cycles, "inputs": count_inputs(program).total, **costs}


def _synthesized(fabric: "Fabric", target: str) -> dict[str, Any]:
    """What a fabric costs on a device."""
    from ..fpga.synthesis.synthesize import synthesize

    report = synthesize(fabric, target).to_json()
    return {
        "router_luts": max(row["luts"] for row in report["classes"]),
        "node_luts": round(report["fabric"]["luts"] / fabric.nodes),
        **{name: report["fabric"][name] for name in ("luts", "ffs", "brams")},
    }


def compare(
    selection: Selection,
    hardware: Hardware,
    *,
    files: Mapping[str, Schedule],
    progress: Progress = lambda *_: None,
) -> tuple[list[dict[str, Any]], int, dict[str, str]]:
    """Plan, check and build with every algorithm that fits.

    Parameters
    ----------
    selection : Selection
        One with an algorithm is planned by no other.
    files : dict of str to Schedule
        Schedules from files for the same topology and collective, by the names of the files.

    Returns
    -------
    entries : list of dict
        What becomes of each schedule: first of those of files, then in the order of the catalogue.
        Each has the use of ``links``, the file as ``plan``, and ``stream``, the part of a message
        that each arc carries where flits stream through trees.
    flits : int
        Flits of a message.
    misfits : dict of str to str
        What each other algorithm for the collective would need.

    Raises
    ------
    InputError
        If no algorithm fits and there is no file.
    """
    serving, misfits = fitting(selection)
    planned: list[tuple[Schedule, str | None]] = [(files[name], name) for name in files]
    if not serving and not planned:
        choose(selection.topology, selection.collective, selection.options)
    total = 2 * len(serving) + len(planned)
    for done, algorithm in enumerate(serving):
        progress(done, total, f"planning {algorithm.name}")
        asked = replace(selection, algorithm=algorithm, any_latency=False)
        planned.append((plan_selection(asked), None))
    flits = hardware.longest or lcm(*(schedule.chunks for schedule, _ in planned))
    hardware, entries = replace(hardware, flits=flits), []
    for done, (schedule, file) in enumerate(planned, len(serving)):
        progress(done, total, f"building {schedule.algorithm}")
        if selection.any_latency and not file:
            asked = replace(selection, algorithm=find(schedule.algorithm))
            schedule = plan_selection(asked, flits=flits)
        facts, built = schedule_facts(schedule), hardware.build(schedule)
        entries.append(
            {name: facts[name] for name in FACTS}
            | {"links": link_use(schedule).to_json(), "plan": file, "stream": facts.get("stream")}
            | built
            | {"cycles": built["cycles"] and built["cycles"][0]}
        )
    return entries, flits, misfits


def fitting(selection: Selection) -> tuple[list[Algorithm], dict[str, str]]:
    """The algorithms that fit, and what each other one for the collective needs.

    If the selection has an algorithm, no other is looked at.
    """
    if selection.algorithm:
        return [selection.algorithm], {}
    found, misfits = [], {}
    for algorithm in CATALOGUE:
        if selection.collective.kind in algorithm.collectives:
            chosen = selection.topology, selection.collective, selection.options
            reason = algorithm.why_not(*chosen)
            if reason:
                misfits[algorithm.name] = reason
            else:
                found.append(algorithm)
    return found, misfits


def compare_together(
    selections: Sequence[Selection], hardware: Hardware, *, progress: Progress = lambda *_: None
) -> tuple[list[dict[str, Any]], int]:
    """Build a fabric by the best algorithm for each collective, and what another one changes.

    Parameters
    ----------
    selections : sequence of Selection
        One for each collective; one with an algorithm is planned by no other.

    Returns
    -------
    fabrics : list of dict
        First that by the best algorithms, then those in which one mode has another. Each has the
        ``algorithms`` of its modes, and their cycles for the longest messages.
    flits : int
        The longest messages.

    Raises
    ------
    InputError
        If no algorithm fits a collective.
    """
    candidates = [fitting(one)[0] or [one.chosen()] for one in selections]
    # As many plans as algorithms, and about as many fabrics.
    total, done = 2 * sum(map(len, candidates)) - len(candidates) + 1, 0
    plans: list[list[Schedule]] = []
    for selection, algorithms in zip(selections, candidates, strict=True):
        plans.append([])
        for algorithm in algorithms:
            progress(done, total, f"planning {selection.collective} by {algorithm.name}")
            asked = replace(selection, algorithm=algorithm)
            plans[-1].append(plan_selection(asked, flits=hardware.longest))
            check(plans[-1][-1])
            done += 1
    flits = hardware.longest or max(schedule.chunks for group in plans for schedule in group)
    hardware, fabrics = replace(hardware, max_flits=flits), []
    for schedules in _choices(plans):
        names = [schedule.algorithm for schedule in schedules]
        progress(done, total, " and ".join(names))
        fabrics.append({"algorithms": names} | hardware.build(schedules))
        done += 1
    return fabrics, flits


def _choices(plans: list[list[Schedule]]) -> Iterator[list[Schedule]]:
    """The first of each, and then all that differ from these in one place."""
    best = [group[0] for group in plans]
    yield best
    for place, group in enumerate(plans):
        for other in group[1:]:
            yield [*best[:place], other, *best[place + 1 :]]
