"""Which algorithm is taken for tables that are loaded: the quickest of those that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import InputError
from .choice import serving
from .planned import planned
from .selection import Selection

if TYPE_CHECKING:
    from ..collective import Operator
    from ..program.frame import Frame
    from ..program.loadable import Loadable

__all__ = ["resolve_loadable"]

#: Of cycles, how many more are as good in a new fabric that has no second registers then.
WITHOUT = 1.1


def resolve_loadable(
    selection: Selection, flits: int, operators: Sequence[Operator] = (), frame: Frame | None = None
) -> Selection:
    """Choose what a selection leaves open, for messages of up to so many flits.

    Parameters
    ----------
    operators : sequence of Operator
        Of the fabric; by default ``add``.
    frame : Frame, optional
        What may be loaded into a fabric that is there.

    Raises
    ------
    InputError
        If nothing that serves can be loaded; it says why the quickest cannot.

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> resolve_loadable(select("4x4", "allreduce"), 16).algorithm.name
    'spanning-tree'
    """
    from ..program.compile import versions
    from ..program.frame import loadable_form

    found: list[tuple[Loadable, Selection]] = []
    wrong: list[tuple[int, InputError]] = []
    for one in serving(selection) if selection.planned is None else (selection,):
        try:
            schedule = planned(one)
            cycles = min(each.cycles() for each in versions(schedule, flits, operators))
        except InputError as error:
            wrong.append((1 << 62, error))
            continue
        try:
            form = loadable_form([schedule], flits, operators, frame)
        except InputError as error:
            wrong.append((cycles, error))
            continue
        found.append((form, replace(one, planned=schedule)))
    if found:
        fewest = min(form.program.cycles() for form, _ in found)
        # Second registers are inputs more of every out-port.
        plain = [
            (form, one)
            for form, one in found
            if frame is None and not form.later and form.program.cycles() <= WITHOUT * fewest
        ]
        return min(plain or found, key=lambda each: (each[0].program.cycles(), each[0].rows))[1]
    if not wrong:
        planned(selection)  # which says why nothing serves
    raise min(wrong, key=lambda each: each[0])[1]
