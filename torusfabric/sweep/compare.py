"""All algorithms that serve a selection, side by side."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from math import lcm
from typing import Any

from ..algorithms import CATALOGUE, Algorithm, choose, find
from ..analysis.facts import schedule_facts
from ..analysis.link_use import link_use
from ..collective import Operator
from ..errors import InputError
from ..planning import Selection, compile, plan_selection
from ..schedule import Schedule
from .costs import Costs, take_costs

__all__ = ["Comparison", "Entry", "Hardware", "compare", "fitting"]


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
    planned = {name: facts[name] for name in names} | {"plan": file}
    try:
        program = compile(
            schedule,
            flits=None if hardware.max_flits else hardware.flits,
            max_flits=hardware.max_flits,
            operators=hardware.operators,
        )
        costs = take_costs(program, hardware.width, hardware.target)
    except InputError as error:
        return Entry(**planned, reason=str(error))
    return Entry(**planned, cycles=program.cycles(), **costs)
