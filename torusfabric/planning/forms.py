"""Forms of a collective in an engine: those that save more cycles than they cost in look-up tables.

The length of a message is known when a run starts, and the best algorithm depends on it. So an
engine may have several algorithms, its forms, each for some lengths. Candidates are compiled once,
for messages of any length, which gives their cycles at each length and an estimate of their tables.

The rule, `worth_their_luts`: the best form alone is taken first. Another form is added while it
saves at least one percent of the cycles, in the mean over all lengths, for every 20 percent of
look-up tables of a node that it adds, memories included. Where the longest message has fewer than
64 flits there is one form: one percent of the cycles is worth one percent of the tables. The choice
says which forms it takes, and what those that it leaves out would save and cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from typing_extensions import Unpack

from ..analysis.check import check as check_schedule
from ..analysis.facts import require_length
from ..collective import Collective
from ..errors import InputError
from ..schedule import Schedule
from ..toolchain.public import public
from ..toolchain.values import flag, natural
from ..topology import IntArray, Topology
from .choice import least_cycles, serving
from .planned import of_each_latency
from .plans import plan_selection, resolve, tries_all
from .selection import FormChoice, PlanOptions, Selection, select

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["plan_forms", "resolve_forms"]

#: Flits of the longest message from which on a collective may have several forms.
SEVERAL_FROM = 64

#: Of the forms that are left out, at most so many are named, and only those that save so much.
MOST_NAMED, NAMED_FROM = 2, 0.01


class _Candidate(NamedTuple):
    """A selection that is planned, with its program, and its cycles at all lengths compared."""

    selection: Selection
    program: Program
    cycles: IntArray


@public
def plan_forms(
    topology: Topology | str,
    collective: Collective | str,
    *,
    max_flits: int | str,
    root: int | str | None = None,
    forms: FormChoice | str = FormChoice.AUTO,
    check: bool = True,
    **options: Unpack[PlanOptions],
) -> tuple[Schedule, ...]:
    """Plan the forms of a collective for messages of any length, and prove them right.

    The form that is the best alone is taken first, then each that saves at least one percent of the
    cycles, in the mean over all lengths, for every 20 percent of look-up tables that it adds by
    estimate. Where messages have fewer than 64 flits there is one form. See `compile` for what
    becomes of them.

    Parameters
    ----------
    topology, collective, check, **options
        As of `plan`.
    max_flits : int
        Flits of the longest message.
    root : int or str, optional
        The node that broadcasts, scatters, gathers or reduces, or ``"any"`` where each run chooses.
    forms : {"auto", "all", "short", "long"}
        Whether to take as many as that says; all whatever they cost, as few as come within three
        cycles, at every length, of the cheapest that is within 3 % and six cycles of the best; or
        that for the shortest or for the longest messages alone.

    Returns
    -------
    tuple of Schedule
        For the shortest messages first.

    Raises
    ------
    InputError
        If a name is unknown, or no algorithm serves.
    ScheduleError
        If a schedule is wrong.

    Examples
    --------
    >>> import torusfabric as tf
    >>> forms = tf.plan_forms("9", "broadcast", max_flits=64)
    >>> [form.chunks for form in forms]
    [1, 2]
    >>> tf.compile([forms], max_flits=64).modes[0].starts
    (1, 10)
    """
    any_root = "any" if isinstance(root, str) and root == "any" else None
    selection = select(topology, collective, root=0 if any_root else root, **options)
    most = natural("Max flits", max_flits)
    require_length(most)
    chosen = resolve_forms(selection, most, root=any_root, forms=FormChoice(forms))
    schedules = tuple(map(plan_selection, chosen))
    for schedule in schedules if flag("Check", check) else ():
        check_schedule(schedule)
    return schedules


def resolve_forms(
    selection: Selection,
    most: int,
    *,
    root: str | None = None,
    forms: FormChoice = FormChoice.AUTO,
) -> tuple[Selection, ...]:
    """Choose what a selection leaves open, for messages of any length; at least one form.

    Parameters
    ----------
    most : int
        Flits of the longest message.
    root : {"any"}, optional
        Whether each run chooses the root.
    forms : FormChoice
        Whether to take those that are worth their look-up tables, or else all that are quick, of
        which that for the shortest or for the longest messages may be the only one.

    Returns
    -------
    tuple of Selection
        That for the shortest messages first.

    Raises
    ------
    InputError
        If no algorithm serves.

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> for form in resolve_forms(select("9", "broadcast"), 64):
    ...     print(form.algorithm.name, form.planned.chunks)
    spanning-tree 1
    spanning-tree 2
    """
    decided = selection.algorithm or selection.planned or selection.costs
    tried: list[_Candidate] = []
    if forms is not FormChoice.LONG and not decided and tries_all(selection):
        tried = list(_candidates(selection, most, root))
    if not tried and root is None:
        return (resolve(selection, flits=most, any_length=True),)
    if not tried:
        from .any_root import plan_any_root  # here, since it imports what compiles

        rooted, schedule = plan_any_root(selection, flits=most, any_length=True)
        return (replace(rooted, planned=schedule),)
    if forms is FormChoice.AUTO:
        return _Offers(tried, most).chosen()
    from ..program.counts import estimated_luts
    from ..program.serving import worth_having

    luts = [estimated_luts(candidate.program) for candidate in tried]
    cycles = [candidate.cycles for candidate in tried]
    kept = (tried[form].selection for form in worth_having(cycles, luts))
    chosen = tuple({id(form.planned): form for form in kept}.values())
    return chosen[:1] if forms is FormChoice.SHORT else chosen


class Exchange(NamedTuple):
    """How many look-up tables cycles are worth.

    Parameters
    ----------
    rate : float
        Percent of look-up tables of a node that one percent of the cycles is worth.
    beside : int
        Look-up tables of a node besides those of the forms, which count to the whole.
    """

    rate: float
    beside: int = 0

    def price(self, cycles: float, luts: int) -> float:
        """Return what is to be as little as possible, for relative cycles and look-up tables."""
        return self.rate * float(np.log(cycles)) + float(np.log(self.beside + luts))


#: Among forms of which only one is built, and to build several.
ONE_FORM, SEVERAL_FORMS = Exchange(1, beside=1000), Exchange(20)


def worth_their_luts(
    mean_cycles: Callable[[Sequence[int]], float],
    luts: Callable[[Sequence[int]], int],
    count: int,
    exchange: Exchange = SEVERAL_FORMS,
    *,
    most: int | None = None,
) -> list[int]:
    """Choose forms: the best one alone, then each that saves more cycles than it costs in tables.

    Parameters
    ----------
    mean_cycles : function of (forms) -> float
        Cycles with these forms relative to the fewest, the mean over all lengths.
    luts : function of (forms) -> int
        Look-up tables of a node with these forms.
    count : int
        Number of forms to choose from.
    most : int, optional
        The most forms to choose.

    Examples
    --------
    The second form halves the cycles for twice the tables; the third saves a percent for as much
    as both together, and is left out.

    >>> cycles = {(0,): 2.0, (1,): 3.0, (2,): 4.0, (0, 1): 1.01, (0, 2): 1.9, (0, 1, 2): 1.0}
    >>> tables = [100, 100, 200]
    >>> worth_their_luts(
    ...     lambda forms: cycles[tuple(forms)], lambda forms: sum(tables[k] for k in forms), 3
    ... )
    [0, 1]
    """
    chosen, least = list[int](), float("inf")
    while len(chosen) < (most or count):
        rest = [sorted({*chosen, form}) for form in range(count) if form not in chosen]
        prices = [exchange.price(mean_cycles(forms), luts(forms)) for forms in rest]
        if not rest or min(prices) >= least:
            break
        chosen, least = rest[int(np.argmin(prices))], min(prices)
    return chosen


class _Offers:
    """The schedules that can be forms, each with the versions of it that it needs."""

    def __init__(self, tried: list[_Candidate], most: int) -> None:
        from ..program.counts import hardware_parts
        from ..program.serving import compared_lengths

        self._most, self._lengths = most, compared_lengths(most)
        # The share of all lengths that each compared length stands for.
        self._weights = np.diff(np.append(self._lengths, most + 1)) / most
        self._parts = [hardware_parts(candidate.program) for candidate in tried]
        of_schedule: dict[int, list[int]] = {}
        for number, candidate in enumerate(tried):
            of_schedule.setdefault(id(candidate.selection.planned), []).append(number)
        #: Numbers of the versions of each schedule.
        self._versions = [self._needed(numbers, tried) for numbers in of_schedule.values()]
        self._selections = [tried[numbers[0]].selection for numbers in self._versions]
        self._cycles = [
            np.min([tried[number].cycles for number in numbers], axis=0)
            for numbers in self._versions
        ]
        alone = [self._times([form]) for form in range(len(self._versions))]
        self._fewest = np.min(alone, axis=0)

    def _needed(self, numbers: list[int], tried: list[_Candidate]) -> list[int]:
        """The versions of a schedule without those that it can do without."""
        from ..program.counts import joint_luts
        from ..program.serving import spared

        dearest = sorted(numbers, key=lambda number: -joint_luts([self._parts[number]]))
        without = spared([range(len(dearest))], [tried[number].cycles for number in dearest])
        return [number for k, number in enumerate(dearest) if k not in without]

    def _times(self, forms: Sequence[int]) -> IntArray:
        """Cycles at each length with these forms."""
        times: IntArray = np.min([self._cycles[form] for form in forms], axis=0)
        return times

    def _mean_cycles(self, forms: Sequence[int]) -> float:
        """Cycles with these forms relative to the fewest, the mean over all lengths."""
        return float((self._times(forms) / self._fewest) @ self._weights)

    def _luts(self, forms: Sequence[int]) -> int:
        """Estimated look-up tables of a node with these forms."""
        from ..program.counts import joint_luts

        return joint_luts([self._parts[k] for form in forms for k in self._versions[form]])

    def chosen(self) -> tuple[Selection, ...]:
        """The forms that are worth their tables, with what is said of the choice."""
        one = self._most < SEVERAL_FROM
        count, exchange = len(self._versions), ONE_FORM if one else SEVERAL_FORMS
        forms = worth_their_luts(
            self._mean_cycles, self._luts, count, exchange, most=1 if one else None
        )
        # The one for the shortest messages comes first.
        quickest = np.argmin([self._cycles[form] for form in forms], axis=0).tolist()
        forms = [forms[k] for k in dict.fromkeys(quickest)]
        why = self._in_words(forms)
        return tuple(replace(self._selections[form], why=why) for form in forms)

    def _in_words(self, forms: list[int]) -> str:
        """What is built, what is left out, and what each saves and costs."""
        words = [
            f"{' and '.join(map(self._name, forms))}, {self._luts(forms)} LUTs a node by estimate, "
            "memories included"
        ]
        for form in forms if len(forms) > 1 else ():
            others = [other for other in forms if other != form]
            words.append(f"{self._name(form)} saves {self._saving(others, form)}")
        missed = self._missed(forms)
        words += [f"without {self._name(form)}: {self._saving(forms, form)}" for form in missed]
        return "; ".join(words + ["--forms all builds more"] * bool(missed))

    def _missed(self, forms: list[int]) -> list[int]:
        """The forms that are left out and would save the most."""
        mean = self._mean_cycles(forms)
        gains = {
            form: 1 - self._mean_cycles([*forms, form]) / mean
            for form in range(len(self._versions))
            if form not in forms
        }
        best = sorted(gains, key=lambda form: -gains[form])[:MOST_NAMED]
        return [form for form in best if gains[form] >= NAMED_FROM]

    def _name(self, form: int) -> str:
        """The algorithm of a form, and its chunks."""
        selection = self._selections[form]
        assert selection.planned is not None
        chunks = selection.planned.chunks
        return f"{selection.chosen().name} in {chunks} chunk{'s' * (chunks != 1)}"

    def _saving(self, forms: Sequence[int], form: int) -> str:
        """What another form saves and costs beside these."""
        before, after = self._mean_cycles(forms), self._mean_cycles([*forms, form])
        more = self._luts([*forms, form]) / self._luts(forms) - 1
        return f"{1 - after / before:.1%} of the cycles for {more:.0%} more LUTs"


def _candidates(selection: Selection, most: int, root: str | None) -> Iterator[_Candidate]:
    """What can be a form, without what is certainly worse at every length."""
    from ..program.compile import versions
    from ..program.operator_demands import obey_operators
    from ..program.serving import compared_lengths, cycles_at

    lengths, best = compared_lengths(most), None
    for one in _planned(selection, root):
        schedule = one.planned
        assert schedule is not None
        if best is not None and (least_cycles(schedule, lengths) > best).all():
            continue
        try:
            programs = versions(schedule, most, selection.operators, root, beat=selection.beat)
            programs = [*map(obey_operators, programs)]
        except InputError:
            continue
        for program in programs:
            cycles = cycles_at(program.form, lengths)
            best = cycles if best is None else np.minimum(best, cycles)
            yield _Candidate(one, program, cycles)


def _planned(selection: Selection, root: str | None) -> Iterator[Selection]:
    """All that serves; of any root, what is done by offset, and what all nodes do alike."""
    yield from _of_all_latencies(selection)
    if not root:
        return
    from .any_root import masked, to_every_root  # here, since it imports what compiles

    every = to_every_root(selection)
    for one in () if every is None else _of_all_latencies(every):
        assert one.planned is not None
        schedule = masked(one.planned, selection.collective)
        if schedule is not None:
            yield replace(one, collective=selection.collective, planned=schedule)


def _of_all_latencies(selection: Selection) -> Iterator[Selection]:
    """All that serves, with all latencies where these are left open."""
    for candidate in serving(selection):
        with suppress(InputError):
            yield from of_each_latency(candidate)
