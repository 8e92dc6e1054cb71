"""Choice of schedules for a mode of a loaded fabric: the fastest of those that can be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import InputError
from ...planning.choice import suitable_selections
from ...planning.forms import LEAST_FLITS_FOR_SEVERAL
from ...planning.selection import FormChoice
from ...planning.selection_schedule import schedule_of_selection
from ...program.compile import compile_versions
from ...program.serving import choose_forms, cycles_of_lengths, sample_lengths
from .fitting import loadable_form

if TYPE_CHECKING:
    from ...collective import Operator
    from ...planning import Selection
    from .loadable import LoadableForm
    from .room import Room

__all__ = ["resolve_loadable"]

#: In a new fabric, a schedule without second registers is preferred up to this ratio of its cycles
#: to the fewest.
SIMPLE_FORM_RATIO = 1.1


def resolve_loadable(
    selection: Selection,
    flits: int,
    operators: Sequence[Operator] = (),
    room: Room | None = None,
    *,
    roots: int = 1,
    forms: FormChoice = FormChoice.AUTO,
) -> tuple[Selection, ...]:
    """Choose the forms of a mode of a loaded fabric: algorithms whose schedules can be loaded.

    A mode may have several forms, each for a range of message lengths. The result has a selection
    for each form: `selection` with an algorithm and its schedule. The form for the shortest
    messages comes first. The rules of the choice are those of
    `torusfabric.planning.forms.resolve_forms`, which serves fixed tables.

    Parameters
    ----------
    selection : Selection
        The collective, and the choices that the user has made.
    flits : int
        Flits of the longest message.
    operators : sequence of Operator
        Operators of the fabric; by default ``add``.
    room : Room, optional
        Capacity of an existing fabric, into which the forms have to fit.
    roots : int
        Number of roots for which each form needs rows in the tables: 1 or, if runs choose the root,
        the number of nodes.
    forms : FormChoice
        The rule by which the forms are selected.

    Raises
    ------
    InputError
        If no schedule can be loaded. The message says why the fastest one cannot.

    Examples
    --------
    The mode has two forms. The first one sends whole messages, the second one cuts them in two
    chunks.

    >>> from torusfabric.planning import make_selection
    >>> [form.planned.chunks for form in resolve_loadable(make_selection("9", "broadcast"), 64)]
    [1, 2]
    """
    found = _find_loadable(selection, flits, operators, room, roots)
    one = forms is FormChoice.LONG or (forms is FormChoice.AUTO and flits < LEAST_FLITS_FOR_SEVERAL)
    if one or selection.algorithm or selection.planned:
        return (min(found, key=lambda each: (each[0].program.cycles(), each[0].n_rows))[1],)
    cycles = [cycles_of_lengths(form.program.form, sample_lengths(flits)) for form, _ in found]
    chosen = choose_forms(cycles, [form.n_rows for form, _ in found])
    return tuple(found[k][1] for k in (chosen[:1] if forms is FormChoice.SHORT else chosen))


def _find_loadable(
    selection: Selection,
    flits: int,
    operators: Sequence[Operator],
    room: Room | None,
    roots: int,
) -> list[tuple[LoadableForm, Selection]]:
    """Return each schedule that can be loaded, as a loadable form and its selection.

    The candidates are the schedules of all suitable algorithms, or the one schedule that
    `selection` has already. In a new fabric (`room` is None), those that need a second register
    behind in-ports or operators are left out if others are almost as fast; see `SIMPLE_FORM_RATIO`.
    `flits` is the largest number of flits of a message. `roots` is the number of roots for which
    each form needs rows in the tables.
    """

    if selection.collective.longest_flits and not selection.planned:
        beat = room.beat if room else selection.beat
        collective = replace(selection.collective, turn_flits=beat)
        selection = replace(selection, collective=collective)
    found: list[tuple[LoadableForm, Selection]] = []
    wrong: list[tuple[int, InputError]] = []
    for one in suitable_selections(selection) if selection.planned is None else (selection,):
        beat = room.beat if room else one.beat
        try:
            schedule = schedule_of_selection(one)
            cycles = min(
                each.cycles() for each in compile_versions(schedule, flits, operators, beat=beat)
            )
        except InputError as error:
            wrong.append((1 << 62, error))
            continue
        try:
            form = loadable_form(schedule, flits, operators, room, beat=beat)
            if room is not None:
                room.check_count("rows", room.sizes.rows, form.n_rows * roots)
        except InputError as error:
            wrong.append((cycles, error))
            continue
        found.append((form, replace(one, planned=schedule)))
    if found:
        fewest = min(form.program.cycles() for form, _ in found)
        # Second registers add inputs to the multiplexer of every out-port.
        plain = [each for each in found if room is None and not each[0].needs_second_registers]
        near = any(form.program.cycles() <= SIMPLE_FORM_RATIO * fewest for form, _ in plain)
        return plain if near else found
    if not wrong:
        schedule_of_selection(
            selection
        )  # raises InputError with the reason why no algorithm serves
    raise min(wrong, key=lambda each: each[0])[1]
