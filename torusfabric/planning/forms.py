"""Choice of the forms of a collective for hardware that accepts messages of any length.

The best algorithm depends on the length of the message, which is known when a run starts. So the
hardware may hold several schedules of a collective, its *forms*, each for a range of lengths. Each
candidate is compiled once, for messages of any length. The program gives the cycles at each length
and an estimate of the LUTs.

The rule (`choose_forms_greedily`): the best single form is taken first. A further form is added
while it saves at least 1 % of the cycles, in the mean over all lengths, for every 20 % of a node's
LUTs that it adds, memories included. If the longest message has fewer than 64 flits, only one form
is taken; the choice then counts 1 % of the cycles as much as 1 % of the LUTs. The reason of the
choice (`why` of each selection) names the forms, and the savings and costs of forms that are left
out.

A schedule can have several *versions*: programs with different timing, for example one for short
and one for long messages. A form has all versions that save enough cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from typing_extensions import Unpack

from ..analysis.check import check as check_schedule
from ..analysis.facts import require_message_length
from ..collective import Collective
from ..errors import InputError
from ..schedule import Schedule
from ..toolchain.public import public
from ..toolchain.values import parse_non_negative_int, require_bool
from ..topology import IntArray, Topology
from .choice import least_cycles, suitable_selections
from .plans import is_full_search, plan_selection, resolve
from .selection import FormChoice, PlanOptions, Selection, make_selection
from .selection_schedule import plan_each_latency

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["plan_forms", "resolve_forms"]

#: Least length of the longest message, in flits, for which a collective may have several forms.
LEAST_FLITS_FOR_SEVERAL = 64

#: Most omitted forms that the reason of the choice names, and least share of the cycles that such a
#: form must save.
MOST_MISSED_FORMS, LEAST_MISSED_GAIN = 2, 0.01


class _FormVersion(NamedTuple):
    """A schedule with one of its programs, and the cycles of this program.

    One schedule can have several programs (versions) with different timing, for example one for
    short and one for long messages. `cycles` has an entry for each message length at which forms
    are compared.
    """

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
    """Plan the forms of a collective for messages of any length, and check them.

    A form is one schedule of the collective, for messages of some lengths. The best single form is
    taken first. A further form is added while it saves at least 1 % of the cycles, in the mean over
    all lengths, for every 20 % of LUTs that it adds by estimate. If the longest message has fewer
    than 64 flits, only one form is taken. `compile` takes the forms as one mode of a program.

    Parameters
    ----------
    topology, collective, check, **options
        Network, collective, check of the schedules and further options, see `plan`.
    max_flits : int
        Flits of the longest message.
    root : int or str, optional
        The node that broadcasts, scatters, gathers or reduces, or ``"any"`` if each run chooses its
        root.
    forms : {"auto", "all", "short", "long"}
        The rule for the number of forms: ``"auto"`` weighs cycles against LUTs, as above.
        ``"short"`` and ``"long"`` take only the form for the shortest or the longest messages.
        ``"all"`` first finds, for each length, the form with the fewest LUTs among those within 3 %
        and 6 cycles of the quickest. The result is the smallest set of forms that, at every length,
        takes at most 3 cycles more than the form that was found.

    Returns
    -------
    tuple of Schedule
        The forms, beginning with the form for the shortest messages.

    Raises
    ------
    InputError
        If a name is unknown, or no algorithm is suitable.
    ScheduleError
        If a schedule is wrong.

    Examples
    --------
    Two forms, in one and in two chunks; messages of 10 flits or more use the second one:

    >>> import torusfabric as tf
    >>> forms = tf.plan_forms("9", "broadcast", max_flits=64)
    >>> [form.chunks for form in forms]
    [1, 2]
    >>> tf.compile([forms], max_flits=64).modes[0].range_starts
    (1, 10)
    """
    any_root = "any" if isinstance(root, str) and root == "any" else None
    selection = make_selection(topology, collective, root=0 if any_root else root, **options)
    most = parse_non_negative_int("Max flits", max_flits)
    require_message_length(most)
    chosen = resolve_forms(selection, most, root=any_root, forms=FormChoice(forms))
    schedules = tuple(map(plan_selection, chosen))
    for schedule in schedules if require_bool("Check", check) else ():
        check_schedule(schedule)
    return schedules


def resolve_forms(
    selection: Selection,
    most: int,
    *,
    root: str | None = None,
    forms: FormChoice = FormChoice.AUTO,
) -> tuple[Selection, ...]:
    """Choose the algorithm of each form that a fabric needs for messages of up to `most` flits.

    A form is one schedule of the collective, for messages of some lengths. Several algorithms, or
    one algorithm with several numbers of chunks, are chosen only in a full search. There is a
    single form

    - if the user names the algorithm, gives a schedule, or lets the time in the cost model decide
      (``objective="time"``);
    - if the topology is large or the user gives a seed, so that only one algorithm is tried;
    - with the rule ``"short"`` or ``"long"``, or with ``"auto"`` if `most` is less than 64.

    Parameters
    ----------
    selection : Selection
        The choice of the user: topology, collective and options.
    most : int
        Flits of the longest message.
    root : {"any"}, optional
        ``"any"`` if each run chooses its root.
    forms : FormChoice
        The rule for the number of forms, see `plan_forms`.

    Returns
    -------
    tuple of Selection
        For each form, the selection with an algorithm and options; the form for the shortest
        messages comes first.

    Raises
    ------
    InputError
        If no algorithm is suitable.

    Examples
    --------
    Short messages go in one chunk, long ones in two:

    >>> from torusfabric.planning import make_selection
    >>> for form in resolve_forms(make_selection("9", "broadcast"), 64):
    ...     print(form.algorithm.name, form.planned.chunks)
    spanning-tree 1
    spanning-tree 2
    """
    decided = selection.algorithm or selection.planned or selection.costs
    tried: list[_FormVersion] = []
    if forms is not FormChoice.LONG and not decided and is_full_search(selection):
        tried = list(_form_versions(selection, most, root))
    if not tried and root is None:
        return (resolve(selection, flits=most, any_length=True),)
    if not tried:
        from .any_root import plan_any_root  # here, since it imports the compiler

        rooted, schedule = plan_any_root(selection, flits=most, any_length=True)
        return (replace(rooted, planned=schedule),)
    if forms is FormChoice.AUTO:
        return _FormChooser(tried, most).choose()
    from ..program.counts import estimate_luts
    from ..program.serving import choose_forms

    luts = [estimate_luts(candidate.program) for candidate in tried]
    cycles = [candidate.cycles for candidate in tried]
    kept = (tried[form].selection for form in choose_forms(cycles, luts))
    chosen = tuple({id(form.planned): form for form in kept}.values())
    return chosen[:1] if forms is FormChoice.SHORT else chosen


class ExchangeRate(NamedTuple):
    """The LUTs that may be added to a node to save one percent of the cycles.

    Parameters
    ----------
    rate : float
        Percent of LUTs that may be added for each percent of cycles saved: with 20, a form that
        saves 2 % of the cycles may add 40 % of LUTs.
    beside : int
        LUTs that a node has in any case. Percents refer to the sum of `beside` and the LUTs of the
        forms.
    """

    rate: float
    beside: int = 0

    def price(self, cycles: float, luts: int) -> float:
        """Return the price of a set of forms; a set with a smaller price is better.

        The price is ``rate ln(cycles) + ln(beside + luts)``. Why logarithms: equal relative changes
        then change the price equally, so that percents of cycles are compared with percents of
        LUTs.

        Parameters
        ----------
        cycles : float
            Relative cycles of the set: the mean, over all message lengths, of the cycles of its
            quickest form divided by those of the quickest of all forms.
        luts : int
            LUTs of a node with these forms.
        """
        return self.rate * float(np.log(cycles)) + float(np.log(self.beside + luts))


#: Exchange rates for the choice of a single form, and for the choice of several forms.
ONE_FORM, SEVERAL_FORMS = ExchangeRate(1, beside=1000), ExchangeRate(20)


def choose_forms_greedily(
    mean_cycles: Callable[[Sequence[int]], float],
    luts: Callable[[Sequence[int]], int],
    count: int,
    exchange: ExchangeRate = SEVERAL_FORMS,
    *,
    most: int | None = None,
) -> list[int]:
    """Choose forms greedily: the best single form, then each form whose savings are worth its LUTs.

    Parameters
    ----------
    mean_cycles : function of (sequence of int) -> float
        Function from the numbers of a set of forms to the relative cycles of the set. At each
        message length, the cycles of the quickest form in the set are divided by those of the
        quickest of all forms; the relative cycles are the mean of these ratios.
    luts : function of (sequence of int) -> int
        Function from the numbers of a set of forms to the LUTs of a node with these forms.
    count : int
        Number of forms to choose from; forms are numbered from 0.
    exchange : ExchangeRate
        Exchange rate between cycles and LUTs.
    most : int, optional
        Most forms to choose; by default all.

    Returns
    -------
    list of int
        Numbers of the chosen forms, ascending.

    Examples
    --------
    The second form halves the cycles for twice the LUTs, and is taken. The third saves one percent
    of the cycles and doubles the LUTs again, and is left out.

    >>> cycles = {(0,): 2.0, (1,): 3.0, (2,): 4.0, (0, 1): 1.01, (0, 2): 1.9, (0, 1, 2): 1.0}
    >>> tables = [100, 100, 200]
    >>> choose_forms_greedily(
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


class _FormChooser:
    """The choice of forms (`choose`) among all schedules of a collective.

    A form is one schedule. It has one or several versions: programs of the schedule with different
    timing. Forms are numbered from 0, in the order of their first version in `tried`.

    Parameters
    ----------
    tried : list of _FormVersion
        All versions of all schedules, each with its cycles.
    most : int
        Flits of the longest message.
    """

    def __init__(self, tried: list[_FormVersion], most: int) -> None:
        from ..program.counts import estimate_parts
        from ..program.serving import sample_lengths

        self._most, self._lengths = most, sample_lengths(most)
        # A compared length stands for all lengths up to the next one; its weight is their share.
        self._weights = np.diff(np.append(self._lengths, most + 1)) / most
        self._parts = [estimate_parts(candidate.program) for candidate in tried]
        of_schedule: dict[int, list[int]] = {}
        for number, candidate in enumerate(tried):
            of_schedule.setdefault(id(candidate.selection.planned), []).append(number)
        #: For each form, the numbers in `tried` of its versions.
        self._versions = [self._needed_versions(numbers, tried) for numbers in of_schedule.values()]
        self._selections = [tried[numbers[0]].selection for numbers in self._versions]
        self._cycles = [
            np.min([tried[number].cycles for number in numbers], axis=0)
            for numbers in self._versions
        ]
        alone = [self._fewest_cycles([form]) for form in range(len(self._versions))]
        self._fewest = np.min(alone, axis=0)

    def _needed_versions(self, numbers: list[int], tried: list[_FormVersion]) -> list[int]:
        """Return the versions of one schedule that are worth keeping, as indices in `tried`.

        A version is a program of the schedule. `numbers` are the indices of all versions of the
        schedule. A version that hardly saves any cycles beside the others is left out; versions
        with many LUTs are the first to go.
        """
        from ..program.counts import estimate_joint_luts
        from ..program.serving import dispensable_versions

        dearest = sorted(numbers, key=lambda number: -estimate_joint_luts([self._parts[number]]))
        without = dispensable_versions(
            [range(len(dearest))], [tried[number].cycles for number in dearest]
        )
        return [number for k, number in enumerate(dearest) if k not in without]

    def _fewest_cycles(self, forms: Sequence[int]) -> IntArray:
        """Return the cycles of the quickest form among `forms`, at each compared message length."""
        times: IntArray = np.min([self._cycles[form] for form in forms], axis=0)
        return times

    def _mean_cycles(self, forms: Sequence[int]) -> float:
        """Return the relative cycles of the forms with the numbers in `forms`; 1.0 is the best.

        At each message length, the cycles of the quickest of these forms are divided by those of
        the quickest of all forms. The result is the mean of these ratios.
        """
        return float((self._fewest_cycles(forms) / self._fewest) @ self._weights)

    def _estimated_luts(self, forms: Sequence[int]) -> int:
        """Return the estimated LUTs of a node with the forms in `forms`."""
        from ..program.counts import estimate_joint_luts

        return estimate_joint_luts([self._parts[k] for form in forms for k in self._versions[form]])

    def choose(self) -> tuple[Selection, ...]:
        """Return a selection for each form that is worth its LUTs, shortest messages first.

        Each selection has the reason of the choice (`why`).
        """
        one = self._most < LEAST_FLITS_FOR_SEVERAL
        count, exchange = len(self._versions), ONE_FORM if one else SEVERAL_FORMS
        forms = choose_forms_greedily(
            self._mean_cycles, self._estimated_luts, count, exchange, most=1 if one else None
        )
        # Sort the forms by the first length at which each is the quickest; drop all others.
        quickest = np.argmin([self._cycles[form] for form in forms], axis=0).tolist()
        forms = [forms[k] for k in dict.fromkeys(quickest)]
        why = self._reason_text(forms)
        return tuple(replace(self._selections[form], why=why) for form in forms)

    def _reason_text(self, forms: list[int]) -> str:
        """Return the reason of the choice: forms taken and left out, their savings and costs.

        `forms` has the numbers of the forms that were taken.
        """
        words = [
            f"{' and '.join(map(self._form_name, forms))}, {self._estimated_luts(forms)} LUTs a "
            "node by estimate, "
            "memories included"
        ]
        for form in forms if len(forms) > 1 else ():
            others = [other for other in forms if other != form]
            words.append(f"{self._form_name(form)} saves {self._saving_text(others, form)}")
        missed = self._missed_forms(forms)
        words += [
            f"without {self._form_name(form)}: {self._saving_text(forms, form)}" for form in missed
        ]
        return "; ".join(words + ["--forms all builds more"] * bool(missed))

    def _missed_forms(self, forms: list[int]) -> list[int]:
        """Return the numbers of forms that were not chosen, but would save many cycles.

        `forms` has the numbers of the chosen forms. At most `MOST_MISSED_FORMS` are returned, the
        largest saving first, and only forms that save at least the share `LEAST_MISSED_GAIN` of the
        mean cycles.
        """
        mean = self._mean_cycles(forms)
        gains = {
            form: 1 - self._mean_cycles([*forms, form]) / mean
            for form in range(len(self._versions))
            if form not in forms
        }
        best = sorted(gains, key=lambda form: -gains[form])[:MOST_MISSED_FORMS]
        return [form for form in best if gains[form] >= LEAST_MISSED_GAIN]

    def _form_name(self, form: int) -> str:
        """Return the name of form number `form`: its algorithm and its number of chunks."""
        selection = self._selections[form]
        assert selection.planned is not None
        chunks = selection.planned.chunks
        return f"{selection.resolve_algorithm().name} in {chunks} chunk{'s' * (chunks != 1)}"

    def _saving_text(self, forms: Sequence[int], form: int) -> str:
        """Return the effect of adding a form, such as "3.0% of the cycles for 20% more LUTs".

        `form` is the number of this form. The forms with the numbers in `forms` are compared with
        and without it.
        """
        before, after = self._mean_cycles(forms), self._mean_cycles([*forms, form])
        more = self._estimated_luts([*forms, form]) / self._estimated_luts(forms) - 1
        return f"{1 - after / before:.1%} of the cycles for {more:.0%} more LUTs"


def _form_versions(selection: Selection, most: int, root: str | None) -> Iterator[_FormVersion]:
    """Yield each schedule that can be a form, once with each of its programs.

    A schedule can have several programs, for example one for short and one for long messages, of up
    to `most` flits. `selection` is the choice of the user; `root` is "any" if each run chooses its
    root. A schedule is skipped if, at every compared length, it cannot be quicker than the programs
    so far.
    """
    from ..program.compile import compile_versions
    from ..program.operator_demands import meet_operator_demands
    from ..program.serving import cycles_of_lengths, sample_lengths

    lengths, best = sample_lengths(most), None
    for one in _planned_selections(selection, root):
        schedule = one.planned
        assert schedule is not None
        if best is not None and (least_cycles(schedule, lengths) > best).all():
            continue
        try:
            programs = compile_versions(
                schedule, most, selection.operators, root, beat=selection.beat
            )
            programs = [*map(meet_operator_demands, programs)]
        except InputError:
            continue
        for program in programs:
            cycles = cycles_of_lengths(program.form, lengths)
            best = cycles if best is None else np.minimum(best, cycles)
            yield _FormVersion(one, program, cycles)


def _planned_selections(selection: Selection, root: str | None) -> Iterator[Selection]:
    """Yield `selection` with each suitable algorithm, and with the schedule of that algorithm.

    If `root` is "any", each run chooses its root. Then masked schedules follow: those of a
    collective that serves every root at once, such as an all-to-all for a scatter, in which only
    the blocks of the actual root count.
    """
    yield from _plan_all_latencies(selection)
    if not root:
        return
    from .any_root import (  # here, since it imports the compiler
        mask_to_root,
        selection_for_every_root,
    )

    every = selection_for_every_root(selection)
    for one in () if every is None else _plan_all_latencies(every):
        assert one.planned is not None
        schedule = mask_to_root(one.planned, selection.collective)
        if schedule is not None:
            yield replace(one, collective=selection.collective, planned=schedule)


def _plan_all_latencies(selection: Selection) -> Iterator[Selection]:
    """Yield `selection` with each suitable algorithm and its schedule, for each latency if open.

    The latency is the least number of steps between the arrival of a word at a node and the
    departure of its sum. It is open if the user gave ``latency="auto"``.
    """
    for candidate in suitable_selections(selection):
        with suppress(InputError):
            yield from plan_each_latency(candidate)
