"""Fitting: what of schedules and programs can be loaded, and the program of a fabric that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...program import Program
from ...program.compile import versions
from ...program.fields import Action
from ...program.mode import Range
from ...rtl.flit_rows import AUTO, check_beat
from ...schedule import Lifted
from ...toolchain.values import natural
from ...topology import shared_network
from ..streams.sections import least_beat
from .loadable import Loadable, LoadableMode, entries_of
from .places import places_beside

if TYPE_CHECKING:
    from ...collective import Operator
    from ...program.mode import Form
    from ...schedule import Schedule
    from .room import Room

__all__ = ["choose_beat", "fit", "loadable_form", "loadable_mode", "loadable_modes"]


def fit(modes: Sequence[LoadableMode], room: Room) -> Program:
    """Return the program of a fabric into which modes are loaded.

    Raises
    ------
    InputError
        If they do not fit.
    """
    entries = entries_of(modes)
    for entry in entries:
        room.check(entry.form)
    places_beside(room, entries)  # which refuses more than there is room for
    forms = [entry.form for entry in entries]
    served = [tuple(map(Range, mode.starts, range(len(mode.starts)))) for mode in modes]
    sent = max(int(form.program.depth[0, -1]) for form in forms)
    return replace(
        forms[0].program,
        topology=room.topology,
        forms=tuple(_fitted(form, room) for form in forms),
        depth=np.tile([room.sizes.words] * room.ports + [sent], (room.nodes, 1)),
        parts=tuple(form.compiled for form in forms),
        served=tuple(served) if len(entries) > len(modes) else (),
        roots=tuple(mode.roots for mode in modes) if any(mode.any_root for mode in modes) else (),
        writable=True,
    )


def _fitted(form: Loadable, room: Room) -> Form:
    """Return a form with the sources of a room."""
    program = form.program
    fields = tuple(
        field.renumbered(room.numbers, {})
        for field in program.loop.fields
        if room.operators or field.point.action is not Action.OPERAND
    )
    return replace(program.form, loop=replace(program.loop, sources=room.sources, fields=fields))


def choose_beat(program: Program, width: int, beat: int | str, *, streams: bool) -> int:
    """Return the flits of a word of the ports of a fabric that is to be made.

    Parameters
    ----------
    beat : int or "auto"
        As of a `Fabric`.

    Raises
    ------
    InputError
        If there can be no such beat.
    """
    if beat == AUTO:
        return least_beat(program, width, fixed=False)[0] if streams else 1
    flits = natural("Beat", beat)
    check_beat(program, width, flits)
    return flits


def loadable_modes(
    program: Program, room: Room | None = None, *, beat: int = 1
) -> list[LoadableMode]:
    """Return what each mode of a program does, in forms that can be loaded.

    Parameters
    ----------
    room : Room, optional
        What may be loaded into a fabric that is there.
    beat : int
        Flits of a word of ports of a fabric that is to be made.

    Raises
    ------
    InputError
        If a mode has none.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("4x4", name, algorithm="matching") for name in ("allgather", "scatter")]
    >>> [mode.forms[0].rows for mode in loadable_modes(tf.compile(plans, max_flits=8))]
    [4, 4]
    """
    if not program.any_length:
        raise InputError("Length must be left to each run, by max_flits, for loaded tables")
    if program.barrier:
        raise InputError("Tables must be rom for a barrier, not ram")
    found = []
    for mode in program.modes:
        schedules = dict.fromkeys(form.schedule for form in mode.forms)
        found.append(
            loadable_mode(
                schedules, program.flits, mode.operators, room, any_root=mode.any_root, beat=beat
            )
        )
    return found


def loadable_mode(
    schedules: Iterable[Schedule], flits: int, operators: Sequence[Operator],
    room: Room | None, *, any_root: bool, beat: int = 1,
) -> LoadableMode:  # fmt: skip
    """Return a mode of those of some schedules that can be loaded, into a fabric if one is given.

    Raises
    ------
    InputError
        If none can; it says why the first cannot.
    """
    found, wrong = list[Loadable](), list[InputError]()
    for schedule in schedules:
        try:
            found.append(loadable_form(schedule, flits, operators, room, beat=beat))
        except InputError as error:
            wrong.append(error)
    if not found:
        raise wrong[0]
    return LoadableMode.of(found, any_root=any_root)


def loadable_form(
    schedule: Schedule,
    flits: int,
    operators: Sequence[Operator],
    room: Room | None = None,
    *,
    beat: int = 1,
) -> Loadable:
    """Return the first version of a schedule that can be loaded, into a fabric if one is given.

    Raises
    ------
    InputError
        If none can; it says why the first cannot.
    """
    if room is not None:
        beat = room.beat
        if schedule.topology.nodes != room.nodes:
            shared_network([room.topology, schedule.topology])  # which refuses any other
        # One that lacks nodes leaves them out.
        schedule = Lifted.within(schedule, room.topology)
    wrong = list[InputError]()
    for fixed in (True, False):
        for program in versions(schedule, flits, operators, beat=beat, fixed=fixed):
            try:
                form = Loadable.from_program(program)
                if room is not None:
                    room.check(form)
            except InputError as error:
                wrong.append(error)
            else:
                return form
    raise wrong[0]
