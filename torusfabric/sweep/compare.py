"""Comparison of all suitable algorithms for a collective, for several in one fabric or one each.

An *entry* of a comparison is a dictionary: facts of a schedule (`FACTS`), cycles from start to
done, and costs of the hardware (`COSTS`). The command ``compare`` prints entries. The *catalogue*
is the ordered list of all algorithms.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any

from ..algorithms import CATALOGUE, Algorithm, choose_algorithm, find_algorithm
from ..analysis.check import check
from ..analysis.facts import schedule_facts
from ..analysis.link_use import measure_link_use
from ..collective import Operator, common_longest
from ..errors import InputError
from ..planning import Selection, compile, plan_selection, resolve
from ..planning.selection_schedule import length_of_collective
from ..program import Program
from ..program.counts import count_inputs
from ..program.program import require_width
from ..schedule import Schedule
from ..toolchain.extras import is_installed

if TYPE_CHECKING:
    from ..fabric.fabric import Fabric

__all__ = ["COSTS", "HardwareSettings", "compare", "compare_collectives", "compare_fabrics",
           "suitable_algorithms"]  # fmt: skip

#: Keys of the hardware costs of an entry; a value is None if it is unknown or was not asked for.
#: ``classes``: different routers. ``rom_bits``, ``memories``, ``memory_bits``: see `Inventory`.
#: ``router_luts``: LUTs of the largest router. ``node_luts``: LUTs of the fabric per node.
#: ``luts``, ``ffs``, ``brams``: LUTs, flip-flops and block RAMs of the fabric with its host port.
#: ``node_gates``, ``gates``: gate equivalents on silicon. ``fmax_mhz``: clock rate in MHz.
#: ``reason``: why there is no hardware.
COSTS = ("classes", "rom_bits", "memories", "memory_bits", "router_luts", "node_luts", "luts",
         "ffs", "brams", "node_gates", "gates", "fmax_mhz", "reason")  # fmt: skip

#: Keys of `schedule_facts` that an entry repeats.
FACTS = ("algorithm", "switching", "ports", "chunks", "rounds", "unit", "bound", "bound_where",
         "delta", "message_times", "tau", "tau_bound")  # fmt: skip

#: A function that is called with (done, total, text) before each part of the work.
Progress = Callable[[int, int, str], object]


@dataclass(frozen=True)
class HardwareSettings:
    """Parameters of the hardware that a comparison builds for every schedule.

    Parameters
    ----------
    width : int
        Bits of a flit.
    flits : int, optional
        Flits of a message. By default, in `compare` the least number that all algorithms can cut
        into equal chunks, and in `compare_fabrics` the largest number of chunks.
    operators : tuple of Operator
        Operators of a reduction.
    targets : tuple of str
        Devices to synthesize for: an FPGA, silicon, or both; empty for no synthesis.
    max_flits : int, optional
        Flits of the longest message, if each run chooses its length; it replaces `flits`.
    pnr : bool
        True for the clock rate on the FPGA as well.
    """

    width: int = 32
    flits: int | None = None
    operators: tuple[Operator, ...] = ()
    targets: tuple[str, ...] = ()
    max_flits: int | None = None
    pnr: bool = False

    def __post_init__(self) -> None:
        require_width(self.width, self.operators)
        for flits in (self.flits, self.max_flits):
            if flits is not None and flits < 1:
                raise InputError(f"Flits must be at least 1, not {flits}")

    @property
    def longest_flits(self) -> int | None:
        """Flits of the longest message; None if the user chose neither `max_flits` nor `flits`."""
        return self.max_flits or self.flits

    def compile_program(self, schedules: Schedule | Sequence[Schedule]) -> Program:
        """Compile one schedule, or several schedules for the modes of one fabric.

        Parameters
        ----------
        schedules : Schedule or sequence of Schedule
            The only schedule, or the schedule of each mode.
        """
        return compile(
            schedules,
            flits=None if self.max_flits else self.flits,
            max_flits=self.max_flits,
            operators=self.operators,
        )

    def fabric_costs(self, program: Program) -> dict[str, Any]:
        """Build the fabric of a program, and return its costs, such as ``memory_bits``.

        The keys are in `COSTS`. Costs of synthesis are included for each target: of an FPGA those
        from ``router_luts`` to ``brams``, of silicon gate equivalents. If there is no target and
        Amaranth (of the extra ``hardware``) is not installed, the result is empty.

        Raises
        ------
        InputError
            If the fabric cannot be built.
        """
        if not self.targets and not is_installed("amaranth"):
            return {}
        from ..fabric.fabric import Fabric
        from ..rtl.inventory import take_inventory

        fabric = Fabric(program, width=self.width)
        costs = {
            "classes": len(fabric.router_classes),
            **take_inventory(fabric.netlist)._asdict(),
        }
        for target in self.targets:
            costs |= _synthesis_costs(fabric, target, pnr=self.pnr)
        return costs

    def build_and_measure(self, schedules: Schedule | Sequence[Schedule]) -> dict[str, Any]:
        """Compile schedules and measure their hardware; return cycles and costs.

        The keys are ``cycles`` (a number for each mode), ``inputs`` (inputs of all crossbars
        together), and those of `COSTS`. If the schedules cannot be compiled or built, ``cycles``
        and ``inputs`` are None and ``reason`` is the error.
        """
        costs = dict.fromkeys(COSTS)
        try:
            program = self.compile_program(schedules)
            costs |= self.fabric_costs(program)
        except InputError as error:
            return {"cycles": None, "inputs": None, **costs, "reason": str(error)}
        cycles = [program.cycles(mode=mode) for mode in range(len(program.modes))]
        return {"cycles": cycles, "inputs": count_inputs(program).total, **costs}


def _synthesis_costs(fabric: "Fabric", target: str, *, pnr: bool) -> dict[str, Any]:
    """Synthesize a fabric for the device `target`, and return its costs.

    `pnr` gives the clock of an FPGA as well.
    """
    from ..fpga.synthesis.synthesize import synthesize
    from ..fpga.synthesis.target import SILICON, find_target

    report = synthesize(fabric, target, pnr=pnr and find_target(target).family != SILICON)
    costs = report.fabric
    if "gates" in report.cost_columns:
        return {"gates": round(costs["gates"]), "node_gates": round(costs["gates"] / fabric.nodes)}
    return {
        "router_luts": max(row["luts"] for row in report.classes),
        "node_luts": round(costs["luts"] / fabric.nodes),
        **{name: costs[name] for name in ("luts", "ffs", "brams", "fmax_mhz")},
    }


def compare(
    selection: Selection,
    hardware: HardwareSettings,
    *,
    files: Mapping[str, Schedule],
    progress: Progress = lambda *_: None,
) -> tuple[list[dict[str, Any]], int, dict[str, str]]:
    """Plan with every suitable algorithm, check the schedules, and build their hardware.

    Parameters
    ----------
    selection : Selection
        The choice of the user; an algorithm in it is the only one.
    hardware : HardwareSettings
        Parameters of the hardware.
    files : dict of str to Schedule
        Schedules from files for the same topology and collective, by the names of the files.
    progress : function of (done, total, text)
        Called before each schedule.

    Returns
    -------
    entries : list of dict
        An entry for each schedule: first those of files, then one for each algorithm. An
        entry also has the use of links (``links``), the name of the file (``plan``), and for
        schedules in which flits stream through trees, the share of a message that each arc carries
        (``stream``).
    flits : int
        Flits of a message.
    misfits : dict of str to str
        For each algorithm that is not suitable, the reason as a noun phrase, such as "a torus".

    Raises
    ------
    InputError
        If no algorithm is suitable and there is no file.
    """
    serving, misfits = suitable_algorithms(selection)
    planned: list[tuple[Schedule, str | None]] = [(files[name], name) for name in files]
    if not serving and not planned:
        choose_algorithm(selection.topology, selection.collective, selection.options)
    most = length_of_collective(
        selection.collective, hardware.longest_flits, any_length=hardware.max_flits is not None
    )
    total = 2 * len(serving) + len(planned)
    for done, algorithm in enumerate(serving):
        progress(done, total, f"planning {algorithm.name}")
        asked = replace(selection, algorithm=algorithm, any_latency=False)
        planned.append((plan_selection(asked, flits=most), None))
    flits = most or lcm(*(schedule.chunks for schedule, _ in planned))
    hardware, entries = replace(hardware, flits=flits), []
    for done, (schedule, file) in enumerate(planned, len(serving)):
        progress(done, total, f"building {schedule.algorithm}")
        if selection.any_latency and not file:
            asked = replace(selection, algorithm=find_algorithm(schedule.algorithm))
            schedule = plan_selection(asked, flits=flits)
        entries.append(_schedule_entry(schedule, hardware) | {"plan": file})
    return entries, flits, misfits


def _schedule_entry(schedule: Schedule, hardware: HardwareSettings) -> dict[str, Any]:
    """Build the hardware of one schedule, and return its entry: facts, links, cycles and costs."""
    facts, built = schedule_facts(schedule), hardware.build_and_measure(schedule)
    return {
        **{name: facts[name] for name in FACTS},
        "links": measure_link_use(schedule).to_json(),
        "stream": facts.get("stream"),
        **built,
        "cycles": built["cycles"] and built["cycles"][0],
    }


def compare_collectives(
    selections: Sequence[Selection],
    hardware: HardwareSettings,
    *,
    progress: Progress = lambda *_: None,
) -> tuple[list[dict[str, Any]], int, dict[str, str]]:
    """Plan several collectives, check the schedules, and build a fabric for each.

    Parameters
    ----------
    selections : sequence of Selection
        A selection for each collective. Where the algorithm is open, the best one is chosen for the
        length of the messages, or for long messages if `hardware` has no length.
    hardware, progress
        See `compare`.

    Returns
    -------
    entries : list of dict
        An entry for each collective, with its name (``collective``).
    flits : int
        Flits of a message: those of `hardware`, or the largest number of chunks of a schedule.
    misfits : dict of str to str
        For each collective without a schedule, the reason as a sentence.

    Raises
    ------
    InputError
        If no collective has a schedule.
    """
    most, any_length = hardware.longest_flits, hardware.max_flits is not None
    planned, misfits = list[Schedule](), dict[str, str]()
    for done, selection in enumerate(selections):
        progress(done, 2 * len(selections), f"planning {selection.collective}")
        try:
            chosen = resolve(selection, flits=most, any_length=any_length)
            planned.append(plan_selection(chosen))
        except InputError as error:
            misfits[str(selection.collective)] = str(error)
            if len(misfits) == len(selections):
                raise
        else:
            check(planned[-1])
    flits = most or max(schedule.chunks for schedule in planned)
    entries = []
    for done, schedule in enumerate(planned, len(selections)):
        progress(done, 2 * len(selections), f"building {schedule.collective}")
        operators = hardware.operators if schedule.collective.reducing else ()
        built = _schedule_entry(schedule, replace(hardware, flits=flits, operators=operators))
        entries.append({"collective": str(schedule.collective)} | built)
    return entries, flits, misfits


def suitable_algorithms(selection: Selection) -> tuple[list[Algorithm], dict[str, str]]:
    """Return the suitable algorithms for a selection, and why each other one is unsuitable.

    Parameters
    ----------
    selection : Selection
        The choice of the user; an algorithm in it is the only one, whether suitable or not.

    Returns
    -------
    algorithms : list of Algorithm
        Suitable algorithms, in the order of the catalogue (the list of all algorithms).
    misfits : dict of str to str
        For each other algorithm for the collective, by its name, its unmet need as a noun phrase,
        such as "a torus".
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


def compare_fabrics(
    selections: Sequence[Selection],
    hardware: HardwareSettings,
    *,
    progress: Progress = lambda *_: None,
) -> tuple[list[dict[str, Any]], int]:
    """Build a fabric of several collectives with preferred algorithms, and with others in turn.

    The first fabric has the preferred algorithm in each mode: the first suitable one in the list of
    all algorithms. In each further fabric one mode has another algorithm.

    Parameters
    ----------
    selections : sequence of Selection
        A selection for each collective; an algorithm in it is the only one.
    hardware, progress
        See `compare`.

    Returns
    -------
    fabrics : list of dict
        Costs of each fabric, with the ``algorithms`` of its modes, and the ``cycles`` of each mode
        for the longest messages.
    flits : int
        Flits of the longest message.

    Raises
    ------
    InputError
        If no algorithm is suitable for one of the collectives.
    """
    candidates = [suitable_algorithms(one)[0] or [one.resolve_algorithm()] for one in selections]
    # One plan for each algorithm; one fabric for each algorithm but the first, and one more.
    unequal = common_longest(one.collective.longest_flits or 0 for one in selections)
    for selection in selections:
        length_of_collective(
            selection.collective, hardware.longest_flits or unequal or None, any_length=not unequal
        )
    most = unequal or hardware.longest_flits
    total, done = 2 * sum(map(len, candidates)) - len(candidates) + 1, 0
    plans: list[list[Schedule]] = []
    for selection, algorithms in zip(selections, candidates, strict=True):
        plans.append([])
        for algorithm in algorithms:
            progress(done, total, f"planning {selection.collective} by {algorithm.name}")
            asked = replace(selection, algorithm=algorithm)
            plans[-1].append(plan_selection(asked, flits=most))
            check(plans[-1][-1])
            done += 1
    flits = most or max(schedule.chunks for group in plans for schedule in group)
    length = {"flits": flits, "max_flits": None} if unequal else {"max_flits": flits}
    hardware, fabrics = replace(hardware, **length), []
    for schedules in _schedule_choices(plans):
        names = [schedule.algorithm for schedule in schedules]
        progress(done, total, " and ".join(names))
        fabrics.append({"algorithms": names} | hardware.build_and_measure(schedules))
        done += 1
    return fabrics, flits


def _schedule_choices(plans: list[list[Schedule]]) -> Iterator[list[Schedule]]:
    """Yield the schedules of each fabric to compare, as a list with one schedule for each mode.

    `plans` has, for each mode, its schedules, the preferred one first. The first list has the
    preferred schedules. In each further list one mode has another schedule.
    """
    best = [group[0] for group in plans]
    yield best
    for place, group in enumerate(plans):
        for other in group[1:]:
            yield [*best[:place], other, *best[place + 1 :]]
