"""All algorithms that serve a selection, side by side, and several collectives in one fabric."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from fractions import Fraction
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
    from ..rtl import Fabric

__all__ = [
    "Comparison",
    "Costs",
    "Entry",
    "Hardware",
    "Together",
    "compare",
    "compare_together",
    "fitting",
]


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a fabric takes; None is what does not exist, or was not asked for.

    Parameters
    ----------
    classes : int or None
        Router classes.
    rom_bits, memories, memory_bits : int or None
        See `Inventory`.
    router_luts : int or None
        Of the largest router.
    node_luts : int or None
        Of the whole fabric, divided among its nodes: routers, endpoints and memories.
    luts, ffs, brams : int or None
        Of the whole fabric, host port included.
    reason : str or None
        Why there is no hardware.
    """

    classes: int | None = None
    rom_bits: int | None = None
    memories: int | None = None
    memory_bits: int | None = None
    router_luts: int | None = None
    node_luts: int | None = None
    luts: int | None = None
    ffs: int | None = None
    brams: int | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data, the costs last."""
        costs = {field.name for field in fields(Costs)}
        return dict(sorted(asdict(self).items(), key=lambda item: item[0] in costs))


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

    def program(self, schedules: Schedule | Sequence[Schedule]) -> Program:
        """The program of a schedule, or of several in one fabric."""
        return compile(
            schedules,
            flits=None if self.max_flits else self.flits,
            max_flits=self.max_flits,
            operators=self.operators,
        )

    def costs(self, program: Program) -> dict[str, Any]:
        """What the fabric of a program takes, by the names of `Costs`.

        Nothing is known where the extra ``hardware`` is not installed and no target is asked for.

        Raises
        ------
        InputError
            If there is no such fabric.
        """
        if not self.target and not installed("amaranth"):
            return {}
        from ..rtl import Fabric
        from ..rtl.inventory import take_inventory

        fabric = Fabric(program, width=self.width)
        return {
            "classes": len(fabric.router_classes),
            **take_inventory(fabric.netlist)._asdict(),
            **(_synthesized(fabric, self.target) if self.target else {}),
        }


def _synthesized(fabric: "Fabric", target: str) -> dict[str, Any]:
    """What a fabric costs on a device."""
    from ..fpga.synthesis.synthesize import synthesize

    report = synthesize(fabric, target).to_json()
    return {
        "router_luts": max(row["luts"] for row in report["classes"]),
        "node_luts": round(report["fabric"]["luts"] / fabric.nodes),
        **{name: report["fabric"][name] for name in ("luts", "ffs", "brams")},
    }


@dataclass(frozen=True)
class Entry(Costs):
    """What an algorithm makes of a selection; None is what does not exist, or was not asked for.

    Parameters
    ----------
    ports, chunks, rounds : int
        Of the schedule.
    unit : str
        What the rounds are: "steps of 1/2 message".
    bound : int
        No schedule in its model has fewer rounds.
    bound_where : str
        For which schedules alone that holds, if not for all.
    delta : int
        The sum over the rounds of their longest path, in hops.
    tau, tau_bound : Fraction
        The sum over the rounds of their longest message, in messages, and the least that any
        schedule for this collective takes.
    stream : Fraction or None
        Where flits stream through trees, the part of a message that each arc carries.
    links : dict
        How much of the links is used; see `LinkUse.to_json`.
    plan : str or None
        The schedule file, if it was not planned.
    cycles : int or None
        From start to done, for messages of `flits` flits.
    **costs
        See `Costs`.
    """

    algorithm: str
    switching: str
    ports: int
    chunks: int
    rounds: int
    unit: str
    bound: int
    bound_where: str
    delta: int
    tau: Fraction
    tau_bound: Fraction
    links: dict[str, Any]
    plan: str | None = None
    cycles: int | None = None
    stream: Fraction | None = None


@dataclass(frozen=True)
class Comparison:
    """What algorithms make of a selection.

    Parameters
    ----------
    entries : tuple of Entry
        First those of files, then in the order of the catalogue.
    flits : int
        Flits of a message.
    misfits : dict of str to str
        What each other algorithm for the collective would need.
    """

    entries: tuple[Entry, ...]
    flits: int
    misfits: dict[str, str]


def compare(
    selection: Selection,
    hardware: Hardware | None = None,
    *,
    files: Mapping[str, Schedule] | None = None,
    progress: Callable[[int, int, str], object] | None = None,
) -> Comparison:
    """Plan, check and build with every algorithm that fits.

    Parameters
    ----------
    selection : Selection
        One with an algorithm is planned by no other.
    files : dict of str to Schedule, optional
        Schedules from files for the same topology and collective, by the names of the files.
    progress : function of (done, total, what), optional

    Raises
    ------
    InputError
        If no algorithm fits and there is no file.
    """
    hardware, report = hardware or Hardware(), progress or (lambda done, total, what: None)
    serving, misfits = fitting(selection)
    planned = [(schedule, name) for name, schedule in (files or {}).items()]
    if not serving and not planned:
        choose(selection.topology, selection.collective, selection.options)
    total = 2 * len(serving) + len(planned)
    for done, algorithm in enumerate(serving):
        report(done, total, f"planning {algorithm.name}")
        asked = replace(selection, algorithm=algorithm, any_latency=False)
        planned.append((plan_selection(asked), ""))
    flits = (
        hardware.max_flits or hardware.flits or lcm(*(schedule.chunks for schedule, _ in planned))
    )
    entries = []
    for done, (schedule, file) in enumerate(planned, len(serving)):
        report(done, total, f"building {schedule.algorithm}")
        if selection.any_latency and not file:
            asked = replace(selection, algorithm=find(schedule.algorithm))
            schedule = plan_selection(asked, flits=flits)
        entries.append(_entry(schedule, file or None, replace(hardware, flits=flits)))
    return Comparison(tuple(entries), flits, misfits)


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


def _entry(schedule: Schedule, file: str | None, hardware: Hardware) -> Entry:
    """What becomes of a schedule."""
    facts = schedule_facts(schedule) | {"links": link_use(schedule).to_json()}
    names = [item.name for item in fields(Entry) if item.default is MISSING]
    planned = {name: facts[name] for name in names}
    planned |= {"plan": file, "stream": facts.get("stream")}
    try:
        program = hardware.program(schedule)
        costs = hardware.costs(program)
    except InputError as error:
        return Entry(**planned, reason=str(error))
    return Entry(**planned, cycles=program.cycles(), **costs)


@dataclass(frozen=True)
class Together(Costs):
    """A fabric of several collectives; None is what does not exist, or was not asked for.

    Parameters
    ----------
    algorithms : tuple of str
        Of each mode.
    cycles : tuple of int or None
        Of each mode, from start to done, for the longest messages.
    inputs : int or None
        What the out-ports of all routers select from.
    **costs
        See `Costs`.
    """

    algorithms: tuple[str, ...]
    cycles: tuple[int, ...] | None = None
    inputs: int | None = None


def compare_together(
    selections: Sequence[Selection],
    hardware: Hardware,
    *,
    progress: Callable[[int, int, str], object] = lambda *_: None,
) -> tuple[list[Together], int]:
    """Build a fabric by the best algorithm for each collective, and what another one changes.

    Parameters
    ----------
    selections : sequence of Selection
        One for each collective; one with an algorithm is planned by no other.
    progress : function of (done, total, what), optional

    Returns
    -------
    fabrics : list of Together
        First that by the best algorithms, then those in which one mode has another.
    flits : int
        The longest messages.

    Raises
    ------
    InputError
        If no algorithm fits a collective.
    """
    candidates = [_candidates(selection) for selection in selections]
    # As many plans as algorithms, and about as many fabrics.
    total, done = 2 * sum(map(len, candidates)) - len(candidates) + 1, 0
    plans: list[list[Schedule]] = []
    for selection, algorithms in zip(selections, candidates, strict=True):
        plans.append([])
        for algorithm in algorithms:
            progress(done, total, f"planning {selection.collective} by {algorithm.name}")
            plans[-1].append(_planned(replace(selection, algorithm=algorithm), hardware))
            done += 1
    chunks = max(schedule.chunks for group in plans for schedule in group)
    hardware = replace(hardware, max_flits=hardware.max_flits or hardware.flits or chunks)
    fabrics = []
    for schedules in _choices(plans):
        progress(done, total, " and ".join(schedule.algorithm for schedule in schedules))
        fabrics.append(_built(schedules, hardware))
        done += 1
    assert hardware.max_flits is not None
    return fabrics, hardware.max_flits


def _candidates(selection: Selection) -> list[Algorithm]:
    """The algorithms that fit a collective."""
    found, _ = fitting(selection)
    if not found:
        choose(selection.topology, selection.collective, selection.options)
    return found


def _planned(selection: Selection, hardware: Hardware) -> Schedule:
    """A checked schedule."""
    schedule = plan_selection(selection, flits=hardware.max_flits or hardware.flits)
    check(schedule)
    return schedule


def _choices(plans: list[list[Schedule]]) -> Iterator[list[Schedule]]:
    """The first of each, and then all that differ from these in one place."""
    best = [group[0] for group in plans]
    yield best
    for place, group in enumerate(plans):
        for other in group[1:]:
            yield [*best[:place], other, *best[place + 1 :]]


def _built(schedules: list[Schedule], hardware: Hardware) -> Together:
    """What becomes of schedules in one fabric."""
    algorithms = tuple(schedule.algorithm for schedule in schedules)
    try:
        program = hardware.program(schedules)
        costs = hardware.costs(program)
    except InputError as error:
        return Together(algorithms, reason=str(error))
    return Together(
        algorithms,
        cycles=tuple(program.cycles(mode=mode) for mode in range(len(program.modes))),
        inputs=count_inputs(program).total,
        **costs,
    )
