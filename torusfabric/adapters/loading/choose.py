"""Choice: the fastest schedules among those that can be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import InputError
from ...planning.choice import serving
from ...planning.forms import SEVERAL_FROM
from ...planning.planned import planned
from ...planning.selection import FormChoice
from ...program.compile import versions
from ...program.serving import compared_lengths, cycles_at, worth_having
from .fitting import loadable_form

if TYPE_CHECKING:
    from ...collective import Operator
    from ...planning import Selection
    from .loadable import Loadable
    from .room import Room

__all__ = ["resolve_loadable"]

#: In a new fabric, a schedule without second registers is preferred up to this ratio of its cycles
#: to the fewest.
WITHOUT = 1.1


def resolve_loadable(
    selection: Selection,
    flits: int,
    operators: Sequence[Operator] = (),
    room: Room | None = None,
    *,
    roots: int = 1,
    forms: FormChoice = FormChoice.AUTO,
) -> tuple[Selection, ...]:
    """Return the selections of one mode with all open choices made, for messages of any length.

    There are several forms in the cases in which `resolve_forms` takes several; the form for the
    shortest messages comes first.

    Parameters
    ----------
    selection : Selection
        The collective, and the choices already made.
    flits : int
        Flits of the longest message.
    operators : sequence of Operator
        Operators of the fabric; by default ``add``.
    room : Room, optional
        Capacity of an existing fabric, into which the forms have to fit.
    roots : int
        Number of roots that have rows of their own.
    forms : FormChoice
        One form for short or long messages, or a choice by length.

    Raises
    ------
    InputError
        If no schedule can be loaded, with the reason for the fastest.

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> [form.planned.chunks for form in resolve_loadable(select("9", "broadcast"), 64)]
    [1, 2]
    """
    found = _found(selection, flits, operators, room, roots)
    one = forms is FormChoice.LONG or (forms is FormChoice.AUTO and flits < SEVERAL_FROM)
    if one or selection.algorithm or selection.planned:
        return (min(found, key=lambda each: (each[0].program.cycles(), each[0].rows))[1],)
    cycles = [cycles_at(form.program.form, compared_lengths(flits)) for form, _ in found]
    chosen = worth_having(cycles, [form.rows for form, _ in found])
    return tuple(found[k][1] for k in (chosen[:1] if forms is FormChoice.SHORT else chosen))


def _found(
    selection: Selection,
    flits: int,
    operators: Sequence[Operator],
    room: Room | None,
    roots: int,
) -> list[tuple[Loadable, Selection]]:
    """Return the loadable form and the selection of each candidate that can be loaded."""

    found: list[tuple[Loadable, Selection]] = []
    wrong: list[tuple[int, InputError]] = []
    for one in serving(selection) if selection.planned is None else (selection,):
        try:
            schedule = planned(one)
            beat = room.beat if room else one.beat
            cycles = min(each.cycles() for each in versions(schedule, flits, operators, beat=beat))
        except InputError as error:
            wrong.append((1 << 62, error))
            continue
        try:
            form = loadable_form(schedule, flits, operators, room, beat=beat)
            if room is not None:
                room.check_count("rows", room.sizes.rows, form.rows * roots)
        except InputError as error:
            wrong.append((cycles, error))
            continue
        found.append((form, replace(one, planned=schedule)))
    if found:
        fewest = min(form.program.cycles() for form, _ in found)
        # Second registers add inputs to the multiplexer of every out-port.
        plain = [each for each in found if room is None and not each[0].later]
        near = any(form.program.cycles() <= WITHOUT * fewest for form, _ in plain)
        return plain if near else found
    if not wrong:
        planned(selection)  # raises InputError with the reason why no algorithm serves
    raise min(wrong, key=lambda each: each[0])[1]
