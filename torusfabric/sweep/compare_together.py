"""Several collectives in one fabric, by the algorithms that fit each of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..algorithms import Algorithm, choose
from ..analysis.check import check
from ..errors import InputError
from ..planning import Selection, compile, plan_selection
from ..program.counts import count_inputs
from ..schedule import Schedule
from .compare import Hardware, fitting
from .costs import Costs, take_costs

__all__ = ["Together", "compare_together"]


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
        program = compile(schedules, max_flits=hardware.max_flits, operators=hardware.operators)
        costs = take_costs(program, hardware.width, hardware.target)
    except InputError as error:
        return Together(algorithms, reason=str(error))
    return Together(
        algorithms,
        cycles=tuple(program.cycles(mode=mode) for mode in range(len(program.modes))),
        inputs=count_inputs(program).total,
        **costs,
    )
